"""RPCA, RPCAG and FRPCAG against planted parts, special cases and a general convex solver."""

import pickle
import warnings

import numpy as np
import pytest
from pursuit import METHODS, SOLVERS, full_rank_is_fine, planted, relative, rpca, rpcag
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.neighbors import KNeighborsTransformer

from robustpca import FRPCAG, RPCA, RPCAG
from robustpca.parts.entry_losses import ENTRY_LOSSES
from robustpca.parts.graphs import grid_graph, knn_graph, laplacian

may_stop_short = pytest.mark.filterwarnings("ignore:RPCA. solver='ialm' ended")


def small(seed):
    """A problem that a general solver can do; every second one has holes."""
    n, d = np.random.default_rng(seed).integers(6, 14, size=2)
    X = planted(seed, n, d, 2, corrupted=0.1, noise=0.1, missing=0.15 * (seed % 2))[0]
    X[np.isnan(X).all(axis=1), 0] = 1.0
    X[0, np.isnan(X).all(axis=0)] = 1.0
    return X


def dense(A):
    return A.toarray() if sparse.issparse(A) else A


def standardized(X, model):
    """The data and the low-rank part in the units in which FRPCAG was asked to solve."""
    if not model.standardize:
        return X, model.low_rank_
    mean, deviation = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return (X - mean) / deviation, (model.low_rank_ - mean) / deviation


def nuclear(L):
    return np.linalg.norm(L, "nuc")


def energy(Phi, L):
    return np.sum(L * (Phi @ L))


def absolute(E):
    return np.nansum(np.abs(E))


def huber(E, threshold):
    size = np.abs(E)
    return np.nansum(np.where(size < threshold, size**2 / (2 * threshold), size - threshold / 2))


class Least:
    """The least value of an objective over all low-rank parts, by an interior-point method."""

    def __init__(self, X):
        self.cp = pytest.importorskip("cvxpy")
        self.L = self.cp.Variable(X.shape)
        self.E = self.cp.multiply(~np.isnan(X), np.nan_to_num(X) - self.L)

    def nuclear(self):
        return self.cp.normNuc(self.L)

    def absolute(self):
        return self.cp.sum(self.cp.abs(self.E))

    def squares(self):
        return self.cp.sum_squares(self.E)

    def huber(self, threshold):
        return self.cp.sum(self.cp.huber(self.E, threshold)) / (2 * threshold)

    def energy(self, Phi, L=None):
        values, vectors = np.linalg.eigh(dense(Phi))
        root = (vectors * np.sqrt(np.maximum(values, 0))).T
        return self.cp.sum_squares(root @ (self.L if L is None else L))

    def of(self, objective):
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
        return self.cp.Problem(self.cp.Minimize(objective)).solve(solver="CLARABEL", **tight)


@pytest.mark.parametrize("seed", range(12))
def test_rpca_reaches_the_optimum_of_principal_component_pursuit(seed):
    X, least = small(seed), Least(small(seed))
    model = rpca().fit(X)
    weight, L = model.sparsity_, model.low_rank_
    best = least.of(least.nuclear() + weight * least.absolute())
    value = nuclear(L) + weight * absolute(X - L)
    assert best * (1 - 1e-8) <= value <= best * (1 + 1e-6)
    assert model.objective_[-1] == pytest.approx(best, rel=1e-6)
    assert weight == pytest.approx(1 / np.sqrt(np.count_nonzero(~np.isnan(X)) / min(X.shape)))


@pytest.mark.parametrize("seed", range(6))
def test_rpca_with_noise_reaches_the_optimum_of_stable_pursuit(seed):
    X, noise = small(seed), 0.1
    least = Least(X)
    model = rpca(noise=noise).fit(X)
    observed = ~np.isnan(X)
    scale = noise * (np.sqrt(len(X)) + np.sqrt(X.shape[1])) * np.sqrt(observed.mean())
    S = least.cp.Variable(X.shape)
    rest = least.cp.sum_squares(least.E - least.cp.multiply(observed, S)) / (2 * scale)
    weight = model.sparsity_
    best = least.of(least.nuclear() + weight * least.cp.sum(least.cp.abs(S)) + rest)
    L, S = model.low_rank_, dense(model.sparse_)
    value = nuclear(L) + weight * absolute(S) + np.nansum((X - L - S) ** 2) / (2 * scale)
    assert best * (1 - 1e-8) <= value <= best * (1 + 1e-6)
    assert (S[~observed] == 0).all()


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_rpcag_reaches_the_optimum(seed, normalized):
    X, least = small(seed), Least(small(seed))
    model = rpcag(smoothness=0.4, n_neighbors=3, normalized=normalized).fit(X)
    weight, smoothness, L = model.sparsity_, model.smoothness_, model.low_rank_
    Phi = laplacian(model.graph_, normalized=normalized)
    best = least.of(least.nuclear() + weight * least.absolute() + smoothness * least.energy(Phi))
    value = nuclear(L) + weight * absolute(X - L) + smoothness * energy(Phi, L)
    assert best * (1 - 1e-8) <= value <= best * (1 + 1e-6)
    assert smoothness == pytest.approx(0.4 / np.sqrt(np.nanmean(X**2)))


