"""Which columns of a table are measurements, and which name rows, dates or things."""

import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.tools.files.numbers import codes_in, is_missing, marks_of, number_of
from robustpca.tools.files.table import counted, extra
from robustpca.tools.files.text import INDEX_NAMES

__all__ = [
    "JUDGED",
    "Choice",
    "choose",
    "chosen",
    "coded",
    "infinite",
    "text_of",
    "without_codes",
    "wrong_cells",
]

# A column of text counts as numbers with mistakes in it if at least this share are numbers.
MOSTLY = 0.8
# Names of rows may lack in a few of them, such as lines at the end that are empty.
NAMED = 0.9
# Whole numbers that count up say nothing in a table of fewer rows.
COUNTED_ROWS = 5
# Whole numbers that never go back are time stamps if they are seconds since 1970 from 2001 to 2099,
# or thousandths, millionths or billionths of seconds.
EPOCH, TICKS = (1e9, 4.1e9), (1.0, 1e3, 1e6, 1e9)
# Zeros and ones are answers, no measurements, if there are enough rows to tell, if the rarer of
# them has at least this share (a few ones among zeros may be errors, or pixels near an edge), and
# if most columns are measurements: tables of answers, and binary images, are used as they are.
ANSWERED_ROWS, ANSWERED = 20, 0.05
# What `rows` writes behind the columns of a table, in this order: no measurements when it is read
# again. Underscores are added to names that are taken.
JUDGED = ("flag", "outlyingness", "score_distance", "orthogonal_distance", "weight", "reasons")
# Names of columns that hold keys of other tables, in any place.
KEYS = re.compile(
    r"(.*[ _.-])?(id|uuid|guid)|.*[a-z](ID|Id)|id[ _.-].*"
    r"|(?i:zip|(zip|post|postal|bar)[ _.-]?code|plz|postleitzahl|isbn|ean)"
)
DATES = re.compile(
    r"\s*(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}|\d{1,2}[-/ .]?[A-Za-z]{3,9}[-/ .,]"
    r"|[A-Za-z]{3,9}\.? \d{1,2},? \d{2,4})"
)


@dataclass
class Choice:
    """Columns of a table that are used, and what is to be said of the others.

    ``wrong`` has, for columns that hold text in some cells, the places of these; ``signs`` has
    what stands beside the numbers of columns, and ``codes`` in how many cells and columns a number
    stands that means a missing one.
    """

    numbers: dict[str, Array] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    index: str | None = None
    wrong: dict[str, list[int]] = field(default_factory=dict)
    n_infinite: int = 0
    signs: dict[str, str] = field(default_factory=dict)
    codes: dict[float, tuple[int, int]] = field(default_factory=dict)

    def matrix(self) -> Array:
        """The numbers; in single precision if all of them are."""
        columns = list(self.numbers.values())
        single = all(column.dtype == np.float32 for column in columns)
        return np.column_stack(columns).astype(np.float32 if single else np.float64, copy=False)


def choose(
    frame: Any,
    columns: Any = None,
    index: str | None = None,
    decimal: str = ".",
    drop: Sequence[str] = (),
    missing: Sequence[float] | None = None,
    padded: Collection[str] = (),
) -> Choice:
    """Choose the columns of a data frame that are measurements.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    columns : sequence of str or None
        Names of the columns to use; None for all that look like measurements.
    index : str or None
        Name of the column that names the rows; None to look for one.
    decimal : str
        Decimal mark of numbers that are given as text.
    drop : sequence of str
        Names of columns not to use.
    missing : sequence of float or None
        Numbers that stand for missing ones; None to look for them.
    padded : collection of str
        Names of columns of whole numbers with zeros before them: these name things.

    Returns
    -------
    choice : Choice
        Columns used, and why the others are not.
    """
    names = list(frame.columns)
    wanted = None if columns is None else chosen(columns, names)
    dropped = chosen(drop, names)
    judged = _judged(names)
    choice = Choice(index=None if index is None else chosen([index], names)[0])
    for place, name in enumerate(names):
        asked = wanted is not None and name in wanted
        column = frame.iloc[:, place]
        values, wrong, why, signs = _numbers(column, decimal)
        if name == choice.index:
            why = "row names"
        elif asked and why is not None:
            raise ValueError(f"The column {name!r} cannot be used as numbers: it is {why}.")
        elif not asked and name in judged:
            why = "from `rows`"
        elif not asked:
            names_things = name in padded or KEYS.fullmatch(name) is not None
            if (
                place == 0
                and choice.index is None
                and _names_rows(name, column, values, why, names_things)
            ):
                choice.index = name
                why = "row numbers" if why is None and _counts_up(values) else "row names"
            elif why is None:
                why = _no_measurement(values, names_things)
            if why is None and (wanted is not None or name in dropped):
                why = "not chosen"
        if why is not None:
            choice.left_out[name] = why
            continue
        infinite = np.isinf(values)
        choice.n_infinite += int(infinite.sum())
        choice.numbers[name] = np.where(infinite, np.nan, values).astype(values.dtype)
        if wrong:
            choice.wrong[name] = wrong
        if signs:
            choice.signs[name] = signs
    if wanted is not None:  # in the order that was asked for
        choice.numbers = {name: choice.numbers[name] for name in wanted if name != choice.index}
    if wanted is None:
        _leave_answers(choice, frame)
    if choice.numbers:
        _take_codes(choice, missing)
    return choice


