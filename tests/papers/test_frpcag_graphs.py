from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from robustpca import FRPCAG, GLPCA, RPCA
from robustpca.bench import Table
from robustpca.bench.declarations import Source
from robustpca.bench.trial import measure, spoil
from robustpca.datasets import drop_pixels, make_graph_clusters
from robustpca.papers.frpcag.estimators import (
    FeatureGraph,
    OnCleanGraphs,
    OnGraphs,
    Theorem2Fit,
    unit_bandwidth,
)
from robustpca.papers.frpcag.samples import waves_of_error
from robustpca.papers.frpcag.scores import (
    alignment,
    bound,
    graph_seconds,
    printed_ratio,
    seconds_after_graphs,
    show_covariance_eigenvectors,
    show_covariance_in_graph,
    show_laplacian_eigenvectors,
)
from robustpca.papers.scores import passes, seconds_of_fit
from robustpca.parts.graphs import grid_graph, knn_graph, laplacian

DIGITS = Source("digits", size=(4, 4), n_samples=40)


@pytest.fixture(name="X")
def samples(rng):
    return scale(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 40)) + rng.normal(size=(30, 40)))


def dense(graph):
    return graph.toarray()


def test_a_method_gets_the_graphs_it_has_room_for(X):
    model = OnGraphs(FRPCAG(standardize=False), n_neighbors=4, bandwidth="mean").fit(X)
    np.testing.assert_array_equal(dense(model.sample_graph_), dense(knn_graph(X, 4)))
    np.testing.assert_array_equal(dense(model.feature_graph_), dense(knn_graph(X.T, 4)))
    assert list(model.graph_seconds_) == ["sample_graph", "feature_graph"]
    assert list(OnGraphs(GLPCA(2)).fit(X).graph_seconds_) == ["graph"]
    assert OnGraphs(RPCA()).fit(X).graph_seconds_ == {}


def test_a_fit_with_its_own_graph_is_the_same_fit(X):
    own = FRPCAG(standardize=False, n_neighbors=4).fit(X)
    given = OnGraphs(FRPCAG(standardize=False), n_neighbors=4, bandwidth="mean").fit(X)
    np.testing.assert_allclose(given.embedding_, own.embedding_)
    assert not hasattr(OnGraphs(FRPCAG()), "embedding_")


def test_the_weight_of_the_sparse_part_goes_with_the_longer_side(X):
    assert OnGraphs(RPCA(), sparsity=0.5).fit(X).sparsity_ == pytest.approx(0.5 / 40**0.5)
    assert OnGraphs(RPCA(sparsity=0.2)).fit(X).sparsity_ == 0.2


def test_the_width_of_one_does_not_hang_on_units(X):
    # Scaled as the toolbox does it, the vertices have this width by definition.
    n = len(X)
    box = np.linalg.norm(X.max(axis=0) - X.min(axis=0)) / 2
    scaled = (X - X.mean(axis=0)) * n ** (1 / 3) / 10 / box
    expected = knn_graph(scaled, 5, bandwidth=1.0)
    model = OnGraphs(GLPCA(2), n_neighbors=5).fit(1000 * X)
    np.testing.assert_allclose(dense(model.graph_), dense(expected))
    assert unit_bandwidth(np.array([[0.0, 0.0], [6.0, 8.0]])) == pytest.approx(50 / 2**0.5)


def test_noisy_graphs_have_other_neighbours(X):
    models = {
        sides: OnGraphs(FRPCAG(standardize=False), noisy=sides, n_axes=3, random_state=0).fit(X)
        for sides in ((), ("features",), ("samples", "features"))
    }
    exact, half, none = models.values()
    assert (dense(exact.sample_graph_) == dense(half.sample_graph_)).all()
    assert (dense(exact.feature_graph_) != dense(half.feature_graph_)).any()
    assert (dense(exact.sample_graph_) != dense(none.sample_graph_)).any()


def test_clean_graphs_are_those_of_the_data_before_corruption(X):
    table = Table(
        name="t",
        title="t",
        datasets={"digits": DIGITS},
        corruption=drop_and_keep,
        methods={"m": make_pipeline(StandardScaler(), OnCleanGraphs(GLPCA(2), n_neighbors=3))},
        score=graph_is_clean,
        seeds=1,
    )
    cell = table.cells()[0]
    outcome = measure(cell, spoil(cell))
    assert outcome["scores"] == {"graph_is_clean": 1.0}
    own = OnCleanGraphs(GLPCA(2), n_neighbors=3).fit(X)
    assert (dense(own.graph_) == dense(OnGraphs(GLPCA(2), n_neighbors=3).fit(X).graph_)).all()


def drop_and_keep(X, random_state):
    return drop_pixels(X, 0.5, random_state)


def graph_is_clean(model, X_clean, X_corrupt):
    expected = OnGraphs(GLPCA(2), n_neighbors=3).fit(scale(X_clean)).graph_
    return (dense(model[-1].graph_) == dense(expected)).all()


def test_the_passes_of_the_last_step_are_those_of_a_pipeline():
    table = Table(
        name="t",
        title="t",
        datasets={"digits": DIGITS},
        methods={"m": make_pipeline(StandardScaler(), OnGraphs(RPCA(tol=1e-3)))},
        score=last_iterations,
        seeds=1,
    )
    cell = table.cells()[0]
    outcome = measure(cell, spoil(cell))
    assert outcome["iterations"] == outcome["scores"]["last_iterations"] > 0
    assert outcome["converged"] is True


