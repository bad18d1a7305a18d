"""Splitting loops reach the optimum that they promise, and find what was planted."""

import cvxpy as cp
import numpy as np
import pytest
from mixtures import as_array, planted
from scipy import sparse
from threadpoolctl import threadpool_limits

from robustpca.engine.threads import ThreadPool
from robustpca.parts.entry_losses import HuberNorm, L1Norm, SquaredNorm
from robustpca.parts.graphs import knn_graph, laplacian
from robustpca.solvers.noise import pursuit_loss
from robustpca.solvers.penalties import (
    Balanced,
    Growing,
    HandOver,
    largest_entry,
    mean_size,
    observed_norm,
)
from robustpca.solvers.split_matrix import GraphSmoothness
from robustpca.solvers.splitting import FAR, split

both = pytest.mark.parametrize("schedule", [Balanced, Growing])
exact = pytest.mark.parametrize("schedule", [Balanced, HandOver])


def usual(X):
    """The loss with the weight of the theory."""
    return L1Norm(1 / np.sqrt(max(X.shape)))


def soft_threshold(A, threshold):
    return np.sign(A) * np.maximum(np.abs(A) - threshold, 0)


def singular_value_threshold(A, threshold):
    left, values, right = np.linalg.svd(A, full_matrices=False)
    return (left * np.maximum(values - threshold, 0)) @ right


def pursue(X, loss=None, term=None, *, tol=1e-7, max_iter=5000, **options):
    loss = usual(X) if loss is None else loss
    return split(X, loss, term, tol=tol, max_iter=max_iter, **options)


def objective(X, L, loss, term=None):
    nuclear = np.linalg.norm(L.astype(np.float64), "nuc")
    return nuclear + loss.value(X - L) + (0 if term is None else term.value(L))


def optimum(X, loss, term=None):
    """The least objective, and where it is, by an interior-point method."""
    L = cp.Variable(X.shape)
    error = cp.multiply(~np.isnan(X), np.nan_to_num(X) - L)
    formulas = {
        L1Norm: lambda: cp.norm1(error),
        HuberNorm: lambda: cp.sum(cp.huber(error, loss.threshold)) / (2 * loss.threshold),
        SquaredNorm: lambda: cp.sum_squares(error) / 2,
    }
    cost = cp.normNuc(L) + loss.weight * formulas[type(loss)]()
    if term is not None:
        values, vectors = np.linalg.eigh(term.laplacian.toarray())
        root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        cost += term.weight * cp.sum_squares(root @ L)
    problem = cp.Problem(cp.Minimize(cost))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value, L.value


