"""Speed, memory and accuracy of the low rank + sparse methods against textbook programs.

Everything is measured in one run, on the same arrays. Times are CPU seconds at one BLAS thread,
best of several where that takes no minutes, and wall seconds at two threads beside.

    python benchmarks/lowrank.py [ialm] [admm] [frpcag] [census] [--quick]

``ialm``    exactly low rank + sparse data: full-SVD inexact ALM, and the same with
            scikit-learn's randomized SVD.
``admm``    dense noise besides: full-SVD ADMM at a fixed penalty.
``frpcag``  MNIST when the data folder has it: scikit-learn's brute-force neighbours and FISTA
            with SciPy's sparse products.
``census``  2.5 million rows of 68 columns in single precision: time, recall and memory only.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from measure import peak_memory, resident_peak, seconds, wall
from robustpca import FRPCAG, RPCA
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.parts.entry_losses import L1Norm
from robustpca.parts.graphs import knn_graph, laplacian, nearest_neighbors, neighbor_recall


def planted(shape: tuple[int, int], rank: int, corrupted: float, noise: float = 0.0) -> Any:
    """A product of Gaussian factors, a share of its entries grossly wrong, dense noise."""
    rng = np.random.default_rng(0)
    L = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1])) / np.sqrt(rank)
    wrong = rng.random(shape) < corrupted
    X = L + np.where(wrong, rng.uniform(-10, 10, shape), 0.0)
    return X + noise * rng.normal(size=shape)


def soft(A: Any, threshold: float) -> Any:
    """Entries moved towards zero."""
    return np.sign(A) * np.maximum(np.abs(A) - threshold, 0)


def full_svd(A: Any, threshold: float, predicted: int) -> tuple[Any, int]:
    """Singular values lowered by the threshold, and how many are left."""
    U, s, Vt = linalg.svd(A, full_matrices=False, check_finite=False)
    rank = int(np.count_nonzero(s > threshold))
    return (U[:, :rank] * (s[:rank] - threshold)) @ Vt[:rank], rank


def random_svd(A: Any, threshold: float, predicted: int) -> tuple[Any, int]:
    """The same from as many singular values as are predicted to be needed."""
    U, s, Vt = randomized_svd(A, predicted, random_state=0)
    rank = int(np.count_nonzero(s > threshold))
    return (U[:, :rank] * (s[:rank] - threshold)) @ Vt[:rank], rank


def textbook_ialm(X: Any, lower: Callable[..., Any], tol: float = 1e-7) -> tuple[Any, int]:
    """Inexact augmented Lagrangian as it is printed: Lin, Chen, Ma 2010."""
    sparsity = 1 / np.sqrt(max(X.shape))
    size, norm = np.linalg.norm(X), np.linalg.norm(X, 2)
    Y = X / max(norm, np.abs(X).max() / sparsity)
    penalty = 1.25 / norm
    most, L, predicted = 1e7 * penalty, np.zeros_like(X), 10
    n_iter, rest = 0, X
    while np.linalg.norm(rest) > tol * size and n_iter < 1000:
        n_iter += 1
        S = soft(X - L + Y / penalty, sparsity / penalty)
        L, rank = lower(X - S + Y / penalty, 1 / penalty, predicted)
        more = 1 if rank < predicted else round(0.05 * min(X.shape))
        predicted = min(rank + more, *X.shape)
        rest = X - L - S
        Y = Y + penalty * rest
        penalty = min(1.5 * penalty, most)
    return L, n_iter


def ialm(quick: bool) -> None:
    """Exactly low rank + sparse data."""
    print(
        "\nRPCA(solver='ialm') on exactly low rank + sparse data, relative residual 1e-7\n"
        "       shape  wrong    fit s  full SVD  ratio (bar)  random SVD  ratio (bar 4)  "
        "2 threads  difference  rank  memory (bar 4)"
    )
    cases = [((500, 500), 25, 20), ((1000, 1000), 50, 35)]
    if not quick:
        cases += [((2000, 2000), 100, 50), ((20480, 633), 20, 25)]
    for shape, rank, bar in cases:
        for corrupted in (0.05, 0.1):
            X = planted(shape, rank, corrupted)
            with threadpool_limits(1):
                run = partial(RPCA(noise=0.0, solver="ialm", tol=1e-7).fit, X)
                run()
                small = X.size <= 1_000_000
                ours, model = seconds(run, 5)
                full, (L, _) = seconds(partial(textbook_ialm, X, full_svd), 1 + small)
                drawn, _ = seconds(partial(textbook_ialm, X, random_svd), 1 + small)
            memory = 1 + peak_memory(run) / X.nbytes
            difference = np.linalg.norm(model.low_rank_ - L) / np.linalg.norm(L)
            print(
                f"{shape[0]:>6} x {shape[1]:<4} {corrupted:5.2f}  {ours:7.3f}  {full:8.2f}  "
                f"{full / ours:5.1f} ({bar:2d})  {drawn:10.2f}  {drawn / ours:5.1f}          "
                f"{wall(run):9.3f}  {difference:10.1e}  {model.rank_:4d}  {memory:6.2f}",
                flush=True,
            )


def textbook_admm(X: Any, tol: float, max_iter: int = 5000) -> tuple[float, int]:
    """ADMM with full decompositions at a fixed penalty; returns the objective reached."""
    sparsity = 1 / np.sqrt(max(X.shape))
    penalty, size = X.size / (4 * np.abs(X).sum()), np.linalg.norm(X)
    S, Y, n_iter = np.zeros_like(X), np.zeros_like(X), 0
    for _ in range(max_iter):
        n_iter += 1
        L, _ = full_svd(X - S + Y / penalty, 1 / penalty, 0)
        before, S = S, soft(X - L + Y / penalty, sparsity / penalty)
        rest = X - L - S
        Y = Y + penalty * rest
        moved = penalty * np.linalg.norm(S - before)
        if np.linalg.norm(rest) <= tol * size and moved <= tol * np.linalg.norm(Y):
            break
    return linalg.svdvals(L).sum() + sparsity * np.abs(X - L).sum(), n_iter


def admm(quick: bool) -> None:
    """Dense noise besides gross errors."""
    print(
        "\nRPCA(solver='admm', tol=1e-6) on noisy data; excess of the objective over that of a "
        "run to 1e-9\n   n  noise    fit s  passes  full SVD  passes  ratio (bar 3)  "
        "2 threads    excess  theirs   dual gap  rank"
    )
    for n in (300,) if quick else (300, 600, 1000):
        for noise in (0.05, 0.5):
            X = planted((n, n), n // 20, 0.1, noise)
            with threadpool_limits(1):
                run = partial(RPCA(noise=0.0, solver="admm", tol=1e-6).fit, X)
                run()
                ours, model = seconds(run, 3 if n < 1000 else 2)
                full, (theirs, passes) = seconds(partial(textbook_admm, X, 1e-6))
            best = RPCA(noise=0.0, solver="admm", tol=1e-9, max_iter=5000).fit(X)
            reference = best.objective_[-1]
            print(
                f"{n:>4}  {noise:5.2f}  {ours:7.2f}  {model.n_iter_:6d}  {full:8.2f}  "
                f"{passes:6d}  {full / ours:5.1f}          {wall(run, 1):9.2f}  "
                f"{model.objective_[-1] / reference - 1:8.1e}  {theirs / reference - 1:8.1e}  "
                f"{model.dual_gap_:8.1e}  {model.rank_:4d}",
                flush=True,
            )


def digits(n_rows: int) -> Any:
    """Standardised MNIST digits in single precision, or clustered random data."""
    file = Path(os.environ.get("ROBUSTPCA_DATA", "nowhere")) / "mnist_28x28.npz"
    if file.exists():
        X = np.load(file)["X"][:n_rows].astype(np.float32)
    else:
        print(f"(no {file.name} in ROBUSTPCA_DATA: clustered random data instead)")
        X = clustered(n_rows, 784, 20)
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def clustered(n_rows: int, n_columns: int, n_clusters: int, rank: int = 12) -> Any:
    """Clouds around random centres, each spread along a few directions, in single precision."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(n_clusters, n_columns))
    axes = rng.normal(size=(rank, n_columns))
    X = np.empty((n_rows, n_columns), np.float32)
    for start in range(0, n_rows, 100_000):
        rows = X[start : start + 100_000]
        cloud = rng.integers(n_clusters, size=len(rows))
        rows[:] = centers[cloud] + rng.normal(size=(len(rows), rank)) @ axes
        rows += 0.3 * rng.normal(size=rows.shape)
    return X


