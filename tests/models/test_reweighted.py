"""The reweighted chapter: special cases, an independent loop, descent, planted truths."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reweighting import SHAPES, degrees, noisy_planted, random_rotation, square_residuals, textbook
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from robustpca import EPCA, PCAAN, PCAOM, R1PCA, ReweightedPCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance
from robustpca.parts.centers import geometric_median
from robustpca.parts.losses import (
    CappedLoss,
    CauchyLoss,
    HuberLoss,
    L21Loss,
    SigmaLoss,
    SquaredLoss,
)
from robustpca.parts.weightings import AdaptiveNeighbors, CoRobust, Uniform


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
        # Views are judged at ten times the tolerance. Adaptive weights end at no minimum, so they
        # are off by the root of the last gain.
        tol=1e-12 if weighting.monotone else 1e-14,
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


# One sample weighs 1e12 times as much as the others.
PINNED = np.array(
    [
        [-2.5, 3.7, 5.7],
        [-4.4, -40.5, -14.7],
        [10.7, 76.2, 55.2],
        [0.6, 17.8, 20.4],
        [-20.7, -56.2, -57.4],
    ]
)
# The loss of one of two samples vanishes on the way.
VANISHING = np.array([[0.49378, -23.23712], [0.32866, -23.26417]])


@pytest.mark.parametrize("weighting", WEIGHTINGS_TO_TRY)
@pytest.mark.parametrize("loss", LOSSES_TO_TRY)
@settings(max_examples=15)
@example(data=(PINNED, 2), solver="eig", center="mean", init="pca")
@example(data=(VANISHING, 1), solver="eig", center="zero", init="pca")
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


# The centre does; the subspace does not, and that is told.
@pytest.mark.filterwarnings("ignore:A group of outliers")
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
