"""Numbers as people write them: with signs, groups of digits, units, and codes for missing ones."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["MISSING", "Marks", "codes_in", "is_missing", "marks_of", "number_of"]

# What stands for a missing number, in lower case.
MISSING = frozenset(
    [
        *("", "na", "n/a", "nan", "null", "none", "?", "-", "--", ".", "missing", "<na>", "#n/a"),
        *("#n/a n/a", "#na", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!"),
    ]
)
# Groups of three digits, by the decimal mark beside which they are used.
GROUPS = {
    mark: re.compile(
        rf"[-+]?\d{{1,3}}(?:([{other}'\u2019 \u00a0\u202f])\d{{3}}(?:\1\d{{3}})*)(?:[{mark}]\d+)?"
    )
    for mark, other in ((".", ","), (",", "."))
}
# Signs around numbers: currencies before or behind, shares and degrees behind, units after a blank.
BEFORE = re.compile(r"[$€£¥]\s?(?=[-+.\d])")
BEHIND = re.compile(r"(?<=[.\d])(?:\s?[$€£¥%‰°]|\s?°[CFK]|\s[A-Za-zµμΩ][\w/²³^*·µμΩ-]{0,9})$")
NO_UNITS = re.compile(
    r"\s*(am|pm|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*", re.IGNORECASE
)
# Numbers that people write where they have none.
CODES = np.array(
    [-9, -99, -99.9, -999, -999.9, -999.25, -9999, -99999, -999999, 99, 999, 9999, 99999, 999999],
    dtype=np.float64,
)
# A code lies outside of the usual range of a column by so many times this range, and stands in so
# many cells: one cell may be a mistake, and large numbers may be measured more than once.
CODE_DISTANCE, LEAST_NEGATIVE, LEAST_POSITIVE = 1.0, 2, 3


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing number."""
    return cell.strip().lower() in MISSING


def number_of(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, or None if there is none.

    Examples
    --------
    >>> from robustpca.tools.files.numbers import number_of
    >>> number_of("1,234.5"), number_of("1.234,5", ","), number_of("(20)"), number_of("1,23")
    (1234.5, 1234.5, -20.0, None)
    """
    cell = cell.strip().replace("\u2212", "-")  # typographers have a minus of their own
    if cell.startswith("(") and cell.endswith(")"):  # as in accounts
        cell = f"-{cell[1:-1]}"
    grouped = GROUPS[decimal].fullmatch(cell)
    if grouped:
        cell = cell.replace(grouped[1], "")
    if decimal != ".":
        if "." in cell:
            return None
        cell = cell.replace(decimal, ".")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


@dataclass(frozen=True)
class Marks:
    """What stands before and behind the numbers of a column."""

    before: str = ""
    behind: str = ""

    @classmethod
    def of(cls, cell: str) -> "Marks":
        """Those of one cell."""
        before, behind = BEFORE.match(cell.strip()), BEHIND.search(cell.strip())
        unit = "" if behind is None or NO_UNITS.fullmatch(behind[0]) else behind[0]
        return cls("" if before is None else before[0], unit)

    def __str__(self) -> str:
        return (self.before or self.behind).strip()

    def taken_off(self, cell: str) -> str:
        """A cell without them."""
        return cell.strip().removeprefix(self.before).removesuffix(self.behind)

    def put_on(self, number: str) -> str:
        """A number with them."""
        return f"{self.before}{number}{self.behind}"


def marks_of(cells: Sequence[str]) -> Marks:
    """What stands before and behind most of some cells; nothing, if there is no agreement.

    Examples
    --------
    >>> from robustpca.tools.files.numbers import marks_of
    >>> str(marks_of(["3 kg", "17 kg", "k. A."])), str(marks_of(["$5", "6", "$7"]))
    ('kg', '$')
    """
    found = Counter(map(Marks.of, cells)).most_common(1)
    return found[0][0] if found and 2 * found[0][1] > len(cells) else Marks()


def codes_in(X: Array) -> Array:
    """Numbers of a table that stand for missing ones.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        The numbers, NaN where one is missing.

    Returns
    -------
    codes : ndarray of shape (n_rows, n_columns), dtype bool
        Cells with -999 and the like, if these lie far outside of all other numbers of a column
        and are repeated. A negative code of one column is one of all others too.
    """
    candidates = np.isin(X, CODES.astype(X.dtype))
    codes = np.zeros(X.shape, dtype=bool)
    for code in np.unique(X[candidates]):
        here = code == X
        outside = np.zeros(X.shape[1], dtype=bool)
        for j in np.flatnonzero(here.any(axis=0)):
            others = X[:, j][~candidates[:, j] & np.isfinite(X[:, j])]
            if len(others) > 1:
                low, high = np.quantile(others, (0.01, 0.99))
                away = max(low - code, code - high)
                outside[j] = away > CODE_DISTANCE * (high - low) > 0
        least = LEAST_NEGATIVE if code < 0 else LEAST_POSITIVE
        if here[:, outside].sum() >= least:
            codes |= here if code < 0 else here & outside
    return codes
