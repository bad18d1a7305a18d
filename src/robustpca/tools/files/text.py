"""Delimited text: its encoding, separator, decimal mark and line of names are guessed."""

import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustpca.tools.files.numbers import MISSING, Marks, is_missing, number_of
from robustpca.tools.files.table import Layout, counted, extra

__all__ = ["Text", "header_of", "is_title", "open_text", "skipped_lines", "unique_names"]

# A decimal comma is in most lines of a file whose cells are separated by another mark.
SEPARATORS = ("\t", ";", "|", ",", " ")
# Lines from which the separator and the decimal mark are guessed.
GUESSED_LINES = 200
# Names of a first column that no measurement has.
INDEX_NAMES = re.compile(
    r"((row|sample|subject|patient|object|record)s?[ _.-]*)?"
    r"(id|ids|index|idx|key|name|names|no|nr|number|label|uuid|guid)\.?|rows?|samples?|unnamed: 0"
    r"|.*([ _.-](no|nr|code)\.?|number|nummer|numero|numéro)",
    re.IGNORECASE,
)
# Whole numbers with zeros before them, as postal codes have.
PADDED = r"\s*0\d+\s*"


def header_of(first: Sequence[str], others: Sequence[Sequence[str]], decimal: str = ".") -> bool:
    """Whether the first line of a table has names.

    It has if it holds text above at least half of the columns of numbers, or if its first cell is
    what index columns are called. Where no column has numbers, text of any kind counts as names.
    """
    above = below = 0
    names = [cell.strip() for cell in first]
    for place, cell in enumerate(first):
        cells = [row[place] for row in others if place < len(row) and not is_missing(row[place])]
        n_numbers = sum(number_of(other, decimal) is not None for other in cells)
        if cells and 2 * n_numbers >= len(cells):
            below += 1
            above += number_of(cell, decimal) is None and not is_missing(cell)
    if not below:
        return not any(number_of(name, decimal) is not None for name in names)
    if 2 * above >= below:
        return True
    corner = not names[0] or INDEX_NAMES.fullmatch(names[0]) is not None
    return corner and all(names[1:]) and len(set(names)) == len(names) > 1


def unique_names(given: Sequence[str]) -> list[str]:
    """Names of columns: those given, numbered where they lack or repeat.

    One column may have the empty name: indices are often written so.
    """
    names: list[str] = []
    lacking = sum(not name.strip() for name in given)
    for place, name in enumerate(given):
        name = name.strip()
        if not name and (place or lacking > 1):
            name = f"column {place + 1}"
        base, number = name, 1
        while name in names:
            name, number = f"{base}.{number}", number + 1
        names.append(name)
    return names


def is_title(row: Sequence[str], width: int) -> bool:
    """Whether a line stands above a table of some width: it is empty, or has one cell of text."""
    filled = [cell for cell in row if cell.strip()]
    return width > 2 and (not filled or (len(filled) == 1 and number_of(filled[0]) is None))


@dataclass(frozen=True)
class Text:
    """The lines of a table, and how they are to be read."""

    path: Path
    names: list[str]
    body: str
    first_line: int
    layout: Layout
    remarks: list[str]

    def frame(self, places: Sequence[int] | None = None) -> Any:
        """The table as a data frame; or some of its columns, by place, as the text in them."""
        pandas = extra("pandas", "Reading tables")
        separator = self.layout.separator
        options: dict[str, Any] = {
            "sep": r"\s+" if separator == " " else separator,
            "decimal": self.layout.decimal,
            "names": self.names,
            "header": None,
            "index_col": False,
            "skipinitialspace": separator != "\t",
            "keep_default_na": False,
        }
        if places is None:
            variants = {change(word) for word in MISSING for change in (str, str.upper, str.title)}
            options |= {
                "na_values": sorted({*variants, "NaN", "#N/A N/A"}),
                "dtype_backend": "numpy_nullable",
            }
            if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):
                options["float_precision"] = "round_trip"  # since then the default is exact
        else:
            options |= {"usecols": list(places), "dtype": object}
        try:
            with warnings.catch_warnings():
                # It would drop what is too long for the names, and only say so.
                warnings.simplefilter("error", pandas.errors.ParserWarning)
                return pandas.read_csv(io.StringIO(self.body), **options)
        except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
            raise ValueError(self._unreadable(str(error))) from error

    def padded(self, frame: Any) -> set[str]:
        """Names of the columns of whole numbers that have zeros before some of these."""
        mark = re.escape(self.layout.separator)
        if not re.search(rf'(?m)(?:^|["{mark}]){PADDED}(?:["{mark}]|$)', self.body):
            return set()
        places = [place for place, kind in enumerate(frame.dtypes) if str(kind) == "Int64"]
        exact = self.frame(places)
        return {name for name in exact if exact[name].str.fullmatch(PADDED).any()}

    def lines(self) -> list[int]:
        """Number of the line of each row, if every row is one line."""
        lines = self.body.splitlines()
        return [self.first_line + i for i, line in enumerate(lines) if line.strip()]

    def short_lines(self) -> list[int]:
        """Numbers of the lines that have fewer cells than there are names."""
        rows = self._cells()
        return [line for line, row in rows if len(row) < len(self.names)]

    def _cells(self) -> list[tuple[int, list[str]]]:
        reader = csv.reader(_stripped(self.body, self.layout), **_dialect(self.layout.separator))
        with _readable(self.path):
            return [(self.first_line - 1 + reader.line_num, row) for row in reader if row]

    def _unreadable(self, reason: str) -> str:
        width = len(self.names)
        for line, row in self._cells():
            if len(row) > width:
                mark = {"\t": "a tab", " ": "blanks"}.get(self.layout.separator)
                return (
                    f"Line {line} of {self.path} has {len(row)} cells, and the first lines have "
                    f"{width}: the cells are taken to be separated by "
                    f"{mark or repr(self.layout.separator)}."
                )
        return f"{self.path} cannot be read as a table: {reason.strip().rstrip('.')}."