def relative(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


class TestOptimum:
    @pytest.mark.parametrize("missing", [0.0, 0.2])
    @pytest.mark.parametrize("smooth", [False, True], ids=["plain", "graph"])
    @pytest.mark.parametrize("shape", [(13, 9), (8, 12)], ids=["tall", "wide"])
    @pytest.mark.parametrize(
        "loss", [L1Norm(0.3), HuberNorm(0.3, 0.4), SquaredNorm(0.8)], ids=["l1", "huber", "l2"]
    )
    def test_is_the_one_of_an_interior_point_method(self, loss, shape, smooth, missing, rng):
        X, *_ = planted(rng, shape, 2, noise=0.1, missing=missing)
        graph = laplacian(knn_graph(rng.normal(size=(shape[0], 2)), 3))
        term = GraphSmoothness.of(graph, 0.2) if smooth else None
        least, where = optimum(X, loss, term)
        result = pursue(X, loss, term, tol=1e-8)
        assert result.converged
        L = result.low_rank.dense()
        found = objective(X, L, loss, term)
        assert found == pytest.approx(least, rel=1e-6)
        assert relative(L, where) < 1e-3
        # What is said to be missing to the optimum is not less than what is missing.
        assert result.gap >= (found - least) / found - 1e-9
        assert result.gap < 1e-6
        assert result.objective[-1] == pytest.approx(least, rel=1e-5)

    def test_without_smoothness_a_graph_is_not_seen(self, rng):
        X, *_ = planted(rng, (30, 20), 2, noise=0.1)
        graph = laplacian(knn_graph(rng.normal(size=(30, 2)), 3))
        plain, with_term = (pursue(X, term=t) for t in (None, GraphSmoothness.of(graph, 0.0)))
        np.testing.assert_allclose(with_term.low_rank.dense(), plain.low_rank.dense(), atol=1e-6)

    def test_a_strong_graph_makes_neighbours_equal(self, rng):
        X, *_ = planted(rng, (40, 25), 2, noise=0.1)
        # Two complete graphs of twenty vertices each.
        adjacency = sparse.csr_array(np.kron(np.eye(2), np.ones((20, 20))) - np.eye(40))
        spread = []
        for weight in (0.1, 1.0, 10.0):
            term = GraphSmoothness.of(laplacian(adjacency), weight)
            result = pursue(X, term=term, tol=1e-6)
            assert result.converged
            assert result.gap < 1e-5
            groups = result.low_rank.dense().reshape(2, 20, 25)
            spread.append(np.abs(groups - groups.mean(axis=1, keepdims=True)).max())
        # The force that the loss and the nuclear norm can bear is bounded.
        assert spread[0] > 0.1
        assert spread[2] < 0.02

    @pytest.mark.parametrize("loss", ["l1", "huber", "low threshold"])
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("shape", [(200, 120), (120, 200)], ids=["tall", "wide"])
    def test_of_larger_problems_is_certified(self, shape, missing, loss, rng):
        X, *_ = planted(rng, shape, 6, noise=0.1, missing=missing)
        weight = 1 / np.sqrt(200 * (1 - missing))
        threshold = {"huber": 0.3, "low threshold": 0.05}.get(loss)
        loss = L1Norm(weight) if loss == "l1" else HuberNorm(weight, threshold)
        result = pursue(X, loss)
        assert result.converged
        assert 0 <= result.gap < 1e-5
        L, S, dual = result.low_rank.dense(), as_array(result.sparse), result.multipliers
        # The certificate, once more, from nothing but the multipliers.
        assert np.linalg.norm(dual, 2) <= 1 + 1e-5
        assert np.abs(dual).max() <= weight * (1 + 1e-12)
        assert np.all(dual[np.isnan(X)] == 0)
        np.testing.assert_allclose(dual[S != 0], weight * np.sign(S[S != 0]), rtol=1e-6)
        lower = np.nansum(X * dual) / (1 + 1e-5) - loss.conjugate(float(np.sum(dual**2)))
        found = objective(X, L, loss)
        assert 0 <= (found - lower) / found < 3e-5
        # On the row space of the low-rank part they are its polar factor.
        left, values = result.low_rank.left, result.low_rank.values
        polar = left / values
        np.testing.assert_allclose(dual @ result.low_rank.right.T, polar, rtol=0, atol=1e-4)
        # What neither part explains is below the threshold of the loss.
        rest = np.nan_to_num(X - L - S)
        assert np.abs(rest).max() <= loss.threshold + 1e-5 * np.nanmax(np.abs(X))

    def test_with_a_graph_is_certified(self, rng):
        X, *_ = planted(rng, (200, 120), 6, noise=0.1, missing=0.1)
        term = GraphSmoothness.of(laplacian(knn_graph(np.nan_to_num(X), 5)), 0.3)
        loss = usual(X)
        result = pursue(X, loss, term)
        assert result.converged
        assert result.gap < 1e-5
        S, dual = as_array(result.sparse), result.multipliers
        assert np.linalg.norm(dual, 2) <= 1 + 1e-5
        # The loss bears what nuclear norm and graph ask for together.
        borne = dual + term.gradient(result.low_rank.dense())
        assert np.abs(borne).max() <= loss.weight * (1 + 1e-4)
        expected = loss.weight * np.sign(S[S != 0])
        np.testing.assert_allclose(borne[S != 0], expected, rtol=1e-4)

    def test_data_that_fit_the_singular_vectors_are_low_rank_altogether(self, rng):
        X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 50))
        left, _, right = np.linalg.svd(X, full_matrices=False)
        enough = np.abs(left[:, :4] @ right[:4]).max()
        result = pursue(X, L1Norm(1.05 * enough))
        assert result.n_sparse == 0
        assert relative(result.low_rank.dense(), X) < 1e-6
        assert pursue(X, L1Norm(0.3 * enough), max_iter=300).n_sparse > 0

    @pytest.mark.parametrize("shape", [(60, 50), (20, 30)], ids=str)
    def test_data_that_fit_their_signs_are_sparse_altogether(self, shape, rng):
        X = np.where(rng.random(shape) < 0.2, rng.normal(size=shape), 0.0)
        enough = 1 / np.linalg.norm(np.sign(X), 2)
        result = pursue(X, L1Norm(0.95 * enough))
        assert result.low_rank.rank == 0
        np.testing.assert_allclose(as_array(result.sparse), X, rtol=0, atol=1e-6)
        assert pursue(X, L1Norm(3 * enough), max_iter=300).low_rank.rank > 0

    def test_a_quadratic_loss_is_one_singular_value_threshold(self, rng):
        X = rng.normal(size=(90, 60))
        result = pursue(X, SquaredNorm(0.2), tol=1e-9)
        expected = singular_value_threshold(X, 1 / 0.2)
        np.testing.assert_allclose(result.low_rank.dense(), expected, rtol=0, atol=1e-6)
        assert result.n_sparse == 0

    @pytest.mark.parametrize("schedule", [Growing, lambda: Growing(3.0)], ids=["1.5", "3"])
    def test_growing_penalties_stop_short_of_it_by_little(self, schedule):
        excess = []
        for seed in range(5):
            X, *_ = planted(np.random.default_rng(seed), (18, 12), 2, noise=0.3)
            loss = usual(X)
            least = objective(X, pursue(X, tol=1e-9).low_rank.dense(), loss)
            hurried = pursue(X, schedule=schedule, tol=1e-6)
            assert hurried.change <= 1e-6
            # It has ended by its own rule; the gap tells that this is not the optimum.
            assert hurried.converged
            assert hurried.gap > FAR
            excess.append(objective(X, hurried.low_rank.dense(), loss) / least - 1)
            assert hurried.gap >= excess[-1] / (1 + excess[-1]) - 1e-9
        assert 1e-4 < max(excess) < (0.02 if schedule is Growing else 0.1)
        assert min(excess) > -1e-8

    def test_what_may_be_gained_is_never_understated(self):
        for seed in range(6):
            for shape in [(60, 50), (30, 40)]:
                X, *_ = planted(np.random.default_rng(seed), shape, 2, noise=0.1)
                loss = usual(X)
                least = objective(X, pursue(X, tol=1e-10).low_rank.dense(), loss)
                for max_iter in (20, 50, 70):
                    early = pursue(X, max_iter=max_iter)
                    found = objective(X, early.low_rank.dense(), loss)
                    assert early.gap >= (found - least) / found - 1e-9


