"""Flags of outliers: as many clean rows as promised, whatever their distribution."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV

from robustpca import EPCA, GLRAM, L1PCA, PCAAN, AngularEmbedding
from robustpca.datasets.synthetic import planted_subspace
from robustpca.models.base import FLAG_ROWS
from robustpca.models.flags import Scatter, cutoff_of, robust_scatter

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
    few = EPCA(3).fit(X[: FLAG_ROWS // 2])
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
