"""Speed of RPCA as a user calls it beside pyrpca, in one process.

CPU seconds at one BLAS thread. pyrpca is the textbook's inexact augmented Lagrangian with full
decompositions; it is imported if it is there. ``RPCA()`` estimates the noise, and fits the low-rank
part again if there is any; with ``debias=False`` the convex problem is solved to its certified gap
instead. ``papers`` is the problem that pyrpca solves: ``noise=0, center=None, scale=None,
debias=False``. ``excess`` is by how much the objective of pyrpca's answer is above ours (negative:
below) where both solve that problem, ``gap`` what ours can at most still fall by.

    python benchmarks/defaults_speed.py [exact] [large] [noisy] [real] [--quick] [--seeds 3]
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


PAPERS = {"noise": 0.0, "center": None, "scale": None, "debias": False}
# What each line is fitted with.
DEFAULT, CERTIFIED, EXACT = {"RPCA()": {}}, {"debias=False": {"debias": False}}, {"papers": PAPERS}
ROUGH = {"papers, tol=1e-3": {**PAPERS, "tol": 1e-3}}


def compare(
    name: str, draws: list[Callable[[], Any]], bar: float, fits: dict[str, dict[str, Any]]
) -> None:
    """A line of the table for each way to fit: worst and median over draws."""
    lines: dict[str, list[tuple[float, float, float, float, int, int]]] = {way: [] for way in fits}
    for draw in draws:
        X = draw()
        peer, low, weight = np.nan, None, 1 / np.sqrt(max(X.shape))
        if rpca_pcp_ialm is not None:
            peer, (low, _) = seconds(partial(rpca_pcp_ialm, X, weight, verbose=False))
        for way, parameters in fits.items():
            run = partial(RPCA(**parameters).fit, X)
            ours, model = seconds(run, 3 if X.size <= 1_000_000 else 1)
            excess = np.nan
            if low is not None and model.noise_ == 0 and model.sparsity_ == weight:
                values = [objective(X, L, weight) for L in (low, model.low_rank_)]
                excess = values[0] / values[1] - 1
            lines[way].append((ours, peer, excess, model.dual_gap_, model.n_iter_, model.rank_))
    for way, found in lines.items():
        ours, peers, excesses, gaps, passes, ranks = map(np.array, zip(*found, strict=True))
        excess = f"{np.min(excesses):+9.1e}" if np.isfinite(excesses).all() else f"{'-':>9}"
        print(
            f"{name:<28} {way:<16} {np.median(ours):7.3f} {np.median(peers):8.2f}  "
            f"{np.min(peers / ours):6.1f} {np.median(peers / ours):6.1f} ({bar:2.0f})  "
            f"{excess}  {np.max(gaps):8.1e} {np.max(passes):5d} {np.max(ranks):5d}",
            flush=True,
        )


def objective(X: Any, low_rank: Any, weight: float) -> float:
    """The nuclear norm, and the weighted size of all that is left."""
    return float(linalg.svdvals(low_rank).sum() + weight * np.abs(X - low_rank).sum())


def exact(seeds: int, quick: bool) -> None:
    """Exactly low rank + sparse data."""
    for shape, rank in (((500, 500), 25), ((1000, 1000), 50)):
        for wrong in (0.05, 0.1):
            n_draws = 1 if quick and shape[0] > 500 else seeds
            draws = [partial(planted, shape, rank, wrong, 0.0, seed) for seed in range(n_draws)]
            compare(f"exact {shape[0]} x {shape[1]}, {wrong:.0%}", draws, 20, DEFAULT | EXACT)


def large(seeds: int, quick: bool) -> None:
    """The same, of a size for which pyrpca takes a minute each."""
    for shape, rank in (((2000, 2000), 100), ((20480, 633), 20)):
        n_draws = 1 if quick else seeds
        draws = [partial(planted, shape, rank, 0.05, 0.0, seed) for seed in range(n_draws)]
        compare(f"exact {shape[0]} x {shape[1]}, 5%", draws, 20, DEFAULT)


def noisy(seeds: int, quick: bool) -> None:
    """Dense noise besides."""
    for n in (600,) if quick else (600, 1000):
        for level in (0.001, 0.01, 0.1):
            draws = [partial(planted, (n, n), 10, 0.05, level, seed) for seed in range(seeds)]
            compare(f"noise {level} {n} x {n}", draws, 5, DEFAULT | CERTIFIED)
    draws = [partial(planted, (600, 600), 10, 0.05, 0.01, 0)]
    compare("noise 0.01 600 x 600", draws, 5, EXACT | ROUGH)


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
        compare(name, [lambda X=X: X], 3, DEFAULT | ROUGH)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    tables = {"exact": exact, "large": large, "noisy": noisy, "real": real}
    parser.add_argument("tables", nargs="*", choices=[*tables, []], default=[])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller data")
    parser.add_argument("--seeds", type=int, help="draws of the small data; 10, quick 3 if none")
    given = parser.parse_args()
    if rpca_pcp_ialm is None:
        print("pyrpca is not installed: our times only")
    print(
        f"{'data':<28} {'fit':<16}  ours s pyrpca s   ratio: worst, median (bar)  excess       gap "
        "passes  rank"
    )
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        RPCA(noise="auto").fit(planted((200, 200), 5, 0.05, 0.01, 0))
        for name in given.tables or tables:
            tables[name](given.seeds or (3 if given.quick else 10), given.quick)


if __name__ == "__main__":
    main()
