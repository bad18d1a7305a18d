"""Numbers that cannot be squared are refused, and lost digits are told."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from robustpca import EPCA, FRPCAG, GLPCA, PCAAN, RGLPCA, AngularEmbedding
from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.metrics import subspace_distance
from robustpca.models.precision import precision_warnings


def told(X):
    return [str(warning) for warning in precision_warnings(ArrayRows(X))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_usual_data_are_fine(dtype, rng):
    X = rng.normal(size=(200, 6)).astype(dtype)
    for data in (X, 1000 + X, np.zeros_like(X), np.ones_like(X), X[:2], 1e-10 * X, 1e10 * X):
        assert not told(data)
    X[::3, 2] = np.nan
    assert not told(X)


@pytest.mark.parametrize(
    ("dtype", "offset"), [(np.float32, 1e7), (np.float32, 1e8), (np.float64, 1e16)]
)
def test_an_offset_that_leaves_few_digits_is_told(dtype, offset, rng):
    X = (5 * rng.normal(size=(300, 6)) + offset).astype(dtype)
    (words,) = told(X)
    assert f"{np.dtype(dtype)} holds little" in words
    assert "ubtract an offset from each column" in words
    assert ("Use float64" in words) == (dtype == np.float32)


def test_constant_columns_far_from_zero_are_no_loss(rng):
    X = rng.normal(size=(300, 6)).astype(np.float32)
    X[:, 2] = 1e9
    assert not told(X)


def test_a_column_of_little_variance_is_no_loss(rng):
    X = rng.normal(size=(300, 6)) * [1e4, 1e4, 1, 1e4, 1e4, 1e4]
    X[:, 2] += 1e8
    assert not told(X.astype(np.float32))


@pytest.mark.parametrize(("dtype", "size"), [("f4", 1e20), ("f4", 1e-20), ("f8", 1e105)])
def test_sizes_are_refused_of_sparse_rows_as_well(dtype, size, rng):
    X = (size * rng.normal(size=(50, 6))).astype(dtype)
    for rows in (ArrayRows(X), SparseRows(sparse.csr_array(X))):
        with pytest.raises(ValueError, match=f"squares overflow or vanish in {X.dtype}: divide X"):
            precision_warnings(rows)


@pytest.mark.parametrize(("dtype", "near", "far"), [("float64", 1e5, 1e9), ("float32", 10, 1e5)])
def test_sparse_rows_too_far_from_zero_are_refused(dtype, near, far, rng):
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 9)) + 0.01 * rng.normal(size=(60, 9))
    X[:, 4:] *= rng.random((60, 5)) < 0.2
    expected = EPCA(2).fit(X).components_
    found = EPCA(2).fit(sparse.csr_matrix(offset(X, near).astype(dtype))).components_
    assert subspace_distance(found, expected) < 0.01
    with pytest.raises(ValueError, match=r"subtract an offset from columns such as .*X\.toarray"):
        EPCA(2).fit(sparse.csr_matrix(offset(X, far).astype(dtype)))
    # Constant columns are an offset as well, but constant rows have nothing to lose.
    constant = np.tile(offset(X, far)[:1], (60, 1))
    EPCA(2).fit(sparse.csr_matrix(constant.astype(dtype)))


def offset(X, size):
    """The data with a whole column far away."""
    return X + size * (np.arange(X.shape[1]) == 0)


def test_matrices_with_an_entry_nearly_everywhere_are_as_good_as_dense_ones(rng):
    X = 1e8 + rng.normal(size=(25, 2)) @ rng.normal(size=(2, 5)) + 0.01 * rng.normal(size=(25, 5))
    dense, stored = EPCA(2).fit(X), EPCA(2).fit(sparse.csr_matrix(X))
    np.testing.assert_array_equal(stored.components_, dense.components_)
    np.testing.assert_array_equal(stored.transform(sparse.csr_matrix(X)), dense.transform(X))


def test_empty_sparse_rows_and_holes_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not precision_warnings(SparseRows(sparse.csr_array((5, 3))))
        assert not told(np.full((4, 3), np.nan))


@pytest.mark.parametrize("size", [1e-100, 1e-30, 1e30, 1e100])
@pytest.mark.parametrize("model", [RGLPCA(2), GLPCA(2), AngularEmbedding(2), EPCA(2), PCAAN(2)])
def test_sizes_that_are_not_refused_change_nothing(model, size, rng):
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(60, 6))
    expected = model.fit(X).components_
    assert subspace_distance(model.fit(size * X).components_, expected) < 1e-6


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_missing_entries_of_a_constant_column_are_filled_with_the_constant(size, rng):
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(60, 6))
    X[:, 2], X[3, 2], X[10, 2] = 5, np.nan, np.nan
    filled = FRPCAG(feature_smoothness=1.0).fit(size * X).low_rank_[:, 2]
    np.testing.assert_allclose(filled, 5 * size, rtol=1e-5)
