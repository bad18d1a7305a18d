"""Low-rank fits that go on from an earlier one end where others do, and sooner."""

import numpy as np
import pytest
from pursuit import METHODS, full_rank_is_fine, planted, relative, rpca, rpcag
from sklearn.base import clone

from robustpca import FRPCAG

WARM = {
    "RPCA": (rpca(tol=1e-7, max_iter=5000), {"sparsity": 0.1}),
    "noise": (rpca(noise=0.1, tol=1e-7, max_iter=5000), {"sparsity": 0.1}),
    "RPCAG": (rpcag(smoothness=0.3, tol=1e-7, max_iter=5000), {"smoothness": 0.32}),
    "FRPCAG": (
        FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0, tol=1e-8, max_iter=5000),
        {"sample_smoothness": 1.1},
    ),
}


@full_rank_is_fine
@pytest.mark.parametrize("name", WARM)
def test_a_warm_start_is_near_the_end_and_ends_where_a_cold_one_does(name):
    X = planted(0, 100, 60, noise=0.1, missing=0.05)[0]
    model, change = clone(WARM[name][0]), WARM[name][1]
    cold = clone(model).set_params(**change).fit(X)
    warm = model.set_params(warm_start=True).fit(X).set_params(**change).fit(X)
    assert relative(warm.low_rank_, cold.low_rank_) < 1e-6
    best = cold.objective_[-1]
    assert warm.objective_[-1] == pytest.approx(best, rel=1e-8)
    assert abs(warm.objective_[1] - best) < 0.1 * abs(cold.objective_[1] - best)


@full_rank_is_fine
def test_a_fit_of_frpcag_that_starts_at_the_answer_ends_at_once():
    X = planted(0, 100, 60, noise=0.1, missing=0.05)[0]
    assert FRPCAG(warm_start=True).fit(X).fit(X).n_iter_ == 1


@full_rank_is_fine
@pytest.mark.parametrize("name", METHODS)
def test_a_warm_start_is_ignored_where_there_is_nothing_to_start_from(name):
    X = planted(0, 60, 40)[0]
    expected = clone(METHODS[name]).fit(X)
    model = clone(METHODS[name]).set_params(warm_start=True)
    np.testing.assert_array_equal(model.fit(X).low_rank_, expected.low_rank_)
    # A fit of data of another shape, or a clone, starts anew.
    other = clone(METHODS[name]).fit(X[:50])
    np.testing.assert_array_equal(model.fit(X[:50]).low_rank_, other.low_rank_)
    np.testing.assert_array_equal(clone(model).fit(X).low_rank_, expected.low_rank_)
    model.set_params(warm_start=False)
    np.testing.assert_array_equal(model.fit(X).low_rank_, expected.low_rank_)