def textbook_graph(X: Any, n_neighbors: int = 10) -> Any:
    """Normalised Laplacian of scikit-learn's brute-force neighbours with Gaussian weights."""
    graph = kneighbors_graph(X, n_neighbors, mode="distance", n_jobs=1)
    graph.data = np.exp(-((graph.data / graph.data.mean()) ** 2)).astype(np.float32)
    graph = graph.maximum(graph.T).tocsr()
    root = 1 / np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-30))
    scaled = sparse.diags(root) @ graph @ sparse.diags(root)
    return (sparse.eye(len(root)) - scaled).tocsr().astype(np.float32)


def textbook_fista(
    X: Any, L1: Any, L2: Any, target: float, max_iter: int
) -> tuple[Any, int, float]:
    """FISTA with sparse products, as printed, until the objective is within 1e-5 of a target.

    The Laplacians come with their weights; the step is from the bound 2 on their norms. Returns
    the seconds of CPU of the passes as well, without those of looking at the objective.
    """
    step = np.float32(1 / (4 * (L1.diagonal().max() + L2.diagonal().max())))
    U, Y, pace, spent = X.copy(), X.copy(), 1.0, 0.0
    for n_iter in range(1, max_iter + 1):
        started = time.process_time()
        point = Y - step * 2 * (L1 @ Y + (L2 @ Y.T).T)
        following = X + soft(point - X, step)
        next_pace = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        Y = following + np.float32((pace - 1) / next_pace) * (following - U)
        U, pace = following, next_pace
        spent += time.process_time() - started
        if n_iter >= 20 and smooth_objective(X, U, L1, L2) <= target * (1 + 1e-5):
            break
    return U, n_iter, spent