class TestPace:
    """The penalty finds its place: what is solved in a hundred passes must not take a thousand."""

    PROBLEMS = {
        "noisy": lambda rng: planted(rng, (200, 150), 6, noise=0.1)[0],
        "with holes": lambda rng: planted(rng, (200, 150), 5, noise=0.1, missing=0.3)[0],
        "clean": lambda rng: planted(rng, (200, 150), 6)[0],
        "far from zero": lambda rng: 10 + planted(rng, (90, 60), 3, noise=0.1)[0],
        "small": lambda rng: planted(rng, (14, 9), 2, noise=0.1)[0],
        "nothing but noise": lambda rng: rng.normal(size=(90, 60)),
    }

    def test_ordinary_problems_need_few_passes(self):
        for problem in self.PROBLEMS.values():
            for seed in range(2):
                result = pursue(problem(np.random.default_rng(seed)), max_iter=400)
                assert result.converged

    @pytest.mark.parametrize("wild", [1e3, 1e6, 1e10])
    def test_one_entry_that_is_wrong_by_far_costs_nothing(self, wild, rng):
        X, low, _ = planted(rng, (120, 90), 4)
        X[3, 5] = wild
        result = pursue(X, max_iter=400)
        assert result.converged
        assert relative(result.low_rank.dense(), low) < 1e-6 * max(1.0, 1e-6 * wild)
        assert as_array(result.sparse)[3, 5] == pytest.approx(wild, rel=1e-2)

    def test_a_penalty_rises_when_the_low_rank_part_hardly_moves(self):
        # The share of a step that the low-rank part does not take falls to the multipliers.
        schedule = Balanced()
        assert schedule.factor(10, 1.0, lambda: 0.1) > 2

    def test_a_penalty_falls_when_the_multipliers_hardly_move(self):
        schedule = Balanced()
        assert schedule.factor(10, 1.0, lambda: 0.999 * schedule.relaxation) < 0.5


