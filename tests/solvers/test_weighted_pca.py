"""Views of second moments: what single precision may decide, and what it must not."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from robustpca import EPCA, PCAAN, PCAOM, ReweightedPCA
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance
from robustpca.parts.losses import CauchyLoss, L21Loss, SquaredLoss
from robustpca.parts.weightings import AdaptiveNeighbors, Uniform
from robustpca.solvers import weighted_pca as module
from robustpca.solvers.weighted_pca import Complement, WeightedPCA


def gapless(rng, n=1500, d=120):
    """Rows whose variances fall without a gap, about a centre that is not zero."""
    X = rng.normal(size=(n, d)) * (30 / np.arange(1, d + 1)) + 5
    return X @ np.linalg.qr(rng.normal(size=(d, d)))[0]


def least_sum(X, weights, n_components):
    """Least weighted sum of squared distances to a subspace."""
    Z = X - weights @ X / weights.sum()
    return np.linalg.eigvalsh(Z.T @ (weights[:, None] * Z))[:-n_components].sum()


# Single precision chooses the subspace only: sums differ by the squares of its errors.
ROUGH = 1e-9


def test_plain_pca_has_the_centre_and_the_least_sum_to_more_than_single_precision(rng):
    X = gapless(rng)
    model = WeightedPCA(ArrayRows(X), 20)
    assert model.rough
    assert_allclose(model.subspace()[0], X.mean(axis=0), atol=1e-12)
    assert model.residuals().sum() == pytest.approx(least_sum(X, np.ones(1500), 20), rel=ROUGH)


def test_a_view_of_second_moments_leads_to_the_least_weighted_sum(rng):
    X, weights = gapless(rng), rng.random(1500) ** 4
    model = WeightedPCA(ArrayRows(X), 20)
    least = least_sum(X, weights, 20)
    model.fit(weights)
    excesses = [model.lost / least - 1]
    while model.expand(weights, ROUGH * least):
        promised, before = model.promised, model.lost
        model.fit(weights)
        # The moments of equal weights tell well what these weights have to gain.
        assert before - model.lost == pytest.approx(promised, rel=0.3)
        excesses.append(model.lost / least - 1)
    assert excesses[0] > 1e-3
    assert len(excesses) <= 7
    # There is nothing left to gain, and looking for it has changed nothing.
    assert weights @ model.residuals() == pytest.approx(least, rel=3 * ROUGH)
    assert weights @ model.residuals() == pytest.approx(model.lost, rel=1e-12)


def test_the_sketch_of_a_flat_spectrum_gives_way_to_a_view_of_second_moments(rng):
    X, uniform = rng.normal(size=(2500, 150)), np.ones(2500)
    model = WeightedPCA(ArrayRows(X), 2)
    assert model.exact
    least, found = least_sum(X, uniform, 2), model.residuals().sum()
    assert found == pytest.approx(least, rel=ROUGH)
    # There is nothing left to gain, and looking for it changes nothing.
    assert not model.expand(uniform, ROUGH * least)
    assert model.residuals().sum() == found


def test_what_a_view_lacks_is_found_to_first_order_and_its_gain_to_second(rng):
    values = np.r_[9.0, 7.0, 5.0, 2.0, 1.0, 0.5]
    A = np.diag(values)
    change = rng.normal(size=(6, 6))
    moved = A + 1e-4 * (change + change.T)
    # The view holds the first three axes, of which the first two are the components.
    images = np.zeros((6, 2))
    images[3:] = moved[3:, :2]
    complement = Complement(values[3:], np.eye(6)[:, 3:], values[3:].sum())
    found = complement.corrections(images, values[:2], values[3:].sum())
    wanted = np.linalg.eigh(moved)[1][:, ::-1][:, :2]
    wanted = wanted / np.diag(wanted)
    assert_allclose(found[3:], wanted[3:], rtol=1e-3, atol=1e-8)
    # Other units of the weights change nothing.
    scaled = complement.corrections(5 * images, 5 * values[:2], 5 * values[3:].sum())
    assert_allclose(scaled, found, rtol=1e-12)


def test_nothing_is_corrected_where_nothing_is_known_behind_a_view(rng):
    images, levels = rng.normal(size=(6, 2)), np.r_[3.0, 2.0]
    # The moments had nothing behind the view, and later weights have something there.
    complement = Complement(np.zeros(3), np.eye(6)[:, 3:], 0.0)
    assert_allclose(complement.corrections(images, levels, 1e10), images / levels)


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_of_many_features_keep_a_share(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 1024)) * (10 / np.arange(1, 1025))
    X[:8] += rng.normal(size=(8, 1024))
    model = PCAAN(0.9).fit(X)
    # The half of the rows that is trusted varies along fewer directions than there are axes.
    assert model.n_components_ < 40
    assert model.explained_variance_ratio_.sum() >= 0.9 * (1 - 1e-6)


@pytest.mark.parametrize("size", [1e-30, 1e25, 1e60])
def test_units_that_single_precision_cannot_hold_are_left_to_double_precision(size, rng):
    X = gapless(rng)
    model = WeightedPCA(ArrayRows(size * X), 20)
    assert not model.rough
    assert subspace_distance(model.subspace()[1], PCA(20).fit(X).components_) < 1e-8


def test_what_is_lost_beside_large_variances_is_left_to_double_precision(rng):
    X = gapless(rng)
    X[:, :20] *= 1e4
    model = WeightedPCA(ArrayRows(X), 20)
    assert not model.rough
    assert subspace_distance(model.subspace()[1], PCA(20).fit(X).components_) < 1e-8


def test_fits_without_a_gap_end_at_the_objective_of_a_tight_one(rng):
    X = gapless(rng)
    X[:100] += 3 * rng.normal(size=(100, 120))
    tight = PCAOM(20, tol=1e-13, max_iter=1000).fit(X)
    model = PCAOM(20).fit(X)
    assert tight.objective_[-1] <= model.objective_[-1] <= (1 + 1e-6) * tight.objective_[-1]
    assert np.all(np.diff(model.objective_) <= 1e-10 * model.objective_[-1])
    sigma = ReweightedPCA(20, loss="huber").fit(X)
    assert np.all(np.diff(sigma.objective_) <= 1e-10 * sigma.objective_[-1])


PARTS = {
    "distances": (L21Loss(), Uniform()),
    "cauchy": (CauchyLoss(20.0), Uniform()),
    "neighbours": (SquaredLoss(), AdaptiveNeighbors(gamma=1e4)),
}


@pytest.mark.parametrize("parts", PARTS)
def test_a_fit_on_a_copy_in_single_precision_ends_like_one_in_double_precision(parts, rng):
    X = gapless(rng) + 1e4 * rng.normal(size=120)
    X[:100] += 3 * rng.normal(size=(100, 120))
    loss, weighting = PARTS[parts]
    method = partial(ReweightedPCA, 20, loss=loss, weighting=weighting, init="pca")
    single, double = method(tol=1e-7).fit(X), method(tol=1e-11).fit(X)
    assert np.all(np.diff(single.objective_) <= 1e-9 * single.objective_[-1])
    assert double.objective_[-1] == pytest.approx(single.objective_[-1], rel=1e-6)
    assert subspace_distance(single.components_, double.components_) < 1e-2
    assert single.components_.dtype == np.float64
    assert_allclose(single.components_ @ single.components_.T, np.eye(20), atol=1e-12)
    # What it says of its own rows is what it found in single precision.
    residuals = np.square(single.orthogonal_distances(X))
    objective = weighting.solve(loss.values(residuals)).objective
    assert single.objective_[-1] == pytest.approx(objective, rel=1e-6)


def test_a_copy_in_single_precision_is_made_only_where_it_serves(rng):
    X = gapless(rng)

    def is_single(X, **settings):
        return WeightedPCA(ArrayRows(X), 20, **settings).view.is_single

    assert is_single(X, tol=1e-7)
    assert not is_single(X)
    assert not is_single(X, tol=1e-9)
    assert not is_single(X, tol=1e-7, power=True)
    assert not is_single(X.astype(np.float32), tol=1e-7)
    assert not is_single(X[:, :60], tol=1e-7)  # no view is needed
    for size in (1e-30, 1e25):
        assert not is_single(size * X, tol=1e-7)


def least_rank(X, weights, share):
    """How many components hold a share of the weighted variance, by all of the moments."""
    Z = X - weights @ X / weights.sum()
    values = np.linalg.eigvalsh(Z.T @ (weights[:, None] * Z))[::-1]
    return int(np.argmax(np.cumsum(values) >= share * values.sum())) + 1


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("tol", [0.0, 1e-7])
@pytest.mark.parametrize("most_bytes", [1 << 30, 1 << 19, 0])
def test_a_share_of_other_weights_is_found_in_a_view_that_did_not_hold_it(
    share, tol, most_bytes, rng, monkeypatch
):
    X = gapless(rng)
    # Nearly all of the variance is that of two directions of few rows, which weigh nothing then.
    X[:30] += 1e3 * rng.normal(size=(30, 2)) @ rng.normal(size=(2, 120))
    weights = np.r_[np.zeros(30), rng.random(1470)]
    monkeypatch.setattr(module, "VIEW_BYTES", most_bytes)
    model = WeightedPCA(ArrayRows(X), 1, share=share, tol=tol)
    assert model.n_components == (1 if most_bytes == 0 else least_rank(X, np.ones(1500), share))
    model.fit(weights)
    kept = model.n_components
    rank = model.rank_for(share)
    assert model.n_components == kept
    # Axes of a view that were chosen for other weights hold a little less.
    assert least_rank(X, weights, share) <= rank <= 1.1 * least_rank(X, weights, share)
    model.n_components = rank
    while model.expand(weights, 1e-6 * model.lost):
        model.fit(weights)
    assert model.rank_for(share) == least_rank(X, weights, share)
    found = weights @ model.residuals()
    assert found == pytest.approx(least_sum(X, weights, rank), rel=1e-5)


@pytest.mark.parametrize("method", [PCAAN, EPCA, PCAOM])
def test_a_share_of_real_size_takes_few_passes_over_all_features(method, rng, monkeypatch):
    X, widths = gapless(rng, 2000, 300), []
    X[:100] += 3 * rng.normal(size=(100, 300))
    genuine = WeightedPCA.fit

    def fit(self, weights):
        genuine(self, weights)
        widths.append(len(self.values))

    monkeypatch.setattr(WeightedPCA, "fit", fit)
    model = method(0.9).fit(X)
    assert max(widths) < 100
    weights = model.sample_weights_
    assert model.n_components_ == least_rank(X, weights, 0.9)
    assert model.explained_variance_ratio_.sum() == pytest.approx(0.9, abs=0.02)


def test_rows_in_the_subspace_are_seen_in_double_precision(rng):
    basis = np.linalg.qr(rng.normal(size=(120, 20)))[0]
    X = rng.normal(size=(1500, 20)) @ (basis * (30 / np.arange(1, 21))).T + 7
    X[:700] += rng.normal(size=(700, 120))
    weights = np.r_[np.zeros(700), np.ones(800)]
    left = []
    for tol in (0.0, 1e-7):
        model = WeightedPCA(ArrayRows(X), 20, tol=tol)
        assert model.view.is_single == (tol > 0)
        model.fit(weights)
        while model.residuals().any() and model.expand(weights, 0.0):
            model.fit(weights)
        assert not model.view.is_single
        assert subspace_distance(model.subspace()[1], basis.T) < 1e-6
        left.append(weights @ model.residuals())
    # A copy to begin with costs no digits in the end.
    assert left[1] == pytest.approx(left[0], rel=0.1)
