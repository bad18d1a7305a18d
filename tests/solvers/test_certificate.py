"""Completed multipliers prove that a decomposition of exact data is optimal."""

import numpy as np
import pytest
from mixtures import planted

from robustpca.engine.svt import LowRank
from robustpca.engine.threads import ThreadPool
from robustpca.parts.entry_losses import L1Norm
from robustpca.solvers import split_matrix
from robustpca.solvers.certificate import completed
from robustpca.solvers.penalties import HandOver, _balance
from robustpca.solvers.splitting import split


def rough_multipliers(L, S, missing, rank, seed=0, size=0.01):
    """Multipliers that are right at the sparse entries, and nearly so on the tangent space."""
    weight = 1 / np.sqrt(max(L.shape))
    left, values, right = np.linalg.svd(L, full_matrices=False)
    low_rank = LowRank(left[:, :rank] * values[:rank], right[:rank], values[:rank])
    noise = np.random.default_rng(seed).normal(size=L.shape) * size * weight
    dual = np.clip(left[:, :rank] @ right[:rank] + noise, -0.9 * weight, 0.9 * weight)
    dual = np.where(S != 0, weight * np.sign(S), np.where(missing, 0.0, dual))
    return dual, low_rank, weight, left[:, :rank] @ right[:rank]


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_multipliers_agree_with_both_parts(share, rng):
    L = rng.normal(size=(150, 4)) @ rng.normal(size=(4, 120))
    S = np.where(rng.random(L.shape) < 0.05, rng.uniform(-9, 9, L.shape), 0.0)
    missing = rng.random(L.shape) < share
    S[missing] = 0.0
    dual, low_rank, weight, product = rough_multipliers(L, S, missing, 4)
    with ThreadPool() as pool:
        completed(dual, np.where(missing, np.nan, L + S), low_rank, weight, pool)
    right, left = low_rank.right, low_rank.left / low_rank.values
    np.testing.assert_allclose(dual @ right.T, product @ right.T, atol=1e-6)
    np.testing.assert_allclose(left.T @ dual, left.T @ product, atol=1e-6)
    np.testing.assert_array_equal(dual[S != 0], weight * np.sign(S[S != 0]))
    assert not dual[missing].any()
    assert np.abs(dual).max() <= weight
    assert np.linalg.norm(dual, 2) < 1 + 1e-6


def test_the_gap_that_they_prove_is_that_of_the_multipliers(rng):
    X = planted(rng, (120, 100), 3, corrupted=0.05)[0]
    loss = L1Norm(1 / np.sqrt(120))
    found = split(X, loss, schedule=HandOver, tol=1e-6, max_iter=500)
    dual, low_rank = found.multipliers, found.low_rank.dense()
    scale = max(1.0, np.linalg.norm(dual, 2), np.abs(dual).max() / loss.weight)
    objective = np.linalg.norm(low_rank, "nuc") + loss.value(X - low_rank)
    gap = 1 - np.vdot(X, dual) / scale / objective
    assert found.converged
    assert gap == pytest.approx(found.gap, abs=1e-8)
    assert gap < 1e-6


def test_multipliers_that_prove_the_gap_as_they_are_need_not_be_completed(rng, monkeypatch):
    # Where right entries differ by rounding errors alone, completing may spoil the multipliers.
    X = planted(rng, (120, 100), 3, corrupted=0.05)[0]
    given = {"schedule": HandOver, "tol": 1e-6, "max_iter": 500}
    usual = split(X, L1Norm(1 / np.sqrt(120)), **given)
    monkeypatch.setattr(split_matrix, "completed", lambda dual, *_: dual.fill(0.0))
    found = split(X, L1Norm(1 / np.sqrt(120)), **given)
    assert found.converged
    assert found.n_iter <= usual.n_iter + 12


def test_a_pass_of_unknown_length_leaves_the_penalty_as_it_is():
    assert _balance(np.inf, 1.0) == _balance(np.inf, np.inf) == 1.0