@full_rank_is_fine
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("loss", ["l1", "l2", "huber"])
@pytest.mark.parametrize("seed", [0, 1])
def test_frpcag_reaches_the_optimum(seed, loss, standardize):
    X = small(seed)
    settings = {"n_neighbors": 3, "loss": loss, "standardize": standardize}
    model = FRPCAG(sample_smoothness=0.7, feature_smoothness=1.0, **settings).fit(X)
    Z, U = standardized(X, model)
    least, scale = Least(Z), np.sqrt(np.nanmean(Z**2))
    Phi, Psi = laplacian(model.sample_graph_), laplacian(model.feature_graph_)
    g, h = model.sample_smoothness_, model.feature_smoothness_
    mine, theirs = {
        "l1": (absolute(Z - U), least.absolute()),
        "l2": (np.nansum((Z - U) ** 2) / 2, least.squares() / 2),
        "huber": (huber(Z - U, 1.345 * scale), least.huber(1.345 * scale)),
    }[loss]
    best = least.of(theirs + g * least.energy(Phi) + h * least.energy(Psi, least.L.T))
    value = mine + g * energy(Phi, U) + h * energy(Psi, U.T)
    assert best * (1 - 1e-8) <= value <= best * (1 + 1e-6)
    assert model.objective_[-1] == pytest.approx(value)
    assert (g, h) == pytest.approx((0.7, 1.0) if loss == "l2" else (0.7 / scale, 1 / scale))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [2, 10, 40, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_the_dual_gap_bounds_what_is_left_to_gain(seed, max_iter):
    X, least = small(seed), Least(small(seed))
    model = rpca(max_iter=max_iter).fit(X)
    best = least.of(least.nuclear() + model.sparsity_ * least.absolute())
    value = nuclear(model.low_rank_) + model.sparsity_ * absolute(X - model.low_rank_)
    assert value - best <= (model.dual_gap_ + 1e-9) * value
    if max_iter == 1000:
        assert model.dual_gap_ < 1e-5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_dual_gap_is_a_bound_on_larger_problems_too():
    X = planted(0, 200, 60, 5, noise=1.0)[0]

    def value(model):
        return nuclear(model.low_rank_) + model.sparsity_ * absolute(X - model.low_rank_)

    best = value(rpca(tol=1e-8).fit(X))
    for max_iter in range(30, 80, 5):
        model = rpca(max_iter=max_iter).fit(X)
        assert value(model) - best <= (model.dual_gap_ + 1e-9) * value(model)


def test_rpca_of_noisy_data_is_certified_by_multipliers_found_elsewhere():
    X = planted(0, 300, 200, 5, noise=0.1)[0]
    model = rpca().fit(X)
    weight, S, Y = model.sparsity_, dense(model.sparse_), np.zeros_like(X)
    penalty = 10 * X.size / (4 * absolute(X))
    for _ in range(110):
        A = X - S + Y / penalty
        squares, turn = np.linalg.eigh(A.T @ A)
        shares = np.maximum(1 - 1 / (penalty * np.sqrt(np.maximum(squares, 1e-12))), 0)
        rest = X - (A @ turn * shares) @ turn.T + Y / penalty
        S = np.sign(rest) * np.maximum(np.abs(rest) - weight / penalty, 0)
        Y = penalty * (rest - S)
    bound = np.sum(X * Y) / max(1, np.linalg.norm(Y, 2))
    value = nuclear(model.low_rank_) + weight * absolute(X - model.low_rank_)
    assert bound * (1 - 1e-9) <= value <= bound * (1 + 1e-5)
    assert model.dual_gap_ < 1e-6


@pytest.mark.parametrize("smoothness", [None, 0.01])
def test_with_noise_the_gradient_of_the_loss_is_a_subgradient_of_the_nuclear_norm(smoothness):
    X = planted(0, 300, 200, 5, noise=0.1, missing=0.1)[0]
    settings = {"noise": 0.1, "tol": 1e-7, "max_iter": 5000}
    if smoothness is None:
        model, pull = rpca(**settings).fit(X), 0.0
    else:
        model = rpcag(smoothness=smoothness, **settings).fit(X)
        pull = 2 * model.smoothness_ * (laplacian(model.graph_) @ model.low_rank_)
    L, weight = model.low_rank_, model.sparsity_
    scale = model.noise_ * (np.sqrt(300) + np.sqrt(200)) * np.sqrt(np.mean(~np.isnan(X)))
    Y = np.nan_to_num(np.clip((X - L) / scale, -weight, weight)) - pull
    assert np.linalg.norm(Y, 2) <= 1 + 1e-6
    assert np.sum(Y * L) == pytest.approx(nuclear(L), rel=1e-6)


@full_rank_is_fine
@pytest.mark.parametrize("standardize", [False, True])
def test_frpcag_satisfies_the_conditions_of_an_optimum(standardize):
    X = planted(0, 300, 100, 5, noise=0.1, missing=0.1)[0]
    weights = {"sample_smoothness": 0.5, "feature_smoothness": 0.5}
    model = FRPCAG(**weights, standardize=standardize, tol=1e-9, max_iter=5000).fit(X)
    Z, U = standardized(X, model)
    G = 2 * model.sample_smoothness_ * (laplacian(model.sample_graph_) @ U)
    G += 2 * model.feature_smoothness_ * (U @ laplacian(model.feature_graph_))
    assert np.abs(G).max() <= 1 + 1e-6
    np.testing.assert_allclose(G[np.isnan(Z)], 0, atol=1e-6)
    E = np.nan_to_num(Z - U)
    apart = np.abs(E) > 1e-6
    assert 0.1 < apart.mean() < 0.9
    np.testing.assert_allclose(G[apart], np.sign(E[apart]), atol=1e-6)
    assert model.objective_[-1] < model.objective_[0]


@pytest.mark.parametrize("seed", range(3))
def test_the_weights_at_which_a_part_vanishes_are_those_of_theory(seed):
    X = planted(seed, 30, 20, 4)[0]
    left, _, right = np.linalg.svd(X, full_matrices=False)
    most, least = np.abs(left @ right).max(), 1 / np.linalg.norm(np.sign(X), 2)
    with pytest.warns(UserWarning, match=r"RPCA: sparse_ is all zero.*sparsity=.*Lower it"):
        model = rpca(sparsity=1.01 * most).fit(X)
    np.testing.assert_allclose(model.low_rank_, X, atol=1e-4)
    with pytest.warns(UserWarning, match=r"RPCA: low_rank_ is zero.*sparsity=.*Raise it"):
        model = rpca(sparsity=0.99 * least).fit(X)
    assert model.rank_ == 0
    np.testing.assert_allclose(dense(model.sparse_), X, atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert rpca(sparsity=0.95 * most).fit(X).density_ > 0
        assert rpca(sparsity=1.05 * least).fit(X).rank_ > 0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("n", "d"), [(200, 100), (100, 200), (150, 150)])
def test_the_planted_parts_are_recovered(solver, n, d):
    for seed in range(2):
        X, L, S = planted(seed, n, d, 3, corrupted=0.1)
        model = clone(SOLVERS[solver]).fit(X)
        assert relative(model.low_rank_, L) < 1e-5
        assert relative(dense(model.sparse_), S) < 1e-5
        np.testing.assert_array_equal(dense(model.sparse_) != 0, S != 0)
        assert model.rank_ == 3


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(2))
def test_a_tenth_wrong_and_three_tenths_missing_is_recovered_and_filled_in(solver, seed):
    X, L, S = planted(seed, 300, 200, 3, corrupted=0.1, missing=0.3)
    model = clone(SOLVERS[solver]).fit(X)
    missing = np.isnan(X)
    assert model.rank_ == 3
    assert relative(model.low_rank_[missing], L[missing]) < 1e-4
    assert relative(dense(model.sparse_)[~missing], S[~missing]) < 1e-4
    assert not dense(model.sparse_)[missing].any()
    assert model.density_ == pytest.approx(np.mean(S[~missing] != 0))


