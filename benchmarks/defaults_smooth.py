"""What the defaults of RPCAG and FRPCAG and n_components="auto" give, without turning a knob.

    python benchmarks/defaults_smooth.py [ranks] [errors] [--quick] [--frpcag]

``ranks``   how often n_components="auto" finds a planted rank of 3, and what it finds on real
            data.
``errors``  errors of the low-rank part where the truth is known, relative to the deviation of the
            data from their medians: real data whose entries were spoiled, and planted clusters.
            Real data other than the digits of scikit-learn are used if the data folder has them.

Each figure is over 10 seeds (2 with --quick); a ratio compares the default with the best weights
of a grid, chosen by the truth, with `RPCA` and with PCA at the best of four ranks. ``fits`` is the
CPU time of a fit that chooses its weights over that of one that is given them. With ``--frpcag``
RPCA and RPCAG, which take most of the time, are left out.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA

from measure import seconds
from robustpca import FRPCAG, RPCA, RPCAG
from robustpca.datasets import load
from robustpca.engine.rows import ArrayRows
from robustpca.parts.ranks import rank_of

Array = Any
SHAPES = [(300, 12), (1000, 50), (200, 500)]
NOISES = [0.01, 0.1, 0.5]
# Name, image size that suffices, and columns.
SETS = [
    ("digits", None, None),
    ("usps", None, None),
    ("mnist", (14, 14), None),
    ("orl", (16, 16), None),
    ("pie", (16, 16), None),
    ("mfeat", None, 216),
]
N_ROWS = 300
LEVELS = [0.0, 0.1, 0.2, 0.4, 0.8, 1.6]
PURSUIT_LEVELS = [0.0, 0.001, 0.003, 0.01]


def table(shape: tuple[int, int], trouble: str, noise: float, seed: int) -> Array:
    """Rank 3 and noise; a tenth of the rows or a twentieth of the entries are troubled."""
    rng = np.random.default_rng(seed)
    n, d = shape
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    X = X / X.std() + noise * rng.normal(size=shape)
    rows, entries = rng.permutation(n)[: n // 10], rng.random(shape) < 0.05
    if trouble == "rows":
        X[rows] = rng.uniform(2, 10, size=(len(rows), 1)) * rng.normal(size=(len(rows), d))
    elif trouble == "cluster":
        X[rows] = 6 * rng.normal(size=d) + 0.1 * rng.normal(size=(len(rows), d))
    elif trouble == "entries":
        X[entries] += rng.uniform(-10, 10, size=np.count_nonzero(entries))
    elif trouble == "missing":
        X[entries] = np.nan
    return X


def ranks(n_seeds: int) -> None:
    """Print how often a planted rank is found, and the ranks of real data."""
    print('n_components="auto": planted rank 3 found, of all seeds and noise levels', NOISES)
    for shape, trouble in product(SHAPES, ["none", "rows", "cluster", "entries", "missing"]):
        time, found = seconds(
            lambda shape=shape, trouble=trouble: [
                rank_of(ArrayRows(table(shape, trouble, noise, seed)))
                for noise in NOISES
                for seed in range(n_seeds)
            ]
        )
        right = sum(rank == 3 for rank in found)
        name = f"{shape[0]} x {shape[1]}, {trouble}"
        print(f"  {name:24} {right:3d} of {len(found)}   {time / len(found):.2f} s", flush=True)
    print("on real data")
    for name, make in {
        "iris": lambda: load_iris().data,
        "wine": lambda: load_wine().data,
        "breast cancer": lambda: load_breast_cancer().data,
    }.items():
        show_rank(name, make())
    for name, size, _ in SETS:
        if (data := stored(name, size)) is not None:
            show_rank(name, data[:5000])


def show_rank(name: str, X: Array) -> None:
    """Print the rank of a data set, and the share of the variance that it holds."""
    time, rank = seconds(lambda: rank_of(ArrayRows(X)))
    share = PCA(rank, random_state=0).fit(X).explained_variance_ratio_.sum()
    size = f"{X.shape[0]} x {X.shape[1]}"
    print(f"  {name:14} {size:>12}  rank {rank:3d}  {100 * share:3.0f} %  {time:.2f} s", flush=True)


def stored(name: str, size: tuple[int, int] | None) -> Array | None:
    """A stored data set, or None with a note."""
    try:
        return load(name, size=size).X.astype(np.float64)
    except FileNotFoundError:
        print(f"  {name} is not in the data folder and is left out")
        return None


def cases(name: str, X: Array) -> Iterator[tuple[str, Callable[[int], tuple[Array, Array]]]]:
    """Ways to spoil a data set: each gives the spoiled data and the truth for a seed."""

    def replaced(seed: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        truth = sample(X, name, rng)
        wrong = rng.random(truth.shape) < 0.1
        return np.where(wrong, rng.uniform(X.min(), X.max(), truth.shape), truth), truth

    def shifted(seed: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        truth = sample(X, name, rng)
        wrong = rng.random(truth.shape) < 0.05
        return truth + 3 * X.std() * wrong * rng.choice([-1, 1], truth.shape), truth

    def covered(seed: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        truth = sample(X, name, rng)
        side = int(np.sqrt(truth.shape[1]))
        images, block = truth.reshape(-1, side, side).copy(), side // 3
        for image in images[: len(images) // 2]:
            top, left = rng.integers(side - block, size=2)
            image[top : top + block, left : left + block] = rng.uniform(
                X.min(), X.max(), (block, block)
            )
        return images.reshape(truth.shape), truth

    yield "10 % replaced", replaced
    yield "5 % shifted", shifted
    if int(np.sqrt(X.shape[1])) ** 2 == X.shape[1]:
        yield "half covered", covered


def sample(X: Array, name: str, rng: np.random.Generator) -> Array:
    """Some rows; of the faces of PIE, some persons."""
    if name == "pie":
        persons = rng.permutation(len(X) // 42)[: N_ROWS // 42]
        return X[np.concatenate([np.arange(42 * person, 42 * person + 42) for person in persons])]
    return X[rng.permutation(len(X))[:N_ROWS]]


def clusters(mean: float) -> Callable[[int], tuple[Array, Array]]:
    """Five clusters about a mean, a tenth of the entries wrong."""

    def make(seed: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        truth = np.repeat(rng.normal(size=(5, 60)), 60, axis=0) + mean
        X = truth + 0.05 * rng.normal(size=truth.shape)
        wrong = rng.random(X.shape) < 0.1
        return X + 5 * wrong * rng.choice([-1, 1], X.shape), truth

    return make


def errors(n_seeds: int, pursuit: bool) -> None:
    """Print the errors of the defaults beside those of a grid and of others."""
    head = f"{'':26}{'nothing':>8}{'PCA':>7}{'RPCA':>7}"
    head += f"{'RPCAG()':>9}{'/grid':>12}{'/RPCA':>12}{'fits':>5}"
    head += f"{'FRPCAG()':>10}{'/grid':>12}{'/PCA':>12}{'fits':>5}"
    print("Errors: median over seeds; ratios: median (worst)")
    print(head)
    for mean in (0.0, 10.0):
        show(f"clusters, mean {mean:.0f}", clusters(mean), n_seeds, pursuit)
    for name, size, n_columns in SETS:
        X = stored(name, size)
        if X is not None:
            for how, spoil in cases(name, X[:, :n_columns]):
                show(f"{name}, {how}", spoil, n_seeds, pursuit)


def show(
    name: str, make: Callable[[int], tuple[Array, Array]], n_seeds: int, pursuit: bool
) -> None:
    """Print one line of errors, those of RPCA and RPCAG only if they are asked for."""
    lines = np.array([measured(*make(seed), pursuit) for seed in range(n_seeds)])
    nothing, pca, rpca, rpcag, grid, ratio, frpcag, descent_grid, descent_ratio = lines.T
    text = f"{name:26}" + "".join(f"{np.median(v):{w}.3f}" for v, w in ((nothing, 8), (pca, 7)))
    text += f"{np.median(rpca):7.3f}{np.median(rpcag):9.3f}"
    text += f"{spread(rpcag / grid)}{spread(rpcag / rpca)}{np.median(ratio):5.1f}"
    text += f"{np.median(frpcag):10.3f}{spread(frpcag / descent_grid)}{spread(frpcag / pca)}"
    print(f"{text}{np.median(descent_ratio):5.1f}", flush=True)


def spread(ratios: Array) -> str:
    """Median and worst of some ratios."""
    return f"{f'{np.median(ratios):.2f} ({ratios.max():.2f})':>12}"


def measured(X: Array, truth: Array, pursuit: bool) -> list[float]:
    """Errors of doing nothing, PCA, RPCA, and of both methods with the cost of their choice."""
    unit = np.linalg.norm(truth - np.median(truth, axis=0))

    def error(low_rank: Array) -> float:
        return float(np.linalg.norm(low_rank - truth) / unit)

    def fitted(kind: Any, **settings: Any) -> float:
        return error(kind(**settings).fit(X).low_rank_)

    def chosen(kind: Any, grid: list[dict[str, float]], names: list[str]) -> list[float]:
        best = min(fitted(kind, **settings) for settings in grid)
        time, model = seconds(lambda: kind().fit(X))
        weights = {name: getattr(model, f"{name}_") for name in names}
        given, _ = seconds(lambda: kind(**weights).fit(X))
        return [error(model.low_rank_), best, time / given]

    plain = []
    for rank in (5, 10, 20, 40):
        pca = PCA(rank, random_state=0).fit(X)
        plain.append(error(pca.inverse_transform(pca.transform(X))))
    split = [np.nan] * 4
    if pursuit:
        grid = [{"smoothness": level, "tol": 1e-4, "max_iter": 500} for level in PURSUIT_LEVELS]
        split = [fitted(RPCA), *chosen(RPCAG, grid, ["smoothness"])]
    names = ["sample_smoothness", "feature_smoothness"]
    pairs = [dict(zip(names, pair, strict=True)) for pair in product(LEVELS, LEVELS)]
    descent = chosen(FRPCAG, [{**pair, "tol": 1e-3} for pair in pairs], names)
    return [error(X), min(plain), *split, *descent]


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=["ranks", "errors", []], default=[])
    parser.add_argument("--quick", action="store_true", help="2 seeds instead of 10")
    parser.add_argument("--frpcag", action="store_true", help="errors without RPCA and RPCAG")
    arguments = parser.parse_args()
    n_seeds = 2 if arguments.quick else 10
    with warnings.catch_warnings():
        # Weights of a grid are not all sensible, and the fits say so.
        warnings.simplefilter("ignore")
        if not arguments.tables or "ranks" in arguments.tables:
            ranks(n_seeds)
        if not arguments.tables or "errors" in arguments.tables:
            errors(n_seeds, not arguments.frpcag)


if __name__ == "__main__":
    main()
