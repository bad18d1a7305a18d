"""Matrices of few entries, which are made a tile of rows at a time."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array, csr_of
from robustpca.engine.scratch import each, empty_beside
from robustpca.engine.svt import row_tiles

# A sparse matrix with a larger share of entries takes more memory than a dense array.
DENSE_SHARE = 1 / 3


def joined(parts: Iterable[tuple[Array, Array, Array]], shape: tuple[int, ...]) -> Any:
    """A sparse matrix from entries, columns and numbers of entries in the rows of its tiles."""
    entries, columns, counts = map(np.concatenate, zip(*parts, strict=True))
    starts = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((entries, columns, starts), shape=shape)


def compact(A: Any, beside: Array | None = None) -> Any:
    """A matrix as a sparse or a dense array, whichever takes less memory.

    A sparse matrix that becomes dense is written where ``beside`` is.
    """
    few = n_nonzero(A) <= DENSE_SHARE * np.prod(A.shape)
    if not sparse.issparse(A):
        return csr_of(A) if few else A
    if few or beside is None:
        return A if few else A.toarray()
    out = empty_beside(beside, dtype=A.dtype)
    for place in each(row_tiles(out.shape), out):
        out[place] = A[place].toarray()
    return out


def n_nonzero(A: Any) -> int:
    """Number of entries that are not zero."""
    if sparse.issparse(A):
        return int(np.count_nonzero(A.data))
    return sum(int(np.count_nonzero(A[place])) for place in each(row_tiles(A.shape), A))
