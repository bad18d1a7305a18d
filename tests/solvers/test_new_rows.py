"""New rows get the best decomposition that what was learned allows, each for itself."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from robustpca.engine.svt import LowRank
from robustpca.parts.entry_losses import HuberNorm, L1Norm, SquaredNorm
from robustpca.parts.graphs import eigenvalue_bound, knn_graph, laplacian
from robustpca.solvers import new_rows, row_flags, row_newton
from robustpca.solvers.new_rows import RowProblem, TrainingGraph, smooth_rows, split_errors
from robustpca.solvers.penalties import mean_size
from robustpca.solvers.split_matrix import GraphSmoothness
from robustpca.solvers.splitting import split

losses = pytest.mark.parametrize(
    "loss", [L1Norm(0.2), HuberNorm(0.2, 0.3), SquaredNorm(0.5)], ids=["l1", "huber", "l2"]
)


def cost(loss, X, U):
    """The loss of the entries that are there, as a formula of cvxpy."""
    error = cp.multiply(~np.isnan(X), np.nan_to_num(X) - U)
    formulas = {
        L1Norm: lambda: cp.norm1(error),
        HuberNorm: lambda: cp.sum(cp.huber(error, loss.threshold)) / (2 * loss.threshold),
        SquaredNorm: lambda: cp.sum_squares(error) / 2,
    }
    return loss.weight * formulas[type(loss)]()


def least(formula):
    problem = cp.Problem(cp.Minimize(formula))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    return problem.value


def root_of(A):
    values, vectors = np.linalg.eigh(A)
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T


def relative(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def planted(rng, shape=(80, 50), rank=3, *, noise=0.0, missing=0.0):
    """Low rank + sparse + noise, with holes."""
    low = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    large = 5 * np.sqrt(rank) * rng.uniform(-1, 1, size=shape)
    X = low + np.where(rng.random(shape) < 0.1, large, 0.0) + noise * rng.normal(size=shape)
    X[rng.random(shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_are_split_column_by_column(dtype, rng):
    X, low = rng.normal(size=(2, 40, 6)).astype(dtype)
    X[rng.random(X.shape) < 0.2] = np.nan
    # Errors of the accuracy of a fit are none.
    X[0], X[1, 1:] = low[0] + dtype(3e-7), np.nan
    threshold, limit, scale = np.linspace([0.0, 0.5, 1.0], [0.8, 2.0, 3.0], 6).T
    part, flags = split_errors(X, low, threshold, limit, scale)
    assert part.dtype == dtype
    errors = np.nan_to_num(X.astype(np.float64) - low)
    errors[0] = 0.0
    expected = np.sign(errors) * np.maximum(np.abs(errors) - threshold, 0) * scale
    np.testing.assert_allclose(part, expected, atol=1e-6)
    np.testing.assert_array_equal(flags, np.abs(errors) > limit)
    assert flags.any()
    assert not flags[np.isnan(X)].any()


class TestRowProblem:
    N, D, K = 12, 30, 4

    def problem(self, rng, loss, penalty=0.2):
        basis = np.linalg.qr(rng.normal(size=(self.D, self.K)))[0].T
        half = rng.normal(size=(self.K, self.K))
        mean, linear = rng.normal(size=self.D), 0.1 * rng.normal(size=self.K)
        return RowProblem(mean, basis, 0.1 * half @ half.T, linear, loss, penalty)

    def rows(self, rng, problem, missing=0.0):
        X = problem.mean + 3 * rng.normal(size=(self.N, self.K)) @ problem.basis
        X += 0.05 * rng.normal(size=X.shape)
        X[rng.random(X.shape) < 0.15] += 6
        X[rng.random(X.shape) < missing] = np.nan
        return X

    def objective(self, problem, X, Z, weights=None, pulls=None):
        rest = X - problem.mean - Z @ problem.basis
        total = problem.loss.value(rest) + np.sum((Z @ problem.ridge) * Z) / 2
        total += np.sum(Z @ problem.linear)
        if weights is not None:
            total += np.sum(weights[:, None] * Z**2) / 2
        return total if pulls is None else total - np.sum(pulls * Z)

    def optimum(self, problem, X, weights=None, pulls=None):
        Z = cp.Variable((len(X), len(problem.basis)))
        formula = cost(problem.loss, X, problem.mean[None] + Z @ problem.basis)
        formula += cp.sum_squares(Z @ root_of(problem.ridge).T) / 2 + cp.sum(Z @ problem.linear)
        if weights is not None:
            formula += cp.sum_squares(cp.multiply(np.sqrt(weights)[:, None], Z)) / 2
        if pulls is not None:
            formula -= cp.sum(cp.multiply(pulls, Z))
        return least(formula)

    @losses
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("connected", [False, True], ids=["free", "connected"])
    def test_scores_are_optimal(self, loss, missing, connected, rng):
        problem = self.problem(rng, loss)
        X = self.rows(rng, problem, missing)
        edges = ()
        if connected:
            edges = rng.uniform(0, 1, size=self.N), 0.3 * rng.normal(size=(self.N, self.K))
        Z = problem.solve(X, *edges)
        assert Z.shape == (self.N, self.K)
        expected = self.optimum(problem, X, *edges)
        assert self.objective(problem, X, Z, *edges) == pytest.approx(expected, rel=1e-7)

    def test_weights_and_pulls_may_come_alone(self, rng):
        problem = self.problem(rng, L1Norm(0.2))
        X = self.rows(rng, problem)
        weights, pulls = rng.uniform(0, 1, size=self.N), rng.normal(size=(self.N, self.K))
        for edges in ((weights, None), (None, pulls)):
            found = self.objective(problem, X, problem.solve(X, *edges), *edges)
            assert found == pytest.approx(self.optimum(problem, X, *edges), rel=1e-7)

    def test_an_infinitely_strong_pull_wins(self, rng):
        problem = self.problem(rng, L1Norm(0.2))
        X, wanted = self.rows(rng, problem), rng.normal(size=(self.N, self.K))
        weights = np.full(self.N, 1e8)
        Z = problem.solve(X, weights, 1e8 * wanted)
        np.testing.assert_allclose(Z, wanted, rtol=0, atol=1e-5)

    def test_a_quadratic_loss_has_a_closed_form(self, rng):
        problem = self.problem(rng, SquaredNorm(0.5))
        X = self.rows(rng, problem)
        system = problem.ridge + 0.5 * np.eye(self.K)
        codes = 0.5 * (X - problem.mean) @ problem.basis.T - problem.linear
        expected = np.linalg.solve(system, codes.T).T
        np.testing.assert_allclose(problem.solve(X), expected, rtol=0, atol=1e-6)

    @losses
    def test_other_rows_have_no_influence(self, loss, rng):
        problem = self.problem(rng, loss)
        X = self.rows(rng, problem, missing=0.1)
        weights, pulls = rng.uniform(0, 1, size=self.N), rng.normal(size=(self.N, self.K))
        alone = [
            problem.solve(X[i : i + 1], weights[i : i + 1], pulls[i : i + 1])[0]
            for i in range(self.N)
        ]
        others = 100 * rng.normal(size=(300, self.D))
        company = np.vstack([others[:200], X, others[200:]])
        weights = np.r_[np.zeros(200), weights, np.zeros(100)]
        pulls = np.vstack([np.zeros((200, self.K)), pulls, np.zeros((100, self.K))])
        together = problem.solve(company, weights, pulls)[200 : 200 + self.N]
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("scale", [1e-3, 1e3])
    def test_the_unit_of_the_data_does_not_matter(self, scale, rng):
        problem = self.problem(rng, HuberNorm(0.2, 0.3))
        X = self.rows(rng, problem)
        scaled = RowProblem(
            scale * problem.mean,
            problem.basis,
            problem.ridge / scale,
            problem.linear,
            problem.loss.scaled(scale),
            problem.penalty / scale,
        )
        found = scaled.solve(scale * X) / scale
        np.testing.assert_allclose(found, problem.solve(X), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1e-1])
    def test_a_low_penalty_to_start_with_does_not_matter(self, penalty, rng):
        problem = self.problem(rng, L1Norm(0.2), penalty)
        X = self.rows(rng, problem)
        found = self.objective(problem, X, problem.solve(X))
        assert found == pytest.approx(self.optimum(problem, X), rel=1e-6)

    @pytest.mark.parametrize("penalty", [1e2, 1e4])
    def test_a_high_penalty_to_start_with_does_not_matter(self, penalty, rng):
        problem = self.problem(rng, L1Norm(0.2), penalty)
        X = self.rows(rng, problem)
        found = self.objective(problem, X, problem.solve(X))
        assert found == pytest.approx(self.optimum(problem, X), rel=1e-6)

    @losses
    def test_odd_rows(self, loss, rng):
        problem = self.problem(rng, loss)
        usual = self.rows(rng, problem)[0]
        first = np.full(self.D, np.nan)
        first[0] = 5.0
        odd = [
            np.zeros(self.D),
            np.full(self.D, np.nan),
            first,
            problem.mean,
            1e-6 * usual,
            100 * usual,
        ]
        for row in odd:
            X = row[None].copy()
            Z = problem.solve(X)
            expected = self.optimum(problem, X)
            found = self.objective(problem, X, Z)
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)

    @pytest.mark.parametrize(
        "size",
        [
            1e3,
            1e6,
        ],
    )
    def test_how_wrong_an_entry_is_does_not_matter(self, size, rng):
        problem = self.problem(rng, L1Norm(0.2))
        wild = self.rows(rng, problem)[:2]
        wild[0, 3], wild[1, 5] = 50.0, -50.0
        wilder = wild.copy()
        wilder[0, 3], wilder[1, 5] = size, -size
        expected = problem.solve(wild)
        np.testing.assert_allclose(problem.solve(wilder), expected, rtol=0, atol=1e-3)

    def test_without_directions_there_are_no_scores(self, rng):
        X = rng.normal(size=(5, self.D))
        empty = np.zeros((0, self.D))
        problem = RowProblem(np.ones(self.D), empty, np.zeros((0, 0)), np.zeros(0), L1Norm(), 0.2)
        assert problem.solve(X).shape == (5, 0)
        assert problem.solve(X, np.ones(5), np.zeros((5, 0))).shape == (5, 0)

    def test_without_rows_there_are_no_scores(self, rng):
        problem = self.problem(rng, L1Norm(0.2))
        assert problem.solve(np.zeros((0, self.D))).shape == (0, self.K)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_rows_are_left_alone(self, order, rng):
        problem = self.problem(rng, L1Norm(0.2))
        X = np.array(self.rows(rng, problem, missing=0.1), order=order)
        X.flags.writeable = False
        before, single = X.copy(), X.astype(np.float32)
        expected = problem.solve(X)
        np.testing.assert_array_equal(X, before)
        np.testing.assert_allclose(problem.solve(single), expected, rtol=0, atol=1e-4)


def row_problem(result, loss, penalty, centred=True):
    """What a pursuit stores for new rows: the nuclear norm near its optimum, as a quadratic."""
    left, right, values = result.low_rank.left, result.low_rank.right, result.low_rank.values
    rank = int(np.count_nonzero(values > 1e-8 * values[0]))
    middle = left.mean(axis=0) if centred else np.zeros(left.shape[1])
    moved = left - middle
    turn = np.linalg.eigh(moved.T @ moved)[1]
    mean, basis = middle @ right, (turn.T[::-1] @ right)[:rank]
    low_rank = LowRank(left[:, :rank], right[:rank], values[:rank])
    return RowProblem.of(low_rank, mean, basis, loss, penalty)


def prove_nothing(rows, lost, flags, basis, hat, pulls, numbers, codes, sizes, solved):
    solved[:] = False


class TestProof:
    """A fit that matches all but a few entries of a row is the solution if multipliers exist."""

    def case(self, rng, *, n=60, shape=(5, 50), wrong=0.08, missing=0.0, off=0.0, pull=0.01):
        """Rows with wrong entries, and a problem that they solve with a basis that is a bit off."""
        basis = np.linalg.qr(rng.normal(size=shape[::-1]))[0].T
        X = rng.normal(size=(n, shape[0])) @ basis
        X += np.where(rng.random(X.shape) < wrong, 2 * rng.normal(size=X.shape), 0.0)
        X[rng.random(X.shape) < missing] = np.nan
        near = np.linalg.qr(basis.T + off * rng.normal(size=shape[::-1]))[0].T
        mean, linear = 0.1 * rng.normal(size=shape[0]) @ near, pull * rng.normal(size=shape[0])
        ridge = np.diag(rng.uniform(0.0, 0.02, shape[0]))
        return RowProblem(mean, near, ridge, linear, L1Norm(0.1), 1.0), X + mean

    def watch(self, monkeypatch):
        """Rows that come to the proof, and those that leave it unproved."""
        counts, newton, trimmed = [0, 0], new_rows._Rows._newton, new_rows._Rows._trimmed

        def asked(solver, X):
            counts[0] += len(X)
            return trimmed(solver, X)

        def left(solver, X, *parts):
            counts[1] += len(X)
            return newton(solver, X, *parts)

        monkeypatch.setattr(new_rows._Rows, "_trimmed", asked)
        monkeypatch.setattr(new_rows._Rows, "_newton", left)
        return counts

    @pytest.mark.parametrize("missing", [0.0, 0.1])
    @pytest.mark.parametrize("shape", [(1, 20), (5, 50), (12, 48), (3, 2000)], ids=str)
    def test_what_is_proved_is_the_minimum(self, shape, missing, rng, monkeypatch):
        problem, X = self.case(rng, shape=shape, missing=missing, n=12 if shape[1] > 99 else 40)
        counts = self.watch(monkeypatch)
        Z = problem.solve(X)
        assert counts[0] == len(X)
        assert counts[1] < 0.5 * len(X)
        rows = TestRowProblem()
        expected = rows.optimum(problem, X)
        assert rows.objective(problem, X, Z) == pytest.approx(expected, rel=1e-7)

    def test_multipliers_that_are_too_large_are_held(self, rng, monkeypatch):
        problem, X = self.case(rng, n=400, pull=0.15)
        counts = self.watch(monkeypatch)
        expected = problem.solve(X)
        left = counts[1]
        assert left < 0.05 * len(X)
        monkeypatch.setattr(new_rows, "PROOFS", 1)
        found = problem.solve(X)
        assert counts[1] - left > 0.1 * len(X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())

    @pytest.mark.parametrize("wrong", [0.3, 0.6, 0.95])
    def test_nothing_is_proved_that_is_not_so(self, wrong, rng, monkeypatch):
        problem, X = self.case(rng, wrong=wrong, n=200)
        found = problem.solve(X)
        monkeypatch.setattr(new_rows, "prove_rows", prove_nothing)
        expected = problem.solve(X)
        values = [TestRowProblem().objective(problem, X, Z) for Z in (found, expected)]
        assert values[0] == pytest.approx(values[1], rel=1e-7)

    def test_a_fit_that_does_not_match_is_not_the_solution(self, rng, monkeypatch):
        problem, X = self.case(rng, off=1e-5)
        counts = self.watch(monkeypatch)
        problem.solve(X)
        assert counts == [len(X), len(X)]

    @pytest.mark.parametrize("least", [0, 10**9])
    def test_the_interpreter_gives_what_the_compiler_gives(self, least, rng, monkeypatch):
        problem, X = self.case(rng, n=20, missing=0.05)
        # With and without the matrix of all entries.
        monkeypatch.setattr(row_flags, "MOST_FEATURES", least)
        expected = problem.solve(X)
        for module in (new_rows, row_flags):
            monkeypatch.setattr(module, "compiled", lambda function: function)
        np.testing.assert_allclose(problem.solve(X), expected, rtol=0, atol=1e-12)


class TestNewton:
    """Rows with few directions are solved by Newton's method, to all digits."""

    def case(self, seed, loss, *, shape=(300, 400), rank=6, noise=0.0, missing=0.0):
        """A pursuit of some rows, and others of the same kind."""
        X = planted(np.random.default_rng(seed), shape, rank, noise=noise, missing=missing)
        known, new = X[: shape[0] // 2], X[shape[0] // 2 :]
        result = split(known, loss, tol=1e-7, max_iter=1000)
        return row_problem(result, loss, 0.25 / mean_size(known)), new

    @pytest.mark.parametrize("missing", [0.0, 0.2])
    @pytest.mark.parametrize("shape", [(300, 400), (600, 50)], ids=str)
    @pytest.mark.parametrize(
        ("loss", "noise", "few"),
        [(L1Norm(0.05), 0.0, 3), (HuberNorm(0.05, 0.2), 0.1, 0)],
        ids=["l1", "huber"],
    )
    @pytest.mark.slow
    def test_few_rows_are_left_to_the_splitting(
        self, loss, noise, few, shape, missing, monkeypatch
    ):
        left, split_rows = [], new_rows._Rows._split

        def count(solver, X, *parts):
            left.append(len(X))
            return split_rows(solver, X, *parts)

        monkeypatch.setattr(new_rows._Rows, "_split", count)
        for seed in range(10):
            problem, new = self.case(seed, loss, shape=shape, noise=noise, missing=missing)
            assert np.isfinite(problem.solve(new)).all()
        # Of 1500 or 3000.
        assert sum(left) <= few

    @pytest.mark.parametrize(
        ("loss", "noise", "tol"),
        [(L1Norm(0.05), 0.0, 1e-6), (L1Norm(0.05), 0.1, 1e-4), (HuberNorm(0.05, 0.2), 0.1, 1e-7)],
        ids=["l1", "l1 and noise", "huber"],
    )
    def test_it_agrees_with_the_splitting(self, loss, noise, tol, monkeypatch):
        problem, new = self.case(0, loss, shape=(200, 60), rank=3, noise=noise, missing=0.1)
        found = problem.solve(new)
        monkeypatch.setattr(new_rows, "NEWTON_RANK", 0)
        expected = problem.solve(new, tol=1e-10, max_iter=20_000)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max())

    def test_the_gradient_vanishes_to_all_digits(self, rng):
        loss = HuberNorm(0.05, 0.2)
        problem, new = self.case(0, loss, noise=0.1, missing=0.1)
        Z = problem.solve(new)
        error = new - problem.mean - Z @ problem.basis
        forces = np.nan_to_num(loss.weight * np.clip(error / loss.threshold, -1, 1))
        gradient = Z @ problem.ridge + problem.linear - forces @ problem.basis.T
        assert np.abs(gradient).max() < 1e-13

    def test_a_row_that_newton_does_not_solve_is_left_to_the_splitting(self, rng, monkeypatch):
        problem, new = self.case(0, L1Norm(0.05), shape=(200, 60), rank=3, noise=0.1)
        expected = problem.solve(new)
        monkeypatch.setattr(new_rows, "NEWTON_STEPS", 2)
        # Along a nearly flat direction the splitting creeps; the objectives agree.
        values = [
            TestRowProblem().objective(problem, new, Z) for Z in (problem.solve(new), expected)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-7)

    @pytest.mark.parametrize("missing", [0.0, 0.1])
    @pytest.mark.parametrize("shape", [(200, 50), (200, 300)], ids=str)
    def test_rows_that_can_be_matched_start_where_they_end(self, shape, missing):
        problem, new = self.case(0, L1Norm(0.1), shape=shape, rank=5, missing=missing)
        _, rotation, basis = problem.diagonal
        fit = row_flags.LeastSquares(basis, np.zeros(len(basis)), len(new))
        *_, codes, sizes = new_rows._Rows(problem, fit, 1e-7, 2000)._trimmed(new)
        codes, expected = codes @ rotation.T, problem.solve(new)
        errors = np.abs(codes - expected).max(axis=1) / np.abs(expected).mean()
        assert np.mean(errors < 1e-5) > 0.9
        assert (sizes[errors < 1e-5] < 1e-4 * np.abs(expected).mean()).all()

    @pytest.mark.parametrize("seed", range(3))
    def test_rows_are_not_solved_to_more_digits_than_their_basis_has(self, seed, monkeypatch):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(50, 5)))[0].T
        low = rng.normal(size=(60, 5)) @ basis
        new = low + np.where(rng.random(low.shape) < 0.05, rng.uniform(-3, 3, low.shape), 0.0)
        near = np.linalg.qr(basis.T + 3e-8 * rng.normal(size=(50, 5)))[0].T
        ridge, nothing = 1e-3 * np.eye(5), np.zeros(5)
        problem = RowProblem(np.zeros(50), near, ridge, nothing, L1Norm(0.05), 1.0)
        assert relative(problem.solve(new) @ near, low) < 3e-7
        # The residuals of the basis are as large as the tolerance: to sort them took four steps.
        steps, step = [], row_newton.newton_point
        monkeypatch.setattr(new_rows, "prove_rows", prove_nothing)
        monkeypatch.setattr(new_rows, "compiled", lambda kernel: kernel)
        monkeypatch.setattr(row_newton, "newton_point", lambda *a: (steps.append(1), step(*a)))
        problem.solve(new)
        assert len(steps) < 2.5 * len(new)

    def test_rows_of_few_features_for_their_directions_start_from_all_entries(self, monkeypatch):
        problem, new = self.case(0, L1Norm(0.1), shape=(200, 30), rank=10)
        starts, newton = [], new_rows._Rows._newton

        def keep(solver, *parts):
            starts.append(parts[4])
            return newton(solver, *parts)

        monkeypatch.setattr(new_rows._Rows, "_newton", keep)
        assert np.isfinite(problem.solve(new)).all()
        assert (np.concatenate(starts) < 0).all()

    def test_the_interpreter_gives_what_the_compiler_gives(self, rng, monkeypatch):
        problem, new = self.case(0, HuberNorm(0.05, 0.2), noise=0.1, missing=0.1)
        expected = problem.solve(new[:3])
        for module in (new_rows, row_flags):
            monkeypatch.setattr(module, "compiled", lambda function: function)
        np.testing.assert_allclose(problem.solve(new[:3]), expected, rtol=0, atol=1e-10)


