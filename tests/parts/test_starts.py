"""The robust start trusts the majority, whatever the minority does."""

import numpy as np
import pytest
from scipy import sparse

from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.parts.starts import outlyingness, trusted_half


def start(X, seed=0, outside=None):
    outside = np.zeros(X.shape[0]) if outside is None else outside
    return trusted_half(ArrayRows(X), outside, np.random.RandomState(seed))


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
def test_no_outlier_is_trusted(share, clustered):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, _, is_outlier = planted_subspace(
            rng, 500, 20, 4, int(500 * share), noise=0.5, clustered=clustered, distance=200.0
        )
        trusted = start(X, seed)
        assert trusted.sum() == 250
        assert not trusted[is_outlier].any()


def test_samples_far_outside_of_the_coordinates_are_not_trusted(rng):
    X = rng.normal(size=(200, 3))
    outside = rng.uniform(1, 2, 200)
    outside[:60] = 1e4
    assert not start(X, outside=outside)[:60].any()
    assert start(X)[:60].any()


def test_shifting_and_scaling_change_nothing(rng):
    X = rng.standard_t(2, size=(300, 6))
    np.testing.assert_array_equal(start(X), start(100 * X + 7))


def test_the_same_seed_gives_the_same_start_and_another_one_another(rng):
    X = rng.normal(size=(300, 6))
    np.testing.assert_array_equal(start(X, 1), start(X, 1))
    assert (start(X, 1) != start(X, 2)).any()


def test_equal_samples_are_all_trusted():
    np.testing.assert_array_equal(start(np.ones((10, 3))), 1.0)


def test_a_majority_of_equal_samples_is_trusted(rng):
    X = np.zeros((100, 4))
    X[:30] = 50 * rng.normal(size=(30, 4))
    # Along every direction more than half of the samples are at one point: there is no spread
    # to measure by, and nobody can be told apart.
    assert start(X)[30:].all()


def test_outlyingness_along_a_line_is_the_distance_from_the_median():
    X = np.arange(11.0)[:, None]
    far = outlyingness(ArrayRows(X), np.zeros(11), np.random.RandomState(0))
    np.testing.assert_allclose(far, np.abs(X[:, 0] - 5) / 3, atol=1e-15)


def test_sparse_and_dense_rows_have_the_same_outlyingness(rng):
    X = rng.normal(size=(200, 30)) * (rng.random((200, 30)) < 0.3)
    dense = outlyingness(ArrayRows(X), np.zeros(200), np.random.RandomState(0))
    rows = SparseRows(sparse.csr_matrix(X))
    thin = outlyingness(rows, np.zeros(200), np.random.RandomState(0))
    np.testing.assert_allclose(thin, dense, rtol=1e-10)
