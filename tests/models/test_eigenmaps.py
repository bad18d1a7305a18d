"""Laplacian eigenmaps and NCut: indicator vectors, new rows, clusters that k-means misses."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons, make_swiss_roll
from sklearn.manifold import spectral_embedding
from sklearn.metrics import adjusted_rand_score

from robustpca import LaplacianEigenmaps, NCut
from robustpca.metrics import subspace_distance
from robustpca.parts.graphs import knn_graph, laplacian
from robustpca.solvers import eigenvectors as spectral

SHAPES = {
    "moons": lambda: make_moons(300, noise=0.06, random_state=0),
    "rings": lambda: make_circles(300, noise=0.04, factor=0.4, random_state=0),
}


@pytest.fixture(name="X", scope="module")
def sheet():
    return make_swiss_roll(400, noise=0.05, random_state=0)[0][:, [0, 2]]


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_the_embedding_solves_the_generalised_problem(X, solver, monkeypatch):
    monkeypatch.setattr(spectral, "DENSE_SIZE", 10**6 if solver == "dense" else 0)
    model = LaplacianEigenmaps(3).fit(X)
    degrees = model.graph_.sum(axis=1)
    matrix = laplacian(model.graph_, normalized=False)
    values, _ = linalg.eigh(matrix.toarray(), np.diag(degrees))
    Y = model.embedding_
    assert_allclose(model.eigenvalues_, values[1:4], atol=1e-12)
    assert_allclose(matrix @ Y, degrees[:, None] * Y * model.eigenvalues_, atol=1e-9)
    assert_allclose(Y.T @ (degrees[:, None] * Y), np.eye(3), atol=1e-9)
    assert_allclose(degrees @ Y, 0, atol=1e-8)
    assert (np.diff(model.eigenvalues_) >= 0).all()
    assert 0 < model.eigenvalues_[0] <= model.eigenvalues_[-1] <= 2


def test_the_embedding_is_that_of_scikit_learn_up_to_its_lengths(X):
    model = LaplacianEigenmaps(2).fit(X)
    theirs = spectral_embedding(model.graph_, n_components=2, random_state=0)
    for ours, other in zip(model.embedding_.T, theirs.T, strict=True):
        cosine = ours @ other / np.linalg.norm(ours) / np.linalg.norm(other)
        assert abs(cosine) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("n_neighbors", [8, 10])
def test_training_rows_keep_their_place_and_new_rows_go_between_their_neighbours(X, n_neighbors):
    model = LaplacianEigenmaps(2, n_neighbors=n_neighbors).fit(X)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-8)
    assert_array_equal(LaplacianEigenmaps(2, n_neighbors=n_neighbors).fit_transform(X),
                       model.transform(X))  # fmt: skip
    assert_allclose(model.transform(X[7:8]), model.embedding_[7:8], atol=1e-8)
    near = X + 1e-4
    scale = np.abs(model.embedding_).max()
    assert np.abs(model.transform(near) - model.embedding_).max() < 0.1 * scale
    assert not model.transform(X[:1] + 1e6).any()


def test_new_rows_of_a_curve_are_put_in_order(rng):
    angle = np.sort(rng.uniform(0, 4, 600))
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    model = LaplacianEigenmaps(1).fit(X[::2])
    places = model.transform(X[1::2])[:, 0]
    rank = np.argsort(np.argsort(places))
    assert abs(np.corrcoef(rank, np.arange(300))[0, 1]) > 0.999


def test_later_changes_of_the_data_do_not_reach_the_model(X):
    rows = X.copy()
    model = LaplacianEigenmaps().fit(rows)
    before = model.transform(X)
    rows[:] = 0.0
    assert_array_equal(model.transform(X), before)
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), before)


def test_separate_parts_are_told_apart_with_a_warning(rng):
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(40, 2)) + 100])
    told = r"falls into 2 connected parts, and the first 1 coord"
    with pytest.warns(UserWarning, match=told) as caught:
        model = LaplacianEigenmaps(2).fit(X)
    # The warning points at the call, not into the library.
    assert caught[0].filename == __file__
    assert model.n_connected_components_ == 2
    assert model.eigenvalues_[0] == 0 < model.eigenvalues_[1]
    first = model.embedding_[:, 0]
    assert np.ptp(first[:30]) < 1e-12 > np.ptp(first[30:])
    assert abs(first[0] - first[-1]) > 0.01


def test_samples_without_edges_are_at_the_origin(X):
    graph = knn_graph(X).tolil()
    graph[3] = 0
    graph[:, 3] = 0
    model = LaplacianEigenmaps(2, graph=graph.tocsr()).fit(X)
    assert not model.embedding_[3].any()
    assert not model.transform(X[3:4]).any()
    clusters = NCut(2, graph=graph.tocsr()).fit(X)
    assert not clusters.embedding_[3].any()
    assert not NCut(2, graph=graph.tocsr(), njw=True).fit(X).embedding_[3].any()


@pytest.mark.parametrize("model", [LaplacianEigenmaps(2), NCut(3)])
def test_too_few_edges_are_refused_with_the_numbers(model, rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"at 3 or more of the samples.*edges at 0 of 10"):
        model.set_params(graph=sparse.csr_array((10, 10))).fit(X)
    pair = np.zeros((10, 10))
    pair[0, 1] = pair[1, 0] = 1
    with pytest.raises(ValueError, match="edges at 2 of 10"):
        model.set_params(graph=pair).fit(X)
    with pytest.raises(ValueError, match="has 10 vertices and X has 4 samples"):
        model.fit(X[:4])
    model.set_params(graph=None)


@pytest.mark.parametrize("model", [LaplacianEigenmaps(2), NCut(2)])
def test_duplicates_and_constant_data_are_fine(model, rng):
    X = np.repeat(rng.normal(size=(8, 2)), 5, axis=0)
    fitted = model.set_params(n_neighbors=12).fit(X)
    assert np.isfinite(fitted.embedding_).all()
    fitted = model.fit(np.ones((20, 3)))
    assert np.isfinite(fitted.embedding_).all()
    degrees = fitted.graph_.sum(axis=1)
    gram = fitted.embedding_.T @ (degrees[:, None] * fitted.embedding_)
    assert_allclose(gram, np.eye(2), atol=1e-10)


@pytest.mark.parametrize("njw", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_ncut_finds_clusters_that_k_means_misses(shape, njw):
    X, y = SHAPES[shape]()
    model = NCut(2, njw=njw).fit(X)
    assert adjusted_rand_score(model.labels_, y) > 0.99
    assert adjusted_rand_score(KMeans(2, n_init=10, random_state=0).fit_predict(X), y) < 0.6
    assert_array_equal(model.labels_, NCut(2, njw=njw).fit_predict(X))


def test_ncut_has_orthonormal_columns_in_the_degrees_or_rows_of_unit_length(X):
    model, njw = NCut(4).fit(X), NCut(4, njw=True).fit(X)
    degrees = model.graph_.sum(axis=1)
    gram = model.embedding_.T @ (degrees[:, None] * model.embedding_)
    assert_allclose(gram, np.eye(4), atol=1e-9)
    assert model.eigenvalues_[0] == 0
    assert_allclose(np.linalg.norm(njw.embedding_, axis=1), 1)
    normal = laplacian(model.graph_).toarray()
    vectors = linalg.eigh(normal, subset_by_index=(0, 3))[1]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert_allclose(njw.embedding_ @ njw.embedding_.T, vectors @ vectors.T, atol=1e-7)


def test_ncut_of_separate_parts_gives_the_parts(rng):
    X, y = make_blobs([40, 30, 50], 3, cluster_std=0.5, random_state=0, center_box=(-80, 80))
    model = NCut(3).fit(X)
    assert model.n_connected_components_ == 3
    assert adjusted_rand_score(model.labels_, y) == 1
    indicators = (y[:, None] == range(3)).astype(float)
    roots = np.sqrt(model.graph_.sum(axis=1))[:, None]
    assert subspace_distance((roots * model.embedding_).T, (roots * indicators).T) < 1e-12
    with pytest.warns(UserWarning, match="falls into 3 connected parts, more than n_clusters=2"):
        NCut(2).fit(X)


@pytest.mark.parametrize("model", [LaplacianEigenmaps(2), NCut(3)])
def test_single_precision_and_order_of_the_samples_change_nothing(model, X, rng):
    double, single = model.fit(X).embedding_.copy(), model.fit(X.astype(np.float32)).embedding_
    assert single.dtype == np.float32
    assert_allclose(single, double, atol=1e-3 * np.abs(double).max())
    order = rng.permutation(len(X))
    assert_allclose(model.fit(X[order]).embedding_, double[order], atol=1e-8)


@pytest.mark.parametrize("n_clusters", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(5))
def test_auto_takes_a_coordinate_fewer_than_there_are_clusters(n_clusters, seed):
    centers = 6 * np.random.default_rng(seed).permutation(np.eye(8))[:n_clusters]
    X, y = make_blobs(40 * n_clusters, centers=centers, random_state=seed)
    # More neighbours than a cluster has: all are joined.
    model = LaplacianEigenmaps("auto", n_neighbors=45).fit(X)
    assert model.n_connected_components_ == 1
    assert model.n_components_ == model.embedding_.shape[1] == n_clusters - 1
    found = KMeans(n_clusters, n_init=10, random_state=0).fit_predict(model.embedding_)
    assert adjusted_rand_score(found, y) > 0.99


def test_auto_gives_a_curve_one_coordinate_and_parts_those_that_tell_them_apart():
    angle = np.linspace(0, 3, 200)
    curve = np.column_stack([np.cos(angle), np.sin(angle)])
    model = LaplacianEigenmaps("auto").fit(curve)
    expected = LaplacianEigenmaps(1).fit(curve)
    assert model.n_components == "auto"
    assert_allclose(model.embedding_, expected.embedding_, atol=1e-8)
    assert model.transform(curve[:5]).shape == (5, 1)
    with pytest.warns(UserWarning, match="3 connected parts, and the first 2 coordinates"):
        model = LaplacianEigenmaps("auto").fit(np.vstack([curve, curve + 10, curve + 20]))
    assert model.n_components_ == 2


@pytest.mark.parametrize("n", [2, 3])
def test_auto_does_with_very_few_samples(n):
    assert LaplacianEigenmaps("auto").fit(np.eye(n)).n_components_ in (1, 2)
