"""Seconds and memory against the number of rows, of data that stay in a file.

    python benchmarks/scale.py [fits] [dask] [--sizes 10000 100000 ...] [--methods EPCA ...]
                               [--columns 64] [--data noisy] [--shapes 1000000x64 ...]
                               [--rounds 3] [--folder FOLDER]

``fits``  every method on files of growing length: CPU and wall seconds, peak memory, and the
          exponents with which they grow. ``--data exact`` has wrong entries and neither noise nor
          outlying rows; ``--data scaled`` has columns in different units.
``dask``  EPCA on files of several shapes by the block loop, by Dask with one thread, with one
          worker process, and with two; workers as Dask starts them, and as the guide does: they
          keep their memory, and the program sends to them and not through the scheduler.

Files are written block by block to a temporary folder and deleted afterwards. Each fit is made in a
process of its own, which may allocate 2 GB at most (a limit of the operating system: a fit that
asks for more fails), at one BLAS thread. It fits a few rows first, so that imports and compilation
do not count. Where the program is to use workers as in the guide it may have all threads of BLAS,
for what it does while they wait. *Peak* is what is resident beyond that, mapped pages of files
included; *reads* says how often the file was read, *passes* how often the loop of the method went
over the rows.
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
# Kinds of data.
KINDS = ["noisy", "exact", "scaled"]
# Dask's workers give memory back at once, unless these variables are set where they are started.
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 28)}
WAYS = {
    "block loop": "loop",
    "Dask, one thread": "thread",
    "one worker": "1",
    "two workers": "2",
    "one worker, by the guide": "1 guide",
    "two workers, by the guide": "2 guide",
}
# Rows and columns: with more columns, workers have more to do for each number that they are sent.
SHAPES = ["1000000x64", "600000x256", "300000x1024"]
# Fits in one process that are timed, beside the first one.
REPEATS = 3
# For each method its parameters, and the largest number of rows it is asked for.
METHODS: dict[str, tuple[dict[str, Any], int]] = {
    "EPCA": ({"n_components": RANK}, 10_000_000),
    "PCAAN": ({"n_components": RANK}, 10_000_000),
    "AngularEmbedding": ({"n_components": RANK}, 10_000_000),
    "RPCA": ({}, 10_000_000),
    "FRPCAG": ({"sample_smoothness": 1.0, "feature_smoothness": 1.0}, 1_000_000),
}


def write_rows(path: Path, n_rows: int, n_columns: int, kind: str = "noisy") -> None:
    """A subspace in single precision, by default noisy; some rows are outliers, some entries wrong.

    Data of the kind 'exact' have neither noise nor outlying rows, those of the kind 'scaled' have
    columns in different units.
    """
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(RANK, n_columns)).astype(np.float32)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_columns))
    for start in range(0, n_rows, WRITTEN_ROWS):
        shape = (min(WRITTEN_ROWS, n_rows - start), n_columns)
        rows = rng.standard_normal((shape[0], RANK), np.float32) @ axes
        if kind != "exact":
            rows += 0.1 * rng.standard_normal(shape, np.float32)
            rows[::20] += rng.standard_normal(rows[::20].shape, np.float32)
        rows[rng.random(shape, np.float32) < 0.01] += 10
        if kind == "scaled":
            rows *= np.geomspace(0.01, 100, n_columns, dtype=np.float32)
        X[start : start + len(rows)] = rows
    X.flush()


def one_fit(name: str, path: str, way: str) -> list[dict[str, Any]]:
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

    def fit(given: Callable[[Any], Any], clock: Callable[[], list[float]]) -> dict[str, Any]:
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

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with engine(way) as (given, clock):
            make(**parameters).fit(given(X[:2000]))
            first = fit(given, clock)
            if way == "alone":
                return [first]
            return [fit(given, clock) for _ in range(REPEATS)]


@contextmanager
def engine(way: str) -> Iterator[tuple[Callable[[Any], Any], Callable[[], list[float]]]]:
    """How a fit is given a file, by itself or by Dask; and CPU seconds, of workers too."""
    if way in ("alone", "loop"):
        yield (lambda X: X), lambda: [time.process_time()]
        return
    from robustpca import as_dask

    if way == "thread":
        import dask

        with dask.config.set(scheduler="threads", num_workers=1):
            yield as_dask, lambda: [time.process_time()]
        return
    from dask.distributed import Client

    n_workers, direct = int(way.split()[0]), True if way.endswith("guide") else None
    with Client(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=None, direct_to_workers=direct
    ) as client:
        yield as_dask, lambda: [time.process_time(), *client.run(time.process_time).values()]


def in_own_process(name: str, path: Path, way: str = "alone") -> list[dict[str, Any]]:
    """Results of `one_fit` in a new process."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment = {name: value for name, value in os.environ.items() if name not in threads}
    environment |= KEPT if way.endswith("guide") else threads
    command = [sys.executable, __file__, "--one", name, str(path), way]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def fits(options: argparse.Namespace) -> None:
    """Every method on files of growing length."""
    sizes, names, n_columns = sorted(options.sizes), options.methods, options.columns
    print(
        f"\n{n_columns} columns of {options.data} data in single precision; at most "
        f"{LIMIT / 1e9:.1f} GB may be allocated"
        "\nmethod                 rows    file MB    CPU s   wall s   peak MB  reads  passes",
        flush=True,
    )
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for n_rows in sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as place:
            path = Path(place) / "rows.npy"
            wanted = [name for name in names if n_rows <= METHODS[name][1]]
            if wanted:
                write_rows(path, n_rows, n_columns, options.data)
            for name in wanted:
                tries = [in_own_process(name, path)[0] for _ in range(options.rounds)]
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


