"""A line in the terminal that tells how far a fit is."""

import math
import sys
import time
from collections import deque
from typing import Any, TextIO

from robustpca.engine.progress import Progress

__all__ = ["ProgressBar", "progress_bar"]

# Passes from which the rate of convergence is estimated, and seconds between two lines.
WINDOW, PAUSE = 20, 0.1
UP = "\x1b[F"


def progress_bar(stream: TextIO | None = None) -> "ProgressBar":
    """A callback for any estimator that shows how far its fit is.

    Parameters
    ----------
    stream : file, default=None
        Where to write; None for the standard error.

    Returns
    -------
    callback : ProgressBar
        Pass it as ``callback=``. It writes over one line while a fit runs, with the seconds that
        are left if the changes go on shrinking as they did. One object serves any number of fits,
        one after the other.

    Examples
    --------
    >>> import sys
    >>> import numpy as np
    >>> from robustpca import EPCA, progress_bar
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> model = EPCA(2, callback=progress_bar(sys.stdout)).fit(X)  # doctest: +ELLIPSIS
    EPCA: pass 1, ...
    """
    return ProgressBar(stream)


class ProgressBar:
    """What `progress_bar` returns: called after each pass of a loop."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream, self.separator = stream, ""
        self.started, self.written, self.iteration, self.width = 0.0, 0.0, 0, 0
        self._begin()

    def __call__(self, progress: Progress) -> None:
        """Write where the fit is, unless it did so a moment ago."""
        if progress.iteration <= self.iteration:  # of another loop
            self._begin()
        now = time.monotonic()
        self.iteration = progress.iteration
        self.seen.append((now, progress.iteration, progress.change))
        if now - self.written > PAUSE or progress.change <= (progress.tol or 0):
            self.written = now
            self._write(self._text(progress, now))

    def __deepcopy__(self, memo: Any) -> "ProgressBar":
        # `clone` copies parameters, and a stream cannot be copied.
        return ProgressBar(self.stream)

    def __getstate__(self) -> dict[str, Any]:
        # In another process it writes to the standard error there.
        return {}

    def __setstate__(self, state: Any) -> None:
        self.__init__()  # type: ignore[misc]

    def _begin(self) -> None:
        self.started, self.written = time.monotonic(), -math.inf
        self.iteration, self.width = 0, 0
        self.seen: deque[tuple[float, int, float]] = deque(maxlen=WINDOW)

    def _text(self, progress: Progress, now: float) -> str:
        text = f"{progress.method or 'fit'}: pass {progress.iteration}"
        if progress.detail:
            text += f", {progress.detail}"
        text += f", change {progress.change:.1e}"
        if progress.tol is not None:
            text += f" (ends at {progress.tol:.0e})"
        text += f", {now - self.started:.1f} s"
        left = self._left(progress)
        return text if left is None else f"{text}, about {max(left, 1):.0f} s left"

    def _left(self, progress: Progress) -> float | None:
        """Seconds until the changes reach the tolerance at their rate so far, if they shrink."""
        (first, start, before), (last, stop, after) = self.seen[0], self.seen[-1]
        if not (progress.tol and before > 0 and after > 0 and stop > start):
            return None
        each = (last - first) / (stop - start)
        rate = math.log(before / after) / (stop - start)
        passes = math.log(after / progress.tol) / rate if rate > 0 else math.inf
        most = math.inf if progress.max_iter is None else progress.max_iter - stop
        passes = min(passes, most)
        return each * passes if 0 < passes < math.inf else None

    def _write(self, text: str) -> None:
        stream = sys.stderr if self.stream is None else self.stream
        # A terminal can go up a line, so that the line is ended whenever the fit ends.
        again, end = (UP, "\n") if stream.isatty() else ("\r", "")
        stream.write((again if self.width else self.separator) + text.ljust(self.width) + end)
        stream.flush()
        self.width, self.separator = len(text), "" if end else "\n"