class TestHandOver:
    """A penalty that grows at first and is held then ends at the optimum, and early."""

    PROBLEMS = {
        **TestPace.PROBLEMS,
        "tiny noise": lambda rng: planted(rng, (80, 60), 4, noise=1e-4)[0],
        "narrow": lambda rng: planted(rng, (300, 40), 2, noise=0.0)[0],
    }

    @pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("problem", PROBLEMS)
    def test_is_where_balanced_penalties_end(self, problem, seed):
        X = self.PROBLEMS[problem](np.random.default_rng(seed))
        result = pursue(X, schedule=HandOver, tol=1e-6, max_iter=400)
        assert result.converged
        assert result.gap <= 1e-6
        found = objective(X, result.low_rank.dense(), usual(X))
        least = objective(X, pursue(X).low_rank.dense(), usual(X))
        assert -1e-7 < (found - least) / found <= result.gap + 1e-9

    def test_exact_data_take_hardly_more_passes_than_growth_alone(self):
        for seed in range(3):
            X, low, _ = planted(np.random.default_rng(seed), (200, 200), 10)
            result = pursue(X, schedule=HandOver)
            assert result.n_iter <= 2 * pursue(X, schedule=Growing).n_iter
            assert relative(result.low_rank.dense(), low) < 1e-6

    def test_growth_alone_tells_by_its_gap_where_it_stops_short_on_narrow_data(self):
        failed = 0
        for seed in range(6):
            X, *_ = planted(np.random.default_rng(seed), (300, 40), 2)
            best = pursue(X, schedule=HandOver, tol=1e-7).low_rank.dense()
            growing = pursue(X, schedule=Growing, tol=1e-6)
            wrong = relative(growing.low_rank.dense(), best) > 1e-3
            assert not (wrong and growing.gap <= FAR)
            failed += wrong
        assert failed > 0

    def test_one_pass_without_progress_does_not_end_the_growth(self):
        schedule = HandOver()
        schedule.loss = L1Norm(1.0)
        turns, fixed = [1.0, 0.5, 0.3, 0.6, 0.2, 0.3, 0.4, 0.5], []
        for k, turn in enumerate(turns):
            # Residual entries vanish faster than the smallest sparse one.
            schedule.observe(1.5**k, 1e-4, turn, lambda k=k: 1e-4 * 0.3**k)
            fixed.append(schedule.fixed)
            factor = schedule.factor(k, 1.0, lambda: 1.0)
        # The turn is not shorter than two passes before in the fourth pass, and in the last two.
        assert fixed == [False] * 7 + [True]
        assert schedule.vanishing
        # What the penalty grew by in the meantime is undone.
        assert factor == pytest.approx(1.5**-2)

    def test_growth_doubles_while_residuals_vanish_and_multipliers_hardly_move(self):
        factors = []
        for turn, fall in ((0.02, 0.3), (0.04, 0.3), (0.02, 1.0)):
            schedule = HandOver()
            schedule.loss = L1Norm(1.0)
            for k in range(3):
                schedule.observe(1.5**k, 1e-4, turn * 0.9**k, lambda k=k, fall=fall: 1e-4 * fall**k)
            factors.append(schedule.factor(3, 1.0, lambda: 1.0))
        # Multipliers that still move, and residuals that stay, as noise does, are not hurried.
        assert factors == [2.0, 1.5, 1.5]

    def test_a_first_proof_that_fails_lowers_the_penalty_once(self):
        schedule = HandOver()
        schedule.resume(L1Norm(1.0), True)
        lowered = []
        for k in range(3):
            schedule.note_gap(k, 1e-3)
            lowered.append(schedule.factor(k, 1.0, lambda: 1.0))
        assert lowered == [HandOver.back, 1.0, 1.0]

    def test_exact_data_whose_multipliers_rest_for_a_pass_need_no_more_passes(self):
        # A penalty that was held then took 87 passes after the estimate of the noise.
        rng = np.random.default_rng(4)
        low = rng.normal(size=(500, 25)) @ rng.normal(size=(25, 500)) / 5
        X = low + np.where(rng.random(low.shape) < 0.05, rng.uniform(-10, 10, low.shape), 0.0)
        loss, _, start = pursuit_loss(X, noise="auto")
        result = pursue(X, loss, schedule=HandOver, start=start, tol=1e-6)
        assert result.converged
        assert result.n_iter <= 10
        assert relative(result.low_rank.dense(), low) < 1e-6

    @exact
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_no_tolerance_takes_more_passes_than_a_tighter_one(self, schedule, noise, rng):
        X, *_ = planted(rng, (150, 100), 5, noise=noise)
        for loss in (usual(X), HuberNorm(0.08, 0.2)):
            passes = [pursue(X, loss, schedule=schedule, tol=10.0**-k).n_iter for k in range(2, 8)]
            assert passes == sorted(passes)


