import contextlib
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_limits

from robustpca.engine.threads import one_blas_thread
from robustpca.parts.graphs import knn_graph, laplacian
from robustpca.solvers import graph_descent as descent
from robustpca.solvers.graph_descent import GraphDescent, Move, fista


@dataclass(frozen=True)
class Absolute:
    weight: float = 1.0

    def dual_map(self, step):
        return 1.0, self.weight * step

    def value(self, residuals):
        return self.weight * float(np.nansum(np.abs(residuals), dtype=float))


@dataclass(frozen=True)
class Huber:
    weight: float = 1.0
    threshold: float = 0.4

    def dual_map(self, step):
        reach = self.weight * step
        return reach / (self.threshold + reach), reach

    def value(self, residuals):
        size = np.abs(residuals)
        low = np.minimum(size, self.threshold)
        return self.weight * float(np.nansum(size - low + low**2 / (2 * self.threshold)))


@dataclass(frozen=True)
class Squared:
    weight: float = 1.0

    def dual_map(self, step):
        return self.weight * step / (1 + self.weight * step), np.inf

    def value(self, residuals):
        return self.weight * float(np.nansum(np.square(residuals), dtype=float)) / 2


LOSSES = [Absolute(0.8), Huber(1.2), Squared(0.7)]


def random_laplacian(rng, size, *, normalized=True, degree=3, isolated=()):
    """Laplacian of a graph in which everyone has chosen a few others."""
    adjacency = np.zeros((size, size))
    for i in range(size):
        others = rng.integers(size, size=degree)
        adjacency[i, others] = rng.uniform(0.2, 1.0, size=degree)
    adjacency = np.maximum(adjacency, adjacency.T)
    np.fill_diagonal(adjacency, 0)
    adjacency[list(isolated)] = 0
    adjacency[:, list(isolated)] = 0
    degrees = adjacency.sum(axis=1)
    full = np.diag(degrees) - adjacency
    if normalized:
        roots = 1 / np.sqrt(np.where(degrees > 0, degrees, np.inf))
        full = roots[:, None] * full * roots
    return sparse.csr_array(full)


def random_problem(rng, n, d, *, missing=0.0, **graphs):
    """Smooth data with outliers, and a Laplacian for each side."""
    X = np.outer(np.sin(np.arange(n) / 5), np.cos(np.arange(d) / 7)) + 0.1 * rng.normal(size=(n, d))
    X += np.where(rng.random((n, d)) < 0.1, rng.normal(scale=3, size=(n, d)), 0)
    X[rng.random((n, d)) < missing] = np.nan
    return X, random_laplacian(rng, n, **graphs), random_laplacian(rng, d, **graphs)


def smoothness(U, laplacian, weight):
    return 0.0 if laplacian is None else weight * float(np.sum(U * (laplacian @ U)))


def objective(U, X, loss, samples, a, features, b):
    return loss.value(X - U) + smoothness(U, samples, a) + smoothness(U.T, features, b)


def gradient(U, samples, a, features, b):
    out = np.zeros_like(U)
    if samples is not None:
        out += 2 * a * (samples @ U)
    if features is not None:
        out += 2 * b * (features @ U.T).T
    return out


def norm(laplacian):
    return 0.0 if laplacian is None else float(np.linalg.eigvalsh(laplacian.toarray())[-1])


def plain_fista(X, loss, samples, a, features, b, n_iter, restart=True, greedy=True):
    """The textbook loop: one array operation after the other."""
    greedy = greedy and restart
    curvature = 2 * a * norm(samples) + 2 * b * norm(features)
    slope, bound = loss.dual_map(1 / curvature)
    U = Y = np.nan_to_num(X)
    t = 1.0
    for _ in range(n_iter):
        Z = Y - gradient(Y, samples, a, features, b) / curvature
        before, U = U, Z + np.nan_to_num(np.clip(slope * (X - Z), -bound, bound))
        if restart and np.sum((Y - U) * (U - before)) > 0:
            t, Y = 1.0, U
            continue
        next_t = (1 + np.sqrt(1 + 4 * t**2)) / 2
        t, Y = next_t, U + (1.0 if greedy else (t - 1) / next_t) * (U - before)
    return U


