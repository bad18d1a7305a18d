"""Arrays in scratch files, for loops whose state is as large as data that memory cannot hold.

A scratch array is an ordinary array whose memory is a temporary file, mapped: it is paged in
where it is read, and goes with the last reference to it, also if the program is killed. What is
made from a scratch array and is as large goes to a scratch file too, if it is made by
`empty_beside`; so the same code, line by line, works on data in memory and on data that are not.

Pages that were read count as memory of the process until they are let go. A pass over rows
therefore takes its places from `in_groups`, which lets go of them now and then.
"""

import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from robustpca.engine.blocks import cached_rows, even_slices, slices
from robustpca.engine.linalg import Array

T = TypeVar("T")

# Bytes of scratch arrays that a group of places may go over before their pages are let go.
GROUP_BYTES = 1 << 26
# Columns of a matrix that are laid out anew at a time.
TURNED_COLUMNS = 1 << 14
# Rows that are gathered from anywhere at a time: each may bring a few pages of its neighbours.
GATHERED_ROWS = 1024
# Rows over which a sum is one call; those of a longer array are parts that are added up.
SUMMED_ROWS = 1 << 16


class _Pages(mmap.mmap):
    """A mapped scratch file."""


def empty_scratch(shape: tuple[int, ...], dtype: Any) -> Array:
    """A new array in a scratch file, in the folder for temporary files (``TMPDIR``)."""
    size = max(int(np.prod(shape)) * np.dtype(dtype).itemsize, 1)
    with tempfile.TemporaryFile() as file:
        with _advised(size):
            _reserve(file.fileno(), size)
        pages = _Pages(file.fileno(), size)
    return np.ndarray(shape, dtype, buffer=pages)


@contextmanager
def _advised(size: int) -> Iterator[None]:
    """Say what to do if there is no room for so many bytes."""
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir()
        raise OSError(
            error.errno,
            f"No room for {size / 1e9:.2f} GB of scratch space in {folder}, where "
            f"{shutil.disk_usage(folder).free / 1e9:.2f} GB are free. Set the environment "
            "variable TMPDIR to a folder on a larger disk",
        ) from error


def _reserve(file: int, size: int) -> None:
    """Take the space now: a write to a mapped page that finds none would end the program."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


def empty_beside(A: Array, shape: tuple[int, ...] | None = None, dtype: Any = None) -> Array:
    """A new array where ``A`` is, in memory or in a scratch file; by default of its shape."""
    make = empty_scratch if is_scratch(A) else np.empty
    return make(A.shape if shape is None else shape, A.dtype if dtype is None else dtype)


def placed(A: Array, beside: Array) -> Array:
    """``A`` with its layout, where another array is: itself if it is there already."""
    if is_scratch(A) == is_scratch(beside):
        return A
    if not A.flags.c_contiguous:
        return placed(A.T, beside).T
    out = empty_beside(beside, A.shape, A.dtype)
    out[...] = A
    let_go(out)
    return out


def is_scratch(A: Array) -> bool:
    """Whether an array or view is in a scratch file."""
    return _pages(A) is not None


def _pages(A: Any) -> _Pages | None:
    while isinstance(A, np.ndarray):
        A = A.base
    return A if isinstance(A, _Pages) else None


def let_go(*arrays: Array) -> None:
    """Take the pages of scratch arrays out of this process's memory; none of them is lost."""
    for pages in map(_pages, arrays):
        if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


