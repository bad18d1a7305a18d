"""Sampled rows and columns give both parts of large matrices, and it is known when they do not."""

import numpy as np
import pytest
from mixtures import as_array, planted
from threadpoolctl import threadpool_limits

from robustpca.engine.svt import LowRank
from robustpca.solvers.sampled import Check, sampled_pursuit

SEEDS = range(10)
# The convex problem for a block is most of the time of a small case.
FEW = range(4)
some_seeds = pytest.mark.parametrize(
    "seeds", [FEW, pytest.param(SEEDS[len(FEW) :], marks=pytest.mark.slow)], ids=str
)


def relative(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def find(X, rank=None, **options):
    return sampled_pursuit(X, rank, **{"tol": 1e-6, **options})


class TestRecovery:
    @pytest.mark.parametrize("rank", [5, None])
    @pytest.mark.parametrize(
        "shape",
        [(500, 400), *(pytest.param(s, marks=pytest.mark.slow) for s in ((400, 600), (2000, 40)))],
        ids=str,
    )
    @some_seeds
    def test_both_parts_are_found(self, shape, rank, seeds):
        true = min(5, shape[1] // 10)
        for seed in seeds:
            X, low, wrong = planted(np.random.default_rng(seed), shape, true)
            result, check = find(X, None if rank is None else true)
            assert result.converged
            assert not check.doubts
            assert check.noise == 0
            assert result.low_rank.rank == true
            assert relative(result.low_rank.dense(), low) < 1e-7
            found = as_array(result.sparse)
            assert not found[wrong == 0].any()
            assert np.all(found[np.abs(wrong) > 1e-4] != 0)

    @pytest.mark.slow
    def test_the_convex_problem_agrees(self):
        for seed in SEEDS:
            X = planted(np.random.default_rng(seed), (500, 400), 5)[0]
            assert find(X, 5)[0].gap < 2e-5

    @pytest.mark.slow
    def test_many_entries_may_be_wrong_or_missing(self):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            X, low, _ = planted(rng, (500, 400), 4, corrupted=0.3, missing=0.2)
            result, check = find(X, 4)
            assert not check.doubts
            assert relative(result.low_rank.dense(), low) < 1e-7
            assert not as_array(result.sparse)[np.isnan(X)].any()

    @pytest.mark.slow
    @pytest.mark.parametrize("rank", [4, None])
    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_noise_does_as_little_harm_as_can_be(self, missing, rank):
        for seed in SEEDS:
            shape, noise = (600, 400), 0.1
            X, low, wrong = planted(
                np.random.default_rng(seed), shape, 4, noise=noise, missing=missing
            )
            result, check = find(X, rank)
            assert not check.doubts
            assert result.low_rank.rank == 4
            # As if the wrong entries were known: noise on so many free numbers.
            known = 0.9 * (1 - missing)
            best = noise * np.sqrt(4 * sum(shape) / known) / np.linalg.norm(low)
            assert relative(result.low_rank.dense(), low) < 1.2 * best
            assert check.noise == pytest.approx(noise, rel=0.2)
            found, there = as_array(result.sparse) != 0, ~np.isnan(X)
            assert np.mean(found[there & (wrong == 0)]) < 1e-3
            assert np.all(found[there & (np.abs(wrong) > 1)])

    @pytest.mark.slow
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    @pytest.mark.parametrize("rank", [3, 8])
    def test_a_wrong_rank_is_replaced_by_that_of_the_data(self, rank, noise):
        for seed in FEW:
            X, low, _ = planted(np.random.default_rng(seed), (500, 400), 5, noise=noise)
            result, check = find(X, rank)
            assert not check.doubts
            assert result.low_rank.rank == 5
            assert relative(result.low_rank.dense(), low) < (0.02 if noise else 1e-7)

    def test_single_precision_in_single_precision_out(self, rng):
        X, low, _ = planted(rng, (500, 400), 5)
        result, check = find(X.astype(np.float32), 5)
        assert not check.doubts
        assert result.low_rank.left.dtype == result.sparse.dtype == np.float32
        assert relative(result.low_rank.dense(), low) < 1e-5

    @pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e3, 1e30])
    def test_the_unit_of_the_data_does_not_matter(self, scale, rng):
        X, low, _ = planted(rng, (500, 400), 5, noise=0.1)
        result, check = find(scale * X)
        assert not check.doubts
        assert relative(result.low_rank.dense() / scale, low) < 0.02
        assert check.noise == pytest.approx(0.1 * scale, rel=0.2)

    def test_the_number_of_threads_changes_nothing(self, rng):
        X = planted(rng, (500, 400), 5, noise=0.1)[0]
        lefts = []
        for n_threads in (1, 3):
            with threadpool_limits(n_threads, user_api="blas"):
                lefts.append(find(X, 5)[0].low_rank.left)
        np.testing.assert_array_equal(*lefts)

    def test_passes_are_reported(self, rng):
        X, steps = planted(rng, (500, 400), 5, noise=0.1)[0], []
        result, _ = find(X, 5, callback=steps.append)
        assert [step.iteration for step in steps] == list(range(1, result.n_iter + 1))
        np.testing.assert_array_equal([step.objective for step in steps], result.objective[1:])
        assert result.n_iter <= 8

    def test_zero_has_no_parts(self):
        result, check = find(np.zeros((30, 20)), 2)
        assert result.low_rank.rank == result.n_sparse == 0
        assert not check.doubts


