"""Rows are known again by their values, and by nothing else."""

import numpy as np
import pytest

from robustpca.engine import scratch
from robustpca.solvers.known_rows import KnownRows, row_keys


@pytest.fixture(name="X")
def rows(rng):
    X = rng.normal(size=(300, 7)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def test_known_rows_are_found_in_any_order_among_others(X, rng):
    known, order = KnownRows.of(X), rng.permutation(300)
    np.testing.assert_array_equal(known.find(X[order]), order)
    mixed = np.vstack([rng.normal(size=(5, 7)), X[[3, 299]]])
    np.testing.assert_array_equal(known.find(mixed), [-1] * 5 + [3, 299])


@pytest.mark.parametrize("layout", ["single", "columns", "strided"])
def test_precision_and_layout_do_not_matter(X, layout):
    other = {
        "single": X.astype(np.float32),
        "columns": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
    }[layout]
    np.testing.assert_array_equal(KnownRows.of(X).find(other), np.arange(300))
    np.testing.assert_array_equal(KnownRows.of(other).find(X), np.arange(300))


def test_the_last_bit_of_one_entry_makes_another_row(X):
    known = KnownRows.of(X)
    for j in range(7):
        near = X.copy()
        near[:, j] = np.where(np.isnan(X[:, j]), 0.0, np.nextafter(X[:, j], 9.0))
        assert (known.find(near) == -1).all()


def test_zero_has_one_value_and_so_has_nan():
    zeros = np.array([[0.0, 1.0], [np.nan, 1.0]])
    other = np.array([[-0.0, 1.0], [-np.nan, 1.0]])
    other[1:, :1].view(np.uint64)[...] |= np.uint64(77)
    assert np.isnan(other[1, 0])
    np.testing.assert_array_equal(KnownRows.of(zeros).find(other), [0, 1])


def test_of_equal_rows_the_first_is_found(X):
    known = KnownRows.of(np.vstack([X, X[::-1]]))
    np.testing.assert_array_equal(known.find(X), np.arange(300))


def test_keys_of_small_whole_numbers_do_not_collide(rng):
    X = rng.integers(0, 3, size=(100_000, 11)).astype(np.float64)
    assert len(np.unique(row_keys(X))) == len(np.unique(X, axis=0))
    # Nor do those of the same numbers in other columns.
    orders = np.array([rng.permutation(11) for _ in range(1000)], dtype=np.float64)
    assert len(np.unique(row_keys(orders))) == len(np.unique(orders, axis=0))


def test_many_tiles_give_the_keys_of_single_rows(rng):
    X = rng.normal(size=(700, 900))
    np.testing.assert_array_equal(row_keys(X)[::97], [row_keys(x[None])[0] for x in X[::97]])


@pytest.mark.parametrize("kind", ["different", "repeated", "equal"])
def test_many_rows_are_sorted_a_part_at_a_time(kind, monkeypatch, rng):
    X = rng.normal(size=(3000, 2))
    X = {"different": X, "repeated": np.round(X), "equal": np.ones((3000, 2))}[kind]
    keys = row_keys(X)
    order = np.argsort(keys, kind="stable")
    monkeypatch.setattr(scratch, "SUMMED_ROWS", 100)
    found = [KnownRows.of(X)]
    stored = scratch.empty_scratch(X.shape, X.dtype)
    stored[...] = X
    found.append(KnownRows.of(stored))
    for known in found:
        np.testing.assert_array_equal(known.keys, keys[order])
        np.testing.assert_array_equal(known.places, order)
    assert scratch.is_scratch(found[1].keys)
    assert scratch.is_scratch(found[1].places)
