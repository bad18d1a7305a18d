"""What RPCA, RPCAG and FRPCAG make of real troubles without any parameter set."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits

from robustpca import FRPCAG, RPCA, RPCAG


def planted(seed, n, d, rank, *, wrong=0.05, noise=0.1, missing=0.0):
    """Data, the low-rank part, and which entries are wrong by six deviations or more."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) / np.sqrt(rank)
    errors = rng.random((n, d)) < wrong
    sizes = rng.uniform(6 * noise, 3 + 10 * noise, (n, d)) * rng.choice([-1, 1], (n, d))
    X = np.where(errors, L + sizes, L + noise * rng.normal(size=(n, d)))
    X[rng.random((n, d)) < missing] = np.nan
    return X, L, errors


def table(seed, offset=300.0, decades=1.0, n=400, d=20):
    """A table of rank 3, 2 % wrong and 3 % missing cells; the truth, deviations, wrong cells."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    scale, shift = 10 ** rng.uniform(0, decades, d), rng.uniform(-offset, offset, d)
    truth = L * scale + shift
    X = truth + 0.1 * scale * rng.normal(size=(n, d))
    errors = rng.random((n, d)) < 0.02
    X = np.where(errors, X + scale * rng.choice([-1, 1], (n, d)) * rng.uniform(5, 50, (n, d)), X)
    X[rng.random((n, d)) < 0.03] = np.nan
    return X, truth, L.std(axis=0) * scale, errors


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


@pytest.mark.parametrize("wrong", [0.05, 0.2])
@pytest.mark.parametrize(("n", "d", "rank"), [(300, 300, 6), (1000, 50, 4), (150, 800, 6)])
def test_rank_noise_and_wrong_entries_are_those_that_were_planted(n, d, rank, wrong):
    X, L, errors = planted(0, n, d, rank, wrong=wrong)
    model = RPCA().fit(X)
    assert model.rank_ == model.n_components_ == rank
    assert model.entry_flags_[~errors].mean() < 0.003
    assert model.entry_flags_[errors].mean() > 0.95
    assert model.density_ == pytest.approx(model.entry_flags_.mean())
    np.testing.assert_allclose(model.column_noise_, 0.1, rtol=0.15)
    biased = RPCA(debias=False).fit(X)
    assert relative(model.low_rank_, L) < 0.7 * relative(biased.low_rank_, L)


def test_the_sparse_part_holds_the_errors_of_the_flagged_entries():
    X = planted(1, 300, 60, 3, missing=0.1)[0]
    model = RPCA().fit(X)
    assert sparse.issparse(model.sparse_)
    S = model.sparse_.toarray()
    np.testing.assert_array_equal(S != 0, model.entry_flags_)
    np.testing.assert_allclose(S[S != 0], (X - model.low_rank_)[S != 0])
    assert not model.entry_flags_[np.isnan(X)].any()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("offset", "decades"), [(1e5, 0.0), (300.0, 1.0), (0.0, 5.0)])
def test_a_table_of_any_units_is_cleaned(seed, offset, decades):
    X, truth, deviations, errors = table(seed, offset, decades)
    model = RPCA().fit(X)
    assert np.sqrt(np.mean(((model.low_rank_ - truth) / deviations) ** 2)) < 0.1
    assert model.rank_ == model.n_components_ == 3
    seen = errors & ~np.isnan(X)
    assert model.entry_flags_[seen].mean() > 0.99
    assert model.entry_flags_[~errors].mean() < 0.005


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("offset", [1.0, 5.0])
def test_a_column_that_is_far_from_zero_alone_is_no_column_of_wrong_entries(seed, offset):
    X, truth, deviations, _ = table(seed, 0.0, 0.0)
    usual = np.sqrt(np.mean((RPCA(center="median", scale=None).fit(X).low_rank_ - truth) ** 2))
    moved = offset * deviations * (np.arange(20) == seed)
    model = RPCA().fit(X + moved)
    assert model.rank_ == 3
    error = np.sqrt(np.mean((model.low_rank_ - truth - moved) ** 2))
    assert error == pytest.approx(usual, rel=0.01)
    # As they are, the data have no good answer.
    raw = RPCA(center=None, scale=None).fit(X + moved).low_rank_ - truth - moved
    assert np.sqrt(np.mean(raw**2)) > 2 * usual


def test_new_rows_of_a_table_come_back_in_its_units():
    X, truth, deviations, errors = table(0, n=600)
    model = RPCA().fit(X[:400])
    low_rank, found = model.decompose(X[400:])
    assert np.sqrt(np.mean(((low_rank - truth[400:]) / deviations) ** 2)) < 0.1
    flags = model.flag_entries(X[400:])
    np.testing.assert_array_equal(found.toarray() != 0, flags)
    assert flags[errors[400:] & ~np.isnan(X[400:])].mean() > 0.99
    np.testing.assert_allclose(model.reconstruct(X[400:]), low_rank, rtol=1e-6)


def test_training_rows_get_their_own_decomposition_and_flags_back():
    X = table(0)[0]
    model = RPCA().fit(X)
    low_rank, found = model.decompose(X)
    np.testing.assert_allclose(low_rank, model.low_rank_, rtol=1e-9)
    np.testing.assert_allclose(found.toarray(), model.sparse_.toarray(), rtol=1e-6)
    np.testing.assert_array_equal(model.flag_entries(X), model.entry_flags_)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-6)


@pytest.mark.parametrize("model", [RPCA(), RPCA(debias=False), RPCAG(), FRPCAG()])
def test_every_method_flags_entries_of_old_and_new_rows(model):
    X, _, errors = planted(0, 260, 60, 3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FRPCAG: low_rank_ has full rank")
        model = clone(model).fit(X[:200])
    assert model.entry_flags_.shape == (200, 60)
    assert model.entry_flags_.dtype == bool
    assert model.column_noise_.shape == (60,)
    # FRPCAG leaves most of these entries as they are.
    assert (model.column_noise_ > 0).all() or isinstance(model, FRPCAG)
    flags = model.flag_entries(X[200:])
    assert flags.dtype == bool
    gross = errors & (np.abs(X) > 4)
    assert flags[gross[200:]].mean() > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.flag_entries(X[200:]), flags)


def test_a_higher_rate_flags_more_entries_without_error():
    X, _, errors = planted(0, 300, 100, 3)
    rates = [RPCA(flag_rate=rate).fit(X).entry_flags_[~errors].mean() for rate in (1e-4, 0.01)]
    assert rates[0] < 0.0005
    assert rates[1] == pytest.approx(0.01, rel=0.4)


@pytest.mark.parametrize("model", [RPCA, RPCAG])
def test_every_part_of_a_fit_is_heard_and_its_own_passes_are_counted(model):
    heard, X = [], planted(0, 100, 30, 3)[0]
    fitted = model(callback=heard.append).fit(X)
    phases = list(dict.fromkeys(info.phase for info in heard))
    assert phases == ["noise", None, "refit"]
    for phase in phases:
        passes = [info for info in heard if info.phase == phase]
        assert [info.iteration for info in passes] == list(range(1, len(passes) + 1))
        assert all(info.counted == (phase is None) for info in passes)
        assert all((info.tol is None) == (phase is not None) for info in passes)
        assert all(info.method == model.__name__ and info.rank > 0 for info in passes)
    assert heard[-1].rank == fitted.rank_
    assert heard[-1].change < 0.01


def test_exact_data_are_taken_as_exact():
    X, L, errors = planted(0, 150, 100, 3, noise=0.0)
    model, exact = RPCA().fit(X), RPCA(noise=0.0).fit(X)
    assert model.noise_ == 0
    np.testing.assert_array_equal(model.entry_flags_, errors)
    assert relative(model.low_rank_, exact.low_rank_) < 1e-6
    assert relative(model.low_rank_, L) < 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", [4, 12])
def test_noise_as_small_as_rounding_does_not_void_the_low_rank_part(seed, dtype):
    # These data were found to have a noise of 1e-7, and their refit one of 1e-15.
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(800, 5)) @ rng.normal(size=(5, 30)))[:300].astype(dtype)
    assert relative(RPCA().fit(X).low_rank_, X) < 1e-5


def test_heavy_tailed_noise_keeps_the_rank_and_is_not_taken_for_errors():
    rng = np.random.default_rng(0)
    L = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 60))
    model = RPCA().fit(L + 0.1 * rng.standard_t(5, size=L.shape))
    assert model.rank_ == 3
    assert model.density_ < 0.03
    assert relative(model.low_rank_, L) < 0.03


def test_images_share_a_unit_and_tables_do_not():
    assert (RPCA(tol=1e-3).fit(load_digits().data[:300])._decomposition.units.scale == 1).all()
    units = RPCA(tol=1e-3).fit(load_breast_cancer().data)._decomposition.units
    assert units.shift.all()
    assert units.scale.max() > 100 * units.scale.min()


def test_columns_of_different_units_that_are_taken_as_they_are_are_named():
    X = table(0)[0]
    words = r"RPCA: the medians or spreads.*Set center='median' and scale='mad'"
    with pytest.warns(UserWarning, match=words):
        RPCA(center=None, scale=None).fit(X)
    with pytest.warns(UserWarning, match="RPCAG: the medians or spreads"):
        RPCAG(center=None, scale=None).fit(X)


@pytest.mark.parametrize("factor", [1e-90, 1e-30, 1e30, 1e90])
def test_data_of_any_size_have_the_same_subspace(factor):
    X, _, _ = planted(0, 100, 40, 3)
    plain, model = RPCA().fit(X), RPCA().fit(factor * X)
    np.testing.assert_allclose(model.low_rank_ / factor, plain.low_rank_, atol=1e-4)
    assert relative(model.components_.T @ (model.components_ @ X.T), X.T) == pytest.approx(
        relative(plain.components_.T @ (plain.components_ @ X.T), X.T), rel=1e-3
    )


def test_a_common_offset_of_a_hundred_million_does_no_harm():
    X, L, _ = planted(0, 200, 40, 3)
    model = RPCA().fit(X + 1e8)
    assert relative(model.low_rank_ - 1e8, L) < 0.06
    assert model.n_components_ == 3


def test_single_precision_stays_and_agrees():
    X = table(0)[0]
    model, single = RPCA().fit(X), RPCA().fit(X.astype(np.float32))
    assert single.low_rank_.dtype == single.components_.dtype == np.float32
    assert single.sparse_.dtype == single.decompose(X.astype(np.float32))[0].dtype == np.float32
    # An entry at the cut may be flagged in one of the two.
    assert relative(single.low_rank_, model.low_rank_) < 1e-3
    assert np.mean(single.entry_flags_ != model.entry_flags_) < 1e-3


def test_zeros_that_fill_most_of_the_data_do_not_hide_the_noise_of_the_others(rng):
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 60)) + 0.1 * rng.normal(size=(300, 60))
    X[:, 24:] = 0  # the margins of images
    model = RPCA(center=None, scale=None).fit(X)
    assert 0.05 < model.noise_ < 0.2
    assert model.n_components_ == 3


@pytest.mark.parametrize(("n", "d"), [(8, 2), (20, 5), (50, 50)])
def test_an_entry_far_beyond_all_others_does_not_lead_a_fit_astray(n, d, rng):
    X = rng.poisson(0.5, size=(n, d)).astype(float)
    X[0, 0] = 1e5
    model = RPCA(sparsity=3.0, noise=0, center=None, scale=None)
    with pytest.warns(UserWarning, match="sparsity=3 is too high"):
        model.fit(X)
    assert model.converged_
    assert model.dual_gap_ < 1e-6
    np.testing.assert_allclose(model.low_rank_, X, atol=1e-4)
