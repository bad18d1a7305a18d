"""Seconds and memory against the number of rows, of data that stay in a file.

    python benchmarks/scale.py [fits] [dask] [--sizes 10000 100000 ...] [--methods EPCA ...]
                               [--columns 64] [--rounds 3] [--folder FOLDER]

``fits``  every method on files of growing length: CPU and wall seconds, peak memory, and the
          exponents with which they grow.
``dask``  EPCA by the block loop, by Dask with one thread, with one worker process, and with two;
          workers as Dask starts them, and such that keep their memory (see the guide).

Files are written block by block to a temporary folder and deleted afterwards. Each fit is made in a
process of its own, which may allocate 2 GB at most (a limit of the operating system: a fit that
asks for more fails), at one BLAS thread. It fits a few rows first, so that imports and compilation
do not count. *Peak* is what is resident beyond that, mapped pages of files included; *reads* says
how often the file was read, *passes* how often the loop of the method went over the rows.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from measure import forget_peak, resident, resident_peak

LIMIT = 2 << 30
RANK = 5
WRITTEN_ROWS = 100_000
# Dask's workers give memory back at once, unless these variables are set where they are started.
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 28)}
WAYS = {
    "block loop": "loop",
    "Dask, one thread": "thread",
    "one worker": "1",
    "one worker, memory kept": "1 kept",
    "two workers": "2",
    "two workers, memory kept": "2 kept",
}
# For each method its parameters, and the largest number of rows it is asked for.
METHODS: dict[str, tuple[dict[str, Any], int]] = {
    "EPCA": ({"n_components": RANK}, 10_000_000),
    "PCAAN": ({"n_components": RANK}, 10_000_000),
    "AngularEmbedding": ({"n_components": RANK}, 10_000_000),
    "RPCA": ({}, 10_000_000),
    "FRPCAG": ({"sample_smoothness": 1.0, "feature_smoothness": 1.0}, 1_000_000),
}


def write_rows(path: Path, n_rows: int, n_columns: int) -> None:
    """A noisy subspace in single precision; some rows are outliers, some entries wrong."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(RANK, n_columns)).astype(np.float32)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_columns))
    for start in range(0, n_rows, WRITTEN_ROWS):
        shape = (min(WRITTEN_ROWS, n_rows - start), n_columns)
        rows = rng.standard_normal((shape[0], RANK), np.float32) @ axes
        rows += 0.1 * rng.standard_normal(shape, np.float32)
        rows[::20] += rng.standard_normal(rows[::20].shape, np.float32)
        rows[rng.random(shape, np.float32) < 0.01] += 10
        X[start : start + len(rows)] = rows
    X.flush()