def exact_norms(samples, features):
    return {"sample_norm": norm(samples), "feature_norm": norm(features)}


def solve(X, loss, samples, a, features, b, *, tol=1e-12, max_iter=20000, **options):
    return fista(X, loss, samples, a, features, b, tol=tol, max_iter=max_iter, **options)


class TestAgainstTheTextbook:
    @pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    @pytest.mark.parametrize("normalized", [True, False])
    @pytest.mark.parametrize("momentum", ["greedy", "restarted", "plain"])
    def test_iterations_are_those_of_the_plain_loop(self, loss, missing, normalized, momentum, rng):
        how = {"restart": momentum != "plain", "greedy": momentum == "greedy"}
        X, samples, features = random_problem(rng, 90, 23, missing=missing, normalized=normalized)
        # Greedy iterations amplify rounding, and end with steps of its size.
        n_iter = 25 if how["greedy"] else 60
        expected = plain_fista(X, loss, samples, 1.5, features, 0.7, n_iter, **how)
        how |= exact_norms(samples, features)
        result = solve(X, loss, samples, 1.5, features, 0.7, tol=0, max_iter=n_iter, **how)
        np.testing.assert_allclose(result.low_rank, expected, atol=1e-11)

    @pytest.mark.parametrize("width", range(1, 71))
    def test_any_number_of_features_will_do(self, width, rng):
        X, samples, features = random_problem(rng, 41, width, missing=0.1)
        self.check_some_iterations(X, samples, features)

    @pytest.mark.parametrize("height", [1, 2, 31, 33, 64, 511, 512, 513, 1030])
    def test_any_number_of_samples_will_do(self, height, rng, monkeypatch):
        monkeypatch.setattr(descent, "BATCH", 1)
        X, samples, features = random_problem(rng, height, 7, missing=0.1)
        self.check_some_iterations(X, samples, features)

    def test_rows_too_long_for_a_tile_will_do(self, rng, monkeypatch):
        monkeypatch.setattr(descent, "TILE_BYTES", 1 << 10)
        X, samples, features = random_problem(rng, 70, 200)
        self.check_some_iterations(X, samples, features)

    @staticmethod
    def check_some_iterations(X, samples, features):
        # A single vertex has an empty graph; the data are then their own answer.
        if norm(samples) + norm(features) == 0:
            np.testing.assert_array_equal(
                solve(X, Absolute(), samples, 1.0, features, 1.0).low_rank, np.nan_to_num(X)
            )
            return
        expected = plain_fista(X, Absolute(), samples, 1.0, features, 2.0, 8)
        norms = exact_norms(samples, features)
        result = solve(X, Absolute(), samples, 1.0, features, 2.0, tol=0, max_iter=8, **norms)
        np.testing.assert_allclose(result.low_rank, expected, atol=1e-12)

    @pytest.mark.parametrize("absent", ["samples", "features"])
    def test_either_graph_may_be_absent(self, absent, rng):
        X, samples, features = random_problem(rng, 40, 30, missing=0.2)
        samples, features = (None, features) if absent == "samples" else (samples, None)
        expected = plain_fista(X, Huber(), samples, 1.0, features, 1.0, 30)
        norms = exact_norms(samples, features)
        result = solve(X, Huber(), samples, 1.0, features, 1.0, tol=0, max_iter=30, **norms)
        np.testing.assert_allclose(result.low_rank, expected, atol=1e-12)

    @pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
    def test_the_value_is_the_objective(self, loss, rng):
        X, samples, features = random_problem(rng, 60, 17, missing=0.2)
        problem = GraphDescent(X, loss, samples, 1.3, features, 0.4)
        problem.advance(0.0)
        expected = objective(problem.result(), X, loss, samples, 1.3, features, 0.4)
        assert problem.value() == pytest.approx(expected, rel=1e-13)

    def test_the_sums_of_an_iteration_are_what_they_are_said_to_be(self, rng):
        X, samples, features = random_problem(rng, 60, 17)
        problem = GraphDescent(X, Absolute(), samples, 1.0, features, 1.0)
        for momentum in (0.3, 0.6):
            before, Y = problem.U.copy(), problem.Y.copy()
            move = problem.advance(momentum)
            U = problem.U
            assert move.square_step == pytest.approx(np.sum((U - Y) ** 2))
            assert move.square_norm == pytest.approx(np.sum(U**2))
            assert move.uphill == pytest.approx(np.sum((Y - U) * (U - before)))
            np.testing.assert_allclose(problem.Y, U + momentum * (U - before), atol=1e-15)


