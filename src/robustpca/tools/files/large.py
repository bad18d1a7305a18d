"""Files of arrays that memory need not hold: they are read and written in blocks of rows."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.engine.blocks import even_slices
from robustpca.engine.dask_rows import as_dask, lazy_rows
from robustpca.engine.linalg import Array
from robustpca.engine.rows import BLOCK_BYTES
from robustpca.tools.files.arrays import column_names, find_h5, find_zarr
from robustpca.tools.files.reading import placed
from robustpca.tools.files.table import Table, counted, extra, kind_of

__all__ = ["LARGE", "LargeTable", "open_large", "row_writer", "write_h5", "write_zarr"]

# Arrays of more bytes are not read at once.
LARGE = 1 << 26
# Rows by which units and missing cells of a large file are judged, and in how many places they are.
SAMPLED_ROWS, SAMPLED_PLACES = 1024, 64
# What an HDF5 file of one array holds beside it, and more.
H5_BYTES = 1 << 14


@dataclass(frozen=True)
class LargeTable(Table):
    """Numbers of a file that stay there: ``X`` is an array on disk, and rows have no labels."""

    on_cluster: bool = False

    @property
    def rows(self) -> Any:
        """The rows on disk; on a cluster as a Dask array, whose tasks hold paths."""
        return as_dask(self.X) if self.on_cluster else self.X

    def summary(self) -> str:
        """What is known of the file before it is read."""
        n_rows, n_columns = self.X.shape
        return (
            f"{self.title}: {counted(n_rows, 'row')}, {counted(n_columns, 'numeric column')} used; "
            "read in blocks of rows."
        )

    def sample(self) -> Array:
        """Some rows from all over the file, which is read once for them."""
        return self._sample

    @cached_property
    def _sample(self) -> Array:
        places = even_slices(self.X.shape[0], SAMPLED_PLACES)
        size = -(-SAMPLED_ROWS // len(places))
        parts = [self.X[place.start : min(place.start + size, place.stop)] for place in places]
        sample = np.concatenate([np.asarray(part) for part in parts])
        return sample.astype(sample.dtype if sample.dtype == np.float32 else float, copy=False)


@contextmanager
def open_large(
    path: Any, key: str | None = None, least: int | None = None
) -> Iterator[LargeTable | None]:
    """Open an array in a file of NumPy, HDF5 or zarr, if it is large.

    Parameters
    ----------
    path : str or path-like
        A file: ``.npy``, ``.h5`` or ``file.h5:dataset``, ``.zarr``.
    key : str, default=None
        Name of the array in a file of several.
    least : int, default=None
        Bytes from which on an array is large; None for `LARGE`.

    Yields
    ------
    table : LargeTable or None
        None if the file is of another kind, or small, or holds no table of numbers: it should be
        read at once, which also tells what may be wrong with it.
    """
    path, key = placed(path, key)
    opened = OPENED.get(kind_of(path))
    if opened is None or not path.exists():
        yield None
        return
    with opened(path.absolute(), key) as X:
        usable = X is not None and X.ndim == 2 and X.dtype.kind in "biuf" and X.size > 0
        least = LARGE if least is None else least
        if not usable or X.size * X.dtype.itemsize < least or lazy_rows(X) is None:
            yield None
            return
        names = column_names(X.shape[1], None)
        yield LargeTable(X, names, [], {}, frame=None, image_shape=None, path=path)


@contextmanager
def _open_npy(path: Path, key: str | None) -> Iterator[Any]:
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError):  # reading it at once tells what is wrong
        X = None
    yield X


@contextmanager
def _open_h5(path: Path, key: str | None) -> Iterator[Any]:
    h5py = extra("h5py", "Reading HDF5 files", "hdf5")
    if not h5py.is_hdf5(path):
        yield None
        return
    with h5py.File(path, "r") as file:
        yield find_h5(file, path, key)


@contextmanager
def _open_zarr(path: Path, key: str | None) -> Iterator[Any]:
    yield find_zarr(path, key)


OPENED: dict[str, Callable[[Path, str | None], Any]] = {
    ".npy": _open_npy,
    ".h5": _open_h5,
    ".hdf5": _open_h5,
    ".zarr": _open_zarr,
}


@contextmanager
def row_writer(path: Path, shape: tuple[int, ...], dtype: Any) -> Iterator[Callable[[Array], None]]:
    """Write an array to a file some rows at a time.

    Parameters
    ----------
    path : Path
        A file whose kind is in `WRITERS`.
    shape : tuple of int
        Shape of the whole array.
    dtype : dtype
        Type of its numbers.

    Yields
    ------
    write : callable
        Takes the next rows.
    """
    with WRITERS[kind_of(path)](path, shape, np.dtype(dtype)) as write:
        yield write


@contextmanager
def _npy_writer(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Iterator[Callable[[Array], None]]:
    header = {"shape": shape, "fortran_order": False}
    header["descr"] = np.lib.format.dtype_to_descr(dtype)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        yield lambda rows: np.ascontiguousarray(rows, dtype).tofile(file)


@contextmanager
def _h5_writer(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Iterator[Callable[[Array], None]]:
    h5py = extra("h5py", "Writing HDF5 files", "hdf5")
    _reserve(path, dtype.itemsize * int(np.prod(shape)) + H5_BYTES)
    with h5py.File(path, "w") as file:
        yield _filler(file.create_dataset("X", shape=shape, dtype=dtype))


@contextmanager
def _zarr_writer(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Iterator[Callable[[Array], None]]:
    zarr = extra("zarr", "Writing zarr files", "zarr")
    row_bytes = dtype.itemsize * int(np.prod(shape[1:]))
    rows = min(max(shape[0], 1), max(1, BLOCK_BYTES // max(row_bytes, 1)))
    chunks = (rows, *shape[1:])
    yield _filler(zarr.create_array(str(path), shape=shape, chunks=chunks, dtype=dtype))


def _reserve(path: Path, n_bytes: int) -> None:
    """OSError if the disk has no room for a file; HDF5 would end the process when it finds out."""
    if hasattr(os, "posix_fallocate"):
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, n_bytes)


def _filler(array: Any) -> Callable[[Array], None]:
    """What writes rows to an array, one block behind the other."""
    at = 0

    def write(rows: Array) -> None:
        nonlocal at
        array[at : at + len(rows)] = rows
        at += len(rows)

    return write


def write_zarr(path: Path, X: Array) -> None:
    """Write an array to a folder of zarr."""
    with _zarr_writer(path, X.shape, X.dtype) as write:
        write(X)


def write_h5(path: Path, X: Array) -> None:
    """Write an array to an HDF5 file."""
    with _h5_writer(path, X.shape, X.dtype) as write:
        write(X)


WRITERS: dict[str, Callable[..., Any]] = {
    ".npy": _npy_writer,
    ".h5": _h5_writer,
    ".zarr": _zarr_writer,
}
