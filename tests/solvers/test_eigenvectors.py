"""Eigenvectors of operators, small and large, and the embeddings that solve a problem exactly."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg, sparse

from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance
from robustpca.parts.graphs import grid_graph, knn_graph, laplacian
from robustpca.solvers import eigenvectors as spectral
from robustpca.solvers.eigenvectors import (
    conjugate_gradients,
    graph_embedding,
    graph_smoother,
    graph_weight,
    largest_eigenvalue,
    largest_eigenvectors,
    largest_square,
    normalized_cuts,
    robust_embedding,
    roughness,
    row_shrink,
    smooth_factors,
)


@pytest.fixture(params=["dense", "lanczos"])
def solver(request, monkeypatch):
    """Solve problems of any size in the way of small ones, then of large ones."""
    monkeypatch.setattr(spectral, "DENSE_SIZE", 10**6 if request.param == "dense" else 0)
    return request.param


def symmetric(rng, values):
    turn = np.linalg.qr(rng.normal(size=(len(values),) * 2))[0]
    return (turn * values) @ turn.T


def moons(rng, n=150, d=6):
    """A bent sheet in noise, centred, and its graph."""
    angle = rng.uniform(0, 3, n)
    X = np.column_stack([np.cos(angle), np.sin(angle), rng.normal(size=n)])
    X = X @ rng.normal(size=(3, d)) + 0.1 * rng.normal(size=(n, d))
    return X - X.mean(axis=0), knn_graph(X, 7)


def frame(rng, n, count):
    """Random orthonormal columns at right angles to the constant vector."""
    A = rng.normal(size=(n, count))
    return np.linalg.qr(A - A.mean(axis=0))[0]


def constant(n):
    return np.full((n, 1), n**-0.5)


def test_eigenvectors_solve_their_equation(solver, rng):
    values = np.linspace(-1, 1, 60)
    matrix = symmetric(rng, values)
    found, vectors = largest_eigenvectors(lambda A: matrix @ A, 60, 5)
    assert_allclose(found, values[:-6:-1], atol=1e-13)
    assert_allclose(matrix @ vectors, vectors * found, atol=1e-12)
    assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-12)


def test_fixed_directions_stay_out_even_where_all_eigenvalues_are_negative(solver, rng):
    matrix = symmetric(rng, -np.linspace(0.1, 0.9, 60))
    fixed = np.linalg.qr(rng.normal(size=(60, 3)))[0]
    rest = linalg.null_space(fixed.T)
    expected, inner = linalg.eigh(rest.T @ matrix @ rest)
    found, vectors = largest_eigenvectors(lambda A: matrix @ A, 60, 4, fixed)
    assert_allclose(found, expected[:-5:-1], atol=1e-13)
    assert_allclose(fixed.T @ vectors, 0, atol=1e-12)
    assert subspace_distance(vectors.T, (rest @ inner[:, -4:]).T) < 1e-10


@pytest.mark.parametrize("copies", [2, 6])
def test_every_copy_of_a_multiple_eigenvalue_is_found(solver, copies):
    graph = sparse.block_diag([grid_graph((8, 9))] * copies).tocsr()
    matrix = laplacian(graph)
    once = linalg.eigvalsh(laplacian(grid_graph((8, 9))).toarray())[:3]
    found, vectors = largest_eigenvectors(lambda A: A - matrix @ A, 72 * copies, 3 * copies)
    assert_allclose(1 - found, np.repeat(once, copies), atol=1e-12)
    assert_allclose(vectors.T @ vectors, np.eye(3 * copies), atol=1e-10)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_operators_of_low_rank_are_no_trouble(solver, rng, rank):
    sides = np.linalg.qr(rng.normal(size=(80, 3)))[0][:, :rank]
    found, vectors = largest_eigenvectors(lambda A: sides @ (sides.T @ A), 80, 5)
    assert_allclose(found, np.arange(5) < rank, atol=1e-13)
    assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-12)
    assert_allclose(vectors @ (vectors.T @ sides), sides, atol=1e-12)


def test_a_start_near_the_eigenvectors_gives_them_to_six_digits(monkeypatch, rng):
    monkeypatch.setattr(spectral, "DENSE_SIZE", 0)
    matrix = symmetric(rng, np.append(np.linspace(-1, 0.5, 95), [0.6, 0.7, 0.8, 0.9, 1.0]))
    near = matrix + 1e-3 * symmetric(rng, np.linspace(-1, 1, 100))
    exact = largest_eigenvectors(lambda A: matrix @ A, 100, 5)[1]
    start = largest_eigenvectors(lambda A: near @ A / 1.01, 100, 5)[1]
    found = largest_eigenvectors(lambda A: matrix @ A, 100, 5, start=start)[1]
    assert subspace_distance(start.T, exact.T) > 1e-4
    assert subspace_distance(found.T, exact.T) < 1e-5


def test_largest_eigenvalues_are_exact(solver, rng):
    X, graph = moons(rng)
    for normalized in (True, False):
        matrix = laplacian(graph, normalized=normalized)
        expected = linalg.eigvalsh(matrix.toarray())[-1]
        assert largest_eigenvalue(matrix) == pytest.approx(expected, rel=1e-12)
    wide = rng.normal(size=(40, 200))
    for A in (X, wide, wide.T):
        assert largest_square(A) == pytest.approx(np.linalg.norm(A, 2) ** 2, rel=1e-12)
    assert largest_eigenvalue(sparse.csr_array((9, 9))) == 0
    assert largest_square(np.zeros((5, 3))) == 0


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_graph_embedding_is_the_global_optimum(solver, rng, beta, normalized):
    X, graph = moons(rng)
    matrix = laplacian(graph, normalized=normalized)
    weight = graph_weight(X, matrix, beta)
    pair = graph_embedding(X, matrix, 4, weight)
    dense = weight * matrix.toarray() - X @ X.T
    values, vectors = linalg.eigh(dense)
    assert subspace_distance(pair.codes.T, vectors[:, :4].T) < 1e-9
    assert_allclose(pair.codes.T @ pair.codes, np.eye(4), atol=1e-12)
    assert_allclose(pair.loadings, pair.codes.T @ X)

    def objective(codes):
        apart = np.linalg.norm(X - codes @ (codes.T @ X)) ** 2
        return apart + weight * roughness(codes, matrix)

    value = objective(pair.codes)
    assert value == pytest.approx(np.linalg.norm(X) ** 2 + values[:4].sum(), rel=1e-12)
    for _ in range(20):
        other = np.linalg.qr(pair.codes + 0.3 * rng.normal(size=pair.codes.shape))[0]
        assert objective(other) >= value


def test_beta_means_the_same_as_in_the_bounded_form_of_the_paper(rng):
    X, graph = moons(rng)
    matrix = laplacian(graph, normalized=False)
    largest, top = np.linalg.norm(X, 2) ** 2, linalg.eigvalsh(matrix.toarray())[-1]
    bounded = 0.3 * (np.eye(len(X)) - X @ X.T / largest) + 0.7 * matrix.toarray() / top
    values, vectors = linalg.eigh(bounded)
    assert values[0] >= -1e-12
    assert values[-1] <= 1 + 1e-12
    pair = graph_embedding(X, matrix, 3, graph_weight(X, matrix, 0.7))
    assert subspace_distance(pair.codes.T, vectors[:, :3].T) < 1e-9
    assert graph_weight(X, sparse.csr_array(matrix.shape), 0.7) == 0
    assert graph_weight(X, matrix, 0.0) == 0


def test_the_constant_vector_stays_out_of_the_embedding(solver, rng):
    X, graph = moons(rng)
    matrix = laplacian(graph, normalized=False)
    weight = graph_weight(X, matrix, 0.9)
    without = graph_embedding(X, matrix, 3, weight, exclude_constant=True)
    free = graph_embedding(X, matrix, 4, weight)
    assert_allclose(without.codes.sum(axis=0), 0, atol=1e-10)
    # The constant is an eigenvector: what is left are the others.
    assert np.linalg.norm(free.codes.T @ constant(len(X))) == pytest.approx(1)
    assert subspace_distance(without.codes.T, free.codes.T) < 1e-9


def robust_value(X, matrix, weight, pair):
    apart = np.linalg.norm(X - pair.codes @ pair.loadings, axis=1).sum()
    return apart + weight * roughness(pair.codes, matrix)


def searched(X, matrix, n_components, weight, starts):
    return robust_embedding(
        X,
        matrix,
        n_components,
        weight,
        starts=starts,
        unit=6.0,
        exclude_constant=True,
        tol=1e-7,
        max_iter=500,
    )


@pytest.mark.parametrize("n_outliers", [0, 12])
def test_the_robust_search_ends_no_worse_than_any_of_its_starts(solver, rng, n_outliers):
    X, _, _ = planted_subspace(rng, 90, 12, 3, n_outliers, noise=0.3)
    X -= np.median(X, axis=0)
    matrix = laplacian(knn_graph(X, 7), normalized=False)
    weight, starts = 0.5, (0.0, graph_weight(X, matrix, 0.5))
    result = searched(X, matrix, 3, weight, starts)
    values = [
        robust_value(X, matrix, weight, graph_embedding(X, matrix, 3, a, exclude_constant=True))
        for a in starts
    ]
    assert result.objective[0] == pytest.approx(min(values))
    assert (np.diff(result.objective) <= 0).all()
    assert result.objective[-1] < (0.9 if n_outliers else 1.0) * min(values)
    assert result.objective[-1] == pytest.approx(robust_value(X, matrix, weight, result.best))
    assert result.converged
    assert_allclose(result.best.codes.T @ result.best.codes, np.eye(3), atol=1e-10)
    # The loadings are the best for these codes: a convex problem, so no step helps.
    for _ in range(50):
        step = rng.normal(size=result.best.loadings.shape)
        other = spectral.Embedding(result.best.codes, result.best.loadings + 1e-2 * step)
        assert robust_value(X, matrix, weight, other) > result.objective[-1]


def test_no_random_start_of_a_local_search_is_much_better_than_the_robust_search(rng):
    X, _, _ = planted_subspace(rng, 40, 6, 2, 4, noise=0.3)
    X -= np.median(X, axis=0)
    matrix = laplacian(knn_graph(X, 5), normalized=False)
    weight = 1.0
    reached = searched(X, matrix, 2, weight, (0.0,)).objective[-1]
    best = np.inf
    for _ in range(5):
        codes = frame(rng, 40, 2)
        value, step = np.inf, 0.3
        for _ in range(400):
            other = np.linalg.qr(codes + step * frame(rng, 40, 2))[0]
            roots = 1.0
            for _ in range(5):
                loadings = linalg.lstsq(roots * other, roots * X)[0]
                norms = np.linalg.norm(X - other @ loadings, axis=1)
                roots = 1 / np.sqrt(np.maximum(norms, 1e-9))[:, None]
            new = robust_value(X, matrix, weight, spectral.Embedding(other, loadings))
            codes, value = (other, new) if new < value else (codes, value)
            step *= 0.99
        best = min(best, value)
    assert reached <= 1.05 * best


@pytest.mark.parametrize("shape", [(90, 12), (20, 60)])
@pytest.mark.parametrize("smoothness", [0.0, 1.0, 100.0])
def test_smooth_factors_are_the_global_optimum(solver, rng, shape, smoothness):
    n, d = shape
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=shape)
    X -= X.mean(axis=0)
    matrix = laplacian(knn_graph(X, 5))
    pair = smooth_factors(X, matrix, 3, smoothness)
    components, codes = pair.loadings, pair.codes
    kernel = np.linalg.inv(np.eye(n) + smoothness * matrix.toarray())
    values, vectors = linalg.eigh(X.T @ kernel @ X)
    assert subspace_distance(components, vectors[:, -3:].T) < 1e-8
    assert_allclose(components @ components.T, np.eye(3), atol=1e-12)
    assert_allclose(codes + smoothness * (matrix @ codes), X @ components.T, atol=1e-10)

    def objective(codes, components):
        apart = np.linalg.norm(X - codes @ components) ** 2
        return apart + smoothness * roughness(codes, matrix)

    value = objective(codes, components)
    assert value == pytest.approx(np.linalg.norm(X) ** 2 - values[-3:].sum(), rel=1e-10)
    for _ in range(20):
        other = np.linalg.qr(components.T + 0.3 * rng.normal(size=(d, 3)))[0]
        assert objective(kernel @ X @ other, other.T) >= value


def test_cuts_are_those_of_the_dense_generalised_problem(solver, rng):
    _, graph = moons(rng)
    degrees = graph.sum(axis=1)
    values, vectors = linalg.eigh(np.diag(degrees) - graph.toarray(), np.diag(degrees))
    found = normalized_cuts(graph, 5)
    assert_allclose(found.values, values[:5], atol=1e-12)
    assert_allclose(found.vectors.T @ (degrees[:, None] * found.vectors), np.eye(5), atol=1e-10)
    roots = np.sqrt(degrees)[:, None]
    assert subspace_distance((roots * found.vectors).T, (roots * vectors[:, :5]).T) < 1e-8
    assert np.ptp(found.vectors[:, 0]) < 1e-12
    assert found.n_parts == 1


def test_cuts_of_a_ring_hold_both_vectors_of_every_pair(solver):
    n = 120
    closing = sparse.csr_array(([1.0, 1.0], ([0, n - 1], [n - 1, 0])), (n, n))
    ring = sparse.csr_array(grid_graph((n,)) + closing)
    found = normalized_cuts(ring, 7)
    turns = np.array([0, 1, 1, 2, 2, 3, 3])
    assert_allclose(found.values, 1 - np.cos(2 * np.pi * turns / n), atol=1e-12)


def test_cuts_of_separate_parts_are_constant_on_each(solver, rng):
    sizes = [30, 50, 20]
    parts = [knn_graph(rng.normal(size=(n, 3)), 6) for n in sizes]
    graph = sparse.block_diag(parts).tocsr()
    label = np.repeat(range(3), sizes)
    found = normalized_cuts(graph, 5)
    assert found.n_parts == 3
    assert_allclose(found.values[:3], 0, atol=1e-14)
    assert (found.values[3:] > 1e-6).all()
    indicators = (label[:, None] == range(3)).astype(float)
    fitted = linalg.lstsq(indicators, found.vectors[:, :3])
    assert np.linalg.norm(fitted[1]) < 1e-20
    degrees = graph.sum(axis=1)
    assert_allclose(found.vectors.T @ (degrees[:, None] * found.vectors), np.eye(5), atol=1e-10)
    matrix = laplacian(graph, normalized=False)
    assert_allclose(
        matrix @ found.vectors, degrees[:, None] * found.vectors * found.values, atol=1e-10
    )
    # Too few vectors for all parts: the largest are told apart all the same.
    few = normalized_cuts(graph, 2).vectors
    points = {k: few[label == k].round(9).tolist() for k in range(3)}
    assert all(rows == [rows[0]] * len(rows) for rows in points.values())
    assert points[1][0] != points[0][0] == points[2][0]


def test_isolated_vertices_are_at_the_origin_and_change_nothing(solver, rng):
    _, graph = moons(rng, 80)
    alone = sparse.block_diag([sparse.csr_array((2, 2)), graph, sparse.csr_array((1, 1))]).tocsr()
    found, plain = normalized_cuts(alone, 4), normalized_cuts(graph, 4)
    assert not found.vectors[[0, 1, -1]].any()
    assert_allclose(found.vectors[2:-1], plain.vectors)
    assert found.n_parts == 1


@pytest.fixture(name="graph")
def random_graph(rng):
    return laplacian(knn_graph(rng.normal(size=(30, 3)), 4), normalized=False)


@pytest.fixture(params=["inverse", "conjugate gradients"])
def way(request, monkeypatch):
    """Smooth on graphs of any size in the way of small ones, then of large ones."""
    if request.param != "inverse":
        monkeypatch.setattr(spectral, "DENSE_VERTICES", 4)
    return request.param


@pytest.mark.parametrize("factor", [0.0, 1e-3, 0.7, 28.0, 1.4e4])
def test_smoothing_on_a_graph_solves_the_linear_system(way, factor, graph, rng):
    A = rng.normal(size=(30, 6))
    A[:, 1], A[:, 2] = 0.0, 1.0  # nothing, and a column that is smooth already
    expected = np.linalg.solve(np.eye(30) + factor * graph.toarray(), A)
    for matrix in (graph, graph.toarray()):
        found = graph_smoother(matrix, factor)(A)
        # The condition number of the system times rounding error.
        assert_allclose(found, expected, rtol=0, atol=1e-14 * (10 + 10 * factor))
        assert not found[:, 1].any()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_smoothing_keeps_single_precision(way, precision, graph, rng):
    A = rng.normal(size=(30, 4))
    smooth = graph_smoother(graph.astype(precision), 0.7)
    found = smooth(A.astype(np.float32))
    assert found.dtype == np.float32
    assert_allclose(found, smooth(A), rtol=0, atol=3e-6)


def test_a_strong_graph_leaves_the_mean_of_each_connected_part(way, rng):
    # A path of four vertices with unequal weights, and one vertex without edges.
    half = sparse.diags_array([[1.0, 0.3, 2.0, 0.0]], offsets=[1], shape=(5, 5)).tocsr()
    A, path = rng.normal(size=(5, 4)), laplacian(half + half.T, normalized=False)
    found = graph_smoother(path, 2e9)(A)
    assert_allclose(found[:4], np.tile(A[:4].mean(axis=0), (4, 1)), atol=1e-6)
    assert_allclose(found[4], A[4], rtol=1e-12)
    assert_allclose(graph_smoother(sparse.csr_array((5, 5)), 4.2)(A), A, rtol=1e-15)


def test_conjugate_gradients_solve_columns_of_all_sizes(graph, rng):
    A = rng.normal(size=(30, 4)) * [1.0, 1e-6, 1e6, 1e-12]
    expected = np.linalg.solve(np.eye(30) + 3.0 * graph.toarray(), A)
    found = conjugate_gradients(graph, 3.0, A)
    error = np.linalg.norm(found - expected, axis=0) / np.linalg.norm(expected, axis=0)
    assert error.max() < 1e-10


def test_conjugate_gradients_need_few_steps(graph, rng):
    class Counted:
        products = 0

        def __matmul__(self, A):
            self.products += 1
            return graph @ A

    counted = Counted()
    conjugate_gradients(counted, 0.5, rng.normal(size=(30, 4)))
    assert counted.products <= 31


@pytest.mark.parametrize("threshold", [0.0, 0.5, 2.0, 100.0])
def test_rows_are_shortened_as_the_textbook_says(threshold, rng):
    A = rng.normal(size=(6, 4))
    A[2] = 0
    expected = np.zeros_like(A)
    for row, out in zip(A, expected, strict=True):
        if row.any():
            out[:] = max(1 - threshold / np.linalg.norm(row), 0) * row
    assert_allclose(row_shrink(A, threshold), expected, rtol=0, atol=1e-13)
    assert row_shrink(A.astype(np.float32), threshold).dtype == np.float32
    # What is taken away is the projection of each row on the ball of that radius.
    for row, removed in zip(A, A - row_shrink(A, threshold), strict=True):
        radius = min(1, threshold / max(np.linalg.norm(row), 1e-300))
        assert_allclose(removed, row * radius, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_rows_are_shortened_whatever_their_unit(scale, rng):
    A = rng.normal(size=(5, 4))
    assert_allclose(row_shrink(scale * A, scale) / scale, row_shrink(A, 1.0), atol=1e-12)
