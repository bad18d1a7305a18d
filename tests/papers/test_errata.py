"""Errors of the papers (docs/errata.md): what is printed fails, and what is right holds.

Formulas are written out here as the papers print them, without a line of the library where the
error does not concern it.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.linalg import eigh, eigvalsh, inv, norm, svd
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import pair_confusion_matrix

from robustpca import RPCA, RPCAG
from robustpca.parts import AdaptiveNeighbors, CoRobust, SigmaLoss, knn_graph, laplacian

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


def basis(rng, n, c):
    return np.linalg.qr(rng.normal(size=(n, c)))[0]


def weighted_pca(X, p, c):
    mean = p @ X / p.sum()
    W = svd(np.sqrt(p)[:, None] * (X - mean), full_matrices=False)[2][:c]
    return np.sum(((X - mean) - (X - mean) @ W.T @ W) ** 2, axis=1)


class TestPage:
    def test_errata_are_numbered_without_gaps_and_have_anchors(self):
        numbers = [int(n) for n in re.findall(r"^\(e(\d+)\)=\n### E\1\. ", PAGE, re.MULTILINE)]
        assert numbers == list(range(1, len(numbers) + 1))

    def test_every_erratum_names_a_test_or_a_run_that_exists(self):
        errata = re.split(r"^\(e\d+\)=$", PAGE.partition("## Slips")[0], flags=re.M)[1:]
        assert len(errata) > 40
        for text in errata:
            named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
            own = [
                ("tests/papers/test_errata.py", test) for test in re.findall(r"`(test_\w+)`", text)
            ]
            assert named or own, text
            for file, name in named + own:
                tree = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
                assert name in {node.name for node in tree if isinstance(node, ast.FunctionDef)}


class TestAdaptiveNeighbours:
    """Zhang and Tong 2019."""

    def test_the_projector_of_images_has_the_left_basis_twice(self, rng):
        left, right = basis(rng, 7, 2), basis(rng, 5, 3)
        A = rng.normal(size=(7, 5))
        with pytest.raises(ValueError, match="mismatch"):
            left @ right.T  # 7 x 2 times 3 x 5
        residual = A - left @ left.T @ A @ right @ right.T
        for _ in range(20):  # no other core is nearer
            core = left.T @ A @ right + 0.1 * rng.normal(size=(2, 3))
            assert norm(residual) < norm(A - left @ core @ right.T)

    def test_the_reweighted_problem_is_no_dual(self, rng):
        residuals = rng.uniform(0.1, 2, size=50)
        weights = 1 / (2 * residuals)
        assert weights @ residuals**2 == pytest.approx(residuals.sum() / 2)
        # It bounds the sum from above, up to a constant, and touches it where it was made.
        others = rng.uniform(0.1, 2, size=50)
        assert weights @ others**2 + residuals.sum() / 2 >= others.sum()
        with np.errstate(divide="ignore"):
            assert np.isinf(1 / (2 * np.float64(0)))

    def test_the_constraint_is_a_simplex_and_no_ball(self, rng):
        pull = rng.uniform(0.1, 1, size=6)
        p = AdaptiveNeighbors(gamma=0.5).solve(pull).weights
        assert norm(np.zeros(6) + pull) < norm(p + pull)  # zero is in the ball of the l1 norm

    def test_weights_fall_linearly_and_not_inversely(self, rng):
        errors = np.sort(rng.uniform(1, 2, size=10))
        p = AdaptiveNeighbors(6).solve(errors).weights
        slopes = np.diff(p[:6]) / np.diff(errors[:6])
        np.testing.assert_allclose(slopes, slopes[0])
        assert np.ptp(p[:6] * errors[:6]) > 0.1 * p[0] * errors[0]
        np.testing.assert_allclose(AdaptiveNeighbors(6).solve(3 * errors + 7).weights, p)

    def test_all_samples_have_no_next_one(self, rng):
        errors = np.sort(rng.uniform(1, 2, size=10))
        with pytest.raises(IndexError):
            errors[10]  # g of k + 1, for k = N
        np.testing.assert_allclose(AdaptiveNeighbors(10).solve(errors).weights, 0.1)

    def test_the_objective_of_algorithm_2_rises(self):
        rises = {"adaptive": 0, "fixed": 0}
        for seed in range(20):
            X = np.random.default_rng(seed).normal(size=(40, 8))
            for kind in rises:
                weighting = (
                    AdaptiveNeighbors(30) if kind == "adaptive" else AdaptiveNeighbors(gamma=2)
                )
                p, values = np.full(40, 1 / 40), []
                for _ in range(15):
                    step = weighting.solve(weighted_pca(X, p, 3))
                    p = step.weights
                    values.append(step.objective)
                rises[kind] += bool(np.any(np.diff(values) > 1e-9 * np.abs(values[:-1])))
        assert rises["adaptive"] > 10
        assert rises["fixed"] == 0


class TestCollaborative:
    """Zhang, Zhang and Li 2021."""

    def test_the_series_begins_with_the_term_of_order_zero(self):
        w, j = 0.3, np.arange(0, 80)
        assert np.sum(w**j) == pytest.approx(1 / (1 - w))
        assert np.sum(w ** j[1:]) == pytest.approx(w / (1 - w))  # nothing is left of it for w = 0

    def test_the_exponents_of_the_extension_are_multiples(self):
        w, gamma, j = 0.3, 1.7, np.arange(0, 80)
        assert np.sum(w ** (gamma * j)) == pytest.approx(1 / (1 - w**gamma))

    def test_the_sum_of_the_weights_has_a_minus(self, rng):
        losses = np.sort(rng.uniform(1, 2, size=8))
        step = CoRobust().solve(losses)
        k = step.n_active
        root = np.sqrt(losses[:k]).sum() / (k - 1)
        assert k - np.sum(np.sqrt(losses[:k]) / root) == pytest.approx(1)
        assert k + np.sum(np.sqrt(losses[:k]) / root) == pytest.approx(2 * k - 1)

    def test_two_active_samples_may_still_be_the_trivial_solution(self):
        step = CoRobust().solve(np.array([1e-10, 1.0, 1.0, 1.0]))
        assert step.weights.max() > 0.9999
        assert step.direct.max() > 1e4

    def test_below_one_the_extension_has_many_solutions(self):
        def value(w):
            return np.sum(1 / (1 - np.sqrt(w)))  # equal losses, exponent one half

        few = np.repeat([0.25, 0], [4, 6])
        # A unique minimiser would be the same for all samples, for which the losses are the same.
        assert value(few) < value(np.full(10, 0.1))
        assert value(few[::-1]) == value(few)

    def test_the_hessian_of_the_proof_needs_positive_losses(self):
        f, w = np.array([0.0, 0.0, 1.0]), np.array([0.4, 0.3, 0.3])
        hessian = 2 * f[0] / (1 - w[0]) ** 3 + np.diag(2 * f[1:] / (1 - w[1:]) ** 3)
        assert eigvalsh(hessian)[0] == 0

    def test_the_sigma_loss_sums_over_columns(self, rng):
        A = rng.normal(size=(3, 5))
        lengths = norm(A, axis=0)  # "the i-th column is represented as a_i"
        loss = (1 + 1e9) * lengths**2 / (lengths + 1e9)
        assert loss.sum() == pytest.approx(norm(A) ** 2)
        assert loss[:3].sum() < 0.9 * norm(A) ** 2  # m = 3 terms are too few

    def test_homogeneity_fails_but_not_for_every_factor(self):
        def loss(a):
            return 2 * a**2 / (a + 1)

        assert loss(1 * 3.0) == 1 * loss(3.0)
        assert loss(0 * 3.0) == 0 * loss(3.0)
        assert loss(2 * 3.0) != pytest.approx(2 * loss(3.0))

    def test_each_sample_has_a_factor_of_its_own(self, rng):
        residuals = rng.uniform(0.1, 3, size=20)
        factors = SigmaLoss(0.5).weights(residuals**2)
        expected = 1.5 * (residuals + 1) / (2 * (residuals + 0.5) ** 2)
        np.testing.assert_allclose(factors, expected)
        assert np.ptp(factors) > 1  # their sum, as printed, would weigh all samples alike

    def test_the_weighted_problem_has_the_square_of_the_norm(self):
        r, step, sigma = 0.8, 1e-6, 0.5

        def loss(r):
            return (1 + sigma) * r**2 / (r + sigma)

        factor = (1 + sigma) * (r + 2 * sigma) / (2 * (r + sigma) ** 2)
        slope = (loss(r + step) - loss(r - step)) / (2 * step)
        assert 2 * factor * r == pytest.approx(slope)
        assert 2 * factor * loss(r) * slope != pytest.approx(slope, rel=0.1)

    def test_a_norm_of_a_convex_map_need_not_be_convex(self):
        def loss(theta, sigma=0.5):
            error = abs(theta**2 - 1)  # g is convex
            return (1 + sigma) * error**2 / (error + sigma)

        assert loss(0.0) > (loss(-1.0) + loss(1.0)) / 2

    def test_the_update_of_alpha_needs_roots_and_a_positive_part(self, rng):
        g = np.sort(rng.uniform(4, 30, size=12))
        step = CoRobust().solve(g)
        k = step.n_active
        printed = 1 - (k - 1) * np.sqrt(g) / g[:k].sum()
        right = np.maximum(1 - (k - 1) * np.sqrt(g) / np.sqrt(g[:k]).sum(), 0)
        assert right.sum() == pytest.approx(1)
        np.testing.assert_allclose(right, step.weights)
        assert printed.sum() > 3
        without = 1 - (k - 1) * np.sqrt(g) / np.sqrt(g[:k]).sum()
        assert without.min() < 0

    def test_the_last_line_of_the_lemma_is_false_and_not_needed(self, rng):
        x, y, sigma = *rng.uniform(0, 3, size=(2, 1000)), 0.7

        def share(r):
            return r**2 / (r + sigma)

        slope = (y + 2 * sigma) / (2 * (y + sigma) ** 2)
        assert np.all(share(x) - slope * x**2 <= share(y) - slope * y**2 + 1e-12)
        assert 0.4 < np.mean(share(x) > share(y)) < 0.6


class TestGraphsReport:
    """Ezzechi and Lutt."""

    def test_the_scales_of_glpca_are_the_largest_eigenvalues(self, rng):
        X, L = rng.normal(size=(5, 20)), laplacian(knn_graph(rng.normal(size=(20, 2)), 4)).toarray()
        for matrix in (X.T @ X, L):
            assert eigvalsh(matrix)[0] == pytest.approx(0, abs=1e-12)  # the printed divisors
        bounded = np.eye(20) - X.T @ X / eigvalsh(X.T @ X)[-1]
        assert eigvalsh(bounded)[0] == pytest.approx(0, abs=1e-12)
        assert eigvalsh(bounded)[-1] == pytest.approx(1)

    def test_all_eigenvectors_reduce_nothing(self, rng):
        X = rng.normal(size=(5, 20))
        Q = eigh(-X.T @ X)[1]
        np.testing.assert_allclose(X @ Q @ Q.T, X)
        assert norm(X @ Q[:, :2] @ Q[:, :2].T - X) > 0.1 * norm(X)

    def test_the_data_of_the_inner_problem_have_the_other_sign(self, rng):
        X, E, C, mu = *rng.normal(size=(3, 6, 15)), 2.0
        Q = basis(rng, 15, 3)

        def penalty(U):
            return norm(E - X + U @ Q.T + C / mu)

        right, printed = (X - E - C / mu) @ Q, (E - X + C / mu) @ Q
        assert penalty(right) < penalty(right + 0.1 * rng.normal(size=right.shape))
        assert penalty(printed) > penalty(np.zeros_like(right))

    def test_samples_are_columns_in_the_norm_and_in_its_shrinkage(self, rng):
        A, mu = rng.normal(size=(4, 9)), 1.5

        def objective(E):
            return norm(E, axis=0).sum() + mu / 2 * norm(E - A) ** 2  # the norm as it is defined

        columns, rows = (
            np.maximum(1 - 1 / (mu * norm(A, axis=axis, keepdims=True)), 0) * A for axis in (0, 1)
        )
        assert objective(columns) < objective(rows)
        assert norm(columns - A, axis=0).max() <= 1 / mu + 1e-12

    def test_the_multiplier_of_algorithm_3_never_rests(self, rng):
        X, U, Q = rng.normal(size=(6, 15)), rng.normal(size=(6, 3)), basis(rng, 15, 3)
        E = X - U @ Q.T  # the constraint holds
        np.testing.assert_allclose(E - X + U @ Q.T, 0, atol=1e-12)
        assert norm(E - X - U @ Q.T) > norm(U)

    def test_shrinkage_is_of_every_entry(self, rng):
        Z, tau = rng.normal(size=(4, 4)), 0.5
        right = np.sign(Z) * np.maximum(np.abs(Z) - tau, 0)
        printed = np.sign(Z) * np.maximum(np.abs(Z) - tau * np.eye(4), 0)

        def objective(S):
            return tau * np.abs(S).sum() + norm(S - Z) ** 2 / 2

        assert objective(right) < objective(printed)

    def test_singular_values_are_thresholded_at_one_over_the_penalty(self, rng):
        X = rng.normal(size=(18, 12))
        weight, mu = 1 / np.sqrt(18), 18 * 12 / (4 * np.abs(X).sum())
        best = RPCA(noise=0, center=None, scale=None, solver="admm", tol=1e-9).fit(X).objective_[-1]
        assert pursuit(X, weight, mu, 1 / mu) == pytest.approx(best, rel=1e-5)
        assert pursuit(X, weight, mu, mu) > 1.02 * best

    def test_constants_of_algorithm_4(self, rng):
        X = rng.normal(size=(20, 8))
        graph = knn_graph(X, 4)
        phi, weight, gamma = laplacian(graph).toarray(), 1 / np.sqrt(20), 0.3
        # Our weight of the graph is in units of the root mean square entry.
        units = np.sqrt(np.mean(X**2))
        model = RPCAG(
            noise=0, center=None, graph=graph, smoothness=gamma * units, tol=1e-9, max_iter=5000
        ).fit(X)
        best = model.objective_[-1]
        assert on_graphs(X, phi, weight, gamma, 1, 2) == pytest.approx(best, rel=1e-5)
        assert on_graphs(X, phi, weight, gamma, 2, 2) > 1.01 * best
        assert on_graphs(X, phi, weight, gamma, 1, 1) > 1.002 * best

    def test_an_adjacency_is_no_laplacian(self, rng):
        A = knn_graph(rng.normal(size=(25, 2)), 5).toarray()
        roots = np.sqrt(A.sum(axis=1))
        printed = A / np.outer(roots, roots)
        smooth = roots / norm(roots)  # the smoothest vector of all
        assert smooth @ printed @ smooth == pytest.approx(1)
        assert eigvalsh(printed)[-1] == pytest.approx(1)  # and it costs most
        assert smooth @ (np.eye(25) - printed) @ smooth == pytest.approx(0, abs=1e-12)

    def test_the_rand_index_of_a_perfect_clustering(self, rng):
        def index(true, found, last):
            (tn, fp), (fn, tp) = pair_confusion_matrix(true, found)
            printed = (tp + fp) * (fp + (fn if last == "FN" else tn))
            return 2 * (tp * tn - fn * fp) / ((tp + fn) * (fn + tn) + printed)

        y = np.repeat([0, 1, 2], 5)
        other = rng.integers(3, size=15)
        assert index(y, y, "FN") == 2
        assert index(y, y, "TN") == 1
        assert index(y, other, "TN") == pytest.approx(adjusted_rand_score(y, other))


def pursuit(X, weight, mu, threshold):
    """Algorithm 1 of the report with a threshold of singular values; the objective at its end."""
    S = Y = np.zeros_like(X)
    for _ in range(3000):
        left, values, right = svd(X - S + Y / mu, full_matrices=False)
        L = left * np.maximum(values - threshold, 0) @ right
        R = X - L + Y / mu
        S = np.sign(R) * np.maximum(np.abs(R) - weight / mu, 0)
        Y = Y + mu * (X - L - S)
    return svd(L, compute_uv=False).sum() + weight * np.abs(X - L).sum()


def on_graphs(X, phi, weight, gamma, singular, graph):
    """Algorithm 4 of the report with its two constants; the objective at its end."""
    S, W, Z1, Z2 = np.zeros_like(X), X, np.zeros_like(X), np.zeros_like(X)
    inverse = inv(graph * gamma * phi + np.eye(len(X)))
    for _ in range(3000):
        left, values, right = svd((X - S + Z1 + W + Z2) / 2, full_matrices=False)
        L = left * np.maximum(values - singular / 2, 0) @ right
        R = X - L + Z1
        S = np.sign(R) * np.maximum(np.abs(R) - weight, 0)
        W = inverse @ (L - Z2)
        Z1, Z2 = Z1 + X - L - S, Z2 + W - L
    nuclear = svd(L, compute_uv=False).sum()
    return nuclear + weight * np.abs(X - L).sum() + gamma * np.trace(L.T @ phi @ L)


class TestAngles:
    """Liu and Yu 2021."""

    def test_the_square_falls_faster_up_to_sixty_degrees_only(self):
        slopes = {angle: (np.sin(2 * angle), np.sin(angle)) for angle in np.radians([59, 61, 80])}
        steeper = [square > plain for square, plain in slopes.values()]
        assert steeper == [True, False, False]

    def test_orthogonal_pairs_are_neutral_in_their_plane_only(self, rng):
        pair = basis(rng, 6, 2)
        inside = pair @ np.array([np.cos(0.7), np.sin(0.7)])
        assert np.sum((pair.T @ inside) ** 2) == pytest.approx(1)
        outside = rng.normal(size=6)
        outside /= norm(outside)
        assert np.sum((pair.T @ outside) ** 2) == pytest.approx(norm(pair @ pair.T @ outside) ** 2)
        assert np.sum((pair.T @ outside) ** 2) < 0.95

    def test_without_absolute_values_half_of_symmetric_rows_is_trimmed(self, rng):
        X = rng.choice([-1, 1], size=(100, 1)) * [3.0, 0, 0] + 0.2 * rng.normal(size=(100, 3))
        U = X / norm(X, axis=1, keepdims=True)
        cosines = U @ U.T
        trimmed = {
            name: np.sum(values < np.cos(np.pi / 3), axis=1).min()
            for name, values in (("printed", cosines), ("right", np.abs(cosines)))
        }
        assert trimmed["printed"] > 35
        assert trimmed["right"] == 0


class TestFastGraphs:
    """Shahid and others 2016."""

    def test_nearest_neighbours_are_not_mutual(self):
        X = np.array([[0.0], [1.0], [3.0]])
        nearest = np.argsort(cdist(X, X) + np.diag(3 * [np.inf]), axis=1)[:, 0]
        printed = np.eye(3)[nearest]
        assert (printed != printed.T).any()
        graph = knn_graph(X, 1).toarray()
        np.testing.assert_array_equal(graph, graph.T)

    def test_a_bandwidth_of_one_loses_the_graph_of_standardised_data(self, rng):
        X = rng.normal(size=(60, 784))  # mean zero, variance one
        distances = np.sort(cdist(X, X), axis=1)[:, 1:11]
        assert np.exp(-(distances**2)).max() < 1e-300
        assert np.exp(-((distances / distances.mean()) ** 2)).min() > 0.3

    def test_alignment_is_at_least_one_over_the_root(self, rng):
        p = 50
        worst = np.ones((p, p))
        assert norm(np.diag(worst)) / norm(worst) == pytest.approx(1 / np.sqrt(p))
        for _ in range(20):
            C = np.cov(rng.normal(size=(p, 3)))
            assert norm(np.diag(C)) / norm(C) > 1 / np.sqrt(p)

    def test_eigenvalues_of_the_theorem_are_counted_from_one(self):
        ring = np.roll(np.eye(12), 1, axis=0)
        values, Q = eigh(2 * np.eye(12) - ring - ring.T)
        k = 1  # the complement begins with the second eigenvector, at place 1 from zero
        U = Q[:, [k]].T
        smoothness = (U @ (2 * np.eye(12) - ring - ring.T) @ U.T).item()
        rough = norm(U @ Q[:, k:]) ** 2
        assert smoothness >= values[k] * rough - 1e-12  # the (k+1)-th from one
        assert smoothness < values[k + 2] * rough  # k + 1 from zero, past a double eigenvalue

    def test_the_eigenvalues_of_the_two_graphs_are_exchanged(self, rng):
        Q, P = basis(rng, 7, 7), basis(rng, 4, 4)  # of samples and of features
        of_samples, of_features = rng.uniform(0, 2, size=7), rng.uniform(0, 2, size=4)
        X = rng.normal(size=(4, 7))
        U = inv(np.eye(4) + P * of_features @ P.T) @ X @ inv(np.eye(7) + Q * of_samples @ Q.T)
        right = P / (1 + of_features) @ P.T @ X @ Q / (1 + of_samples) @ Q.T
        np.testing.assert_allclose(U, right)
        with pytest.raises(ValueError, match="broadcast"):
            P / (1 + of_samples)  # as printed: n eigenvalues beside p eigenvectors

    def test_singular_values_are_not_divided_one_by_one(self, rng):
        Q, P = basis(rng, 6, 6), basis(rng, 6, 6)
        values = np.linspace(0, 2, 6)
        smooth = [inv(np.eye(6) + B * values @ B.T) for B in (P, Q)]

        def shrunk(X):
            return svd(smooth[0] @ X @ smooth[1], compute_uv=False)

        aligned = P * np.arange(6, 0, -1) @ Q.T
        printed = np.arange(6, 0, -1) / (1 + values) ** 2
        np.testing.assert_allclose(shrunk(aligned), printed)
        other = basis(rng, 6, 6) * np.arange(6, 0, -1) @ basis(rng, 6, 6).T  # the same values
        assert np.abs(shrunk(other) / printed - 1).max() > 0.5

    def test_two_steps_are_not_the_proximal_step_of_both_graphs(self, rng):
        L1, L2 = (laplacian(knn_graph(rng.normal(size=(n, 2)), 3)).toarray() for n in (9, 6))
        X, gamma = rng.normal(size=(6, 9)), 1.0
        (low1, Q), (low2, P) = eigh(L1), eigh(L2)
        factor = 1 + 2 * gamma * (low2[:, None] + low1)  # of 1/2 |U - X|^2 + both terms
        together = P @ (P.T @ X @ Q / factor) @ Q.T

        def objective(U):
            graphs = np.trace(U @ L1 @ U.T) + np.trace(U.T @ L2 @ U)
            return norm(U - X) ** 2 / 2 + gamma * graphs

        printed = inv(np.eye(6) + gamma * L2) @ X @ inv(np.eye(9) + gamma * L1)
        twice = inv(np.eye(6) + 2 * gamma * L2) @ X @ inv(np.eye(9) + 2 * gamma * L1)
        for U in (printed, twice, together + 0.01 * rng.normal(size=X.shape)):
            assert objective(together) < objective(U)
        assert norm(twice - together) > 0.05 * norm(together)

    def test_the_double_sum_runs_over_all_eigenvectors_of_each_graph(self, rng):
        L1 = laplacian(knn_graph(rng.normal(size=(9, 2)), 3)).toarray()
        U = rng.normal(size=(4, 9))
        values, Q = eigh(L1)
        sizes, right = svd(U, full_matrices=False)[1:]
        terms = sizes[:, None] ** 2 * values * (right @ Q) ** 2
        assert terms.sum() == pytest.approx(np.trace(U @ L1 @ U.T))
        assert terms[:, :4].sum() < 0.9 * terms.sum()  # up to min(n, p), as printed
