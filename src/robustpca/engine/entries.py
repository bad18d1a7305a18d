"""Matrices of few entries, which are made a tile of rows at a time."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.blocks import slices
from robustpca.engine.linalg import Array, csr_of, row_counts
from robustpca.engine.scratch import Pieces, cast, each, empty_beside, let_go
from robustpca.engine.svt import row_tiles

# A sparse matrix with a larger share of entries takes more memory than a dense array.
DENSE_SHARE = 1 / 3
# Entries that are looked at at a time.
LISTED = 1 << 18


class EntryList:
    """Entries of a matrix, listed a tile of rows at a time where the data are."""

    def __init__(self, beside: Array, dtype: Any) -> None:
        self.entries, self.columns = Pieces(beside, dtype), Pieces(beside, np.int32)
        self.counts = Pieces(beside, np.int64)

    def append(self, entries: Array, columns: Array, counts: Array) -> None:
        """Add the entries of the next rows: their columns, and how many are in each row."""
        self.entries.append(entries)
        self.columns.append(columns)
        self.counts.append(counts)

    def add_tile(self, tile: Array) -> None:
        """Add the entries of the next rows, given with their zeros."""
        some = csr_of(tile)
        self.append(some.data, some.indices, np.diff(some.indptr))

    def extend(self, other: "EntryList") -> None:
        """Add all entries of another list."""
        for mine, others in zip(vars(self).values(), vars(other).values(), strict=True):
            mine.extend(others)


def joined(lists: Iterable[EntryList], beside: Array) -> Any:
    """A sparse matrix from the lists of its parts: of the shape of the data, where these are."""
    whole, *others = lists
    while others:
        whole.extend(others.pop(0))
    entries, columns, counts = (pieces.array() for pieces in vars(whole).values())
    index = np.int32 if len(entries) <= np.iinfo(np.int32).max else np.int64
    starts, total = empty_beside(beside, (len(beside) + 1,), index), 0
    starts[0] = 0
    for place in each(slices(len(counts), LISTED), counts, starts):
        starts[place.start + 1 : place.stop + 1] = total + np.cumsum(counts[place])
        total = int(starts[place.stop])
    matrix = sparse.csr_array((entries, cast(columns, index), starts), shape=beside.shape)
    let_go(matrix.data, matrix.indices, matrix.indptr)
    return matrix


def compact(A: Any, beside: Array | None = None) -> Any:
    """A matrix as a sparse or a dense array, whichever takes less memory.

    A sparse matrix that becomes dense is written where ``beside`` is.
    """
    most = DENSE_SHARE * np.prod(A.shape)
    if not sparse.issparse(A):
        counts = row_counts(A)
        return csr_of(A, counts) if counts.sum() <= most else A
    few = n_nonzero(A) <= most
    if few or beside is None:
        return A if few else A.toarray()
    out = empty_beside(beside, dtype=A.dtype)
    for place in each(row_tiles(out.shape), out):
        out[place] = A[place].toarray()
    return out


def n_nonzero(A: Any) -> int:
    """Number of entries that are not zero."""
    if sparse.issparse(A):
        places = each(slices(len(A.data), LISTED), A.data)
        return sum(int(np.count_nonzero(A.data[place])) for place in places)
    return sum(int(np.count_nonzero(A[place])) for place in each(row_tiles(A.shape), A))
