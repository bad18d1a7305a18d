"""Refitted low-rank parts and flagged entries, against planted ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from robustpca import RPCA
from robustpca.engine.svt import LowRank
from robustpca.solvers.refit import ResidualFlags, RobustRows, gaussian_cut, hard_threshold, refit
from robustpca.solvers.row_flags import LeastSquares

SHAPES = {"square": (300, 300, 6), "tall": (1000, 40, 4), "wide": (150, 800, 6)}


def planted(seed, n, d, rank, *, wrong=0.05, noise=0.1, missing=0.0):
    """Data, the low-rank part, which entries are wrong, and the noise of the columns."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) / np.sqrt(rank)
    noise = np.broadcast_to(noise, d)
    X = L + noise * rng.normal(size=(n, d))
    errors = rng.random((n, d)) < wrong
    sizes = noise * rng.uniform(6, 60, size=(n, d)) * rng.choice([-1, 1], size=(n, d))
    X = np.where(errors, L + sizes, X)
    X[rng.random((n, d)) < missing] = np.nan
    return X, L, errors, noise


def truncated(A, rank):
    left, values, right = np.linalg.svd(A, full_matrices=False)
    return LowRank(left[:, :rank] * values[:rank], right[:rank], values[:rank])


def near(L, rank, seed=0, size=0.3):
    """A start that is as wrong as those of the convex problem."""
    rng = np.random.default_rng(seed)
    return truncated(L + size * np.std(L) * rng.normal(size=L.shape), rank)


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


@pytest.mark.parametrize("wrong", [0.05, 0.2])
@pytest.mark.parametrize("shape", SHAPES)
def test_flags_have_the_rate_that_was_asked_for_and_find_the_wrong_entries(shape, wrong):
    X, L, errors, noise = planted(0, *SHAPES[shape], wrong=wrong)
    found = refit(X, near(L, SHAPES[shape][2]), 0.0, 0.001, center=False)
    flags = found.solve(X)[1]
    assert flags[~errors].mean() < 0.003
    assert flags[errors].mean() > 0.95
    np.testing.assert_allclose(found.noise, noise, rtol=0.1)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_refit_is_as_near_as_least_squares_that_knows_the_wrong_entries(shape):
    n, d, rank = SHAPES[shape]
    X, L, errors, _ = planted(1, n, d, rank)
    found = refit(X, near(L, rank), 0.0, 0.001, center=False)
    oracle = L
    for _ in range(50):
        oracle = truncated(np.where(errors, oracle, X), rank).dense()
    ours = relative(found.low_rank(found.solve(X)[0]), L)
    assert ours < 1.1 * relative(oracle, L)


@pytest.mark.parametrize("seed", range(5))
def test_directions_that_noise_explains_are_dropped(seed):
    X, L, _, _ = planted(seed, 300, 200, 4)
    assert len(refit(X, near(L, 30), 0.0, 0.001, center=False).basis) == 4


def test_the_noise_of_each_column_is_found():
    noise = np.geomspace(0.03, 0.3, 60)
    X, L, errors, _ = planted(0, 800, 60, 3, noise=noise)
    found = refit(X, near(L, 3), 0.0, 0.001, center=False)
    np.testing.assert_allclose(found.noise, noise, rtol=0.15)
    flags = found.solve(X)[1]
    assert flags[~errors].mean() < 0.003
    # One level for all would flag much of the noisiest columns.
    assert flags[:, -10:][~errors[:, -10:]].mean() < 0.005


def test_missing_entries_are_neither_flagged_nor_needed():
    X, L, _, _ = planted(0, 400, 100, 3, missing=0.2)
    found = refit(X, near(L, 3), 0.0, 0.001, center=False)
    codes, flags = found.solve(X)
    assert not flags[np.isnan(X)].any()
    assert relative(found.low_rank(codes)[np.isnan(X)], L[np.isnan(X)]) < 0.06


def test_a_common_row_is_no_direction():
    X, L, _, _ = planted(0, 400, 60, 3)
    shift = np.random.default_rng(1).normal(size=60)
    found = refit(X + shift, near(L + shift, 4), 0.0, 0.001, center=True)
    assert len(found.basis) == 3
    codes = found.solve(X + shift)[0]
    assert relative(found.low_rank(codes), L + shift) < 0.06


