"""Matrices of few entries, made of the lists of their tiles."""

import numpy as np
import pytest
from scipy import sparse

from robustpca.engine.entries import EntryList, compact, joined, n_nonzero
from robustpca.engine.scratch import empty_scratch, is_scratch


def few(rng, share, shape=(300, 40)):
    return np.where(rng.random(shape) < share, rng.normal(size=shape), 0.0)


def test_the_lists_of_tiles_are_joined_in_order(rng):
    A = few(rng, 0.1)
    A[50:60] = 0  # rows without entries
    for beside in (A, empty_scratch(A.shape, A.dtype)):
        first, second = EntryList(beside, A.dtype), EntryList(beside, A.dtype)
        first.add_tile(A[:100])
        first.add_tile(A[100:101])
        rows = sparse.csr_array(A[101:])
        second.append(rows.data, rows.indices, np.diff(rows.indptr))
        found = joined([first, second], beside)
        np.testing.assert_array_equal(found.toarray(), A)
        for array in (found.data, found.indices, found.indptr):
            assert is_scratch(array) == is_scratch(beside)
            assert array.dtype in (A.dtype, np.int32)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_what_takes_less_memory_is_kept_where_the_data_are(share, rng):
    A, beside = few(rng, share), empty_scratch((300, 40), np.float64)
    for given in (A, sparse.csr_array(A)):
        for place in (None, A, beside):
            found = compact(given, place)
            assert sparse.issparse(found) == (share < 1 / 3)
            assert n_nonzero(found) == np.count_nonzero(A)
            dense = found.toarray() if sparse.issparse(found) else found
            np.testing.assert_array_equal(dense, A)
    assert is_scratch(compact(sparse.csr_array(A), beside)) == (share > 1 / 3)
