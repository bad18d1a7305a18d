"""How far a run is and how long it will still take."""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Protocol, Self

__all__ = ["Clock", "Progress", "Silent", "new_progress", "span"]


class Clock:
    """Remaining time, from what cells of the same kind have taken.

    Parameters
    ----------
    kinds : iterable of hashable
        Kind of each cell that is to be done.
    jobs : int
        How many are done at once.
    """

    def __init__(self, kinds: Iterable[Hashable], jobs: int) -> None:
        self.left = Counter(kinds)
        self.jobs = jobs
        self.taken: dict[Hashable, list[float]] = defaultdict(list)

    def done(self, kind: Hashable, seconds: float) -> None:
        """A cell of this kind is done."""
        self.left[kind] -= 1
        self.taken[kind].append(seconds)

    def remaining(self) -> float | None:
        """Seconds to go; None as long as nothing is known."""
        seen = [seconds for times in self.taken.values() for seconds in times]
        if not seen:
            return None
        usual = sum(seen) / len(seen)
        means = {kind: sum(times) / len(times) for kind, times in self.taken.items()}
        work = sum(count * means.get(kind, usual) for kind, count in self.left.items())
        return work / min(self.jobs, max(1, self.left.total()))


class Progress(Protocol):
    """Something that shows how a run goes."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def show(self, done: int, total: int, failed: int, remaining: float | None) -> None:
        """The state of the run has changed."""
        ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        """End of the run."""

    def show(self, done: int, total: int, failed: int, remaining: float | None) -> None:
        """Say nothing."""


class Lines(Silent):
    """A line from time to time, for terminals and files alike.

    Parameters
    ----------
    every : float, default=5.0
        Seconds between two lines; the last one is always written.
    """

    def __init__(self, every: float = 5.0) -> None:
        self.every = every
        self.last = -float("inf")

    def show(self, done: int, total: int, failed: int, remaining: float | None) -> None:
        now = time.monotonic()
        if now - self.last >= self.every or done == total:
            self.last = now
            print(_sentence(done, total, failed, remaining), file=sys.stderr, flush=True)


class Bar:
    """A bar at the bottom of the terminal, drawn by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.bar = Progress(
            BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True)
        )
        self.task = self.bar.add_task("starting")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.bar.stop()

    def show(self, done: int, total: int, failed: int, remaining: float | None) -> None:
        """Move the bar."""
        text = _sentence(done, total, failed, remaining)
        self.bar.update(self.task, completed=done, total=total, description=text)


def new_progress() -> Progress:
    """A bar if rich is installed and somebody is watching, else lines."""
    return Bar() if find_spec("rich") is not None and sys.stderr.isatty() else Lines()


def span(seconds: float) -> str:
    """A time in words that are short enough for a line.

    Examples
    --------
    >>> from robustpca.bench.progress import span
    >>> span(42.3), span(150), span(7300)
    ('42 s', '2 min 30 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _sentence(done: int, total: int, failed: int, remaining: float | None) -> str:
    text = f"{done} of {total} cells"
    text += f", {failed} failed" if failed else ""
    left = "" if remaining is None or done == total else f", about {span(remaining)} left"
    return text + left
