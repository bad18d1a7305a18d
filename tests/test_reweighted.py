"""The reweighted chapter: special cases, an independent loop, planted truths, odd input."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from robustpca import EPCA, PCAAN, PCAOM, R1PCA, ReweightedPCA
from robustpca.core.centers import geometric_median
from robustpca.core.losses import (
    CappedLoss,
    CauchyLoss,
    HuberLoss,
    L21Loss,
    SigmaLoss,
    SquaredLoss,
)
from robustpca.core.reweighted import inner_products
from robustpca.core.rows import ArrayRows
from robustpca.core.weightings import AdaptiveNeighbors, CoRobust, Uniform
from robustpca.testing import planted_subspace, subspace_distance

METHODS = [PCAOM, R1PCA, PCAAN, EPCA, ReweightedPCA]


def degrees(first, second):
    return np.degrees(np.arcsin(min(1.0, subspace_distance(first, second))))


def square_residuals(X, mean, components):
    Z = np.asarray(X, dtype=np.float64) - mean
    rest = Z - (Z @ components.T) @ components
    return np.sum(rest**2, axis=1)


def weighted_pca(X, n_components, weights, center=None):
    """Weighted mean and leading eigenvectors (as rows) of the weighted covariance matrix."""
    mean = weights @ X / weights.sum() if center is None else center
    Z = X - mean
    d = X.shape[1]
    vectors = linalg.eigh((Z * weights[:, None]).T @ Z, subset_by_index=(d - n_components, d - 1))
    return mean, vectors[1][:, ::-1].T


def textbook(X, n_components, loss, weighting, *, center=None, tol=1e-14, max_iter=5000):
    """The method as one would write it down: full eigenproblem of all features in each pass."""
    X = np.asarray(X, dtype=np.float64)
    mean, components = weighted_pca(X, n_components, np.ones(len(X)), center)
    step = None
    for _ in range(max_iter):
        t = square_residuals(X, mean, components)
        previous, step = step, weighting.solve(loss.values(t))
        if previous is not None:
            change = np.abs(step.direct - previous.direct).max()
            drop = abs(previous.objective - step.objective)
            if max(change, drop / abs(step.objective)) <= tol:
                return step, mean, components
        mean, components = weighted_pca(X, n_components, step.direct * loss.weights(t), center)
    raise AssertionError("the textbook loop did not converge")


def simplex_projection(point):
    """Nearest point of the probability simplex, by bisection on the shift."""
    low, high = point.min() - 1.0, point.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(point - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(point - high, 0)


def random_rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def plain_pca_cases():
    return {
        "squared loss": ReweightedPCA(3, loss="squared"),
        "Huber loss that is never linear": ReweightedPCA(3, loss=HuberLoss(np.inf)),
        "R1-PCA with a huge cutoff": R1PCA(3, cutoff=1e30),
        "R1-PCA with a huge cutoff, orthogonal iteration": R1PCA(3, cutoff=1e30, solver="power"),
        "PCA-AN with all samples active": PCAAN(3, n_active=1.0),
        "PCA-AN from random weights": PCAAN(3, n_active=1.0, init="random"),
    }


@pytest.mark.parametrize("shape", [(60, 8), (30, 50), (400, 150), (300, 500)])
@pytest.mark.parametrize("case", plain_pca_cases())
def test_special_cases_are_ordinary_pca(case, shape, rng):
    # A spectrum with gaps makes the components themselves comparable, not only their span.
    X = rng.normal(size=shape) * np.r_[9.0, 6.0, 4.0, np.linspace(1, 0.5, shape[1] - 3)]
    X = X @ random_rotation(rng, shape[1]) + rng.normal(size=shape[1])
    # The loop is told to settle well below the accuracy that is asserted: an objective within
    # 1e-13 of the least one means a subspace within its root.
    model = plain_pca_cases()[case].set_params(tol=1e-13, max_iter=1000).fit(X)
    expected = PCA(3, svd_solver="full").fit(X)
    signs = np.sign(np.sum(model.components_ * expected.components_, axis=1))
    assert_allclose(model.components_, signs[:, None] * expected.components_, atol=1e-5)
    assert_allclose(model.mean_, expected.mean_, atol=1e-10)
    assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-9)
    assert_allclose(model.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-9)
    assert_allclose(model.singular_values_, expected.singular_values_, rtol=1e-9)
    assert_allclose(model.weights_, 1 / len(X), rtol=1e-12)
    assert model.n_active_ == len(X)


def test_epca_with_a_huge_sigma_and_many_samples_is_nearly_ordinary_pca(rng):
    n = 2000
    X = rng.normal(size=(n, 8)) * np.r_[9.0, 6.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    model, expected = EPCA(3, sigma=1e8).fit(X), PCA(3).fit(X)
    # The extra weights sum to little more than 1 among n = 2000, which moves a covariance by
    # 1/n times the spread of a sample over the gap of the spectrum.
    assert subspace_distance(model.components_, expected.components_) < 3 / n
    assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=10 / n)
    assert_allclose(model.singular_values_, expected.singular_values_, rtol=10 / n)
    assert_allclose(model.mean_, expected.mean_, atol=20 / n)
    # (1 + sigma) r^2 / (r + sigma) is r^2 but for a factor 1 + r / sigma.
    squares = np.sum(square_residuals(X, expected.mean_, expected.components_))
    assert squares * (1 - 1e-6) <= model.objective_[-1] <= squares * n / (n - 1) * (1 + 1e-6)


def test_the_sigma_loss_lies_between_pca_om_and_pca(rng):
    X = planted_subspace(rng, 200, 10, 2, 30, noise=0.5)[0]
    near_l21 = ReweightedPCA(2, loss=SigmaLoss(1e-9), tol=1e-12).fit(X)
    near_pca = ReweightedPCA(2, loss=SigmaLoss(1e12), tol=1e-12).fit(X)
    assert subspace_distance(near_l21.components_, PCAOM(2, tol=1e-12).fit(X).components_) < 1e-5
    assert subspace_distance(near_pca.components_, PCA(2).fit(X).components_) < 1e-5


def test_pca_om_has_a_smaller_sum_of_distances_than_pca(rng):
    X = planted_subspace(rng, 200, 10, 2, 30, noise=0.5)[0]
    pca, model = PCA(2).fit(X), PCAOM(2).fit(X)
    start = np.sqrt(square_residuals(X, pca.mean_, pca.components_)).sum()
    assert model.objective_[0] == pytest.approx(start, rel=1e-12)
    assert model.objective_[-1] < 0.95 * start
    assert model.objective_[-1] == pytest.approx(model.orthogonal_distances(X).sum(), rel=1e-12)


SHAPES = {
    "few features": (120, 12, 3),
    "nested views": (400, 150, 4),
    "few wide samples": (90, 200, 4),
    "many wide samples": (300, 500, 4),
}
COMBINATIONS = {
    "l21": (L21Loss(1e-9), Uniform()),
    "huber": (HuberLoss(3.0), Uniform()),
    "cauchy": (CauchyLoss(3.0), Uniform()),
    "sigma": (SigmaLoss(2.0), Uniform()),
    "capped": (CappedLoss(15.0, 1e-9), Uniform()),
    "squared, fixed gamma": (SquaredLoss(), AdaptiveNeighbors(gamma=2e4)),
    "squared, adaptive": (SquaredLoss(), AdaptiveNeighbors(0.8)),
    "cauchy, adaptive": (CauchyLoss(5.0), AdaptiveNeighbors(0.8)),
    "sigma, co-robust": (SigmaLoss(2.0), CoRobust(0.5)),
    "cauchy, co-robust with gamma=2": (CauchyLoss(3.0), CoRobust(gamma=2.0)),
}


def noisy_planted(shape):
    n, d, c = SHAPES[shape]
    return planted_subspace(np.random.default_rng(1), n, d, c, n // 10, noise=0.3, distance=20.0)[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_the_fit_is_that_of_a_textbook_loop(combination, shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    loss, weighting = COMBINATIONS[combination]
    step, mean, components = textbook(X, c, loss, weighting)
    model = ReweightedPCA(
        c,
        loss=loss,
        weighting=weighting,
        init="pca",
        # Adaptive weights judge the view at ten times the tolerance.
        tol=1e-12 if weighting.monotone else 1e-13,
        max_iter=2000,
    ).fit(X)
    # Adaptive weights do not end at a minimum of their objective, so it is off by as much as the
    # subspace and not by the square of that.
    accuracy = 1e-6 if not weighting.monotone else 1e-8
    assert model.objective_[-1] == pytest.approx(step.objective, rel=accuracy)
    # Near the minimum the objective is quadratic, so tol=1e-12 fixes the subspace to its root.
    assert subspace_distance(model.components_, components) < 2e-5
    assert_allclose(model.mean_, mean, atol=1e-5 * np.abs(X).max())
    wanted = loss.weights(square_residuals(X, mean, components)) * step.direct
    assert_allclose(model.sample_weights_, wanted / wanted.sum(), atol=1e-4 / len(X))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "combination", [name for name in COMBINATIONS if "adaptive" not in name and "=2" not in name]
)
def test_a_fit_in_single_precision_is_that_of_a_textbook_loop_in_double(combination, shape):
    X, c = noisy_planted(shape).astype(np.float32), SHAPES[shape][2]
    loss, weighting = COMBINATIONS[combination]
    step, _, components = textbook(X, c, loss, weighting)
    model = ReweightedPCA(
        c, loss=loss, weighting=weighting, init="pca", tol=1e-9, max_iter=2000
    ).fit(X)
    # A residual is a small part of a row: its relative error is the rounding of single
    # precision, 6e-8, times a few; the subspace is good to the root of that.
    assert model.objective_[-1] == pytest.approx(step.objective, rel=1e-6)
    assert subspace_distance(model.components_, components) < 1e-3


@pytest.mark.parametrize("shape", SHAPES)
def test_adaptive_weights_settle_in_single_precision_at_the_default_tolerance(shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    single, double = PCAAN(c).fit(X.astype(np.float32)), PCAAN(c).fit(X)
    assert single.converged_
    assert subspace_distance(single.components_, double.components_) < 3e-3
    assert_allclose(single.weights_, double.weights_, atol=0.02 / len(X))


@pytest.mark.parametrize("center", ["mean", "geometric_median", "zero"])
@pytest.mark.parametrize("shape", ["few features", "nested views", "few wide samples"])
def test_a_held_centre_gives_the_fit_of_a_textbook_loop_with_it(center, shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    held = {
        "mean": X.mean(axis=0),
        "geometric_median": geometric_median(ArrayRows(X)),
        "zero": np.zeros(X.shape[1]),
    }[center]
    loss = HuberLoss(3.0)
    step, _, components = textbook(X, c, loss, Uniform(), center=held)
    model = R1PCA(c, cutoff=3.0, center=center, tol=1e-12).fit(X)
    assert_allclose(model.mean_, held, atol=1e-10)
    assert model.objective_[-1] == pytest.approx(step.objective, rel=1e-8)
    assert subspace_distance(model.components_, components) < 2e-5


LOSSES_TO_TRY = {
    "squared": SquaredLoss(),
    "l21": L21Loss(),
    "huber": HuberLoss(),
    "cauchy": CauchyLoss(),
    "sigma": SigmaLoss(),
    "capped": CappedLoss("q0.7"),
}
WEIGHTINGS_TO_TRY = {
    "uniform": Uniform(),
    "fixed gamma": AdaptiveNeighbors(gamma=1.0),
    "co-robust": CoRobust(),
    "bounded co-robust": CoRobust(max_weight=0.6),
}


@st.composite
def awkward_data(draw):
    """Data of any shape and rank, with repeated rows, constant columns and far outliers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 40)), draw(st.one_of(st.integers(1, 12), st.integers(60, 90)))
    rank = draw(st.integers(1, d))
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    X += draw(st.sampled_from([0.0, 0.1])) * rng.normal(size=(n, d))
    X[: draw(st.integers(0, n // 4))] *= 30.0
    repeated = draw(st.integers(0, n // 2))
    X[n - repeated :] = X[rng.integers(n, size=repeated)]
    X[:, rng.random(d) < draw(st.sampled_from([0.0, 0.3]))] = rng.normal()
    X += draw(st.sampled_from([0.0, 10.0])) * rng.normal(size=d)
    return X * draw(st.sampled_from([1e-3, 1.0, 1e3])), draw(st.integers(1, min(n, d)))


@pytest.mark.parametrize("weighting", WEIGHTINGS_TO_TRY)
@pytest.mark.parametrize("loss", LOSSES_TO_TRY)
@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    data=awkward_data(),
    solver=st.sampled_from(["eig", "power"]),
    center=st.sampled_from(["weighted", "mean", "zero"]),
    init=st.sampled_from(["pca", "robust", "random"]),
)
def test_the_objective_never_rises(loss, weighting, data, solver, center, init):
    X, c = data
    model = ReweightedPCA(
        c,
        loss=LOSSES_TO_TRY[loss],
        weighting=WEIGHTINGS_TO_TRY[weighting],
        solver=solver,
        center=center,
        init=init,
        max_iter=30,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    # Distances below 1e-10 of the data are rounding error and count as 0, so each sample may
    # bring the loss of such a distance; the floor of the co-robust weights another 1e-9.
    norm = np.linalg.norm(X, axis=1).max()
    rounding = len(X) * float(model.loss_.values(np.array([(1e-9 * norm) ** 2]))[0])
    relative = 1e-9 if "co-robust" in weighting else 1e-10
    before, after = model.objective_[:-1], model.objective_[1:]
    assert len(after) == model.n_iter_ >= 1
    assert np.all(after <= before * (1 + relative) + rounding)
    assert np.isfinite(model.components_).all()
    assert_allclose(model.components_ @ model.components_.T, np.eye(c), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_pcaan_ends_at_a_fixed_point(shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    model = PCAAN(c, n_active=0.8, tol=1e-13, max_iter=2000).fit(X)
    t = model.orthogonal_distances(X) ** 2
    k = int(np.ceil(0.8 * len(X)))
    ordered = np.sort(t)
    assert model.gamma_ == pytest.approx(np.sum(ordered[k] - ordered[:k]) / 2, rel=1e-6)
    wanted = simplex_projection(-t / (2 * model.gamma_))
    assert_allclose(model.weights_, wanted, atol=1e-5 / len(X))
    assert model.n_active_ == k == np.count_nonzero(model.weights_)
    mean, components = weighted_pca(X, c, model.weights_)
    assert subspace_distance(model.components_, components) < 1e-6
    assert_allclose(model.mean_, mean, atol=1e-6 * np.abs(X).max())
    penalty = model.gamma_ * model.weights_ @ model.weights_
    assert model.objective_[-1] == pytest.approx(model.weights_ @ t + penalty, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_pcaan_with_a_fixed_gamma_never_rises_and_ends_at_a_fixed_point(shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    model = PCAAN(c, gamma=1e4, init="pca", tol=1e-14, max_iter=2000).fit(X)
    assert model.gamma_ == 1e4
    assert model.n_iter_ > 3
    assert np.all(np.diff(model.objective_) <= 1e-12 * model.objective_[:-1])
    t = model.orthogonal_distances(X) ** 2
    assert_allclose(model.weights_, simplex_projection(-t / 2e4), atol=1e-6 / len(X))
    mean, components = weighted_pca(X, c, model.weights_)
    assert subspace_distance(model.components_, components) < 1e-5
    assert_allclose(model.mean_, mean, atol=1e-5 * np.abs(X).max())


@pytest.mark.parametrize("seed", range(5))
def test_pcaan_has_at_most_n_active_weights_whatever_the_data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 6))
    X[40:] = X[:10]
    for n_active in (5, 20, 49):
        model = PCAAN(2, n_active=n_active, max_iter=1000).fit(X)
        # A sample and its copy tie, and a tie at the border loses both: one less is possible.
        assert n_active - 1 <= model.n_active_ <= n_active
        assert model.weights_.min() == 0
        assert model.weights_.sum() == pytest.approx(1, rel=1e-12)


def test_pcaan_freezes_gamma_after_half_of_the_passes(rng):
    X = rng.normal(size=(60, 10))
    seen = []
    model = PCAAN(3, init="pca", max_iter=12, tol=1e-15, callback=seen.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert model.n_iter_ > 8
    assert [info.iteration for info in seen] == list(range(1, model.n_iter_ + 1))
    assert_array_equal([info.objective for info in seen], model.objective_[1:])
    # Free to move, the objective rises on the way; held, it only falls.
    assert np.any(np.diff(model.objective_[:7]) > 1e-6 * model.objective_[0])
    assert np.all(np.diff(model.objective_[6:]) < 0)
    t = model.orthogonal_distances(X) ** 2
    ordered = np.sort(t)
    assert abs(model.gamma_ / (np.sum(ordered[45] - ordered[:45]) / 2) - 1) > 1e-6
    assert_allclose(model.weights_, simplex_projection(-t / (2 * model.gamma_)), atol=1e-8)


def test_pcaan_that_is_frozen_converges_by_its_objective(rng):
    X = rng.normal(size=(60, 10))
    model = PCAAN(3, init="pca", max_iter=60, tol=1e-12).fit(X)
    assert model.converged_
    assert 30 < model.n_iter_ < 60


@pytest.mark.parametrize("method", METHODS)
def test_a_loop_that_is_cut_short_says_what_to_change(method, rng):
    X = rng.normal(size=(60, 10))
    name = method.__name__
    with pytest.warns(ConvergenceWarning, match=rf"{name} stopped after max_iter=2 .* tol=1.0e-13"):
        model = method(3, max_iter=2, tol=1e-13).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_n_active_is_a_share_or_a_number(rng):
    X = planted_subspace(rng, 100, 8, 2, 20, noise=0.1)[0]
    for share, number in ((0.6, 60), (0.15, 15), (0.999, 100)):
        by_share, by_number = PCAAN(2, n_active=share).fit(X), PCAAN(2, n_active=number).fit(X)
        assert_array_equal(by_share.weights_, by_number.weights_)
        assert by_share.n_active_ == number
    assert PCAAN(2, n_active=1.0).fit(X).n_active_ == 100
    with pytest.raises(ValueError, match=r"n_active=101 must be a share .* from 1 to 100"):
        PCAAN(2, n_active=101).fit(X)
    for wrong in (0, 0.0, 1.5, -3):
        with pytest.raises(ValueError, match="n_active"):
            PCAAN(2, n_active=wrong).fit(X)


def test_too_few_active_samples_are_warned_about(rng):
    X = rng.normal(size=(30, 6))
    with pytest.warns(UserWarning, match="Only 3 samples are active, too few to fix 3 components"):
        model = PCAAN(3, n_active=3).fit(X)
    assert_allclose(model.components_ @ model.components_.T, np.eye(3), atol=1e-12)
    PCAAN(3, n_active=4, max_iter=1000).fit(X)  # enough: no warning, which would be an error here


def test_pcaan_fits_exact_samples_with_gamma_zero_and_equal_weights(rng):
    X, basis, is_outlier = planted_subspace(rng, 100, 12, 3, 20, noise=0.0)
    X[is_outlier] += 0.1 * rng.normal(size=(20, 12))
    model = PCAAN(3, n_active=60).fit(X)
    assert model.gamma_ == 0
    assert_allclose(model.weights_, np.where(is_outlier, 0, 1 / 80), atol=1e-15)
    assert model.objective_[-1] == 0
    assert subspace_distance(model.components_, basis) < 1e-10
    assert model.predict(X)[is_outlier].tolist() == [-1] * 20


@pytest.mark.parametrize("distance", [30.0, 300.0, 3000.0])
def test_weights_that_stand_still_do_not_end_a_fit_before_its_time(distance, rng):
    X, basis, is_outlier = planted_subspace(rng, 1000, 200, 5, 200, noise=1.0, distance=distance)
    # The farther the first sample left out, the less the weights feel the subspace.
    model = PCAAN(5, n_active=800).fit(X)
    assert_array_equal(model.weights_[is_outlier], 0)
    wanted = weighted_pca(X, 5, model.weights_)[1]
    assert subspace_distance(model.components_, wanted) < 2e-3
    # A third of a degree is what weights other than equal ones may cost.
    clean = PCA(5).fit(X[~is_outlier]).components_
    assert degrees(model.components_, basis) < degrees(clean, basis) + 0.3


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_pcaan_survives_scattered_and_clustered_outliers(seed, clustered):
    X, basis, is_outlier = planted_subspace(
        np.random.default_rng(seed), 1000, 200, 5, 200, noise=0.1, clustered=clustered
    )
    model = PCAAN(5).fit(X)
    # The noise alone moves the subspace by 1.7 degrees: PCA of the clean samples has the same.
    assert degrees(model.components_, basis) < 2
    assert_array_equal(model.weights_[is_outlier], 0)
    assert degrees(PCA(5).fit(X).components_, basis) > 10
    assert np.mean(model.predict(X)[is_outlier] == -1) == 1


@pytest.mark.parametrize("seed", range(10))
def test_pcaan_started_at_pca_is_lost_among_clustered_outliers(seed):
    X, basis, _ = planted_subspace(
        np.random.default_rng(seed), 1000, 200, 5, 200, noise=0.1, clustered=True
    )
    # This is the start of the paper; half of these fits do not settle in 100 passes either.
    model = PCAAN(5, init="pca", tol=1e-4).fit(X)
    assert degrees(model.components_, basis) > 45


@pytest.mark.parametrize(("n", "max_weight"), [(20, 0.5), (100, 0.5), (100, None), (400, None)])
def test_epca_weights_are_optimal_for_its_residuals(n, max_weight, rng):
    X = rng.normal(size=(n, 6)) * [5.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    model = EPCA(2, max_weight=max_weight, max_iter=1000).fit(X)
    f = model.loss_.values(model.orthogonal_distances(X) ** 2)
    w = model.weights_
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, rel=1e-12)
    assert_allclose(model.direct_weights_, 1 / (1 - w), rtol=1e-12)
    assert model.objective_[-1] == pytest.approx(np.sum(f / (1 - w)), rel=1e-9)
    assert f.sum() * (1 - 1e-12) <= model.objective_[-1] <= n / (n - 1) * f.sum() * (1 + 1e-12)
    # The slopes f / (1 - w)^2 are level where the weights are free, higher where they are 0 and
    # lower where they are held by the bound.
    bounded = w >= (0.5 - 1e-9 if max_weight else 2)
    free = (w > 0) & ~bounded
    slopes = f / (1 - w) ** 2
    assert free.sum() >= 1
    level = slopes[free].mean()
    assert_allclose(slopes[free], level, rtol=1e-6)
    assert np.all(slopes[w == 0] >= level * (1 - 1e-6))
    assert np.all(slopes[bounded] <= level * (1 + 1e-6))
    assert model.n_active_ == np.count_nonzero(w) >= 2
    wanted = model.direct_weights_ * model.loss_.weights(model.orthogonal_distances(X) ** 2)
    assert_allclose(model.sample_weights_, wanted / wanted.sum(), rtol=1e-6)


def test_sigma_is_the_median_distance_at_the_start(rng):
    # An odd number of samples: there is one in the middle.
    X = planted_subspace(rng, 121, 12, 3, 12, noise=0.3)[0]
    pca = PCA(3).fit(X)
    start = np.median(np.sqrt(square_residuals(X, pca.mean_, pca.components_)))
    assert EPCA(3).fit(X).sigma_ == pytest.approx(start, rel=1e-6)
    assert EPCA(3, sigma=0.7).fit(X).sigma_ == 0.7


@pytest.mark.parametrize("shape", ["nested views", "few wide samples", "many wide samples"])
def test_sigma_of_wide_data_is_nearly_the_median_distance_at_the_start(shape):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    pca = PCA(c, svd_solver="full").fit(X)
    start = np.median(np.sqrt(square_residuals(X, pca.mean_, pca.components_)))
    # The start is PCA up to 1e-3 of its sum of squares, so distances are good to its root.
    assert EPCA(c).fit(X).sigma_ == pytest.approx(start, rel=0.03)


def test_sigma_of_a_robust_start_does_not_depend_on_the_number_of_features(rng):
    X = planted_subspace(rng, 500, 40, 2, 150, noise=0.001, distance=60.0)[0]
    # The same samples in a space of 100 features: the robust start sees the same picture.
    wide = X @ random_rotation(rng, 100)[:40]
    narrow_sigma = EPCA(2, init="robust").fit(X).sigma_
    wide_sigma = EPCA(2, init="robust").fit(wide).sigma_
    assert wide_sigma == pytest.approx(narrow_sigma, rel=0.5)


def test_no_weight_exceeds_max_weight_where_the_paper_interpolates_a_sample():
    collapsed = 0
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(40, 5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            free = EPCA(2, sigma=0.3).fit(X)
            bounded = EPCA(2, sigma=0.3, max_weight=0.5).fit(X)
        collapsed += free.weights_.max() > 0.99
        assert bounded.weights_.max() <= 0.5 * (1 + 1e-9)
        assert bounded.direct_weights_.max() <= 2 * (1 + 1e-9)
    # Without the bound one sample takes all the weight in about half of the runs.
    assert collapsed >= 3


def test_max_weight_below_an_equal_share_is_refused(rng):
    with pytest.raises(ValueError, match=r"max_weight=0.01 must lie between 1/n_samples = 0.1"):
        EPCA(2, max_weight=0.01).fit(rng.normal(size=(10, 4)))


def test_r1pca_holds_the_centre_it_is_told(rng):
    X = planted_subspace(rng, 100, 8, 2, 20, noise=0.1)[0]
    assert_allclose(R1PCA(2).fit(X).mean_, X.mean(axis=0), rtol=1e-12)
    assert_array_equal(R1PCA(2, center="zero").fit(X).mean_, 0)
    median = R1PCA(2, center="geometric_median").fit(X).mean_
    assert np.linalg.norm(median - X.mean(axis=0)) > 0.1


@pytest.mark.parametrize("shape", [(50, 3), (40, 60), (500, 100)])
def test_the_geometric_median_has_no_force_left(shape, rng):
    X = rng.normal(size=shape) + 5
    point = geometric_median(ArrayRows(X))
    pulls = (X - point) / np.linalg.norm(X - point, axis=1, keepdims=True)
    # Weiszfeld stops at a step of 1e-10: the force is that times the sum of the pulls.
    assert np.linalg.norm(pulls.sum(axis=0)) < 1e-7 * len(X)


def test_a_geometric_median_on_a_sample_is_certified_by_the_others(rng):
    arms = rng.normal(size=(20, 3))
    X = np.vstack([arms, -arms, np.zeros((3, 3)), [[9.0, 5.0, 7.0]]]) + 2.0
    point = geometric_median(ArrayRows(X))
    assert_allclose(point, 2.0, atol=1e-9)
    # The arms cancel and the far sample pulls with force 1, against the 3 samples in the middle.
    others = np.delete(X, [40, 41, 42], axis=0) - point
    pulls = others / np.linalg.norm(others, axis=1, keepdims=True)
    assert np.linalg.norm(pulls.sum(axis=0)) == pytest.approx(1, abs=1e-6)


def test_the_geometric_median_stands_up_to_far_outliers(rng):
    X = rng.normal(size=(100, 5))
    X[:40] = 1e6 * (1 + rng.normal(size=(40, 5)))
    point = geometric_median(ArrayRows(X))
    assert np.linalg.norm(point) < 3
    assert np.linalg.norm(X.mean(axis=0)) > 1e5
    model = R1PCA(2, loss="l1", center="geometric_median", max_iter=1000).fit(X)
    assert_allclose(model.mean_, point, atol=1e-9)


@pytest.mark.parametrize("loss", ["huber", "l1", "cauchy"])
@pytest.mark.parametrize("shape", SHAPES)
def test_orthogonal_iteration_reaches_the_objective_of_the_eigensolver(shape, loss):
    X, c = noisy_planted(shape), SHAPES[shape][2]
    fits = [
        R1PCA(c, loss=loss, cutoff=3.0, solver=solver, tol=1e-13, max_iter=3000).fit(X)
        for solver in ("eig", "power")
    ]
    assert fits[1].objective_[-1] == pytest.approx(fits[0].objective_[-1], rel=1e-8)
    assert subspace_distance(fits[1].components_, fits[0].components_) < 1e-4
    assert_allclose(fits[1].explained_variance_, fits[0].explained_variance_, rtol=1e-4)
    assert np.all(np.diff(fits[1].explained_variance_) < 0)


ROBUST = {
    "PCA-AN": PCAAN(3, n_active=0.7),
    "PCA-AN, half active": PCAAN(3, n_active=0.5),
    "PCA-OM": PCAOM(3),
    "EPCA": EPCA(3, init="robust"),
    "EPCA with a small sigma": EPCA(3, sigma=0.01),
    # The geometric median of the data is not quite that of the clean samples, and the l1 loss
    # cannot make up for a centre off the subspace (1.6 degrees); Cauchy's is less sensitive.
    "R1-PCA": R1PCA(3, loss="cauchy", center="geometric_median"),
}


@pytest.mark.parametrize("method", ROBUST)
@pytest.mark.parametrize("seed", range(5))
def test_the_planted_subspace_is_found_among_gross_outliers(method, seed):
    X, basis, is_outlier = planted_subspace(
        np.random.default_rng(seed), 400, 60, 3, 120, noise=0.001, distance=30.0
    )
    assert degrees(PCA(3).fit(X).components_, basis) > 30
    model = clone(ROBUST[method]).fit(X)
    assert degrees(model.components_, basis) < 1
    weights = model.sample_weights_
    assert weights[is_outlier].max() < 0.1 * np.median(weights[~is_outlier])
    assert np.all(model.predict(X)[is_outlier] == -1)


def test_the_capped_loss_drops_clustered_outliers(rng):
    X, basis, is_outlier = planted_subspace(rng, 300, 30, 3, 60, noise=0.1, clustered=True)
    model = ReweightedPCA(3, loss="capped").fit(X)
    assert degrees(model.components_, basis) < 2
    assert_array_equal(model.weights_[is_outlier], 0)
    assert model.n_active_ <= 240


def test_a_threshold_below_every_residual_is_refused_with_the_smallest_one(rng):
    X = rng.normal(size=(50, 6)) + 100
    with pytest.raises(ValueError, match=r"smallest residual is 0\.\d+\. Raise the threshold"):
        ReweightedPCA(2, loss=CappedLoss(1e-3)).fit(X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(80, 10), (30, 50), (300, 100)])
@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_a_share_asks_for_the_fewest_components_that_hold_it(method, shape, share, rng):
    X = rng.normal(size=shape) * np.linspace(3, 0.5, shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = method(share).fit(X)
    ratios = model.explained_variance_ratio_
    assert model.n_components_ == len(ratios) == len(model.components_)
    assert ratios.sum() >= share * (1 - 1e-9)
    # With more features than samples the l2,1 loss fits a sample exactly and trusts it alone, so
    # that two ranks ask for each other; the larger is kept, and it holds more than the share.
    two_ranks = shape[0] < shape[1] and isinstance(model.loss_, L21Loss)
    assert two_ranks or ratios[:-1].sum() < share
    assert_allclose(model.components_ @ model.components_.T, np.eye(len(ratios)), atol=1e-10)


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_a_share_of_the_plain_variance_is_that_of_pca(share, rng):
    X = rng.normal(size=(80, 10)) * np.linspace(3, 0.5, 10)
    expected = PCA(share, svd_solver="full").fit(X)
    assert ReweightedPCA(share, loss="squared").fit(X).n_components_ == expected.n_components_


def test_explained_variance_is_that_of_the_weighted_scores(rng):
    X = planted_subspace(rng, 150, 10, 3, 30, noise=0.3)[0]
    for model in (PCAAN(3, tol=1e-13), PCAOM(3, tol=1e-13)):
        model.fit(X)
        p = model.sample_weights_
        scores = model.transform(X)
        assert_allclose(p @ scores, 0, atol=1e-5)
        correction = 1 / (1 - p @ p)
        assert_allclose(model.explained_variance_, correction * (p @ scores**2), rtol=1e-5)
        total = correction * p @ np.sum((X - model.mean_) ** 2, axis=1)
        assert_allclose(
            model.explained_variance_ratio_, model.explained_variance_ / total, rtol=1e-5
        )
        assert np.all(np.diff(model.explained_variance_) < 0)
        assert_allclose(model.singular_values_**2, 149 * model.explained_variance_, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(20, 4), (6, 12), (100, 80)])
def test_no_number_means_all_components(method, shape, rng):
    X = rng.normal(size=shape)
    model = method().fit(X)
    assert model.n_components_ == min(shape)
    assert_allclose(model.components_ @ model.components_.T, np.eye(min(shape)), atol=1e-10)
    kept = model.weights_ > 0  # PCA-AN leaves samples out, and then the others span less
    assert kept.all() or method is PCAAN
    assert_allclose(model.reconstruct(X)[kept], X[kept], atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_too_many_components_are_refused_with_the_largest_number(method, rng):
    with pytest.raises(
        ValueError, match=r"n_components=7 is more .* \(6, 9\), so choose at most 6"
    ):
        method(7).fit(rng.normal(size=(6, 9)))


# Tight enough that what is left is rounding; adaptive weights are compared at their fixed point.
SETTLED = {
    "PCA-OM": PCAOM(3, tol=1e-13, max_iter=1000),
    "R1-PCA": R1PCA(3, center="geometric_median", tol=1e-13, max_iter=1000),
    "R1-PCA, l1": R1PCA(3, loss="l1", tol=1e-13, max_iter=1000),
    "PCA-AN": PCAAN(3, tol=1e-13, max_iter=1000),
    "EPCA": EPCA(3, max_weight=0.5, tol=1e-13, max_iter=1000),
    # The threshold is a quantile at the start, and the robust start is drawn by sample number.
    "capped": ReweightedPCA(3, loss="capped", init="pca", tol=1e-13, max_iter=1000),
}


def settled_data(rng, d=12):
    return planted_subspace(rng, 150, d, 3, 20, noise=0.3, distance=15.0)[0]


def check_same_subspace(model, expected, mean, components):
    assert_allclose(model.weights_, expected.weights_, atol=1e-5 / 150)
    assert_allclose(model.mean_, mean, atol=1e-4, rtol=1e-5)
    assert subspace_distance(model.components_, components) < 1e-5
    assert model.n_active_ == expected.n_active_


@pytest.mark.parametrize("method", SETTLED)
def test_rotating_the_data_rotates_the_components(method, rng):
    X, R = settled_data(rng), random_rotation(rng, 12)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(X @ R)
    check_same_subspace(model, expected, expected.mean_ @ R, expected.components_ @ R)
    assert model.objective_[-1] == pytest.approx(expected.objective_[-1], rel=1e-9)


@pytest.mark.parametrize("method", SETTLED)
def test_shifting_the_data_moves_the_mean_alone(method, rng):
    X, shift = settled_data(rng), 100 * rng.normal(size=12)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(X + shift)
    check_same_subspace(model, expected, expected.mean_ + shift, expected.components_)
    assert_allclose(model.components_, expected.components_, atol=1e-5)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
@pytest.mark.parametrize("method", SETTLED)
def test_scaling_the_data_scales_the_mean_alone(method, factor, rng):
    X = settled_data(rng)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(factor * X)
    check_same_subspace(model, expected, factor * expected.mean_, expected.components_)
    assert_allclose(model.explained_variance_, factor**2 * expected.explained_variance_, rtol=1e-5)
    if method == "EPCA":
        assert model.sigma_ == pytest.approx(factor * expected.sigma_, rel=1e-9)


def test_the_gamma_of_pcaan_scales_with_the_square_of_the_data(rng):
    X = settled_data(rng)
    expected = PCAAN(3, gamma=500.0, tol=1e-14).fit(X)
    model = PCAAN(3, gamma=500.0 * 49, tol=1e-14).fit(7 * X)
    assert 0 < np.count_nonzero(expected.weights_) < 150
    check_same_subspace(model, expected, 7 * expected.mean_, expected.components_)


@pytest.mark.parametrize("method", SETTLED)
def test_shuffling_the_samples_shuffles_the_weights_alone(method, rng):
    X, order = settled_data(rng), rng.permutation(150)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(X[order])
    assert_allclose(model.weights_, expected.weights_[order], atol=1e-5 / 150)
    assert_allclose(model.mean_, expected.mean_, atol=1e-5)
    assert_allclose(model.components_, expected.components_, atol=1e-5)


@pytest.mark.parametrize("method", ["PCA-OM", "R1-PCA", "R1-PCA, l1", "capped"])
def test_doubling_every_sample_changes_nothing(method, rng):
    X = settled_data(rng)
    expected = clone(SETTLED[method]).fit(X)
    # The quantile of a doubled sample is another one, so the capped loss is given the number.
    model = clone(SETTLED[method])
    if method == "capped":
        model.set_params(loss=expected.loss_)
    model.fit(np.vstack([X, X]))
    assert_allclose(model.weights_, np.tile(expected.weights_, 2) / 2, atol=1e-5 / 150)
    assert subspace_distance(model.components_, expected.components_) < 1e-5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(100, 12), (200, 90), (40, 70)])
def test_single_precision_stays_single_precision(method, shape, rng):
    X = planted_subspace(rng, *shape, 3, 10, noise=0.1)[0].astype(np.float32)
    model = method(3).fit(X)
    for name in (
        "mean_",
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
    ):
        assert getattr(model, name).dtype == np.float32, name
    codes = model.transform(X)
    assert codes.dtype == np.float32
    assert model.inverse_transform(codes).dtype == np.float32
    assert model.reconstruct(X).dtype == np.float32


@pytest.mark.parametrize("method", METHODS)
def test_layout_and_container_of_the_data_do_not_matter(method, rng):
    pd = pytest.importorskip("pandas")
    X = settled_data(rng)
    untouched = X.copy()
    expected = method(3).fit(X)
    assert_array_equal(X, untouched)
    read_only = X.copy()
    read_only.flags.writeable = False
    names = [f"f{i}" for i in range(12)]
    for kind, other in {
        "Fortran": np.asfortranarray(X),
        "read-only": read_only,
        "strided": np.repeat(X, 2, axis=0)[::2],
        "list": X.tolist(),
        "frame": pd.DataFrame(X, columns=names),
    }.items():
        model = method(3).fit(other)
        # Another layout adds in another order, so digits at the end of the loop may differ.
        assert_allclose(model.components_, expected.components_, atol=1e-7, err_msg=kind)
        assert_allclose(model.weights_, expected.weights_, rtol=1e-6, atol=1e-12, err_msg=kind)
        assert_allclose(model.transform(other), expected.transform(X), atol=1e-6, err_msg=kind)
    assert model.feature_names_in_.tolist() == names
    frame = model.set_output(transform="pandas").transform(other)
    stem = method.__name__.lower()
    assert frame.columns.tolist() == [f"{stem}{i}" for i in range(3)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(150, 30), (200, 120), (60, 150)])
def test_sparse_data_give_the_fit_of_the_dense_ones(method, shape, rng):
    X = planted_subspace(rng, *shape, 3, 10, noise=0.1)[0]
    X[rng.random(shape) < 0.6] = 0
    S = sparse.csr_matrix(X)
    # Numbers where the default is a median at the start, which is PCA up to 1e-3 only.
    numbers = {R1PCA: {"cutoff": 3.0}, EPCA: {"sigma": 3.0, "max_weight": 0.5}}.get(method, {})
    params = {"tol": 1e-12, "max_iter": 3000, **numbers}
    expected, model = method(3, **params).fit(X), method(3, **params).fit(S)
    # Adaptive weights judge their view by a gain of 1e-7, which fixes a subspace to its root.
    accuracy = 1e-3 if method is PCAAN else 1e-5
    assert model.objective_[-1] == pytest.approx(expected.objective_[-1], rel=accuracy)
    assert subspace_distance(model.components_, expected.components_) < accuracy
    assert_allclose(model.transform(S), model.transform(X), atol=1e-9)
    assert_allclose(model.orthogonal_distances(S), model.orthogonal_distances(X), atol=1e-6)
    assert_array_equal(S.toarray(), X)


@pytest.mark.parametrize("method", METHODS)
def test_a_fitted_model_survives_pickling_and_fits_twice_the_same(method, rng):
    X = settled_data(rng)
    model = method(3).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.transform(X), model.transform(X))
    again = clone(model).fit(X)
    assert_array_equal(again.components_, model.components_)
    assert_array_equal(again.weights_, model.weights_)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_holes_are_refused(method, bad, rng):
    X = rng.normal(size=(20, 4))
    X[3, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        method(2).fit(X)


def all_finite(model):
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_")}
    return all(
        np.isfinite(v).all()
        for k, v in fitted.items()
        if isinstance(v, np.ndarray | float) and k not in ("gamma_",)
    )


EVERY = [
    *(pytest.param(method(2), id=method.__name__) for method in METHODS),
    *(
        pytest.param(ReweightedPCA(2, loss=loss, weighting=weighting), id=f"{loss}-{weighting}")
        for loss in ("squared", "l21", "huber", "cauchy", "sigma", "capped")
        for weighting in ("uniform", "adaptive", "corobust")
    ),
    pytest.param(R1PCA(2, center="geometric_median"), id="geometric median"),
    pytest.param(R1PCA(2, solver="power"), id="orthogonal iteration"),
    pytest.param(ReweightedPCA(2, init="random"), id="random start"),
]


@pytest.mark.parametrize("shape", [(10, 4), (5, 9), (12, 80), (300, 70), (300, 400)])
@pytest.mark.parametrize("method", EVERY)
def test_equal_samples_give_the_first_axes_and_equal_weights(method, shape):
    X = np.tile(np.linspace(0.1, 0.7, shape[1]), (shape[0], 1))
    model = clone(method).fit(X)
    assert_array_equal(model.components_, np.eye(2, shape[1]))
    assert_allclose(model.mean_, X[0], rtol=1e-14)
    # The l2,1 loss of a residual of 0 is its floor, the root of the smallest number there is.
    assert abs(model.objective_[-1]) < 1e-100
    assert_allclose(model.weights_, 1 / shape[0], rtol=1e-12)
    assert model.n_active_ == shape[0]
    assert all_finite(model)
    assert_allclose(model.transform(X), 0, atol=1e-14)
    assert_array_equal(model.predict(X), 1)


@pytest.mark.parametrize("shape", [(60, 12), (60, 150), (400, 150), (300, 500)])
@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_have_exact_zeros(method, shape, rng):
    X = planted_subspace(rng, *shape, 3, shape[0] // 10, noise=0.1)[0]
    constant = rng.random(shape[1]) < 0.3
    # 0.1 and its like are no binary fractions: sums of them are not exact.
    X[:, constant] = rng.choice([0.0, 0.1, -7.3, 1e3 / 3], size=constant.sum())
    model = method(3).fit(X)
    assert 0 < constant.sum() < shape[1]
    assert_array_equal(model.components_[:, constant], 0)
    # A column of zeros may have a mean at the rounding level of the others.
    assert_allclose(model.mean_[constant], X[0, constant], rtol=1e-14, atol=1e-18)


@pytest.mark.parametrize("method", EVERY)
def test_duplicated_samples_get_equal_weights(method, rng):
    X = rng.normal(size=(40, 6)) * [5.0, 4.0, 1.0, 1.0, 1.0, 1.0]
    X[20:] = X[:20]
    model = clone(method).set_params(max_iter=3000).fit(X)
    assert_allclose(model.weights_[20:], model.weights_[:20], rtol=1e-9, atol=1e-13)
    assert all_finite(model)


@pytest.mark.parametrize("shape", [(40, 10), (20, 30), (100, 90), (300, 400)])
@pytest.mark.parametrize("method", METHODS)
def test_components_beyond_the_rank_complete_the_basis(method, shape, rng):
    X, basis, _ = planted_subspace(rng, *shape, 2, noise=0.0)
    model = method(5).fit(X)
    assert model.n_components_ == 5
    assert_allclose(model.components_ @ model.components_.T, np.eye(5), atol=1e-10)
    assert subspace_distance(model.components_[:2], basis) < 1e-6
    scale = np.abs(X).max()
    assert_allclose(model.reconstruct(X), X, atol=1e-9 * scale)
    assert_allclose(model.explained_variance_[2:], 0, atol=1e-12 * scale**2)
    # Nothing is left: the floored loss of each sample is at most that of rounding error.
    assert model.objective_[-1] <= 1e-6 * scale * len(X)
    assert all_finite(model)


@pytest.mark.parametrize("d", [1, 3, 100])
@pytest.mark.parametrize("method", METHODS)
def test_two_samples_are_joined_by_a_line(method, d):
    X = np.random.default_rng(3).normal(size=(2, d))
    model = method(1).fit(X)
    line = (X[1] - X[0]) / np.linalg.norm(X[1] - X[0])
    assert subspace_distance(model.components_, line[None]) < 1e-10
    assert_allclose(model.weights_, 0.5, rtol=1e-9)
    assert_allclose(model.reconstruct(X), X, atol=1e-12)
    assert all_finite(model)


@pytest.mark.parametrize("method", METHODS)
def test_one_sample_is_refused(method):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        method(1).fit([[1.0, 2.0, 3.0]])


def test_the_signs_make_the_largest_entry_positive(rng):
    for method in METHODS:
        components = method(3).fit(settled_data(rng)).components_
        largest = np.abs(components).argmax(axis=1)
        assert np.all(components[np.arange(3), largest] > 0), method.__name__


def test_memory_never_written_to_is_not_mistaken_for_data(monkeypatch, rng):
    X = rng.normal(size=(30, 50))
    monkeypatch.setattr("robustpca.core.rows.BLOCK_BYTES", X.nbytes // 4)
    rows, full = ArrayRows(X), np.full
    assert len(rows.bounds) > 1
    monkeypatch.setattr(np, "empty", lambda shape: full(shape, np.nan))
    products = inner_products(rows)
    np.testing.assert_allclose(np.tril(products), np.tril(X @ X.T))
