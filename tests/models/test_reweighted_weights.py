"""Weights of the reweighted chapter: adaptive neighbours, and those with a cap."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reweighting import (
    METHODS,
    SHAPES,
    degrees,
    noisy_planted,
    random_rotation,
    simplex_projection,
    square_residuals,
    weighted_pca,
)
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from robustpca import EPCA, PCAAN, PCAOM, R1PCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance
from robustpca.parts.weightings import CoRobust


@pytest.mark.parametrize("shape", SHAPES)
def test_pcaan_ends_at_a_fixed_point(shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    model = PCAAN(c, n_active=0.8, tol=1e-13, max_iter=2000).fit(X)
    t = model.orthogonal_distances(X) ** 2
    k = int(np.ceil(0.8 * len(X)))
    ordered = np.sort(t)
    assert model.gamma_ == pytest.approx(np.sum(ordered[k] - ordered[:k]) / 2, rel=1e-6)
    wanted = simplex_projection(-t / (2 * model.gamma_))
    assert_allclose(model.weights_, wanted, atol=1e-5 / len(X))
    assert model.n_active_ == k == np.count_nonzero(model.weights_)
    mean, components = weighted_pca(X, c, model.weights_)
    assert subspace_distance(model.components_, components) < 1e-6
    assert_allclose(model.mean_, mean, atol=1e-6 * np.abs(X).max())
    penalty = model.gamma_ * model.weights_ @ model.weights_
    assert model.objective_[-1] == pytest.approx(model.weights_ @ t + penalty, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_pcaan_with_a_fixed_gamma_never_rises_and_ends_at_a_fixed_point(shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    model = PCAAN(c, gamma=1e4, init="pca", tol=1e-14, max_iter=2000).fit(X)
    assert model.gamma_ == 1e4
    assert model.n_iter_ > 3
    assert np.all(np.diff(model.objective_) <= 1e-12 * model.objective_[:-1])
    t = model.orthogonal_distances(X) ** 2
    assert_allclose(model.weights_, simplex_projection(-t / 2e4), atol=1e-6 / len(X))
    mean, components = weighted_pca(X, c, model.weights_)
    assert subspace_distance(model.components_, components) < 1e-5
    assert_allclose(model.mean_, mean, atol=1e-5 * np.abs(X).max())


@pytest.mark.parametrize("seed", range(5))
def test_pcaan_has_at_most_n_active_weights_whatever_the_data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 6))
    X[40:] = X[:10]
    for n_active in (5, 20, 49):
        model = PCAAN(2, n_active=n_active, max_iter=1000).fit(X)
        # A sample and its copy tie, and a tie at the border loses both: one less is possible.
        assert n_active - 1 <= model.n_active_ <= n_active
        assert model.weights_.min() == 0
        assert model.weights_.sum() == pytest.approx(1, rel=1e-12)


def gammas_of_free_passes(X, n_components, n_active, n_passes):
    """What gamma is at the start and after each pass as long as it may move."""
    ahead, last, gammas = np.ones(len(X)), None, []
    for _ in range(n_passes + 1):
        t = square_residuals(X, *weighted_pca(X, n_components, ahead))
        ordered = np.sort(t)
        gammas.append(np.sum(ordered[n_active] - ordered[:n_active]) / 2)
        weights = simplex_projection(-t / (2 * gammas[-1]))
        # Weights go on by two fifths of their change, but lose no more than half of themselves.
        ahead = weights if last is None else np.maximum(1.4 * weights - 0.4 * last, weights / 2)
        last = weights
    return np.array(gammas)


@pytest.mark.parametrize(("max_iter", "frozen_at"), [(20, 3), (28, 4), (40, 6)])
def test_pcaan_freezes_gamma_after_fifteen_percent_of_the_passes(max_iter, frozen_at, rng):
    X = rng.normal(size=(60, 10))
    gammas = gammas_of_free_passes(X, 3, 45, frozen_at + 1)
    # The one that is held can be told from those of the passes before and after it.
    assert (
        np.abs(gammas / gammas[frozen_at] - 1).min(initial=1, where=gammas != gammas[frozen_at])
        > 1e-4
    )
    model = PCAAN(3, init="pca", max_iter=max_iter, tol=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert model.n_iter_ > frozen_at + 1
    assert model.gamma_ == pytest.approx(gammas[frozen_at], rel=1e-9)
    # Free to move, the objective rises on the way; held, it only falls.
    assert np.any(np.diff(model.objective_[: frozen_at + 1]) > 1e-6 * model.objective_[0])
    assert np.all(np.diff(model.objective_[frozen_at:]) < 0)
    t = model.orthogonal_distances(X) ** 2
    assert_allclose(model.weights_, simplex_projection(-t / (2 * model.gamma_)), atol=1e-8)


def test_pcaan_that_is_frozen_ends_at_the_first_drop_within_its_tolerance(rng):
    X = rng.normal(size=(60, 10))
    model = PCAAN(3, init="pca", max_iter=60, tol=1e-8).fit(X)
    assert model.converged_
    frozen_at = 9
    assert frozen_at < model.n_iter_ < 60
    drops = -np.diff(model.objective_[frozen_at:])
    last = 1e-8 * model.weights_ @ model.orthogonal_distances(X) ** 2
    assert np.all(drops[:-1] > last)
    assert 0 < drops[-1] <= last


@pytest.mark.parametrize("method", METHODS)
def test_a_loop_that_is_cut_short_says_what_to_change(method, rng):
    X = rng.normal(size=(60, 10))
    name = method.__name__
    with pytest.warns(ConvergenceWarning, match=rf"{name} stopped after max_iter=2 .* tol=1.0e-13"):
        model = method(3, max_iter=2, tol=1e-13).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_n_active_is_a_share_or_a_number(rng):
    X = planted_subspace(rng, 100, 8, 2, 20, noise=0.1)[0]
    for share, number in ((0.6, 60), (0.15, 15), (0.999, 100)):
        by_share, by_number = PCAAN(2, n_active=share).fit(X), PCAAN(2, n_active=number).fit(X)
        assert_array_equal(by_share.weights_, by_number.weights_)
        assert by_share.n_active_ == number
    assert PCAAN(2, n_active=1.0).fit(X).n_active_ == 100
    with pytest.raises(ValueError, match=r"n_active=101 must be .* from 1 to 100"):
        PCAAN(2, n_active=101).fit(X)
    for wrong in (0, 0.0, 1.5, -3):
        with pytest.raises(ValueError, match="n_active"):
            PCAAN(2, n_active=wrong).fit(X)


def test_too_few_active_samples_are_warned_about(rng):
    X = rng.normal(size=(30, 6))
    with pytest.warns(UserWarning, match="Only 3 samples are active, too few to fix 3 components"):
        model = PCAAN(3, n_active=3).fit(X)
    assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)
    PCAAN(3, n_active=4, max_iter=1000).fit(X)  # enough: no warning, which would be an error here


def test_pcaan_fits_exact_samples_with_gamma_zero_and_equal_weights(rng):
    X, basis, is_outlier = planted_subspace(rng, 100, 12, 3, 20, noise=0.0)
    X[is_outlier] += 0.1 * rng.normal(size=(20, 12))
    model = PCAAN(3, n_active=60).fit(X)
    assert model.gamma_ == 0
    assert_allclose(model.weights_, np.where(is_outlier, 0, 1 / 80), atol=1e-15)
    assert model.objective_[-1] == 0
    assert subspace_distance(model.components_, basis) < 1e-10
    assert model.predict(X)[is_outlier].tolist() == [-1] * 20


@pytest.mark.parametrize("distance", [30.0, 300.0, 3000.0])
def test_weights_that_stand_still_do_not_end_a_fit_before_its_time(distance, rng):
    X, basis, is_outlier = planted_subspace(rng, 1000, 200, 5, 200, noise=1.0, distance=distance)
    # The farther the first sample left out, the less the weights feel the subspace.
    model = PCAAN(5, n_active=800).fit(X)
    assert_array_equal(model.weights_[is_outlier], 0)
    wanted = weighted_pca(X, 5, model.weights_)[1]
    assert subspace_distance(model.components_, wanted) < 2e-3
    # A third of a degree is what weights other than equal ones may cost.
    clean = PCA(5).fit(X[~is_outlier]).components_
    assert degrees(model.components_, basis) < degrees(clean, basis) + 0.3


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_pcaan_survives_scattered_and_clustered_outliers(seed, clustered):
    X, basis, is_outlier = planted_subspace(
        np.random.default_rng(seed), 1000, 200, 5, 200, noise=0.1, clustered=clustered
    )
    model = PCAAN(5).fit(X)
    # The noise alone moves the subspace by 1.7 degrees: PCA of the clean samples has the same.
    assert degrees(model.components_, basis) < 2
    assert_array_equal(model.weights_[is_outlier], 0)
    assert degrees(PCA(5).fit(X).components_, basis) > 10
    assert np.mean(model.predict(X)[is_outlier] == -1) == 1


@pytest.mark.parametrize("distance", [3.0, 4.0, 6.0])
@pytest.mark.parametrize("seed", range(5))
def test_pcaan_survives_a_cloud_nearer_to_the_centre_than_the_rows_spread(seed, distance):
    X, basis, is_outlier = planted_subspace(
        np.random.default_rng(seed), 500, 30, 4, 75, noise=0.3, clustered=True, distance=distance
    )
    model = PCAAN(4).fit(X)
    assert degrees(model.components_, basis) < 10
    assert_array_equal(model.weights_[is_outlier], 0)


@pytest.mark.filterwarnings("ignore:A group of outliers")
@pytest.mark.parametrize("seed", range(10))
def test_pcaan_started_at_pca_is_lost_among_clustered_outliers(seed):
    X, basis, _ = planted_subspace(
        np.random.default_rng(seed), 1000, 200, 5, 200, noise=0.1, clustered=True
    )
    # This is the start of the paper; half of these fits do not settle in 100 passes either.
    model = PCAAN(5, init="pca", tol=1e-4).fit(X)
    assert degrees(model.components_, basis) > 45


@pytest.mark.parametrize(("n", "max_weight"), [(20, 0.5), (100, 0.5), (100, None), (400, None)])
def test_epca_weights_are_optimal_for_its_residuals(n, max_weight, rng):
    X = rng.normal(size=(n, 6)) * [5.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    model = EPCA(2, max_weight=max_weight, max_iter=1000).fit(X)
    f = model.loss_.values(model.orthogonal_distances(X) ** 2)
    w = model.weights_
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, rel=1e-12)
    assert_allclose(model.direct_weights_, 1 / (1 - w), rtol=1e-12)
    assert model.objective_[-1] == pytest.approx(np.sum(f / (1 - w)), rel=1e-9)
    assert f.sum() * (1 - 1e-12) <= model.objective_[-1] <= n / (n - 1) * f.sum() * (1 + 1e-12)
    # The slopes f / (1 - w)^2 are level where the weights are free, higher where they are 0 and
    # lower where they are held by the bound.
    bounded = w >= (0.5 - 1e-9 if max_weight else 2)
    free = (w > 0) & ~bounded
    slopes = f / (1 - w) ** 2
    assert free.sum() >= 1
    level = slopes[free].mean()
    assert_allclose(slopes[free], level, rtol=1e-6)
    assert np.all(slopes[w == 0] >= level * (1 - 1e-6))
    assert np.all(slopes[bounded] <= level * (1 + 1e-6))
    assert model.n_active_ == np.count_nonzero(w) >= 2
    wanted = model.direct_weights_ * model.loss_.weights(model.orthogonal_distances(X) ** 2)
    assert_allclose(model.sample_weights_, wanted / wanted.sum(), rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_sigma_is_a_quarter_of_the_median_distance_from_the_subspace_of_pca_om(shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    start = np.median(PCAOM(c).fit(X).orthogonal_distances(X))
    # The sum of distances is within 1e-2 of the least one, so distances are good to its root.
    assert EPCA(c).fit(X).sigma_ == pytest.approx(start / 4, rel=0.1)
    assert EPCA(c, sigma=0.7).fit(X).sigma_ == 0.7


@pytest.mark.parametrize("method", [EPCA, R1PCA])
def test_rules_about_distances_stand_a_third_of_gross_outliers(method):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, basis, _ = planted_subspace(rng, 1000, 100, 5, 300, noise=0.3, distance=30.0)
        # Plain PCA is 40 to 75 degrees off, and distances from it are no measure of anything.
        assert degrees(method(5).fit(X).components_, basis) < 7


def test_sigma_of_a_robust_start_does_not_depend_on_the_number_of_features(rng):
    X = planted_subspace(rng, 500, 40, 2, 150, noise=0.001, distance=60.0)[0]
    # The same samples in a space of 100 features: the robust start sees the same picture.
    wide = X @ random_rotation(rng, 100)[:40]
    narrow_sigma = EPCA(2, init="robust").fit(X).sigma_
    wide_sigma = EPCA(2, init="robust").fit(wide).sigma_
    assert wide_sigma == pytest.approx(narrow_sigma, rel=0.5)


def test_no_weight_exceeds_max_weight_where_the_paper_interpolates_a_sample():
    collapsed = 0
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(40, 5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            free = EPCA(2, sigma=0.3).fit(X)
            bounded = EPCA(2, sigma=0.3, max_weight=0.5).fit(X)
        collapsed += free.weights_.max() > 0.99
        assert bounded.weights_.max() <= 0.5 * (1 + 1e-9)
        assert bounded.direct_weights_.max() <= 2 * (1 + 1e-9)
    # Without the bound one sample takes all the weight in about half of the runs.
    assert collapsed >= 3


@pytest.mark.parametrize("gamma", [0.3, 0.8])
@pytest.mark.parametrize("shape", ["few features", "nested views"])
def test_epca_with_an_exponent_below_one_never_rises_and_ends_at_a_fixed_point(shape, gamma):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    model = EPCA(c, gamma=gamma, max_weight=0.5, tol=1e-11).fit(X)
    assert model.n_iter_ > 3
    assert np.all(np.diff(model.objective_) <= 1e-12 * model.objective_[:-1])
    losses = model.loss_.values(model.orthogonal_distances(X) ** 2)
    wanted = CoRobust(0.5, gamma).solve(losses)
    assert model.objective_[-1] == pytest.approx(wanted.objective, rel=1e-9)
    assert_allclose(model.weights_, wanted.weights, atol=1e-4)
    mean, components = weighted_pca(X, c, model.sample_weights_)
    assert subspace_distance(model.components_, components) < 1e-5
    assert_allclose(model.mean_, mean, atol=1e-5 * np.abs(X).max())


def test_epca_with_an_exponent_below_one_finds_a_planted_subspace(rng):
    X, basis, is_outlier = planted_subspace(rng, 200, 30, 3, 40, noise=0.1)
    model = EPCA(3, gamma=0.5, max_weight=0.5).fit(X)
    off, off_plain = (degrees(fit.components_, basis) for fit in (model, PCA(3).fit(X)))
    assert off < 3 < 20 < off_plain
    assert not model.weights_[is_outlier].any()
    assert model.n_active_ <= 10


def test_max_weight_below_an_equal_share_is_refused(rng):
    with pytest.raises(ValueError, match=r"max_weight=0.01 must lie between 1/n_samples = 0.1"):
        EPCA(2, max_weight=0.01).fit(rng.normal(size=(10, 4)))


def test_r1pca_holds_the_centre_it_is_told(rng):
    X = planted_subspace(rng, 100, 8, 2, 20, noise=0.1)[0]
    assert_allclose(R1PCA(2).fit(X).mean_, X.mean(axis=0), rtol=1e-12)
    assert_array_equal(R1PCA(2, center="zero").fit(X).mean_, 0)
    median = R1PCA(2, center="geometric_median").fit(X).mean_
    assert np.linalg.norm(median - X.mean(axis=0)) > 0.1