class TestOptimum:
    @pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
    @pytest.mark.parametrize("missing", [0.0, 0.25])
    @pytest.mark.parametrize("absent", ["none", "samples", "features"])
    def test_it_is_the_one_of_a_general_solver(self, loss, missing, absent, rng):
        cp = pytest.importorskip("cvxpy")
        X, samples, features = random_problem(rng, 14, 9, missing=missing, normalized=False)
        a, b = 0.3, 0.6
        samples = None if absent == "samples" else samples
        features = None if absent == "features" else features
        U = cp.Variable(X.shape)
        residuals = cp.multiply(~np.isnan(X), np.nan_to_num(X) - U)
        terms = {
            Absolute: lambda: loss.weight * cp.sum(cp.abs(residuals)),
            Huber: lambda: (
                cp.sum(cp.huber(residuals, loss.threshold)) * (loss.weight / (2 * loss.threshold))
            ),
            Squared: lambda: loss.weight / 2 * cp.sum_squares(residuals),
        }
        total = terms[type(loss)]()
        for matrix, weight, V in ((samples, a, U), (features, b, U.T)):
            if matrix is not None:
                values, axes = np.linalg.eigh(matrix.toarray())
                root = np.sqrt(np.maximum(values, 0))[:, None] * axes.T
                total = total + weight * cp.sum_squares(root @ V)
        best = cp.Problem(cp.Minimize(total)).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11
        )
        result = solve(X, loss, samples, a, features, b)
        assert result.converged
        assert result.objective[-1] == pytest.approx(best, rel=1e-6)
        value = objective(result.low_rank, X, loss, samples, a, features, b)
        assert value == pytest.approx(best, rel=1e-6)

    def test_it_meets_the_optimality_conditions(self, rng):
        X, samples, features = random_problem(rng, 300, 60)
        U = solve(X, Absolute(), samples, 1.0, features, 2.0).low_rank
        pull = gradient(U, samples, 1.0, features, 2.0)
        apart = np.abs(X - U) > 1e-8
        assert 0.1 < apart.mean() < 0.9
        assert np.abs(pull).max() <= 1 + 1e-9
        np.testing.assert_allclose(pull[apart], np.sign(X - U)[apart], atol=1e-9)

    def test_nothing_pulls_at_a_missing_entry_of_the_optimum(self, rng):
        X, samples, features = random_problem(rng, 100, 30, missing=0.3)
        U = solve(X, Absolute(), samples, 1.0, features, 2.0).low_rank
        pull = gradient(U, samples, 1.0, features, 2.0)
        np.testing.assert_allclose(pull[np.isnan(X)], 0.0, atol=1e-9)
        assert np.isfinite(U).all()

    def test_the_default_tolerance_is_enough_for_six_digits_of_the_objective(self, rng):
        for a, b in ((0.1, 0.1), (1.0, 1.0), (10.0, 1.0), (1.0, 30.0)):
            X, samples, features = random_problem(rng, 200, 50)
            best = solve(X, Absolute(), samples, a, features, b).objective[-1]
            result = fista(X, Absolute(), samples, a, features, b)
            assert result.converged
            assert result.objective[-1] == pytest.approx(best, rel=1e-6)

    def test_it_is_better_than_the_data(self, rng):
        X, samples, features = random_problem(rng, 80, 30)
        objectives = solve(X, Absolute(), samples, 1.0, features, 1.0).objective
        assert objectives[-1] < objectives[0]
        expected = objective(X, X, Absolute(), samples, 1.0, features, 1.0)
        assert objectives[0] == pytest.approx(expected)

    def test_transposing_the_problem_does_not_change_its_value(self, rng):
        X, samples, features = random_problem(rng, 60, 25, missing=0.1)
        one = solve(X, Absolute(), samples, 1.0, features, 3.0)
        other = solve(X.T, Absolute(), features, 3.0, samples, 1.0)
        assert one.objective[-1] == pytest.approx(other.objective[-1], rel=1e-9)

    def test_an_isolated_sample_is_left_alone(self, rng):
        X = rng.normal(size=(30, 8))
        laplacian = random_laplacian(rng, 30, isolated=[4, 29])
        U = solve(X, Absolute(), laplacian, 2.0, None, 1.0).low_rank
        np.testing.assert_array_equal(U[[4, 29]], X[[4, 29]])
        assert not np.array_equal(U, X)


