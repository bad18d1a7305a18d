"""What RPCA, RPCAG and FRPCAG make of new rows, of stored rows, and of odd ones."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
from pursuit import rpca, rpcag
from scipy import sparse
from sklearn.base import clone

from robustpca import FRPCAG, RPCA, RPCAG
from robustpca.solvers.known_rows import KnownRows

# On random data nothing is smooth, and it does not matter here.
full_rank_is_fine = pytest.mark.filterwarnings("ignore:FRPCAG. low_rank_ has full rank")
METHODS = {
    "RPCA": rpca(tol=1e-7),
    "uncentred": rpca(tol=1e-7, center_low_rank=False),
    "median": rpca(tol=1e-7, center="median"),
    "noise": rpca(tol=1e-7, noise=0.1),
    "auto": rpca(tol=1e-7, noise="auto", center="median", center_low_rank=False),
    "RPCAG": rpcag(smoothness=0.3, tol=1e-7, max_iter=5000),
    "RPCAG noise": rpcag(smoothness=0.3, noise=0.1, center="median"),
    "RPCAG plain": rpcag(smoothness=0.1, normalized=False, center_low_rank=False, tol=1e-7),
    "FRPCAG": FRPCAG(tol=1e-8),
    "FRPCAG raw": FRPCAG(tol=1e-8, standardize=False, normalized=False, center_low_rank=False),
}


def planted(seed, n=120, d=60, rank=3, *, corrupted=0.05, noise=0.1, missing=0.0, shift=1.0):
    """Data, and the low-rank and the sparse part that they were made of."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + shift * rng.normal(size=d)
    S = np.where(rng.random((n, d)) < corrupted, rng.uniform(-10, 10, (n, d)), 0.0)
    X = L + S + noise * rng.normal(size=(n, d))
    X[rng.random((n, d)) < missing] = np.nan
    return X, L, S


def dense(A):
    return A.toarray() if sparse.issparse(A) else A


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


def agree(model, X, tol):
    """Whether rows of the training data get their parts and scores back, also as new rows."""
    for asked, most in ((model, 1e-12 * np.nanmax(np.abs(X))), (forgetful(model), tol)):
        low_rank, found = asked.decompose(X)
        np.testing.assert_allclose(low_rank, model.low_rank_, rtol=0, atol=most)
        np.testing.assert_allclose(dense(found), dense(model.sparse_), rtol=0, atol=most)
        np.testing.assert_allclose(asked.transform(X), model.embedding_, rtol=0, atol=3 * most)


def forgetful(model):
    """The same model, to which the rows of the training data are rows like any other."""
    model = copy.copy(model)
    others = KnownRows.of(np.full((1, model.n_features_in_), 1e300))
    model._decomposition = replace(model._decomposition, known=others)
    return model


@full_rank_is_fine
@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("name", METHODS)
def test_training_rows_get_their_training_parts_back(name, missing):
    X = planted(0, 80, 40, missing=missing)[0]
    # The data are of order one to ten.
    agree(clone(METHODS[name]).fit(X), X, 1e-3 if name.startswith("RPCAG") else 1e-4)