@pytest.mark.parametrize(("rank", "noise"), [(3, 0.1), (20, 0.1), (20, 1e-7)])
def test_a_row_gets_the_same_scores_whatever_others_come_with_it(rank, noise):
    X, L, _, _ = planted(0, 200, 50, rank, noise=noise, missing=0.1)
    found = refit(X, truncated(L, rank), 0.0, 0.001, center=False)
    codes, flags = found.solve(X)
    for i in (0, 17, 199):
        alone, flag = found.solve(X[i : i + 1])
        np.testing.assert_allclose(alone[0], codes[i], rtol=1e-12, atol=1e-9)
        np.testing.assert_array_equal(flag[0], flags[i])


def test_gross_errors_of_any_size_do_not_move_a_row():
    X, L, _, _ = planted(0, 300, 60, 3, wrong=0.0)
    found = refit(X, near(L, 3), 0.0, 0.001, center=False)
    spoiled = X[:20].copy()
    spoiled[:, :6] = 1e6
    codes, flags = found.solve(spoiled)
    assert flags[:, :6].all()
    assert relative(found.low_rank(codes), L[:20]) < 0.08


@pytest.mark.parametrize("size", [1e3, 1e9, 1e15])
def test_an_entry_of_any_size_counts_as_if_it_were_missing(size):
    X, L, _, _ = planted(0, 300, 60, 20, wrong=0.02)
    found = refit(X, truncated(L, 20), 0.0, 0.001, center=False)
    spoiled, missing = X[:30].copy(), X[:30].copy()
    spoiled[:, [3, 40]], missing[:, [3, 40]] = size, np.nan
    (codes, flags), (expected, others) = found.solve(spoiled), found.solve(missing)
    assert flags[:, [3, 40]].all()
    others[:, [3, 40]] = True
    same = (flags == others).all(axis=1)
    assert same.mean() > 0.9
    np.testing.assert_allclose(codes[same], expected[same], atol=1e-7)


def test_errors_of_thousands_of_deviations_in_a_fifth_of_the_entries_do_not_move_rows():
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.normal(size=(50, 5)))[0].T
    codes = rng.normal(size=(1000, 5)) * 7000
    X = codes @ basis + rng.normal(size=(1000, 50))
    wrong = rng.random(X.shape) < 0.2
    X[wrong] += rng.uniform(-10_000, 10_000, wrong.sum())
    rows = RobustRows(np.zeros(50), basis, np.full(5, 7000.0), np.ones(50), gaussian_cut(0.001)[0])
    found, flags = rows.solve(X)
    assert np.abs(found - codes).max() < 10
    assert flags[~wrong].mean() < 0.003


@pytest.mark.parametrize(("seed", "share"), [(1, 0.1), (6, 0.1), (2, 0.2)])
def test_no_row_follows_wrong_entries_of_columns_with_large_leverages(seed, share):
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(5, 40))
    directions[:, :3] *= 5
    L = rng.normal(size=(1000, 5)) @ directions
    wrong = rng.random(L.shape) < share
    X = L + 0.1 * rng.normal(size=L.shape) + 3 * L.std() * wrong * rng.choice([-1, 1], L.shape)
    found = refit(X, near(L, 5, size=0.02), 0.0, 0.001, center=False)
    codes, flags = found.solve(X)
    assert np.abs(found.low_rank(codes) - L).max() < 1
    assert flags[wrong].all()
    assert flags[~wrong].mean() < 0.002
    # Without a second start some rows do follow, and they are the only ones that it changes.
    single = replace(found, most_flags=1.0).solve(X)
    followers = np.abs(found.low_rank(single[0]) - L).max(axis=1) > 1
    assert 3 <= followers.sum() <= 12
    np.testing.assert_array_equal(single[1][~followers], flags[~followers])


@pytest.mark.parametrize("rank", [3, 60])
def test_scores_solve_the_equations_of_the_entries_that_are_not_flagged(rank):
    X, L, _, _ = planted(0, 60, 100, rank, wrong=0.2, missing=0.1)
    found = refit(X, truncated(L, rank), 0.0, 0.001, center=False)
    codes, flags = found.solve(X)
    for x, code, flag in zip(X / found.noise, codes, flags, strict=True):
        known = found.basis[:, ~flag & ~np.isnan(x)]
        normal = known @ known.T + np.diag(found.deviations**-2)
        pulls = known @ x[~flag & ~np.isnan(x)]
        # Of many directions few entries are left for each: their condition is 6e6.
        np.testing.assert_allclose(normal @ code, pulls, rtol=0, atol=1e-12 * np.abs(pulls).max())


