"""Time and memory of a run, for the scripts of this folder."""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any


def best(run: Callable[[], Any], clock: Callable[[], float], repeats: int = 3) -> float:
    """Least time of several runs."""
    times = []
    for _ in range(repeats):
        started = clock()
        run()
        times.append(clock() - started)
    return min(times)


def seconds(run: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Least CPU seconds of several runs, and what the last one gave."""
    results: list[Any] = []

    def keep() -> None:
        results[:] = [run()]

    return best(keep, time.process_time, repeats), results[0]


def wall(run: Callable[[], Any], repeats: int = 3) -> float:
    """Least wall seconds of several runs at the machine's own number of threads."""
    return best(run, time.perf_counter, repeats)


def peak_memory(run: Callable[[], Any]) -> int:
    """Bytes that a run needs at most, besides what was there before."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
