"""Workers that are killed while a fit runs: whether the answer is the same to the last bit.

    python benchmarks/kills.py [--methods PCAAN ...] [--sources file array] [--kills 20]
                               [--rows 40000] [--columns 90] [--seed 0] [--folder FOLDER] [--direct]

Two worker processes, each with one thread, fit planted data with bad rows from a file
(`robustpca.as_dask`) or from a Dask array in memory. A fit that nobody disturbs says how long it
takes; in each other one, a worker is killed by SIGKILL at a moment that is drawn from that time,
and Dask starts another one. *In the fit* are kills that came before the fit had ended. *Same* are
fits whose attributes have the bits of a fit in memory without any cluster, *changed* those that do
not; errors are listed by their message. With ``--direct`` the program sends rows to the workers
themselves, and not by the scheduler. The slow tests of the row engine use what is here.
"""

import argparse
import itertools
import logging
import os
import signal
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from robustpca import as_dask
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine import rows as engine

RANK = 3
# Blocks of rows, of which there are to be many.
BLOCK_BYTES = 1 << 20
METHODS: dict[str, dict[str, Any]] = {
    "EPCA": {"n_components": RANK},
    "PCAAN": {"n_components": RANK},
    "L1PCA": {"n_components": RANK},
    "AngularEmbedding": {"n_components": RANK},
    "RPCA": {},
    "FRPCAG": {"sample_smoothness": 1.0, "feature_smoothness": 1.0},
}


@contextmanager
def processes(**options: Any) -> Iterator[Any]:
    """A cluster of processes, which may take a minute and more to start or to answer."""
    import dask
    import distributed

    timeouts = {"connect": "300s", "tcp": "300s"}
    # Any free port: the usual one may belong to another cluster, which is worth a warning.
    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.comm.timeouts": timeouts}),
        distributed.LocalCluster(**settings, **options) as cluster,
    ):
        yield cluster


def two_workers(cluster: Any, client: Any) -> list[int]:
    """Processes of two workers, which may have to be started first."""
    for attempt in itertools.count(1):
        # A worker that was just killed may still be on the list.
        found = list(client.run(os.getpid, on_error="ignore").values())
        if len(found) >= 2:
            break
        if attempt % 150 == 0:
            # Dask gives up on a worker that was killed while it started.
            cluster.scale(len(cluster.worker_spec) + 1)
        time.sleep(0.2)
    return found


def with_a_kill(work: Callable[[], Any], process: int, delay: float) -> tuple[Any, bool]:
    """What some work gives, or raises, while a process is killed; and whether that was in time."""
    moments = []

    def kill() -> None:
        # A worker that was killed before may still have been on the list.
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            moments.append(time.perf_counter())

    killer = threading.Timer(delay, kill)
    killer.start()
    try:
        result = work()
    except Exception as error:
        result = error
    ended = time.perf_counter()
    killer.join()
    return result, bool(moments) and moments[0] < ended


def same_bits(first: Any, second: Any) -> bool:
    """Whether two fits agree in all fitted attributes that are arrays or numbers."""
    names = [name for name in vars(second) if name.endswith("_") and not name.startswith("_")]
    plain = [name for name in names if isinstance(getattr(second, name), (np.ndarray, float, int))]
    return all(
        np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True)
        for name in plain
    )


def run(
    name: str, X: Any, source: str, n_kills: int, seed: int, folder: str | None, direct: bool
) -> None:
    """Fits of one method that are disturbed, and a line about them."""
    import dask.array as da
    import distributed

    import robustpca

    def fit() -> Any:
        return getattr(robustpca, name)(**METHODS[name]).fit(rows)

    rows, moments = X, np.random.default_rng(seed)
    expected, outcomes, n_inside = fit(), Counter[str](), 0
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        processes(n_workers=2, silence_logs=logging.CRITICAL) as cluster,
        distributed.Client(cluster, direct_to_workers=direct or None) as client,
    ):
        if source == "file":
            np.save(Path(place) / "X.npy", X)
            rows = as_dask(np.load(Path(place) / "X.npy", mmap_mode="r"))
        else:
            rows = da.from_array(X, chunks=(len(X) // 8, -1))
        two_workers(cluster, client)
        fit()  # workers have imported everything
        began = time.perf_counter()
        fit()
        duration = time.perf_counter() - began
        for _ in range(n_kills):
            victim = int(moments.choice(two_workers(cluster, client)))
            found, inside = with_a_kill(fit, victim, moments.uniform(0, duration))
            n_inside += inside
            if isinstance(found, Exception):
                outcomes[f"{type(found).__name__}: {found}"] += 1
            else:
                outcomes["same" if same_bits(found, expected) else "changed"] += 1
    errors = outcomes.total() - outcomes["same"] - outcomes["changed"]
    print(
        f"{name:<18}{source:<7}{duration:8.2f}{n_kills:7d}{n_inside:12d}{outcomes['same']:6d}"
        f"{outcomes['changed']:9d}{errors:8d}",
        flush=True,
    )
    for told in sorted(outcomes.keys() - {"same", "changed"}):
        print(f"    {outcomes[told]} times {told}", flush=True)


def main() -> None:
    """Run the methods that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sources", nargs="+", choices=["file", "array"], default=["file"])
    parser.add_argument("--kills", type=int, default=20, help="fits that are disturbed")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--columns", type=int, default=90)
    parser.add_argument("--seed", type=int, default=0, help="of the data and of the moments")
    parser.add_argument("--folder", help="where the file is written; default: the temporary folder")
    parser.add_argument("--direct", action="store_true", help="send rows to workers directly")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    engine.BLOCK_BYTES = BLOCK_BYTES
    rng = np.random.default_rng(options.seed)
    shape = (options.rows, options.columns, RANK)
    X = planted_subspace(rng, *shape, n_outliers=options.rows // 8, noise=0.1)[0]
    print(
        f"{len(X):,} x {options.columns}, {len(engine.ArrayRows(X).bounds)} blocks, two workers, "
        f"seed {options.seed}\n"
        f"{'method':<18}{'source':<7}{'fit s':>8}{'kills':>7}{'in the fit':>12}{'same':>6}"
        f"{'changed':>9}{'errors':>8}",
        flush=True,
    )
    for name, source in itertools.product(options.methods, options.sources):
        run(name, X, source, options.kills, options.seed, options.folder, options.direct)


if __name__ == "__main__":
    main()
