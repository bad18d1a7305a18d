"""Our search of nearest neighbours against faiss and pynndescent at equal recall.

    python benchmarks/neighbors.py [mnist] [flights] [--rows N] [--recall 0.99]

Ten neighbours of every row. Each search runs in a process of its own with one thread, after a
first call on few rows, in which kernels are loaded or compiled. Parameters of faiss and
pynndescent are raised until the recall is reached, which is not part of the time. Libraries that
are not installed are left out. Data are read from the folder that ROBUSTPCA_DATA names.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from lowrank import census_like, digits
from robustpca.parts.graphs import nearest_neighbors, neighbor_recall

K = 10
DATA: dict[str, tuple[Callable[[int], Any], int]] = {
    "mnist": (digits, 25_000),
    "flights": (census_like, 200_000),
}
# All pairs of so many rows take minutes.
ALL_PAIRS = 50_000
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Meter:
    """CPU seconds and most memory of what is measured, without what is not."""

    def __init__(self) -> None:
        self.seconds, self.peak, self.before = 0.0, 0.0, memory("VmRSS")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure this block."""
        # Forget the peak so far.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        started = time.process_time()
        yield
        self.seconds += time.process_time() - started
        self.peak = max(self.peak, memory("VmHWM") - self.before)


def memory(name: str) -> float:
    """A number of MB that Linux tells of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1e3


def ours(method: Any) -> Callable[..., Any]:
    """Search by one of our methods."""

    def search(X: Any, target: float, meter: Meter) -> tuple[Any, str]:
        with meter.running():
            return nearest_neighbors(X, K, method=method)[0], ""

    return search


def without_self(found: Any) -> Any:
    """The K first columns of K + 1 once the row itself, or else the last one, is taken out."""
    own = found == np.arange(len(found))[:, None]
    own[~own.any(axis=1), -1] = True
    return found[~own].reshape(len(found), K)


def faiss_index(kind: str) -> Callable[..., Any]:
    """Search an index of faiss, whose effort is doubled until the recall is reached."""

    def search(X: Any, target: float, meter: Meter) -> tuple[Any, str]:
        import faiss

        faiss.omp_set_num_threads(1)
        n_rows, width = X.shape
        with meter.running():
            if kind == "flat":
                index, effort = faiss.IndexFlatL2(width), ""
            elif kind == "ivf":
                coarse = faiss.IndexFlatL2(width)
                index = faiss.IndexIVFFlat(coarse, width, int(4 * np.sqrt(n_rows)))
                index.cp.min_points_per_centroid, effort = 5, "nprobe"
                index.train(X)
            else:
                index, effort = faiss.IndexHNSWFlat(width, 32), "efSearch"
            index.add(X)
        if effort:
            settings = index.hnsw if kind == "hnsw" else index
            queries = np.random.default_rng(1).choice(n_rows, min(n_rows, 500), replace=False)
            exact = faiss.IndexFlatL2(width)
            exact.add(X)
            reach = exact.search(X[queries], K + 1)[0][:, -1:]
            value = 4
            while value < 1024:
                setattr(settings, effort, value)
                near = index.search(X[queries], K + 1)[0]
                if np.mean(near[:, 1:] <= reach * (1 + 1e-5)) >= target:
                    break
                value *= 2
            effort = f"{effort}={value}"
            del exact
        with meter.running():
            return without_self(index.search(X, K + 1)[1]), effort

    return search


def descent(X: Any, target: float, meter: Meter) -> tuple[Any, str]:
    """Search by pynndescent with longer lists until the recall is reached."""
    from pynndescent import NNDescent

    for width in (K + 1, 2 * K, 3 * K, 5 * K):
        meter.seconds, index = 0.0, None
        with meter.running():
            index = NNDescent(X, n_neighbors=width, random_state=0, n_jobs=1)
            found = without_self(index.neighbor_graph[0][:, : K + 1])
        if neighbor_recall(X, found) >= target:
            break
    return found, f"n_neighbors={width}"


SEARCHES: dict[str, tuple[str, Callable[..., Any]]] = {
    "ours exact": ("robustpca", ours("exact")),
    "ours projected": ("robustpca", ours("projected")),
    "ours approximate": ("robustpca", ours("approximate")),
    "faiss flat": ("faiss", faiss_index("flat")),
    "faiss ivf": ("faiss", faiss_index("ivf")),
    "faiss hnsw": ("faiss", faiss_index("hnsw")),
    "pynndescent": ("pynndescent", descent),
}


def measure(data: str, n_rows: int, name: str, target: float) -> dict[str, Any]:
    """Run one search in this process."""
    make, _ = DATA[data]
    # Columns that are constant in few rows cannot be standardised.
    X, search = np.nan_to_num(np.ascontiguousarray(make(n_rows))), SEARCHES[name][1]
    started = time.process_time()
    search(X[:2000], 0.0, Meter())
    first = time.process_time() - started
    meter = Meter()
    found, effort = search(X, target, meter)
    measured = {"first": first, "seconds": meter.seconds, "MB": meter.peak, "by": effort}
    return {**measured, "recall": neighbor_recall(X, found)}


def main() -> None:
    """Compare the searches that are installed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=list(DATA))
    parser.add_argument("--rows", type=int, help="use the first rows only")
    parser.add_argument("--recall", type=float, default=0.99)
    parser.add_argument("--search", choices=SEARCHES, help="this one only, result as JSON")
    options = parser.parse_args()
    for data in options.data:
        n_rows = min(options.rows or DATA[data][1], DATA[data][1])
        if options.search:
            print(json.dumps(measure(data, n_rows, options.search, options.recall)))
            continue
        print(f"\n{data}, {n_rows} rows: CPU seconds, one thread, recall {options.recall} wanted")
        print("search              first call   seconds   MB more   recall")
        for name, (library, _) in SEARCHES.items():
            if find_spec(library) is None:
                print(f"{name:18}  ({library} is not installed)")
                continue
            if name in ("ours exact", "ours projected", "faiss flat") and n_rows > ALL_PAIRS:
                continue
            command = [sys.executable, __file__, data, "--rows", str(n_rows)]
            command += ["--recall", str(options.recall), "--search", name]
            environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
            out = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            row = json.loads(out.stdout.splitlines()[-1])
            print(
                f"{name:18}  {row['first']:10.1f}  {row['seconds']:8.1f}  {row['MB']:8.0f}  "
                f"{row['recall']:7.4f}  {row['by']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
