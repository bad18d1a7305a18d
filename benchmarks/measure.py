"""Time and memory of a run, for the scripts of this folder."""

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
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


def resident() -> int:
    """Bytes of memory that this process holds (Linux)."""
    return _status("VmRSS")


def resident_peak() -> int:
    """Most bytes that this process has held, since `forget_peak` if that was called (Linux)."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Let `resident_peak` begin anew (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))