SOLVERS = {
    "auto": RPCA(),
    "convex": RPCA(debias=False),
    "admm": RPCA(solver="admm", noise=0),
    "ialm": RPCA(solver="ialm", noise=0),
    "ialm, noise": RPCA(solver="ialm", debias=False),
    "altproj": RPCA(3, solver="altproj", noise=0),
    "altproj, noise": RPCA(3, solver="altproj", debias=False),
    "sampled": RPCA(solver="sampled"),
    "sampled, noise": RPCA(solver="sampled", debias=False),
    "high sparsity": RPCA(sparsity=10.0, center="median"),
    "unfinished": RPCA(noise=0, max_iter=5),
    "RPCAG": RPCAG(),
    "RPCAG smooth": RPCAG(smoothness=0.3),
    "RPCAG unfinished": RPCAG(smoothness=0.3, max_iter=5),
    "FRPCAG": FRPCAG(),
    "FRPCAG raw": FRPCAG(standardize=False, normalized=False),
    "FRPCAG huber": FRPCAG(loss="huber"),
    "FRPCAG unfinished": FRPCAG(max_iter=3),
}
DATA = {
    "exact": {"noise": 0.0, "shift": 0.0},
    "noise": {},
    "holes": {"missing": 0.15},
    "many errors": {"rank": 8, "corrupted": 0.3, "noise": 0.3},
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *((kind, np.float64) for kind in DATA),
        *((kind, np.float32) for kind in ("exact", "holes")),
        *(
            pytest.param(kind, np.float32, marks=pytest.mark.slow)
            for kind in ("noise", "many errors")
        ),
    ],
)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_gives_training_rows_their_parts_of_the_fit(name, kind, dtype):
    X = planted(0, 80, 40, **DATA[kind])[0].astype(dtype)
    model, order = clone(SOLVERS[name]).fit(X), np.random.default_rng(1).permutation(80)
    low_rank, found = model.decompose(X[order])
    # To rounding error: products of other rows at a time may be summed in another order.
    most = 64 * np.finfo(dtype).eps * np.nanmax(np.abs(X))
    np.testing.assert_allclose(low_rank, model.low_rank_[order], rtol=0, atol=most)
    np.testing.assert_allclose(dense(found), dense(model.sparse_)[order], rtol=0, atol=most)
    np.testing.assert_array_equal(model.flag_entries(X[order]), model.entry_flags_[order])
    codes = model.transform(X[order])
    np.testing.assert_allclose(codes, model.embedding_[order], rtol=0, atol=10 * most)