def last_iterations(model, X_clean, X_corrupt):
    return passes(model[-1], X_clean, X_corrupt)


def test_seconds_are_taken_apart(X):
    model = OnGraphs(FRPCAG(standardize=False)).fit(X)
    model.graph_seconds_ = {"sample_graph": 2.0, "feature_graph": 3.0}
    model.loop_seconds_ = 5.0
    assert seconds_after_graphs(model, X, X) == 5
    assert graph_seconds(model, X, X, "samples") == 2
    assert graph_seconds(model, X, X, "features") == 3
    assert seconds_of_fit(model, X, X, 10.5) == 10.5
    assert np.isnan(graph_seconds(SimpleNamespace(graph_seconds_={}), X, X, "samples"))
    assert np.isnan(graph_seconds(SimpleNamespace(graph_seconds_={}), X, X, "features"))


def test_data_that_are_smooth_on_the_pixels_are_aligned_with_their_grid(rng):
    shape = (4, 5)
    _, vectors = np.linalg.eigh(laplacian(grid_graph(shape)).toarray())
    # Codes without correlation make the covariance diagonal in this basis.
    codes = np.linalg.qr(rng.normal(size=(60, 20)))[0] * np.linspace(5, 1, 20)
    codes -= codes @ vectors.sum(axis=0)[:, None] @ vectors.sum(axis=0)[None] / 20
    X = codes @ vectors.T
    grid = FeatureGraph("grid", image_shape=shape).fit(X)
    basis, C = np.linalg.eigh(grid.laplacian_.toarray())[1], (X - X.mean()).T @ (X - X.mean())
    gram = basis.T @ C @ basis
    order = alignment(grid, X, X)
    assert order == pytest.approx(np.linalg.norm(np.diag(gram)) / np.linalg.norm(gram))
    mixed = rng.permutation(20)
    assert order > 0.9 > alignment(grid, X[:, mixed], X[:, mixed])


def test_a_shuffled_graph_has_the_same_spectrum_and_other_edges(X):
    plain = FeatureGraph().fit(X)
    shuffled = FeatureGraph("shuffled", random_state=0).fit(X)
    values = [np.linalg.eigvalsh(dense(model.laplacian_)) for model in (plain, shuffled)]
    np.testing.assert_allclose(*values, atol=1e-12)
    assert (dense(plain.laplacian_) != dense(shuffled.laplacian_)).any()


def test_pictures_of_eigenvectors_have_sixteen_images(rng):
    X = rng.normal(size=(50, 20))
    model = FeatureGraph("grid", image_shape=(4, 5)).fit(X)
    for show in (show_covariance_eigenvectors, show_laplacian_eigenvectors):
        exhibit = show(model, X, X, image_shape=(4, 5))
        assert (exhibit["height"], exhibit["width"]) == (8, 16 * 10 + 15)
    assert show_covariance_in_graph(model, X, X)["width"] == 20


def test_the_bound_of_the_theorem_holds_on_fitted_models():
    data = make_graph_clusters(60, 30, n_clusters=3, n_feature_clusters=3, random_state=0)
    model = Theorem2Fit(3, 3, smoothness=0.5, n_neighbors=5).fit(data.X)
    args = model, data.X, data.X, data.extras
    assert bound(*args) == pytest.approx(bound(*args, "left") / bound(*args, "right"))
    assert 0 < bound(*args) <= 1
    # The weights in the units of the data are those of the theorem, and those of the fit.
    for matrix, count, weight in zip(model.laplacians_, model.counts_, model.weights_, strict=True):
        assert weight == pytest.approx(0.5 / np.linalg.eigvalsh(dense(matrix))[count])
    assert model.model_.sample_smoothness_ == pytest.approx(model.weights_[0])
    assert model.model_.feature_smoothness_ == pytest.approx(model.weights_[1])


def test_the_printed_form_differs_by_its_weights_alone():
    data = make_graph_clusters(60, 30, n_clusters=3, n_feature_clusters=3, random_state=0)
    model = Theorem2Fit(3, 3, smoothness=0.5, n_neighbors=5).fit(data.X)
    args = model, data.X, data.X, data.extras
    assert printed_ratio(*args) != pytest.approx(bound(*args))
    model.weights_ = (0.5, 0.5)
    assert printed_ratio(*args) == pytest.approx(bound(*args))


def test_a_graph_in_more_parts_raises_the_number_of_eigenvectors():
    data = make_graph_clusters(60, 30, share=0.0, noise=0.01, random_state=0)
    model = Theorem2Fit(2, 2, n_neighbors=4).fit(data.X)
    assert model.counts_ == (6, 5)


def test_waves_contradict_the_printed_form_and_not_the_proved_one():
    data = waves_of_error(60, 12)
    model = Theorem2Fit(1, 1, smoothness=1.0).fit(data.X)
    assert model.counts_ == (1, 1)
    assert bound(model, data.X, data.X, data.extras) <= 1
    assert printed_ratio(model, data.X, data.X, data.extras) > 2
