"""GLPCA, RGLPCA and MMF: special cases, optimality, planted outliers, odd input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsTransformer

from robustpca import GLPCA, MMF, RGLPCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance
from robustpca.parts.centers import geometric_median
from robustpca.parts.graphs import knn_graph, laplacian
from robustpca.solvers import eigenvectors as spectral
from robustpca.solvers.eigenvectors import graph_embedding, graph_weight, roughness

METHODS = [GLPCA, RGLPCA, MMF]
every_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(name="X", scope="module")
def iris():
    return load_iris().data


def quiet(method, *args, **settings):
    """A method that may take all the passes it needs on data that fit exactly."""
    return method(*args, **settings, **({"max_iter": 2000} if method is RGLPCA else {}))


def test_glpca_without_the_graph_is_pca(X):
    expected, model = PCA(3).fit(X), GLPCA(3, beta=0.0).fit(X)
    assert model.alpha_ == 0
    assert_allclose(np.abs(model.components_ @ expected.components_.T), np.eye(3), atol=1e-9)
    assert_allclose(model.mean_, expected.mean_)
    assert_allclose(model.explained_variance_, expected.explained_variance_)
    assert_allclose(model.explained_variance_ratio_, expected.explained_variance_ratio_)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-10)
    scores = expected.transform(X) / expected.singular_values_
    assert_allclose(np.abs(model.embedding_), np.abs(scores), atol=1e-10)
    assert_allclose(model.reconstruct(X), expected.inverse_transform(expected.transform(X)))
    assert model.objective_[-1] == pytest.approx(np.sum((X - model.reconstruct(X)) ** 2))


def test_mmf_without_the_graph_is_pca(X):
    expected, model = PCA(3).fit(X), MMF(3, smoothness=0.0).fit(X)
    assert_allclose(np.abs(model.components_ @ expected.components_.T), np.eye(3), atol=1e-9)
    assert_allclose(model.embedding_, model.transform(X), atol=1e-12)
    assert_allclose(np.abs(model.embedding_), np.abs(expected.transform(X)), atol=1e-10)
    assert_allclose(model.explained_variance_, expected.explained_variance_)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("beta", [0.2, 0.8])
def test_glpca_stores_what_the_eigenproblem_says(X, beta, normalized):
    model = GLPCA(2, beta=beta, normalized=normalized).fit(X)
    Z = X - X.mean(axis=0)
    matrix = laplacian(model.graph_, normalized=normalized)
    top = linalg.eigvalsh(matrix.toarray())[-1]
    alpha = beta / (1 - beta) * np.linalg.norm(Z, 2) ** 2 / top
    assert model.alpha_ == pytest.approx(alpha)
    Q = model.embedding_
    assert_allclose(Q.T @ Q, np.eye(2), atol=1e-12)
    assert_allclose(Q.sum(axis=0), 0, atol=1e-10)
    assert_allclose(model.loadings_, Q.T @ Z, atol=1e-10)
    rest = linalg.null_space(np.ones((1, len(X))))
    operator = rest.T @ (alpha * matrix.toarray() - Z @ Z.T) @ rest
    values, vectors = linalg.eigh(operator, subset_by_index=(0, 1))
    assert subspace_distance(Q.T, (rest @ vectors).T) < 1e-8
    assert model.objective_[-1] == pytest.approx(np.sum(Z**2) + values.sum())
    assert_allclose(model.inverse_transform(Q), model.mean_ + Q @ model.loadings_)
    assert subspace_distance(model.components_, model.loadings_) < 1e-10


def test_components_of_glpca_are_principal_axes_of_the_reconstruction(X):
    model = GLPCA(2, beta=0.7).fit(X)
    expected = PCA(2).fit(model.reconstruct(X))
    assert_allclose(np.abs(model.components_ @ expected.components_.T), np.eye(2), atol=1e-9)
    assert_allclose(model.explained_variance_, expected.explained_variance_)


def test_more_beta_makes_the_embedding_smoother(X):
    graph = knn_graph(X)
    matrix = laplacian(graph, normalized=False)
    rough = [
        roughness(GLPCA(2, beta=b, graph=graph).fit(X).embedding_, matrix)
        for b in (0.0, 0.3, 0.6, 0.9, 0.999)
    ]
    assert rough == sorted(rough, reverse=True)
    assert rough[-1] == pytest.approx(linalg.eigvalsh(matrix.toarray())[1:3].sum(), rel=1e-2)


def test_the_constant_vector_may_be_let_in(X):
    model = GLPCA(3, beta=0.9, exclude_constant=False).fit(X)
    share = np.linalg.norm(model.embedding_.sum(axis=0)) / np.sqrt(len(X))
    assert share == pytest.approx(1)
    # It has no loadings, so the subspace has one direction less, and all still agrees.
    assert np.linalg.matrix_rank(model.loadings_, tol=1e-8) == 2
    assert (model.explained_variance_ > 0).tolist() == [True, True, False]
    assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)
    projected = model.reconstruct(X)
    assert_allclose(model.reconstruct(projected), projected, atol=1e-10)
    assert_allclose(
        model.orthogonal_distances(X), np.linalg.norm(X - projected, axis=1), atol=1e-10
    )
    two = GLPCA(2, beta=0.9).fit(X)
    assert subspace_distance(model.components_[:2], two.components_) < 1e-8


@pytest.mark.parametrize("smoothness", [0.5, 1.0, 50.0])
def test_mmf_stores_what_its_equations_say(X, smoothness):
    model = MMF(2, smoothness=smoothness).fit(X)
    Z, V = X - X.mean(axis=0), model.components_.T
    matrix = laplacian(model.graph_)
    assert_allclose(model.embedding_ + smoothness * (matrix @ model.embedding_), Z @ V, atol=1e-10)
    kernel = np.linalg.inv(np.eye(len(X)) + smoothness * matrix.toarray())
    values = linalg.eigvalsh(Z.T @ kernel @ Z)
    assert model.objective_[-1] == pytest.approx(np.sum(Z**2) - values[-2:].sum())
    assert_allclose(V.T @ Z.T @ kernel @ Z @ V, np.diag(values[:-3:-1]), atol=1e-8)


def test_mmf_of_wide_data_is_that_of_the_coordinates_of_their_rows(X, rng):
    turn = np.linalg.qr(rng.normal(size=(400, 4)))[0].T
    narrow, wide = MMF(3).fit(X), MMF(3, graph=knn_graph(X)).fit(X @ turn)
    assert subspace_distance(wide.components_, narrow.components_ @ turn) < 1e-8
    assert wide.objective_[-1] == pytest.approx(narrow.objective_[-1])


@every_method
def test_small_and_large_problems_are_solved_alike(method, monkeypatch, rng):
    X = planted_subspace(rng, 150, 40, 3, 10, noise=0.3)[0]
    small = method(3).fit(X)
    monkeypatch.setattr(spectral, "DENSE_SIZE", 0)
    large = method(3).fit(X)
    assert subspace_distance(small.components_, large.components_) < 1e-5
    # Signs follow the loadings, so that they agree as well.
    assert_allclose(large.embedding_, small.embedding_, atol=1e-4 * np.abs(small.embedding_).max())
    assert large.objective_[-1] == pytest.approx(small.objective_[-1], rel=1e-6)


def own_objective(model, X, centre, Q, B):
    matrix = laplacian(model.graph_, normalized=model.normalized)
    return np.linalg.norm(X - centre - Q @ B, axis=1).sum() + model.alpha_ * roughness(Q, matrix)


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_rglpca_is_no_worse_than_glpca_in_its_own_objective(beta, seed):
    X = planted_subspace(np.random.default_rng(seed), 100, 20, 3, 8, noise=0.3)[0]
    model = RGLPCA(3, beta=beta).fit(X)
    value = own_objective(model, X, model.mean_, model.embedding_, model.loadings_)
    assert value == pytest.approx(model.objective_[-1])
    assert (np.diff(model.objective_) <= 0).all()
    assert_allclose(model.mean_, geometric_median(ArrayRows(X)))
    Z, matrix = X - model.mean_, laplacian(model.graph_, normalized=False)
    for weight in (0.0, graph_weight(Z, matrix, beta)):
        pair = graph_embedding(Z, matrix, 3, weight, exclude_constant=True)
        assert value <= own_objective(model, X, model.mean_, pair.codes, pair.loadings)
    plain = GLPCA(3, beta=beta, graph=model.graph_).fit(X)
    assert value < own_objective(model, X, plain.mean_, plain.embedding_, plain.loadings_)


@pytest.mark.parametrize("seed", range(4))
def test_rglpca_finds_planted_outliers_and_glpca_does_not(seed):
    X, basis, bad = planted_subspace(
        np.random.default_rng(seed), 150, 30, 3, n_outliers=12, noise=0.05
    )
    robust, plain = RGLPCA(3, beta=0.1).fit(X), GLPCA(3, beta=0.1).fit(X)
    errors = np.linalg.norm(robust.sparse_rows_, axis=1)
    assert errors[bad].min() > 10 * errors[~bad].max()
    assert (robust.predict(X)[bad] == -1).all()
    assert subspace_distance(robust.components_, basis) < 0.1
    assert subspace_distance(plain.components_, basis) > 0.5
    assert_allclose(robust.sparse_rows_, X - robust.inverse_transform(robust.embedding_), atol=1e-8)


def test_far_outliers_leave_the_weight_of_the_graph_alone(rng):
    X = planted_subspace(rng, 100, 10, 2, noise=0.1)[0]
    spoiled = X.copy()
    spoiled[:2] += 1e4
    graph = knn_graph(X)
    clean = RGLPCA(2, graph=graph).fit(X).alpha_
    assert RGLPCA(2, graph=graph).fit(spoiled).alpha_ == pytest.approx(clean, rel=0.1)
    assert GLPCA(2, graph=graph).fit(spoiled).alpha_ > 1e4 * GLPCA(2, graph=graph).fit(X).alpha_


def test_scaling_the_data_scales_the_weight_of_the_graph_by_the_degree_of_the_loss(rng):
    X = planted_subspace(rng, 100, 10, 2, 5, noise=0.3)[0]
    for method, degree in ((GLPCA, 2), (RGLPCA, 1)):
        one, ten = method(2).fit(X), method(2).fit(10 * X)
        assert ten.alpha_ == pytest.approx(10**degree * one.alpha_)
        assert_allclose(ten.objective_, 10**degree * one.objective_, rtol=1e-6)
        assert_allclose(ten.embedding_, one.embedding_, atol=1e-6)
        assert_allclose(ten.loadings_, 10 * one.loadings_, atol=1e-4)


def test_rows_that_fit_have_no_sparse_part(rng):
    half = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 10))
    X = np.vstack([half, -half])
    X[3] += 3 * rng.normal(size=10)
    model = RGLPCA(2, beta=0.0, center="zero", exclude_constant=False).fit(X)
    assert np.flatnonzero(model.sparse_rows_.any(axis=1)).tolist() == [3]
    assert subspace_distance(model.components_, np.linalg.svd(half)[2][:2]) < 1e-6


@every_method
def test_graphs_of_any_kind_are_taken(method, X):
    made = method(2).fit(X)
    for graph in (knn_graph(X), knn_graph(X).toarray(), sparse.coo_array(knn_graph(X))):
        assert_allclose(method(2, graph=graph).fit(X).components_, made.components_, atol=1e-6)
    theirs = KNeighborsTransformer(n_neighbors=9, mode="distance").fit_transform(X)
    assert method(2, graph=theirs).fit(X).graph_.nnz > 0


@every_method
def test_bad_graphs_are_refused_in_words(method, X):
    with pytest.raises(ValueError, match="has 10 vertices and X has 150 samples"):
        method(2, graph=np.ones((10, 10))).fit(X)
    with pytest.raises(ValueError, match="not symmetric"):
        method(2, graph=np.triu(np.ones((150, 150)))).fit(X)
    with pytest.raises(ValueError, match="weights down to -1"):
        method(2, graph=-np.ones((150, 150))).fit(X)
    with pytest.raises(ValueError, match="not finite"):
        method(2, graph=np.full((150, 150), np.nan)).fit(X)


@every_method
def test_a_graph_without_edges_changes_nothing(method, X):
    model = method(2, graph=sparse.csr_array((150, 150))).fit(X)
    other = MMF(2, smoothness=0.0) if method is MMF else method(2, beta=0.0)
    assert_allclose(model.components_, other.fit(X).components_, atol=1e-9)


@every_method
def test_too_many_components_are_refused(method, rng):
    X = rng.normal(size=(6, 9))
    with pytest.raises(ValueError, match=r"n_components=7 is more than.*choose at most 6"):
        method(7).fit(X)
    if method is MMF:
        assert MMF(6).fit(X).n_components_ == MMF().fit(X).n_components_ == 6
        return
    with pytest.raises(ValueError, match=r"6 samples.*choose at most 5, or exclude_constant=False"):
        method(6).fit(X)
    assert quiet(method).fit(X).n_components_ == 5
    assert quiet(method, 6, exclude_constant=False).fit(X).n_components_ == 6


@every_method
@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_constant_data_have_a_subspace_of_no_extent(method, solver, monkeypatch):
    monkeypatch.setattr(spectral, "DENSE_SIZE", 500 if solver == "dense" else 0)
    model = method(2).fit(np.full((30, 4), 7.0))
    assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    assert not model.explained_variance_.any()
    assert model.objective_[-1] == 0
    assert_allclose(model.reconstruct(np.full((3, 4), 7.0)), 7.0)


@every_method
def test_constant_columns_and_duplicates_and_low_rank_are_fine(method, X):
    spoiled = np.column_stack([np.full(60, 3.0), np.repeat(X[:20], 3, axis=0)])
    model = quiet(method, 2).fit(spoiled)
    assert not model.components_[:, 0].any()
    assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-10)
    line = np.outer(np.arange(20.0), [1.0, 2.0, 2.0]) + 1e6
    flat = quiet(method, 2).fit(line)
    assert_allclose(np.abs(flat.components_[0]), np.array([1, 2, 2]) / 3, atol=1e-6)
    assert_allclose(flat.reconstruct(line), line, rtol=1e-8)
    assert_allclose(flat.components_ @ flat.components_.T, np.eye(2), atol=1e-10)
    one = quiet(method, 1).fit(X[:, :1])
    assert_allclose(one.reconstruct(X[:, :1]), X[:, :1], atol=1e-10)


@every_method
def test_integers_and_two_samples_are_fine(method):
    model = method(1).fit(np.array([[0, 0], [3, 4]]))
    assert_allclose(model.components_, [[0.6, 0.8]])
    assert_allclose(model.reconstruct([[3, 4]]), [[3, 4]])


@every_method
def test_sparse_data_are_refused_in_words(method, X):
    with pytest.raises(TypeError, match=rf"{method.__name__} works on dense arrays"):
        method(2).fit(sparse.csr_array(X))


@every_method
def test_the_graph_is_stored_for_another_fit(method, X):
    first = method(2).fit(X)
    again = method(3, graph=first.graph_).fit(X)
    assert_array_equal(again.graph_.toarray(), first.graph_.toarray())


def test_a_callback_is_told_the_phase(X):
    told = []
    model = RGLPCA(2, callback=told.append).fit(X)
    phases = [step.phase for step in told]
    assert phases == sorted(phases, reverse=True)
    assert set(phases) == {"splitting", "polishing"}
    assert model.n_iter_ == len(told)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta": 1.0}, "beta"),
        ({"beta": -0.1}, "beta"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_components": 0.5}, "n_components"),
    ],
)
def test_parameters_out_of_range_are_refused(settings, message, X):
    with pytest.raises(ValueError, match=f"The '{message}' parameter of GLPCA"):
        GLPCA(**settings).fit(X)
