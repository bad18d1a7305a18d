"""How numbers, times and places are written, the same in text, LaTeX and HTML."""

import math
from collections.abc import Mapping
from typing import Any

from robustpca.bench.summary import Entry

__all__ = ["label", "number", "parameters", "position", "remark", "time", "value"]


def number(value: float, digits: int = 4) -> str:
    """A number with a few digits; a dash if there is none.

    Examples
    --------
    >>> from robustpca.bench.formats import number
    >>> number(168123456.0), number(0.5), number(float("nan"))
    ('1.681e8', '0.5', '-')
    """
    return "-" if math.isnan(value) else f"{value:.{digits}g}".replace("e+0", "e")


def value(given: Any) -> str:
    """A parameter as short as it can be written."""
    return f"{given:g}" if isinstance(given, float) else str(given)


def time(seconds: float) -> str:
    """Seconds with their unit."""
    return "-" if math.isnan(seconds) else f"{seconds:.3g} s"


def parameters(given: Mapping[str, Any]) -> str:
    """Names and values in one line.

    Examples
    --------
    >>> from robustpca.bench.formats import parameters
    >>> parameters({"n_components": 10, "sigma": 2.0})
    'n_components=10, sigma=2'
    """
    return ", ".join(f"{name}={value(one)}" for name, one in given.items())


def position(dataset: str, corruption: str, settings: Mapping[str, Any]) -> str:
    """Where something stands in a table, without what is empty."""
    return ", ".join(part for part in (dataset, corruption, parameters(settings)) if part)


def label(entry: Entry) -> str:
    """The method, and whether its default parameters are meant where others were chosen."""
    return f"{entry.method}, default" if entry.role == "default" else entry.method


def remark(entry: Entry) -> str:
    """What was chosen and by what, what failed, what did not converge."""
    remarks = []
    if entry.n_candidates:
        chosen = parameters(entry.tuned)
        remarks.append(f"{chosen}: best of {entry.n_candidates} by {entry.chosen_by}")
    if entry.errors:
        remarks.append(f"{len(entry.errors)} of {entry.n_seeds} failed")
    if entry.n_unsettled:
        remarks.append(f"{entry.n_unsettled} not converged")
    return "; ".join(remarks)
