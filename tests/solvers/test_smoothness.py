"""Weights of graphs that are chosen from the data, by entries that were spoiled on purpose."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from robustpca import FRPCAG, RPCAG, smoothness_path
from robustpca.parts.entry_losses import L1Norm
from robustpca.parts.graphs import adjacency_of, laplacian
from robustpca.solvers.smoothness import Outcome, Probes, best_of, pursuit_smoothness


def clusters(seed, mean=0.0, noise=0.05):
    """Five clusters, a tenth of the entries wrong, and the truth."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(rng.normal(size=(5, 60)), 40, axis=0) + mean
    X = truth + noise * rng.normal(size=truth.shape)
    wrong = rng.random(X.shape) < 0.1
    X[wrong] += rng.choice([-1, 1], size=np.count_nonzero(wrong)) * 5
    return X, truth


def digits(seed, share=0.1):
    """Images of digits, some of the pixels replaced by any value, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(load_digits().data)[:400]
    wrong = rng.random(truth.shape) < share
    return np.where(wrong, rng.uniform(0, 16, size=truth.shape), truth), truth


def error(model, X, truth):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = clone(model).fit(X)
    return np.linalg.norm(fitted.low_rank_ - truth) / np.linalg.norm(truth)


@pytest.mark.parametrize("mean", [0.0, 10.0])
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_rpcag_by_default_is_as_good_as_without_a_graph(seed, mean):
    X, truth = clusters(seed, mean)
    assert error(RPCAG(), X, truth) <= 1.1 * error(RPCAG(smoothness=0.0), X, truth)
    assert error(RPCAG(smoothness=1.0), X, truth) > 2 * error(RPCAG(), X, truth)


@pytest.mark.filterwarnings("ignore:RPCAG. low_rank_ has full rank")
@pytest.mark.parametrize("seed", [0, 1])
def test_rpcag_uses_the_graph_where_the_sparse_part_alone_would_take_too_little(seed):
    X, truth = digits(seed)
    model = RPCAG(sparsity=3 / np.sqrt(len(X)), center="median", tol=1e-4)
    assert clone(model).fit(X).smoothness_ > 0
    assert error(model, X, truth) < 0.9 * error(model.set_params(smoothness=0), X, truth)


def test_a_graph_is_compared_with_what_comes_without_it():
    X, truth = digits(0)
    middle = np.median(X, axis=0)
    given = X - middle, L1Norm(3 / np.sqrt(len(X))), laplacian(adjacency_of(None, X, 10))
    size = np.sqrt(np.mean(given[0] ** 2))
    # The convex problem is worse without the graph; a fit that then follows may be better.
    assert pursuit_smoothness(*given, size, lambda _, low_rank: low_rank.dense()) > 0
    assert pursuit_smoothness(*given, size, lambda *_: truth - middle) == 0


@pytest.mark.parametrize("make", [clusters, digits])
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_frpcag_is_near_the_best_of_a_grid_and_not_worse_than_pca(make, seed):
    X, truth = make(seed)
    levels = [0.0, 0.15, 0.3, 0.6, 1.2]
    best = min(
        error(FRPCAG(sample_smoothness=one, feature_smoothness=two, tol=1e-3), X, truth)
        for one in levels
        for two in levels
    )
    found = error(FRPCAG(), X, truth)
    assert found <= 1.15 * best
    few = PCA(10).fit(X)
    plain = np.linalg.norm(few.inverse_transform(few.transform(X)) - truth)
    assert found <= 1.1 * plain / np.linalg.norm(truth)


def test_a_given_weight_stays_and_the_other_is_chosen():
    X = digits(0)[0]
    model = FRPCAG(sample_smoothness=0.5).fit(X)
    assert model.sample_smoothness_ == pytest.approx(0.5, rel=0.05)
    assert model.feature_smoothness_ != pytest.approx(1.0)
    assert (model.sample_smoothness, model.feature_smoothness) == (0.5, "auto")


@pytest.mark.parametrize("model", [RPCAG(center="median"), FRPCAG(standardize=False)])
def test_the_choice_does_not_depend_on_the_unit(model):
    X = clusters(0)[0]
    fits = [clone(model).fit(factor * X).low_rank_ / factor for factor in (1.0, 1e-6, 1e6)]
    np.testing.assert_allclose(fits[1], fits[0], atol=1e-3)
    np.testing.assert_allclose(fits[2], fits[0], atol=1e-3)


@pytest.mark.parametrize("model", [RPCAG(), FRPCAG(), FRPCAG(normalized=False, loss="huber")])
def test_missing_entries_and_single_precision_are_fine(model):
    X = clusters(0)[0].astype(np.float32)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    first, again = clone(model).fit(X), clone(model).fit(X)
    assert first.low_rank_.dtype == np.float32
    np.testing.assert_array_equal(first.low_rank_, again.low_rank_)


def test_probes_are_spoiled_and_the_rest_stays():
    X = clusters(0)[0]
    X[3, :10] = np.nan
    probes = Probes.of(X, np.ones(60))
    changed = np.argwhere(np.nan_to_num(probes.X) != np.nan_to_num(X))
    assert 0.04 * X.size < len(changed) == len(probes.truth) <= 0.05 * X.size
    np.testing.assert_array_equal(X[probes.spoiled], probes.truth)
    np.testing.assert_array_equal(probes.X[probes.others], probes.values)
    perfect = probes.outcome(np.nan_to_num(X))
    assert perfect.cost(0.1, 0.05) == 0
    assert perfect.share == 0
    nothing = probes.outcome(np.nan_to_num(probes.X))
    assert nothing.cost(0.1, 0.05) == pytest.approx(0.05 * 9 * np.nanvar(X), rel=0.3)


def test_the_best_outcome_weighs_mending_by_what_is_wrong():
    def outcome(mended, changed, share):
        return Outcome(np.full(100, mended), np.full(100, changed), share)

    clean = [outcome(9.0, 0.0, 0.0), outcome(1.0, 0.3, 0.001)]
    spoiled = [outcome(9.0, 0.0, 0.0), outcome(1.0, 0.3, 0.1)]
    assert (best_of(clean), best_of(spoiled)) == (0, 1)


def test_the_best_outcome_is_judged_by_what_it_finds_itself():
    def outcome(mended, changed, share):
        return Outcome(np.full(100, mended), np.full(100, changed), share)

    # The first one is best if a tenth is wrong, and finds more; the second one is best then, but
    # finds that hardly anything is wrong, for which it changes far too much.
    trials = [outcome(0.5, 0.42, 0.15), outcome(0.0, 0.45, 0.02), outcome(9.0, 0.0, 0.02)]
    assert best_of(trials) == 2


def test_entries_that_are_wrong_by_less_than_a_deviation_are_counted_by_those_that_are_by_more():
    X = np.random.default_rng(0).normal(size=(400, 50))
    probes = Probes.of(X, np.ones(50))
    fitted, (rows, columns) = X.copy(), probes.others
    tenth = len(rows) // 10
    for number, off in enumerate((0.5, 1.5, 3.0)):
        some = slice(number * tenth, (number + 1) * tenth)
        fitted[rows[some], columns[some]] += off * probes.deviations[columns[some]]
    assert probes.outcome(fitted).share == pytest.approx(0.25, rel=0.01)


def test_the_default_path_of_rpcag_holds_the_useful_weights():
    X, truth = clusters(0)
    path = smoothness_path(X, estimator=RPCAG(tol=1e-4))
    assert path.values[0] < 0.003
    # The refit without a graph would be compared with fits that have none.
    settings = {"debias": False, "tol": 1e-4}
    errors = [error(RPCAG(smoothness=s, **settings), X, truth) for s in path.values[::3]]
    assert min(errors) <= 1.1 * error(RPCAG(smoothness=0.0, **settings), X, truth)
