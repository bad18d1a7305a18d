"""Neighbours are the nearest, and graphs and Laplacians obey their laws."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial.distance import cdist
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.metrics import nan_euclidean_distances
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph
from threadpoolctl import threadpool_limits

from robustpca.engine import neighbors
from robustpca.parts.graphs import (
    as_adjacency,
    eigenvalue_bound,
    grid_graph,
    knn_graph,
    laplacian,
    locality_order,
    nearest_neighbors,
    neighbor_recall,
)

few = settings(max_examples=25)


def nearest_by_sorting(D, n_neighbors, own=True):
    """The first of a stable sort: equal distances go by index."""
    D = D.copy()
    if own:
        np.fill_diagonal(D, np.inf)
        # An infinite distance to another row still comes before oneself.
        order = np.array([[*np.argsort(row, kind="stable")] for row in D])
        order = np.array([[j for j in row if j != i] for i, row in enumerate(order)])
    else:
        order = np.argsort(D, axis=1, kind="stable")
    order = order[:, :n_neighbors]
    return order, np.take_along_axis(D, order, axis=1)


def square_distances(X, Y):
    return cdist(np.asarray(X, float), np.asarray(Y, float), "sqeuclidean")


def assert_nearest(X, n_neighbors, among=None, rtol=1e-12, **options):
    indices, gaps = nearest_neighbors(X, n_neighbors, among=among, **options)
    D = square_distances(X, X if among is None else among)
    expected, expected_gaps = nearest_by_sorting(D, n_neighbors, among is None)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_allclose(gaps, expected_gaps, rtol=rtol, atol=0)


def clusters(rng, n=3000, d=20, n_clusters=30, rank=3):
    """Clusters that are flat and well apart, as in real data."""
    centers = 4 * rng.normal(size=(n_clusters, d))
    shapes = rng.normal(size=(n_clusters, rank, d))
    of = rng.integers(n_clusters, size=n)
    inner = np.einsum("ij,ijk->ik", rng.normal(size=(n, rank)), shapes[of])
    return centers[of] + inner + 0.05 * rng.normal(size=(n, d))


class TestExactSearch:
    @pytest.mark.parametrize("n_features", [1, 3, 20, 300])
    @pytest.mark.parametrize("n_samples", [2, 3, 30, 200, 1300])
    def test_finds_what_sorting_all_distances_finds(self, n_samples, n_features, rng):
        X = rng.normal(size=(n_samples, n_features))
        assert_nearest(X, min(10, n_samples - 1), method="exact")

    @pytest.mark.parametrize("n_points", [1, 5, 600, 1500])
    def test_finds_the_nearest_among_other_rows(self, n_points, rng):
        X, points = rng.normal(size=(700, 8)), rng.normal(size=(n_points, 8))
        points[: min(n_points, 3)] = X[: min(n_points, 3)]
        assert_nearest(X, min(7, n_points), points, method="exact")

    def test_a_row_may_be_its_own_neighbour_among_given_rows(self, rng):
        X = rng.normal(size=(300, 5))
        indices, gaps = nearest_neighbors(X, 1, among=X)
        np.testing.assert_array_equal(indices[:, 0], np.arange(300))
        np.testing.assert_array_equal(gaps, 0)

    def test_float32_stays_float32_and_is_just_as_exact(self, rng):
        X = rng.normal(size=(900, 30)).astype(np.float32)
        indices, gaps = nearest_neighbors(X, 10, method="exact")
        assert indices.dtype == np.int32
        assert gaps.dtype == np.float32
        assert_nearest(X, 10, method="exact", rtol=1e-6)

    @pytest.mark.parametrize("kind", [np.int64, np.uint8, bool, list])
    def test_other_numbers_are_taken_as_float64(self, kind, rng):
        X = rng.integers(0, 2 if kind is bool else 200, size=(60, 5))
        given = X.tolist() if kind is list else X.astype(kind)
        assert nearest_neighbors(given, 3)[1].dtype == np.float64
        assert_nearest(given, 3)

    def test_the_layout_of_the_array_does_not_matter(self, rng):
        X = rng.normal(size=(400, 12))
        expected = nearest_neighbors(X, 5)
        locked = X.copy()
        locked.setflags(write=False)
        for same in (np.asfortranarray(X), locked, np.repeat(X, 2, axis=1)[:, ::2]):
            for a, b in zip(nearest_neighbors(same, 5), expected, strict=True):
                np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("offset", [1e6, -1e9])
    @pytest.mark.parametrize("n_samples", [50, 800])
    def test_a_large_offset_costs_no_digits(self, n_samples, offset, rng):
        # Steps of 1/64 are exact in the sum, so that the distances stay the same.
        X = rng.integers(-500, 500, size=(n_samples, 6)) / 64
        expected, moved = nearest_neighbors(X, 8), nearest_neighbors(X + offset, 8)
        np.testing.assert_array_equal(moved[0], expected[0])
        np.testing.assert_array_equal(moved[1], expected[1])

    @pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
    def test_the_scale_does_not_matter(self, scale, rng):
        X = rng.normal(size=(300, 5)) * scale
        assert_nearest(X, 6, rtol=1e-9)

    def test_tiny_float32_values_do_not_vanish(self, rng):
        X = (rng.normal(size=(300, 5)) * 1e-18).astype(np.float32)
        assert_nearest(X, 6, rtol=1e-5)

    def test_far_outliers_and_tight_clusters_are_searched_in_double_precision(self, rng):
        # Single precision cannot tell the rows of such a cluster apart.
        X = 1e-6 * rng.normal(size=(900, 10)) + 100 * rng.integers(0, 3, size=(900, 1))
        X[5] = 1e12
        assert_nearest(X, 10, rtol=1e-6)

    def test_ties_go_to_the_smallest_index(self, rng):
        X = rng.integers(0, 3, size=(700, 4)).astype(float)
        assert_nearest(X, 12)

    def test_duplicates_are_neighbours_but_nobody_is_his_own(self, rng):
        X = np.repeat(rng.normal(size=(40, 6)), 25, axis=0)[rng.permutation(1000)]
        assert_nearest(X, 10)
        indices, gaps = nearest_neighbors(X, 24)
        assert not (indices == np.arange(1000)[:, None]).any()
        np.testing.assert_array_equal(gaps, 0)

    @pytest.mark.parametrize("n_samples", [2, 5, 700])
    def test_equal_rows_have_the_first_ones_for_neighbours(self, n_samples):
        k = min(4, n_samples - 1)
        indices, gaps = nearest_neighbors(np.full((n_samples, 3), 7.5), k)
        np.testing.assert_array_equal(gaps, 0)
        expected = [[j for j in range(n_samples) if j != i][:k] for i in range(n_samples)]
        np.testing.assert_array_equal(indices, expected)

    def test_all_other_rows_can_be_neighbours(self, rng):
        assert_nearest(rng.normal(size=(90, 4)), 89)

    @given(st.integers(2, 90), st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
    @few
    def test_is_exact_on_grids_full_of_ties(self, n_samples, n_features, levels, seed):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, levels, size=(n_samples, n_features)) / 4
        assert_nearest(X, int(rng.integers(1, n_samples)))

    def test_does_not_depend_on_the_number_of_threads(self, rng):
        X = rng.integers(0, 4, size=(1500, 6)).astype(float)
        for method in ("exact", "projected", "approximate"):
            with threadpool_limits(1):
                one = nearest_neighbors(X, 5, method=method)
            with threadpool_limits(3):
                three = nearest_neighbors(X, 5, method=method)
            np.testing.assert_array_equal(one[0], three[0])
            np.testing.assert_array_equal(one[1], three[1])

    def test_shuffled_rows_have_the_same_neighbours(self, rng):
        X, order = rng.normal(size=(500, 7)), rng.permutation(500)
        indices, gaps = nearest_neighbors(X, 5)
        shuffled, shuffled_gaps = nearest_neighbors(X[order], 5)
        np.testing.assert_array_equal(order[shuffled], indices[order])
        np.testing.assert_array_equal(shuffled_gaps, gaps[order])


class TestMissingValues:
    @pytest.mark.parametrize("n_samples", [30, 600])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_distances_are_those_of_scikit_learn(self, dtype, n_samples, rng):
        X = rng.normal(size=(n_samples, 9)).astype(dtype) + 50
        X[rng.random(X.shape) < 0.3] = np.nan
        indices, gaps = nearest_neighbors(X, 6)
        # Their distances lose digits to the offset.
        D = nan_euclidean_distances(X.astype(float) - 50, squared=True)
        expected, expected_gaps = nearest_by_sorting(np.where(np.isnan(D), np.inf, D), 6)
        np.testing.assert_array_equal(indices, expected)
        rtol = 1e-6 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(gaps, expected_gaps, rtol=rtol, atol=1e-13)

    def test_missing_values_of_either_side_count(self, rng):
        X, points = rng.normal(size=(80, 6)), rng.normal(size=(500, 6))
        for one, other in ((X, points), (points, X)):
            holes = other.copy()
            holes[rng.random(other.shape) < 0.2] = np.nan
            for rows, among in ((one, holes), (holes, one)):
                D = nan_euclidean_distances(rows, among, squared=True)
                D[np.isnan(D)] = np.inf
                expected, gaps = nearest_by_sorting(D, 4, own=False)
                found = nearest_neighbors(rows, 4, among=among)
                np.testing.assert_array_equal(found[0], expected)
                np.testing.assert_allclose(found[1], gaps, rtol=1e-9)

    @pytest.mark.parametrize("n_samples", [8, 400])
    def test_rows_without_a_common_feature_are_infinitely_far(self, n_samples, rng):
        X = rng.normal(size=(n_samples, 4))
        X[0], X[1, :2], X[2, 2:], X[:, 3] = np.nan, np.nan, np.nan, np.nan
        indices, gaps = nearest_neighbors(X, 3)
        np.testing.assert_array_equal(indices[0], [1, 2, 3])
        assert np.isinf(gaps[0]).all()
        assert np.isfinite(gaps[3:]).all()
        assert not (indices[1:] == 0).any()

    def test_a_row_without_values_is_alone_in_the_graph(self, rng):
        X = rng.normal(size=(60, 4))
        X[7] = np.nan
        for bandwidth in ("mean", 1.0, None):
            adjacency = knn_graph(X, 5, bandwidth=bandwidth)
            assert (adjacency.sum(axis=1) == 0).nonzero()[0].tolist() == [7]
            assert np.isfinite(adjacency.data).all()

    def test_equal_rows_with_holes_have_the_first_ones_for_neighbours(self):
        X = np.full((500, 3), 2.0)
        X[:, 1] = np.nan
        indices, gaps = nearest_neighbors(X, 2)
        np.testing.assert_array_equal(indices[2:], [[0, 1]] * 498)
        np.testing.assert_array_equal(gaps, 0)

    def test_nothing_at_all_is_known(self):
        indices, gaps = nearest_neighbors(np.full((100, 2), np.nan), 2)
        np.testing.assert_array_equal(indices[5], [0, 1])
        assert np.isinf(gaps).all()

    @pytest.mark.parametrize("method", ["projected", "approximate"])
    def test_other_methods_ask_for_complete_rows(self, method, rng):
        X = rng.normal(size=(50, 3))
        X[0, 0] = np.nan
        with pytest.raises(ValueError, match=f'method="{method}" needs complete rows.*"exact"'):
            nearest_neighbors(X, 2, method=method)


class TestOtherMethods:
    def test_few_axes_find_nearly_all_neighbours_of_structured_rows(self, rng):
        X = rng.normal(size=(2500, 25)) @ rng.normal(size=(25, 300)) + rng.normal(size=(2500, 300))
        indices, gaps = nearest_neighbors(X, 10, method="projected")
        assert neighbor_recall(X, indices) > 0.999
        D = square_distances(X, X)
        np.testing.assert_allclose(gaps, np.take_along_axis(D, indices, axis=1), rtol=1e-11)

    def test_rows_of_few_features_need_no_axes(self, rng):
        X = rng.normal(size=(800, 30))
        assert_nearest(X, 10, method="projected")

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_cells_find_nearly_all_neighbours_in_clusters(self, dtype, rng):
        X = clusters(rng, 6000).astype(dtype)
        indices, gaps = nearest_neighbors(X, 10, method="approximate")
        assert neighbor_recall(X, indices) > 0.97
        D = np.take_along_axis(square_distances(X, X), indices, axis=1)
        np.testing.assert_allclose(gaps, D, rtol=1e-6 if dtype == np.float32 else 1e-11)

    def test_more_cells_are_searched_where_rows_have_no_structure(self, rng):
        X = rng.normal(size=(8000, 10)).astype(np.float32)
        assert neighbor_recall(X, nearest_neighbors(X, 10, method="approximate")[0]) > 0.93

    def test_cells_find_neighbours_of_wide_rows(self, rng):
        X = clusters(rng, 4000, 250).astype(np.float32)
        assert neighbor_recall(X, nearest_neighbors(X, 8, method="approximate")[0]) > 0.95

    @pytest.mark.parametrize("method", ["projected", "approximate"])
    def test_neighbours_among_other_rows(self, method, rng):
        X = clusters(rng, 5000, 30)
        queries, points = X[:1000], X[1000:]
        indices, gaps = nearest_neighbors(queries, 5, among=points, method=method)
        truth = nearest_neighbors(queries, 5, among=points, method="exact")[1]
        assert np.mean(gaps <= truth[:, -1:] * (1 + 1e-12)) > 0.9
        D = np.take_along_axis(square_distances(queries, points), indices, axis=1)
        np.testing.assert_allclose(gaps, D, rtol=1e-11)

    @pytest.mark.parametrize("method", ["projected", "approximate"])
    def test_nobody_is_found_twice_and_nobody_finds_himself(self, method, rng):
        X = np.vstack([clusters(rng, 1500, 150), np.zeros((500, 150))]).astype(np.float32)
        indices, gaps = nearest_neighbors(X, 7, method=method)
        assert (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()
        assert not (indices == np.arange(2000)[:, None]).any()
        assert indices.min() >= 0
        assert (np.diff(gaps, axis=1) >= 0).all()

    @pytest.mark.parametrize("method", ["projected", "approximate"])
    @pytest.mark.parametrize("n_samples", [2, 3, 9, 200])
    def test_few_rows_are_enough(self, method, n_samples, rng):
        X = rng.normal(size=(n_samples, 200))
        indices, _ = nearest_neighbors(X, min(5, n_samples - 1), method=method)
        assert ((indices >= 0) & (indices < n_samples)).all()

    def test_equal_rows_fill_one_cell_that_is_cut(self, rng):
        X = rng.normal(size=(6000, 4))
        X[:5000] = 1.0
        indices, gaps = nearest_neighbors(X, 6, method="approximate")
        np.testing.assert_array_equal(gaps[:5000], 0)
        assert neighbor_recall(X, indices) > 0.95

    def test_a_cell_that_holds_too_few_rows_is_made_up_for(self, rng, monkeypatch):
        monkeypatch.setattr(neighbors, "LEAST_CELL", 2)
        monkeypatch.setattr(neighbors, "MOST_PROBES", 1)
        X = rng.normal(size=(600, 5))
        indices, _ = nearest_neighbors(X, 40, method="approximate")
        assert indices.min() >= 0
        assert (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()

    @pytest.mark.parametrize("method", ["projected", "approximate"])
    def test_the_seed_decides(self, method, rng):
        X = rng.normal(size=(2000, 500)).astype(np.float32)
        one, same, other = (
            nearest_neighbors(X, 5, method=method, random_state=s)[0] for s in (1, 1, 2)
        )
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()

    def test_auto_goes_from_exact_to_projected_to_approximate(self, rng, monkeypatch):
        used = []
        for name in ("_exact", "_projected", "_approximate"):
            found = np.zeros((300, 2), np.int32), np.zeros((300, 2))
            monkeypatch.setattr(neighbors, name, lambda s, n=name, f=found: used.append(n) or f)
        for n_features, exact_work, projected_work in (
            (500, 1e9, 1e9),
            (500, 1e6, 1e9),
            (500, 1e6, 1e6),
            (20, 1e6, 1e9),
        ):
            monkeypatch.setattr(neighbors, "EXACT_WORK", exact_work)
            monkeypatch.setattr(neighbors, "PROJECTED_WORK", projected_work)
            nearest_neighbors(rng.normal(size=(300, n_features)), 2)
        assert used == ["_exact", "_projected", "_approximate", "_approximate"]

    def test_missing_values_are_searched_exactly_however_many_rows(self, rng, monkeypatch):
        monkeypatch.setattr(neighbors, "EXACT_WORK", 1)
        X = rng.normal(size=(300, 5))
        X[::7, 2] = np.nan
        np.testing.assert_array_equal(
            nearest_neighbors(X, 3)[0], nearest_neighbors(X, 3, method="exact")[0]
        )


class TestRecall:
    def test_is_one_for_the_truth_and_less_for_less(self, rng):
        X = rng.normal(size=(400, 6))
        indices, _ = nearest_neighbors(X, 10)
        assert neighbor_recall(X, indices) == 1.0
        wrong = indices.copy()
        wrong[:, :3] = nearest_neighbors(-X, 60)[0][:, -3:]
        assert neighbor_recall(X, wrong) == pytest.approx(0.7)

    def test_does_not_care_which_duplicates_were_found(self, rng):
        X = np.repeat(rng.normal(size=(30, 4)), 10, axis=0)
        others = [
            [j for j in range(299, -1, -1) if j // 10 == i // 10 and j != i] for i in range(300)
        ]
        assert neighbor_recall(X, np.array(others)[:, :4]) == 1.0

    def test_counts_nobody_twice_and_not_oneself(self, rng):
        X = rng.normal(size=(100, 4))
        indices, _ = nearest_neighbors(X, 4)
        twice, own = indices.copy(), indices.copy()
        twice[:, 1] = twice[:, 0]
        own[:, 0] = np.arange(100)
        assert neighbor_recall(X, twice) == pytest.approx(0.75)
        assert neighbor_recall(X, own) == pytest.approx(0.75)

    def test_a_sample_is_close_to_the_whole(self, rng):
        X = rng.normal(size=(3000, 8))
        indices, _ = nearest_neighbors(X, 5, method="approximate")
        whole = neighbor_recall(X, indices, n_queries=10**9)
        assert abs(neighbor_recall(X, indices, n_queries=300) - whole) < 0.05


class TestKnnGraph:
    @pytest.mark.parametrize("symmetrize", ["max", "average", "mutual"])
    @pytest.mark.parametrize("bandwidth", ["mean", 2.0, None])
    def test_is_what_the_formula_says(self, bandwidth, symmetrize, rng):
        X = rng.normal(size=(70, 5))
        D = square_distances(X, X)
        indices, gaps = nearest_by_sorting(D, 6)
        sigma = np.sqrt(gaps).mean() if bandwidth == "mean" else bandwidth
        A = np.zeros((70, 70))
        for i, near in enumerate(indices):
            A[i, near] = 1.0 if bandwidth is None else np.exp(-D[i, near] / sigma**2)
        turned = {"max": np.maximum(A, A.T), "average": (A + A.T) / 2, "mutual": np.minimum(A, A.T)}
        adjacency = knn_graph(X, 6, bandwidth=bandwidth, symmetrize=symmetrize)
        np.testing.assert_allclose(adjacency.toarray(), turned[symmetrize], rtol=1e-12, atol=0)

    @given(
        st.integers(1, 60),
        st.integers(1, 70),
        st.sampled_from(["max", "average", "mutual"]),
        st.sampled_from(["mean", 1.0, None]),
        st.sampled_from([np.float32, np.float64]),
        st.integers(0, 10**6),
    )
    @few
    def test_is_symmetric_not_negative_and_without_loops(
        self, n, k, symmetrize, bandwidth, dtype, seed
    ):
        X = np.random.default_rng(seed).integers(0, 5, size=(n, 3)).astype(dtype)
        adjacency = knn_graph(X, k, bandwidth=bandwidth, symmetrize=symmetrize)
        assert isinstance(adjacency, sparse.csr_array)
        assert adjacency.shape == (n, n)
        assert adjacency.dtype == dtype
        assert adjacency.indices.dtype == adjacency.indptr.dtype == np.int32
        assert adjacency.has_canonical_format
        assert (adjacency != adjacency.T).nnz == 0
        assert (adjacency.data > 0).all()
        assert (adjacency.data <= 1).all()
        assert not adjacency.diagonal().any()
        if symmetrize != "mutual":
            assert (np.diff(adjacency.indptr) >= min(k, n - 1)).all()

    def test_one_sample_makes_an_empty_graph_and_two_an_edge(self):
        alone = knn_graph([[1.0, 2.0]])
        assert alone.shape == (1, 1)
        assert alone.nnz == 0
        both = knn_graph(np.array([[1.0, 2.0], [4.0, 6.0]], np.float32))
        np.testing.assert_allclose(both.toarray(), np.exp(-1) * (1 - np.eye(2)), rtol=1e-6)

    def test_at_most_all_others_are_neighbours(self, rng):
        X = rng.normal(size=(7, 2))
        np.testing.assert_array_equal(knn_graph(X, 50).toarray(), knn_graph(X, 6).toarray())

    def test_equal_samples_weigh_one(self):
        adjacency = knn_graph(np.ones((6, 3)), 2)
        np.testing.assert_array_equal(adjacency.data, 1.0)
        # Everybody is joined to the two first, and the two first to the third.
        assert adjacency.nnz == 2 * (1 + 2 * 4)

    def test_duplicates_weigh_one_beside_others(self, rng):
        X = rng.normal(size=(40, 3))
        X[1] = X[0]
        assert knn_graph(X, 5)[0, 1] == 1.0

    def test_does_not_depend_on_the_order_of_the_samples(self, rng):
        X, order = rng.normal(size=(200, 6)), rng.permutation(200)
        expected = knn_graph(X)[order][:, order]
        np.testing.assert_allclose(knn_graph(X[order]).toarray(), expected.toarray(), rtol=1e-12)

    def test_shifting_and_scaling_change_nothing_with_the_mean_bandwidth(self, rng):
        X = rng.normal(size=(100, 6))
        moved = knn_graph(1000 * X + 7)
        np.testing.assert_allclose(moved.toarray(), knn_graph(X).toarray(), rtol=1e-6)

    def test_the_transpose_gives_the_graph_of_the_features(self, rng):
        X = rng.normal(size=(30, 80))
        expected = knn_graph(np.ascontiguousarray(X.T), 4)
        np.testing.assert_array_equal(knn_graph(X.T, 4).toarray(), expected.toarray())

    def test_warns_when_all_weights_of_a_vertex_vanish(self, rng):
        X = rng.normal(size=(50, 3))
        X[3] = 1e4
        with pytest.warns(UserWarning, match=r"weights of 1 vertices vanish.*Raise bandwidth"):
            adjacency = knn_graph(X, 5, bandwidth=2.0)
        assert adjacency[[3]].nnz == 0

    def test_a_tiny_bandwidth_overflows_in_silence_but_warns(self, rng):
        with pytest.warns(UserWarning, match="weights of 50 vertices vanish"):
            assert knn_graph(rng.normal(size=(50, 3)), 5, bandwidth=1e-300).nnz == 0

    def test_approximate_neighbours_make_almost_the_same_graph(self, rng):
        X = clusters(rng)
        exact, close = knn_graph(X), knn_graph(X, method="approximate")
        assert abs(exact - close).sum() < 0.05 * exact.sum()


class TestErrors:
    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda X: nearest_neighbors(X[0], 1), r"X has shape \(4,\), but rows and columns"),
            (lambda X: nearest_neighbors(X[:0], 1), r"X has shape \(0, 4\)"),
            (lambda X: nearest_neighbors(X, 0), "n_neighbors=0 is not possible.* from 1 to 9"),
            (lambda X: nearest_neighbors(X, 10), "n_neighbors=10 is not possible with 9 rows"),
            (lambda X: nearest_neighbors(X, 4, among=X[:3]), "n_neighbors=4 .*from 1 to 3"),
            (
                lambda X: nearest_neighbors(X, 1, among=X[:, :3]),
                "X has 4 features, but among has 3",
            ),
            (lambda X: nearest_neighbors(X, 1, among=X[0]), "among has shape"),
            (
                lambda X: nearest_neighbors(X, 1, method="best"),
                "method='best' is unknown.*auto, ex",
            ),
            (lambda X: nearest_neighbors(X / [1, 1, 1, 0], 1), "a value of size inf, too large"),
            (lambda X: nearest_neighbors(X * [1, 1, 1e160, np.nan], 1), "divide the data"),
            (lambda X: knn_graph(X, 0), "n_neighbors=0 is not possible"),
            (lambda X: knn_graph(X[:1], 0), "n_neighbors=0 is not possible"),
            (lambda X: knn_graph(X, bandwidth=0.0), "bandwidth=0.0 must be a positive number"),
            (lambda X: knn_graph(X, bandwidth=-1.0), 'bandwidth=-1.0 must be.*"mean" or None'),
            (lambda X: knn_graph(X, bandwidth=np.nan), "bandwidth=nan must be"),
            (lambda X: knn_graph(X, symmetrize="min"), "symmetrize='min' is unknown.*mutual"),
            (lambda X: grid_graph(()), r"shape=\(\) is no grid"),
            (lambda X: grid_graph((3, 0)), r"shape=\(3, 0\) is no grid; give one positive size"),
        ],
    )
    def test_say_what_is_needed(self, call, message, rng):
        X = 1 + rng.random(size=(10, 4))
        with np.errstate(divide="ignore"), pytest.raises(ValueError, match=message):
            call(X)

    @pytest.mark.parametrize(
        ("graph", "message"),
        [
            (
                np.eye(4),
                "The graph has 4 vertices and X has 3 samples; build it from the same rows",
            ),
            (np.ones((3, 4)), r"The graph has shape \(3, 4\), but should be a square"),
            (np.ones(3), r"The graph has shape \(1, 3\)"),
            (-np.ones((3, 3)), "weights down to -1; give 0 or more"),
            (np.full((3, 3), np.nan), "weights that are not finite"),
            (np.full((3, 3), np.inf), "weights that are not finite"),
            (np.triu(np.ones((3, 3))), r"not symmetric.*up to 1\. Pass graph.maximum\(graph.T\)"),
            (sparse.csr_array(np.triu(np.ones((3, 3)))), "not symmetric"),
        ],
    )
    def test_of_given_graphs_say_what_is_needed(self, graph, message):
        with pytest.raises(ValueError, match=message):
            as_adjacency(graph, 3, "samples")

    def test_of_the_size_speak_of_features_where_these_are_meant(self):
        message = (
            "The graph has 400 vertices and X has 165 features; build it from the same columns"
        )
        with pytest.raises(ValueError, match=re.escape(message + " with knn_graph(X.T).")):
            as_adjacency(sparse.eye(400), 165, "features")


class TestGivenGraphs:
    @pytest.mark.parametrize("kind", ["csr_", "csc_", "coo_", "lil_", "dok_", "bsr_"])
    @pytest.mark.parametrize("ending", ["array", "matrix"])
    def test_sparse_graphs_of_any_format_are_taken_as_they_are(self, kind, ending, rng):
        adjacency = knn_graph(rng.normal(size=(30, 4)), 3)
        graph = getattr(sparse, kind + ending)(adjacency)
        taken = as_adjacency(graph, 30, "samples")
        assert isinstance(taken, sparse.csr_array)
        np.testing.assert_array_equal(taken.toarray(), adjacency.toarray())

    def test_dense_graphs_and_float32_and_whole_numbers_are_taken(self, rng):
        A = rng.integers(0, 3, size=(12, 12))
        A += A.T
        np.fill_diagonal(A, 0)
        for graph in (A, A.tolist(), A > 1):
            taken = as_adjacency(graph, 12, "samples")
            assert taken.dtype == np.float64
            np.testing.assert_array_equal(taken.toarray(), np.asarray(graph))
        assert as_adjacency(A.astype(np.float32), 12, "samples").dtype == np.float32

    def test_the_diagonal_is_dropped_and_the_given_graph_is_left_alone(self, rng):
        A = rng.random((9, 9))
        A += A.T
        given = sparse.csr_array(A)
        taken = as_adjacency(given, 9, "samples")
        np.testing.assert_array_equal(taken.toarray(), A - np.diag(np.diag(A)))
        np.testing.assert_array_equal(given.toarray(), A)

    def test_rounding_is_no_asymmetry(self, rng):
        A = rng.random((9, 9))
        A += A.T
        taken = as_adjacency(A * (1 + 1e-15 * rng.random(A.shape)), 9, "samples")
        assert (taken != taken.T).nnz == 0

    @pytest.mark.parametrize("include_self", [True, False])
    def test_neighbours_of_scikit_learn_with_weights_one(self, include_self, rng):
        X = rng.normal(size=(60, 4))
        given = kneighbors_graph(X, 5 + include_self, include_self=include_self)
        expected = knn_graph(X, 5, bandwidth=None)
        assert (as_adjacency(given, 60, "samples") != expected).nnz == 0

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_distances_of_scikit_learn_become_our_weights(self, dtype, rng):
        X = rng.normal(size=(60, 4)).astype(dtype)
        expected = knn_graph(X, 5).toarray()
        transformed = KNeighborsTransformer(n_neighbors=5).fit_transform(X)
        plain = kneighbors_graph(X, 5, mode="distance")
        for graph in (transformed, plain):
            taken = as_adjacency(graph, 60, "samples")
            np.testing.assert_allclose(taken.toarray(), expected, rtol=1e-4)

    def test_a_distance_of_zero_to_another_sample_becomes_weight_one(self, rng):
        X = rng.normal(size=(60, 4))
        X[1] = X[0]
        for graph in (
            KNeighborsTransformer(n_neighbors=5).fit_transform(X),
            kneighbors_graph(X, 5, mode="distance"),
        ):
            assert as_adjacency(graph, 60, "samples")[0, 1] == 1.0

    def test_distances_of_equal_samples_become_weights_one(self):
        given = kneighbors_graph(np.ones((8, 2)), 3, mode="distance")
        np.testing.assert_array_equal(as_adjacency(given, 8, "samples").data, 1.0)

    def test_an_empty_graph_is_a_graph(self):
        assert as_adjacency(np.zeros((5, 5)), 5, "samples").nnz == 0
        assert as_adjacency(sparse.csr_array((5, 5)), 5, "samples").nnz == 0


def some_graph(seed, n, dtype=np.float64):
    """A random graph with a few isolated vertices."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1).astype(dtype)
    A[:, rng.random(n) < 0.1] = 0
    return sparse.csr_array(A + A.T)