@full_rank_is_fine
@pytest.mark.parametrize("model", [rpcag(smoothness=0.3), FRPCAG(), FRPCAG(loss="huber")])
def test_of_equal_rows_that_a_graph_tells_apart_the_first_one_counts(model):
    X = np.repeat(planted(0, 12, 20)[0], 15, axis=0)
    model = clone(model).fit(X)
    L, S = model.low_rank_, dense(model.sparse_)
    # Each has edges to ten of its fourteen equals, and hardly two of them to the same.
    assert np.abs(L - np.repeat(L[::15], 15, axis=0)).max() > 1e-3
    low_rank, found = model.decompose(X)
    np.testing.assert_allclose(low_rank, np.repeat(L[::15], 15, axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(dense(found), np.repeat(S[::15], 15, axis=0), rtol=0, atol=1e-12)


@full_rank_is_fine
@pytest.mark.parametrize("name", ["altproj", "RPCAG unfinished", "FRPCAG"])
def test_known_and_new_rows_may_come_together(name):
    X = planted(0, 90, 40, missing=0.1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(SOLVERS[name]).fit(X[:80])
    low_rank, found = model.decompose(X[70:])
    np.testing.assert_allclose(low_rank[:10], model.low_rank_[70:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(dense(found)[:10], dense(model.sparse_)[70:], rtol=0, atol=1e-12)
    alone = model.decompose(X[80:])
    np.testing.assert_allclose(low_rank[10:], alone[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(dense(found)[10:], dense(alone[1]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("solver", ["admm", "ialm"])
def test_training_rows_get_planted_parts_back_where_these_were_found(solver):
    X, L, S = planted(0, 150, 80, noise=0.0, shift=0.0)
    model = rpca(solver=solver).fit(X)
    assert relative(model.low_rank_, L) < 1e-6
    agree(model, X, 2e-4)
    np.testing.assert_array_equal(dense(model.decompose(X)[1]) != 0, S != 0)


@pytest.mark.parametrize(("n", "d", "missing", "seed"), [(500, 30, 0.0, 1), (150, 60, 0.2, 0)])
def test_training_rows_get_their_parts_back_whatever_the_last_penalty(n, d, missing, seed):
    X = planted(seed, n, d, 2, noise=0.0, missing=missing, shift=3.0)[0]
    agree(rpca(tol=1e-7, max_iter=5000).fit(X), X, 1e-2)


def test_training_rows_get_smooth_parts_back_to_four_digits():
    X = planted(0, 80, 40, missing=0.15)[0]
    agree(clone(METHODS["RPCAG plain"]).fit(X), X, 2e-4)


NEW = {
    "admm": (rpca(), 1e-5),
    "ialm": (rpca(solver="ialm"), 1e-5),
    "altproj": (rpca(3, solver="altproj"), 1e-5),
    "sampled": (rpca(3, solver="sampled"), 1e-5),
    "median": (rpca(center="median"), 1e-5),
    "uncentred": (rpca(center_low_rank=False), 1e-5),
    "many": (rpca(6), 1e-5),
    "share": (rpca(0.999), 1e-5),
    "RPCAG": (rpcag(smoothness=0.01), 1e-4),
}


@pytest.mark.parametrize("name", NEW)
def test_new_rows_of_the_planted_subspace_are_recovered(name):
    X, L, S = planted(0, 240, 80, noise=0.0, missing=0.1, shift=0.0)
    model, tol = NEW[name]
    model = clone(model).fit(X[:200])
    low_rank, found = model.decompose(X[200:])
    assert relative(low_rank, L[200:]) < tol
    observed = ~np.isnan(X[200:])
    assert relative(dense(found)[observed], S[200:][observed]) < tol
    assert not dense(found)[~observed].any()
    assert sparse.issparse(found)
    assert relative(model.reconstruct(X[200:]), L[200:]) < tol


@pytest.mark.parametrize("method", [rpca, rpcag])
def test_new_rows_with_dense_noise_are_recovered_up_to_the_noise(method):
    X, L, S = planted(0, 240, 80, noise=0.1, missing=0.1, shift=0.0)
    model = method(noise="auto", **({"smoothness": 0.01} if method is rpcag else {}))
    low_rank, found = model.fit(X[:200]).decompose(X[200:])
    assert relative(low_rank, L[200:]) < 0.08
    gross = np.abs(np.where(np.isnan(X[200:]), 0, S[200:])) > 3
    assert (dense(found)[gross] != 0).all()
    assert np.mean(dense(found) != 0) < 0.2


@full_rank_is_fine
def test_frpcag_takes_gross_errors_out_of_new_rows():
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.normal(size=(4, 40)), 35, axis=0)
    X = truth + 0.05 * rng.normal(size=truth.shape)
    X += np.where(rng.random(X.shape) < 0.05, 8.0, 0.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    new = np.arange(140) % 35 >= 25
    low_rank, found = FRPCAG().fit(X[~new]).decompose(X[new])
    filled = np.where(np.isnan(X), 0.0, X)[new]
    assert relative(low_rank, truth[new]) < 0.35 * relative(filled, truth[new])
    gross = np.nan_to_num(X - truth)[new] > 5
    assert (dense(found)[gross] > 3).all()


@full_rank_is_fine
@pytest.mark.parametrize("name", METHODS)
def test_what_a_row_is_split_into_depends_on_that_row_alone(name):
    X = planted(0, 80, 40, missing=0.05)[0]
    model, new = clone(METHODS[name]).fit(X[:60]), X[60:]
    low_rank, found = model.decompose(new)
    codes = model.transform(new)
    assert low_rank.shape == found.shape == new.shape
    for i in (0, 7, 19):
        low, wrong = model.decompose(new[i : i + 1])
        np.testing.assert_allclose(low[0], low_rank[i], atol=1e-8)
        np.testing.assert_allclose(dense(wrong)[0], dense(found)[i], atol=1e-8)
        np.testing.assert_allclose(model.transform(new[i : i + 1])[0], codes[i], atol=1e-8)
    turned = model.decompose(X[:60][::-1])[0]
    np.testing.assert_allclose(turned[::-1], model.decompose(X[:60])[0], atol=1e-8)
    # One package gives the training result back, whatever it is asked for.
    assert relative(model.decompose(X[:20])[0], low_rank) > 0.1


@full_rank_is_fine
@pytest.mark.parametrize("name", METHODS)
def test_scores_are_those_of_the_low_rank_part(name):
    X = planted(0, 80, 40, missing=0.05)[0]
    model = clone(METHODS[name]).fit(X[:60])
    scores = (model.decompose(X[60:])[0] - model.mean_) @ model.components_.T
    np.testing.assert_allclose(model.transform(X[60:]), scores, atol=1e-8)
    centred = model.low_rank_ - model.mean_
    np.testing.assert_allclose(model.embedding_, centred @ model.components_.T, atol=1e-8)
    if model.center_low_rank:
        np.testing.assert_allclose(model.mean_, model.low_rank_.mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(
        np.sum(model.embedding_**2, axis=0), model.singular_values_**2 * 60 / 59, rtol=0.05
    )


@full_rank_is_fine
@pytest.mark.parametrize("name", ["RPCA", "uncentred", "RPCAG", "FRPCAG"])
def test_a_share_of_the_variance_is_reached_with_as_few_components_as_can_be(name):
    X = planted(0, 80, 40, 5)[0]
    model = clone(METHODS[name]).set_params(n_components=0.7).fit(X)
    shares = np.cumsum(model.explained_variance_ratio_)
    assert shares[-1] >= 0.7
    assert (shares[:-1] < 0.7).all()
    whole = clone(METHODS[name]).fit(X)
    np.testing.assert_allclose(model.components_, whole.components_[: len(shares)], atol=1e-6)
    np.testing.assert_array_equal(model.low_rank_, whole.low_rank_)


def test_more_components_than_the_rank_add_scores_of_zero():
    X = planted(0, 80, 40, noise=0.0, shift=0.0)[0]
    model = rpca(7).fit(X)
    assert (model.rank_, model.n_components_) == (3, 7)
    assert not model.transform(X)[:, 3:].any()
    assert not model.explained_variance_[3:].any()
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(7), atol=1e-12)


@full_rank_is_fine
@pytest.mark.parametrize(
    "model",
    [
        rpca(2),
        rpca(0.5),
        rpcag(2, smoothness=0.01),
        FRPCAG(2, tol=1e-8),
    ],
)
def test_fewer_components_than_the_rank_change_no_decomposition(model):
    X = planted(0, 150, 80, noise=0.0, shift=0.0)[0]
    agree(clone(model).fit(X), X, 1e-3)


@full_rank_is_fine
@pytest.mark.parametrize("loss", ["huber", "l2"])
def test_the_sparse_part_of_new_rows_is_that_of_the_loss(loss):
    X = planted(0, 80, 40)[0]
    agree(FRPCAG(loss=loss, tol=1e-8).fit(X), X, 1e-4)


@full_rank_is_fine
@pytest.mark.parametrize("name", ["RPCA", "RPCAG", "FRPCAG"])
def test_new_rows_about_which_nothing_can_be_said_are_refused(name):
    X = planted(0, 60, 30)[0]
    model, new = clone(METHODS[name]).fit(X), X[:4].copy()
    new[:, 3] = np.nan
    assert np.isfinite(model.transform(new)).all()
    assert np.isfinite(model.predict(new)).all()
    new[2] = np.nan
    for ask in (model.transform, model.decompose, model.predict):
        with pytest.raises(ValueError, match=r"1 rows of X hold no value.*at \[2\].*Leave them"):
            ask(new)
    new[2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.decompose(new)


def test_a_new_row_next_to_vertices_without_edges_is_left_alone():
    X, empty = planted(0, 60, 30)[0], sparse.csr_array((50, 50))
    settings = {"tol": 1e-7, "max_iter": 5000}
    lonely = rpcag(graph=empty, **settings).fit(X[:50])
    plain = rpca(**settings).fit(X[:50])
    np.testing.assert_allclose(lonely.decompose(X[50:])[0], plain.decompose(X[50:])[0], atol=1e-3)


@full_rank_is_fine
@pytest.mark.parametrize("model", [rpcag(0.9, tol=1e-7, max_iter=9999), FRPCAG(tol=1e-8)])
def test_a_training_row_is_known_though_another_agrees_where_both_have_values(model):
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 10)), 2, axis=0)
    X[1::2, 3] = np.nan
    model = clone(model).set_params(n_components=None, n_neighbors=5).fit(X)
    agree(model, X, 1e-3)


@full_rank_is_fine
def test_few_rows_may_be_transformed_right_after_the_fit():
    X = planted(0, 8, 30)[0]
    model = FRPCAG(standardize=False).fit(X)
    np.testing.assert_allclose(model.transform(X), model.transform(X.copy()))


def test_an_entry_ten_thousand_times_as_large_as_the_others_does_no_harm():
    X, L, _ = planted(0, 100, 60, noise=0.0, shift=0.0)
    X[3, 5], X[50, 20] = 1e4, -1e4
    model = rpca().fit(X)
    assert relative(model.low_rank_, L) < 1e-5
    assert model.sparse_[3, 5] == pytest.approx(1e4 - L[3, 5], rel=1e-6)
    assert (model.predict(X)[[3, 50]] == -1).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("model", [rpca(), rpca(solver="ialm"), rpca(3, solver="altproj")])
def test_an_entry_as_large_as_can_be_does_no_harm(model):
    X, L, _ = planted(0, 100, 60, noise=0.0, shift=0.0)
    X[3, 5], X[50, 20] = 1e8, -1e8
    assert relative(clone(model).fit(X).low_rank_, L) < 1e-3


def odd(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 6))
    if kind == "one entry in a row":
        X[3, 1:] = np.nan
    elif kind == "one entry in a column":
        X[1:, 2] = np.nan
    elif kind == "constant column with holes":
        X[:, 2] = np.where(np.arange(12) % 2, np.nan, 3.0)
    elif kind == "zero row and column":
        X[3], X[:, 2] = 0.0, 0.0
    return {
        "two rows, one column": X[:2, :1],
        "two rows": X[:2],
        "one column": X[:, :1],
        "more columns than rows": rng.normal(size=(8, 50)),
        "zeros": np.zeros((6, 4)),
        "ones": np.ones((6, 4)),
        "equal rows": np.tile(X[0], (6, 1)),
        "duplicate rows": np.repeat(X[:5], 4, axis=0),
        "rank one": np.outer(np.arange(1.0, 11), np.ones(6)),
        "a spike": np.where(np.arange(60).reshape(10, 6) == 17, 5.0, 0.0),
    }.get(kind, X)


KINDS = [
    "two rows, one column",
    "two rows",
    "one column",
    "more columns than rows",
    "zeros",
    "ones",
    "equal rows",
    "duplicate rows",
    "rank one",
    "a spike",
    "one entry in a row",
    "one entry in a column",
    "constant column with holes",
    "zero row and column",
]
ODD = {
    "RPCA": rpca(),
    "ialm": rpca(solver="ialm"),
    "auto": rpca(noise="auto"),
    "median": rpca(center="median"),
    "RPCAG": rpcag(),
    "unnormalised": rpcag(normalized=False, noise="auto"),
    "FRPCAG": FRPCAG(),
    "huber": FRPCAG(0.9, loss="huber"),
}


@pytest.mark.filterwarnings("ignore:.*seem to have different units")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ODD)
def test_odd_data_are_decomposed_like_any_other(name, kind):
    X, model = odd(kind), clone(ODD[name]).set_params(max_iter=3000)
    with warnings.catch_warnings():
        # The parts of such data may well be trivial, which is what these warnings say.
        warnings.filterwarnings(
            "ignore", message=r"\w+: (sparse_|low_rank_) ", category=UserWarning
        )
        warnings.filterwarnings("ignore", message="RPCA: solver='ialm' ended")
        model.fit(X)
    parts = [model.low_rank_, dense(model.sparse_), *map(dense, model.decompose(X))]
    for part in (*parts, model.embedding_, model.transform(X), model.score_samples(X)):
        assert np.isfinite(part).all()
    basis = model.components_
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-9)
    if name in ("RPCA", "ialm", "median", "RPCAG"):
        np.testing.assert_allclose(np.nan_to_num(X - parts[0] - parts[1]), 0, atol=1e-3)
    if name == "RPCA":
        np.testing.assert_allclose(parts[2], parts[0], atol=1e-2)


@full_rank_is_fine
@pytest.mark.parametrize("model", [rpcag(), FRPCAG()])
def test_rows_without_a_common_feature_are_no_neighbours(model):
    X = np.random.default_rng(0).normal(size=(12, 6))
    X[:6, :3], X[6:, 3:] = np.nan, np.nan
    model = clone(model).fit(X)
    assert np.isfinite(model.transform(X)).all()


@full_rank_is_fine
@pytest.mark.parametrize(
    "model",
    [
        rpca(),
        FRPCAG(),
        rpcag(smoothness=0.1, center="median"),
        rpcag(smoothness=0.1),
        FRPCAG(standardize=False),
    ],
)
def test_changing_the_array_after_the_fit_changes_nothing(model):
    X = planted(0, 60, 40, noise=0.1)[0]
    model, new = clone(model).fit(X), planted(1, 5, 40)[0]
    parts = (model.low_rank_, dense(model.sparse_).copy(), *map(dense, model.decompose(new)))
    X[...] = 7.0
    again = (model.low_rank_, dense(model.sparse_), *map(dense, model.decompose(new)))
    for part, other in zip(parts, again, strict=True):
        np.testing.assert_array_equal(part, other)


@full_rank_is_fine
@pytest.mark.parametrize("name", ["RPCA", "auto", "RPCAG", "FRPCAG"])
def test_missing_entries_of_a_data_frame_are_those_of_the_array(name):
    pandas = pytest.importorskip("pandas")
    X = planted(0, 60, 40, missing=0.1)[0]
    frame = pandas.DataFrame(X).add_prefix("x")
    model, expected = clone(METHODS[name]).fit(frame), clone(METHODS[name]).fit(X)
    np.testing.assert_array_equal(model.low_rank_, expected.low_rank_)
    np.testing.assert_array_equal(model.decompose(frame)[0], expected.decompose(X)[0])


@full_rank_is_fine
@pytest.mark.parametrize("kind", ["memmap", "dask"])
@pytest.mark.parametrize("name", ["RPCA", "auto", "RPCAG", "FRPCAG"])
def test_lazy_arrays_have_the_same_parts_to_the_last_bit(name, kind, tmp_path):
    X = planted(0, 60, 40, missing=0.1)[0]
    if kind == "memmap":
        lazy = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
        lazy[...] = X
        lazy.flush()
    else:
        lazy = pytest.importorskip("dask.array").from_array(X, chunks=(25, -1))
    model, expected = clone(METHODS[name]).fit(lazy), clone(METHODS[name]).fit(X)
    np.testing.assert_array_equal(model.low_rank_, expected.low_rank_)
    np.testing.assert_array_equal(dense(model.sparse_), dense(expected.sparse_))
    for part, other in zip(model.decompose(lazy), expected.decompose(X), strict=True):
        np.testing.assert_array_equal(dense(part), dense(other))
    with pytest.raises(ValueError, match="infinity; mark missing entries with NaN"):
        clone(model).fit(abs(lazy) * np.inf if kind == "dask" else infinite(lazy))


def infinite(lazy):
    lazy[3, 3] = np.inf
    lazy.flush()
    return lazy