class TestTrainingRows:
    """Rows of the training data get the low-rank part that they had."""

    def assert_back(self, X, loss, *, term=None, penalty=None, graph=None, centred=True, atol=1e-6):
        result = split(X, loss, term, tol=1e-10, max_iter=5000)
        penalty = result.penalty if penalty == "last" else 0.25 / mean_size(X)
        problem = row_problem(result, loss, penalty, centred)
        L = result.low_rank.dense()
        weights = pulls = None
        if graph is not None:
            diagonal, neighbours = graph.edges(X)
            factor = 2 * term.weight
            weights = factor * diagonal
            pulls = factor * (neighbours @ L) @ problem.basis.T
            pulls -= np.outer(weights, problem.basis @ problem.mean)
        Z = problem.solve(X, weights, pulls, tol=1e-10, max_iter=5000)
        back = problem.mean + Z @ problem.basis
        assert relative(back, L) < atol

    @pytest.mark.parametrize("centred", [True, False])
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    @pytest.mark.parametrize("loss", [L1Norm(0.11), HuberNorm(0.11, 0.2)], ids=["l1", "huber"])
    def test_complete_rows(self, loss, noise, centred, rng):
        self.assert_back(planted(rng, noise=noise), loss, centred=centred)

    def test_rows_with_holes(self, rng):
        X = planted(rng, noise=0.1, missing=0.2)
        self.assert_back(X, HuberNorm(0.12, 0.2))

    def test_the_last_penalty_of_a_pursuit_of_noisy_data_will_do(self, rng):
        self.assert_back(planted(rng, noise=0.1), L1Norm(0.11), penalty="last")

    def test_the_last_penalty_of_a_pursuit_of_clean_data_will_do(self):
        for seed in range(5):
            X = planted(np.random.default_rng(seed), (200, 100), 4)
            loss = L1Norm(1 / np.sqrt(200))
            result = split(X, loss, tol=1e-7, max_iter=1000)
            problem = row_problem(result, loss, result.penalty)
            back = problem.mean + problem.solve(X) @ problem.basis
            assert relative(back, result.low_rank.dense()) < 1e-6

    @pytest.mark.parametrize("normalized", [True, False])
    def test_rows_that_are_connected_to_their_neighbours(self, normalized, rng):
        X = planted(rng, noise=0.1)
        adjacency = knn_graph(X, 5)
        matrix = laplacian(adjacency, normalized=normalized)
        graph = TrainingGraph(X, adjacency, matrix, 5, normalized)
        term = GraphSmoothness.of(matrix, 0.05)
        self.assert_back(X, HuberNorm(0.11, 0.2), term=term, graph=graph, atol=1e-5)