def _judged(names: list[str]) -> set[str]:
    """Names of columns that `rows` has written."""
    plain = [name.rstrip("_") for name in names]
    places = [i for i in range(len(names)) if tuple(plain[i : i + len(JUDGED)]) == JUDGED]
    return {name for i in places for name in names[i : i + len(JUDGED)]}


def _leave_answers(choice: Choice, frame: Any) -> None:
    """Take columns out that answer yes or no, if most of the others are measurements.

    Their rarer answer would count as wrong in every row that gives it: the spread of such a column
    is zero for most rows.
    """
    is_bool = extra("pandas", "Reading tables").api.types.is_bool_dtype
    places = {name: place for place, name in enumerate(frame.columns)}
    answers = [
        name
        for name, values in choice.numbers.items()
        if is_bool(frame.iloc[:, places[name]]) or _answers(values)
    ]
    if 2 * len(answers) < len(choice.numbers):
        for name in answers:
            del choice.numbers[name]
            choice.left_out[name] = "yes or no"


def _answers(values: Array) -> bool:
    """Whether numbers are zeros and ones, many of each."""
    there = values[np.isfinite(values)]
    if len(there) < ANSWERED_ROWS or not np.isin(there, (0, 1)).all():
        return False
    return ANSWERED <= float(there.mean()) <= 1 - ANSWERED


def _take_codes(choice: Choice, missing: Sequence[float] | None) -> None:
    """Take numbers that stand for missing ones out, and columns that have no others."""
    X, choice.codes = without_codes(choice.matrix(), missing)
    if not choice.codes:
        return
    for (name, values), left in zip(list(choice.numbers.items()), X.T, strict=True):
        choice.numbers[name] = left
        if np.isnan(left).all() and not np.isnan(values).all():
            del choice.numbers[name]
            choice.left_out[name] = "empty"


def without_codes(
    X: Array, missing: Sequence[float] | None
) -> tuple[Array, dict[float, tuple[int, int]]]:
    """Numbers without those that mean missing ones, and in how many cells and columns each is."""
    codes = codes_in(X) if missing is None else np.isin(X, np.asarray(missing, X.dtype))
    if not codes.any():
        return X, {}
    found = {
        float(code): (
            int((codes & (code == X)).sum()),
            int((codes & (code == X)).any(axis=0).sum()),
        )
        for code in np.unique(X[codes])
    }
    return np.where(codes, np.nan, X).astype(X.dtype), found


