"""Ranked values of columns are those of sorting, to the last bit."""

import numpy as np
import pytest

from robustpca.engine import column_ranks
from robustpca.engine.column_ranks import column_medians, column_quantiles


@pytest.fixture(autouse=True)
def few_sorted_rows(monkeypatch):
    monkeypatch.setattr(column_ranks, "SORTED_ROWS", 64)


def columns(n, dtype):
    """Columns with ties, holes, a jump in the middle, far entries and tiny ones."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 9))
    X[:, 1] = np.round(2 * X[:, 1])
    X[:, 2] = np.where(np.arange(n) % 7, 5.0, X[:, 2])
    X[:, 3] = 3.0
    X[:, 4] *= 10.0 ** rng.integers(-12, 12, n)
    X[rng.random(n) < 0.4, 5] = np.nan
    X[:, 6] = np.sort(X[:, 6]) + 1e6 * (np.arange(n) >= n // 2)
    X[:, 7] = np.arange(n) % 2
    X[:-1, 8] = np.nan
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1000, 1001, 20_002])
def test_medians_are_those_of_numpy(n, dtype):
    X = columns(n, dtype)
    found = column_medians(X)
    assert found.dtype == dtype
    if n < 2:
        X = X[:, :-1] if np.isnan(X[:, -1]).all() else X
        found = found[: X.shape[1]]
    known = ~np.isnan(X).all(axis=0)
    np.testing.assert_array_equal(found[known], np.nanmedian(X[:, known], axis=0))
    middle = np.nan_to_num(found.astype(np.float64))
    np.testing.assert_array_equal(
        column_medians(X, lambda rows: np.abs(rows - middle))[known],
        np.nanmedian(np.abs(X - middle)[:, known], axis=0),
    )


def test_a_column_without_entries_has_no_median():
    X = columns(1000, np.float64)
    X[:, 4] = np.nan
    np.testing.assert_array_equal(np.isnan(column_medians(X)), np.arange(9) == 4)


def test_entries_that_no_sample_sees(rng):
    X = np.full((1000, 1), np.nan)
    X[[1, 2, 998]] = [[7.0], [-3.0], [4.0]]
    assert column_medians(X) == 4.0


@pytest.mark.parametrize("size", [1e-308, 1e-160, 1e150])
def test_the_size_of_numbers_does_not_matter(size, rng):
    X = size * rng.normal(size=(5000, 2))
    np.testing.assert_array_equal(column_medians(X), np.median(X, axis=0))


@pytest.mark.parametrize("wanted", [0.0, 0.1, 0.9, 1.0])
def test_quantiles_are_those_of_numpy(wanted):
    X = columns(3001, np.float64)
    expected = np.nanquantile(X, wanted, axis=0)
    np.testing.assert_allclose(column_quantiles(X, wanted), expected, rtol=1e-14)