def dask(options: argparse.Namespace) -> None:
    """EPCA by the block loop and by Dask."""
    for shape in options.shapes:
        n_rows, n_columns = map(int, shape.split("x"))
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        with tempfile.TemporaryDirectory(dir=options.folder) as place:
            path = Path(place) / "rows.npy"
            write_rows(path, n_rows, n_columns)
            for _ in range(options.rounds):
                for way, given in WAYS.items():
                    found[way] += in_own_process("EPCA", path, given)
        n_fits = REPEATS * options.rounds
        print(
            f"\nEPCA on {n_rows:,} x {n_columns}, {n_fits} fits of each in turn; load average "
            f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\nmedians of CPU seconds, of all "
            "processes and of the busiest worker, and of wall seconds, whose least is the last\n"
            f"{'':<26}{'CPU s':>7}{'/ loop':>8}{'worker':>8}{'wall s':>8}{'/ loop':>8}{'least':>8}",
            flush=True,
        )
        middle = {
            way: {
                clock: float(np.median([run[clock] for run in runs]))
                for clock in ("cpu", "busiest", "wall")
            }
            for way, runs in found.items()
        }
        least = {way: min(run["wall"] for run in runs) for way, runs in found.items()}
        loop = middle["block loop"]
        for way, each in middle.items():
            print(
                f"{way:<26}{each['cpu']:7.2f}{each['cpu'] / loop['cpu']:8.2f}"
                f"{each['busiest']:8.2f}{each['wall']:8.2f}{each['wall'] / loop['wall']:8.2f}"
                f"{least[way]:8.2f}"
            )
        for kind in ("", ", by the guide"):
            one, two = f"one worker{kind}", f"two workers{kind}"
            wall, busiest = (
                middle[one][clock] / middle[two][clock] for clock in ("wall", "busiest")
            )
            print(
                f"two workers against one{kind}: wall {wall:.2f}, of the least "
                f"{least[one] / least[two]:.2f} (bar 1.6); CPU of the busiest worker {busiest:.2f}",
                flush=True,
            )


PARTS = {"fits": fits, "dask": dask}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", default=list(PARTS))
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--columns", type=int, default=64, help="of the files of `fits`")
    parser.add_argument("--data", choices=KINDS, default=KINDS[0], help="in the files of `fits`")
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="of the files of `dask`")
    parser.add_argument("--rounds", type=int, default=3, help="fits of which the best counts")
    parser.add_argument("--folder", help="where files are written; default: the temporary folder")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_fit(*options.one)))
        return
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()
