"""Flags of outliers: as many clean rows as promised, whatever their distribution."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from robustpca import EPCA, FRPCAG, GLRAM, L1PCA, PCAAN, AngularEmbedding
from robustpca.datasets.synthetic import planted_subspace
from robustpca.models.base import FLAG_ROWS
from robustpca.models.flags import (
    RIDGE,
    Scatter,
    cutoff_of,
    different_rows,
    leverages,
    robust_scatter,
)

KINDS = {
    "gaussian": lambda rng, shape: rng.normal(size=shape),
    "t(5)": lambda rng, shape: rng.standard_t(5, size=shape),
    "multivariate t(5)": lambda rng, shape: (
        rng.normal(size=shape) * np.sqrt(5 / rng.chisquare(5, size=(shape[0], 1)))
    ),
    "chi-square(4)": lambda rng, shape: rng.chisquare(4, size=shape),
    "lognormal": lambda rng, shape: rng.lognormal(0, 0.5, size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
}


def clean_rows(kind, structure, seed, n=1000, d=20, rank=4, n_new=2000):
    """Training rows and new rows of one distribution."""
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng, (n + n_new, d + rank))
    mixing = rng.normal(size=(rank, d))
    if structure == "low rank":
        X = 2 * X[:, :rank] @ mixing + X[:, rank:]
    elif structure == "correlated":
        places = np.arange(d)
        X = X[:, :d] @ np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(places, places))).T
    return X[:n], X[n:]


@pytest.mark.parametrize("structure", ["low rank", "correlated"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "model", [EPCA(4), PCAAN(4), L1PCA(4), AngularEmbedding(4), GLRAM((4, 1), image_shape=(10, 2))]
)
def test_few_clean_rows_are_flagged_whatever_their_distribution(model, kind, structure):
    shares = []
    for seed in range(3):
        X, new = clean_rows(kind, structure, seed)
        flags = model.fit(X).predict(new)
        shares.append(np.mean(flags == -1))
    assert 0.007 < np.median(shares) < 0.055


@pytest.mark.parametrize("model", [EPCA(5), PCAAN(5), L1PCA(5), GLRAM((5, 1), image_shape=(40, 5))])
def test_few_new_rows_are_flagged_although_there_are_more_features_than_rows(model):
    shares = []
    for seed in range(5):
        X, new = clean_rows("gaussian", "low rank", seed, n=50, d=200, rank=5)
        shares.append(np.mean(model.fit(X).predict(new) == -1))
    assert np.median(shares) < 0.05


@pytest.mark.parametrize("kind", ["t(5)", "lognormal"])
def test_a_row_with_all_the_weight_does_not_make_new_rows_outliers(kind):
    # With so few rows of a heavy tail EPCA puts its mean at one of them.
    shares = []
    for seed in range(5):
        X, new = clean_rows(kind, "low rank", seed, n=50, d=200, rank=5)
        shares.append(np.mean(EPCA(5).fit(X).predict(new) == -1))
    assert np.median(shares) < 0.05


@pytest.mark.parametrize("heavy", [0.4, 0.9])
def test_leverages_are_those_of_the_weighted_regression_on_the_scores(rng, heavy):
    shares = rng.random(30)
    shares[0] = 0.0
    shares *= (1 - heavy) / shares.sum()
    shares[0] = heavy
    codes = rng.normal(size=(30, 3))
    codes -= shares @ codes
    values, axes = np.linalg.eigh((codes.T * shares) @ codes)
    codes = codes @ axes / np.sqrt(values)
    design = np.sqrt(shares)[:, None] * np.column_stack([np.ones(30), codes])
    expected = np.diag(design @ np.linalg.pinv(design))
    np.testing.assert_allclose(leverages(codes, shares), expected, atol=1e-12)


@pytest.mark.parametrize("model", [EPCA(5), L1PCA(5)])
def test_rows_at_few_points_are_no_outliers(model):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6, 20))[rng.integers(6, size=200)]
        assert (model.fit(X).predict(X) == 1).all()


def test_kinds_of_rows_are_usual_if_they_have_many_rows(rng):
    points = rng.normal(size=(12, 3))
    values = points[np.repeat(np.arange(12), [20] * 9 + [1] * 3)]
    kinds, n_usual = different_rows(values)
    assert len(kinds) == len(np.unique(values[kinds], axis=0)) == 12
    assert n_usual == 9
    assert different_rows(rng.normal(size=(30, 3))) == (slice(None), 0)


@pytest.mark.parametrize("share", [0.2, 0.3])
@pytest.mark.parametrize("model", [PCAAN(2), EPCA(2)], ids=["PCAAN", "EPCA"])
def test_many_rows_at_one_point_do_not_say_what_is_usual(model, share):
    flagged = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(100, 6))
        X[-int(100 * share) :] = X[20]
        X[:5] += 5 * rng.normal(size=(5, 6))
        flags = model.fit_predict(X) == -1
        assert flags[:5].all()
        assert model.score_distances(X).max() < 1e3
        flagged.append(flags[5:].mean())
    assert np.mean(flagged) < 0.02


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["gaussian", "t(5)", "lognormal"])
def test_frpcag_flags_few_rows_although_it_moves_clean_ones(kind, noise):
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = 2 * KINDS[kind](rng, (600, 4)) @ rng.normal(size=(4, 20))
        X += noise * KINDS[kind](rng, X.shape)
        model = FRPCAG(4).fit(X[:300])
        shares.append(np.mean(model.predict(X[300:]) == -1))
    assert 0.0 < np.median(shares) < 0.05


def test_frpcag_flags_rows_that_are_far_and_needs_no_complete_ones(rng):
    X, _, _ = planted_subspace(rng, 300, 20, 3, n_outliers=0, noise=0.3)
    X[rng.random(X.shape) < 0.05] = np.nan
    model = FRPCAG(3).fit(X)
    assert np.mean(model.predict(X) == -1) < 0.05
    clean = model.decompose(X[:20])[0]
    within = model.mean_ + 8 * (clean - model.mean_)
    for far in (within, clean + 3 * rng.normal(size=clean.shape)):
        assert (model.predict(far) == -1).all()
        far[:, 5] = np.nan
        assert (model.predict(far) == -1).all()


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_outliers_do_not_hide_each_other(share):
    for seed in range(5):
        X, _, is_outlier = planted_subspace(
            np.random.default_rng(seed), 400, 20, 3, n_outliers=int(400 * share), noise=0.2
        )
        flags = PCAAN(3, n_active=0.6).fit(X).predict(X)
        assert np.mean(flags[is_outlier] == -1) > 0.98
        assert np.mean(flags[~is_outlier] == -1) < 0.05


def test_rows_that_are_far_within_the_subspace_are_flagged_too(rng):
    X, _, _ = planted_subspace(rng, 300, 10, 3, n_outliers=0, noise=0.1)
    X[:20] = X[:20] * 8
    flags = EPCA(3).fit(X).predict(X)
    assert np.mean(flags[:20] == -1) > 0.7
    assert np.mean(flags[20:] == -1) < 0.06
    # Of the same distance, but partly out of the subspace.
    assert (EPCA(3).fit(X).predict(X[:20] + 5) == -1).all()


def test_the_scatter_of_the_scores_is_that_of_clean_rows(rng):
    mixing = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.5, 0.3]])
    codes = rng.normal(size=(2000, 3)) @ mixing.T + [1.0, -2.0, 0.5]
    codes[:600] = rng.normal((30.0, 30.0, -30.0), size=(600, 3))
    units = codes.std(axis=0)
    scatter, _ = robust_scatter(codes / units)
    np.testing.assert_allclose(scatter.center * units, [1.0, -2.0, 0.5], atol=0.25)
    precision = scatter.whitener @ scatter.whitener.T / np.outer(units, units)
    covariance = mixing @ mixing.T
    np.testing.assert_allclose(np.linalg.inv(precision), covariance, rtol=0.3, atol=0.15)
    whole = Scatter(scatter.center * units, scatter.whitener / units[:, None])
    expected = np.log(np.linalg.det(covariance))
    assert whole.log_determinant == pytest.approx(expected, abs=0.4)


@pytest.mark.parametrize("thinnest", [1.0, 0.02, 1e-3, 1e-9])
def test_no_direction_of_the_scores_is_tighter_than_the_ridge(thinnest, rng):
    # The floor counts along the axes of the scores, which are none of the coordinates.
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    codes = (rng.normal(size=(3000, 4)) * [1.0, 1.0, 1.0, thinnest]) @ turn.T
    whitener = robust_scatter(codes)[0].whitener
    tightest = max(thinnest, np.sqrt(RIDGE))
    assert np.linalg.cond(whitener) == pytest.approx(1 / tightest, rel=0.15)
    along = np.linalg.norm(turn.T @ whitener, axis=1)
    assert along[3] / along[0] == pytest.approx(1 / tightest, rel=0.15)


def test_outliers_that_are_merely_large_rank_high():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == 1), np.flatnonzero(y == 0)[::5]])
    X, is_outlier = StandardScaler().fit_transform(X[rows]), y[rows] == 0
    model = PCAAN().fit(X)
    # By the distances to and in the subspace alone it is 0.89.
    assert roc_auc_score(is_outlier, -model.score_samples(X)) > 0.905


def test_few_inliers_are_flagged_although_their_tails_are_heavy():
    X, y = load_digits(return_X_y=True)
    inliers, outliers = [], []
    for digit in range(10):
        rows = np.concatenate([np.flatnonzero(y == digit), np.flatnonzero(y != digit)[::80]])
        flags = PCAAN().fit_predict(StandardScaler().fit_transform(X[rows])) == -1
        inliers.append(np.mean(flags[y[rows] == digit]))
        outliers.append(np.mean(flags[y[rows] != digit]))
    assert np.mean(inliers) < 0.08
    assert np.mean(outliers) > 0.7


def test_rows_that_a_method_keeps_count_for_the_cutoff(rng):
    levels = np.concatenate([rng.normal(size=800), rng.normal(4, 0.5, size=200)])
    assert 2.5 < cutoff_of(levels)[1] < 3.2
    assert 4.0 < cutoff_of(levels, 900)[1] < 5.2


def test_the_bulk_is_found_among_nearly_as_many_outliers(rng):
    clean = rng.normal(size=600)
    middle, cutoff = cutoff_of(np.concatenate([clean, 20 + rng.normal(size=500)]))
    assert middle == pytest.approx(0.0, abs=0.15)
    assert 1.8 < cutoff < 3.0


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_there_is_a_cutoff_for_any_number_of_rows(n):
    middle, cutoff = cutoff_of(np.arange(float(n)))
    assert np.isfinite(middle)
    assert cutoff > middle
    middle, cutoff = cutoff_of(np.zeros(n))
    assert cutoff > middle == 0


def test_the_cutoffs_of_many_rows_are_those_of_a_part_of_them(rng):
    X = rng.normal(size=(3 * FLAG_ROWS, 6)) * [4, 3, 2, 1, 1, 1]
    model = EPCA(3).fit(X)
    assert 0.007 < np.mean(model.predict(X) == -1) < 0.03
    few = EPCA(3).fit(X[:FLAG_ROWS])
    assert model.orthogonal_cutoff_ == pytest.approx(few.orthogonal_cutoff_, rel=0.05)
    assert model.score_cutoff_ == pytest.approx(few.score_cutoff_, rel=0.05)


def test_exact_data_are_no_outliers_and_anything_off_their_subspace_is(rng):
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 9)) + 3
    model = EPCA(2).fit(X)
    assert np.mean(model.predict(X) == -1) < 0.05
    assert (model.predict(X + 1e-3 * rng.normal(size=X.shape)) == -1).all()


def test_the_noise_variance_is_that_of_pca_on_clean_data_and_resists_outliers(rng):
    X, _, is_outlier = planted_subspace(rng, 500, 20, 3, n_outliers=50, noise=0.3)
    expected = PCA(3).fit(X[~is_outlier]).noise_variance_
    assert PCAAN(3).fit(X).noise_variance_ == pytest.approx(expected, rel=0.1)
    assert PCAAN(20).fit(X).noise_variance_ == 0


def ranks_chosen(model, seeds):
    """The number of components that a search by `score` finds in rows of rank 3 with outliers."""
    chosen = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12)) + rng.normal(0, 0.3, (300, 12))
        X[rng.choice(300, 30, replace=False)] = rng.normal(0, 10, (30, 12))
        search = GridSearchCV(model, {"n_components": range(1, 7)})
        chosen.append(search.fit(X).best_params_["n_components"])
    return chosen


@pytest.mark.parametrize(
    ("model", "seeds"),
    [
        (PCAAN(), range(4)),
        pytest.param(PCAAN(), range(4, 10), marks=pytest.mark.slow),
        pytest.param(EPCA(), range(10), marks=pytest.mark.slow),
        pytest.param(AngularEmbedding(), range(10), marks=pytest.mark.slow),
    ],
)
def test_a_grid_search_finds_the_right_number_of_components_among_outliers(model, seeds):
    assert ranks_chosen(model, seeds) == [3] * len(seeds)


def test_the_score_is_minus_the_error_of_entries_predicted_from_the_others(rng):
    X, _, _ = planted_subspace(rng, 60, 8, 2, n_outliers=0, noise=0.3)
    model = EPCA(2).fit(X)
    errors = np.empty_like(X)
    for j in range(8):
        others = np.delete(model.components_, j, axis=1).T
        known = np.delete(X - model.mean_, j, axis=1).T
        codes = np.linalg.lstsq(others, known)[0]
        errors[:, j] = (X - model.mean_)[:, j] - model.components_[:, j] @ codes
    expected = -np.median(np.sqrt(np.mean(errors**2, axis=1)))
    assert model.score(X) == pytest.approx(expected)
    for rows in (sparse.csr_array(X), X.astype(np.float32)):
        assert model.score(rows) == pytest.approx(expected, rel=1e-5)
    full = EPCA(8).fit(X)
    lengths = np.sqrt(np.mean((X - full.mean_) ** 2, axis=1))
    assert full.score(X) == pytest.approx(-np.median(lengths))