def smooth_objective(X: Any, U: Any, L1: Any, L2: Any) -> float:
    """Objective of FRPCAG, summed in double precision; the Laplacians come with their weights."""
    energy = np.einsum("ij,ij->", U, L1 @ U, dtype=np.float64)
    energy += np.einsum("ij,ji->", U, L2 @ U.T, dtype=np.float64)
    return L1Norm().value(X - U) + float(energy)


def stream_floor(n_bytes: int) -> float:
    """Wall seconds of reading three arrays and writing two of that size, at all threads."""
    n = n_bytes // 4
    arrays = [np.ones(n, np.float32) for _ in range(5)]
    edges = np.linspace(0, n, 65).astype(int)
    with ThreadPool() as pool:

        def work(i: int) -> None:
            compiled(stream)(*arrays, edges[i], edges[i + 1])

        pool.map(work, range(64))
        return wall(lambda: pool.map(work, range(64)), 7)


def stream(a: Any, b: Any, c: Any, d: Any, e: Any, start: int, stop: int) -> None:
    """Kernel: three reads, two writes."""
    for i in range(start, stop):
        d[i] = a[i] + b[i]
        e[i] = b[i] - c[i]


def frpcag(quick: bool) -> None:
    """FRPCAG with both graphs on 25000 digits."""
    X = digits(5000 if quick else 25000)
    print(f"\nFRPCAG(standardize=False) on {X.shape[0]} x {X.shape[1]}, float32, both graphs")
    settings: dict[str, Any] = {"standardize": False, "tol": 7e-4, "max_iter": 500}
    with threadpool_limits(1):
        FRPCAG(**settings).fit(X[:500])
        ours, model = seconds(lambda: FRPCAG(**settings).fit(X), 3)
        graph, _ = seconds(lambda: (knn_graph(X), knn_graph(np.ascontiguousarray(X.T))))
    graphs = {"sample_graph": model.sample_graph_, "feature_graph": model.feature_graph_}
    L1 = laplacian(model.sample_graph_) * np.float32(model.sample_smoothness_)
    L2 = laplacian(model.feature_graph_) * np.float32(model.feature_smoothness_)
    best = FRPCAG(standardize=False, tol=1e-6, **graphs).fit(X).low_rank_
    least, value = (smooth_objective(X, U, L1, L2) for U in (best, model.low_rank_))
    with threadpool_limits(1):
        their_graph, _ = seconds(lambda: (textbook_graph(X), textbook_graph(X.T)))
        U, passes, their_solve = textbook_fista(X, L1, L2, least, 500)
    theirs = their_graph + their_solve
    print(
        f"fit {ours:.1f} s CPU (graphs {graph:.1f}), {model.n_iter_} passes; textbook "
        f"{theirs:.1f} s (graphs {their_graph:.1f}, {passes} passes): ratio {theirs / ours:.1f} "
        f"(bar 8); objectives over that of a run to 1e-6, less one: {value / least - 1:.1e}, "
        f"theirs {smooth_objective(X, U, L1, L2) / least - 1:.1e}"
    )
    recall = neighbor_recall(X, nearest_neighbors(X, 10)[0])
    print(f"recall of the sample graph {recall:.4f}")
    one_pass(X, model)
    run = partial(FRPCAG(**settings).fit, X)
    print(f"extra memory of the fit {peak_memory(run) / X.nbytes:.2f} times the data (bar 3.2)")
    print(f"fit at all threads {wall(partial(FRPCAG(**settings).fit, X), 1):.1f} s wall")