class TestSpeedOfConvergence:
    def test_without_restarts_the_known_bound_holds(self, rng):
        X, samples, features = random_problem(rng, 60, 20)
        best = solve(X, Absolute(), samples, 5.0, features, 5.0)
        problem = GraphDescent(X, Absolute(), samples, 5.0, features, 5.0)
        distance = np.sum((X - best.low_rank) ** 2)
        t = 1.0
        for j in range(1, 120):
            next_t = (1 + np.sqrt(1 + 4 * t**2)) / 2
            problem.advance((t - 1) / next_t)
            t = next_t
            gap = problem.value() - best.objective[-1]
            assert gap <= 2 * problem.curvature * distance / (j + 1) ** 2 * (1 + 1e-9)

    def test_restarts_save_iterations(self, rng):
        X, samples, features = random_problem(rng, 100, 40)
        taken = [
            solve(
                X,
                Absolute(),
                samples,
                3.0,
                features,
                3.0,
                tol=1e-10,
                restart=restart,
                greedy=greedy,
            ).n_iter
            for restart, greedy in [(True, True), (True, False), (False, False)]
        ]
        assert taken[0] <= taken[1] < 0.7 * taken[2]

    @pytest.mark.parametrize("seed", range(12))
    def test_greedy_steps_always_arrive(self, seed):
        rng = np.random.default_rng(seed)
        size, loss = (int(rng.integers(5, 120)), int(rng.integers(3, 60))), LOSSES[seed % 3]
        X, samples, features = random_problem(
            rng, *size, missing=0.2 * (seed % 2), normalized=seed % 4 < 2
        )
        weights = 10.0 ** rng.uniform(-2, 2, size=2)
        parts = (X, loss, samples, weights[0], features, weights[1])
        greedy = solve(*parts)
        careful = solve(*parts, greedy=False)
        assert greedy.converged
        assert greedy.objective[-1] == pytest.approx(careful.objective[-1], rel=1e-9)

    def test_greedy_momentum_saves_iterations_on_neighbour_graphs(self):
        X = load_breast_cancer().data
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        samples, features = laplacian(knn_graph(X)), laplacian(knn_graph(X.T.copy(), 5))
        best = solve(X, Absolute(), samples, 1.0, features, 1.0).objective[-1]
        taken = []
        for greedy in (True, False):
            result = fista(X, Absolute(), samples, 1.0, features, 1.0, greedy=greedy)
            assert result.objective[-1] == pytest.approx(best, rel=1e-6)
            taken.append(result.n_iter)
        assert taken[0] < 0.9 * taken[1]

    def test_greedy_momentum_that_does_not_converge_is_replaced(self, rng, monkeypatch):
        X, samples, features = random_problem(rng, 60, 20)
        best = solve(X, Absolute(), samples, 1.0, features, 1.0)
        advance, momenta = GraphDescent.advance, []

        def stalled(problem, momentum, evaluate=False):
            """With full momentum, steps do not get shorter."""
            momenta.append(momentum)
            move = advance(problem, momentum, evaluate)
            return replace(move, square_step=move.square_norm) if momentum == 1 else move

        monkeypatch.setattr(GraphDescent, "advance", stalled)
        result = solve(X, Absolute(), samples, 1.0, features, 1.0, tol=1e-10, max_iter=5000)
        assert result.converged
        assert momenta.count(1.0) == descent.PATIENCE + 1
        assert result.objective[-1] == pytest.approx(best.objective[-1], rel=1e-9)

    def test_a_warm_start_at_the_answer_ends_at_once(self, rng):
        X, samples, features = random_problem(rng, 80, 30, missing=0.2)
        U = solve(X, Huber(), samples, 1.0, features, 1.0).low_rank
        again = solve(X, Huber(), samples, 1.0, features, 1.0, start=U, tol=1e-9)
        assert again.n_iter == 1
        np.testing.assert_allclose(again.low_rank, U, atol=1e-7)

    def test_data_without_a_signal_end_at_once(self, rng):
        laplacian = random_laplacian(rng, 10)
        result = solve(np.zeros((10, 4)), Absolute(), laplacian, 1.0, None, 1.0)
        assert (result.n_iter, result.converged, result.change) == (1, True, 0.0)

    def test_a_step_to_nothing_is_a_large_change(self):
        assert Move(1.0, 0.0, 0.0).change == np.inf