class TestRecovery:
    @both
    @pytest.mark.parametrize("shape", [(200, 200), (300, 200), (200, 400)], ids=str)
    @pytest.mark.parametrize("seed", range(2))
    def test_both_parts_are_found_exactly(self, schedule, shape, seed):
        X, low, wrong = planted(np.random.default_rng(seed), shape, 10)
        result = pursue(X, schedule=schedule)
        assert result.converged
        assert relative(result.low_rank.dense(), low) < 1e-6
        assert relative(as_array(result.sparse), wrong) < 1e-6
        assert result.low_rank.rank == 10
        # Nearly all wrong entries are found: tiny ones may pass.
        missed = (as_array(result.sparse) != 0) != (wrong != 0)
        assert missed.mean() < 1e-4

    @pytest.mark.parametrize("shape", [(200, 200), (300, 200)], ids=str)
    @pytest.mark.parametrize("seed", range(2))
    def test_missing_entries_are_filled_in(self, shape, seed):
        X, low, wrong = planted(np.random.default_rng(seed), shape, 5, missing=0.3)
        result = pursue(X, L1Norm(1 / np.sqrt(0.7 * max(shape))))
        assert result.converged
        assert relative(result.low_rank.dense(), low) < 1e-5
        observed = ~np.isnan(X)
        np.testing.assert_allclose(
            as_array(result.sparse)[observed], wrong[observed], rtol=0, atol=1e-4
        )
        assert not as_array(result.sparse)[~observed].any()

    @both
    def test_single_precision_in_single_precision_out(self, schedule, rng):
        X, low, _ = planted(rng, (200, 150), 6)
        result = pursue(X.astype(np.float32), schedule=schedule, max_iter=300)
        assert result.low_rank.dense().dtype == np.float32
        assert result.sparse.dtype == np.float32
        # The data themselves are rounded.
        assert relative(result.low_rank.dense(), low) < 1e-6
        assert result.gap < 1e-3

    @both
    def test_data_that_were_rounded_to_single_precision_converge(self, schedule, rng):
        X, *_ = planted(rng, (200, 150), 6)
        result = pursue(X.astype(np.float32), schedule=schedule, max_iter=1000)
        assert result.converged

    @pytest.mark.parametrize("noise", [1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
    def test_tiny_noise_does_not_take_for_ever(self, noise, rng):
        # The multipliers would converge after thousands of iterations only.
        X, *_ = planted(rng, (100, 100), 3, noise=noise)
        result = pursue(X, tol=1e-6, max_iter=500)
        assert result.converged
        assert result.gap <= 1e-6

    @pytest.mark.parametrize("noise", [1e-8, 1e-6, 1e-3, 1e-1])
    def test_a_little_noise_does_no_harm(self, noise, rng):
        X, low, _ = planted(rng, (100, 100), 3, noise=noise)
        result = pursue(X, max_iter=500)
        assert result.gap < 1e-5
        assert relative(result.low_rank.dense(), low) < 3 * max(noise, 1e-7)

    def test_a_loss_that_allows_for_noise_gives_a_better_low_rank_part(self, rng):
        X, low, _ = planted(rng, (200, 120), 5, noise=0.2)
        weight = 1 / np.sqrt(200)
        loss, noise, start = pursuit_loss(X, noise=0.2)
        assert start is None
        threshold = 0.2 * weight * (np.sqrt(200) + np.sqrt(120))
        assert (loss.weight, loss.threshold, noise) == pytest.approx((weight, threshold, 0.2))
        assert pursuit_loss(X) == (L1Norm(weight), 0.0, None)
        plain, tolerant = (pursue(X, given) for given in (L1Norm(weight), loss))
        assert 5 <= tolerant.low_rank.rank <= 7
        assert plain.low_rank.rank > 20
        assert relative(tolerant.low_rank.dense(), low) < relative(plain.low_rank.dense(), low)

    @pytest.mark.parametrize("smooth", [False, True], ids=["plain", "graph"])
    def test_the_estimated_noise_is_the_planted_one(self, smooth, rng):
        X, *_ = planted(rng, (200, 120), 5, noise=0.2, missing=0.1)
        graph = laplacian(knn_graph(np.nan_to_num(X), 5))
        term = GraphSmoothness.of(graph, 1e-3) if smooth else None
        loss, noise, start = pursuit_loss(X, 0.08, "auto", term)
        assert 0.15 < noise < 0.25
        assert loss.weight == 0.08
        schedule = Balanced if smooth else HandOver
        warm, cold = (pursue(X, loss, term, schedule=schedule, start=s) for s in (start, None))
        assert warm.converged
        assert relative(warm.low_rank.dense(), cold.low_rank.dense()) < 1e-4

    @pytest.mark.parametrize("shape", [(200, 120), (300, 60)], ids=str)
    @pytest.mark.parametrize("kind", ["none", "gaussian", "heavy", "by column", "missing"])
    def test_noise_of_all_kinds_is_estimated(self, kind, shape):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, *_ = planted(rng, shape, 4, missing=0.2 * (kind == "missing"))
            noise = 0.05 * rng.normal(size=shape)
            if kind == "heavy":
                noise = 0.05 * rng.standard_t(5, size=shape)
            if kind == "by column":
                noise *= np.geomspace(0.25, 4, shape[1])
            found = pursuit_loss(X + noise * (kind != "none"), noise="auto")[1]
            spread = 1.4826 * np.median(np.abs(noise)) * (kind != "none")
            assert 0.8 * spread <= found <= 1.3 * spread

    @pytest.mark.parametrize("rate", [1.5, 3.0])
    def test_growing_penalties_grow_to_ten_million_times_the_first(self, rate, rng):
        X, schedule = rng.normal(size=(20, 15)), Growing(rate)
        with ThreadPool() as pool:
            schedule.start(X, usual(X), pool)
        growth = np.prod([schedule.factor(i, 1.0, lambda: 1.0) for i in range(1, 100)])
        assert growth == pytest.approx(1e7)

    def test_growing_penalties_need_fewer_passes(self, rng):
        X, *_ = planted(rng, (200, 200), 10)
        assert 2 * pursue(X, schedule=Growing).n_iter < pursue(X).n_iter


class TestInvariance:
    """An equivalent problem has the same answer."""

    @pytest.fixture(name="X")
    def data(self, rng):
        return planted(rng, (90, 60), 4, noise=0.05, missing=0.05)[0]

    def assert_same(self, X, other, undo, loss=None, other_loss=None):
        expected, found = pursue(X, loss, tol=1e-9), pursue(other, other_loss, tol=1e-9)
        assert expected.converged
        assert found.converged
        for part in ("low_rank", "sparse"):
            first, second = (as_array(getattr(result, part)) for result in (expected, found))
            assert relative(undo(second), first) < 1e-5, part

    def test_transposed(self, X):
        self.assert_same(X, np.ascontiguousarray(X.T), np.transpose)

    @pytest.mark.parametrize("scale", [1000.0, 1e-3, -1.0])
    def test_in_other_units(self, X, scale):
        self.assert_same(X, scale * X, lambda A: A / scale)

    def test_in_other_units_with_a_loss_for_noise(self, X):
        loss = HuberNorm(0.1, 0.2)
        self.assert_same(X, 1000 * X, lambda A: A / 1000, loss, loss.scaled(1000))

    def test_with_some_signs_flipped(self, X, rng):
        signs = np.outer(rng.choice([-1, 1], size=90), rng.choice([-1, 1], size=60))
        self.assert_same(X, X * signs, lambda A: A * signs)

    def test_with_rows_and_columns_in_another_order(self, X, rng):
        rows, columns = rng.permutation(90), rng.permutation(60)
        back = np.ix_(np.argsort(rows), np.argsort(columns))
        self.assert_same(X, X[rows][:, columns], lambda A: A[back])

    def test_with_rows_and_columns_of_zeros_besides(self, X):
        padded = np.zeros((100, 65))
        padded[:90, :60] = X
        loss = usual(X)
        self.assert_same(X, padded, lambda A: A[:90, :60], loss, loss)

    @pytest.mark.parametrize("schedule", [Balanced, Growing])
    @pytest.mark.parametrize("scale", [1e13, 1e-13])
    def test_too_large_or_small_for_single_precision(self, schedule, scale, rng):
        X, low, _ = planted(rng, (120, 90), 4)
        result = pursue(scale * X, schedule=schedule)
        assert result.converged
        assert relative(result.low_rank.dense() / scale, low) < 1e-6


class TestData:
    @both
    def test_what_is_hidden_has_no_influence(self, schedule, rng):
        X, *_ = planted(rng, (150, 90), 4, noise=0.1)
        hidden = rng.random(X.shape) < 0.2
        first, second = X.copy(), X + 100 * hidden
        first[hidden] = second[hidden] = np.nan
        # Not even the bits of a NaN, which may carry something.
        second.view(np.uint64)[hidden] |= 12345
        results = [pursue(A, schedule=schedule) for A in (first, second)]
        assert_identical(*results)

    @both
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_is_left_alone_and_may_be_stored_anyhow(self, schedule, dtype, rng):
        X = planted(rng, (60, 40), 3, noise=0.1, missing=0.1)[0].astype(dtype)
        expected = pursue(X, schedule=schedule, tol=1e-6)
        wide = np.full((120, 80), 1e9, dtype)
        wide[::2, ::2] = X
        read_only = X.copy()
        read_only.flags.writeable = False
        for stored in (read_only, np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1]):
            result = pursue(stored, schedule=schedule, tol=1e-6)
            np.testing.assert_array_equal(stored, X)
            # Sums in another order round otherwise, and a growing penalty remembers it.
            assert_identical(result, expected, atol=1e-4 if schedule is Balanced else 1e-2)
        assert np.all(wide[1::2, 1::2] == 1e9)

    @both
    def test_the_number_of_threads_changes_nothing(self, schedule, rng):
        X, *_ = planted(rng, (160, 80), 4, noise=0.1, missing=0.1)
        graph = laplacian(knn_graph(np.nan_to_num(X), 5))
        results = []
        for n_threads in (1, 2, 4):
            with threadpool_limits(n_threads, user_api="blas"):
                term = GraphSmoothness(graph, 0.1, 2.0)
                results.append(
                    (pursue(X, schedule=schedule), pursue(X, term=term, schedule=schedule))
                )
        for other in results[1:]:
            for result, expected in zip(other, results[0], strict=True):
                assert_identical(result, expected)

    def test_the_same_call_gives_the_same_answer(self, rng):
        X, *_ = planted(rng, (90, 60), 4, noise=0.1)
        assert_identical(pursue(X), pursue(X))

    def test_measures_leave_missing_entries_out(self, rng):
        X = rng.normal(size=(300, 7))
        X[rng.random(X.shape) < 0.3] = np.nan
        observed = X[~np.isnan(X)]
        for A in (X, X.astype(np.float32)):
            assert observed_norm(A) == pytest.approx(np.linalg.norm(observed), rel=1e-6)
            assert largest_entry(A) == pytest.approx(np.abs(observed).max(), rel=1e-6)
            assert mean_size(A) == pytest.approx(np.abs(observed).mean(), rel=1e-6)


def assert_identical(result, expected, atol=0.0):
    for part in ("low_rank", "sparse"):
        found, wanted = (as_array(getattr(r, part)) for r in (result, expected))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)
    if atol == 0:
        np.testing.assert_array_equal(result.objective, expected.objective)
        assert result.n_iter == expected.n_iter
        assert result.gap == expected.gap


