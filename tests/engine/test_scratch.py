"""Arrays in scratch files: what is made beside them, and pages that are let go."""

import errno
import tempfile

import numpy as np
import pytest

from robustpca.engine import neighbors, scratch
from robustpca.engine.neighbors import nearest_neighbors
from robustpca.engine.scratch import (
    Pieces,
    cast,
    contiguous,
    each,
    empty_beside,
    empty_scratch,
    gathered,
    in_groups,
    is_scratch,
    let_go,
    of_rows,
    placed,
    summed,
    taken,
)


def in_file(A):
    """The same array in a scratch file."""
    out = empty_scratch(A.shape, A.dtype)
    out[...] = A
    return out


def test_views_are_scratch_arrays_and_copies_are_not(rng):
    A = in_file(rng.normal(size=(50, 7)))
    for view in (A, A[3:9], A[::2], A.T, A[:, 1:3], A[4], A.view()):
        assert is_scratch(view)
    for other in (A.copy(), A[[1, 2]], A + 1, np.zeros(3)):
        assert not is_scratch(other)


def test_pages_that_are_let_go_come_back(rng):
    expected = rng.normal(size=(3000, 40))
    A = in_file(expected)
    let_go(A, expected)
    A[7] = expected[7] = 5.0
    let_go(A[10:20])
    np.testing.assert_array_equal(A, expected)


def test_new_arrays_are_where_the_old_ones_are(rng):
    inside, outside = rng.normal(size=(5, 3)), in_file(rng.normal(size=(5, 3)))
    for A in (inside, outside):
        for new in (empty_beside(A), empty_beside(A, (4, 2), np.float32)):
            assert is_scratch(new) == is_scratch(A)
        assert empty_beside(A).shape == (5, 3)
        assert empty_beside(A).dtype == np.float64
        assert empty_beside(A, (4, 2), np.float32).shape == (4, 2)
        assert empty_beside(A, (4, 2), np.float32).dtype == np.float32


def test_files_have_no_name_and_go_with_the_array(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    A = empty_scratch((100, 10), np.float32)
    A[:] = 1
    assert list(tmp_path.iterdir()) == []
    del A
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_with_what_to_do(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch, "_reserve", full)
    with pytest.raises(OSError, match=r"No room for 0\.80 GB.*GB are free.*TMPDIR") as raised:
        empty_scratch((10_000_000, 10), np.float64)
    assert raised.value.errno == errno.ENOSPC


def test_groups_hold_all_jobs_in_order_and_as_few_bytes_as_asked_for(monkeypatch):
    jobs, inside, outside = list(range(23)), np.zeros((100, 10)), empty_scratch((100, 10), float)
    assert [list(group) for group in in_groups(jobs, inside)] == [jobs]
    assert [list(group) for group in in_groups(jobs, outside)] == [jobs]
    monkeypatch.setattr(scratch, "GROUP_BYTES", 3000)
    assert [list(group) for group in in_groups(jobs, inside)] == [jobs]
    groups = [list(group) for group in in_groups(jobs, outside, inside)]
    assert len(groups) == 3
    assert [job for group in groups for job in group] == jobs == list(each(jobs, outside))
    assert len(list(in_groups(jobs, outside, outside.copy(), outside))) == 6
    assert list(each([], outside)) == []


def test_rows_in_another_order_and_columns_as_rows(rng, monkeypatch):
    monkeypatch.setattr(scratch, "TURNED_COLUMNS", 16)
    monkeypatch.setattr(scratch, "GATHERED_ROWS", 16)
    X, order = rng.normal(size=(130, 9)), rng.permutation(130)
    A = in_file(X)
    np.testing.assert_array_equal(gathered(A, order), X[order])
    turned = contiguous(A.T, np.float32)
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, X.T.astype(np.float32))
    assert is_scratch(gathered(A, order))
    assert is_scratch(turned)
    assert contiguous(A, np.float64) is A