class TestWithoutSmoothness:
    @pytest.mark.parametrize("laplacian", [True, False])
    def test_the_data_are_returned_at_once(self, laplacian, rng):
        X, samples, features = random_problem(rng, 30, 10)
        graphs = (samples, 0.0, features, 0.0) if laplacian else (None, 1.0, None, 1.0)
        result = solve(X, Absolute(), *graphs)
        np.testing.assert_array_equal(result.low_rank, X)
        assert (result.n_iter, result.converged, result.change) == (0, True, 0.0)
        assert result.objective.tolist() == [0.0]

    def test_missing_entries_stay_where_they_start(self, rng):
        X = random_problem(rng, 30, 10, missing=0.3)[0]
        start = rng.normal(size=X.shape)
        missing = np.isnan(X)
        np.testing.assert_array_equal(
            solve(X, Absolute(), None, 1.0, None, 1.0).low_rank, np.where(missing, 0, X)
        )
        np.testing.assert_array_equal(
            solve(X, Absolute(), None, 1.0, None, 1.0, start=start).low_rank,
            np.where(missing, start, X),
        )


class TestArithmetic:
    @pytest.fixture
    def problem(self, rng):
        X, samples, features = random_problem(rng, 700, 33, missing=0.05)
        return X, Absolute(), samples, 1.0, features, 1.0

    def test_single_precision_gives_the_same_answer(self, problem):
        X, *rest = problem
        double, single = solve(X, *rest), solve(X.astype(np.float32), *rest, tol=0)
        assert single.low_rank.dtype == np.float32
        assert single.converged
        assert single.objective[-1] == pytest.approx(double.objective[-1], rel=1e-6)
        np.testing.assert_allclose(single.low_rank, double.low_rank, atol=1e-3)

    def test_whole_numbers_are_worked_on_in_double_precision(self, rng):
        X = rng.integers(-5, 5, size=(20, 6))
        laplacian = random_laplacian(rng, 20)
        results = [solve(A, Absolute(), laplacian, 1.0, None, 1.0) for A in (X, X.astype(float))]
        np.testing.assert_array_equal(results[0].low_rank, results[1].low_rank)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_number_of_threads_changes_nothing(self, problem, dtype, monkeypatch):
        monkeypatch.setattr(descent, "BATCH", 1)
        monkeypatch.setattr(descent, "TILE_BYTES", 1 << 12)
        X, *rest = problem
        results = []
        for n_threads in (1, 2, 4):
            with threadpool_limits(n_threads, user_api="blas"):
                results.append(solve(X.astype(dtype), *rest, tol=1e-5))
        for result in results[1:]:
            np.testing.assert_array_equal(result.low_rank, results[0].low_rank)
            np.testing.assert_array_equal(result.objective, results[0].objective)

    def test_the_order_of_work_changes_nothing_but_rounding(self, problem, rng):
        X, *rest = problem
        results = [
            solve(X, *rest, order=order, tol=1e-6)
            for order in (None, np.arange(len(X)), rng.permutation(len(X)))
        ]
        for result in results[1:]:
            assert result.n_iter == results[0].n_iter
            np.testing.assert_allclose(result.low_rank, results[0].low_rank, atol=1e-12)

    def test_the_layout_of_the_data_changes_nothing_and_they_are_left_alone(self, problem):
        X, *rest = problem
        expected = solve(X, *rest, tol=1e-5).low_rank
        for A in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
            A.flags.writeable = False
            before = A.copy()
            np.testing.assert_array_equal(solve(A, *rest, tol=1e-5).low_rank, expected)
            np.testing.assert_array_equal(A, before)

    def test_data_in_order_are_not_copied(self, rng):
        X = rng.normal(size=(40, 5)).astype(np.float32)
        X.flags.writeable = False
        graph = random_laplacian(rng, 40)
        assert np.shares_memory(GraphDescent(X, Absolute(), graph).X, X)
        fista(X, Absolute(), graph)

    def test_a_start_of_another_layout_and_precision_will_do(self, problem, rng):
        X, *rest = problem
        start = rng.normal(size=X.shape)
        expected = solve(X, *rest, start=start, tol=1e-5).low_rank
        result = solve(X, *rest, start=np.asfortranarray(start), tol=1e-5).low_rank
        np.testing.assert_array_equal(result, expected)
        single = solve(X.astype(np.float32), *rest, start=start, tol=1e-5).low_rank
        np.testing.assert_allclose(single, expected, atol=1e-3)

    def test_sparse_matrices_serve_as_well_as_sparse_arrays(self, problem):
        X, loss, samples, a, features, b = problem
        graphs = (sparse.csr_matrix(samples), a, sparse.csr_matrix(features), b)
        np.testing.assert_array_equal(
            solve(X, loss, *graphs, tol=1e-5).low_rank, solve(*problem, tol=1e-5).low_rank
        )


