"""One cell, from data to scores; and the process that does one after the other."""

import ctypes
import gc
import math
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from robustpca.bench.declarations import Cell, asked_for
from robustpca.engine.linalg import Array

__all__ = ["Spoiled", "Task", "measure", "serve", "spoil"]

# CPU seconds of a fit that is not repeated: what the first one loads is a small part of it.
LONG = 20.0


@dataclass(frozen=True)
class Task:
    """A cell, and the name by which a worker knows whether it holds the data of the cell."""

    cell: Cell
    data: str


@dataclass(frozen=True)
class Spoiled:
    """Data before and after corruption, and what scores may ask for."""

    X: Array
    X_corrupt: Array
    mask: Array
    y: Any
    image_shape: Any
    extras: Mapping[str, Any] = field(default_factory=dict)


def spoil(cell: Cell) -> Spoiled:
    """Load, prepare and corrupt the data of a cell; the same for all methods of a seed."""
    data = cell.source(**asked_for(cell.source, random_state=cell.seed))
    X = np.asarray(data.X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = X if cell.prepare is None else cell.prepare(X)
    offers = {"image_shape": data.image_shape, "random_state": cell.seed}
    if cell.corrupt is None:
        X_corrupt, mask = X.copy(), np.zeros(X.shape, dtype=bool)
    else:
        X_corrupt, mask = cell.corrupt(X, **asked_for(cell.corrupt, **offers))
    extras = getattr(data, "extras", {})
    return Spoiled(X, X_corrupt, mask, data.y, data.image_shape, extras)


def measure(cell: Cell, spoiled: Spoiled) -> dict[str, Any]:
    """Fit the estimator of a cell to the corrupted data and score it.

    Time and memory are those of ``fit`` alone, with one BLAS thread; of several fits the time is
    that of the shortest, the memory that of the last. Fits that take long are not repeated. Scores
    get the CPU seconds of the fit, which other work on the machine hardly changes. ``memory_start``
    and ``memory_peak`` are bytes of resident memory of the whole process, just before and at most
    during the fit, so their difference is what the fit needed beyond data and libraries; Linux
    counts to within some hundred kB. Where the system cannot forget an earlier peak (Linux can),
    the peak is that of all cells of this process so far, and ``memory_exact`` is false.
    """
    model = _configured(cell, spoiled)
    times = []
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(cell.repeats):
            gauge = MemoryGauge()
            used, started = time.process_time(), time.perf_counter()
            model.fit(spoiled.X_corrupt)
            times.append((time.process_time() - used, time.perf_counter() - started))
            memory = gauge.read()
            if times[-1][0] >= LONG:
                break
        cpu_seconds, seconds = min(times)
        ask = partial(_ask, cell, spoiled, model, cpu_seconds)
        scores = {name: _number(ask(score)) for name, score in cell.scores.items()}
        shown = {} if cell.seed else {name: ask(show) for name, show in cell.shows.items()}
    name, first = next(iter(scores.items()))
    if first is None:
        raise ArithmeticError(f"{name} is not a finite number")
    return {
        "scores": scores,
        "shown": {name: exhibit for name, exhibit in shown.items() if exhibit is not None},
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "iterations": _iterations(model),
        "converged": _converged(model, caught),
        **memory,
        "warnings": list(dict.fromkeys(str(warning.message) for warning in caught))[:5],
    }


class MemoryGauge:
    """Resident memory of this process from now on."""

    def __init__(self) -> None:
        gc.collect()
        # Memory that was freed but not given back would hide what the fit takes.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        self.exact = False
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak
            self.exact = True
        self.start = _status("VmRSS") or _largest_resident()

    def read(self) -> dict[str, Any]:
        """Bytes at the start and at the peak, and whether the peak is of this time alone."""
        peak = _status("VmHWM") if self.exact else None
        return {
            "memory_start": self.start,
            "memory_peak": _largest_resident() if peak is None else peak,
            "memory_exact": peak is not None,
        }


def serve(link: connection.Connection) -> None:
    """What a worker does: receive a task, send back its result, until the other end closes."""
    # Ctrl-C reaches the whole group; the parent alone decides what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    gc.freeze()  # what is imported stays, and need not be searched for garbage before each fit
    link.send(None)
    known: tuple[str, Any] = ("", None)
    while True:
        try:
            task = link.recv()
        except EOFError:
            return
        except Exception as error:
            link.send({"error": explain(error)})
            continue
        try:
            if known[0] != task.data:
                known = ("", None)  # two data sets at once may be too much
                known = (task.data, spoil(task.cell))
            outcome = measure(task.cell, known[1])
        except Exception as error:
            outcome = {"error": explain(error)}
        link.send(outcome)


def explain(error: BaseException) -> str:
    """Kind and message of an error, without the name of the user's folder."""
    text = f"{type(error).__name__}: {error}".replace(str(Path.home()), "~")
    return " ".join(text.split())[:500]


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _configured(cell: Cell, spoiled: Spoiled) -> Any:
    """The estimator with a seed and what it may know of the data, where it leaves them open.

    That is the shape of the images; and for one that has a parameter ``X_clean``, which no user
    could give, the data before corruption.
    """
    model = clone(cell.variant.estimator)
    open_ = [name for name, value in model.get_params().items() if value is None]
    given = {name: cell.seed for name in open_ if name.split("__")[-1] == "random_state"}
    given |= {name: spoiled.image_shape for name in open_ if name.split("__")[-1] == "image_shape"}
    given |= {name: spoiled.X for name in open_ if name.split("__")[-1] == "X_clean"}
    return model.set_params(**given)


def _ask(cell: Cell, spoiled: Spoiled, model: Any, seconds: float, score: Any) -> Any:
    """Call a score with what it asks for."""
    offers = asked_for(
        score,
        y=spoiled.y,
        mask=spoiled.mask,
        image_shape=spoiled.image_shape,
        random_state=cell.seed,
        extras=spoiled.extras,
        seconds=seconds,
    )
    return score(model, spoiled.X, spoiled.X_corrupt, **offers)


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _iterations(model: Any) -> int | None:
    passes = getattr(_last(model), "n_iter_", None)
    return None if passes is None else int(np.max(passes))


def _converged(model: Any, caught: list[warnings.WarningMessage]) -> bool | None:
    """What the model says; else what it warned of; None if it has no loop at all."""
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        return False
    known = getattr(_last(model), "converged_", None if _iterations(model) is None else True)
    return None if known is None else bool(known)


def _last(model: Any) -> Any:
    """The last step of a pipeline; any other model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def _status(name: str) -> int | None:
    """A number of kB that Linux reports about this process, in bytes."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    return None if found is None else 1024 * int(found[1])


def _largest_resident() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else 1024 * largest
