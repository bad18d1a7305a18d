"""Speed of RPCA as a user calls it beside pyrpca, in one process.

CPU seconds at one BLAS thread. pyrpca is the textbook's inexact augmented Lagrangian with full
decompositions; it is imported if it is there. ``excess`` is by how much the objective of pyrpca's
answer is above ours (negative: below), ``gap`` what ours can at most still fall by.

    python benchmarks/defaults_speed.py [exact] [noisy] [real] [--quick]
"""

import argparse
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from measure import seconds
from robustpca import RPCA

try:
    from pyrpca import rpca_pcp_ialm
except ImportError:
    rpca_pcp_ialm = None


def planted(shape: tuple[int, int], rank: int, wrong: float, noise: float, seed: int) -> Any:
    """A product of Gaussian factors, a share of its entries grossly wrong, dense noise."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])) / np.sqrt(rank)
    gross = np.where(rng.random(shape) < wrong, rng.uniform(-10, 10, shape), 0.0)
    return L + gross + noise * rng.normal(size=shape)


def sample(name: str, size: int) -> Any:
    """Some rows of a data set of the data folder."""
    with np.load(Path(os.environ.get("ROBUSTPCA_DATA", ".")) / f"{name}.npz") as data:
        X = data["X"].reshape(len(data["X"]), -1).astype(np.float64)
    return X[np.random.default_rng(0).permutation(len(X))[:size]]


def compare(name: str, draws: list[Callable[[], Any]], bar: float, **parameters: Any) -> None:
    """A line of the table: worst and median over draws."""
    times, theirs, ratios, excesses, gaps, model = [], [], [], [], [], None
    for draw in draws:
        X = draw()
        run = partial(RPCA(**parameters).fit, X)
        ours, model = seconds(run, 2 if X.size <= 1_000_000 else 1)
        times.append(ours)
        gaps.append(model.dual_gap_)
        if rpca_pcp_ialm is None:
            continue
        weight = 1 / np.sqrt(max(X.shape))
        peer, (low, _) = seconds(partial(rpca_pcp_ialm, X, weight, verbose=False))
        theirs.append(peer)
        ratios.append(peer / ours)
        objective = [
            linalg.svdvals(L).sum() + model.loss_.value(X - L) for L in (low, model.low_rank_)
        ]
        excesses.append(objective[0] / objective[1] - 1)
    if not ratios:
        print(f"{name:<34} {np.median(times):8.3f}  gap {max(gaps):.1e}", flush=True)
        return
    print(
        f"{name:<34} {np.median(times):8.3f} {np.median(theirs):8.2f}   {min(ratios):5.1f} "
        f"{np.median(ratios):6.1f} ({bar:2.0f})  {min(excesses):+9.1e}  {max(gaps):8.1e}  "
        f"{model.n_iter_:5d} {model.rank_:5d}",
        flush=True,
    )


def exact(seeds: int, quick: bool) -> None:
    """Exactly low rank + sparse data."""
    cases = [((500, 500), 25), ((1000, 1000), 50)]
    cases += [] if quick else [((2000, 2000), 100), ((20480, 633), 20)]
    for shape, rank in cases:
        for wrong in (0.05, 0.1):
            n_draws = seeds if shape[0] == 500 else 1
            draws = [partial(planted, shape, rank, wrong, 0.0, seed) for seed in range(n_draws)]
            name = f"exact {shape[0]} x {shape[1]}, {wrong:.0%} wrong"
            for noise in ("auto", 0.0):
                compare(f"{name}, noise={noise}", draws, 20, noise=noise)


def noisy(seeds: int, quick: bool) -> None:
    """Dense noise besides."""
    for n in (600,) if quick else (600, 1000):
        for level in (0.001, 0.01, 0.1):
            n_draws = seeds if n == 600 else 1
            draws = [partial(planted, (n, n), 10, 0.05, level, seed) for seed in range(n_draws)]
            for noise in ("auto", 0.0):
                compare(f"noise {level} {n} x {n}, noise={noise}", draws, 5, noise=noise)


def real(seeds: int, quick: bool) -> None:
    """Real data; those of the data folder if it has them."""
    cases: dict[str, Callable[[], Any]] = {
        "digits": lambda: load_digits().data,
        "ORL": lambda: sample("orl_32x32", 400),
        "USPS 2000": lambda: sample("usps_16x16", 2000),
    }
    if not quick:
        cases["MNIST 2000"] = lambda: sample("mnist_28x28", 2000)
        cases["CDnet highway, 200 frames"] = lambda: sample("cdnet_highway", 200)
    for name, draw in cases.items():
        try:
            X = draw()
        except FileNotFoundError as error:
            print(f"{name}: left out ({error})")
            continue
        for noise in ("auto", 0.0):
            compare(f"{name}, noise={noise}", [lambda X=X: X], 3, noise=noise)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    tables = {"exact": exact, "noisy": noisy, "real": real}
    parser.add_argument("tables", nargs="*", choices=[*tables, []], default=[])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller data")
    given = parser.parse_args()
    if rpca_pcp_ialm is None:
        print("pyrpca is not installed: our times only")
    print(
        f"{'RPCA() on':<34}   ours s  pyrpca s  ratio: worst, median (bar)  excess  gap  "
        "passes  rank"
    )
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        RPCA(noise="auto").fit(planted((200, 200), 5, 0.05, 0.01, 0))
        for name in given.tables or tables:
            tables[name](2 if given.quick else 10, given.quick)


if __name__ == "__main__":
    main()