def test_data_without_any_structure_end_with_rank_zero():
    X = np.random.default_rng(0).normal(size=(200, 100))
    found = refit(X, truncated(X, 5), 0.0, 0.001, center=False)
    codes, flags = found.solve(X)
    assert codes.shape == (200, 0)
    assert flags.mean() == pytest.approx(0.001, abs=1e-3)


def test_residual_flags_keep_their_rate_beside_wrong_entries():
    rng = np.random.default_rng(0)
    noise = np.geomspace(0.5, 5, 30)
    errors = noise * rng.normal(size=(2000, 30))
    wrong = rng.random(errors.shape) < 0.2
    errors[wrong] += 50
    errors[rng.random(errors.shape) < 0.1] = np.nan
    found = ResidualFlags.of(lambda place: errors[place], len(errors), 0.01)
    flags = found.flags(errors)
    assert flags[~wrong].mean() == pytest.approx(0.009, abs=0.002)
    assert flags[wrong & ~np.isnan(errors)].all()
    np.testing.assert_allclose(found.noise, noise, rtol=0.1)


def test_residuals_that_are_mostly_zero_have_no_noise():
    errors = np.zeros((100, 10))
    errors[3, 4] = 1e-3
    found = ResidualFlags.of(lambda place: errors[place], len(errors), 0.001)
    assert not found.noise.any()
    np.testing.assert_array_equal(found.flags(errors), errors != 0)


def test_cut_and_threshold_are_those_of_the_gaussian_and_of_theory():
    cut, inside = gaussian_cut(0.001)
    assert cut == pytest.approx(3.2905, abs=1e-4)
    draws = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    assert inside == pytest.approx(np.var(draws[np.abs(draws) < cut]), rel=1e-3)
    assert hard_threshold(1.0) == pytest.approx(4 / np.sqrt(3))


@pytest.mark.parametrize("rank", [3, 60])
def test_least_squares_of_a_row_is_that_of_linear_algebra(rank):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(120, rank)))[0].T
    rows = RobustRows(np.zeros(120), basis, np.full(rank, 10.0), np.ones(120), 1e9)
    X = 5 * rng.normal(size=(4, 120))
    X[1, :20], X[2, :80] = np.nan, np.nan
    codes = rows.solve(X)[0]
    for x, code in zip(X, codes, strict=True):
        known = ~np.isnan(x)
        normal = basis[:, known] @ basis[:, known].T + np.eye(rank) / 100
        expected = np.linalg.solve(normal, basis[:, known] @ x[known])
        np.testing.assert_allclose(code, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rank", [5, 60])
def test_wrong_entries_are_found_with_few_and_with_many_directions(rank):
    X, L, errors, _ = planted(0, 500, 400, rank)
    found = refit(X, near(L, rank, size=0.05), 0.0, 0.001, center=False)
    codes, flags = found.solve(X[:100])
    assert flags[errors[:100]].mean() > 0.95
    assert relative(found.low_rank(codes), L[:100]) < 0.1


def test_exact_data_with_a_constant_column_keep_their_low_rank_part():
    # The noise falls from pass to pass until no entry fits any more.
    X = np.outer(np.arange(25.0) % 7 - 3, [5, 3, 1, -1, -2])
    X[0], X[:, 0] = 0.0, 5.0
    low_rank = RPCA(4, center=None).fit(X).low_rank_
    np.testing.assert_allclose(low_rank[:, 1:], X[:, 1:], atol=1e-6)
    # Centred, as by default, the constant column is right as well.
    np.testing.assert_allclose(RPCA(4, tol=1e-8).fit(X).low_rank_, X, atol=1e-6)


def test_a_row_is_fitted_alike_by_the_equations_of_its_entries_and_of_its_directions():
    X, L, _, _ = planted(0, 300, 60, 20, wrong=0.1)
    found = refit(X, truncated(L, 20), 0.0, 0.001, center=False)
    # A few rows are not worth the matrix with which entries are the unknowns.
    assert len(LeastSquares(found.basis, found._ridge, 300).hat) == 60
    assert len(LeastSquares(found.basis, found._ridge, 2).hat) == 0
    together, alone = found.solve(X)[0][:2], found.solve(X[:2])[0]
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-9)