class TestLoop:
    @pytest.fixture
    def parts(self, rng):
        X, samples, features = random_problem(rng, 60, 20)
        return X, Absolute(), samples, 2.0, features, 2.0

    def test_the_callback_is_called_after_every_iteration(self, parts):
        steps = []
        result = fista(*parts, tol=1e-8, callback=steps.append)
        assert [step.iteration for step in steps] == list(range(1, result.n_iter + 1))
        assert steps[-1].change == result.change <= 1e-8
        assert [step.objective for step in steps] == result.objective[1:].tolist()
        # Evaluated at the start, where every tenth iteration starts from, and at the end.
        assert len(set(result.objective)) == 2 + result.n_iter // 10
        assert steps[-1].n_restarts > 0
        assert steps[-1].detail == f"{steps[-1].n_restarts} restarts"

    def test_a_loop_that_runs_out_of_iterations_says_so(self, parts):
        result = fista(*parts, tol=1e-12, max_iter=7)
        assert (result.n_iter, result.converged) == (7, False)
        assert result.change > 1e-12
        assert len(result.objective) == 8
        assert result.objective[-1] == pytest.approx(objective(result.low_rank, *parts), rel=1e-13)

    def test_an_interrupted_loop_leaves_nothing_broken(self, parts):
        def interrupt(step):
            if step.iteration == 3:
                raise KeyboardInterrupt

        expected = fista(*parts)
        with contextlib.suppress(KeyboardInterrupt):
            fista(*parts, callback=interrupt)
        assert not one_blas_thread.holders
        np.testing.assert_array_equal(fista(*parts).low_rank, expected.low_rank)

    def test_a_result_is_not_overwritten_by_what_follows(self, parts):
        problem = GraphDescent(*parts)
        problem.advance(0.0)
        result = problem.result()
        before = result.copy()
        for _ in range(3):
            problem.advance(0.5)
        np.testing.assert_array_equal(result, before)

    @pytest.mark.parametrize("side", ["samples", "features"])
    def test_a_graph_of_another_size_is_refused(self, side, rng):
        laplacian = random_laplacian(rng, 12)
        X = rng.normal(size=(12, 5) if side == "features" else (5, 12))
        graphs = {f"{side[:-1]}_laplacian": laplacian}
        with pytest.raises(ValueError, match=r"shape \(12, 12\) does not go with 5"):
            fista(X, Absolute(), **graphs)
