"""Reweighted defaults: cost on data without a gap, gross outliers, and the alarm of capture.

Costs are CPU seconds at one BLAS thread over those of scikit-learn's PCA of the same array with
as many components, in turn and the best of some runs of each; 0.9 is the share of the variance that
`PCAAN()` keeps by default. The excess is that of the objective over a fit to a tolerance of 1e-12.

    python benchmarks/defaults_reweight.py [usps orl mnist decaying angles] [--quick]
"""

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from measure import seconds
from outliers import angle
from robustpca import EPCA, PCAAN, PCAOM, R1PCA
from robustpca.datasets import load
from robustpca.datasets.synthetic import planted_subspace
from robustpca.parts.losses import SquaredLoss
from robustpca.parts.weightings import AdaptiveNeighbors, CoRobust, Uniform

BARS = {EPCA: 4.0, PCAOM: 4.0, PCAAN: 8.0}


def decaying() -> Any:
    """50000 rows of 784 features whose variances fall without a gap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 784)) * (30 / np.arange(1, 785))
    return X @ np.linalg.qr(rng.normal(size=(784, 784)))[0]


def objective(model: Any, X: Any, like: Any) -> float:
    """Objective of a fit, by the parameters that another one ended with."""
    weighting = {EPCA: CoRobust(), PCAOM: Uniform()}.get(type(like))
    loss = SquaredLoss() if weighting is None else like.loss_
    weighting = weighting or AdaptiveNeighbors(gamma=like.gamma_)
    residuals = np.square(model.orthogonal_distances(X), dtype=np.float64)
    return float(weighting.solve(loss.values(residuals)).objective)


def costs(sets: list[str]) -> None:
    """Print what fits cost in units of plain PCA."""
    print("data              method     c  PCA s  fit s  ratio  bar  passes   excess")
    for name in sets:
        X = decaying() if name == "decaying" else np.asarray(load(name).X, np.float64)
        for c, method in [(0.9, PCAAN), *product((10, 50), BARS)]:
            plain, cost, model = in_turn(X, c, method, 7 if X.size < 1e7 else 2)
            fixed = {"sigma": model.sigma_} if method is EPCA else {}
            tight = method(model.n_components_, tol=1e-12, max_iter=1000, **fixed).fit(X)
            excess = objective(model, X, tight) / objective(tight, X, tight) - 1
            size = f"{name} {X.shape[0]}x{X.shape[1]}"
            print(
                f"{size:17} {method.__name__:6} {c:5} {plain:6.3f} {cost:6.3f} "
                f"{cost / plain:6.2f} {BARS[method]:4.0f} {model.n_iter_:7d} {excess:8.1e}",
                flush=True,
            )


def in_turn(X: Any, c: float, method: Any, repeats: int) -> tuple[float, float, Any]:
    """Least CPU seconds of plain PCA and of a fit, run in turn, and the fit."""
    plain = cost = np.inf
    for _ in range(repeats):
        plain = min(plain, seconds(lambda: PCA(c, random_state=0).fit(X))[0])
        spent, model = seconds(lambda: method(c).fit(X))
        cost = min(cost, spent)
    return plain, cost, model


def angles(n_seeds: int) -> None:
    """Print how far fits are off among gross and clustered outliers, and which of them warn."""
    print("\ndegrees to the planted subspace: median (worst), fits that warn of capture")
    print(f"{'':18} {'':6} {'clean':>18} {'30 % scattered':>18} {'20 % in a cloud':>18}")
    for n, d, c in ((300, 20, 3), (1000, 100, 5), (3000, 300, 10)):
        for method in (PCA, R1PCA, PCAOM, EPCA, PCAAN):
            cells = []
            for share, clustered in ((0.0, False), (0.3, False), (0.2, True)):
                found = []
                for seed in range(n_seeds):
                    rng = np.random.default_rng(seed)
                    options = {"noise": 0.3, "clustered": clustered, "distance": 30.0}
                    X, basis, _ = planted_subspace(rng, n, d, c, int(share * n), **options)
                    found.append(angle(method(c), X, basis))
                off, warned = zip(*found, strict=True)
                cells.append(f"{np.median(off):.1f} ({max(off):.1f}) {sum(warned)}/{n_seeds}")
            print(f"{f'{n} x {d}, rank {c}':18} {method.__name__:6}", end=" ")
            print(" ".join(f"{text:>18}" for text in cells), flush=True)


def main() -> None:
    """Print both tables, or parts of them."""
    known = ("usps", "orl", "mnist", "decaying", "angles")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", choices=[*known, []])
    parser.add_argument("--quick", action="store_true", help="small data and three seeds")
    options = parser.parse_args()
    parts = options.parts or (["usps", "orl", "angles"] if options.quick else known)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        costs([part for part in parts if part != "angles"])
        if "angles" in parts:
            angles(3 if options.quick else 10)


if __name__ == "__main__":
    main()
