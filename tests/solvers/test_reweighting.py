"""The reweighting loop by itself: weights that go further than asked for."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows
from robustpca.parts.losses import CauchyLoss, L21Loss, SquaredLoss
from robustpca.parts.weightings import AdaptiveNeighbors, CoRobust, Uniform
from robustpca.solvers.reweighting import reweight
from robustpca.solvers.weighted_pca import WeightedPCA

PARTS = [
    (L21Loss(), Uniform()),
    (CauchyLoss(2.0), Uniform()),
    (SquaredLoss(), CoRobust(0.5)),
    (SquaredLoss(), AdaptiveNeighbors(gamma=5000.0)),
]


class Recorded(WeightedPCA):
    """Keeps the weights that it was fitted with."""

    def __init__(self, *args, **kwargs):
        self.asked = []
        super().__init__(*args, **kwargs)

    def fit(self, weights):
        self.asked.append(weights.copy())
        super().fit(weights)


@pytest.fixture
def spoiled(rng):
    """Data with a slowly falling spectrum, and some rows that are outliers."""
    X = rng.normal(size=(300, 40)) * (8 / np.arange(1, 41) ** 0.5)
    X[:30] *= 4
    return X


def loop(X, parts, momentum, tol=1e-10, max_iter=500):
    model = Recorded(ArrayRows(X), 4)
    loss, weighting = parts
    loss = loss.tuned(model.residuals(), model.floor)
    result = reweight(model, loss, weighting, tol=tol, max_iter=max_iter, momentum=momentum)
    return model, result


@pytest.mark.parametrize("parts", PARTS)
def test_momentum_takes_no_more_passes_and_ends_at_the_same_objective(parts, spoiled):
    plain, ahead = loop(spoiled, parts, 0.0)[1], loop(spoiled, parts, 0.4)[1]
    assert plain.converged
    assert ahead.converged
    assert ahead.n_iter <= plain.n_iter
    assert ahead.objective[-1] == pytest.approx(plain.objective[-1], rel=1e-8)


@pytest.mark.parametrize("weighting", [AdaptiveNeighbors(gamma=5000.0), AdaptiveNeighbors(0.75)])
def test_momentum_saves_a_quarter_of_many_passes(weighting, spoiled):
    parts = SquaredLoss(), weighting
    plain, ahead = loop(spoiled, parts, 0.0), loop(spoiled, parts, 0.4)
    assert plain[1].n_iter > 20
    assert len(ahead[0].asked) < 0.85 * len(plain[0].asked)
    assert ahead[1].n_iter < 0.75 * plain[1].n_iter


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("momentum", [0.4, 1.0, 30.0])
def test_a_pass_that_is_worse_for_momentum_is_done_again(parts, momentum, spoiled):
    model, result = loop(spoiled, parts, momentum)
    assert np.all(np.diff(result.objective) <= 1e-12 * abs(result.objective[0]))
    # The uniform fit of a new model comes first.
    again = len(model.asked) - 1 - result.n_iter
    assert again >= 0
    if momentum == 30.0:
        assert again > 0
        assert result.objective[-1] == pytest.approx(
            loop(spoiled, parts, 0.0)[1].objective[-1], rel=1e-8
        )


def test_momentum_neither_drops_samples_nor_takes_dropped_ones(rng):
    X = planted_subspace(rng, 200, 12, 4, 40, noise=0.5)[0]
    model, result = loop(X, (SquaredLoss(), AdaptiveNeighbors(0.75)), 0.4, tol=1e-6)
    plain, ahead = result.fitted_with, result.weights
    assert np.count_nonzero(ahead) == 150
    assert_array_equal(model.asked[-1], plain)
    for weights in model.asked[1:]:
        assert np.count_nonzero(weights) == 150


@pytest.mark.parametrize("unit", [1e-99, 1e90])
def test_momentum_does_not_depend_on_the_unit_of_weights(unit, spoiled):
    parts = L21Loss(), Uniform()
    here, there = loop(spoiled, parts, 0.4)[1], loop(unit * spoiled, parts, 0.4)[1]
    assert there.n_iter == here.n_iter
    assert there.objective[-1] == pytest.approx(unit * here.objective[-1], rel=1e-9)