class TestLaplacian:
    @given(
        st.integers(1, 40),
        st.booleans(),
        st.sampled_from([np.float32, np.float64]),
        st.integers(0, 10**6),
    )
    @few
    def test_obeys_its_laws(self, n, normalized, dtype, seed):
        A = some_graph(seed, n, dtype)
        L = laplacian(A, normalized=normalized)
        tol = 1e-12 if dtype == np.float64 else 1e-5
        degrees = A.toarray().sum(axis=1, dtype=float)
        assert isinstance(L, sparse.csr_array)
        assert L.dtype == dtype
        assert L.indices.dtype == np.int32
        assert abs(L - L.T).max() <= tol
        null = np.sqrt(degrees) if normalized else np.ones(n)
        np.testing.assert_allclose(L @ null, 0, atol=tol * n)
        values = np.linalg.eigvalsh(L.toarray().astype(float))
        assert values.min() > -tol * n
        if normalized:
            assert values.max() < 2 + tol
        n_components, _ = csgraph.connected_components(A)
        assert np.count_nonzero(values < 1e-4 * (1 if normalized else 0.01)) == n_components

    @given(st.integers(2, 30), st.integers(0, 10**6))
    @few
    def test_measures_the_differences_along_edges(self, n, seed):
        A, Z = some_graph(seed, n), np.random.default_rng(seed).normal(size=(n, 3))
        along = 0.5 * np.sum(A.toarray() * square_distances(Z, Z))
        assert np.trace(Z.T @ (laplacian(A, normalized=False) @ Z)) == pytest.approx(along)

    @pytest.mark.parametrize("normalized", [True, False])
    def test_an_isolated_vertex_carries_no_penalty(self, normalized):
        A = sparse.csr_array(np.array([[0, 2, 0], [2, 0, 0], [0, 0, 0.0]]))
        weight = 1 if normalized else 2
        expected = weight * np.array([[1, -1, 0], [-1, 1, 0], [0, 0, 0.0]])
        np.testing.assert_allclose(laplacian(A, normalized=normalized).toarray(), expected)

    def test_is_normalized_by_the_roots_of_the_degrees(self, rng):
        A = knn_graph(rng.normal(size=(50, 4)), 4)
        roots = 1 / np.sqrt(A.toarray().sum(axis=1))
        expected = np.eye(50) - roots[:, None] * A.toarray() * roots
        np.testing.assert_allclose(laplacian(A).toarray(), expected, atol=1e-14)

    def test_leaves_the_adjacency_alone(self, rng):
        A = knn_graph(rng.normal(size=(50, 4)), 4)
        before = A.toarray()
        laplacian(A)
        laplacian(A, normalized=False)
        np.testing.assert_array_equal(A.toarray(), before)

    def test_of_an_empty_graph_is_zero(self):
        for normalized in (True, False):
            assert laplacian(sparse.csr_array((4, 4)), normalized=normalized).nnz == 0