def test_functions_of_rows_and_other_types_stay_where_the_array_is(rng, monkeypatch):
    monkeypatch.setattr(scratch, "GROUP_BYTES", 1 << 12)
    X = rng.normal(size=(900, 9))
    for A in (X, in_file(X)):
        doubled, rounded = of_rows(lambda rows: 2 * rows, A), contiguous(A, np.float32)
        np.testing.assert_array_equal(doubled, 2 * X)
        np.testing.assert_array_equal(rounded, X.astype(np.float32))
        assert rounded.dtype == np.float32
        assert is_scratch(doubled) == is_scratch(rounded) == is_scratch(A)
        np.testing.assert_array_equal(A, X)


@pytest.mark.parametrize("chosen", [slice(None, None, 7), slice(3, 90), slice(5, 5)], ids=str)
def test_some_rows_are_taken_into_memory(chosen, rng, monkeypatch):
    monkeypatch.setattr(scratch, "GATHERED_ROWS", 16)
    X = rng.normal(size=(130, 9))
    for A in (X, in_file(X)):
        some = taken(A, chosen)
        np.testing.assert_array_equal(some, X[chosen])
        assert some.flags.c_contiguous
        assert not is_scratch(some)


def test_arrays_are_placed_beside_others_with_their_layout(rng):
    A, inside, outside = rng.normal(size=(30, 4)), np.zeros(3), empty_scratch((3,), float)
    for given in (A, A.T):
        assert placed(given, inside) is given
        found = placed(given, outside)
        assert is_scratch(found)
        assert placed(found, outside) is found
        assert found.flags.c_contiguous == given.flags.c_contiguous
        np.testing.assert_array_equal(found, given)


def test_other_precisions_and_fewer_columns_stay_where_the_array_is(rng):
    X = rng.normal(size=(30, 4))
    for A in (X, in_file(X)):
        single, some = cast(A, np.float32), of_rows(lambda rows: rows[:, 1:3], A, n_columns=2)
        assert cast(A, np.float64) is A
        np.testing.assert_array_equal(single, X.astype(np.float32), strict=True)
        np.testing.assert_array_equal(some, X[:, 1:3])
        assert is_scratch(single) == is_scratch(some) == is_scratch(A)


def test_sums_do_not_depend_on_where_the_rows_are(rng, monkeypatch):
    X = rng.normal(size=(130, 4))

    def gram(rows):
        return rows.T @ rows

    np.testing.assert_array_equal(summed(gram, X), X.T @ X)
    monkeypatch.setattr(scratch, "SUMMED_ROWS", 40)
    np.testing.assert_allclose(summed(gram, X), X.T @ X, rtol=1e-12)
    np.testing.assert_array_equal(summed(gram, in_file(X)), summed(gram, X))


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0, 5), (70_000, 1)], ids=str)
def test_pieces_are_joined_where_another_array_is(sizes, rng):
    parts = [rng.normal(size=size) for size in sizes]
    for beside in (np.zeros(1), in_file(np.zeros(1))):
        pieces = Pieces(beside, np.float32)
        for part in parts:
            pieces.append(part)
        expected = np.concatenate([np.empty(0), *parts]).astype(np.float32)
        np.testing.assert_array_equal(pieces.array(), expected, strict=True)
        assert is_scratch(pieces.array()) == is_scratch(beside)


def test_pieces_that_find_no_room_say_what_to_do():
    class Full:
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    pieces = Pieces(empty_scratch((1,), float), float)
    pieces.file = Full()
    with pytest.raises(OSError, match=r"No room for .*TMPDIR"):
        pieces.append(np.zeros(3))


@pytest.mark.parametrize("method", ["exact", "projected", "approximate"])
@pytest.mark.parametrize("shape", [(900, 12), (40, 900)])
def test_neighbours_of_rows_in_a_file_are_those_of_rows_in_memory(method, shape, rng, monkeypatch):
    monkeypatch.setattr(scratch, "GROUP_BYTES", 1 << 13)
    monkeypatch.setattr(neighbors, "LEAST_CELL", 16)
    X = rng.normal(size=shape).astype(np.float32)
    # Some are there twice: of equally near rows, the same ones must be taken.
    X[1::7] = X[::7][: len(X[1::7])]
    expected = nearest_neighbors(X, 6, method=method)
    result = nearest_neighbors(in_file(X), 6, method=method)
    for found, wanted in zip(result, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