@pytest.mark.parametrize("seed", range(8))
def test_rank_density_and_gap_are_right_at_the_same_time(seed):
    X, L, S = planted(seed, 100, 80, 3)
    model = rpca().fit(X)
    assert model.rank_ == 3
    assert model.density_ == pytest.approx(np.mean(S != 0))
    assert model.dual_gap_ < 1e-5
    assert relative(model.low_rank_, L) < 1e-6


@pytest.mark.parametrize("center", [None, "median"])
def test_large_offsets_of_the_columns_do_no_harm(center):
    X, L, _ = planted(0)
    shift = np.linspace(-50, 50, X.shape[1])
    model = rpca(center=center).fit(X + shift)
    assert relative(model.low_rank_, L + shift) < 1e-6
    assert model.n_components_ == 3
    np.testing.assert_allclose(model.mean_, (L + shift).mean(axis=0), atol=1e-4)


@pytest.mark.parametrize(
    ("n", "d", "rank", "noise"),
    [
        (150, 100, 3, 0.1),
        (100, 150, 3, 0.02),
        (300, 50, 3, 0.1),
        (60, 40, 2, 0.5),
        (200, 150, 5, 0.1),
    ],
)
def test_automatic_noise_is_the_planted_one_and_so_is_the_rank(n, d, rank, noise):
    for seed in range(2):
        X, L, _ = planted(seed, n, d, rank, noise=noise)
        model = rpca(noise="auto").fit(X)
        assert 0.7 * noise < model.noise_ < 1.3 * noise
        assert model.rank_ == rank
        assert relative(model.low_rank_, L) < 0.6 * noise