def one_pass(X: Any, model: Any) -> None:
    """Time of one iteration over that of streaming its arrays once."""
    graphs = {"sample_graph": model.sample_graph_, "feature_graph": model.feature_graph_}
    ticks: list[float] = []

    def watch(_: Any) -> None:
        ticks.append(time.perf_counter())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FRPCAG(standardize=False, tol=0, max_iter=60, callback=watch, **graphs).fit(X)
    # Some iterations also evaluate the objective, so the median is what one takes.
    iteration = float(np.median(np.diff(ticks)))
    floor = stream_floor(X.nbytes)
    print(
        f"one iteration {iteration * 1e3:.1f} ms at all threads, streaming its arrays "
        f"{floor * 1e3:.1f} ms: ratio {iteration / floor:.1f} (bar 8, aim 4)"
    )


def census_like(n_rows: int) -> Any:
    """Flights with the busiest airports as columns of their own; or clustered random data."""
    file = Path(os.environ.get("ROBUSTPCA_DATA", "nowhere")) / "flights_3m.npz"
    if not file.exists():
        print(f"(no {file.name} in ROBUSTPCA_DATA: clustered random data instead)")
        return clustered(n_rows, 68, 200)
    stored = np.load(file)
    names = [str(name).lower() for name in stored["columns"]]
    table = stored["X"][:n_rows]
    places = [i for i, name in enumerate(names) if name in ("origin", "destination")]
    numbers = [i for i in range(len(names)) if i not in places]
    X = np.zeros((len(table), 68), np.float32)
    for k, i in enumerate(numbers):
        column = table[:, i].astype(np.float32)
        X[:, k] = (column - column.mean()) / column.std()
    width, at = (68 - len(numbers)) // len(places), len(numbers)
    for i in places:
        busiest = np.argsort(np.bincount(table[:, i]))[::-1][:width]
        for airport in busiest:
            X[:, at] = table[:, i] == airport
            at += 1
    return X


def census(quick: bool) -> None:
    """The size of the census table of the FRPCAG paper."""
    X = census_like(200_000 if quick else 2_500_000)
    held = f"{resident_peak() / 1e9:.2f} GB"
    print(f"\nFRPCAG on {X.shape[0]} x {X.shape[1]}, float32; {held} held before")
    started = time.perf_counter()
    indices, _ = nearest_neighbors(X, 10)
    held = f"{resident_peak() / 1e9:.2f} GB"
    print(f"neighbours in {time.perf_counter() - started:.0f} s, {held}", flush=True)
    print(f"recall {neighbor_recall(X, indices):.3f} (bar 0.9)", flush=True)
    del indices
    started = time.perf_counter()
    ticks: list[float] = []
    model = FRPCAG(tol=0, max_iter=200, callback=lambda _: ticks.append(time.perf_counter()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    total = time.perf_counter() - started
    before, iteration = ticks[0] - started, float(np.mean(np.diff(ticks)))
    print(
        f"graphs + {model.n_iter_} iterations (single precision is exhausted then) + components "
        f"in {total:.0f} s, of which graphs and standardisation {before:.0f} s, {iteration:.2f} s "
        f"an iteration: 200 would have made it {total + (200 - model.n_iter_) * iteration:.0f} s "
        f"(bar 600); rank {model.rank_}; peak memory {resident_peak() / 1e9:.2f} GB (bar 6)"
    )


PARTS = {"ialm": ialm, "admm": admm, "frpcag": frpcag, "census": census}


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
