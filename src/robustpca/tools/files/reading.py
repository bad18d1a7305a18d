"""Open a file of any known kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.tools.files.arrays import open_h5, open_mat, open_npy, open_npz, open_zarr
from robustpca.tools.files.columns import (
    choose,
    chosen,
    coded,
    infinite,
    text_of,
    without_codes,
    wrong_cells,
)
from robustpca.tools.files.images import FILMS, IMAGES, open_folder, open_stack
from robustpca.tools.files.table import Layout, Table, counted, extra, kind_of, reading
from robustpca.tools.files.text import (
    Text,
    header_of,
    is_title,
    open_text,
    skipped_lines,
    unique_names,
)

__all__ = ["KINDS", "of_frame", "placed", "read"]


def read(
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    index: str | None = None,
    missing: Sequence[float] | None = None,
    key: str | None = None,
    sheet: str | int | None = None,
) -> Table:
    """Read the numbers of a file, whatever its kind.

    Parameters
    ----------
    path : str or path-like
        A table: ``.csv``, ``.tsv``, ``.txt`` (also with ``.gz``), ``.xlsx`` or ``.parquet``; an
        array: ``.npy``, ``.npz``, ``.mat``, ``.h5`` or ``file.h5:dataset``, ``.zarr``; images:
        a ``.tif`` stack or a folder of images of one size.
    columns : sequence of str, default=None
        Names of the columns to use; by default all that look like measurements. Index columns,
        text, dates, and numbers that count rows or name things are left out, and said.
    drop : sequence of str, default=()
        Names of columns not to use.
    index : str, default=None
        Name of the column that names the rows; by default the first one if it looks like that.
    missing : sequence of float, default=None
        Numbers that stand for missing ones. By default -999 and the like do, where they are far
        outside of all other numbers of a column and repeated; that is said.
    key : str, default=None
        Name of the array in a file of several.
    sheet : str or int, default=None
        Name of a sheet in a workbook, or its number from 0; by default the first.

    Returns
    -------
    table : Table
        The numbers, and all that is needed to write them back. `Table.summary` says what was
        read.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is damaged, of no known kind, or holds no numbers.
    ImportError
        If a package is needed that is not installed; it is named.
    """
    path, key = placed(path, key)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    kind = kind_of(path)
    folder = open_zarr if kind == ".zarr" else open_folder
    opened = folder if path.is_dir() else KINDS.get(kind)
    if opened is None and kind in FILMS:
        raise ValueError(f"{path} is a film: `robustpca separate {path}` takes it apart.")
    if opened is None:
        more = ": give the folder of all images" if kind in IMAGES else ""
        raise ValueError(
            f"{path} is of no kind that can be read{more}; known are {', '.join(KINDS)}, .zarr "
            "and folders of images."
        )
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty: it should hold a table of numbers.")
    content = opened(path, key, sheet)
    if isinstance(content, Table):
        return _of_array(content, columns, drop, missing)
    return _without_empty_rows(_of_frame(path, content, columns, drop, index, missing))


def placed(path: Any, key: str | None) -> tuple[Path, str | None]:
    """File and data set of ``file.h5:dataset``."""
    given = Path(path).expanduser()
    file, colon, name = str(path).rpartition(":")
    if colon and not given.exists() and Path(file).suffix.lower() in (".h5", ".hdf5", ".zarr"):
        return Path(file).expanduser(), name
    return given, key


@dataclass
class Source:
    """A data frame as it was read, and the text that it was read from, if any."""

    frame: Any
    remarks: list[str]
    text: Text | None = None


def _open_text(path: Path, key: str | None, sheet: Any) -> Source:
    text = open_text(path)
    return Source(text.frame(), text.remarks, text)


def _open_excel(path: Path, key: str | None, sheet: Any) -> Source:
    pandas = extra("pandas", "Reading workbooks")
    extra("openpyxl", "Reading workbooks")
    remarks = []
    with reading(path):
        book = pandas.ExcelFile(path, engine="openpyxl")
    with book:
        names = book.sheet_names
        wanted = 0 if sheet is None else sheet
        if isinstance(wanted, str) and wanted not in names and wanted.isdigit():
            wanted = int(wanted)
        if wanted not in (names if isinstance(wanted, str) else range(len(names))):
            raise ValueError(f"{path} has no sheet {sheet!r}: it has {', '.join(names)}.")
        if sheet is None and len(names) > 1:
            remarks.append(f"Of {len(names)} sheets the first, {names[0]!r}, was read.")
        with reading(path):
            cells = pandas.read_excel(
                book, sheet_name=wanted, header=None, dtype=object, keep_default_na=False
            )
    cells = cells.replace("", None).dropna(how="all").dropna(how="all", axis=1)
    if cells.empty:
        raise ValueError(f"{path} is empty: it should hold a table of numbers.")
    rows = (text_of(row) for _, row in cells.iloc[:-1].iterrows())
    skipped = sum(1 for _ in takewhile(lambda row: is_title(row, cells.shape[1]), rows))
    remarks += skipped_lines(skipped)
    cells = cells.iloc[skipped:].dropna(how="all", axis=1)
    texts = [text_of(row) for _, row in cells.iloc[:200].iterrows()]
    if header_of(texts[0], texts[1:]):
        names, cells = unique_names(texts[0]), cells.iloc[1:]
    else:
        names = [f"column {i + 1}" for i in range(cells.shape[1])]
    frame = cells.reset_index(drop=True).set_axis(names, axis=1)
    return Source(frame.infer_objects(), remarks)


def _open_parquet(path: Path, key: str | None, sheet: Any) -> Source:
    pandas = extra("pandas", "Reading parquet files")
    extra("pyarrow", "Reading parquet files")
    with reading(path):
        frame = pandas.read_parquet(path)
        # Texts are decoded when they are used, and these may be damaged too.
        frame.select_dtypes(exclude="number").to_numpy(object)
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index(names=frame.index.name or "index")
    return Source(frame.set_axis(unique_names([str(name) for name in frame.columns]), axis=1), [])


# What opens a file of each kind, given its path and the name of an array or of a sheet.
KINDS: dict[str, Callable[[Path, str | None, Any], Source | Table]] = {
    ".csv": _open_text,
    ".tsv": _open_text,
    ".txt": _open_text,
    ".dat": _open_text,
    ".xlsx": _open_excel,
    ".parquet": _open_parquet,
    ".npy": open_npy,
    ".npz": open_npz,
    ".mat": open_mat,
    ".h5": open_h5,
    ".hdf5": open_h5,
    ".tif": open_stack,
    ".tiff": open_stack,
}


def _of_array(
    table: Table,
    columns: Sequence[str] | None,
    drop: Sequence[str],
    missing: Sequence[float] | None,
) -> Table:
    """Those columns of an array that are asked for, with infinite numbers taken as missing."""
    n_infinite = int(np.isinf(table.X).sum())
    if n_infinite:
        X = np.where(np.isinf(table.X), np.nan, table.X).astype(table.X.dtype)
        table = replace(table, X=X, remarks=[*table.remarks, infinite(n_infinite)])
    if table.image_shape is None or missing is not None:
        X, codes = without_codes(table.X, missing)
        table = replace(table, X=X, remarks=[*table.remarks, *coded(codes)])
    dropped = chosen(drop, table.names)
    if columns is None and not dropped:
        return table
    names = chosen(table.names if columns is None else columns, table.names)
    names = [name for name in names if name not in dropped]
    places = [table.names.index(name) for name in names]
    left_out = {name: "not chosen" for name in table.names if name not in names}
    return replace(
        table, X=table.X[:, places], names=names, left_out=left_out, image_shape=None
    )  # fmt: skip


def _of_frame(
    path: Path,
    source: Source,
    columns: Sequence[str] | None,
    drop: Sequence[str],
    index: str | None,
    missing: Sequence[float] | None,
) -> Table:
    """A table of the columns that are used, and of all others as they are."""
    frame, text = source.frame, source.text
    layout = Layout() if text is None else text.layout
    if not len(frame):
        long = text is not None and any("\n" in name for name in text.names)
        hint = ": is there a quote without an end?" if long else "."
        raise ValueError(f"{path} has names of columns and no rows{hint}")
    padded = set() if text is None else text.padded(frame)
    choice = choose(frame, columns, index, layout.decimal, drop, missing, padded)
    if not choice.numbers:
        shown = [f"{name or 'unnamed'} ({why})" for name, why in choice.left_out.items()]
        raise ValueError(f"No column of {path} holds measurements: {', '.join(shown[:10])}.")
    remarks = list(source.remarks)
    lines = None
    if text is not None:
        frame = _to_the_letter(text, frame, {*choice.left_out, *choice.wrong})
        lines = text.lines()
        last = frame.iloc[:, -1]
        remarks += _short(text) if (last.isna() | last.isin([""])).any() else []
    labels = [str(i + 1) for i in range(len(frame))]
    if choice.index is not None:
        cells = text_of(frame[choice.index])
        labels = [cell.strip() or label for cell, label in zip(cells, labels, strict=True)]
    X = choice.matrix()
    empty = np.asarray(np.isnan(X).all(axis=1))  # such rows are told as a whole
    for name, places in list(choice.wrong.items()):
        choice.wrong[name] = [place for place in places if not empty[place]]
    return Table(
        X=X,
        names=list(choice.numbers),
        labels=labels,
        left_out=choice.left_out,
        frame=frame,
        image_shape=None,
        path=path,
        remarks=remarks + wrong_cells(choice, frame, lines),
        layout=layout,
        text=text,
    )


def _without_empty_rows(table: Table) -> Table:
    """The table without rows of which nothing can be said; they are written as they are."""
    empty = np.asarray(np.isnan(table.X).all(axis=1))
    if not empty.any() or table.frame is None or table.X.shape[1] == 1:
        return table
    first = table.labels[int(np.argmax(empty))]
    where, verb = ("row", "is") if empty.sum() == 1 else ("the first is row", "are")
    number = f"{counted(int(empty.sum()), 'row')} ({where} {first})"
    return replace(
        table,
        X=table.X[~empty],
        labels=[label for label, gone in zip(table.labels, empty, strict=True) if not gone],
        frame=table.frame[~empty],
        unused=table.frame[empty],
        remarks=[*table.remarks, f"{number} without any number {verb} left out."],
    )


def of_frame(frame: Any) -> Table:
    """A table from a data frame of pandas: its index names the rows, unless that only counts them.

    Parameters
    ----------
    frame : pandas.DataFrame
        Numbers, and perhaps texts, dates and names of rows.

    Returns
    -------
    table : Table
        As if it had been read from a file, but without a look for codes of missing numbers.
    """
    named = frame.set_axis(unique_names([str(name) for name in frame.columns]), axis=1)
    table = _of_frame(Path("data"), Source(named.reset_index(drop=True), []), None, (), None, [])
    counts = list(frame.index) == list(range(len(frame)))
    names_rows = {"row names", "row numbers"} & set(table.left_out.values())
    labels = table.labels if counts and names_rows else [str(label) for label in frame.index]
    return replace(table, labels=labels, frame=named)


def _to_the_letter(text: Text, frame: Any, names: set[str]) -> Any:
    """The frame with some columns as they stand in the text: 007 is no 7, NA may be Namibia.

    The other columns get the plain types of NumPy, except for whole numbers with missing cells.
    """
    places = [place for place, name in enumerate(frame.columns) if name in names]
    exact = text.frame(places) if places else None
    columns = {}
    for name in frame.columns:
        column = frame[name] if name not in names or exact is None else exact[name].fillna("")
        kind = str(column.dtype)
        if kind == "Float64" or (kind in ("Int64", "boolean") and not column.isna().any()):
            column = column.astype({"boolean": "bool"}.get(kind, kind.lower()))
        columns[name] = column
    return type(frame)(columns)


def _short(text: Text) -> list[str]:
    short = text.short_lines()
    if not short:
        return []
    number = f"{counted(len(short), 'line')} {'ends' if len(short) == 1 else 'end'}"
    return [
        f"{number} before the last column (the first is line {short[0]}); what lacks counts as "
        "missing."
    ]