def test_automatic_noise_of_clean_data_is_none():
    X, L, _ = planted(0)
    model = rpca(noise="auto").fit(X)
    assert model.noise_ == 0
    assert relative(model.low_rank_, L) < 1e-6


@full_rank_is_fine
@pytest.mark.parametrize("factor", [1e-3, 1e3])
@pytest.mark.parametrize("name", METHODS)
def test_units_matter_to_no_part(name, factor):
    X = planted(0, 100, 80, noise=0.05 * (name not in SOLVERS))[0]
    first = clone(METHODS[name]).fit(X)
    other = clone(METHODS[name])
    if name == "noise":
        other.set_params(noise=0.05 * factor)
    other.fit(factor * X)
    np.testing.assert_allclose(other.low_rank_ / factor, first.low_rank_, atol=1e-3)
    np.testing.assert_allclose(dense(other.sparse_) / factor, dense(first.sparse_), atol=1e-3)
    assert type(other.sparse_) is type(first.sparse_)
    assert other.rank_ == first.rank_
    assert other.n_components_ == first.n_components_
    np.testing.assert_array_equal(other.predict(factor * X), first.predict(X))


@pytest.mark.parametrize("noise", [0.0, "auto"])
def test_transposed_data_have_transposed_parts(noise):
    X = planted(0, 90, 50, noise=0.1)[0]
    settings = {"noise": noise, "tol": 1e-8, "max_iter": 5000}
    model, turned = rpca(**settings).fit(X), rpca(**settings).fit(X.T)
    np.testing.assert_allclose(turned.low_rank_.T, model.low_rank_, atol=1e-3)
    np.testing.assert_allclose(dense(turned.sparse_).T, dense(model.sparse_), atol=1e-3)
    assert turned.rank_ == model.rank_


@full_rank_is_fine
def test_frpcag_of_transposed_data_with_swapped_graphs_is_the_transpose():
    X = planted(0, 60, 40, noise=0.1)[0]
    settings = {"sample_smoothness": 0.5, "feature_smoothness": 1.0, "standardize": False}
    model = FRPCAG(**settings, tol=1e-9).fit(X)
    turned = FRPCAG(
        sample_smoothness=1.0,
        feature_smoothness=0.5,
        sample_graph=model.feature_graph_,
        feature_graph=model.sample_graph_,
        standardize=False,
        tol=1e-9,
    ).fit(X.T)
    np.testing.assert_allclose(turned.low_rank_.T, model.low_rank_, atol=1e-6)


def test_rpcag_without_smoothness_is_rpca():
    X = planted(0, noise=0.05, missing=0.1)[0]
    settings = {"tol": 1e-6, "max_iter": 1000}
    model, plain = rpcag(smoothness=0, **settings).fit(X), rpca(solver="admm", **settings).fit(X)
    np.testing.assert_array_equal(model.low_rank_, plain.low_rank_)
    np.testing.assert_array_equal(dense(model.sparse_), dense(plain.sparse_))