class TestEigenvalueBound:
    @given(
        st.integers(1, 130),
        st.booleans(),
        st.sampled_from([np.float32, np.float64]),
        st.integers(0, 10**6),
    )
    @few
    def test_is_never_too_small_and_hardly_too_large(self, n, normalized, dtype, seed):
        L = laplacian(some_graph(seed, n, dtype), normalized=normalized)
        largest = np.linalg.eigvalsh(L.toarray().astype(float))[-1]
        assert largest * (1 - 1e-7) <= eigenvalue_bound(L) <= largest * 1.011 + 1e-9

    @pytest.mark.parametrize("normalized", [True, False])
    def test_of_graphs_with_close_eigenvalues(self, normalized):
        # The largest eigenvalues of a long path and of a large grid lie close together.
        for shape in ((500,), (30, 25)):
            L = laplacian(grid_graph(shape), normalized=normalized)
            largest = np.linalg.eigvalsh(L.toarray())[-1]
            assert largest * (1 - 1e-9) <= eigenvalue_bound(L) <= largest * 1.011

    def test_of_a_star_among_isolated_vertices(self):
        A = sparse.lil_array((2000, 2000))
        A[0, 1:900] = 1.0
        A[1:900, 0] = 1.0
        assert eigenvalue_bound(laplacian(A.tocsr(), normalized=False)) == pytest.approx(
            900, rel=1.1e-2
        )

    def test_is_at_most_two_for_normalized_laplacians(self, rng):
        L = laplacian(grid_graph((20, 20)))
        assert eigenvalue_bound(L) == 2.0

    def test_of_an_empty_graph_is_zero(self):
        for n in (1, 100):
            assert eigenvalue_bound(laplacian(sparse.csr_array((n, n)))) == 0.0

    def test_is_at_most_twice_the_largest_degree(self):
        # All eigenvalues but one are this bound.
        A = sparse.block_diag([grid_graph((2,))] * 100, format="csr")
        assert eigenvalue_bound(laplacian(A, normalized=False)) == 2.0

    @pytest.mark.parametrize("symmetrize", ["max", "mutual"])
    def test_of_graphs_whose_top_is_a_few_vertices(self, symmetrize, rng):
        for scale in (1, 2, 3):
            X = rng.standard_t(1.5, size=(300 * scale, 1 + scale))
            A = knn_graph(X, 4, bandwidth=10.0 * scale, symmetrize=symmetrize)
            for normalized in (True, False):
                L = laplacian(A, normalized=normalized)
                largest = np.linalg.eigvalsh(L.toarray())[-1]
                assert largest * (1 - 1e-9) <= eigenvalue_bound(L) <= largest * 1.011

    def test_is_the_same_every_time(self, rng):
        L = laplacian(knn_graph(rng.normal(size=(300, 3))))
        assert eigenvalue_bound(L) == eigenvalue_bound(L)


