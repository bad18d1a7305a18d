"""Thresholding inside a loop gives what a full decomposition gives."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from robustpca.engine import scratch
from robustpca.engine.svt import (
    LowRank,
    SingularThreshold,
    lanes,
    restricted_norm,
    spectral_norm,
)
from robustpca.engine.threads import ThreadPool

# Tall, wide and square; with a short side that is decomposed whole, and with one that is not.
SHAPES = [(300, 80), (80, 300), (150, 150), (60, 30), (30, 60), (500, 41), (1, 90), (90, 1)]


@pytest.fixture
def pool():
    with ThreadPool() as pool:
        yield pool


def planted(rng, shape, values, dtype=np.float64):
    """A matrix with these singular values."""
    left, right = (np.linalg.qr(rng.normal(size=(n, len(values))))[0] for n in shape)
    return ((left * values) @ right.T).astype(dtype)


def with_a_gap(shape, rank, low=0.3):
    """Some singular values from 2 to 5, all others ``low``: the threshold is 1."""
    return np.r_[np.linspace(5, 2, rank), np.full(min(shape) - rank, low)]


class Counted(SingularThreshold):
    """Fails when it would multiply by the matrix without end."""

    n_passes = 0

    def multiply(self, A):
        self.n_passes += 1
        assert self.n_passes < 200, "does not end"
        super().multiply(A)


def singular_value_threshold(A, threshold):
    """Singular values lowered by the threshold, from a full decomposition."""
    left, values, right = np.linalg.svd(A, full_matrices=False)
    return (left * np.maximum(values - threshold, 0)) @ right


def converged(A, threshold, pool, n_calls=8):
    """What a loop gets when its matrix does not change any more."""
    shrink = Counted(A.shape, pool)
    for _ in range(n_calls):
        shrink.multiply(A)
        low_rank = shrink.solve(A, threshold)
    return low_rank


def assert_thresholded(low_rank, A, threshold, atol):
    """``low_rank`` is ``A`` with lowered singular values, and its factors are what they say."""
    expected = singular_value_threshold(A.astype(np.float64), threshold)
    np.testing.assert_allclose(low_rank.dense(), expected, rtol=0, atol=atol)
    values = np.linalg.svd(A.astype(np.float64), compute_uv=False)
    lowered = values[values > threshold] - threshold
    assert low_rank.rank == len(lowered)
    np.testing.assert_allclose(low_rank.values, lowered, rtol=0, atol=atol)
    for factor in (low_rank.left / low_rank.values, low_rank.right.T):
        eye = np.eye(low_rank.rank)
        np.testing.assert_allclose(factor.T @ factor, eye, rtol=0, atol=max(10 * atol, 1e-12))


class TestSingularThreshold:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("share", [0.0, 0.05, 0.15, 0.25, 0.5, 1.0])
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_finds_what_a_full_decomposition_finds(self, shape, share, dtype, pool, rng):
        A = planted(rng, shape, with_a_gap(shape, round(share * min(shape))), dtype)
        low_rank = converged(A, 1.0, pool, n_calls=12)
        assert low_rank.left.dtype == low_rank.right.dtype == dtype
        assert low_rank.left.shape == (shape[0], low_rank.rank)
        assert_thresholded(low_rank, A, 1.0, 1e-10 if dtype == np.float64 else 2e-5)

    @pytest.mark.parametrize("shape", [(60, 30), (30, 60), (40, 40), (1, 90), (90, 1)], ids=str)
    def test_a_small_side_is_right_at_the_first_call(self, shape, pool, rng):
        A = planted(rng, shape, with_a_gap(shape, min(shape) // 2))
        assert_thresholded(converged(A, 1.0, pool, n_calls=1), A, 1.0, 1e-12)

    @pytest.mark.parametrize("shape", [(300, 80), (80, 300)], ids=str)
    def test_a_large_part_above_the_threshold_is_right_at_the_first_call(self, shape, pool, rng):
        # All directions of the block are needed each time it grows, up to the Gram matrix.
        A = planted(rng, shape, with_a_gap(shape, 60))
        assert_thresholded(converged(A, 1.0, pool, n_calls=1), A, 1.0, 1e-12)

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("shape", [(200, 100), (100, 200)], ids=str)
    def test_misses_no_singular_value_above_a_gap(self, shape, seed, pool):
        rng = np.random.default_rng(seed)
        rank = int(rng.integers(1, 25))
        A = planted(rng, shape, with_a_gap(shape, rank, low=0.5))
        assert converged(A, 1.0, pool, n_calls=4).rank == rank

    def test_singular_values_that_are_close_to_each_other_are_all_found(self, pool, rng):
        values = np.r_[np.full(12, 3.0), np.full(88, 0.2)]
        A = planted(rng, (150, 100), values)
        assert_thresholded(converged(A, 1.0, pool), A, 1.0, 1e-9)

    def test_singular_values_of_very_different_size_are_all_found(self, pool, rng):
        values = np.r_[1e6, 1e3, 50.0, 3.0, 2.0, np.full(95, 0.1)]
        A = planted(rng, (150, 100), values)
        assert_thresholded(converged(A, 1.0, pool), A, 1.0, 1e-6)

    @pytest.mark.parametrize("shape", [(200, 100), (100, 200)], ids=str)
    def test_stays_accurate_while_the_matrix_changes_slowly(self, shape, pool, rng):
        A = planted(rng, shape, with_a_gap(shape, 10))
        drift = planted(rng, shape, np.full(100, 0.002))
        shrink = SingularThreshold(shape, pool)
        for call in range(40):
            A = A + drift
            shrink.multiply(A)
            low_rank = shrink.solve(A, 1.0)
            if call >= 5:
                expected = singular_value_threshold(A, 1.0)
                assert np.linalg.norm(low_rank.dense() - expected) < 0.01

    @pytest.mark.parametrize("shape", [(200, 100), (100, 200)], ids=str)
    def test_a_direction_that_appears_later_is_found(self, shape, pool, rng):
        left, right = (np.linalg.qr(rng.normal(size=(n, 20)))[0] for n in shape)
        values = np.r_[np.linspace(5, 2, 8), np.full(12, 0.1)]
        shrink = SingularThreshold(shape, pool)
        ranks = []
        for call in range(30):
            # The weakest direction of all rises to the top.
            values[-1] = 0.1 + 0.2 * call
            A = (left * values) @ right.T
            shrink.multiply(A)
            ranks.append(shrink.solve(A, 1.0).rank)
        assert ranks[4] == 8
        assert ranks[-1] == 9
        # It is above the threshold from the fifth call on.
        assert ranks.index(9) <= 8

    def test_goes_to_the_gram_matrix_and_back_as_the_rank_grows_and_falls(self, pool, rng):
        left, right = (np.linalg.qr(rng.normal(size=(n, 100)))[0] for n in (200, 100))
        shrink = SingularThreshold((200, 100), pool)
        whole = []
        for rank in (5, 40, 90, 40, 5, 5, 5, 5, 5, 5):
            A = (left * with_a_gap((200, 100), rank)) @ right.T
            shrink.multiply(A)
            assert shrink.solve(A, 1.0).rank == rank
            whole.append(shrink.block is None)
        assert whole[2]
        assert not whole[-1]
        shrink.multiply(A)
        assert_thresholded(shrink.solve(A, 1.0), A, 1.0, 1e-7)

    @pytest.mark.parametrize("shape", [(200, 100), (100, 200)], ids=str)
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_a_careful_threshold_follows_a_spectrum_without_a_gap(self, shape, dtype, pool, rng):
        A = planted(rng, shape, 0.9 ** np.arange(100.0), dtype)
        errors = {}
        for careful in (True, False):
            shrink = SingularThreshold(shape, pool, careful=careful)
            errors[careful] = []
            for threshold in 0.8 * 0.7 ** np.arange(25):
                shrink.multiply(A)
                found = shrink.solve(A, threshold)
                expected = singular_value_threshold(A.astype(np.float64), threshold)
                error = np.linalg.norm(found.dense() - expected, 2)
                errors[careful].append(error / threshold)
        # A few calls are allowed to find the directions.
        assert max(errors[True][4:]) < 0.01
        assert max(errors[False][4:]) > 0.1

    @pytest.mark.parametrize("shape", [(120, 90), (90, 120)], ids=str)
    def test_a_careful_threshold_may_be_far_below_the_largest_singular_value(
        self, shape, pool, rng
    ):
        values = np.r_[np.geomspace(1.0, 1e-6, 60), np.full(30, 1e-8)]
        A, errors = planted(rng, shape, values), []
        for careful in (True, False):
            shrink = SingularThreshold(shape, pool, careful=careful)
            for _ in range(5):
                shrink.multiply(A)
                found = shrink.solve(A, 1e-7).dense()
            errors.append(np.linalg.norm(found - singular_value_threshold(A, 1e-7), 2))
        assert errors[0] < 1e-12 < errors[1]

    def test_a_careful_threshold_uses_directions_where_there_is_a_gap(self, pool, rng):
        shrink = SingularThreshold((200, 100), pool, careful=True)
        A = planted(rng, (200, 100), with_a_gap((200, 100), 10))
        for _ in range(8):
            shrink.multiply(A)
            found = shrink.solve(A, 1.0)
        assert shrink.block is not None
        assert_thresholded(found, A, 1.0, 1e-7)

    def test_a_threshold_above_all_singular_values_leaves_nothing(self, pool, rng):
        for shape in SHAPES:
            low_rank = converged(planted(rng, shape, with_a_gap(shape, 0)), 1.0, pool, n_calls=2)
            assert low_rank.rank == 0
            np.testing.assert_array_equal(low_rank.dense(), np.zeros(shape))

    def test_the_matrix_is_not_changed(self, pool, rng):
        for shape in SHAPES:
            A = rng.normal(size=shape)
            A.flags.writeable = False
            before = A.copy()
            converged(A, 3.0, pool, n_calls=2)
            np.testing.assert_array_equal(A, before)

    def test_tiles_may_be_multiplied_one_by_one_in_any_order(self, pool, rng):
        A = planted(rng, (500, 60), with_a_gap((500, 60), 5))
        forward, backward = (SingularThreshold(A.shape, pool) for _ in range(2))
        for _ in range(6):
            forward.multiply(A)
            backward.start_pass(A)
            for lane in reversed(range(len(backward.lanes))):
                for place in reversed(backward.lanes[lane]):
                    backward.multiply_tile(lane, place, A[place])
            found, same = (shrink.solve(A, 1.0) for shrink in (forward, backward))
        np.testing.assert_allclose(found.dense(), same.dense(), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("rank", [5, 60], ids=["block", "gram"])
    @pytest.mark.parametrize("shape", [(300, 100), (100, 300)], ids=str)
    def test_the_number_of_threads_changes_nothing(self, shape, rank, rng):
        A = planted(rng, shape, with_a_gap(shape, rank))
        found = []
        for n_threads in (1, 2, 4):
            with threadpool_limits(n_threads, user_api="blas"), ThreadPool() as pool:
                found.append(converged(A, 1.0, pool, n_calls=3))
        for other in found[1:]:
            np.testing.assert_array_equal(other.left, found[0].left)
            np.testing.assert_array_equal(other.right, found[0].right)
            np.testing.assert_array_equal(other.values, found[0].values)


class TestDependentImages:
    """Matrices with fewer directions than the block has, to the last digit."""

    KINDS = {
        "equal rows": lambda rng: np.repeat(rng.integers(1, 9, size=(1, 60)), 100, axis=0),
        "equal entries": lambda rng: np.full((100, 60), 3.0),
        "few rows": lambda rng: np.outer(np.arange(100) < 3, np.arange(60.0)),
        "one entry": lambda rng: np.outer(np.arange(100) == 3, 7.0 * (np.arange(60) == 4)),
        "one row and one column": lambda rng: (
            np.pad(np.ones((1, 1)), ((0, 99), (0, 59)))
            + np.pad(np.ones((1, 60)), ((0, 99), (0, 0)))
            + np.pad(np.ones((100, 1)), ((0, 0), (0, 59)))
        ),
    }

    def test_a_matrix_of_low_rank_to_the_last_digit(self, rng):
        for kind in self.KINDS.values():
            for dtype, accuracy in ((np.float64, 1e-12), (np.float32, 3e-6)):
                A = kind(rng).astype(dtype)
                with ThreadPool() as pool:
                    for B in (A, np.ascontiguousarray(A.T)):
                        low_rank = converged(B, 0.5, pool)
                        assert_thresholded(low_rank, B, 0.5, accuracy * np.linalg.norm(B))

    @pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-12), (np.float32, 1e-5)])
    def test_a_matrix_of_low_rank_stays_so_call_after_call(self, dtype, accuracy, pool):
        for seed in range(3):
            for shape in [(100, 100), (300, 200), (45, 500)]:
                rng = np.random.default_rng(seed)
                left = rng.integers(-3, 4, size=(shape[0], 2))
                A = (left @ rng.integers(-3, 4, size=(2, shape[1]))).astype(dtype)
                size = np.linalg.norm(A, 2)
                expected = singular_value_threshold(A.astype(np.float64), 0.1 * size)
                shrink = Counted(shape, pool)
                for _ in range(10):
                    shrink.multiply(A)
                    found = shrink.solve(A, 0.1 * size).dense()
                    assert np.linalg.norm(found - expected) < accuracy * size

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("shape", [(100, 60), (60, 100)], ids=str)
    def test_the_zero_matrix(self, shape, dtype, pool):
        assert converged(np.zeros(shape, dtype), 1.0, pool).rank == 0

    @pytest.mark.parametrize("shape", [(30, 20), (1, 1), (1, 90), (90, 1)], ids=str)
    def test_a_small_zero_matrix(self, shape, pool):
        assert converged(np.zeros(shape), 1.0, pool).rank == 0

    def test_goes_on_after_the_matrix_was_zero(self, pool, rng):
        A = planted(rng, (100, 60), with_a_gap((100, 60), 5))
        shrink = Counted(A.shape, pool)
        for B in (A, np.zeros_like(A), *[A] * 10):
            shrink.multiply(B)
            low_rank = shrink.solve(B, 1.0)
        assert_thresholded(low_rank, A, 1.0, 1e-8)


class TestTop:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_is_the_best_approximation_of_that_rank(self, shape, dtype, pool, rng):
        rank = min(4, *shape)
        A = planted(rng, shape, with_a_gap(shape, rank, low=0.1), dtype)
        found = SingularThreshold(shape, pool).top(A, rank)
        left, values, right = np.linalg.svd(A.astype(np.float64), full_matrices=False)
        best = (left[:, :rank] * values[:rank]) @ right[:rank]
        assert found.left.dtype == found.right.dtype == dtype
        np.testing.assert_allclose(found.dense(), best, rtol=0, atol=1e-4)
        np.testing.assert_allclose(found.values, values[:rank], rtol=1e-5)

    def test_more_steps_bring_it_nearer(self, pool, rng):
        A = planted(rng, (150, 100), with_a_gap((150, 100), 5, low=0.5))
        left, values, right = np.linalg.svd(A, full_matrices=False)
        best = (left[:, :5] * values[:5]) @ right[:5]
        errors = [
            np.linalg.norm(SingularThreshold(A.shape, pool).top(A, 5, n_steps).dense() - best)
            for n_steps in (2, 5, 12)
        ]
        assert errors[0] > errors[1] > errors[2]
        assert errors[2] < 1e-6

    def test_the_full_rank_is_the_matrix(self, pool, rng):
        for shape in [(9, 5), (5, 9), (90, 50)]:
            A = rng.normal(size=shape)
            found = SingularThreshold(shape, pool).top(A, min(shape))
            np.testing.assert_allclose(found.dense(), A, rtol=0, atol=1e-9)


class TestLowRank:
    @pytest.fixture
    def pair(self, pool, rng):
        matrices = [planted(rng, (70, 50), values) for values in ([5.0, 3.0, 1.0], [4.0, 4.0])]
        return [LowRank(*factors(A)) for A in matrices]

    def test_distance_is_that_of_the_matrices(self, pair):
        first, second = pair
        expected = np.linalg.norm(first.dense() - second.dense())
        assert first.distance(second) == pytest.approx(expected, rel=1e-12)
        assert second.distance(first) == pytest.approx(expected, rel=1e-12)

    def test_distance_to_zero_is_the_norm(self, pair):
        first, zero = pair[0], LowRank.zeros((70, 50), np.float64)
        assert first.distance(zero) == pytest.approx(np.sqrt(35), rel=1e-12)
        assert zero.distance(first) == pytest.approx(np.sqrt(35), rel=1e-12)
        assert zero.distance(zero) == 0

    def test_distance_to_itself_is_nothing(self, pair):
        assert pair[0].distance(pair[0]) < 1e-6

    def test_distance_of_near_matrices_in_double_precision(self, rng):
        A = planted(rng, (70, 50), [5.0, 3.0])
        B = A + planted(rng, (70, 50), [1e-5])
        found = LowRank(*factors(A)).distance(LowRank(*factors(B)))
        assert found == pytest.approx(1e-5, rel=0.01)

    def test_distance_of_near_matrices_in_single_precision(self, rng):
        # A loop works in single precision until its steps are 1e-4 of the data.
        A = planted(rng, (70, 50), [5.0, 3.0])
        B = A + planted(rng, (70, 50), [3e-4])
        first, second = (LowRank(*factors(M)).astype(np.float32) for M in (A, B))
        assert first.distance(second) == pytest.approx(3e-4, rel=0.05)

    def test_rows_can_be_had_alone(self, pair):
        low_rank = pair[0]
        place, out = slice(10, 20), np.empty((10, 50))
        assert low_rank.dense(place, out=out) is out
        np.testing.assert_allclose(out, low_rank.dense()[place], rtol=0, atol=1e-14)

    def test_other_precision(self, pair):
        single = pair[0].astype(np.float32)
        assert single.dense().dtype == np.float32
        assert single.rank == 3
        np.testing.assert_allclose(single.dense(), pair[0].dense(), rtol=0, atol=1e-6)


def factors(A):
    left, values, right = np.linalg.svd(A, full_matrices=False)
    rank = int(np.count_nonzero(values > 1e-12))
    return left[:, :rank] * values[:rank], right[:rank], values[:rank]


class TestSpectralNorm:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("shape", [(200, 120), (120, 200), (60, 60)], ids=str)
    def test_of_noise_is_right_to_a_few_percent_and_never_too_large(self, shape, seed, pool):
        # The largest singular values of noise are as close to each other as can be.
        A = np.random.default_rng(seed).normal(size=shape)
        exact = np.linalg.norm(A, 2)
        assert 0.95 * exact < spectral_norm(A, pool) <= exact * (1 + 1e-12)
        assert spectral_norm(A, pool, n_steps=60) == pytest.approx(exact, rel=1e-6)

    @pytest.mark.parametrize("shape", [(9, 5), (5, 9), (1, 7), (7, 1), (1, 1), (12, 12)], ids=str)
    def test_of_a_small_matrix_is_exact(self, shape, pool, rng):
        A = rng.normal(size=shape)
        assert spectral_norm(A, pool) == pytest.approx(np.linalg.norm(A, 2), rel=1e-10)

    @pytest.mark.parametrize("unit", [1e-100, 1e100])
    def test_squares_of_squares_may_leave_the_range_of_numbers(self, unit, pool, rng):
        A = rng.normal(size=(12, 7))
        assert spectral_norm(unit * A, pool) == pytest.approx(unit * np.linalg.norm(A, 2), rel=1e-9)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("rank", [1, 2, 5, 10])
    def test_of_a_matrix_of_low_rank_is_exact(self, rank, seed, pool):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(150, rank)) @ rng.normal(size=(rank, 100))
        assert spectral_norm(A, pool) == pytest.approx(np.linalg.norm(A, 2), rel=1e-10)

    @pytest.mark.parametrize("low", [0.5, 0.9])
    def test_of_a_matrix_with_a_gap_has_many_digits(self, low, pool, rng):
        A = planted(rng, (150, 100), np.r_[np.ones(5), np.linspace(0, low, 95)])
        assert spectral_norm(A, pool) == pytest.approx(1, rel=1e-4 if low == 0.9 else 1e-9)

    def test_counts_missing_entries_as_zero(self, pool, rng):
        A = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 100))
        A[rng.random(A.shape) < 0.3] = np.nan
        A[7], A[:, 9] = np.nan, np.nan
        before = A.copy()
        exact = np.linalg.norm(np.nan_to_num(A), 2)
        assert spectral_norm(A, pool) == pytest.approx(exact, rel=1e-3)
        np.testing.assert_array_equal(A, before)

    def test_of_no_entry_at_all_is_zero(self, pool):
        for A in (np.zeros((9, 5)), np.zeros((100, 60)), np.full((100, 60), np.nan)):
            assert spectral_norm(A, pool) == 0

    @pytest.mark.parametrize("scale", [1e5, 1e50])
    def test_has_the_unit_of_the_matrix(self, scale, pool, rng):
        A = planted(rng, (150, 100), np.linspace(1, 0, 100))
        expected = scale * spectral_norm(A, pool)
        assert spectral_norm(scale * A, pool) == pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("scale", [1e-5, 1e-8, 1e-50])
    def test_has_the_unit_of_the_matrix_when_it_is_small(self, scale, pool, rng):
        A = planted(rng, (150, 100), np.linspace(1, 0, 100))
        assert spectral_norm(scale * A, pool) == pytest.approx(scale, rel=1e-2, abs=0)

    def test_in_single_precision(self, pool, rng):
        A = planted(rng, (150, 100), np.linspace(1, 0, 100), np.float32)
        expected = spectral_norm(A.astype(np.float64), pool)
        assert spectral_norm(A, pool) == pytest.approx(expected, rel=1e-5)

    def test_the_number_of_threads_changes_nothing(self, rng):
        A = rng.normal(size=(301, 100))
        found = set()
        for n_threads in (1, 2, 4):
            with threadpool_limits(n_threads, user_api="blas"), ThreadPool() as pool:
                found.add(spectral_norm(A, pool))
        assert len(found) == 1


@pytest.mark.parametrize("part", [7, 64, 1 << 16])
def test_norms_of_long_matrices_are_put_together_from_parts_of_their_rows(
    part, pool, rng, monkeypatch
):
    monkeypatch.setattr(scratch, "SUMMED_ROWS", part)
    A = planted(rng, (300, 60), np.r_[2.0, np.ones(5), np.linspace(0.5, 0, 54)])
    directions = np.linalg.svd(A)[2][:6]
    assert restricted_norm(A, directions, pool) == pytest.approx(2, rel=1e-12)
    assert restricted_norm(A, directions[1:], pool) == pytest.approx(1, rel=1e-12)
    assert spectral_norm(A, pool) == pytest.approx(2, rel=1e-9)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 127, 128, 129, 511, 512, 513, 2000])
def test_lanes_cover_every_row_once_and_in_order(n_rows):
    places = [place for tiles in lanes((n_rows, 300)) for place in tiles]
    rows = np.concatenate([np.arange(n_rows)[place] for place in places])
    np.testing.assert_array_equal(rows, np.arange(n_rows))
    assert max(place.stop - place.start for place in places) <= 128
    assert all(tiles for tiles in lanes((n_rows, 300)))