class TestCheck:
    """A check looks at rows and columns that are drawn anew."""

    def parts(self, rng, noise=0.1):
        X, low, _ = planted(rng, (600, 500), 5, noise=noise)
        # Five columns span all others.
        axes = np.linalg.qr(low[:, :5])[0]
        U, s, Vt = np.linalg.svd(axes.T @ low, full_matrices=False)
        return X, axes @ (U * s), Vt, s

    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_the_truth_is_trusted(self, noise, rng):
        X, left, right, values = self.parts(rng, noise)
        check = Check.of(X, LowRank(left, right, values), 1e-6, 0)
        assert not check.doubts
        assert not check.spare
        assert check.gross == pytest.approx(0.1, abs=0.01)
        assert check.noise == pytest.approx(noise, rel=0.2)
        assert check.structure == pytest.approx(1, abs=0.1)
        assert check.gap < (1e-2 if noise else 1e-4)

    @some_seeds
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_a_missing_component_is_noticed(self, noise, seeds):
        for seed in seeds:
            X, left, right, values = self.parts(np.random.default_rng(seed), noise)
            check = Check.of(X, LowRank(left[:, :4], right[:4], values[:4]), 1e-6, 0)
            assert "components are missing" in check.doubts

    @some_seeds
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_a_component_too_many_is_noticed(self, noise, seeds):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            X, left, right, values = self.parts(rng, noise)
            more = rng.normal(size=len(right.T))
            more -= (right @ more) @ right
            right = np.vstack([right, more / np.linalg.norm(more)])
            small = 0.1 * values[-1] * rng.normal(size=(len(left), 1)) / np.sqrt(len(left))
            found = LowRank(np.hstack([left, small]), right, np.r_[values, 0.1 * values[-1]])
            assert Check.of(X, found, 1e-6, 0).spare

    def test_noise_of_unequal_rows_and_columns_is_noise(self, rng):
        X, left, right, values = self.parts(rng, 0.0)
        scales = 10 ** rng.uniform(-1, 0, size=600)[:, None], 10 ** rng.uniform(-1, 0, size=500)
        X += 0.3 * scales[0] * scales[1] * rng.normal(size=X.shape)
        assert not Check.of(X, LowRank(left, right, values), 1e-6, 0).doubts

    @pytest.mark.parametrize("corrupted", [0.7, 0.9])
    def test_too_many_wrong_entries_raise_doubts(self, corrupted):
        for seed in FEW:
            X = planted(np.random.default_rng(seed), (400, 300), 5, corrupted=corrupted)[0]
            assert find(X, 5)[1].doubts
