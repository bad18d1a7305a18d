"""Which method survives which contamination: angles to a planted subspace.

    python benchmarks/outliers.py [--seeds 10] [--shape 1000x100] [--rank 5]
    python benchmarks/outliers.py near [--seeds 10]

The second counts the planted subspaces that are found beside a cloud of outliers that is nearer to
the centre than the rows spread.
"""

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from robustpca import (
    EPCA,
    L1PCA,
    PCAAN,
    PCAOM,
    R1PCA,
    AngularEmbedding,
    GrassmannAverage,
    ReweightedPCA,
)
from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance

# Share of outliers, and whether they lie together.
CONTAMINATIONS = {
    "none": (0.0, False),
    "10 % scattered": (0.1, False),
    "30 % scattered": (0.3, False),
    "5 % in a cloud": (0.05, True),
    "20 % in a cloud": (0.2, True),
}

# Where a cloud is near: its distance, its share of the rows, the noise, and the rows.
DISTANCES, SHARES, NOISES, SHAPES = (
    (3.0, 4.0, 6.0),
    (0.1, 0.15, 0.2),
    (0.1, 0.3),
    ((500, 30), (300, 20)),
)
# A subspace with a smaller sine to the planted one is found.
FOUND = 0.3


def models(c: int) -> dict[str, Any]:
    """The methods that work on rows, by the code that makes them."""
    return {
        "PCA()": PCA(c, random_state=0),
        "PCAOM()": PCAOM(c),
        "PCAOM(init='robust')": PCAOM(c, init="robust"),
        "R1PCA()": R1PCA(c),
        "R1PCA(init='robust')": R1PCA(c, init="robust"),
        "R1PCA(loss='cauchy', center='geometric_median')": R1PCA(
            c, loss="cauchy", center="geometric_median"
        ),
        "EPCA()": EPCA(c),
        "EPCA(init='robust')": EPCA(c, init="robust"),
        "PCAAN()": PCAAN(c),
        "PCAAN(n_active=0.5)": PCAAN(c, n_active=0.5),
        "PCAAN(init='pca')": PCAAN(c, init="pca"),
        "ReweightedPCA(loss='capped')": ReweightedPCA(c, loss="capped"),
        "L1PCA()": L1PCA(c),
        "GrassmannAverage()": GrassmannAverage(c),
        "AngularEmbedding()": AngularEmbedding(c),
    }


def angle(model: Any, X: Any, basis: Any) -> tuple[float, bool]:
    """Largest angle of a fit to the planted subspace, and whether the fit warned of capture."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    sine = min(1.0, subspace_distance(model.components_, basis))
    warned = any("group of outliers" in str(warning.message) for warning in caught)
    return float(np.degrees(np.arcsin(sine))), warned


def beside(
    model: Any, shape: tuple[int, int, int], share: float, seed: int, **options: Any
) -> tuple[float, bool]:
    """What `angle` gives for planted rows, of which a share are outliers."""
    n, d, c = shape
    rng = np.random.default_rng(seed)
    X, basis, _ = planted_subspace(rng, n, d, c, round(share * n), **options)
    return angle(model, X, basis)


def cell(model: Any, shape: tuple[int, int, int], share: float, clustered: bool, seeds: int) -> str:
    """Median and worst angle over the seeds; an exclamation mark if most fits warned."""
    options = {"noise": 0.1, "clustered": clustered, "distance": 30.0}
    found = [beside(model, shape, share, seed, **options) for seed in range(seeds)]
    angles, warned = zip(*found, strict=True)
    return f"{np.median(angles):.1f} ({max(angles):.1f}){'!' if np.mean(warned) > 0.5 else ' '}"


def near_clouds(n_seeds: int, c: int = 4) -> None:
    """Print how many planted subspaces are found beside near clouds, by distance."""
    print(
        f"Planted subspaces of rank {c} that are found beside a cloud, by its distance; fits that\n"
        "warn of a group of outliers, among those that are right and those that are not.\n"
    )
    heads = "".join(f"{at:>10g}" for at in DISTANCES)
    print(f"{'':27}{heads}{'all':>12}{'right!':>8}{'wrong!':>8}")
    for name in ("PCA()", "R1PCA()", "EPCA()", "EPCA(init='robust')", "PCAAN()"):
        model = models(c)[name]
        found = [
            beside(model, (n, d, c), share, seed, noise=noise, clustered=True, distance=at)
            for at, share, noise, (n, d), seed in product(
                DISTANCES, SHARES, NOISES, SHAPES, range(n_seeds)
            )
        ]
        off, warned = np.reshape(found, (len(DISTANCES), -1, 2)).transpose(2, 0, 1)
        right, warned = off < np.degrees(np.arcsin(FOUND)), warned > 0
        cells = "".join(f"{f'{row.sum()}/{row.size}':>10}" for row in right)
        told = f"{(right & warned).sum():8d}{(~right & warned).sum():8d}"
        print(f"{name:27}{cells}{right.sum():6d}/{right.size}{told}", flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["near"], help="clouds near the centre")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shape", default="1000x100", metavar="NxD")
    parser.add_argument("--rank", type=int, default=5)
    given = parser.parse_args()
    if given.part == "near":
        near_clouds(given.seeds)
        return
    n, d = map(int, given.shape.split("x"))
    print(
        "Largest angle to the planted subspace in degrees: median (worst) over "
        f"{given.seeds} seeds,\n{n} x {d}, rank {given.rank}. An exclamation mark: the fit warned "
        "that a group of outliers holds it.\n"
    )
    print(f"{'':49}" + "".join(f"{name:>17}" for name in CONTAMINATIONS))
    for name, model in models(given.rank).items():
        cells = [
            cell(model, (n, d, given.rank), share, clustered, given.seeds)
            for share, clustered in CONTAMINATIONS.values()
        ]
        print(f"{name:49}" + "".join(f"{text:>17}" for text in cells), flush=True)


if __name__ == "__main__":
    main()
