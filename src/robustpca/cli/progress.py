"""How far a fit is, on the standard error."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["counting", "told"]


@contextmanager
def told(what: str, quiet: bool) -> Iterator[Callable[[Any], object] | None]:
    """Show a bar with the time left while fits run, if somebody looks at a terminal.

    Yields what the fits are to call after each pass, or None.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import TimeRemainingColumn

    with _bar(TimeRemainingColumn()) as progress:
        task, first = progress.add_task(what, total=1.0), [math.nan]

        def report(done: Any) -> None:
            """Fits stop at a change of about 1e-7, which falls by a constant factor a pass."""
            if done.iteration <= 1 or not first[0] > 0:
                first[0] = max(done.change, 1e-6)
            share = math.log(first[0] / max(done.change, 1e-300)) / math.log(first[0] / 1e-7)
            progress.update(task, completed=min(max(share, 0.02), 0.98))

        yield report


@contextmanager
def counting(what: str, quiet: bool) -> Iterator[Callable[[int, int], object]]:
    """Show how many of some fits are done, if somebody looks at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with _bar(MofNCompleteColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _bar(*columns: Any) -> Any:
    """A bar on the standard error that is gone when it is full."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    first = (TextColumn("{task.description}"), BarColumn())
    return Progress(*first, *columns, console=Console(stderr=True), transient=True)
