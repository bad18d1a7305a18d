"""The robust start trusts the majority, whatever the minority does."""

import numpy as np
import pytest
from scipy import sparse

from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.parts.starts import (
    _fitted,
    _is_far_better,
    challenged,
    n_usual,
    outlyingness,
    trusted_half,
)


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


def half_and_challenged(X, n_components, seed=0):
    rng, outside = np.random.RandomState(seed), np.zeros(len(X))
    half = trusted_half(ArrayRows(X), outside, rng)
    return half, challenged(ArrayRows(X), outside, half, n_components, rng)


@pytest.mark.parametrize("distance", [3.0, 4.0, 5.0])
def test_a_cloud_among_the_rows_is_trusted_until_it_is_challenged(distance):
    changed = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        options = {"noise": 0.3, "clustered": True, "distance": distance}
        X, _, is_outlier = planted_subspace(rng, 500, 30, 4, 100, **options)
        half, weights = half_and_challenged(X, 4)
        if weights is not half:
            changed += 1
            # They are more of the trusted half than of all rows.
            assert half[is_outlier].mean() > 0.5
            assert not weights[is_outlier].any()
            assert weights.sum() == 250
    assert changed >= 2


@pytest.mark.parametrize(
    ("n_outliers", "clustered"), [(0, False), (100, False), (100, True)], ids=str
)
@pytest.mark.parametrize("shape", [(500, 30), (300, 100)], ids=str)
def test_a_start_without_outliers_stays_as_it_is(shape, n_outliers, clustered):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        options = {"noise": 0.3, "clustered": clustered, "distance": 30.0}
        X = planted_subspace(rng, *shape, 4, n_outliers, **options)[0]
        half, weights = half_and_challenged(X, 4)
        assert weights is half


def test_a_tight_far_group_leaves_less_of_the_rows_and_is_no_better_all_the_same():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 12)) * np.linspace(1.2, 0.8, 12)
        X[:40] = 30 * np.eye(12)[11] + 0.1 * rng.normal(size=(40, 12))
        rest = np.zeros(200)
        clean, held = (_fitted(X, rest, np.arange(200) >= first, 4) for first in (40, 0))
        left = [np.sort(plane.distances(X, rest))[:150].sum() for plane in (clean, held)]
        assert left[1] < left[0]
        assert not _is_far_better(held, clean, X, rest)
        assert half_and_challenged(X, 4)[1][:40].sum() == 0


def test_too_few_rows_for_the_components_are_not_challenged(rng):
    X = rng.standard_t(2, size=(100, 20))
    for n_components in (13, 20):
        half, weights = half_and_challenged(X, n_components)
        assert weights is half


@pytest.mark.parametrize("n_others", [5, 30])
def test_rows_that_are_equal_but_for_a_few_are_not_challenged(n_others, rng):
    X = np.zeros((120, 6))
    X[:n_others] = rng.normal(size=(n_others, 6))
    half, weights = half_and_challenged(X, 1)
    assert weights is half


def chi_squares(rng, n, degrees=10):
    return rng.chisquare(degrees, n)


@pytest.mark.parametrize("degrees", [1, 10, 1000])
@pytest.mark.parametrize("n_outliers", [0, 1, 120, 200])
def test_gross_outliers_are_counted(n_outliers, degrees, rng):
    residuals = chi_squares(rng, 500, degrees)
    residuals[:n_outliers] = 1000 * (degrees + residuals[:n_outliers])
    assert n_usual(residuals) == 500 - n_outliers
    # In any units.
    assert n_usual(1e-40 * residuals) == n_usual(1e40 * residuals) == 500 - n_outliers


@pytest.mark.parametrize("dof", [1, 2, 5])
def test_heavy_tails_have_few_gross_outliers(dof, rng):
    assert n_usual(rng.standard_t(dof, 2000) ** 2) > 0.9 * 2000


def test_no_more_than_half_are_gross_outliers(rng):
    residuals = 1 + 1e-3 * rng.random(501)
    residuals[:6] = 1e4
    residuals[6:256] = 1e10
    assert n_usual(residuals) == 251


@pytest.mark.parametrize(("factor", "n"), [(1.5, 500), (3, 500), (5, 500), (7, 300), (1e6, 300)])
def test_what_is_just_beyond_the_others_is_no_gross_outlier(factor, n, rng):
    residuals = chi_squares(rng, 500, 10_000)
    residuals[:200] *= factor**2
    assert n_usual(residuals) == n


@pytest.mark.parametrize("ratio", [4, 100])
def test_where_distances_grow_without_a_gap_none_are_gross(ratio, rng):
    # Two of five samples are beyond four times the typical distance, but nowhere is an edge.
    distances = np.r_[1 + 0.1 * rng.random(250), np.geomspace(1.1, 4 * ratio, 250)]
    assert n_usual(distances**2) == 500


@pytest.mark.parametrize("equal", [0.0, 1e-20, 3.0])
def test_equal_distances_have_no_gross_outliers(equal, rng):
    residuals = 100 * chi_squares(rng, 500)
    residuals[:300] = equal
    assert n_usual(residuals) == 500
