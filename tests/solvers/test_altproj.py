"""Alternating projections find planted parts when the rank is known."""

import numpy as np
import pytest
from mixtures import as_array, planted
from threadpoolctl import threadpool_limits

from robustpca.engine.threads import compiled
from robustpca.solvers.altproj import accept, alternating_projections


def find(X, rank, *, tol=1e-7, max_iter=200, **options):
    return alternating_projections(X, rank, tol=tol, max_iter=max_iter, **options)


def relative(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


class TestRecovery:
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("corrupted", [0.1, 0.3])
    @pytest.mark.parametrize("shape", [(200, 200), (300, 150), (150, 300)], ids=str)
    def test_both_parts_are_found(self, shape, corrupted, seed):
        X, low, wrong = planted(np.random.default_rng(seed), shape, 4, corrupted=corrupted)
        result = find(X, 4)
        assert result.converged
        assert result.change <= 1e-7
        assert relative(result.low_rank.dense(), low) < 1e-6
        found = as_array(result.sparse)
        assert relative(found, wrong) < 1e-5
        # All but the smallest of the wrong entries are found, and no other.
        assert not found[wrong == 0].any()
        assert np.all(found[np.abs(wrong) > 1e-3] != 0)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("shape", [(200, 200), (300, 150), (150, 300)], ids=str)
    def test_missing_entries_are_filled_in(self, shape, seed):
        X, low, wrong = planted(np.random.default_rng(seed), shape, 4, missing=0.3)
        result = find(X, 4)
        assert result.converged
        assert relative(result.low_rank.dense(), low) < 1e-5
        found, observed = as_array(result.sparse), ~np.isnan(X)
        assert not found[~observed].any()
        np.testing.assert_allclose(found[observed], wrong[observed], rtol=0, atol=1e-3)

    def test_it_stands_more_corruption_than_the_convex_way(self, rng):
        X, low, _ = planted(rng, (300, 300), 3, corrupted=0.4)
        assert relative(find(X, 3).low_rank.dense(), low) < 1e-5

    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_single_precision_in_single_precision_out(self, missing, rng):
        X, low, _ = planted(rng, (200, 150), 4, missing=missing)
        result = find(X.astype(np.float32), 4)
        assert result.converged
        assert result.low_rank.dense().dtype == np.float32
        assert result.sparse.dtype == np.float32
        assert relative(result.low_rank.dense(), low) < 5e-6

    def test_factors_are_singular_vectors(self, rng):
        X, low, _ = planted(rng, (120, 90), 4)
        low_rank = find(X, 4).low_rank
        expected = np.linalg.svd(low, compute_uv=False)[:4]
        np.testing.assert_allclose(low_rank.values, expected, rtol=1e-5)
        np.testing.assert_allclose(low_rank.right @ low_rank.right.T, np.eye(4), atol=1e-10)
        squares = np.diag(low_rank.values**2)
        np.testing.assert_allclose(low_rank.left.T @ low_rank.left, squares, atol=1e-6)

    def test_clean_data_of_that_rank_need_no_sparse_part(self, rng):
        low = rng.normal(size=(90, 3)) @ rng.normal(size=(3, 60))
        result = find(low, 3)
        assert relative(result.low_rank.dense(), low) < 1e-6
        assert np.abs(as_array(result.sparse)).max(initial=0.0) < 1e-4

    @pytest.mark.parametrize("scale", [1e-3, 1e3, 1e10])
    def test_the_unit_of_the_data_does_not_matter(self, scale, rng):
        X, low, _ = planted(rng, (120, 90), 4)
        result = find(scale * X, 4)
        assert relative(result.low_rank.dense() / scale, low) < 1e-6

    def test_a_transposed_matrix_has_transposed_parts(self, rng):
        X, *_ = planted(rng, (120, 90), 4)
        first, second = find(X, 4), find(np.ascontiguousarray(X.T), 4)
        assert relative(second.low_rank.dense().T, first.low_rank.dense()) < 1e-6


class TestNoise:
    @pytest.mark.parametrize("noise", [0.01, 0.1])
    def test_entries_below_the_floor_are_not_called_sparse(self, noise, rng):
        X, low, wrong = planted(rng, (200, 150), 4, noise=noise)
        floor = 4 * noise
        result = find(X, 4, floor=floor)
        assert result.converged
        found = as_array(result.sparse)
        assert np.abs(found[found != 0]).min() > floor
        assert np.mean((found != 0) & (wrong == 0)) < 1e-3
        assert np.all(found[np.abs(wrong) > 2 * floor] != 0)
        # As good as if the wrong entries were known: noise on so many free numbers.
        best = noise * np.sqrt(4 * (200 + 150)) / np.linalg.norm(low)
        assert relative(result.low_rank.dense(), low) < 1.3 * best
        # What is left over is the noise.
        rest = X - result.low_rank.dense() - found
        assert np.linalg.norm(rest) / np.linalg.norm(X) == pytest.approx(result.change, rel=1e-2)
        assert np.std(rest) == pytest.approx(noise, rel=0.1)

    def test_ends_when_only_noise_is_left(self, rng):
        X, *_ = planted(rng, (200, 150), 4, noise=0.05)
        result = find(X, 4, floor=0.2)
        assert result.converged
        assert result.change > 1e-3
        assert result.n_iter < 100


class TestLoop:
    def test_the_callback_is_called_after_every_iteration(self, rng):
        X, *_ = planted(rng, (90, 60), 3)
        steps = []
        result = find(X, 3, callback=steps.append)
        assert [step.iteration for step in steps] == list(range(1, result.n_iter + 1))
        np.testing.assert_array_equal([step.objective for step in steps], result.objective[1:])
        assert steps[-1].change == result.change
        assert {step.rank for step in steps} == {3}
        assert result.objective[0] == pytest.approx(np.linalg.norm(X))

    def test_an_exception_of_the_callback_ends_the_loop_and_harms_nothing(self, rng):
        X, *_ = planted(rng, (90, 60), 3)
        before = X.copy()

        def stop(step):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            find(X, 3, callback=stop)
        np.testing.assert_array_equal(X, before)
        assert find(X, 3).converged

    def test_ends_after_as_many_iterations_as_allowed(self, rng):
        X, *_ = planted(rng, (90, 60), 3)
        result = find(X, 3, max_iter=4)
        assert result.n_iter == 4
        assert not result.converged

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_data_are_left_alone_and_may_be_stored_anyhow(self, dtype, rng):
        X = planted(rng, (90, 60), 3, missing=0.1)[0].astype(dtype)
        expected = find(X, 3, tol=1e-5).low_rank.dense()
        wide = np.full((180, 120), 1e9, dtype)
        wide[::2, ::2] = X
        read_only = X.copy()
        read_only.flags.writeable = False
        for stored in (read_only, np.asfortranarray(X), wide[::2, ::2]):
            found = find(stored, 3, tol=1e-5).low_rank.dense()
            np.testing.assert_array_equal(stored, X)
            assert relative(found, expected) < 1e-4

    def test_what_is_hidden_has_no_influence(self, rng):
        X, *_ = planted(rng, (120, 90), 3, noise=0.01)
        hidden = rng.random(X.shape) < 0.2
        first = np.where(hidden, np.nan, X)
        second = first.copy()
        second.view(np.uint64)[hidden] |= 12345
        results = [find(A, 3, floor=0.05) for A in (first, second)]
        np.testing.assert_array_equal(results[0].low_rank.left, results[1].low_rank.left)
        np.testing.assert_array_equal(as_array(results[0].sparse), as_array(results[1].sparse))

    def test_the_number_of_threads_changes_nothing(self, rng):
        X, *_ = planted(rng, (300, 90), 3, noise=0.01, missing=0.1)
        results = []
        for n_threads in (1, 2, 4):
            with threadpool_limits(n_threads, user_api="blas"):
                results.append(find(X, 3, floor=0.05))
        for other in results[1:]:
            np.testing.assert_array_equal(other.low_rank.left, results[0].low_rank.left)
            np.testing.assert_array_equal(other.low_rank.right, results[0].low_rank.right)
            np.testing.assert_array_equal(other.objective, results[0].objective)


class TestOddData:
    @pytest.mark.parametrize("shape", [(1, 1), (1, 8), (8, 1), (2, 2)], ids=str)
    def test_one_row_or_one_column_is_of_rank_one(self, shape, rng):
        X = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
        result = find(X, 1)
        assert np.isfinite(result.low_rank.dense()).all()
        both = result.low_rank.dense() + as_array(result.sparse)
        np.testing.assert_allclose(both, X, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("shape", [(9, 6), (6, 9), (60, 50)], ids=str)
    def test_the_full_rank_explains_everything(self, shape, rng):
        X = rng.normal(size=shape)
        result = find(X, min(shape))
        both = result.low_rank.dense() + as_array(result.sparse)
        np.testing.assert_allclose(both, X, rtol=0, atol=1e-5)

    def test_rows_and_columns_without_any_entry(self, rng):
        X, low, _ = planted(rng, (120, 90), 3)
        X[3], X[:, 4] = np.nan, np.nan
        result = find(X, 3)
        L = result.low_rank.dense()
        assert np.isfinite(L).all()
        observed = ~np.isnan(X)
        assert relative(L[observed], low[observed]) < 1e-5

    @pytest.mark.parametrize("shape", [(60, 50), (20, 10)], ids=str)
    def test_a_rank_that_is_too_high_does_no_harm(self, shape, rng):
        low = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
        result = find(low, 2)
        assert relative(result.low_rank.dense(), low) < 1e-6

    @pytest.mark.parametrize(
        "X",
        [np.zeros((20, 10)), np.zeros((100, 60)), np.eye(60)],
        ids=["zero", "large and zero", "diagonal"],
    )
    def test_a_matrix_that_is_sparse_altogether(self, X):
        result = find(X, 2)
        both = result.low_rank.dense() + as_array(result.sparse)
        np.testing.assert_allclose(both, X, rtol=0, atol=1e-6)


class TestKernel:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_accept_takes_the_data_where_they_are_near(self, dtype, rng):
        X, L = (rng.normal(size=(7, 9)).astype(dtype) for _ in range(2))
        X[rng.random(X.shape) < 0.2] = np.nan
        X[2] = np.nan
        near = np.abs(X - L) <= 0.8
        expected = np.where(near, X, L)
        distance = np.sum((X - L).astype(np.float64)[near] ** 2)
        for kernel in (accept, compiled(accept)):
            merged = L.copy()
            squares = kernel(X, merged, dtype(0.8))
            assert merged.dtype == dtype
            np.testing.assert_array_equal(merged, expected)
            assert squares == pytest.approx(distance, rel=1e-6)
        assert 0 < np.count_nonzero(near) < X.size

    def test_accept_forms_squares_in_the_precision_of_the_data(self):
        X, L = np.array([[1.1]], np.float32), np.array([[0.3]], np.float32)
        error = X[0, 0] - L[0, 0]
        squares = compiled(accept)(X, L.copy(), np.float32(1.0))
        assert squares == np.float32(error * error)