class TestSmoothRows:
    N, D = 9, 14

    def setup_problem(self, rng, missing=0.0, normalized=True):
        X = rng.normal(size=(self.N, self.D))
        X[rng.random(X.shape) < 0.1] += 6
        X[rng.random(X.shape) < missing] = np.nan
        graph = laplacian(knn_graph(rng.normal(size=(self.D, 2)), 3), normalized=normalized)
        weights = rng.uniform(0.3, 2, size=self.N)
        pulls = weights[:, None] * rng.normal(size=X.shape)
        return X, weights, pulls, 1.4 * graph, 1.4 * eigenvalue_bound(graph)

    def objective(self, X, U, loss, weights, pulls, graph):
        smooth = np.sum((U @ graph.toarray()) * U) / 2
        connected = np.sum(weights[:, None] * U**2) / 2 - np.sum(pulls * U)
        return loss.value(X - U) + smooth + connected

    @losses
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("normalized", [True, False])
    def test_rows_are_optimal(self, loss, missing, normalized, rng):
        X, weights, pulls, graph, curvature = self.setup_problem(rng, missing, normalized)
        found = smooth_rows(X, loss, weights, pulls, graph, curvature)
        U = cp.Variable(X.shape)
        connected = cp.sum_squares(cp.multiply(np.sqrt(weights)[:, None], U)) / 2
        formula = cost(loss, X, U) + connected - cp.sum(cp.multiply(pulls, U))
        expected = least(formula + cp.sum_squares(U @ root_of(graph.toarray()).T) / 2)
        reached = self.objective(X, found, loss, weights, pulls, graph)
        assert reached == pytest.approx(expected, rel=1e-8)

    def test_other_rows_have_no_influence(self, rng):
        X, weights, pulls, graph, curvature = self.setup_problem(rng, missing=0.2)
        loss = L1Norm(0.2)
        together = smooth_rows(X, loss, weights, pulls, graph, curvature)
        for i in range(self.N):
            one = slice(i, i + 1)
            alone = smooth_rows(X[one], loss, weights[one], pulls[one], graph, curvature)
            np.testing.assert_allclose(alone, together[one], rtol=0, atol=1e-9)

    def test_without_edges_and_graph_rows_stay_as_they_are(self, rng):
        X, weights, pulls, graph, _ = self.setup_problem(rng)
        found = smooth_rows(X, L1Norm(0.2), 0 * weights, 0 * pulls, 0 * graph, 0.0)
        np.testing.assert_array_equal(found, X)

    def test_a_strong_edge_wins(self, rng):
        X, _, wanted, graph, curvature = self.setup_problem(rng, missing=0.2)
        weights = np.full(self.N, 1e6)
        found = smooth_rows(X, L1Norm(0.2), weights, 1e6 * wanted, graph, curvature)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)

    def test_a_row_without_any_entry_follows_its_edges(self, rng):
        X, weights, pulls, graph, curvature = self.setup_problem(rng)
        X[2] = np.nan
        found = smooth_rows(X, L1Norm(0.2), weights, pulls, graph, curvature)
        system = weights[2] * np.eye(self.D) + graph.toarray()
        np.testing.assert_allclose(found[2], np.linalg.solve(system, pulls[2]), atol=1e-6)

    def test_rows_are_left_alone(self, rng):
        arguments = self.setup_problem(rng, missing=0.2)
        before = [array.copy() for array in arguments[:3]]
        for array in arguments[:3]:
            array.flags.writeable = False
        found = smooth_rows(arguments[0], L1Norm(0.2), *arguments[1:])
        for array, copy in zip(arguments, before, strict=False):
            np.testing.assert_array_equal(array, copy)
        single = smooth_rows(arguments[0].astype(np.float32), L1Norm(0.2), *arguments[1:])
        np.testing.assert_allclose(single, found, rtol=0, atol=1e-5)