def chosen(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Those columns, if all of them exist."""
    for name in columns:
        if name not in names:
            near = get_close_matches(str(name), names, n=1)
            shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            hint = f"did you mean {near[0]!r}?" if near else f"there are {shown}."
            raise ValueError(f"No column is called {name!r}: {hint}")
    return list(dict.fromkeys(columns))


def text_of(column: Any) -> list[str]:
    """The cells of a column as text, empty where they are missing."""
    lacking = column.isna().to_numpy()
    values = column.astype(object).tolist()
    return ["" if gone else str(value) for gone, value in zip(lacking, values, strict=True)]


Numbers = tuple[Array, list[int], str | None, str]


def _numbers(column: Any, decimal: str) -> Numbers:
    """Numbers in a column, the places of text among them, why it has none, if so, and signs."""
    types = extra("pandas", "Reading tables").api.types
    if not types.is_bool_dtype(column) and not types.is_numeric_dtype(column):
        return _from_text(column, decimal)
    single = str(column.dtype).lower() == "float32"
    values: Array = column.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return values, [], "empty" if np.isnan(values).all() else None, ""


def _from_text(column: Any, decimal: str) -> Numbers:
    """The same for a column of text."""
    pandas = extra("pandas", "Reading tables")
    none = np.full(len(column), np.nan)
    if column.isna().all():
        return none, [], "empty", ""
    if pandas.api.types.is_datetime64_any_dtype(column):
        return none, [], "date", ""
    cells = text_of(column)
    there = [i for i, cell in enumerate(cells) if not is_missing(cell)]
    if not there:
        return none, [], "empty", ""
    marks = marks_of([cells[i] for i in there])
    found = {i: number_of(marks.taken_off(cells[i]), decimal) for i in there}
    numbers = {i: number for i, number in found.items() if number is not None}
    if len(numbers) < MOSTLY * len(there):
        dates = _are_dates([cells[i] for i in there])
        part = f"text in {1 - len(numbers) / len(there):.0%} of its cells"
        why = "date" if dates else part if 4 * len(numbers) > len(there) else "text"
        return none, [], why, ""
    values = none.copy()
    values[list(numbers)] = list(numbers.values())
    return values, [i for i in there if i not in numbers], None, str(marks)


def _are_dates(cells: list[str]) -> bool:
    """Whether texts are dates or times; some of them tell."""
    some = cells[:: max(len(cells) // 50, 1)]
    if not all(DATES.match(cell) for cell in some):
        return False
    pandas = extra("pandas", "Reading tables")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on days that may be months
        dates = [pandas.to_datetime(cell, errors="coerce") for cell in some]
    return not any(pandas.isna(date) for date in dates)


def _names_rows(name: str, column: Any, values: Array, why: str | None, names_things: bool) -> bool:
    """Whether the first column of a table is its index."""
    if why == "empty":
        return False
    cells = column.dropna()
    if why is not None:
        cells = cells.astype(str)  # lists and the like cannot be compared as they are
    distinct = len(cells) >= NAMED * len(column) and len(cells) == cells.nunique()
    if why is not None:
        return distinct
    if not distinct or not _whole(values):
        return False
    known = names_things or INDEX_NAMES.fullmatch(name) is not None
    return not name or known or _counts_up(values)


def _no_measurement(values: Array, names_things: bool) -> str | None:
    """Why a column of numbers is not used, if so."""
    if not _whole(values):
        return None
    if _counts_up(values):
        return "row numbers"
    if names_things:
        return "identifier"
    if _time_stamps(values):
        return "date"
    day = values[np.isfinite(values)]
    months, days = day // 100 % 100, day % 100
    is_day = (day >= 19000101) & (day <= 21001231) & (months >= 1) & (months <= 12)
    return "date" if (is_day & (days >= 1) & (days <= 31)).all() else None


def _whole(values: Array) -> bool:
    there = values[np.isfinite(values)]
    return len(there) > 0 and bool((there == np.floor(there)).all())


def _counts_up(values: Array) -> bool:
    """Whether whole numbers are 0, 1, 2, ... or 1, 2, 3, ... from the first row on."""
    n_rows = len(values)
    return n_rows >= COUNTED_ROWS and bool(
        values[0] in (0, 1) and (values == values[0] + np.arange(n_rows)).all()
    )


def _time_stamps(values: Array) -> bool:
    """Whether whole numbers are times of a clock, in the order in which they came or backwards."""
    there = values[np.isfinite(values)]
    steps, (first, last) = np.diff(there), EPOCH
    return (
        len(there) >= COUNTED_ROWS
        and bool(steps.any())
        and bool((steps >= 0).all() or (steps <= 0).all())
        and any(first * tick <= there.min() and there.max() < last * tick for tick in TICKS)
    )


def wrong_cells(choice: Choice, frame: Any, lines: Sequence[int] | None) -> list[str]:
    """Sentences on cells of text in columns of numbers."""
    remarks = []
    for name, places in choice.wrong.items():
        if not places:
            continue
        cell = str(frame[name].iloc[places[0]]).strip()
        where = f"row {places[0] + 1}" if lines is None else f"line {lines[places[0]]}"
        number = "cell has" if len(places) == 1 else "cells have"
        first = f"{where}: {cell!r}" if len(places) == 1 else f"the first in {where}: {cell!r}"
        remarks.append(
            f"{len(places)} {number} text in the column {name!r} ({first}) and "
            f"{'counts' if len(places) == 1 else 'count'} as missing."
        )
    for sign in dict.fromkeys(choice.signs.values()):
        named = [name for name, one in choice.signs.items() if one == sign]
        where = ", ".join(named[:5]) + (" and more" if named[5:] else "")
        remarks.append(f"The numbers of {where} are given in {sign}.")
    if choice.n_infinite:
        remarks.append(infinite(choice.n_infinite))
    return remarks + coded(choice.codes)


def coded(codes: dict[float, tuple[int, int]]) -> list[str]:
    """Sentences on numbers that mean missing ones."""
    return [
        f"{code:g} stands in {counted(n_cells, 'cell')} of {counted(n_columns, 'column')} and "
        "counts as missing (`--missing none` takes it as a number)."
        for code, (n_cells, n_columns) in codes.items()
    ]


def infinite(number: int) -> str:
    """The sentence on numbers that are infinite."""
    return (
        f"{counted(number, 'infinite number')} {'counts' if number == 1 else 'count'} as missing."
    )
