"""Growing penalties end where the textbook's loop with full decompositions ends."""

import numpy as np
import pytest
from mixtures import as_array, planted
from test_splitting import (
    objective,
    pursue,
    relative,
    singular_value_threshold,
    soft_threshold,
    usual,
)
from threadpoolctl import threadpool_limits

from robustpca.parts.entry_losses import HuberNorm
from robustpca.solvers.penalties import Growing


def textbook_loop(X, weight, rate=1.5):
    """Low-rank part and number of passes, by full decompositions (Lin, Chen, Ma 2010, Alg. 5)."""
    norm = np.linalg.norm(X, 2)
    Y = X / max(norm, np.abs(X).max() / weight)
    penalty = first = 1.25 / norm
    S, n_passes = np.zeros_like(X), 0
    while n_passes < 1000:
        n_passes += 1
        L = singular_value_threshold(X - S + Y / penalty, 1 / penalty)
        S = soft_threshold(X - L + Y / penalty, weight / penalty)
        if np.linalg.norm(X - L - S) <= 1e-7 * np.linalg.norm(X):
            break
        Y = Y + penalty * (X - L - S)
        penalty = min(rate * penalty, 1e7 * first)
    return L, n_passes


def decaying(rng, shape):
    """Data like images: positive, singular values that fall without a gap, noise, some errors."""
    left, right = (np.linalg.qr(rng.normal(size=(n, min(shape))))[0] for n in shape)
    values = 60.0 * np.sqrt(np.prod(shape)) / np.arange(1, min(shape) + 1) ** 1.2
    X = 120.0 + 0.3 * (left * values) @ right.T + 3.0 * rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.02, rng.uniform(0, 255, shape), X)


def narrow(seed):
    """Exactly low rank + sparse data with few columns, and the low-rank part."""
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 40))
    return low + rng.uniform(-10, 10, low.shape) * (rng.random(low.shape) < 0.05), low


def test_exact_data_are_recovered_in_as_many_passes():
    for seed in range(3):
        X, low, _ = planted(np.random.default_rng(seed), (120, 90), 4)
        expected, n_passes = textbook_loop(X, 1 / np.sqrt(120))
        result = pursue(X, schedule=Growing)
        assert relative(expected, low) < 1e-6
        assert relative(result.low_rank.dense(), expected) < 1e-6
        assert abs(result.n_iter - n_passes) <= 1


def test_noisy_data_end_at_the_same_point(rng):
    # There the answer depends on the way: start, growth and end must be the same.
    X, *_ = planted(rng, (40, 30), 3, noise=0.3)
    expected, n_passes = textbook_loop(X, 1 / np.sqrt(40))
    result = pursue(X, schedule=Growing)
    assert relative(result.low_rank.dense(), expected) < 1e-4
    assert abs(result.n_iter - n_passes) <= 1
    # Too large for single precision, so there is none on the way.
    large = pursue(1e13 * X, schedule=Growing).low_rank.dense()
    assert relative(1e-13 * large, expected) < 1e-5


@pytest.mark.parametrize("shape", [(200, 90), (90, 200), (130, 130)], ids=str)
def test_a_spectrum_without_a_gap_is_no_obstacle(shape, rng):
    X = decaying(rng, shape)
    expected, n_passes = textbook_loop(X, usual(X).weight)
    result = pursue(X, schedule=Growing, max_iter=100)
    assert result.converged
    assert abs(result.n_iter - n_passes) <= 1
    rest = X - result.low_rank.dense() - as_array(result.sparse)
    assert np.linalg.norm(rest) < 3e-7 * np.linalg.norm(X)
    assert relative(result.low_rank.dense(), expected) < 1e-3
    costs = [objective(X, L, usual(X)) for L in (result.low_rank.dense(), expected)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-4)
    # The certificate bounds what the optimum is below that.
    least = objective(X, pursue(X).low_rank.dense(), usual(X))
    assert 0 < costs[0] - least <= result.gap * costs[0]


def test_narrow_data_are_recovered_whenever_the_textbook_recovers_them():
    recovered = []
    for seed in range(10):
        X, low = narrow(seed)
        ours = pursue(X, schedule=Growing)
        found = (ours.low_rank.dense(), textbook_loop(X, usual(X).weight)[0])
        recovered.append([relative(L, low) < 1e-5 for L in found])
        assert ours.converged
    ours, theirs = np.array(recovered).T
    assert theirs.sum() >= 5
    assert np.all(ours >= theirs)


def test_single_precision_loses_nothing_that_double_precision_has(rng):
    X = decaying(rng, (120, 80))
    whole = pursue(1e13 * X, schedule=Growing)
    result = pursue(X, schedule=Growing)
    assert abs(result.n_iter - whole.n_iter) <= 1
    assert relative(1e13 * result.low_rank.dense(), whole.low_rank.dense()) < 1e-3


def test_missing_entries_and_noise_are_allowed_for(rng):
    X = decaying(rng, (100, 70))
    hidden = rng.random(X.shape) < 0.1
    X[hidden] = np.nan
    for loss in (usual(X), HuberNorm(usual(X).weight, 5.0)):
        result = pursue(X, loss, schedule=Growing, max_iter=200)
        assert result.converged
        assert np.isfinite(result.low_rank.dense()).all()
        best = objective(X, pursue(X, loss).low_rank.dense(), loss)
        assert objective(X, result.low_rank.dense(), loss) <= best * (1 + result.gap) * (1 + 1e-6)


def test_a_start_of_another_run_is_taken_up(rng):
    X, low, _ = planted(rng, (90, 60), 4)
    first = pursue(X, tol=1e-3)
    again = pursue(X, schedule=Growing, start=first.start())
    assert again.converged
    assert relative(again.low_rank.dense(), low) < 1e-5


def test_the_number_of_threads_changes_nothing(rng):
    X, found = decaying(rng, (150, 80)), []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(pursue(X, schedule=Growing).low_rank)
    # Their product would be left to the threads of BLAS, whose number may change last digits.
    for name in ("left", "right", "values"):
        np.testing.assert_array_equal(*(getattr(one, name) for one in found))
