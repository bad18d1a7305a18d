"""Tables of numbers in text files: any usual separator, decimal comma, missing cells."""

import csv
import gzip
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["Table", "read_table"]

# What stands for a missing number, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "#n/a"})
SEPARATORS = ",;\t|"
# Lines from which the separator is guessed.
GUESSED_LINES = 20


@dataclass(frozen=True)
class Table:
    """Numeric columns of a file.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The numbers, NaN where one is missing.
    names : list of str
        Names of the columns.
    dropped : list of str
        Names of the columns that hold text and are left out.
    """

    X: Array
    names: list[str]
    dropped: list[str]


def read_table(path: Any) -> Table:
    """Read the numeric columns of a text file.

    Parameters
    ----------
    path : str or path-like
        A ``.csv``, ``.tsv`` or ``.txt`` file, perhaps compressed (``.gz``). Cells are separated by
        commas, semicolons, tabs or bars; numbers may have a decimal comma if the separator is
        another; a first line of names is recognised; empty cells, NA and the like are missing.

    Returns
    -------
    Table
        Numbers and names.

    Raises
    ------
    ValueError
        If no column holds numbers, lines have different numbers of cells, or a column of numbers
        has text in some of its cells.
    """
    path = Path(path)
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        numbered = [(i, line) for i, line in enumerate(file.read().splitlines(), 1) if line.strip()]
    places, lines = [i for i, _ in numbered], [line for _, line in numbered]
    separator = _separator(lines[:GUESSED_LINES])
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    if not rows:
        raise ValueError(f"{path} is empty: it should hold a table of numbers.")
    widths = Counter(map(len, rows))
    width = widths.most_common(1)[0][0]
    if len(widths) > 1:
        wrong = next(i for i, row in enumerate(rows) if len(row) != width)
        raise ValueError(
            f"Line {places[wrong]} of {path} has {len(rows[wrong])} cells and most have {width}: "
            f"the cells are taken to be separated by {separator!r}."
        )
    comma = separator != ","
    # Names are no numbers, and a first line of numbers is data.
    head = [_number(cell, comma) is None and cell.lower() not in MISSING for cell in rows[0]]
    names = [f"column {i + 1}" for i in range(width)]
    if any(head):
        names = [given or name for given, name in zip(rows[0], names, strict=True)]
        rows, places = rows[1:], places[1:]
    columns, used, dropped = [], [], []
    for name, cells in zip(names, zip(*rows, strict=True), strict=False):
        numbers = [_number(cell, comma) for cell in cells]
        text = [
            i
            for i, (cell, number) in enumerate(zip(cells, numbers, strict=True))
            if number is None and cell.lower() not in MISSING
        ]
        n_numbers = sum(number is not None for number in numbers)
        if n_numbers and len(text) <= n_numbers and text:
            raise ValueError(
                f"Line {places[text[0]]} of {path} has {cells[text[0]]!r} in the column {name!r}, "
                "which holds numbers otherwise: correct it, or leave the cell empty."
            )
        if text or not n_numbers:
            dropped.append(name)
            continue
        used.append(name)
        columns.append([np.nan if number is None else number for number in numbers])
    if not columns:
        raise ValueError(f"No column of {path} holds numbers alone: {', '.join(names[:5])}.")
    return Table(np.array(columns).T, used, dropped)


def _separator(lines: list[str]) -> str:
    """The character that stands equally often in all lines, the most often if there are several."""
    counts = {mark: [line.count(mark) for line in lines] for mark in SEPARATORS}
    even = {mark: found[0] for mark, found in counts.items() if found and len(set(found)) == 1}
    # A decimal comma stands in most lines, but a semicolon then separates the cells.
    for mark in ";\t|":
        if even.get(mark):
            return mark
    return ","


def _number(cell: str, comma: bool) -> float | None:
    """The number in a cell, or None if there is no finite one."""
    try:
        number = float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