def in_groups(jobs: Sequence[T], *arrays: Array) -> Iterator[Sequence[T]]:
    """Cut the jobs of a pass over some arrays into groups; scratch pages are let go after each.

    For arrays in memory there is one group.
    """
    mapped = [A for A in arrays if is_scratch(A)]
    n_groups = max(1, -(-sum(A.nbytes for A in mapped) // GROUP_BYTES))
    for part in even_slices(len(jobs), n_groups):
        yield jobs[part]
        let_go(*mapped)


def each(jobs: Sequence[T], *arrays: Array) -> Iterator[T]:
    """The jobs of a pass over some arrays, one by one; scratch pages are let go now and then."""
    for group in in_groups(jobs, *arrays):
        yield from group


def of_rows(
    function: Callable[[Array], Array], A: Array, dtype: Any = None, n_columns: int | None = None
) -> Array:
    """What a function gives for the rows of ``A``, in an array that is where ``A`` is.

    It has the shape of ``A``, but for the number of columns if that is given.
    """
    out = empty_beside(A, A.shape if n_columns is None else (len(A), n_columns), dtype)
    row_bytes = A[:1].nbytes
    for place in each(slices(len(A), cached_rows(row_bytes)), A, out):
        out[place] = function(A[place])
    return out


def cast(A: Array, dtype: Any) -> Array:
    """A matrix in another precision, where it is; itself if it is of that type already."""
    if A.dtype == dtype or not is_scratch(A):
        return A.astype(dtype, copy=False)
    return of_rows(lambda rows: rows, A, dtype)


def summed_parts(A: Array) -> list[slice]:
    """Parts of the rows of ``A`` that sums are made of: one part if they are few."""
    return slices(len(A), SUMMED_ROWS)


def summed(function: Callable[[Array], Any], A: Array) -> Any:
    """The sum of what a function gives for such parts."""
    return sum(function(A[place]) for place in each(summed_parts(A), A))


class Pieces:
    """Numbers that come piece by piece, and are kept where another array is."""

    def __init__(self, beside: Array, dtype: Any) -> None:
        self.parts, self.file = [np.empty(0, dtype)], None
        if is_scratch(beside):
            self.file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the next line
            weakref.finalize(self, self.file.close)

    def append(self, part: Array) -> None:
        """Add some numbers at the end."""
        part = part.astype(self.parts[0].dtype)
        if self.file is None:
            self.parts.append(part)
            return
        with _advised(part.nbytes):
            self.file.write(part.data)

    def extend(self, other: "Pieces") -> None:
        """Add all numbers of another one, which are in the same place."""
        if self.file is None:
            self.parts += other.parts
            return
        numbers = other.array()
        for place in each(summed_parts(numbers), numbers):
            self.append(numbers[place])

    def array(self) -> Array:
        """All numbers as one array."""
        if self.file is None:
            return np.concatenate(self.parts)
        with _advised(0):
            self.file.flush()
        dtype, size = self.parts[0].dtype, self.file.tell()
        if size == 0:
            return empty_scratch((0,), dtype)
        pages = _Pages(self.file.fileno(), size)
        return np.ndarray((size // dtype.itemsize,), dtype, buffer=pages)


def contiguous(A: Array, dtype: Any) -> Array:
    """A matrix in C order and of some type, where it is; itself if it is so already."""
    if not is_scratch(A):
        return np.ascontiguousarray(A, dtype)
    if A.flags.c_contiguous:
        return A if A.dtype == dtype else of_rows(lambda rows: rows, A, dtype)
    out = empty_beside(A, dtype=dtype)
    for place in slices(A.shape[1], TURNED_COLUMNS):
        out[:, place] = A[:, place]
        let_go(A, out)
    return out


def taken(A: Array, chosen: slice) -> Array:
    """Some rows of ``A``, in memory and in C order."""
    if not is_scratch(A):
        return np.ascontiguousarray(A[chosen])
    rows, parts = range(len(A))[chosen], [A[:0].copy()]
    # Each row may bring many pages of its neighbours, up to all between it and the next one.
    span = abs(rows.step) * A[:1].nbytes
    for place in slices(len(rows), max(1, GROUP_BYTES // max(4 * span, 1))):
        parts.append(A[rows[place]])
        let_go(A)
    return np.concatenate(parts)


def gathered(A: Array, order: Array) -> Array:
    """The rows of ``A`` in another order, where ``A`` is."""
    out = empty_beside(A)
    for place in slices(len(A), GATHERED_ROWS):
        out[place] = A[order[place]]
        let_go(A, out)
    return out
