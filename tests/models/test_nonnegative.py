"""GNMF: NMF as a special case, smooth codes, codes of new rows, input that is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score

from robustpca import GNMF
from robustpca.parts.graphs import knn_graph, laplacian


@pytest.fixture(name="X", scope="module")
def digits():
    return load_digits().data[:300]


def unit(model, codes):
    lengths = np.linalg.norm(model.components_, axis=1)
    return codes * lengths, model.components_ / lengths[:, None]


@pytest.mark.parametrize("init", ["nndsvda", "random"])
@pytest.mark.parametrize("scale", ["unit", "free"])
def test_without_the_graph_it_is_nmf_by_multiplicative_updates(X, init, scale):
    # The start is found in units of the mean.
    X = X / X.mean()
    theirs = NMF(5, init=init, solver="mu", max_iter=31, tol=0, random_state=3)
    codes, basis = unit(theirs, theirs.fit_transform(X))
    with pytest.warns(ConvergenceWarning, match="GNMF stopped after max_iter=30 passes"):
        model = GNMF(
            5, smoothness=0.0, scale=scale, init=init, random_state=3, max_iter=30, tol=0
        ).fit(X)
    assert_allclose(model.components_, basis, atol=1e-10)
    assert_allclose(model.embedding_, codes, atol=1e-8)
    assert model.objective_[-1] == pytest.approx(theirs.reconstruction_err_**2)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("scale", ["unit", "free"])
def test_the_objective_falls_and_factors_stay_positive(X, normalized, scale):
    model = GNMF(6, smoothness=10.0, normalized=normalized, scale=scale, tol=1e-3).fit(X)
    assert model.converged_
    assert (np.diff(model.objective_) <= 0).all()
    assert model.n_iter_ + 1 == len(model.objective_)
    assert min(model.components_.min(), model.embedding_.min()) >= 0
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    matrix = laplacian(model.graph_, normalized=normalized)
    apart = np.linalg.norm(X - model.inverse_transform(model.embedding_)) ** 2
    rough = np.vdot(model.embedding_, matrix @ model.embedding_)
    if scale == "unit":
        # What is stored is what was minimised.
        assert model.objective_[-1] == pytest.approx(apart + 10 * rough)
    else:
        assert apart < model.objective_[-1] < apart + 10 * rough


def test_more_passes_do_not_make_it_forget_the_graph(X):
    def rough(scale, tol):
        model = GNMF(6, smoothness=10.0, scale=scale, tol=tol, max_iter=5000).fit(X)
        H = model.embedding_
        return np.vdot(H, laplacian(model.graph_, normalized=False) @ H) / np.vdot(H, H)

    assert rough("unit", 1e-6) == pytest.approx(rough("unit", 1e-4), rel=0.3)
    assert rough("free", 1e-6) > 5 * rough("unit", 1e-6)


def test_codes_of_neighbours_are_more_alike_with_more_smoothness(X):
    graph = knn_graph(X)
    matrix = laplacian(graph, normalized=False)

    def rough(smoothness):
        H = GNMF(10, smoothness=smoothness, graph=graph).fit(X).embedding_
        return np.vdot(H, matrix @ H) / np.vdot(H, H)

    values = [rough(smoothness) for smoothness in (0.0, 10.0, 100.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.5 * values[0]


def test_smooth_codes_cluster_better():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]

    def agreement(smoothness):
        H = GNMF(10, smoothness=smoothness).fit(X).embedding_
        labels = KMeans(10, n_init=10, random_state=0).fit_predict(H)
        return normalized_mutual_info_score(y, labels)

    assert agreement(10.0) > agreement(0.0) + 0.1


def test_codes_of_new_rows_are_the_best_ones_that_are_not_negative(X):
    model = GNMF(5, tol=1e-3).fit(X[:200])
    codes = model.transform(X[200:])
    expected = [optimize.nnls(model.components_.T, row)[0] for row in X[200:]]
    assert_allclose(codes, expected, atol=1e-8)
    assert (codes == 0).any()
    assert_allclose(model.inverse_transform(codes), codes @ model.components_)
    made = np.array([[1.0, 0.0, 2.0, 0.5, 0.0]])
    assert_allclose(model.transform(model.inverse_transform(made)), made, atol=1e-8)
    assert_array_equal(GNMF(5, tol=1e-3).fit_transform(X[:200]), model.transform(X[:200]))


def test_scaling_the_data_scales_the_codes_alone(X):
    one, ten = GNMF(4).fit(X), GNMF(4).fit(10 * X)
    assert ten.n_iter_ == one.n_iter_
    assert_allclose(ten.components_, one.components_, atol=1e-9)
    assert_allclose(ten.embedding_, 10 * one.embedding_, rtol=1e-6, atol=1e-6)


def test_sparse_data_give_the_same(X):
    graph = knn_graph(X)
    dense = GNMF(4, graph=graph).fit(X)
    thin = GNMF(4, graph=graph).fit(sparse.csr_array(X))
    assert_allclose(thin.components_, dense.components_, atol=1e-8)
    assert_allclose(thin.transform(sparse.csr_array(X[:9])), dense.transform(X[:9]), atol=1e-6)
    # scikit-learn finds the neighbours of sparse rows; without ties they are the same.
    X = X[:100] * np.random.default_rng(0).random((100, 64))
    # Of few rows all are neighbours of each other, and distances are symmetric as weights are.
    for rows, unit in ((X, 1.0), (X[:11], 1.0), (X[:11], 1e-6)):
        made = GNMF(4).fit(sparse.csr_array(unit * rows))
        assert_allclose(made.graph_.toarray(), knn_graph(rows).toarray(), atol=1e-9)


def test_negative_data_are_refused_in_words(X):
    with pytest.raises(ValueError, match=r"Negative values.*down to -3.*Shift.*MMF"):
        GNMF(3).fit(X - 3)
    model = GNMF(3, tol=1e-3).fit(X)
    with pytest.raises(ValueError, match="Negative values in data passed to GNMF"):
        model.transform(X - 3)
    with pytest.raises(ValueError, match=r"scores of shape \(n_samples, 3\)"):
        model.inverse_transform(X)
    with pytest.raises(ValueError, match=r"n_components=65 is more than.*at most 64"):
        GNMF(65).fit(X)
    with pytest.raises(ValueError, match="has 3 vertices and X has 300 samples"):
        GNMF(3, graph=np.ones((3, 3))).fit(X)


def test_empty_rows_columns_and_data_are_fine(X):
    spoiled = X.copy()
    spoiled[5], spoiled[:, 20] = 0.0, 0.0
    model = GNMF(4, smoothness=0.0).fit(spoiled)
    assert not model.embedding_[5].any()
    assert not model.components_[:, 20].any()
    nothing = GNMF(2, smoothness=0.0).fit(np.zeros((9, 5)))
    assert not nothing.inverse_transform(nothing.embedding_).any()
    assert not nothing.transform(np.zeros((2, 5))).any()


def test_callback_verbose_and_interrupts(X, capsys):
    told = []
    model = GNMF(3, tol=1e-3, callback=told.append, verbose=1).fit(X)
    assert [step.objective for step in told] == model.objective_[1:].tolist()
    assert capsys.readouterr().out.count("[GNMF] pass") == model.n_iter_

    def stop(step):
        raise KeyboardInterrupt

    model.set_params(callback=stop, verbose=0)
    first = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X + 1)
    assert vars(model) == first
