"""Write tables in the format in which they were read."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.tools.files.columns import text_of
from robustpca.tools.files.images import write_stack
from robustpca.tools.files.large import write_h5, write_zarr
from robustpca.tools.files.numbers import Marks, marks_of
from robustpca.tools.files.table import Layout, Table, extra, kind_of

__all__ = ["WRITABLE", "check_writable", "with_values", "write_like"]


def with_values(table: Table, X: Any) -> Any:
    """The table with other numbers in the columns that are used.

    Parameters
    ----------
    table : Table
        As it was read.
    X : array of shape (n_samples, n_features)
        Numbers for `Table.names`.

    Returns
    -------
    frame : pandas.DataFrame or ndarray
        All columns of the table in their order, with their types where the numbers allow it; for
        arrays and images an array of the shape that was read.
    """
    X = np.asarray(X)
    if X.shape != table.X.shape:
        raise ValueError(f"X has shape {X.shape}, and the table has {table.X.shape}.")
    if table.frame is None:
        return X.reshape(len(X), *(table.image_shape or X.shape[1:]))
    frame = table.frame.copy()
    for name, values in zip(table.names, X.T, strict=True):
        frame[name] = _like(frame[name], values)
    return frame


def write_like(table: Table, frame: Any, path: Any) -> None:
    """Write a data frame or an array in the format of the extension.

    Parameters
    ----------
    table : Table
        Text gets its separator, decimal mark, encoding and line of names.
    frame : pandas.DataFrame or array
        What to write.
    path : str or path-like
        ``.csv``, ``.tsv``, ``.txt`` (also with ``.gz``), ``.xlsx``, ``.parquet``, ``.npy``,
        ``.npz``, ``.mat``, ``.h5``, ``.zarr``, and for images ``.tif``. A file that is there is
        replaced: `Outputs` guards against that.
    """
    path = Path(path)
    check_writable(path)
    WRITABLE[kind_of(path)](table, frame, path)


def check_writable(path: Path) -> None:
    """Refuse a file of a kind that cannot be written, before there is anything to write."""
    if kind_of(path) not in WRITABLE:
        raise ValueError(f"{path} is of no kind that can be written: use {', '.join(WRITABLE)}.")


def _like(column: Any, values: Array) -> Any:
    """Numbers in the type of a column, if it can hold them."""
    kind = str(column.dtype).lower()
    missing = np.isnan(values)
    whole = bool((values == np.round(values))[~missing].all())
    if re.fullmatch(r"u?int\d*", kind) and whole and _fits(values[~missing], kind):
        nullable = kind.replace("int", "Int").replace("uI", "UI")
        exact = column.copy() if not missing.any() else column.astype(nullable)
        changed = ~(column.to_numpy(dtype=np.float64, na_value=np.nan) == values)
        filled = changed & ~missing
        exact[filled] = values[filled].astype(np.int64)
        exact[missing] = None
        return exact
    if kind in ("bool", "boolean") and not missing.any() and np.isin(values, (0, 1)).all():
        return values.astype(bool)
    if kind == "object" and whole:  # numbers with text among them
        return type(column)(values, index=column.index).astype("Int64")
    if kind == "float32" or values.dtype == np.float32:
        return values.astype(np.float32)
    return values.astype(np.float64)


def _fits(values: Array, kind: str) -> bool:
    limits = np.iinfo(kind)
    return bool(((values >= limits.min) & (values <= limits.max)).all())


def _frame(table: Table, frame: Any) -> Any:
    """A data frame, from an array too: its columns have the names of the table if they can."""
    if hasattr(frame, "columns"):
        return _completed(table, _to_the_letter(table, frame))
    X = np.asarray(frame)
    X = X.reshape(len(X), -1)
    names = table.names
    if len(names) != X.shape[1]:
        names = [f"column {i + 1}" for i in range(X.shape[1])]
    return extra("pandas", "Writing tables").DataFrame(X, columns=names)


def _array(table: Table, frame: Any) -> Array:
    """An array, from a data frame too: its columns of numbers."""
    if not hasattr(frame, "columns"):
        return np.asarray(frame)
    numbers = frame.select_dtypes(["number", "bool"]).reindex(_completed(table, frame).index)
    return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))


def _completed(table: Table, frame: Any) -> Any:
    """A frame of what is known of the rows, with those among them of which nothing is known."""
    if table.unused is None or table.frame is None or len(frame) != len(table.X):
        return frame
    if not frame.index.equals(table.frame.index):
        return frame
    shared = [name for name in frame if name in table.unused]
    truth = {name: "boolean" for name in frame if frame[name].dtype == bool}
    pandas = extra("pandas", "Writing tables")
    return pandas.concat([frame.astype(truth), table.unused[shared]]).sort_index()[list(frame)]


def _write_text(table: Table, frame: Any, path: Path) -> None:
    frame = _frame(table, frame)
    layout = table.layout
    separator = "\t" if kind_of(path) == ".tsv" else layout.separator
    if separator == "," and layout.decimal == ",":
        layout = Layout(separator, ".", layout.header, layout.encoding)
    # Columns that were added need names, even if the others had none.
    header = layout.header or table.frame is None or list(frame) != list(table.frame)
    options = {
        "sep": separator,
        "decimal": layout.decimal,
        "header": header,
        "index": False,
        "compression": "gzip" if path.suffix.lower() == ".gz" else None,
    }
    try:
        frame.to_csv(path, encoding=layout.encoding, **options)
    except UnicodeEncodeError:
        frame.to_csv(path, encoding="utf-8", **options)


def _to_the_letter(table: Table, frame: Any) -> Any:
    """A frame in which every number of the table that is the same as in its text is that text.

    In workbooks and the like, numbers with units beside them are text.
    """
    if table.frame is None or len(frame) != len(table.X):
        return frame
    if list(frame)[: table.frame.shape[1]] != list(table.frame):  # another table
        return frame
    types = extra("pandas", "Writing tables").api.types
    numeric = [name for name in table.names if types.is_numeric_dtype(frame[name].dtype)]
    if table.text is not None:
        exact = table.text.frame([list(table.frame).index(name) for name in numeric])
        exact = exact.loc[table.frame.index].fillna("")
    else:
        exact = table.frame[[name for name in numeric if str(marks_in(table.frame[name]))]]
    frame = frame.copy()
    for name in exact:
        values = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        given = table.X[:, table.names.index(name)]
        changed = ~((values == given) | (np.isnan(values) & np.isnan(given)))
        cells = exact[name].copy()
        if changed.any():
            marks, mark = marks_in(cells), table.layout.decimal
            whole = not any(mark in cell for cell in text_of(cells))
            cells[changed] = [
                "" if np.isnan(v) else marks.put_on(_text(v, whole).replace(".", mark))
                for v in values[changed]
            ]
        frame[name] = cells
    return frame


def marks_in(column: Any) -> Marks:
    """What stands beside the numbers of a column, if these are text."""
    types = extra("pandas", "Writing tables").api.types
    is_text = types.is_object_dtype(column) or types.is_string_dtype(column)
    return marks_of([cell for cell in text_of(column) if cell] if is_text else [])


def _text(value: float, whole: bool) -> str:
    return str(int(value)) if whole and value.is_integer() else repr(float(value))


def _write_excel(table: Table, frame: Any, path: Path) -> None:
    extra("openpyxl", "Writing workbooks")
    with _archive(path) as book:
        _frame(table, frame).to_excel(book, index=False, engine="openpyxl")


@contextmanager
def _archive(path: Path) -> Iterator[io.BytesIO]:
    """A zip file in memory: on a full disk it would complain once more when it is closed."""
    archive = io.BytesIO()
    yield archive
    # Released also after an error, unlike what `Path.write_bytes` makes of it: one that is left
    # behind is complained of on the screen.
    with path.open("wb") as file, archive.getbuffer() as content:
        file.write(content)


def _write_parquet(table: Table, frame: Any, path: Path) -> None:
    extra("pyarrow", "Writing parquet files")
    _frame(table, frame).to_parquet(path, index=False)


def _write_npy(table: Table, frame: Any, path: Path) -> None:
    with path.open("wb") as file:  # NumPy would add an extension to other names
        np.save(file, _array(table, frame))


def _write_npz(table: Table, frame: Any, path: Path) -> None:
    with _archive(path) as file:
        np.savez_compressed(file, X=_array(table, frame))


def _write_mat(table: Table, frame: Any, path: Path) -> None:
    from scipy.io import savemat

    with path.open("wb") as file:
        savemat(file, {"X": _array(table, frame)}, do_compression=True)


def _write_tiff(table: Table, frame: Any, path: Path) -> None:
    write_stack(table, np.asarray(frame), path)


def _write_h5(table: Table, frame: Any, path: Path) -> None:
    write_h5(path, _array(table, frame))


def _write_zarr(table: Table, frame: Any, path: Path) -> None:
    write_zarr(path, _array(table, frame))


# What writes a file of each kind, given the table that was read.
WRITABLE: dict[str, Callable[[Table, Any, Path], None]] = {
    ".csv": _write_text,
    ".tsv": _write_text,
    ".txt": _write_text,
    ".dat": _write_text,
    ".xlsx": _write_excel,
    ".parquet": _write_parquet,
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".mat": _write_mat,
    ".h5": _write_h5,
    ".zarr": _write_zarr,
    ".tif": _write_tiff,
    ".tiff": _write_tiff,
}