def open_text(path: Path) -> Text:
    """Open a text file that holds a table.

    Parameters
    ----------
    path : Path
        The file, perhaps compressed by gzip.

    Returns
    -------
    text : Text
        What is needed to read it.
    """
    with _readable(path):
        return _opened(path, *_decoded(path))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say what the reader of cells cannot: mostly a quote that has no end."""
    try:
        yield
    except csv.Error as error:
        raise ValueError(
            f"{path} cannot be read as a table, {error}: is there a quote without an end?"
        ) from error


def _opened(path: Path, content: str, encoding: str) -> Text:
    remarks = []
    if encoding not in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        remarks.append(f"The file is not in UTF-8 and was read as {encoding}.")
    lines = content.splitlines(keepends=True)
    start = [(i, line) for i, line in enumerate(lines[: 2 * GUESSED_LINES]) if line.strip()]
    if not start:
        raise ValueError(f"{path} is empty: it should hold a table of numbers.")
    start = start[:GUESSED_LINES]
    separator = _separator([line for _, line in start])
    layout = Layout(separator=separator, encoding=encoding)
    rows = list(csv.reader(_stripped("".join(line for _, line in start), layout),
                           **_dialect(separator)))  # fmt: skip
    rows = [row for row in rows if row]
    width = _usual(rows)[0]
    # Instruments write a few lines on themselves before the table.
    skipped = 0
    while skipped < len(rows) - 1 and (
        len(rows[skipped]) < width - 1 or is_title(rows[skipped], width)
    ):
        skipped += 1
    if len(rows) != len(start):  # a cell has several lines, so these cannot be told apart
        skipped = 0
    remarks += skipped_lines(skipped)
    rows = rows[skipped:]
    decimal = _decimal([cell for row in rows for cell in row], separator)
    # R writes no name above the names of the rows.
    unnamed = len(rows) > 1 and len(rows[0]) == width - 1 == len(rows[1]) - 1
    has_names = unnamed or header_of(rows[0], rows[1:], decimal)
    first = start[skipped][0]
    if has_names:
        names = unique_names(["", *rows[0]] if unnamed else rows[0])
        names += [f"column {i + 1}" for i in range(len(names), width)]
        # Where the names themselves take several lines, the next row begins after these.
        first += 1 if len(start) == len(rows) + skipped else _height(lines[first:], separator)
    else:
        names = [f"column {i + 1}" for i in range(width)]
    body = "".join(_stripped("".join(lines[first:]), layout))
    layout = Layout(separator, decimal, has_names, encoding)
    return Text(path, names, body, first + 1, layout, remarks)


def skipped_lines(number: int) -> list[str]:
    """The sentence on lines above a table, if there are any."""
    lines = counted(number, "line")
    return [f"Before the table, {lines} of text skipped."] if number else []


def _decoded(path: Path) -> tuple[str, str]:
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged: it cannot be decompressed.") from error
    if raw[:4] in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        encodings = ["utf-32"]
    elif raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings = ["utf-16"]
    elif raw[:3] == b"\xef\xbb\xbf":
        encodings = ["utf-8-sig"]
    else:
        encodings = ["utf-8", "cp1252", "latin-1"]
    if encodings[0] not in ("utf-16", "utf-32") and b"\0" in raw[:4096]:
        raise ValueError(f"{path} is no text, although its name says so.")
    for encoding in encodings:
        try:
            return raw.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{path} is damaged: it is no {encodings[0]} text.")


def _dialect(separator: str) -> dict[str, Any]:
    return {"delimiter": separator, "skipinitialspace": separator != "\t"}


def _stripped(text: str, layout: Layout) -> list[str]:
    """Lines of a text; blanks around them would be cells where blanks separate."""
    lines = text.splitlines(keepends=True)
    return [f"{line.strip()}\n" for line in lines] if layout.separator == " " else lines


def _separator(lines: list[str]) -> str:
    """The mark that cuts most lines into the same number of cells, of several the first."""
    best, best_share = ",", 0.0
    for mark in SEPARATORS:
        cut = _stripped("".join(lines), Layout(mark))
        width, share = _usual([row for row in csv.reader(cut, **_dialect(mark)) if row])
        if width > 1 and share > best_share + 0.1:
            best, best_share = mark, share
    return best


def _usual(rows: list[list[str]]) -> tuple[int, float]:
    """Number of cells that most rows have, of several the largest, and the share of these rows."""
    widths = Counter(map(len, rows))
    number, width = max((number, width) for width, number in widths.items())
    return width, number / len(rows)


def _decimal(cells: list[str], separator: str) -> str:
    """The decimal mark: a comma if more cells are numbers with it than with a point."""
    cells = [Marks.of(cell).taken_off(cell) for cell in cells]
    commas = [
        cell
        for cell in cells
        if re.fullmatch(r"\s*[-+]?\d*,\d+(e[-+]?\d+)?\s*", cell, re.I)
        or ("," in cell and number_of(cell) is None and number_of(cell, ",") is not None)
    ]
    points = sum("." in cell and number_of(cell) is not None for cell in cells)
    grouped = sum(re.fullmatch(r"\s*[-+]?\d{1,3},\d{3}\s*", cell) is not None for cell in commas)
    if separator == "," and grouped == len(commas):
        return "."  # 1,234 in quotes is more than a thousand
    return "," if len(commas) > points else "."


def _height(lines: list[str], separator: str) -> int:
    """How many lines the first row of a table takes."""
    reader = csv.reader(lines, **_dialect(separator))
    next(reader)
    return reader.line_num
