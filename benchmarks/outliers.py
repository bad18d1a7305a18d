"""Angles to a planted subspace among scattered and clustered outliers, for both starts.

python benchmarks/outliers.py [--seeds 10]
"""

import argparse

import numpy as np
from sklearn.decomposition import PCA

from robustpca import EPCA, PCAAN, PCAOM, R1PCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance

SHAPES = {"1000 x 200, rank 5": (1000, 200, 5), "5000 x 1000, rank 10": (5000, 1000, 10)}


def models(c: int) -> dict[str, object]:
    """The methods that work on rows, with both starts."""
    found: dict[str, object] = {"PCA": PCA(c, random_state=0)}
    for init in ("pca", "robust"):
        found[f"PCAOM, init={init!r}"] = PCAOM(c, init=init)
        found[f"R1PCA, init={init!r}"] = R1PCA(c, center="geometric_median", init=init)
        found[f"EPCA, init={init!r}"] = EPCA(c, init=init)
        found[f"PCAAN, init={init!r}"] = PCAAN(c, init=init)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    n_seeds = parser.parse_args().seeds
    print("Largest angle to the planted subspace in degrees: median (worst) over the seeds,")
    print(f"20 % outliers, {n_seeds} seeds.\n")
    for title, (n, d, c) in SHAPES.items():
        print(f"{title:24} {'scattered':>16} {'clustered':>16}")
        for name, model in models(c).items():
            cells = []
            for clustered in (False, True):
                angles = []
                for seed in range(n_seeds):
                    X, basis, _ = planted_subspace(
                        np.random.default_rng(seed),
                        n,
                        d,
                        c,
                        n_outliers=n // 5,
                        noise=0.1,
                        clustered=clustered,
                        distance=100.0,
                    )
                    sine = subspace_distance(model.fit(X).components_, basis)
                    angles.append(np.degrees(np.arcsin(min(sine, 1.0))))
                cells.append(f"{np.median(angles):.1f} ({max(angles):.1f})")
            print(f"{name:24} {cells[0]:>16} {cells[1]:>16}", flush=True)
        print()


if __name__ == "__main__":
    main()
