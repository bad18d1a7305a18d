"""Numbers, lists and small tables as text."""

import inspect
import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["aligned", "counted", "finite", "listed", "number", "plural", "references"]


def counted(number: int, one: str, many: str) -> str:
    """A number and the words for it, as in '1 row is' and '2 rows are'."""
    return f"{number} {plural(number, one, many)}"


def plural(number: int, one: str, many: str) -> str:
    """The words for one thing, or for many."""
    return one if number == 1 else many


def listed(texts: Sequence[str], most: int = 5, mark: str = ", ") -> str:
    """The first few of some texts, and how many more there are."""
    more = [f"{len(texts) - most} more"] if len(texts) > most else []
    return mark.join([*texts[:most], *more])


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells in columns of equal width.

    Examples
    --------
    >>> from robustpca.tools.words import aligned
    >>> aligned([("row", "value"), ("17", "3.5")])
    ['row  value', '17   3.5']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[f"{c:<{w}}" for c, w in zip(line, widths, strict=True)] for line in lines]
    return ["  ".join(cells).rstrip() for cells in padded]


def finite(value: Any) -> float | None:
    """A number for JSON, which knows neither NaN nor infinity."""
    return float(value) if math.isfinite(value) else None


def number(value: float, digits: int = 5) -> str:
    """A number as people write it: with a power of ten only if it is very large or small.

    Examples
    --------
    >>> from robustpca.tools.words import number
    >>> number(10791.43), number(0.05659), number(-1.2e9)
    ('10791', '0.05659', '-1.2e+09')
    """
    if not math.isfinite(value) or not (value == 0 or 1e-4 <= abs(value) < 1e6):
        return f"{value:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def references(kind: type) -> list[str]:
    """The papers that the docstring of a method cites, each in one line.

    Examples
    --------
    >>> from robustpca import EPCA
    >>> from robustpca.tools.words import references
    >>> len(references(EPCA)) > 0
    True
    """
    text = inspect.getdoc(kind) or ""
    section = text.partition("References\n----------\n")[2].partition("\n\n")[0]
    papers = re.split(r"^\.\. \[\d+\] ", section, flags=re.MULTILINE)
    return [" ".join(paper.replace("`", "").split()) for paper in papers if paper.strip()]
