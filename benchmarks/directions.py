"""Speed of the directions methods against textbook programs and the floor of their passes.

Everything is measured in one run, on the same arrays. Times are CPU seconds at one BLAS thread,
best of several, and wall seconds at two threads beside.

    python benchmarks/directions.py [trimmed] [passes] [--quick]

``trimmed``  trimmed Grassmann averages: the same algorithm with `scipy.stats.trim_mean`.
``passes``   a pass of L1-PCA and of Lp-PCA over two products of the data with a vector.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from measure import best
from robustpca import L1PCA, GrassmannAverage, LpPCA
from robustpca.engine.rows import ArrayRows
from robustpca.solvers.weighted_pca import WeightedPCA


def planted(n_samples: int, n_features: int, rank: int, dtype: type) -> Any:
    """A subspace with noise, one entry in twenty grossly wrong."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(n_features, rank)))[0]
    X = (rng.normal(size=(n_samples, rank)) * np.linspace(30.0, 10.0, rank)) @ basis.T
    X += 0.1 * rng.normal(size=X.shape) + rng.normal(size=n_features)
    wrong = rng.random(X.shape) < 0.05
    X[wrong] += rng.normal(scale=10.0, size=np.count_nonzero(wrong))
    return X.astype(dtype)


def textbook(X: Any, model: GrassmannAverage, average: Callable[[Any], Any]) -> tuple[Any, int]:
    """The same algorithm as it is printed, from the same starts: components and passes."""
    n_components, tol, max_iter = model.n_components, model.tol, model.max_iter
    center = average(X)
    pca = WeightedPCA(ArrayRows(X), n_components, center=center)
    axes = pca.subspace()[1].T * np.sqrt(pca.variances()[0])
    Y, found, passes = X - center, np.empty((X.shape[1], 0)), 0
    for _ in range(n_components):
        q = np.linalg.svd(axes - found @ (found.T @ axes), full_matrices=False)[0][:, 0]
        for _ in range(max_iter):
            passes += 1
            signs = np.where(Y @ q.astype(X.dtype) < 0, -1.0, 1.0).astype(X.dtype)
            before, q = q, average(Y * signs[:, None]).astype(np.float64)
            q -= found @ (found.T @ q)
            q /= np.linalg.norm(q)
            if np.linalg.norm(q - before * (q @ before)) <= tol:
                break
        found = np.column_stack([found, q])
        short = q.astype(X.dtype)
        Y = Y - np.outer(Y @ short, short)
    return found.T, passes


def trimmed(quick: bool) -> None:
    """Trimmed Grassmann averages of 20 components."""
    shape, n_components = ((1000, 300), 5) if quick else ((5000, 1000), 20)
    print(
        f"\nGrassmannAverage({n_components}) on {shape[0]} x {shape[1]}\n"
        "trim     dtype    fit s  passes  ms a pass  trim_mean s  passes  ratio (bar 3)  "
        "2 threads  difference"
    )
    for dtype, trims in ((np.float64, (0.25, 0.5)), (np.float32, (0.5,))):
        X = planted(*shape, n_components, dtype)
        for trim in trims:
            average: Any = partial(stats.trim_mean, proportiontocut=trim, axis=0)
            if trim == 0.5:
                average = partial(np.median, axis=0)
            model = GrassmannAverage(n_components, trim=trim)
            with threadpool_limits(1):
                model.fit(X[:300])
                ours = best(partial(model.fit, X), time.process_time, 2)
                started = time.process_time()
                components, passes = textbook(X, model, average)
                theirs = time.process_time() - started
            with threadpool_limits(2):
                wall = best(partial(model.fit, X), time.perf_counter, 2)
            signs = np.sign(np.sum(model.components_ * components, axis=1))
            difference = np.abs(model.components_ - signs[:, None] * components).max()
            print(
                f"{trim:4.2f}  {X.dtype.name:8} {ours:7.2f}  {model.n_iter_:6d}  "
                f"{1e3 * ours / model.n_iter_:9.1f}  {theirs:11.2f}  {passes:6d}  "
                f"{theirs / ours:5.1f}          {wall:9.2f}  {difference:10.1e}",
                flush=True,
            )


def pass_seconds(model: Any, X: Any, clock: Callable[[], float]) -> float:
    """Median time from one pass to the next."""
    ticks: list[float] = []
    model.set_params(callback=lambda _: ticks.append(clock()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(3):
            model.fit(X)
    return float(np.median(np.diff(ticks)))


def two_products(X: Any, w: Any) -> Any:
    """The least that a pass can do with whole arrays: scores, then the sum by their signs."""
    return np.where(X @ w < 0, X.dtype.type(-1), X.dtype.type(1)) @ X


def passes(quick: bool) -> None:
    """Cost of one pass over that of two matrix-vector products."""
    print(
        "\nms a pass, and its ratio to two products of the data with a vector (bar 1.5)\n"
        "       shape     dtype  products    L1PCA  ratio    LpPCA  ratio   2 threads: "
        "products   L1PCA   LpPCA"
    )
    shapes = [(2000, 500)] if quick else [(20000, 500), (2000, 5000), (100000, 60)]
    for shape in shapes:
        for dtype in (np.float64, np.float32):
            X = planted(*shape, 20, dtype)
            w = np.ones(shape[1], dtype)
            cells = {}
            for n_threads, clock in ((1, time.process_time), (2, time.perf_counter)):
                with threadpool_limits(n_threads):
                    floor = best(partial(two_products, X, w), clock, 15)
                    # A start far from any maximum, so that there are passes to be measured.
                    l1 = pass_seconds(L1PCA(1, tol=0), X, clock)
                    lp = pass_seconds(LpPCA(1, tol=0, max_iter=40), X, clock)
                    cells[n_threads] = 1e3 * np.array([floor, l1, lp])
            floor, l1, lp = cells[1]
            print(
                f"{shape[0]:>6} x {shape[1]:<5} {X.dtype.name:>8}  {floor:8.2f} {l1:8.2f}  "
                f"{l1 / floor:5.2f} {lp:8.2f}  {lp / floor:5.2f}             "
                f"{cells[2][0]:8.2f}{cells[2][1]:8.2f}{cells[2][2]:8.2f}",
                flush=True,
            )


PARTS = {"trimmed": trimmed, "passes": passes}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options.quick)


if __name__ == "__main__":
    main()
