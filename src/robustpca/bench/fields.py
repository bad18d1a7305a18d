"""What the rows of a file must hold before a report is made of them.

A file of rows may come from another version, another person, or a disk with errors.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from pathlib import Path
from types import NoneType
from typing import Any

from robustpca.bench.store import Row

__all__ = ["whole_rows"]


def whole_rows(rows: Iterable[Row], path: str | Path) -> list[Row]:
    """Those rows of a file that a report can be made of; one warning tells of all others.

    Parameters
    ----------
    rows : iterable of dict
        The rows.
    path : str or Path
        Where they come from.

    Returns
    -------
    rows : list of dict
        Rows that have all fields, and in these what belongs there.
    """
    good: list[Row] = []
    bad: list[tuple[Row, list[str]]] = []
    for row in rows:
        wrong = [name for name, fits in FIELDS.items() if not fits(row.get(name, ...))]
        if not wrong and row["error"] is None and row["scores"] is None:
            wrong = ["scores"]
        if wrong:
            bad.append((row, wrong))
        else:
            good.append(row)
    if bad:
        row, wrong = bad[0]
        warnings.warn(
            f"{len(bad)} of the rows in {path} are left out, since fields of them lack or hold "
            f"what does not belong there: {', '.join(wrong)} in {str(row.get('key'))[:40]!r}. Run "
            "these cells again, or delete their lines.",
            stacklevel=2,
        )
    return good


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _are_scores(value: Any) -> bool:
    return value is None or (
        isinstance(value, Mapping) and all(isinstance(one, Real | None) for one in value.values())
    )


def _are_exhibits(value: Any) -> bool:
    """Whether all that a row shows has the form that `robustpca.bench.shown` gives it."""
    if value is ... or value is None:
        return True
    return isinstance(value, Mapping) and all(
        isinstance(one, Mapping) and EXHIBITS.get(str(one.get("kind")), lambda _: False)(one)
        for one in value.values()
    )


def _is_picture(exhibit: Mapping[str, Any]) -> bool:
    sides: list[Any] = [exhibit.get(name) for name in ("width", "height")]
    png = exhibit.get("png")
    whole = all(isinstance(side, int) and 0 < side <= LARGEST for side in sides)
    return whole and isinstance(png, str) and BASE64.fullmatch(png) is not None


def _are_numbers(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether an exhibit has lists of numbers by these names, all of one length."""

    def fits(exhibit: Mapping[str, Any]) -> bool:
        lists: list[Any] = [exhibit.get(name) for name in names]
        return (
            all(isinstance(one, list) and one for one in lists)
            and len({len(one) for one in lists}) == 1
            and all(isinstance(value, Real) for one in lists for value in one)
        )

    return fits


LARGEST = 100_000  # pixels of a side
BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
EXHIBITS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "picture": _is_picture,
    "points": _are_numbers("x", "y", "label"),
    "curve": _are_numbers("x", "y"),
}
FIELDS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("key", "table", "dataset", "corruption", "method", "role"), _of(str)),
    "chosen_by": _of(str, NoneType),
    **dict.fromkeys(("settings", "tuned", "versions"), _of(dict)),
    "seed": _of(int),
    "error": _of(str, NoneType),
    "converged": _of(bool, NoneType),
    **dict.fromkeys(("seconds", "memory_start", "memory_peak"), _of(int, float, NoneType)),
    "scores": _are_scores,
    "shown": _are_exhibits,
}
