"""How fits of `RPCA` end: passes, accuracy, share of the entries called wrong, path of a graph.

    python benchmarks/defaults_ends.py [passes] [tolerances] [accuracy] [images] [density] [path]
        [--quick]

Each line is the median (worst) of ten seeds, two with --quick; real data have no seeds.
"""

import argparse
import contextlib
import io
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from defaults_entries import rpca_pcp_ialm
from defaults_smooth import clusters
from defaults_speed import PAPERS, objective, sample
from robustpca import RPCA, RPCAG, smoothness_path
from robustpca.datasets import load


def exact(seed: int, n: int, d: int, rank: int, wrong: float) -> tuple[Any, Any]:
    """Exactly low rank + sparse data, and the low-rank part."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    errors = rng.uniform(-10, 10, L.shape) * (rng.random(L.shape) < wrong)
    return L + errors, L


def relative(found: Any, truth: Any) -> float:
    """Error of a matrix relative to the truth."""
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def spread(values: Any) -> str:
    """Median and worst."""
    return f"{np.median(values):.2g} ({np.max(values):.2g})"


def recovered(errors: list[float]) -> int:
    """How many errors are due to the tolerance alone."""
    return int(np.count_nonzero(np.array(errors) < 1e-5))


def passes(n_seeds: int) -> None:
    """Passes of a tall matrix without noise."""
    found = [RPCA().fit(exact(seed, 2000, 50, 5, 0.05)[0]).n_iter_ for seed in range(n_seeds)]
    print(f"passes of RPCA(), 2000 x 50 exact, 5 % wrong: {spread(found)}", flush=True)


def tolerances(n_seeds: int) -> None:
    """Passes at looser tolerances: never more than at tighter ones."""
    sets = {"digits": load_digits().data}
    try:
        sets["USPS 3500"] = load("usps").X[:3500].astype(np.float64)
    except FileNotFoundError:
        print("USPS is not in the data folder and is left out")
    for name, X in sets.items():
        counts = [RPCA(tol=tol, debias=False).fit(X).n_iter_ for tol in (1e-3, 1e-4, 1e-5, 1e-6)]
        print(f"passes of RPCA(tol=1e-3, 1e-4, 1e-5, 1e-6) on {name}: {counts}", flush=True)


def accuracy(n_seeds: int) -> None:
    """Errors of the solvers on a small exact table, and whether they say that they have ended."""
    print("exact 300 x 40, rank 2, 5 % wrong: error, gap, fits that converged, errors below 1e-5")
    for solver in ("auto", "admm", "ialm"):
        errors, gaps, ended = [], [], 0
        for seed in range(n_seeds):
            X, L = exact(seed, 300, 40, 2, 0.05)
            model = RPCA(solver=solver, noise=0.0).fit(X)
            errors.append(relative(model.low_rank_, L))
            gaps.append(model.dual_gap_)
            ended += bool(model.converged_)
        print(
            f"  {solver:8} {spread(errors):20} {spread(gaps):20} {ended} of {n_seeds}  "
            f"{recovered(errors)} of {n_seeds}",
            flush=True,
        )
    if rpca_pcp_ialm is not None:
        draws = [exact(seed, 300, 40, 2, 0.05) for seed in range(n_seeds)]
        found = [relative(rpca_pcp_ialm(X, 300**-0.5, verbose=False)[0], L) for X, L in draws]
        print(f"  pyrpca   {spread(found):52} {recovered(found)} of {n_seeds}", flush=True)


def images(n_seeds: int) -> None:
    """Where inexact ALM ends on images, ours and pyrpca's, at a residual of 1e-7 of the data.

    The excess is that of the objective over the optimum, which our default finds.
    """
    print("inexact ALM on images: passes, residual, rank, excess, gap, converged_, CPU s")
    for name, size in (("orl_32x32", 400), ("usps_16x16", 1000), ("usps_16x16", 2000)):
        try:
            X = sample(name, size)
        except FileNotFoundError:
            print(f"  {name} is not in the data folder and is left out")
            continue
        weight = 1 / np.sqrt(max(X.shape))
        least = objective(X, RPCA(**PAPERS).fit(X).low_rank_, weight)
        lines: dict[str, tuple[Any, ...]] = {}
        before = time.process_time()
        model = RPCA(**PAPERS, solver="ialm", tol=1e-7).fit(X)
        cost, rest = time.process_time() - before, X - model.low_rank_ - model.sparse_
        told = f"{model.dual_gap_:.1e}", model.converged_
        lines["ialm"] = model.n_iter_, rest, model.low_rank_, *told, cost
        if rpca_pcp_ialm is not None:
            heard, before = io.StringIO(), time.process_time()
            with contextlib.redirect_stdout(heard):
                low, sparse = rpca_pcp_ialm(X, weight)
            n_passes = heard.getvalue().count("| err")
            cost = time.process_time() - before
            lines["pyrpca"] = n_passes, X - low - sparse, low, "-", n_passes < 1000, cost
        for program, (n_passes, rest, low, gap, ended, cost) in lines.items():
            rank = np.linalg.matrix_rank(low, tol=1e-6 * np.linalg.norm(low, 2))
            print(
                f"  {name} {len(X):4d}  {program:7} {n_passes:4d}  {relative(X - rest, X):.1e}  "
                f"{rank:4d}  {objective(X, low, weight) / least - 1:.1e}  {gap:8} {ended!s:5} "
                f"{cost:6.2f}",
                flush=True,
            )


def density(n_seeds: int) -> None:
    """Share of the cells of a table that `sparse_` holds, where 2 % are wrong."""
    shares: dict[str, list[float]] = {"RPCA()": [], "RPCA(noise=0)": [], "RPCA(debias=False)": []}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 20)) * 10 ** rng.uniform(0, 2, 20)
        scale = X.std(axis=0)
        X += 0.1 * scale * rng.normal(size=X.shape) + rng.uniform(-300, 300, 20)
        wrong = rng.random(X.shape) < 0.02
        X = np.where(wrong, X + scale * rng.choice([-1, 1], X.shape) * rng.uniform(5, 50), X)
        shares["RPCA()"].append(RPCA().fit(X).density_)
        shares["RPCA(noise=0)"].append(RPCA(noise=0.0).fit(X).density_)
        shares["RPCA(debias=False)"].append(RPCA(debias=False).fit(X).density_)
    text = ", ".join(f"{name} {spread(values)}" for name, values in shares.items())
    print(f"share of the cells in sparse_, 2 % wrong: {text}", flush=True)


def path(n_seeds: int) -> None:
    """Where the path of RPCAG begins on clusters, and the errors at its best weight."""
    for mean in (0.0, 10.0):
        first, best, plain = [], [], []
        for seed in range(n_seeds):
            X, truth = clusters(mean)(seed)
            found = smoothness_path(X, estimator=RPCAG(tol=1e-4))
            first.append(found.values[0])
            weight = found.values[int(np.argmin(found.error))]
            unit = np.linalg.norm(truth - np.median(truth, axis=0))
            for errors, model in ((best, RPCAG(smoothness=weight)), (plain, RPCA())):
                errors.append(np.linalg.norm(model.fit(X).low_rank_ - truth) / unit)
        print(
            f"smoothness_path of RPCAG on clusters, mean {mean:.0f}: first weight "
            f"{spread(first)}, error at its best {spread(best)}, RPCA() {spread(plain)}",
            flush=True,
        )


def main() -> None:
    """Print the lines that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = {
        table.__name__: table for table in (passes, tolerances, accuracy, images, density, path)
    }
    parser.add_argument("tables", nargs="*", choices=[*tables, []], default=[])
    parser.add_argument("--quick", action="store_true", help="two seeds")
    given = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in given.tables or tables:
            tables[name](2 if given.quick else 10)


if __name__ == "__main__":
    main()