def test_frpcag_without_smoothness_gives_the_data_back():
    X = planted(0, missing=0.1)[0]
    with pytest.warns(UserWarning, match=r"FRPCAG: sparse_ is all zero.*sample_smoothness=0"):
        model = FRPCAG(sample_smoothness=0, feature_smoothness=0).fit(X)
    observed = ~np.isnan(X)
    np.testing.assert_allclose(model.low_rank_[observed], X[observed], atol=1e-12)
    assert (model.n_iter_, model.density_, model.converged_) == (0, 0.0, True)


def test_boundless_smoothness_leaves_the_median_of_all_entries():
    X = np.random.default_rng(0).normal(size=(31, 9)) + 2
    model = FRPCAG(
        sample_smoothness=1e3,
        feature_smoothness=1e3,
        n_neighbors=30,
        normalized=False,
        standardize=False,
        center_low_rank=False,
        tol=1e-8,
        max_iter=20_000,
    ).fit(X)
    np.testing.assert_allclose(model.low_rank_, np.median(X), atol=1e-3)
    assert model.rank_ == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_two_parts_add_up_to_the_data(solver):
    X = planted(0, missing=0.1)[0]
    model = clone(SOLVERS[solver]).fit(X)
    rest = np.nan_to_num(X - model.low_rank_ - dense(model.sparse_))
    assert np.linalg.norm(rest) < 1e-5 * np.linalg.norm(np.nan_to_num(X))


def test_noisy_data_need_no_more_passes_than_are_allowed():
    for n, d, noise, missing in ((500, 30, 0.1, 0.1), (500, 30, 0.5, 0.0), (120, 60, 1.0, 0.0)):
        for seed in range(2):
            X = planted(seed, n, d, 2 if d == 30 else 3, noise=noise, missing=missing)[0]
            assert rpca().fit(X).n_iter_ < 600


def test_parts_are_stored_in_the_form_that_takes_less_memory():
    X = planted(0, 400, 300, 5)[0]
    model = rpca().fit(X)
    assert sparse.issparse(model.sparse_)
    assert model.sparse_.format == "csr"
    assert len(pickle.dumps(model)) < 0.25 * X.nbytes
    many = rpca(sparsity=0.03).fit(planted(0, noise=0.1)[0])
    assert many.density_ > 1 / 3
    assert isinstance(many.sparse_, np.ndarray)


@full_rank_is_fine
def test_frpcag_stores_a_sparse_part_compactly_though_a_few_rows_are_dense():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(4, 30)), 25, axis=0) + 0.01 * rng.normal(size=(100, 30))
    X[:20] += 20 * rng.normal(size=(20, 30))
    model = FRPCAG(sample_smoothness=1.0, feature_smoothness=0.0, standardize=False).fit(X)
    assert np.mean(np.abs(dense(model.sparse_)) > 1e-6) < 0.3
    assert sparse.issparse(model.sparse_)


DTYPES = {
    **{name: METHODS[name] for name in ("admm", "ialm", "altproj", "RPCAG", "FRPCAG")},
    "median": rpca(center="median"),
    "l2": FRPCAG(loss="l2"),
    "raw": FRPCAG(standardize=False),
}


@may_stop_short
@full_rank_is_fine
@pytest.mark.parametrize("name", DTYPES)
def test_both_parts_of_single_precision_data_are_in_single_precision(name):
    X = planted(0, 60, 40, noise=0.01)[0].astype(np.float32)
    model = clone(DTYPES[name]).fit(X)
    for part in (model.low_rank_, model.sparse_, model.embedding_, *model.decompose(X)):
        assert part.dtype == np.float32


@full_rank_is_fine
@pytest.mark.parametrize("model", [rpca(noise=0.1), rpcag(noise="auto"), FRPCAG(loss="huber")])
def test_a_loss_with_a_threshold_preserves_single_precision(model):
    X = planted(0, 60, 40, noise=0.1)[0].astype(np.float32)
    model = clone(model).fit(X)
    for part in (model.low_rank_, model.sparse_, *model.decompose(X)):
        assert part.dtype == np.float32


@full_rank_is_fine
@pytest.mark.parametrize("smoothness", [1e-3, 0.1])
def test_frpcag_counts_no_rounding_error_as_sparse(smoothness):
    X = planted(0, 80, 40, noise=0.05)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = FRPCAG(sample_smoothness=smoothness, feature_smoothness=smoothness).fit(X)
    real = np.mean(np.abs(X - model.low_rank_) > 1e-9)
    assert model.density_ == pytest.approx(real, abs=1e-3)