def one_fit(name: str, path: str, way: str) -> dict[str, Any]:
    """Fit a method to a file and report what it took; runs in a process of its own."""
    import robustpca
    from robustpca.engine.stored import FileRows

    n_read, read = [0], FileRows.read

    def counted(rows: FileRows, start: int, stop: int) -> Any:
        n_read[0] += stop - start
        return read(rows, start, stop)

    FileRows.read = counted  # type: ignore[method-assign]
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    X: Any = np.load(path, mmap_mode="r")
    make = getattr(robustpca, name)
    parameters = METHODS[name][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with engine(way) as (given, clock):
            make(**parameters).fit(given(X[:2000]))
            forget_peak()
            n_read[0] = 0
            before, started, began = resident(), np.array(clock()), time.perf_counter()
            try:
                model = make(**parameters).fit(given(X))
            except MemoryError:
                return {"method": name, "rows": len(X), "failed": "out of memory"}
            ended, spent = time.perf_counter(), np.array(clock()) - started
            return {
                "method": name,
                "rows": len(X),
                "cpu": spent.sum(),
                "busiest": spent[1:].max(initial=0.0),
                "wall": ended - began,
                "peak": resident_peak() - before,
                "reads": n_read[0] / len(X),
                "passes": int(model.n_iter_),
            }


@contextmanager
def engine(way: str) -> Iterator[tuple[Callable[[Any], Any], Callable[[], list[float]]]]:
    """How a fit is given a file, by itself or by Dask; and CPU seconds, of workers too."""
    if way == "loop":
        yield (lambda X: X), lambda: [time.process_time()]
        return
    from robustpca import as_dask

    if way == "thread":
        import dask

        with dask.config.set(scheduler="threads", num_workers=1):
            yield as_dask, lambda: [time.process_time()]
        return
    from dask.distributed import Client

    n_workers = int(way.split()[0])
    with Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as client:
        yield as_dask, lambda: [time.process_time(), *client.run(time.process_time).values()]


def in_own_process(name: str, path: Path, way: str = "loop") -> dict[str, Any]:
    """Result of `one_fit` in a new process at one BLAS thread."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    threads |= KEPT if way.endswith("kept") else {}
    command = [sys.executable, __file__, "--one", name, str(path), way]
    done = subprocess.run(
        command, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def fits(
    sizes: list[int], names: list[str], n_columns: int, folder: str | None, n_rounds: int
) -> None:
    """Every method on files of growing length."""
    print(
        f"\n{n_columns} columns in single precision; at most {LIMIT / 1e9:.1f} GB may be allocated"
        "\nmethod                 rows    file MB    CPU s   wall s   peak MB  reads  passes",
        flush=True,
    )
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for n_rows in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "rows.npy"
            wanted = [name for name in names if n_rows <= METHODS[name][1]]
            if wanted:
                write_rows(path, n_rows, n_columns)
            for name in wanted:
                tries = [in_own_process(name, path) for _ in range(n_rounds)]
                run = min(tries, key=lambda each: each.get("cpu", 0.0))
                head = f"{name:<18} {n_rows:>10,}  {path.stat().st_size / 1e6:9.0f}  "
                if "failed" in run:
                    print(head + run["failed"], flush=True)
                    continue
                runs[name].append(run)
                print(
                    f"{head}{run['cpu']:7.2f}  {run['wall']:7.2f}  {run['peak'] / 1e6:8.0f}  "
                    f"{run['reads']:5.1f}  {run['passes']:6d}",
                    flush=True,
                )
    print(
        "\nGrowth. CPU seconds and peak memory as powers of the rows, over all sizes and over the "
        "last\ntwo (bar for the seconds: 1.10), and bytes of memory for each row more, beside "
        f"{4 * n_columns} of the file"
        "\nmethod              time: all  last two    per pass    memory: all  last two   bytes/row"
    )
    for name, found in runs.items():
        if len(found) > 1:
            _print_growth(name, found)


def _print_growth(name: str, found: list[dict[str, Any]]) -> None:
    rows = np.array([run["rows"] for run in found], float)
    times, peaks, passes = (
        np.array([run[key] for run in found], float) for key in ("cpu", "peak", "passes")
    )

    def power(values: Any) -> float:
        return float(np.polyfit(np.log(rows[-len(values) :]), np.log(values), 1)[0])

    per_row = (peaks[-1] - peaks[-2]) / (rows[-1] - rows[-2])
    print(
        f"{name:<18} {power(times):10.2f}  {power(times[-2:]):8.2f}  "
        f"{power((times / passes)[-2:]):10.2f}  {power(peaks):13.2f}  {power(peaks[-2:]):8.2f}  "
        f"{per_row:10.0f}"
    )


def dask(
    sizes: list[int], names: list[str], n_columns: int, folder: str | None, n_rounds: int
) -> None:
    """EPCA by the block loop and by Dask."""
    for n_rows in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "rows.npy"
            write_rows(path, n_rows, n_columns)
            rounds = [
                {way: in_own_process("EPCA", path, given) for way, given in WAYS.items()}
                for _ in range(n_rounds)
            ]
        print(
            f"\nEPCA on {n_rows:,} x {n_columns}, best of {n_rounds} in turn; load average "
            f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; CPU seconds of all processes, "
            "and of the busiest worker\n"
            f"{'':<26}{'CPU s':>7}{'/ loop':>8}{'worker':>8}{'wall s':>8}{'/ loop':>8}",
            flush=True,
        )
        best = {
            way: {
                clock: min(each[way][clock] for each in rounds)
                for clock in ("cpu", "busiest", "wall")
            }
            for way in WAYS
        }
        loop = best["block loop"]
        for way, found in best.items():
            print(
                f"{way:<26}{found['cpu']:7.2f}{found['cpu'] / loop['cpu']:8.2f}"
                f"{found['busiest']:8.2f}{found['wall']:8.2f}{found['wall'] / loop['wall']:8.2f}"
            )
        one, two = best["one worker, memory kept"], best["two workers, memory kept"]
        print(
            f"two workers against one, memory kept: wall {one['wall'] / two['wall']:.2f} (bar 1.6)"
            f", CPU of the busiest worker {one['busiest'] / two['busiest']:.2f}",
            flush=True,
        )


PARTS = {"fits": fits, "dask": dask}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", default=list(PARTS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="fits of which the best counts")
    parser.add_argument("--folder", help="where files are written; default: the temporary folder")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_fit(*options.one)))
        return
    for part in options.parts:
        given = (options.methods, options.columns, options.folder, options.rounds)
        PARTS[part](sorted(options.sizes), *given)


if __name__ == "__main__":
    main()
