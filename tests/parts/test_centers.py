"""Centres that are found first and held: against their definitions, wherever the data are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from scipy.spatial.distance import cdist

from robustpca import R1PCA
from robustpca.engine import rows
from robustpca.engine.dask_rows import DaskRows
from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.parts import centers
from robustpca.parts.centers import CENTERS

EXPECTED = {
    "mean": lambda X: X.mean(axis=0),
    "median": lambda X: np.median(X, axis=0),
    "trimmed_mean": lambda X: stats.trim_mean(X, 0.25, axis=0),
    "medoid": lambda X: X[cdist(X, X).sum(axis=1).argmin()],
    "zero": lambda X: np.zeros(X.shape[1]),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    # Several blocks, and several groups of columns.
    monkeypatch.setattr(rows, "BLOCK_BYTES", 6000)
    monkeypatch.setattr(centers, "COLUMN_BYTES", 8000)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("n_samples", [2, 80, 301])
def test_centres_are_what_they_are_called(name, dtype, n_samples, rng):
    X = (20 * rng.normal(size=(n_samples, 7)) + 50 * rng.normal(size=7)).astype(dtype)
    expected = EXPECTED[name](X.astype(np.float64))
    assert_allclose(CENTERS[name](ArrayRows(X)), expected, rtol=1e-6, atol=1e-4)
    if dtype == np.float64:
        assert_allclose(CENTERS[name](ArrayRows(X)), expected, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("name", CENTERS)
def test_centres_of_dask_and_sparse_rows_are_those_of_the_array(name, rng):
    da = pytest.importorskip("dask.array")
    X = rng.normal(size=(150, 6)) * (rng.random((150, 6)) < 0.4)
    here = CENTERS[name](ArrayRows(X))
    assert_array_equal(CENTERS[name](DaskRows(da.from_array(X, chunks=(40, -1)))), here)
    assert_allclose(CENTERS[name](SparseRows(sparse.csr_matrix(X))), here, atol=1e-9)
    single = SparseRows(sparse.csr_matrix(X.astype(np.float32)))
    assert_allclose(CENTERS[name](single), here, atol=1e-3)


@pytest.mark.parametrize("name", [name for name in CENTERS if name != "zero"])
def test_centres_move_with_the_data_and_are_exact_where_these_are_constant(name, rng):
    X = rng.normal(size=(60, 4)) * [1.0, 2.0, 3.0, 0.0]
    still, moved = CENTERS[name](ArrayRows(X)), CENTERS[name](ArrayRows(X + 1e5 + 0.1))
    assert_allclose(moved, still + 1e5 + 0.1, atol=1e-6)
    constant = CENTERS[name](ArrayRows(np.full((9, 3), 0.1)))
    assert_array_equal(constant, np.full(3, 0.1))


@pytest.mark.parametrize("name", ["median", "trimmed_mean", "geometric_median", "medoid"])
def test_a_fifth_of_far_samples_does_not_carry_robust_centres_away(name, rng):
    X = rng.normal(size=(200, 5))
    X[:40] += 1e6
    assert np.linalg.norm(CENTERS[name](ArrayRows(X))) < 2
    assert np.linalg.norm(CENTERS["mean"](ArrayRows(X))) > 1e5


def test_the_medoid_is_the_first_of_equals():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert_array_equal(CENTERS["medoid"](ArrayRows(X)), X[0])
    assert_array_equal(CENTERS["medoid"](ArrayRows(X[::-1])), X[3])


@pytest.mark.parametrize("name", ["median", "medoid"])
def test_a_missing_entry_is_refused(name):
    X = np.ones((5, 2))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        CENTERS[name](ArrayRows(X))


@pytest.mark.parametrize("name", CENTERS)
def test_other_chapters_take_every_centre(name, rng):
    X = rng.normal(size=(40, 6)) + 3
    model = R1PCA(2, center=name).fit(X)
    assert_allclose(model.mean_, CENTERS[name](ArrayRows(X)))