class TestGrids:
    @pytest.mark.parametrize("shape", [(5, 7), (1, 4), (3, 4, 5), (2, 2, 2)])
    def test_are_those_of_scikit_learn(self, shape):
        theirs = sparse.csr_array(grid_to_graph(*shape)).toarray()
        expected = theirs - np.diag(np.diag(theirs))
        np.testing.assert_array_equal(grid_graph(shape).toarray(), expected)

    @pytest.mark.parametrize("diagonals", [True, False])
    @pytest.mark.parametrize("shape", [(6,), (4, 5), (3, 4, 3), (2, 3, 2, 2), (1, 1)])
    def test_join_points_one_step_apart(self, shape, diagonals):
        places = np.array(list(np.ndindex(*shape)))
        norm = "chebyshev" if diagonals else "cityblock"
        expected = cdist(places, places, norm) == 1
        grid = grid_graph(shape, diagonals=diagonals)
        np.testing.assert_array_equal(grid.toarray(), expected)
        assert grid.indices.dtype == np.int32


class TestLocalityOrder:
    def test_brings_neighbours_together(self, rng):
        shuffle = rng.permutation(900)
        grid = grid_graph((30, 30))[shuffle][:, shuffle]
        order = locality_order(grid)
        np.testing.assert_array_equal(np.sort(order), np.arange(900))
        rows, columns = grid[order][:, order].nonzero()
        assert abs(rows - columns).max() < 70

    def test_orders_vertices_without_edges_too(self):
        assert sorted(locality_order(sparse.csr_array((5, 5)))) == [0, 1, 2, 3, 4]
