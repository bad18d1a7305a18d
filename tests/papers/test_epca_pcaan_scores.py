"""Scores that ask a fitted model, and those that separate skill from luck."""

from functools import partial
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from sklearn.decomposition import PCA

from robustpca import EPCA, GLRAM, PCAAN, PCAOM, R2DPCA
from robustpca.metrics import clustering_accuracy, subspace_distance
from robustpca.papers.clustering import Clustering, partitions, spread
from robustpca.papers.epca.estimators import LossAt
from robustpca.papers.epca.scores import best_of_tries, loss_value, n_active, share_active
from robustpca.papers.pcaan.estimators import FixedPasses, FullPCA
from robustpca.papers.pcaan.occlusions import occlude_sides
from robustpca.papers.pcaan.scores import error_without_mean, mean_error_observed, seconds_per_pass
from robustpca.papers.scores import largest_rise, passes, seconds_of_fit
from robustpca.parts.losses import L21Loss, SigmaLoss, SquaredLoss


def test_active_samples_are_those_with_a_weight(rng):
    X = rng.normal(size=(40, 6))
    model = PCAAN(2, n_active=30).fit(X)
    assert n_active(model, X, X) == np.count_nonzero(model.weights_) == 30
    assert share_active(model, X, X) == 0.75


def test_time_is_that_of_the_fit_shared_among_its_passes(rng):
    X = rng.normal(size=(40, 6))
    seen = []
    model = PCAOM(2, callback=seen.append).fit(X)
    assert passes(model, X, X) == len(seen) > 1
    assert seconds_of_fit(model, X, X, seconds=3.0) == 3.0
    assert seconds_per_pass(model, X, X, seconds=3.0) == pytest.approx(3.0 / len(seen))


def test_a_reconstruction_without_its_mean_lacks_the_mean(rng):
    X = rng.normal(size=(30, 5)) + np.array([3.0, 0.0, 0.0, 4.0, 0.0])
    model = PCA(2).fit(X)
    # The mean residual is zero, so the mean adds its own squared length and nothing else.
    expected = mean_error_observed(model, X, X) + model.mean_ @ model.mean_
    assert error_without_mean(model, np.zeros_like(X), X) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("loss", "expected"), [(L21Loss(), 3.0), (SigmaLoss(1.0), 4.5), (SquaredLoss(), 9.0)]
)
def test_losses_of_one_number_do_not_know_its_sign(loss, expected):
    for residual in (-3.0, 3.0):
        model = LossAt(loss, residual).fit(np.empty((1, 1)))
        assert loss_value(model, None, None) == pytest.approx(expected)


def test_the_loss_drawn_is_the_loss_that_epca_lowers(rng):
    X = rng.normal(size=(30, 4))
    model = EPCA(2, sigma=0.7).fit(X)
    residual = model.orthogonal_distances(X)[0]
    drawn = LossAt(SigmaLoss(0.7), residual).fit(X).value_
    assert drawn == pytest.approx(model.loss_.values(np.array([residual**2]))[0])


@pytest.fixture
def unclear(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(4, size=40)
    model = PCA(3).fit(X)
    runs = partitions(model, X, 4, 7, 0)
    return model, X, y, [clustering_accuracy(y, run.labels) for run in runs]


@pytest.mark.parametrize("n_tries", [1, 3, 7])
def test_luck_is_the_mean_of_the_best_over_all_draws(unclear, n_tries):
    model, X, y, accuracies = unclear
    assert len(set(accuracies)) > 2
    expected = np.mean([max(draw) for draw in combinations(accuracies, n_tries)])
    take = partial(best_of_tries, n_tries=n_tries)
    found = Clustering(clustering_accuracy, take, n_runs=7)(model, X, X, y, 0)
    assert found == pytest.approx(expected)
    if n_tries == 1:
        assert found == pytest.approx(fmean(accuracies))


def test_spread_is_over_runs(unclear):
    model, X, y, accuracies = unclear
    expected = np.std(accuracies, ddof=1)
    score = Clustering(clustering_accuracy, spread, n_runs=7)
    assert score(model, X, X, y, 0) == pytest.approx(expected)


def test_the_largest_rise_tells_a_fall_from_a_rise(rng):
    X = rng.normal(size=(30, 6))
    model = EPCA(2).fit(X)
    assert largest_rise(model, X, X) <= 0
    model.objective_ = np.array([-4.0, -5.0, -4.5, -6.0])
    assert largest_rise(model, X, X) == 0.125
    model.objective_ = np.array([4.0])
    assert largest_rise(model, X, X) == 0


def test_blocks_with_random_sides_cover_a_quarter_of_some_images_at_least(rng):
    X = rng.uniform(2, 3, size=(40, 80))
    corrupted, mask = occlude_sides(X, (10, 8), samples=0.25, random_state=0)
    areas = mask.mean(axis=1)
    assert np.count_nonzero(areas) == 10
    assert areas[areas > 0].min() >= 0.25
    assert len(set(areas)) > 3
    assert np.array_equal(corrupted[~mask], X[~mask])
    assert not np.any(corrupted[mask] == X[mask])
    assert corrupted.min() >= X.min()
    block = mask[areas > 0][0].reshape(10, 8)
    assert block.sum() == np.prod([np.ptp(np.flatnonzero(block.any(axis=i))) + 1 for i in (0, 1)])


class TestFixedPasses:
    def images(self, rng):
        X = 0.1 * rng.normal(size=(150, 256))
        X += rng.normal(size=(150, 8)) @ rng.normal(size=(8, 256))
        X[:15] = 10 * rng.normal(size=(15, 256))
        return X

    @pytest.mark.parametrize("method", ["PCA-AN", "RPCA-OM", "R2DPCA", "GLRAM"])
    @pytest.mark.parametrize("n_passes", [1, 25])
    def test_no_method_stops_before_its_last_pass(self, method, n_passes, rng):
        model = FixedPasses(method, n_passes, image_shape=(16, 16)).fit(self.images(rng))
        assert model.n_iter_ == n_passes
        assert len(model.objective_) == n_passes + 1

    @pytest.mark.parametrize(
        ("method", "ours"),
        [
            ("RPCA-OM", PCAOM(90, tol=1e-7)),
            ("R2DPCA", R2DPCA((9, 10), image_shape=(16, 16), tol=1e-10)),
            ("GLRAM", GLRAM((9, 10), image_shape=(16, 16), tol=1e-10)),
        ],
    )
    def test_passes_lead_where_our_own_methods_end(self, method, ours, rng):
        X = self.images(rng)
        model = FixedPasses(method, 120, image_shape=(16, 16)).fit(X)
        assert model.objective_[-1] == pytest.approx(ours.fit(X).objective_[-1], rel=1e-3)

    def test_samples_that_do_not_count_take_no_part(self, rng):
        X, weights = self.images(rng), np.r_[np.zeros(15), np.ones(135)]
        model = FullPCA(X, 3)
        model.fit(weights)
        plain = PCA(3, svd_solver="full").fit(X[15:])
        assert subspace_distance(model.basis.T, plain.components_) < 1e-9
        np.testing.assert_allclose(model.mean, plain.mean_, atol=1e-12)
