"""Which method survives which contamination: angles to a planted subspace.

    python benchmarks/outliers.py [--seeds 10] [--shape 1000x100] [--rank 5]
    python benchmarks/outliers.py near [--seeds 10]
    python benchmarks/outliers.py clean [--seeds 10]
    python benchmarks/outliers.py steady [--draws 40]

The second counts the planted subspaces that are found beside a cloud of outliers that is nearer to
the centre than the rows spread; the third one the fits to data without outliers that warn of some.
The last one counts, for data near the limits of that warning, how many other draws of its samples
warn, and prints what the warning costs.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.decomposition import PCA

from measure import best
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
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance
from robustpca.parts.capture import capture

# Share of outliers, and whether they lie together.
CONTAMINATIONS = {
    "none": (0.0, False),
    "10 % scattered": (0.1, False),
    "30 % scattered": (0.3, False),
    "40 % scattered": (0.4, False),
    "5 % in a cloud": (0.05, True),
    "20 % in a cloud": (0.2, True),
    "40 % in a cloud": (0.4, True),
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
        "PCAAN(n_active=0.75)": PCAAN(c, n_active=0.75),
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


def clean_sets(n_seeds: int) -> Iterator[tuple[str, Any]]:
    """Data sets without a group of outliers, real and drawn."""
    for load in (load_iris, load_wine, load_breast_cancer, load_diabetes, load_digits):
        X = load().data
        name = load.__name__.removeprefix("load_")
        yield name, X / X.std(axis=0).clip(1e-9)
    for seed, (n, d) in product(range(n_seeds), ((300, 20), (1000, 100))):
        rng = np.random.default_rng(seed)
        units = np.arange(1, d + 1)
        yield "Gaussian", rng.normal(size=(n, d))
        yield "decaying", rng.normal(size=(n, d)) / units
        yield "t(4)", rng.standard_t(4, size=(n, d))
        yield "skewed", rng.exponential(size=(n, d)) / units**0.5
        yield "low rank", planted_subspace(rng, n, d, 5, 0, noise=0.3)[0]


def alarms(n_seeds: int) -> None:
    """Print how many fits to data without outliers warn of a group of them."""
    fits: dict[str, list[int]] = {}
    for name, X in clean_sets(n_seeds):
        for c in (c for c in (2, 3, 5, 8) if c < X.shape[1]):
            for model in (PCAOM(c), R1PCA(c), EPCA(c), PCAAN(c)):
                warned = angle(model, X, np.eye(X.shape[1])[:c])[1]
                fits.setdefault(name, []).append(warned)
    print("Fits to data without outliers that warn of a group of them\n")
    for name, warned in fits.items():
        print(f"{name:20}{sum(warned):4d} of {len(warned)}")
    print(f"{'all':20}{sum(map(sum, fits.values())):4d} of {sum(map(len, fits.values()))}")


def steadiness(n_draws: int) -> None:
    """Print how many draws of its samples warn of fits to the tumours, as they are measured."""
    X = load_breast_cancer().data
    methods = (PCAOM, R1PCA, EPCA)
    print(
        f"Breast cancer, {len(X)} x {X.shape[1]}: draws of {n_draws} that warn of a group of "
        "outliers,\nand in parentheses the largest angle of the fit to that of PCAAN in degrees; "
        "CPU\nmilliseconds of a fit without the warning, and of the warning (medians).\n\n"
        f"components{''.join(f'{m.__name__:>12}' for m in methods)}{'fit':>10}{'warning':>10}"
    )
    for c in range(2, 11):
        trusted, cells, costs = PCAAN(c).fit(X).components_, "", []
        for method in methods:
            model = method(c)
            off, _ = angle(model, X, trusted)
            where = ArrayRows(X), model.mean_, model.components_
            spent, warned = [], 0
            for seed in range(n_draws):
                started = time.process_time()
                warned += capture(*where, seed=seed) is not None
                spent.append(time.process_time() - started)
            cells += f"{f'{warned} ({off:.0f})':>12}"
            whole = best(partial(angle, model, X, trusted), time.process_time)
            costs.append((whole - spent[0], np.mean(spent)))
        fit, judged = 1e3 * np.median(costs, axis=0)
        print(f"{c:10d}{cells}{fit:10.1f}{judged:10.1f}", flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"near": near_clouds, "clean": alarms, "steady": steadiness}
    parser.add_argument("part", nargs="?", choices=parts, help="another table than that of angles")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shape", default="1000x100", metavar="NxD")
    parser.add_argument("--rank", type=int, default=5)
    parser.add_argument("--draws", type=int, default=40)
    given = parser.parse_args()
    if given.part is not None:
        parts[given.part](given.draws if given.part == "steady" else given.seeds)
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