def test_a_low_rank_part_of_full_rank_names_the_parameters():
    X = np.random.default_rng(0).normal(size=(40, 6))
    with pytest.warns(UserWarning, match=r"RPCA: .*full rank 6. Lower sparsity=0\.4.*noise='auto'"):
        rpca(sparsity=0.4).fit(X)
    with pytest.warns(UserWarning, match=r"full rank 6. Raise sample_smoothness=0\.1 or feature_"):
        FRPCAG(sample_smoothness=0.1, feature_smoothness=1.0).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        rpca(sparsity=9.0),
        rpcag(sparsity=900.0),
        FRPCAG(sample_smoothness=0.01, feature_smoothness=1.0),
    ],
)
def test_warnings_point_at_the_line_that_called_fit(model):
    with pytest.warns(UserWarning, match="is the data|full rank") as caught:
        clone(model).fit(planted(0, 20, 10)[0])
    assert caught[0].filename == __file__


def test_with_alternating_projections_the_warning_names_the_rank():
    with pytest.warns(UserWarning, match="n_components"):
        rpca(10, solver="altproj").fit(planted(0, 30, 10)[0])


@pytest.mark.parametrize("n_components", [None, 0.9])
def test_alternating_projections_need_a_rank(n_components):
    with pytest.raises(ValueError, match=r"solver='altproj'.*n_components=.*or use solver='admm'"):
        rpca(n_components, solver="altproj").fit(planted(0, 20, 10)[0])


