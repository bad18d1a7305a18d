"""Directions of far-reaching scores: enumeration, special cases, planted truths, odd input."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from robustpca import EMPCA, L1PCA, RSPCA, GrassmannAverage, LpPCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance
from robustpca.parts.centers import CENTERS
from robustpca.solvers import directions

POWERS = [1.0, 1.2, 1.5, 2.0, 3.0]
ALL = {
    "L1PCA": L1PCA(2),
    "L1PCA, all at once": L1PCA(2, greedy=False),
    "LpPCA": LpPCA(2),
    "LpPCA, all at once": LpPCA(2, greedy=False),
    "RSPCA": RSPCA(2),
    "RSPCA, bounded": RSPCA(2, l1_bound=1.4),
    "GrassmannAverage": GrassmannAverage(2, trim=0.0),
    "GrassmannAverage, trimmed": GrassmannAverage(2, trim=0.2),
    "GrassmannAverage, medians": GrassmannAverage(2),
    "EMPCA": EMPCA(2),
}

every_method = pytest.mark.parametrize("name", ALL)


def signs_of(scores):
    return np.where(scores < 0, -1.0, 1.0)


def unit(v):
    return v / np.linalg.norm(v)


def centred(X, model):
    return X - model.mean_


def deflated(Y, components):
    return Y - Y @ components.T @ components


def rises(objective):
    return (np.diff(objective) >= -1e-10 * np.abs(objective[:-1])).all()


def best_by_enumeration(Y):
    """The largest sum of absolute scores: the longest of all signed sums of the samples."""
    patterns = np.array(list(itertools.product([-1.0, 1.0], repeat=len(Y) - 1)))
    sums = np.hstack([np.ones((len(patterns), 1)), patterns]) @ Y
    return np.linalg.norm(sums, axis=1).max()


def same_up_to_sign(first, second, atol):
    signs = np.sign(np.sum(first * second, axis=1))
    assert_allclose(first, signs[:, None] * second, atol=atol)


@pytest.mark.parametrize("heavy", [False, True])
def test_enumeration_of_all_signs_certifies_the_first_l1_component(heavy):
    reached = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 13))
        X = rng.standard_t(1.5, size=(n, 4)) if heavy else rng.normal(size=(n, 4))
        for n_init in (1, 20):
            model = L1PCA(1, n_init=n_init).fit(X)
            Y, w = centred(X, model), model.components_[0]
            optimum = best_by_enumeration(Y)
            value = np.abs(Y @ w).sum()
            assert value <= optimum * (1 + 1e-12)
            assert value == pytest.approx(model.objective_[-1], rel=1e-12)
            # A fixed point, and no sample at right angles to it.
            assert_allclose(unit(Y.T @ signs_of(Y @ w)), w, atol=1e-9)
            assert np.abs(Y @ w).min() > 1e-9
        reached += value >= optimum * (1 - 1e-9)
    assert reached >= 27


def test_no_frame_nearby_is_higher_than_the_non_greedy_one(rng):
    X = rng.standard_t(3, size=(40, 5))
    model = L1PCA(2, greedy=False).fit(X)
    Y, W = centred(X, model), model.components_.T
    value = np.abs(Y @ W).sum()
    for size in (1e-4, 1e-2):
        for _ in range(50):
            other = np.linalg.qr(W + size * rng.normal(size=W.shape))[0]
            assert np.abs(Y @ other).sum() <= value * (1 + 1e-12)
    # At a fixed point the polar factor of the pull is the frame itself.
    pull = Y.T @ signs_of(Y @ W)
    assert np.sum(W * pull) == pytest.approx(np.linalg.norm(pull, "nuc"), rel=1e-8)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("init", ["sample", "pca"])
def test_the_objective_never_falls_and_ends_at_that_of_the_components(p, greedy, init, rng):
    X = rng.standard_t(3, size=(60, 8)) * np.linspace(3, 1, 8)
    model = LpPCA(3, p=p, greedy=greedy, init=init, max_iter=5000).fit(X)
    assert len(model.objective_) == model.n_iter_ + 1
    assert rises(model.objective_)
    scores = np.abs(model.transform(X)) ** p
    assert model.objective_[-1] == pytest.approx(scores.sum(), rel=1e-10)
    if not greedy:
        assert (np.diff(scores.sum(axis=0)) <= 0).all()


@pytest.mark.parametrize("p", POWERS)
def test_each_greedy_component_is_a_fixed_point_of_what_the_others_leave(p, rng):
    X = rng.standard_t(3, size=(60, 8)) * np.linspace(3, 1, 8)
    model = LpPCA(4, p=p, tol=1e-10, max_iter=5000).fit(X)
    Y = centred(X, model)
    for j, w in enumerate(model.components_):
        left = deflated(Y, model.components_[:j])
        z = left @ w
        assert_allclose(unit(left.T @ (np.abs(z) ** (p - 1) * signs_of(z))), w, atol=1e-7)


def test_p_1_is_l1_pca(rng):
    X = rng.normal(size=(50, 6))
    for greedy in (True, False):
        first, second = L1PCA(3, greedy=greedy).fit(X), LpPCA(3, p=1, greedy=greedy).fit(X)
        assert_array_equal(first.components_, second.components_)


@pytest.mark.parametrize("shape", [(60, 8), (30, 50)])
def test_p_2_and_em_are_ordinary_pca(shape, rng):
    X = rng.normal(size=shape) * np.r_[9.0, 6.0, 4.0, np.linspace(1, 0.5, shape[1] - 3)] + 5
    expected = PCA(3, svd_solver="full").fit(X)
    for model in (LpPCA(3, p=2, tol=1e-10), LpPCA(3, p=2, init="pca"), EMPCA(3, tol=1e-9)):
        model.fit(X)
        same_up_to_sign(model.components_, expected.components_, atol=1e-7)
        assert_allclose(model.mean_, expected.mean_, atol=1e-12)
        assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-9)
        ratio = expected.explained_variance_ratio_
        assert_allclose(model.explained_variance_ratio_, ratio, rtol=1e-9)
        assert_allclose(model.singular_values_, expected.singular_values_, rtol=1e-9)
    joint = LpPCA(3, p=2, greedy=False).fit(X)
    assert subspace_distance(joint.components_, expected.components_) < 1e-6


def test_em_explains_ever_more_and_stops_by_the_angle_between_spans(rng):
    X = rng.normal(size=(80, 12)) * np.linspace(4, 1, 12)
    spans = []
    model = EMPCA(3, tol=1e-7, random_state=3)
    for max_iter in (1, 2, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            spans.append(clone(model).set_params(max_iter=max_iter).fit(X))
    changes = []
    model.set_params(callback=lambda info: changes.append(info.change)).fit(X)
    assert rises(model.objective_)
    assert changes[-1] <= 1e-7 < changes[-2]
    for j in (1, 2):
        angle = subspace_distance(spans[j - 1].components_, spans[j].components_)
        assert changes[j] == pytest.approx(angle, rel=1e-6)
    # Scores along the principal axes are uncorrelated.
    scores = model.transform(X)
    gram = scores.T @ scores
    assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9 * gram.max())
    other = EMPCA(3, tol=1e-7, random_state=4).fit(X)
    assert subspace_distance(model.components_, other.components_) < 1e-5


@pytest.mark.parametrize("init", ["pca", "sample"])
def test_without_trimming_the_grassmann_average_is_l1_pca_from_the_same_start(init, rng):
    X = rng.standard_t(3, size=(70, 6))
    average = GrassmannAverage(4, trim=0, init=init).fit(X)
    expected = L1PCA(4, init=init).fit(X)
    assert_allclose(average.components_, expected.components_, atol=1e-10)
    assert_allclose(average.mean_, expected.mean_)
    # A share of less than one sample trims nothing, though it goes through the trimmed means.
    nearly = GrassmannAverage(4, trim=1e-3, init=init, center="mean").fit(X)
    assert_allclose(nearly.components_, expected.components_, atol=1e-10)


def textbook_tga(X, n_components, trim, n_iter=300):
    """The trimmed Grassmann average as one would write it down."""

    def average(A):
        return np.median(A, axis=0) if trim == 0.5 else stats.trim_mean(A, trim)

    Y = X - average(X)
    components = []
    for _ in range(n_components):
        q = np.linalg.svd(Y, full_matrices=False)[2][0]
        for _ in range(n_iter):
            before, q = q, unit(average(signs_of(Y @ q)[:, None] * Y))
            if np.abs(q - before).max() <= 1e-12:
                break
        for other in components:
            q = unit(q - other * (other @ q))
        components.append(q)
        Y = Y - np.outer(Y @ q, q)
    return np.array(components)


@pytest.mark.parametrize("trim", [0.05, 0.25, 0.5])
@pytest.mark.parametrize("shape", [(101, 6), (400, 15), (40, 60)])
def test_trimmed_averages_are_those_of_the_textbook(trim, shape, rng):
    # A gap behind each variance makes both starts of a component the same.
    X = rng.normal(size=shape) * 2.0 ** -np.arange(shape[1]).clip(max=20) + 3
    model = GrassmannAverage(1, trim=trim, tol=1e-12).fit(X)
    expected = textbook_tga(X, 3, trim)
    same_up_to_sign(model.components_, expected[:1], atol=1e-8)
    model = GrassmannAverage(3, trim=trim, tol=1e-12).fit(X)
    Y = centred(X, model)
    for j, q in enumerate(model.components_):
        left = deflated(Y, model.components_[:j])
        signed = signs_of(left @ q)[:, None] * left
        pull = np.median(signed, axis=0) if trim == 0.5 else stats.trim_mean(signed, trim)
        pull -= model.components_[:j].T @ (model.components_[:j] @ pull)
        assert_allclose(np.abs(unit(pull) @ q), 1, atol=1e-12)


def test_trimming_leaves_single_bad_entries_out(rng):
    X, basis, _ = planted_subspace(rng, 500, 20, 1, noise=0.05)
    X[rng.random(X.shape) < 0.05] = 60.0
    trimmed = GrassmannAverage(1, trim=0.25).fit(X)
    assert subspace_distance(trimmed.components_, basis) < 0.1
    assert subspace_distance(PCA(1).fit(X).components_, basis) > 0.5
    assert subspace_distance(GrassmannAverage(1, trim=0).fit(X).components_, basis) > 0.5


def test_flipping_samples_about_the_centre_changes_no_grassmann_average(rng):
    X = rng.normal(size=(60, 5)) * [3, 2, 1, 1, 1]
    flipped = X * rng.choice([-1.0, 1.0], size=(60, 1))
    for trim in (0.0, 0.2, 0.5):
        first = GrassmannAverage(2, trim=trim, center="zero").fit(X)
        second = GrassmannAverage(2, trim=trim, center="zero").fit(flipped)
        assert_allclose(first.components_, second.components_, atol=1e-12)


def test_symmetric_data_leave_a_trimmed_average_where_it_started():
    # Every trimmed mean is zero, so there is nothing to move to.
    X = np.vstack([np.eye(6), -np.eye(6)])
    model = GrassmannAverage(2, center="zero").fit(X)
    assert model.converged_
    assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)


def test_the_centre_of_a_grassmann_average_is_trimmed_alike(rng):
    X = rng.standard_t(2, size=(80, 4))
    assert_allclose(GrassmannAverage(1).fit(X).mean_, np.median(X, axis=0))
    trimmed = stats.trim_mean(X, 0.1)
    assert_allclose(GrassmannAverage(1, trim=0.1).fit(X).mean_, trimmed)
    assert_allclose(GrassmannAverage(1, trim=0).fit(X).mean_, X.mean(axis=0))
    assert_allclose(GrassmannAverage(1, center="mean").fit(X).mean_, X.mean(axis=0))


def test_going_round_in_circles_ends_with_a_warning(rng, monkeypatch):
    X = rng.normal(size=(50, 2))
    turns = itertools.count()

    def circling(self, signs):
        angle = 2 * np.pi * next(turns) / 3
        return np.array([np.cos(angle), np.sin(angle)])

    monkeypatch.setattr(directions.TrimmedMeans, "__call__", circling)
    with pytest.warns(ConvergenceWarning, match="went round in circles.*Lower trim") as caught:
        model = GrassmannAverage(1, center="mean").fit(X)
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.n_iter_ < 10


def test_all_features_make_robust_sparse_pca_l1_pca(rng):
    X = rng.standard_t(3, size=(60, 6))
    expected = L1PCA(3).fit(X)
    for free in (RSPCA(3, n_nonzero=6), RSPCA(3, n_nonzero=1.0), RSPCA(3, l1_bound=9.0)):
        free.fit(X)
        assert_allclose(free.components_, expected.components_, atol=1e-9)
        assert_allclose(free.transform(X), expected.transform(X), atol=1e-9)
        assert_allclose(free.explained_variance_, expected.explained_variance_, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "n_nonzero"), [({}, 4), ({"n_nonzero": 3}, 3), ({"n_nonzero": 0.1}, 2)]
)
def test_components_have_as_many_entries_as_were_asked_for(settings, n_nonzero, rng):
    X = rng.normal(size=(80, 15)) @ rng.normal(size=(15, 15))
    model = RSPCA(5, **settings).fit(X)
    assert (np.count_nonzero(model.components_, axis=1) == n_nonzero).all()
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    # From the first point inside the set on, which the start is projected to.
    assert rises(model.objective_)
    assert not np.signbit(model.components_[model.components_ == 0]).any()


@pytest.mark.parametrize("bound", [1.0, 1.5, 2.5])
def test_the_bound_on_absolute_entries_holds(bound, rng):
    X = rng.normal(size=(80, 15)) @ rng.normal(size=(15, 15))
    model = RSPCA(4, l1_bound=bound).fit(X)
    assert (np.abs(model.components_).sum(axis=1) <= bound * (1 + 1e-9)).all()
    assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert rises(model.objective_)
    if bound == 1:
        assert (np.count_nonzero(model.components_, axis=1) == 1).all()


def test_sparse_components_are_fixed_points_of_what_their_span_leaves(rng):
    X = rng.normal(size=(80, 12)) @ rng.normal(size=(12, 12))
    model = RSPCA(4, n_nonzero=4).fit(X)
    Y = centred(X, model)
    for j, w in enumerate(model.components_):
        others = np.linalg.qr(model.components_[:j].T)[0].T
        left = deflated(Y, others)
        pull = left.T @ signs_of(left @ w)
        kept = np.argsort(-np.abs(pull))[:4]
        assert set(kept) == set(np.flatnonzero(w))
        assert_allclose(unit(pull[kept]), w[kept], atol=1e-9)


def test_sparse_components_are_oblique_and_reconstruct_by_projection(rng):
    X = rng.normal(size=(80, 12)) @ rng.normal(size=(12, 12))
    model = RSPCA(4, n_nonzero=4).fit(X)
    W = model.components_.T
    assert np.abs(W.T @ W - np.eye(4)).max() > 0.05
    assert np.linalg.matrix_rank(W) == 4
    Y = centred(X, model)
    assert_allclose(model.transform(X), Y @ W @ np.linalg.inv(W.T @ W), atol=1e-10)
    projected = Y @ W @ np.linalg.pinv(W)
    assert_allclose(model.reconstruct(X), projected + model.mean_, atol=1e-10)
    basis = np.linalg.qr(W)[0]
    variances = np.sum((Y @ basis) ** 2, axis=0) / (len(X) - 1)
    assert_allclose(model.explained_variance_, variances, rtol=1e-9)
    assert_array_equal(model.loadings_, model.components_)


def test_a_planted_sparse_direction_is_found_among_outliers(rng):
    loading = np.zeros(30)
    loading[[2, 7, 11]] = [0.6, -0.64, 0.48]
    X = 5 * rng.normal(size=(300, 1)) * loading + 0.1 * rng.normal(size=(300, 30))
    X[:9] += 8 * rng.normal(size=(9, 30))
    model = RSPCA(1, n_nonzero=3, center="median").fit(X)
    assert set(np.flatnonzero(model.components_[0])) == {2, 7, 11}
    assert abs(model.components_[0] @ loading) > 0.999


@pytest.mark.parametrize("name", [name for name in ALL if name != "EMPCA"])
def test_a_planted_direction_is_recovered_where_pca_is_lost(name, rng):
    basis = unit(np.r_[1.0, -1.0, 1.0, np.zeros(9)])[None]
    X = 3 * rng.normal(size=(400, 1)) @ basis + 0.05 * rng.normal(size=(400, 12))
    X[:4] += 60 * unit(np.r_[np.zeros(9), 1.0, 1.0, 1.0])
    model = clone(ALL[name]).set_params(n_components=1, center="median")
    if "n_init" in model.get_params():
        # A direction with few features cannot leave those of the farthest sample.
        model.set_params(n_init=10)
    if "bounded" in name:
        model.set_params(l1_bound=np.sqrt(3))
    assert subspace_distance(PCA(1).fit(X).components_, basis) > 0.99
    distance = subspace_distance(model.fit(X).components_, basis)
    if "RSPCA" in name or "trimmed" in name or "medians" in name:
        assert distance < 0.02
    elif "Lp" in name:
        assert distance < 0.5
    else:
        # The maximum itself: the outliers pull by 4 * 60, the others by 400 * 3 * E|normal|.
        assert distance == pytest.approx(np.sin(np.arctan(240 / (1200 * 0.798))), rel=0.1)


@every_method
def test_memory_maps_and_dask_give_what_the_array_gives(name, rng, tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr("robustpca.engine.rows.BLOCK_BYTES", 4000)
    X = rng.normal(size=(200, 8)) * np.linspace(3, 1, 8) + 1
    stored = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    here = clone(ALL[name]).fit(X)
    for other in (stored, da.from_array(X, chunks=(70, -1))):
        there = clone(ALL[name]).fit(other)
        assert_array_equal(here.components_, there.components_)
        assert_array_equal(here.objective_, there.objective_)
        assert_array_equal(here.explained_variance_, there.explained_variance_)


@every_method
def test_sparse_input_gives_what_the_array_gives(name, rng):
    X = rng.normal(size=(90, 10)) * (rng.random((90, 10)) < 0.3) * np.linspace(3, 1, 10)
    dense, thin = clone(ALL[name]).fit(X), clone(ALL[name]).fit(sparse.csr_matrix(X))
    assert_allclose(thin.components_, dense.components_, atol=1e-6)
    assert_allclose(thin.transform(sparse.csr_matrix(X)), dense.transform(X), atol=1e-6)


ROTATED = [
    name for name in ALL if not {"RSPCA", "trimmed", "medians"} & set(name.replace(",", "").split())
]


@pytest.mark.parametrize("name", ROTATED)
@pytest.mark.parametrize("center", ["mean", "geometric_median"])
def test_rotating_the_data_rotates_every_component(name, center, rng):
    X = rng.standard_t(4, size=(100, 6)) * np.linspace(4, 1, 6) + 2
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    model = clone(ALL[name]).set_params(center=center, tol=1e-11, max_iter=5000)
    still, turned = clone(model).fit(X), model.fit(X @ rotation)
    same_up_to_sign(turned.components_, still.components_ @ rotation, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in ALL if "Grassmann" not in name])
def test_doubling_the_data_changes_nothing(name, rng):
    X = rng.normal(size=(50, 6)) * np.linspace(4, 1, 6)
    once, twice = clone(ALL[name]).fit(X), clone(ALL[name]).fit(np.vstack([X, X]))
    assert_allclose(twice.components_, once.components_, atol=1e-6)
    assert_allclose(twice.objective_[-1], 2 * once.objective_[-1], rtol=1e-9)


@pytest.mark.parametrize(
    "name", [name for name in ALL if "Grassmann" not in name and "EM" not in name]
)
def test_restarts_never_do_worse_and_depend_on_the_random_state_alone(name, rng):
    X = rng.standard_t(2, size=(30, 6))
    one = clone(ALL[name]).set_params(n_components=1).fit(X)
    many = clone(ALL[name]).set_params(n_components=1, n_init=15).fit(X)
    assert many.objective_[-1] >= one.objective_[-1] * (1 - 1e-12)
    again = clone(many).fit(X)
    assert_array_equal(many.components_, again.components_)


def test_greedy_components_come_in_the_order_of_extraction(rng):
    # Rare, far samples have much variance and little sum: the second component has more of it.
    X = np.zeros((200, 2))
    X[:, 0] = rng.choice([-1.0, 1.0], 200)
    X[:4, 1] = [25.0, -25.0, 25.0, -25.0]
    model = L1PCA(2, center="zero").fit(X)
    assert abs(model.components_[0, 0]) > 0.7
    assert model.explained_variance_[1] > model.explained_variance_[0]
    scores = np.abs(model.transform(X)).sum(axis=0)
    assert scores[0] > scores[1]


DEGENERATE = {
    "all samples equal": np.full((7, 4), 0.3),
    "two samples": np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]]),
    "duplicates": np.repeat([[0.0, 1.0, 2.0], [2.0, 2.0, 0.0], [5.0, 1.0, 1.0]], 5, axis=0),
    "rank one": np.outer(np.arange(8.0) - 3, [1.0, 2.0, 0.0, -1.0]),
    "wide": np.random.default_rng(1).normal(size=(4, 9)),
    "integers": np.random.default_rng(2).integers(-3, 4, size=(20, 5)),
    "far from zero": 1e8 + np.random.default_rng(3).normal(size=(30, 4)),
    "a constant column": np.random.default_rng(4).normal(size=(20, 4)) * [1.0, 0.0, 2.0, 1.0] + 0.7,
    "huge": 1e100 * np.random.default_rng(5).normal(size=(20, 4)),
    "tiny": 1e-100 * np.random.default_rng(6).normal(size=(20, 4)),
}


@every_method
@pytest.mark.parametrize("kind", DEGENERATE)
def test_degenerate_data_give_a_subspace_all_the_same(name, kind):
    X = DEGENERATE[kind]
    model = clone(ALL[name]).set_params(max_iter=5000).fit(X)
    components = model.components_
    assert np.isfinite(components).all()
    assert np.linalg.matrix_rank(components) == 2
    if "RSPCA" not in name:
        assert_allclose(components @ components.T, np.eye(2), atol=1e-12)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.objective_).all()
    if kind == "all samples equal":
        assert_array_equal(np.abs(components), np.eye(4)[:2])
        assert_array_equal(model.mean_, X[0])
        assert_array_equal(model.objective_, [0.0])
        assert_array_equal(model.explained_variance_ratio_, 0.0)
    elif kind == "rank one" and "RSPCA" not in name:
        assert_allclose(model.reconstruct(X), X, atol=1e-8)
    elif kind == "a constant column":
        assert_array_equal(components[:, 1], 0.0)


@every_method
def test_one_feature_has_one_direction(name):
    X = np.array([[3.0], [1.0], [2.0], [9.0]])
    model = clone(ALL[name]).set_params(n_components=1).fit(X)
    assert_array_equal(model.components_, [[1.0]])


@every_method
def test_as_many_components_as_features_reconstruct_everything(name, rng):
    X = rng.normal(size=(30, 5))
    model = clone(ALL[name]).set_params(n_components=None, max_iter=5000).fit(X)
    assert model.n_components_ == 5
    assert_allclose(model.reconstruct(X), X, atol=1e-9)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)


@pytest.mark.parametrize("center", CENTERS)
def test_every_centre_can_be_held(center, rng):
    X = rng.normal(size=(40, 5)) + 2
    for model in (L1PCA(2, center=center), GrassmannAverage(2, center=center)):
        assert_allclose(model.fit(X).mean_, CENTERS[center](ArrayRows(X)), atol=1e-12)


def test_bad_parameters_are_refused_in_words(rng):
    X = rng.normal(size=(20, 5))
    with pytest.raises(ValueError, match=r"p=0\.5 is below 1: .* not convex.*Choose p=1"):
        LpPCA(p=0.5).fit(X)
    with pytest.raises(ValueError, match=r"n_nonzero=6 is more than the 5 features"):
        RSPCA(n_nonzero=6).fit(X)
    with pytest.raises(ValueError, match=r"Both n_nonzero=2 and l1_bound=2\.0 were given"):
        RSPCA(n_nonzero=2, l1_bound=2.0).fit(X)
    with pytest.raises(ValueError, match="'trim' parameter"):
        GrassmannAverage(trim=0.6).fit(X)
    with pytest.raises(ValueError, match="'n_components' parameter"):
        L1PCA(0.5).fit(X)


def test_a_missing_entry_on_disk_is_refused(tmp_path):
    stored = np.memmap(tmp_path / "X", np.float64, "w+", shape=(20, 3))
    stored[:] = np.arange(60).reshape(20, 3)
    stored[7, 1] = np.nan
    stored.flush()
    for name in ALL:
        with pytest.raises(ValueError, match="NaN"):
            clone(ALL[name]).fit(stored)
    with pytest.raises(ValueError, match="NaN"):
        L1PCA(1, center="zero").fit(stored)


def test_the_callback_hears_which_component_is_at_work(rng, capsys):
    heard = []
    X = rng.normal(size=(40, 6))
    model = L1PCA(3, callback=heard.append, verbose=1).fit(X)
    stages = [info.stage for info in heard]
    assert sorted(set(stages)) == [1, 2, 3]
    assert stages == sorted(stages)
    assert capsys.readouterr().out.count("stage 2") == stages.count(2)
    # The first pass of a component is compared with those before it alone.
    first = stages.index(2)
    value = np.abs(model.transform(X)[:, 0]).sum()
    assert model.objective_[first] == pytest.approx(value)
    assert model.objective_[first + 1] > value
