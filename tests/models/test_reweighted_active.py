"""PCA-AN finds how many samples are no gross outliers, unless it is told."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from robustpca import PCAAN, ReweightedPCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance
from robustpca.parts.weightings import AdaptiveNeighbors

# Rows, features and components, and angles in degrees that fits to clean rows have at most.
SHAPES = {(100, 20, 3): 12.0, (300, 20, 3): 6.0, (1000, 100, 5): 5.5, (500, 8, 2): 3.0}


def case(shape, share, seed, *, clustered=False, noise=0.3):
    n, d, c = shape
    rng = np.random.default_rng(seed)
    n_outliers = int(share * n)
    return planted_subspace(rng, n, d, c, n_outliers, noise=noise, clustered=clustered)


def off(model, basis):
    return np.degrees(np.arcsin(min(1.0, subspace_distance(model.components_, basis))))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("share", "clustered"), [(0.28, False), (0.3, True), (0.4, False), (0.4, True)]
)
def test_more_than_a_quarter_of_gross_outliers_is_left_out(shape, seed, share, clustered):
    X, basis, is_outlier = case(shape, share, seed, clustered=clustered)
    model = PCAAN(shape[2]).fit(X)
    assert off(model, basis) < SHAPES[shape]
    assert not model.weights_[is_outlier].any()
    # All others count, but for few.
    assert model.n_active_ > 0.9 * np.count_nonzero(~is_outlier)
    flagged = model.predict(X) == -1
    assert flagged[is_outlier].all()
    assert flagged[~is_outlier].mean() < 0.1


def test_with_a_quarter_active_outliers_would_have_turned_the_subspace():
    X, basis, is_outlier = case((300, 20, 3), 0.3, 0)
    told = PCAAN(3, n_active=0.75).fit(X)
    assert told.n_active_ == 225
    assert told.weights_[is_outlier].any()
    assert off(told, basis) > 20


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("n_components", [3, 0.9])
def test_three_quarters_are_active_where_fewer_are_outliers(share, n_components):
    X, _, _ = case((300, 20, 3), share, 1)
    model, told = PCAAN(n_components).fit(X), PCAAN(n_components, n_active=0.75).fit(X)
    assert model.n_active == "auto"
    assert_array_equal(model.weights_, told.weights_)
    assert_array_equal(model.components_, told.components_)
    assert model.n_iter_ == told.n_iter_


@pytest.mark.parametrize("dof", [1.0, 2.0, 5.0])
def test_heavy_tails_are_no_gross_outliers(dof):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10)) / np.sqrt(rng.gamma(dof / 2, 2 / dof, (400, 1)))
    assert PCAAN(2).fit(X).n_active_ == 300


def test_a_share_of_the_variance_is_that_of_the_rows_that_are_left():
    X, basis, is_outlier = case((300, 20, 3), 0.4, 2, noise=0.05)
    model = PCAAN().fit(X)
    assert model.n_components_ <= 3
    assert not model.weights_[is_outlier].any()
    assert subspace_distance(model.components_, basis[: model.n_components_]) < 1.0
    # What it keeps lies in the planted subspace.
    outside = model.components_ - model.components_ @ basis.T @ basis
    assert np.linalg.norm(outside, 2) < 0.05


def test_a_start_that_few_rows_decide_on_says_nothing():
    # Half of the rows are fitted by eight components but for little: all others are far from that.
    X = np.random.default_rng(0).normal(size=(20, 30))
    assert PCAAN(8).fit(X).n_active_ == 15


def test_equal_rows_say_nothing():
    rng = np.random.default_rng(0)
    X = np.zeros((200, 10))
    X[:80] = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 10)) + 0.1 * rng.normal(size=(80, 10))
    assert PCAAN(2).fit(X).n_active_ > 120


def test_the_parts_by_themselves_do_the_same():
    X, basis, is_outlier = case((300, 20, 3), 0.4, 0)
    by_name = ReweightedPCA(3, loss="squared", weighting="adaptive").fit(X)
    assert off(by_name, basis) < 6
    assert not by_name.sample_weights_[is_outlier].any()


class Wavering(AdaptiveNeighbors):
    """Asks for another number of samples each time."""

    asked = 0

    def tuned(self, residuals):
        Wavering.asked += 1
        return AdaptiveNeighbors(200 + Wavering.asked)


def test_weightings_that_waver_come_to_an_end(monkeypatch):
    monkeypatch.setattr(Wavering, "asked", 0)
    X, _, _ = case((300, 20, 3), 0.1, 0)
    model = ReweightedPCA(3, loss="squared", weighting=Wavering()).fit(X)
    assert Wavering.asked == 3
    assert model.n_active_ == 203
