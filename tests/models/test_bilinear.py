"""The bilinear chapter: images, their two sides, and what they share with the vector methods."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from robustpca import GLRAM, PCAOM, R2DPCA, ReweightedBilinear, ReweightedPCA
from robustpca.metrics import subspace_distance
from robustpca.parts.losses import (
    CappedLoss,
    CauchyLoss,
    HuberLoss,
    L21Loss,
    SigmaLoss,
    SquaredLoss,
)
from robustpca.parts.weightings import AdaptiveNeighbors, CoRobust, Uniform

SHAPE, RANKS = (12, 9), (3, 2)
METHODS = [GLRAM, R2DPCA, ReweightedBilinear]


def planted_images(rng, n_samples=150, n_outliers=0, *, noise=0.05, clustered=False, far=60.0):
    """Rows that are images near a planted pair of sides; some replaced by noise images."""
    left = np.linalg.qr(rng.normal(size=(SHAPE[0], RANKS[0])))[0]
    right = np.linalg.qr(rng.normal(size=(SHAPE[1], RANKS[1])))[0]
    scales = np.outer([6.0, 4.0, 3.0], [1.5, 1.0])
    images = left @ (rng.normal(size=(n_samples, *RANKS)) * scales) @ right.T
    images += noise * rng.normal(size=images.shape)
    is_outlier = np.zeros(n_samples, dtype=bool)
    is_outlier[rng.choice(n_samples, n_outliers, replace=False)] = True
    bad = rng.normal(size=(1 if clustered else n_outliers, *SHAPE))
    bad *= far / np.linalg.norm(bad, axis=(1, 2), keepdims=True)
    images[is_outlier] = bad + noise * rng.normal(size=(n_outliers, *SHAPE))
    X = (images + rng.normal(size=SHAPE)).reshape(n_samples, -1)
    return X, left, right, is_outlier


def side_error(model, left, right):
    """Sine of the largest angle of either side."""
    return max(subspace_distance(model.left_.T, left.T), subspace_distance(model.right_.T, right.T))


def random_rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def leading(gram, count):
    return np.linalg.eigh(gram)[1][:, ::-1][:, :count]


def textbook(X, shape, ranks, loss, weighting, *, center=None, n_sweeps=0, tol=1e-14):
    """Two eigenproblems per pass, written with images and nothing else."""
    A = X.reshape(-1, *shape)

    def centred(weights):
        mean = np.tensordot(weights, A, 1) / weights.sum() if center is None else center
        return A - mean

    def sweep(weights, right):
        Z = centred(weights)
        left = leading(np.einsum("n,nij,jk,nlk->il", weights, Z @ right, np.eye(ranks[1]),
                                 Z @ right), ranks[0])  # fmt: skip
        turned = left.T @ Z
        right = leading(np.einsum("n,nij,nik->jk", weights, turned, turned), ranks[1])
        rest = Z - left @ (turned @ right) @ right.T
        return left, right, np.sum(rest**2, axis=(1, 2))

    ones = np.ones(len(A))
    Z = centred(ones)
    left = leading(np.einsum("nij,nkj->ik", Z, Z), ranks[0])
    right = leading(np.einsum("nij,nik->jk", Z, Z), ranks[1])
    t = np.sum((Z - left @ (left.T @ Z @ right) @ right.T) ** 2, axis=(1, 2))
    for _ in range(n_sweeps):
        left, right, t = sweep(ones, right)
    step = None
    for _ in range(3000):
        previous, step = step, weighting.solve(loss.values(t))
        if previous is not None:
            change = np.abs(step.direct - previous.direct).max()
            drop = abs(previous.objective - step.objective)
            if max(change, drop / step.objective) <= tol:
                return step, left, right
        left, right, t = sweep(step.direct * loss.weights(t), right)
    raise AssertionError("the textbook loop did not converge")


@pytest.mark.parametrize("shape", [None, (10, 1), (1, 10)])
def test_images_of_one_column_or_row_are_vectors(shape, rng):
    X = rng.normal(size=(80, 10)) * np.r_[6.0, 5.0, 4.0, np.ones(7)]
    X[:10] += 10 * rng.normal(size=(10, 10))
    ranks = (1, 3) if shape == (1, 10) else (3, 1)
    settled = {"tol": 1e-15, "max_iter": 1000}
    pairs = [
        (GLRAM(ranks, image_shape=shape, center="mean", **settled), PCA(3)),
        (R2DPCA(ranks, image_shape=shape, **settled), PCAOM(3, **settled)),
        *(
            (
                ReweightedBilinear(ranks, image_shape=shape, **parts),
                ReweightedPCA(3, **parts),
            )
            for parts in [
                {"loss": CauchyLoss(3.0), "weighting": Uniform(), **settled},
                {"loss": SigmaLoss(2.0), "weighting": CoRobust(0.5), **settled},
                # These end at no minimum: the objective is off by the root of the last gain.
                {"loss": SquaredLoss(), "weighting": AdaptiveNeighbors(0.8), "tol": 1e-15},
            ]
        ),
    ]
    for images, vectors in pairs:
        images.fit(X)
        vectors.fit(X)
        # Where the spectrum has gaps, the components themselves are the same up to sign.
        overlap = np.abs(np.sum(images.components_ * vectors.components_, axis=1))
        assert_allclose(overlap, 1, atol=1e-8)
        assert_allclose(images.mean_, vectors.mean_, atol=1e-5)
        assert_allclose(images.explained_variance_, vectors.explained_variance_, rtol=1e-5)
        if hasattr(vectors, "weights_"):
            assert_allclose(images.weights_, vectors.weights_, atol=1e-5 / 80)
            assert images.objective_[-1] == pytest.approx(vectors.objective_[-1], rel=1e-8)


def test_glram_is_never_better_than_pca_with_as_many_components(rng):
    X = planted_images(rng, noise=1.0)[0]
    squares = np.linalg.svd(X, compute_uv=False) ** 2
    plain = GLRAM(RANKS, image_shape=SHAPE).fit(X)
    assert plain.objective_[-1] >= squares[6:].sum()
    assert_array_equal(plain.mean_, 0)
    centred = GLRAM(RANKS, image_shape=SHAPE, center="mean").fit(X)
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    assert centred.objective_[-1] >= squares[6:].sum()
    assert centred.objective_[-1] < plain.objective_[-1]


def test_the_cores_of_glram_hold_the_energy_that_is_not_lost(rng):
    X = planted_images(rng, noise=1.0)[0]
    model = GLRAM(RANKS, image_shape=SHAPE).fit(X)
    kept = np.sum(model.transform(X) ** 2)
    assert kept == pytest.approx(np.sum(X**2) - model.objective_[-1], rel=1e-12)
    error = np.sum((X - model.reconstruct(X)) ** 2)
    assert error == pytest.approx(model.objective_[-1], rel=1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_components", [SHAPE, 12, None])
def test_full_sides_lose_nothing(method, n_components, rng):
    X = planted_images(rng, noise=1.0)[0]
    model = method(n_components, image_shape=SHAPE).fit(X)
    assert model.left_.shape == (12, 12)
    assert model.right_.shape == (9, 9)
    assert_allclose(model.reconstruct(X), X, atol=1e-10)
    # The l2,1 loss of a sample without residual is half of its floor, 1e-10 of the scale.
    assert model.objective_[-1] <= 1e-10 * np.linalg.norm(X, axis=1).sum()


def test_one_number_is_for_both_sides_as_far_as_they_go(rng):
    X = planted_images(rng)[0]
    model = GLRAM(4, image_shape=SHAPE).fit(X)
    assert (model.left_.shape, model.right_.shape) == ((12, 4), (9, 4))
    model = GLRAM(10, image_shape=SHAPE).fit(X)
    assert (model.left_.shape, model.right_.shape) == ((12, 10), (9, 9))


def test_the_full_width_gives_one_sided_2dpca_in_closed_form(rng):
    X = planted_images(rng, noise=1.0)[0]
    A = X.reshape(-1, *SHAPE)
    values, vectors = np.linalg.eigh(np.einsum("nij,nkj->ik", A, A))
    model = GLRAM((3, 9), image_shape=SHAPE).fit(X)
    assert subspace_distance(model.left_.T, vectors[:, -3:].T) < 1e-10
    assert model.objective_[-1] == pytest.approx(values[:-3].sum(), rel=1e-12)
    assert_allclose(model.objective_, model.objective_[-1], rtol=1e-12)
    assert model.n_iter_ == 1


def test_glram_finds_the_same_sides_from_the_first_axes(rng):
    X = planted_images(rng)[0]
    start = GLRAM(RANKS, image_shape=SHAPE, init="identity", tol=1e-12).fit(X)
    model = GLRAM(RANKS, image_shape=SHAPE, tol=1e-12).fit(X)
    assert start.objective_[0] > 2 * model.objective_[0]
    A = X.reshape(-1, *SHAPE)
    assert start.objective_[0] == pytest.approx(np.sum(A**2) - np.sum(A[:, :3, :2] ** 2), rel=1e-12)
    assert start.objective_[-1] == pytest.approx(model.objective_[-1], rel=1e-9)
    assert side_error(start, model.left_, model.right_) < 1e-4


def test_a_single_image_is_approximated_by_its_singular_vectors(rng):
    A = rng.normal(size=SHAPE)
    model = GLRAM((2, 2), image_shape=SHAPE).fit(A.reshape(1, -1))
    values = np.linalg.svd(A, compute_uv=False)
    assert model.objective_[-1] == pytest.approx(np.sum(values[2:] ** 2), rel=1e-9)


COMBINATIONS = {
    "l21": (L21Loss(1e-9), Uniform()),
    "huber": (HuberLoss(3.0), Uniform()),
    "cauchy": (CauchyLoss(5.0), Uniform()),
    "sigma": (SigmaLoss(2.0), Uniform()),
    "capped": (CappedLoss(20.0, 1e-9), Uniform()),
    "squared, fixed gamma": (SquaredLoss(), AdaptiveNeighbors(gamma=5e4)),
    "squared, adaptive": (SquaredLoss(), AdaptiveNeighbors(0.8)),
    "sigma, co-robust": (SigmaLoss(2.0), CoRobust(0.5)),
}


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_the_fit_is_that_of_a_textbook_loop(combination, rng):
    X = planted_images(rng, n_outliers=15, noise=0.5, far=25.0)[0]
    loss, weighting = COMBINATIONS[combination]
    step, left, right = textbook(X, SHAPE, RANKS, loss, weighting, n_sweeps=20)
    # Weights that end at no minimum leave the objective off by the root of the last gain.
    tol = 1e-13 if weighting.monotone else 1e-15
    settings = {"loss": loss, "weighting": weighting, "init": "pca", "tol": tol}
    model = ReweightedBilinear(RANKS, image_shape=SHAPE, max_iter=2000, **settings).fit(X)
    assert model.objective_[-1] == pytest.approx(step.objective, rel=1e-8)
    assert side_error(model, left, right) < 1e-5
    single = ReweightedBilinear(RANKS, image_shape=SHAPE, max_iter=2000, **settings)
    single.set_params(tol=1e-7).fit(X.astype(np.float32))
    # Single precision rounds at 6e-8; at tol=1e-7 the sides are good to the root of that.
    assert single.objective_[-1] == pytest.approx(step.objective, rel=1e-5)
    assert side_error(single, left, right) < 3e-3


def test_glram_is_its_textbook_loop(rng):
    X = planted_images(rng, noise=1.0)[0]
    step, left, right = textbook(X, SHAPE, RANKS, SquaredLoss(), Uniform(), center=np.zeros(SHAPE))
    model = GLRAM(RANKS, image_shape=SHAPE, tol=1e-14).fit(X)
    assert model.objective_[-1] == pytest.approx(step.objective, rel=1e-10)
    assert side_error(model, left, right) < 1e-6


@pytest.mark.parametrize("weighting", [Uniform(), AdaptiveNeighbors(gamma=1.0), CoRobust(0.6)])
@pytest.mark.parametrize(
    "loss",
    [SquaredLoss(), L21Loss(), HuberLoss(), CauchyLoss(), SigmaLoss(), CappedLoss("q0.7")],
)
@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 30),
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    rank=st.integers(1, 49),
    ranks=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    center=st.sampled_from(["weighted", "mean", "zero"]),
    init=st.sampled_from(["pca", "robust", "random"]),
    repeated=st.booleans(),
)
def test_the_objective_never_rises(
    loss, weighting, seed, n, height, width, rank, ranks, center, init, repeated
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, height * width))
    X[: n // 5] *= 20
    if repeated:
        X[n // 2 :] = X[0]
        X[:, 0] = 0.1
    ranks = min(ranks[0], height), min(ranks[1], width)
    model = ReweightedBilinear(
        ranks,
        image_shape=(height, width),
        loss=loss,
        weighting=weighting,
        center=center,
        init=init,
        max_iter=30,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    # Distances below 1e-10 of the data are rounding error and count as 0, so each image may
    # bring the loss of such a distance; the floor of the co-robust weights another 1e-9.
    norm = np.linalg.norm(X, axis=1).max()
    rounding = n * float(model.loss_.values(np.array([(1e-9 * norm) ** 2]))[0])
    relative = 1e-9 if isinstance(weighting, CoRobust) else 1e-10
    before, after = model.objective_[:-1], model.objective_[1:]
    assert len(after) == model.n_iter_ >= 1
    assert np.all(after <= before * (1 + relative) + rounding)
    for side in (model.left_, model.right_):
        assert_allclose(side.T @ side, np.eye(side.shape[1]), atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_components_are_the_kronecker_product_and_scores_the_cores(method, rng):
    X = planted_images(rng, n_outliers=10, noise=0.5)[0]
    model = method(RANKS, image_shape=SHAPE).fit(X)
    assert_array_equal(model.components_, np.kron(model.left_, model.right_).T)
    assert_allclose(model.components_ @ model.components_.T, np.eye(6), atol=1e-12)
    centred = X.reshape(-1, *SHAPE) - model.mean_.reshape(SHAPE)
    cores = model.left_.T @ centred @ model.right_
    assert_allclose(model.transform(X).reshape(-1, *RANKS), cores, atol=1e-11)
    rest = centred - model.left_ @ cores @ model.right_.T
    distances = np.linalg.norm(rest, axis=(1, 2))
    assert_allclose(model.orthogonal_distances(X), distances, rtol=1e-9)
    assert model.image_shape_ == SHAPE
    assert model.n_components_ == 6


@pytest.mark.parametrize("method", METHODS)
def test_columns_of_the_sides_are_ordered_and_their_largest_entries_positive(method, rng):
    X = planted_images(rng, n_outliers=10, noise=0.5)[0]
    model = method(RANKS, image_shape=SHAPE).fit(X)
    for side in (model.left_, model.right_):
        largest = np.abs(side).argmax(axis=0)
        assert np.all(side[largest, np.arange(side.shape[1])] > 0)
    largest = np.abs(model.components_).argmax(axis=1)
    assert np.all(model.components_[np.arange(6), largest] > 0)
    # Each side is ordered by the variance of its own columns, summed over the other side.
    variances = model.explained_variance_.reshape(RANKS)
    assert np.all(np.diff(variances.sum(axis=1)) < 0)
    assert np.all(np.diff(variances.sum(axis=0)) < 0)


def test_the_weighted_mean_image_is_the_centre(rng):
    X = planted_images(rng, n_outliers=10, noise=0.5)[0]
    model = R2DPCA(RANKS, image_shape=SHAPE, tol=1e-13, max_iter=1000).fit(X)
    assert_allclose(model.mean_, model.sample_weights_ @ X, atol=1e-5)
    assert_allclose(model.weights_.sum(), 1, rtol=1e-12)


def test_capping_at_infinity_is_not_capping(rng):
    X = planted_images(rng, n_outliers=10, noise=0.5)[0]
    expected = R2DPCA(RANKS, image_shape=SHAPE, init="pca").fit(X)
    model = R2DPCA(RANKS, image_shape=SHAPE, init="pca", threshold=1e300).fit(X)
    assert_array_equal(model.components_, expected.components_)
    assert_array_equal(model.weights_, expected.weights_)
    assert_array_equal(model.objective_, expected.objective_)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_capped_loss_drops_planted_outlier_images(clustered, rng):
    X, left, right, is_outlier = planted_images(rng, n_outliers=30, clustered=clustered)
    model = R2DPCA(RANKS, image_shape=SHAPE, threshold="q0.75").fit(X)
    assert_array_equal(model.weights_[is_outlier], 0)
    assert side_error(model, left, right) < 0.02
    assert model.n_active_ == np.count_nonzero(model.weights_)
    assert 75 <= model.n_active_ <= 120
    far = model.orthogonal_distances(X) > model.loss_.threshold
    assert_array_equal(model.weights_ == 0, far)


def test_a_threshold_below_every_residual_is_refused_with_the_smallest_one(rng):
    X = planted_images(rng, noise=0.5)[0]
    with pytest.raises(ValueError, match=r"smallest residual is \d\.\d+\. Raise the threshold"):
        R2DPCA(RANKS, image_shape=SHAPE, threshold=1e-3).fit(X)


ROBUST = {
    "adaptive": ReweightedBilinear(RANKS, image_shape=SHAPE, loss="squared", weighting="adaptive"),
    "adaptive l21": ReweightedBilinear(RANKS, image_shape=SHAPE, weighting="adaptive"),
    "sigma": ReweightedBilinear(RANKS, image_shape=SHAPE, loss="sigma", init="robust"),
    "sigma, co-robust": ReweightedBilinear(
        RANKS, image_shape=SHAPE, loss="sigma", weighting=CoRobust(0.5), init="robust"
    ),
    "R2DPCA": R2DPCA(RANKS, image_shape=SHAPE),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", ROBUST)
def test_the_planted_sides_are_found_among_outlier_images(method, seed):
    X, left, right, is_outlier = planted_images(
        np.random.default_rng(seed), n_outliers=30, far=120.0
    )
    plain = GLRAM(RANKS, image_shape=SHAPE, center="mean", max_iter=1000).fit(X)
    assert side_error(plain, left, right) > 0.5
    model = clone(ROBUST[method]).fit(X)
    assert side_error(model, left, right) < 0.02
    weights = model.sample_weights_
    assert weights[is_outlier].max() < 0.1 * np.median(weights[~is_outlier])
    assert np.all(model.predict(X)[is_outlier] == -1)


@pytest.mark.parametrize("seed", range(10))
def test_adaptive_weights_survive_a_cloud_of_outlier_images(seed):
    X, left, right, is_outlier = planted_images(
        np.random.default_rng(seed), n_outliers=30, clustered=True
    )
    model = ReweightedBilinear(
        RANKS, image_shape=SHAPE, loss="squared", weighting="adaptive", max_iter=500
    ).fit(X)
    assert side_error(model, left, right) < 0.02
    assert_array_equal(model.weights_[is_outlier], 0)


SETTLED = {
    "GLRAM": GLRAM(RANKS, image_shape=SHAPE, center="mean", tol=1e-13, max_iter=1000),
    "R2DPCA": R2DPCA(RANKS, image_shape=SHAPE, tol=1e-13, max_iter=1000),
    "capped": R2DPCA(RANKS, image_shape=SHAPE, threshold=20.0, tol=1e-13, max_iter=1000),
    "adaptive": ReweightedBilinear(
        RANKS, image_shape=SHAPE, weighting="adaptive", tol=1e-13, max_iter=1000
    ),
    "sigma": ReweightedBilinear(RANKS, image_shape=SHAPE, loss="sigma", tol=1e-13, max_iter=1000),
}


@pytest.mark.parametrize("method", SETTLED)
def test_turning_the_images_on_both_sides_turns_the_sides(method, rng):
    X = planted_images(rng, n_outliers=10, noise=0.5)[0]
    R1, R2 = random_rotation(rng, 12), random_rotation(rng, 9)
    turned = (R1 @ X.reshape(-1, *SHAPE) @ R2).reshape(len(X), -1)
    expected, model = clone(SETTLED[method]).fit(X), clone(SETTLED[method]).fit(turned)
    assert model.objective_[-1] == pytest.approx(expected.objective_[-1], rel=1e-9)
    assert side_error(model, R1 @ expected.left_, R2.T @ expected.right_) < 1e-5
    assert_allclose(model.mean_.reshape(SHAPE), R1 @ expected.mean_.reshape(SHAPE) @ R2, atol=1e-4)
    assert_allclose(model.weights_, expected.weights_, atol=1e-5 / len(X))


@pytest.mark.parametrize("method", SETTLED)
def test_shifting_scaling_and_shuffling_do_what_they_should(method, rng):
    X = planted_images(rng, n_outliers=10, noise=0.5)[0]
    shift, order = 10 * rng.normal(size=108), rng.permutation(150)
    model = clone(SETTLED[method])
    if method == "capped":
        model.set_params(threshold=100.0)  # a norm, so it scales with the images
    expected, model = clone(SETTLED[method]).fit(X), model.fit((5 * X + shift)[order])
    assert side_error(model, expected.left_, expected.right_) < 1e-5
    assert_allclose(model.mean_, 5 * expected.mean_ + shift, atol=1e-3)
    assert_allclose(model.weights_, expected.weights_[order], atol=1e-5 / len(X))


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_stays_single_precision(method, rng):
    X = planted_images(rng, n_outliers=10, noise=0.5)[0].astype(np.float32)
    model = method(RANKS, image_shape=SHAPE).fit(X)
    for name in ("mean_", "components_", "left_", "right_", "explained_variance_"):
        assert getattr(model, name).dtype == np.float32, name
    codes = model.transform(X)
    assert codes.dtype == np.float32
    assert model.inverse_transform(codes).dtype == np.float32


@pytest.mark.parametrize("method", METHODS)
def test_layout_and_container_of_the_images_do_not_matter(method, rng):
    pd = pytest.importorskip("pandas")
    X = planted_images(rng, n_outliers=10, noise=0.5)[0]
    untouched = X.copy()
    expected = method(RANKS, image_shape=SHAPE).fit(X)
    assert_array_equal(X, untouched)
    X.flags.writeable = False
    for other in (X, np.asfortranarray(X), X.tolist(), pd.DataFrame(X).rename(columns=str)):
        model = method(list(RANKS), image_shape=list(SHAPE)).fit(other)
        assert_allclose(model.components_, expected.components_, atol=1e-7)
        assert_allclose(model.transform(other), expected.transform(X), atol=1e-5)
    copy = pickle.loads(pickle.dumps(expected))
    assert_array_equal(copy.transform(X), expected.transform(X))


@pytest.mark.parametrize("method", METHODS)
def test_sparse_images_are_refused_with_a_way_out(method, rng):
    X = sparse.csr_matrix(planted_images(rng)[0])
    wanted = rf"{method.__name__} works on dense arrays, but X is sparse: pass X.toarray\(\)"
    with pytest.raises(TypeError, match=wanted):
        method(RANKS, image_shape=SHAPE).fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_a_stack_of_images_is_refused_with_the_call_that_works(method, rng):
    A = planted_images(rng)[0].reshape(-1, *SHAPE)
    wanted = (
        rf"X has shape \(150, 12, 9\), but {method.__name__} takes one sample per row: "
        r"pass X.reshape\(150, -1\), and image_shape=\(12, 9\)"
    )
    with pytest.raises(ValueError, match=wanted):
        method(RANKS).fit(A)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("n_components", "image_shape", "message"),
    [
        (2, (12, 10), r"image_shape=\(12, 10\) needs 120 features, but X has 108"),
        (2, (12, 9, 1), r"image_shape=\(12, 9, 1\) must be two whole numbers"),
        (2, (12.0, 9.0), r"image_shape=\(12.0, 9.0\) must be two whole numbers"),
        (2, (-12, -9), r"image_shape=\(-12, -9\) must be two whole numbers of at least 1"),
        (13, SHAPE, r"n_components=13 .* shape \(12, 9\) can give: choose at most \(12, 9\)"),
        ((3, 10), SHAPE, r"n_components=\(3, 10\) .* choose at most \(12, 9\)"),
        ((0, 3), SHAPE, r"n_components=\(0, 3\) must be two whole numbers of at least 1"),
        ((3,), SHAPE, r"n_components=\(3,\) must be two whole numbers"),
        (0.5, SHAPE, "n_components"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(method, n_components, image_shape, message, rng):
    X = planted_images(rng)[0]
    with pytest.raises(ValueError, match=message):
        method(n_components, image_shape=image_shape).fit(X)


@pytest.mark.parametrize(
    "model",
    [
        GLRAM(RANKS, image_shape=SHAPE, center="mean"),
        R2DPCA(RANKS, image_shape=SHAPE),
        R2DPCA(RANKS, image_shape=SHAPE, threshold="q0.8"),
        *(
            ReweightedBilinear(RANKS, image_shape=SHAPE, loss=loss, weighting=weighting)
            for loss in ("squared", "huber", "cauchy", "sigma")
            for weighting in ("uniform", "adaptive", "corobust")
        ),
    ],
    ids=lambda model: (
        f"{type(model).__name__}-{getattr(model, 'loss', '')}-"
        f"{getattr(model, 'weighting', getattr(model, 'threshold', ''))}"
    ),
)
def test_equal_images_give_the_first_axes_and_equal_weights(model):
    X = np.tile(np.linspace(0.1, 0.7, 108), (20, 1))
    model = clone(model).fit(X)
    assert_array_equal(model.left_, np.eye(12, 3))
    assert_array_equal(model.right_, np.eye(9, 2))
    assert_allclose(model.mean_, X[0], rtol=1e-14)
    assert abs(model.objective_[-1]) < 1e-100
    assert_allclose(model.weights_, 1 / 20, rtol=1e-12)
    assert np.isfinite(model.explained_variance_).all()
    assert_array_equal(model.predict(X), 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "model",
    [
        R2DPCA((1, 1), image_shape=(4, 5), threshold="q0.7"),
        ReweightedBilinear((1, 1), image_shape=(4, 5), loss=CappedLoss("q0.7"), center="zero"),
    ],
    ids=["centred", "uncentred"],
)
def test_rounding_does_not_put_all_of_two_equal_residuals_beyond_their_quantile(model, dtype):
    for seed in range(8):
        image = np.random.default_rng(seed).normal(size=20)
        model = clone(model).fit(np.outer([1, -1], image).astype(dtype))
        assert_allclose(model.weights_, 0.5, rtol=1e-5)


@pytest.mark.parametrize("center", ["weighted", "mean"])
def test_equal_images_in_single_precision_have_equal_weights(center):
    X = np.tile(np.linspace(0.1, 0.7, 108, dtype=np.float32), (5, 1))
    model = ReweightedBilinear(RANKS, image_shape=SHAPE, center=center).fit(X)
    assert_allclose(model.weights_, 1 / 5, rtol=1e-12)
    assert_allclose(model.mean_, X[0], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_rows_and_columns_of_constant_pixels_have_exact_zeros(method, rng):
    X, _, _, _ = planted_images(rng, n_outliers=10, noise=0.5)
    A = X.reshape(-1, *SHAPE)
    constant = 0.0 if method is GLRAM else 0.1  # GLRAM does not centre
    A[:, [0, 5]], A[:, :, [0, 8]] = constant, constant
    model = method(RANKS, image_shape=SHAPE).fit(X)
    assert_array_equal(model.left_[[0, 5]], 0)
    assert_array_equal(model.right_[[0, 8]], 0)


@pytest.mark.parametrize("method", METHODS)
def test_images_of_lower_rank_complete_the_sides(method, rng):
    X = planted_images(rng, noise=0.0)[0]
    X -= X.mean(axis=0)
    model = method((5, 4), image_shape=SHAPE).fit(X)
    assert_allclose(model.components_ @ model.components_.T, np.eye(20), atol=1e-10)
    assert_allclose(model.reconstruct(X), X, atol=1e-8)
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize("method", METHODS)
def test_two_images_are_enough(method, rng):
    X = rng.normal(size=(2, 108))
    model = method((2, 2), image_shape=SHAPE, max_iter=2000).fit(X)
    assert np.isfinite(model.components_).all()
    assert model.weights_.sum() == pytest.approx(1, rel=1e-12)
    assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-10)