@pytest.mark.parametrize("kind", ["lower rank", "all entries large"])
def test_alternating_projections_take_data_of_lower_rank(kind):
    X = np.outer(np.arange(1.0, 21), np.ones(8))
    if kind == "all entries large":
        X = np.where(np.arange(160).reshape(20, 8) == 37, 5.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = rpca(2, solver="altproj").fit(X)
    np.testing.assert_allclose(model.low_rank_ + dense(model.sparse_), X, atol=1e-4)


@pytest.mark.parametrize("sparsity", [0, -0.1, "high"])
def test_a_weight_that_is_not_positive_is_refused(sparsity):
    with pytest.raises(
        ValueError, match=rf"'sparsity' parameter of RPCA must be.*Got {sparsity!r}"
    ):
        rpca(sparsity=sparsity).fit(np.eye(5))


def test_an_unknown_loss_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'loss' parameter of FRPCAG must be.*'huber'.*Got 'l3'"):
        FRPCAG(loss="l3").fit(np.eye(5))


@pytest.mark.parametrize("method", [RPCA, RPCAG, FRPCAG])
def test_input_about_which_nothing_can_be_said_is_refused(method):
    X = planted(0, 20, 10)[0]
    rows, columns, infinite = X.copy(), X.copy(), X.copy()
    rows[[3, 5]], columns[:, 4], infinite[2, 2] = np.nan, np.nan, -np.inf
    for bad, words in (
        (rows, r"2 rows of X hold no value.*at \[3, 5\].*Leave them out"),
        (columns, r"1 columns of X hold no value.*at \[4\].*Leave them out"),
        (np.full_like(X, np.nan), "hold no value"),
        (infinite, "infinity"),
    ):
        with pytest.raises(ValueError, match=words):
            method().fit(bad)
    with pytest.raises(
        TypeError, match=rf"{method.__name__} works on dense arrays.*X\.toarray\(\)"
    ):
        method().fit(sparse.csr_array(X))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", [RPCA, RPCAG, FRPCAG])
def test_a_second_fit_refuses_columns_without_any_value_too(method):
    X = planted(0, 20, 10)[0]
    model = method().fit(X)
    X[:, 4] = np.nan
    with pytest.raises(ValueError, match="columns of X hold no value"):
        model.fit(X)


GRAPHS = [(RPCAG, "graph"), (FRPCAG, "sample_graph"), (FRPCAG, "feature_graph")]


@pytest.mark.parametrize(("method", "name"), GRAPHS)
def test_a_graph_that_is_none_is_refused_in_words(method, name):
    X = planted(0, 20, 20)[0]
    graph = knn_graph(X, 3)
    lopsided = graph.toarray()
    lopsided[2, 3] += 0.5
    for bad, words in (
        (-graph, r"weights down to -.*give 0 or more"),
        (lopsided, r"not symmetric.*differ.*Pass graph\.maximum\(graph\.T\)"),
        (graph[:9, :9], r"graph has 9 vertices and X has 20 \w+; build it from the same"),
        (graph[:, :9], r"shape \(20, 9\), but should be a square"),
    ):
        with pytest.raises(ValueError, match=words):
            method(**{name: bad}).fit(X)


@full_rank_is_fine
def test_a_graph_can_be_given_and_used_again():
    X = planted(0, 60, 30, noise=0.1)[0]
    first = rpcag(smoothness=0.1).fit(X)
    for graph in (first.graph_, knn_graph(X, 10), knn_graph(X, 10).toarray()):
        again = rpcag(smoothness=0.1, graph=graph).fit(X)
        np.testing.assert_array_equal(again.low_rank_, first.low_rank_)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    first = FRPCAG().fit(X)
    for graphs in ((first.sample_graph_, first.feature_graph_), (knn_graph(Z), knn_graph(Z.T))):
        again = FRPCAG(sample_graph=graphs[0], feature_graph=graphs[1]).fit(X)
        np.testing.assert_allclose(again.low_rank_, first.low_rank_, atol=1e-9)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_graphs_of_scikit_learn_are_taken(mode):
    X = planted(0, 60, 30, noise=0.1)[0]
    given = KNeighborsTransformer(n_neighbors=10, mode=mode).fit_transform(X)
    model, own = rpcag(smoothness=0.1, graph=given).fit(X), rpcag(smoothness=0.1).fit(X)
    assert abs(model.graph_ - model.graph_.T).max() == 0
    if mode == "distance":
        assert abs(model.graph_ - own.graph_).max() < 1e-12
        np.testing.assert_allclose(model.low_rank_, own.low_rank_, atol=1e-6)
    else:
        assert set(model.graph_.data) == {1.0}


@full_rank_is_fine
def test_the_grid_of_pixels_helps_where_images_are_smooth():
    rng = np.random.default_rng(0)
    pixels, centers = np.mgrid[:12, :12].reshape(2, 144, 1) / 12, rng.uniform(0.2, 0.8, (2, 1, 60))
    truth = np.exp(-np.sum((pixels - centers) ** 2, axis=0) / 0.08).T
    X = np.where(rng.random(truth.shape) < 0.1, rng.choice([0.0, 1.0], truth.shape), truth)
    model = FRPCAG(standardize=False, feature_graph=grid_graph((12, 12))).fit(X)
    neighbours = FRPCAG(standardize=False).fit(X)
    assert relative(model.low_rank_, truth) < 0.3 * relative(X, truth)
    assert relative(model.low_rank_, truth) < 0.8 * relative(neighbours.low_rank_, truth)


@full_rank_is_fine
def test_a_vertex_without_edges_is_left_alone():
    X = planted(0, 60, 30, noise=0.1)[0]
    graph = knn_graph(X, 5).tolil()
    graph[7], graph[:, 7] = 0, 0
    model = FRPCAG(sample_graph=sparse.csr_array(graph), feature_smoothness=0.0).fit(X)
    np.testing.assert_allclose(model.low_rank_[7], X[7], atol=1e-12)
    empty = sparse.csr_array((60, 60))
    settings = {"tol": 1e-6, "max_iter": 1000}
    lonely, plain = rpcag(graph=empty, **settings).fit(X), rpca(solver="admm", **settings).fit(X)
    np.testing.assert_allclose(lonely.low_rank_, plain.low_rank_, atol=1e-6)


@pytest.mark.parametrize("name", ["admm", "ialm", "altproj", "RPCAG"])
def test_progress_shows_the_rank(name, capsys):
    heard = []
    model = clone(METHODS[name]).set_params(verbose=1, callback=heard.append)
    model.fit(planted(0, 60, 40)[0])
    assert all(info.change >= 0 and info.rank >= 0 for info in heard)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith(f"rank {heard[-1].rank}")
    assert heard[-1].rank == model.rank_


# The sampled solver needs a single pass here.
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "sampled"])
def test_stopping_early_warns_with_the_parameters_for_every_solver(solver):
    words = r"RPCA stopped after max_iter=2 passes.*tol=.*Raise max_iter, or raise tol"
    with pytest.warns(ConvergenceWarning, match=words):
        model = clone(SOLVERS[solver]).set_params(max_iter=2).fit(planted(0)[0])
    assert (model.n_iter_, model.converged_) == (2, False)


def test_inexact_alm_ends_on_noisy_data_and_tells_how_far_from_the_optimum():
    X = planted(0, 80, 50, noise=0.3)[0]
    with pytest.warns(ConvergenceWarning, match=r"solver='ialm' ended.*too high by a share of"):
        model = rpca(solver="ialm", tol=1e-7).fit(X)
    assert model.converged_
    assert model.n_iter_ < 60
    assert relative(model.low_rank_ + dense(model.sparse_), X) < 3e-7
    best = rpca(tol=1e-8).fit(X)
    costs = [nuclear(m.low_rank_) + m.sparsity_ * absolute(X - m.low_rank_) for m in (model, best)]
    assert 0 < 1 - costs[1] / costs[0] <= model.dual_gap_