class TestLoop:
    @pytest.fixture(name="X")
    def data(self, rng):
        return planted(rng, (90, 60), 4, noise=0.1, missing=0.1)[0]

    @both
    def test_the_callback_is_called_after_every_iteration(self, schedule, X):
        steps = []
        result = pursue(X, schedule=schedule, callback=steps.append)
        assert [step.iteration for step in steps] == list(range(1, result.n_iter + 1))
        np.testing.assert_array_equal([step.objective for step in steps], result.objective[1:])
        assert steps[-1].change == result.change <= 1e-7
        assert all(0 <= step.rank <= 60 for step in steps)
        assert steps[-1].rank == result.low_rank.rank
        assert steps[-1].detail == f"rank {result.low_rank.rank}"
        assert result.objective[0] == pytest.approx(usual(X).value(X), rel=1e-6)

    def test_an_exception_of_the_callback_ends_the_loop_and_harms_nothing(self, X):
        before = X.copy()

        def stop(step):
            if step.iteration == 7:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pursue(X, callback=stop)
        np.testing.assert_array_equal(X, before)
        assert pursue(X).converged

    @pytest.mark.parametrize("max_iter", [1, 2, 30])
    @both
    def test_ends_after_as_many_iterations_as_allowed(self, schedule, max_iter, X):
        result = pursue(X, schedule=schedule, max_iter=max_iter, tol=1e-12)
        assert result.n_iter == max_iter
        assert not result.converged
        assert result.change > 1e-12
        assert np.isfinite(result.low_rank.dense()).all()

    @pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7, 1e-9])
    def test_a_smaller_tolerance_is_kept_too(self, tol, X):
        result = pursue(X, tol=tol)
        assert result.converged
        assert result.change <= tol
        assert result.gap < 300 * tol

    @both
    def test_what_remains_is_within_the_tolerance(self, schedule, rng):
        X, *_ = planted(rng, (90, 60), 4)
        result = pursue(X, schedule=schedule)
        rest = X - result.low_rank.dense() - as_array(result.sparse)
        assert np.linalg.norm(rest) < 3e-7 * np.linalg.norm(X)

    def warm_and_cold(self, X, loss=None, term=None):
        cold = pursue(X, loss, term)
        start = cold.start()
        before = np.array(start, copy=True)
        warm = pursue(X, loss, term, schedule=lambda: Balanced(cold.penalty), start=start)
        assert warm.converged
        assert relative(warm.low_rank.dense(), cold.low_rank.dense()) < 1e-5
        np.testing.assert_array_equal(start, before)
        return warm.n_iter, cold.n_iter

    def test_a_warm_start_needs_few_iterations(self, X):
        warm, cold = self.warm_and_cold(X)
        assert warm < 0.4 * cold

    @pytest.mark.parametrize("smooth", [False, True], ids=["huber", "graph"])
    def test_a_warm_start_needs_few_iterations_when_the_rank_is_low(self, smooth, rng):
        X, *_ = planted(rng, (200, 120), 4, noise=0.1)
        term = GraphSmoothness.of(laplacian(knn_graph(X, 5)), 0.1) if smooth else None
        warm, cold = self.warm_and_cold(X, HuberNorm(1 / np.sqrt(200), 0.3), term)
        assert warm < 0.4 * cold

    def test_a_warm_start_serves_nearly_the_same_problem(self, X):
        near = L1Norm(1.03 / np.sqrt(90))
        cold, first = pursue(X, near), pursue(X)
        warm = pursue(X, near, schedule=lambda: Balanced(first.penalty), start=first.start())
        assert warm.converged
        assert relative(warm.low_rank.dense(), cold.low_rank.dense()) < 1e-5
        loss_of = [objective(X, r.low_rank.dense(), near) for r in (warm, cold)]
        assert loss_of[0] == pytest.approx(loss_of[1], rel=1e-6)