class TestTrainingGraph:
    N, D, K = 40, 6, 5

    def graph(self, X, normalized=True, adjacency=None):
        adjacency = knn_graph(X, self.K) if adjacency is None else adjacency
        matrix = laplacian(adjacency, normalized=normalized)
        return TrainingGraph(X, adjacency, matrix, self.K, normalized)

    @pytest.mark.parametrize("normalized", [True, False])
    @pytest.mark.parametrize("missing", [0.0, 0.1])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_training_rows_keep_their_row_of_the_laplacian(self, normalized, missing, dtype, rng):
        X = rng.normal(size=(self.N, self.D)).astype(dtype)
        X[rng.random(X.shape) < missing] = np.nan
        graph = self.graph(X, normalized)
        order = rng.permutation(self.N)
        diagonal, edges = graph.edges(X[order])
        matrix = graph.laplacian.toarray()[order]
        np.testing.assert_array_equal(diagonal, graph.laplacian.diagonal()[order])
        own = np.zeros_like(matrix)
        own[np.arange(self.N), order] = diagonal
        np.testing.assert_allclose(edges.toarray(), own - matrix, rtol=0, atol=1e-15)
        # A row is not connected to itself.
        assert not edges.toarray()[np.arange(self.N), order].any()

    @pytest.mark.parametrize("normalized", [True, False])
    def test_new_rows_have_gaussian_edges_to_the_nearest(self, normalized, rng):
        X, new = rng.normal(size=(self.N, self.D)), rng.normal(size=(9, self.D))
        graph = self.graph(X, normalized)
        among = cdist(X, X)
        bandwidth = np.sort(among, axis=1)[:, 1 : self.K + 1].mean()
        assert graph.bandwidth == pytest.approx(bandwidth, rel=1e-12)
        distances = cdist(new, X)
        expected = np.zeros(distances.shape)
        for row, out in zip(distances, expected, strict=True):
            nearest = np.argsort(row)[: self.K]
            out[nearest] = np.exp(-((row[nearest] / bandwidth) ** 2))
        degrees = expected.sum(axis=1)
        diagonal, edges = graph.edges(new)
        if normalized:
            theirs = graph.adjacency.sum(axis=1)
            expected = expected / np.sqrt(degrees[:, None] * theirs)
            degrees = np.ones(9)
        np.testing.assert_allclose(edges.toarray(), expected, rtol=1e-10)
        np.testing.assert_allclose(diagonal, degrees, rtol=1e-10)

    def test_old_and_new_rows_may_come_together(self, rng):
        X, new = rng.normal(size=(self.N, self.D)), rng.normal(size=(4, self.D))
        graph = self.graph(X)
        mixed = np.vstack([new[:2], X[[7, 3]], new[2:], X[:1]])
        diagonal, edges = graph.edges(mixed)
        for i, row in enumerate(mixed):
            alone, edge = graph.edges(row[None])
            assert diagonal[i] == alone[0]
            np.testing.assert_allclose(edges.toarray()[i], edge.toarray()[0], rtol=1e-14)

    @pytest.mark.parametrize("normalized", [True, False])
    def test_smoothness_of_a_row_is_what_it_adds_to_the_laplacian(self, normalized, rng):
        X = rng.normal(size=(self.N, self.D))
        graph = self.graph(X, normalized)
        diagonal, edges = graph.edges(X)
        L = rng.normal(size=(self.N, 3))
        moved = L.copy()
        moved[5] = rng.normal(size=3)
        term = GraphSmoothness.of(graph.laplacian, 1.0)

        def of_row(row):
            return diagonal[5] * row @ row - 2 * row @ (edges @ L)[5]

        change = term.value(moved) - term.value(L)
        assert of_row(moved[5]) - of_row(L[5]) == pytest.approx(change, rel=1e-10)

    @pytest.mark.parametrize("normalized", [True, False])
    def test_a_row_that_is_far_from_all_has_no_edges(self, normalized, rng):
        X = rng.normal(size=(self.N, self.D))
        diagonal, edges = self.graph(X, normalized).edges(np.full((1, self.D), 1e4))
        assert diagonal[0] == 0
        assert not edges.toarray().any()

    @pytest.mark.parametrize("normalized", [True, False])
    def test_an_isolated_training_row_has_no_edges(self, normalized, rng):
        X = rng.normal(size=(self.N, self.D))
        adjacency = knn_graph(X, self.K).toarray()
        adjacency[3], adjacency[:, 3] = 0, 0
        graph = self.graph(X, normalized, sparse.csr_array(adjacency))
        diagonal, edges = graph.edges(X[[3, 4]])
        assert diagonal[0] == 0
        assert not edges.toarray()[0].any()
        assert diagonal[1] > 0

    def test_a_new_row_is_not_connected_to_an_isolated_one_by_a_normalised_graph(self, rng):
        X = rng.normal(size=(self.N, self.D))
        adjacency = knn_graph(X, self.K).toarray()
        adjacency[3], adjacency[:, 3] = 0, 0
        graph = self.graph(X, True, sparse.csr_array(adjacency))
        edges = graph.edges(X[3:4] + 1e-3)[1].toarray()[0]
        assert np.isfinite(edges).all()
        assert edges[3] == 0

    def test_a_new_row_among_isolated_ones_carries_no_penalty(self, rng):
        X = rng.normal(size=(self.N, self.D))
        graph = self.graph(X, True, sparse.csr_array((self.N, self.N)))
        diagonal, edges = graph.edges(rng.normal(size=(2, self.D)))
        assert not edges.toarray().any()
        assert not diagonal.any()

    def test_duplicates_of_each_other_have_edges_of_weight_one(self, rng):
        X = np.repeat(rng.normal(size=(2, self.D)), 20, axis=0)
        graph = self.graph(X, normalized=False)
        assert graph.bandwidth == 0
        _, edges = graph.edges(X[:1] + 1e-3)
        np.testing.assert_array_equal(np.unique(edges.toarray()), [0.0, 1.0])

    def test_fewer_training_rows_than_neighbours(self, rng):
        for n_rows in (1, 2, 4):
            X = rng.normal(size=(n_rows, self.D))
            diagonal, edges = self.graph(X, normalized=False).edges(rng.normal(size=(3, self.D)))
            assert edges.shape == (3, n_rows)
            assert np.isfinite(edges.toarray()).all()
            np.testing.assert_allclose(diagonal, edges.toarray().sum(axis=1), rtol=1e-12)

    def test_training_rows_that_share_no_feature_are_left_out_of_the_bandwidth(self, rng):
        X = rng.normal(size=(8, 6))
        X[:4, 3:], X[4:, :3] = np.nan, np.nan
        graph = self.graph(X, normalized=False)
        assert np.isfinite(graph.bandwidth)
        diagonal, edges = graph.edges(rng.normal(size=(2, 6)))
        assert np.isfinite(diagonal).all()
        assert 0 < edges.toarray().max() < 1

    def test_a_training_row_with_holes_is_known_among_rows_that_agree_with_it(self, rng):
        X = rng.normal(size=(8, 6))
        X[0] = np.nan
        X[0, 0] = X[5, 0]  # equal to row 5 where both are there, and before it
        graph = self.graph(X, normalized=False)
        diagonal, _ = graph.edges(X[5:6])
        assert diagonal[0] == graph.laplacian.diagonal()[5]