def test_inexact_alm_recovers_exact_data_whether_or_not_it_has_to_look_for_noise():
    for seed in range(4):
        X, L, _ = planted(seed, 60, 60, rank=2)
        for noise in (0.0, "auto"):
            model = RPCA(solver="ialm", noise=noise).fit(X)
            assert model.converged_
            assert relative(model.low_rank_, L) < 1e-5


@pytest.mark.parametrize("name", [name for name in METHODS if name != "sampled"])
@pytest.mark.filterwarnings("ignore:FRPCAG. low_rank_ has full rank")
def test_a_fit_after_an_interrupt_is_as_good_as_new(name):
    def interrupt(info):
        if info.iteration == 5:
            raise KeyboardInterrupt

    X = planted(0, 60, 40)[0]
    before, model = X.copy(), clone(METHODS[name]).set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.decompose(X)
    np.testing.assert_array_equal(X, before)
    model.set_params(callback=None).fit(X)
    np.testing.assert_array_equal(model.low_rank_, clone(model).fit(X).low_rank_)


def test_an_interrupted_second_fit_leaves_the_first_or_none():
    def interrupt(info):
        raise KeyboardInterrupt

    X = planted(0, 60, 40)[0]
    model = rpca(center="median").fit(X)
    expected = model.transform(X)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callback=interrupt).fit(X + 5)
    try:
        np.testing.assert_allclose(model.transform(X), expected)
    except NotFittedError:
        return


@may_stop_short
@full_rank_is_fine
@pytest.mark.parametrize("name", [*METHODS, "raw"])
def test_data_with_holes_are_not_modified(name):
    X = planted(0, 60, 40, noise=0.05 * (name not in SOLVERS), missing=0.1)[0]
    before, model = X.copy(), clone({**METHODS, **DTYPES}[name]).fit(X)
    model.decompose(X)
    model.predict(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", ["admm", "ialm", "altproj", "noise", "RPCAG"])
def test_rows_with_gross_errors_are_flagged_and_no_others(name):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, size=(150, 3)) @ rng.normal(size=(3, 40))
    truth = np.ones(150)
    truth[rng.choice(150, 15, replace=False)] = -1
    for i in np.flatnonzero(truth == -1):
        X[i, rng.choice(40, 4, replace=False)] += rng.choice([-5, 5], 4)
    model = clone({**METHODS, "noise": rpca(noise="auto"), "RPCAG": rpcag(smoothness=0.01)}[name])
    np.testing.assert_array_equal(model.fit(X).predict(X), truth)


@full_rank_is_fine
def test_frpcag_ranks_every_row_with_gross_errors_below_all_others():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, size=(150, 3)) @ rng.normal(size=(3, 40))
    X[:15, :4] += 8 * rng.choice([-1, 1], size=(15, 4))
    model = FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0, contamination=0.1)
    np.testing.assert_array_equal(model.fit_predict(X), np.repeat([-1, 1], [15, 135]))


@full_rank_is_fine
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_frpcag_flags_few_clean_rows_though_it_leaves_many_of_them_as_they_are(noise):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 20))
        X = X / X.std() + noise * rng.normal(size=X.shape)
        assert np.mean(FRPCAG().fit(X).predict(X) == -1) < 0.08


@pytest.mark.filterwarnings("ignore:FRPCAG. low_rank_ has full rank")
@pytest.mark.parametrize("name", ENTRY_LOSSES)
def test_every_entry_loss_can_be_given_by_name_or_as_an_object(name):
    X, kind = planted(0, 60, 40)[0], ENTRY_LOSSES[name]
    model, same = FRPCAG(loss=name).fit(X), FRPCAG(loss=kind()).fit(X)
    assert type(model.loss_) is kind
    np.testing.assert_array_equal(model.low_rank_, same.low_rank_)


def test_integers_are_decomposed():
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, size=(80, 2)) @ rng.integers(-9, 10, size=(2, 40))
    spoiled = X.copy()
    spoiled[rng.random(X.shape) < 0.05] += 500
    model = rpca().fit(spoiled)
    np.testing.assert_allclose(model.low_rank_, X, atol=0.01)
    assert model.rank_ == 2
