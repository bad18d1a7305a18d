"""Laws of the reweighted chapter: how many components, and what moves with the data."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reweighting import METHODS, random_rotation, settled_data
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from robustpca import EPCA, PCAAN, PCAOM, R1PCA, ReweightedPCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance
from robustpca.parts.losses import L21Loss


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(80, 10), (30, 50), (300, 100)])
@pytest.mark.parametrize("share", [0.3, 0.95])
def test_a_share_asks_for_the_fewest_components_that_hold_it(method, shape, share, rng):
    X = rng.normal(size=shape) * np.linspace(3, 0.5, shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = method(share).fit(X)
    ratios = model.explained_variance_ratio_
    assert model.n_components_ == len(ratios) == len(model.components_)
    assert ratios.sum() >= share * (1 - 1e-9)
    # With more features than samples the l2,1 loss fits a sample exactly and trusts it alone, so
    # that two ranks ask for each other; the larger is kept, and it holds more than the share.
    two_ranks = shape[0] < shape[1] and isinstance(model.loss_, L21Loss)
    assert two_ranks or ratios[:-1].sum() < share
    assert_allclose(model.components_ @ model.components_.T, np.eye(len(ratios)), atol=1e-10)


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_a_share_of_the_plain_variance_is_that_of_pca(share, rng):
    X = rng.normal(size=(80, 10)) * np.linspace(3, 0.5, 10)
    expected = PCA(share, svd_solver="full").fit(X)
    assert ReweightedPCA(share, loss="squared").fit(X).n_components_ == expected.n_components_


def test_explained_variance_is_that_of_the_weighted_scores(rng):
    X = planted_subspace(rng, 150, 10, 3, 30, noise=0.3)[0]
    for model in (PCAAN(3, tol=1e-13), PCAOM(3, tol=1e-13)):
        model.fit(X)
        p = model.sample_weights_
        scores = model.transform(X)
        assert_allclose(p @ scores, 0, atol=1e-5)
        correction = 1 / (1 - p @ p)
        assert_allclose(model.explained_variance_, correction * (p @ scores**2), rtol=1e-5)
        total = correction * p @ np.sum((X - model.mean_) ** 2, axis=1)
        assert_allclose(
            model.explained_variance_ratio_, model.explained_variance_ / total, rtol=1e-5
        )
        assert np.all(np.diff(model.explained_variance_) < 0)
        assert_allclose(model.singular_values_**2, 149 * model.explained_variance_, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(20, 4), (6, 12), (100, 80)])
def test_no_number_means_all_components(method, shape, rng):
    X = rng.normal(size=shape)
    model = method(None).fit(X)
    assert model.n_components_ == min(shape)
    assert_allclose(model.components_ @ model.components_.T, np.eye(min(shape)), atol=1e-10)
    kept = model.weights_ > 0  # PCA-AN leaves samples out, and then the others span less
    assert kept.all() or method is PCAAN
    assert_allclose(model.reconstruct(X)[kept], X[kept], atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_too_many_components_are_refused_with_the_largest_number(method, rng):
    with pytest.raises(
        ValueError, match=r"n_components=7 is more .* \(6, 9\), so choose at most 6"
    ):
        method(7).fit(rng.normal(size=(6, 9)))


# Tight enough that what is left is rounding; adaptive weights are compared at their fixed point.
SETTLED = {
    "PCA-OM": PCAOM(3, tol=1e-13, max_iter=1000),
    "R1-PCA": R1PCA(3, center="geometric_median", tol=1e-13, max_iter=1000),
    "R1-PCA, l1": R1PCA(3, loss="l1", tol=1e-13, max_iter=1000),
    "PCA-AN": PCAAN(3, tol=1e-13, max_iter=1000),
    "EPCA": EPCA(3, max_weight=0.5, tol=1e-13, max_iter=1000),
    # The threshold is a quantile at the start, and the robust start is drawn by sample number.
    "capped": ReweightedPCA(3, loss="capped", init="pca", tol=1e-13, max_iter=1000),
}


def check_same_subspace(model, expected, mean, components):
    assert_allclose(model.weights_, expected.weights_, atol=1e-5 / 150)
    assert_allclose(model.mean_, mean, atol=1e-4, rtol=1e-5)
    assert subspace_distance(model.components_, components) < 1e-5
    assert model.n_active_ == expected.n_active_


@pytest.mark.parametrize("method", SETTLED)
def test_rotating_the_data_rotates_the_components(method, rng):
    X, R = settled_data(rng), random_rotation(rng, 12)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(X @ R)
    check_same_subspace(model, expected, expected.mean_ @ R, expected.components_ @ R)
    assert model.objective_[-1] == pytest.approx(expected.objective_[-1], rel=1e-9)


@pytest.mark.parametrize("method", SETTLED)
def test_shifting_the_data_moves_the_mean_alone(method, rng):
    X, shift = settled_data(rng), 100 * rng.normal(size=12)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(X + shift)
    check_same_subspace(model, expected, expected.mean_ + shift, expected.components_)
    assert_allclose(model.components_, expected.components_, atol=1e-5)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
@pytest.mark.parametrize("method", SETTLED)
def test_scaling_the_data_scales_the_mean_alone(method, factor, rng):
    X = settled_data(rng)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(factor * X)
    check_same_subspace(model, expected, factor * expected.mean_, expected.components_)
    assert_allclose(model.explained_variance_, factor**2 * expected.explained_variance_, rtol=1e-5)
    if method == "EPCA":
        assert model.sigma_ == pytest.approx(factor * expected.sigma_, rel=1e-9)


def test_the_gamma_of_pcaan_scales_with_the_square_of_the_data(rng):
    X = settled_data(rng)
    expected = PCAAN(3, gamma=500.0, tol=1e-14).fit(X)
    model = PCAAN(3, gamma=500.0 * 49, tol=1e-14).fit(7 * X)
    assert 0 < np.count_nonzero(expected.weights_) < 150
    check_same_subspace(model, expected, 7 * expected.mean_, expected.components_)


@pytest.mark.parametrize("method", SETTLED)
def test_shuffling_the_samples_shuffles_the_weights_alone(method, rng):
    X, order = settled_data(rng), rng.permutation(150)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(X[order])
    assert_allclose(model.weights_, expected.weights_[order], atol=1e-5 / 150)
    assert_allclose(model.mean_, expected.mean_, atol=1e-5)
    assert_allclose(model.components_, expected.components_, atol=1e-5)


@pytest.mark.parametrize("method", ["PCA-OM", "R1-PCA", "R1-PCA, l1", "capped"])
def test_doubling_every_sample_changes_nothing(method, rng):
    X = settled_data(rng)
    expected = clone(SETTLED[method]).fit(X)
    # The quantile of a doubled sample is another one, so the capped loss is given the number.
    model = clone(SETTLED[method])
    if method == "capped":
        model.set_params(loss=expected.loss_)
    model.fit(np.vstack([X, X]))
    assert_allclose(model.weights_, np.tile(expected.weights_, 2) / 2, atol=1e-5 / 150)
    assert subspace_distance(model.components_, expected.components_) < 1e-5
