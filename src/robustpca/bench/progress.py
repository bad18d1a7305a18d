"""How far a run is, as a bar in the terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["new_progress", "span"]


def new_progress() -> "Progress":
    """A bar of rich on the standard error, for `robustpca.bench.run`.

    Where that is no terminal, the bar is written once, at the end.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


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