class TestOddData:
    """Unusual data get an answer too."""

    def assert_optimal(self, X, loss=None, **options):
        loss = usual(X) if loss is None else loss
        for schedule in (Growing, HandOver, Balanced):
            result = pursue(X, loss, schedule=schedule, **options)
            L = result.low_rank.dense()
            assert result.n_iter < 5000
            assert np.isfinite(L).all()
            assert np.isfinite(as_array(result.sparse)).all()
            assert result.converged
            if schedule is not Growing:
                assert result.gap <= 1e-7
            if isinstance(loss, L1Norm):
                rest = np.nan_to_num(X - L - as_array(result.sparse))
                assert np.linalg.norm(rest) <= 1e-6 * max(observed_norm(X), 1e-300)
        return result

    @pytest.mark.parametrize("shape", [(1, 1), (1, 8), (8, 1), (2, 2), (1, 300), (300, 1)], ids=str)
    def test_one_row_or_one_column(self, shape, rng):
        X = rng.normal(size=shape)
        self.assert_optimal(X, L1Norm(0.9 / np.sqrt(max(shape))))
        self.assert_optimal(X, HuberNorm(0.9 / np.sqrt(max(shape)), 0.1))

    def test_one_row_is_all_sparse_or_all_low_rank(self, rng):
        # The nuclear norm of a row is its length: the steepest way down is along its signs.
        X = rng.normal(size=(1, 16))
        assert pursue(X, L1Norm(0.24)).low_rank.rank == 0
        low = pursue(X, L1Norm(1.01)).low_rank
        np.testing.assert_allclose(low.dense(), X, rtol=0, atol=1e-6)

    def test_a_small_constant_matrix_is_low_rank(self):
        X = np.full((20, 10), 3.0)
        result = self.assert_optimal(X)
        np.testing.assert_allclose(result.low_rank.dense(), X, rtol=1e-6)

    def test_a_small_zero_matrix_is_nothing(self):
        result = self.assert_optimal(np.zeros((20, 10)))
        assert result.low_rank.rank == result.n_sparse == 0

    @pytest.mark.parametrize(
        "X",
        [
            np.zeros((100, 60)),
            np.full((100, 60), 3.0),
            np.repeat(np.random.default_rng(0).normal(size=(1, 80)), 100, axis=0),
            np.outer(np.arange(100) == 3, np.arange(60) == 4).astype(float),
        ],
        ids=["zero", "constant", "equal rows", "one entry"],
    )
    def test_a_matrix_without_other_directions(self, X):
        self.assert_optimal(X)

    def test_one_entry_that_is_larger_than_all_others_by_far(self, rng):
        X = rng.normal(size=(60, 50))
        X[0, 0] = 1e10
        self.assert_optimal(X)

    @pytest.mark.parametrize("shape", [(60, 50), (10, 6)], ids=str)
    def test_a_matrix_of_rank_one(self, shape, rng):
        X = np.outer(rng.uniform(1, 2, size=shape[0]), rng.uniform(1, 2, size=shape[1]))
        result = self.assert_optimal(X)
        assert result.low_rank.rank == 1
        np.testing.assert_allclose(result.low_rank.dense(), X, rtol=1e-5)

    @pytest.mark.parametrize("shape", [(30, 12), (100, 60)], ids=str)
    def test_one_entry_in_each_row(self, shape, rng):
        X = np.full(shape, np.nan)
        X[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = rng.normal(size=shape[0])
        self.assert_optimal(X)

    @pytest.mark.parametrize("shape", [(20, 10), (100, 80)], ids=str)
    def test_rows_and_columns_without_any_entry_get_zeros(self, shape, rng):
        X = rng.normal(size=shape)
        X[3], X[:, 4] = np.nan, np.nan
        result = self.assert_optimal(X)
        L = result.low_rank.dense()
        assert np.abs(L[3]).max() < 1e-6
        assert np.abs(L[:, 4]).max() < 1e-6

    @pytest.mark.parametrize("size", [20, 100])
    def test_blocks_that_share_no_row_or_column_are_solved_apart(self, size, rng):
        half = size // 2
        X, loss = np.full((size, size), np.nan), L1Norm(0.25)
        X[:half, :half], X[half:, half:] = rng.normal(size=(2, half, half))
        apart = [pursue(block, loss) for block in (X[:half, :half], X[half:, half:])]
        # Entries outside of the blocks are free, but cannot make them cheaper together.
        whole = pursue(X, loss)
        least = sum(r.objective[-1] for r in apart)
        assert whole.gap < 1e-5
        assert whole.objective[-1] <= least * (1 + 1e-6)

    def test_no_entry_at_all_costs_nothing(self):
        X = np.full((10, 6), np.nan)
        with pytest.raises((RuntimeWarning, ValueError)):
            pursue(X)

    @pytest.mark.parametrize("scale", [1e100, 1e-100])
    def test_large_and_small_values(self, scale, rng):
        X, low, _ = planted(rng, (120, 90), 4)
        result = pursue(scale * X)
        assert result.converged
        assert relative(result.low_rank.dense() / scale, low) < 1e-6
