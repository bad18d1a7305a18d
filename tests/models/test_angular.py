"""Angular embedding: planted truths, the paper's claims, invariances, odd input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from robustpca import AngularEmbedding
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine import rows
from robustpca.engine.dask_rows import as_dask
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance
from robustpca.parts.centers import geometric_median, remaining_force
from robustpca.solvers import angular

SOLVERS = ["exact", "randomized"]
SHAPES = {"few features": (200, 8), "tall": (400, 90), "wide": (60, 500), "square": (150, 150)}


def degrees(first, second):
    return np.degrees(np.arcsin(min(1.0, subspace_distance(first, second))))


def unit_rows(X, center):
    Z = np.asarray(X, dtype=np.float64) - center
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def noisy_planted(shape, seed=1):
    n, d = SHAPES[shape]
    return planted_subspace(np.random.default_rng(seed), n, d, 3, n // 10, noise=0.3)[0]


@pytest.mark.filterwarnings("ignore:A group of outliers")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_median_saves_what_the_mean_loses(solver, seed):
    # The far cluster pulls the mean out of the data, and from there all rows have one direction.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 80)) * 0.1
    X[:, 0] += 3 * rng.normal(size=300)
    X[:30] = 1e3 * np.eye(80)[1] + 0.1 * rng.normal(size=(30, 80))
    axis = np.eye(80)[:1]
    model = AngularEmbedding(1, solver=solver).fit(X)
    assert degrees(model.components_, axis) < 3
    assert degrees(AngularEmbedding(1, center="mean", solver=solver).fit(X).components_, axis) > 80
    assert model.center_force_ < 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_lengths_and_signs_of_samples_do_not_matter(solver, shape, rng):
    X = noisy_planted(shape)
    factors = rng.choice([-1, 1], size=len(X)) * 10 ** rng.uniform(-3, 3, size=len(X))
    first = AngularEmbedding(3, center="zero", solver=solver, power_iterations=20).fit(X)
    second = AngularEmbedding(3, center="zero", solver=solver, power_iterations=20).fit(
        factors[:, None] * X
    )
    assert_allclose(second.components_, first.components_, atol=1e-7)
    assert_allclose(second.cosines_, first.cosines_, rtol=1e-9)


@pytest.mark.parametrize("center", ["geometric_median", "mean", "zero"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_components_are_the_leading_axes_of_the_directions(center, solver, shape):
    X = noisy_planted(shape)
    model = AngularEmbedding(3, center=center, solver=solver, power_iterations=20).fit(X)
    centers = {
        "geometric_median": geometric_median(ArrayRows(X)),
        "mean": X.mean(axis=0),
        "zero": np.zeros(X.shape[1]),
    }
    assert_allclose(model.mean_, centers[center], atol=1e-7)
    _, values, components = np.linalg.svd(unit_rows(X, model.mean_), full_matrices=False)
    assert subspace_distance(model.components_, components[:3]) < 1e-7
    assert_allclose(model.cosines_, values[:3] ** 2, rtol=1e-9)
    assert model.objective_ == pytest.approx(np.sum(values[:3] ** 2))
    assert model.objective_[-1] <= len(X)
    assert_array_equal(model.support_, True)
    assert (model.n_trimmed_, model.anchor_) == (0, None)
    # Scores are of the rows as they are, not of their directions.
    assert_allclose(model.transform(X), (X - model.mean_) @ model.components_.T, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision_is_nearly_as_good(solver):
    X = noisy_planted("wide")
    single = AngularEmbedding(3, solver=solver, power_iterations=20).fit(X.astype(np.float32))
    double = AngularEmbedding(3, solver=solver, power_iterations=20).fit(X)
    assert single.components_.dtype == single.mean_.dtype == np.float32
    assert subspace_distance(single.components_, double.components_) < 1e-5
    assert single.center_force_ < 2e-6


def test_a_few_power_iterations_are_near_and_more_are_nearer():
    X = noisy_planted("square")
    exact = AngularEmbedding(3, solver="exact").fit(X)
    errors = [
        subspace_distance(
            AngularEmbedding(3, solver="randomized", power_iterations=steps).fit(X).components_,
            exact.components_,
        )
        for steps in (0, 2, 8)
    ]
    assert errors[0] > 1e-3 > errors[1] > 1e-7 > errors[2]


def test_auto_is_exact_for_small_data_and_for_many_components(rng, monkeypatch):
    X = noisy_planted("square")
    small = AngularEmbedding(3).fit(X)
    assert_array_equal(small.components_, AngularEmbedding(3, solver="exact").fit(X).components_)
    monkeypatch.setattr("robustpca.models.angular.SMALL", 100)
    large = AngularEmbedding(3).fit(X)
    drawn = AngularEmbedding(3, solver="randomized").fit(X)
    assert_array_equal(large.components_, drawn.components_)
    assert not np.array_equal(large.components_, small.components_)
    many = AngularEmbedding().fit(X)
    assert many.n_components_ == 150


def test_random_state_draws_the_subspace(rng):
    X = noisy_planted("square")
    fits = [
        AngularEmbedding(3, solver="randomized", power_iterations=1, random_state=seed).fit(X)
        for seed in (0, 0, 1)
    ]
    assert_array_equal(fits[0].components_, fits[1].components_)
    assert not np.array_equal(fits[0].components_, fits[2].components_)


def direct_count(X, center, max_angle):
    cosines = np.abs(unit_rows(X, center) @ unit_rows(X, center).T)
    far = cosines < np.cos(max_angle) - 1e-9
    counts = far.sum(axis=1)
    sums = np.where(far, 0, cosines).sum(axis=1)
    sums[counts > counts.min()] = -np.inf
    anchor = int(np.argmax(sums >= sums.max() - 1e-9 * len(X)))
    return anchor, ~far[anchor]


@pytest.mark.parametrize("max_angle", [0.8, np.pi / 3, 1.4])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_trimmed_rows_are_those_of_the_direct_count(max_angle, solver, shape):
    X = noisy_planted(shape)
    model = AngularEmbedding(
        3, max_angle=max_angle, solver=solver, power_iterations=20, center="mean"
    ).fit(X)
    anchor, kept = direct_count(X, model.mean_, max_angle)
    assert model.anchor_ == anchor
    assert_array_equal(model.support_, kept)
    assert model.n_trimmed_ == np.count_nonzero(~kept)
    assert model.support_[model.anchor_]
    # What is fitted to the rest is angular embedding at the same centre.
    rest = AngularEmbedding(3, center=model.mean_, solver="exact").fit(X[kept])
    assert subspace_distance(model.components_, rest.components_) < 1e-6
    assert_allclose(model.cosines_, rest.cosines_, rtol=1e-6)


@pytest.mark.parametrize("max_angle", [np.pi / 2, 2.0])
def test_no_angle_is_larger_than_a_right_one(max_angle):
    X = noisy_planted("tall")
    plain, trimmed = (AngularEmbedding(3, max_angle=angle).fit(X) for angle in (None, max_angle))
    assert_array_equal(trimmed.components_, plain.components_)
    assert trimmed.n_trimmed_ == 0


def test_trimming_stands_more_outliers_than_directions_alone(rng):
    # Two fifths of the rows lie along another line; directions alone mix the two.
    X = 0.05 * rng.normal(size=(500, 40))
    X[:, 0] += rng.normal(size=500)
    X[:200] = 0.05 * rng.normal(size=(200, 40))
    X[:200] += np.outer(rng.normal(size=200), 0.8 * np.eye(40)[0] + 0.6 * np.eye(40)[1])
    axis = np.eye(40)[:1]
    plain = AngularEmbedding(1, center="zero").fit(X)
    trimmed = AngularEmbedding(1, center="zero", max_angle=0.5).fit(X)
    assert degrees(plain.components_, axis) > 8
    assert degrees(trimmed.components_, axis) < 3
    assert (~trimmed.support_[:200]).mean() > 0.9


def test_both_ends_of_a_line_are_kept(rng):
    # Without absolute values, as Algorithm 2 is printed, one half of the clean rows goes.
    X = 0.05 * rng.normal(size=(100, 10))
    X[:, 0] += rng.choice([-1, 1], size=100) * rng.uniform(1, 2, size=100)
    X[:10] = rng.normal(size=(10, 10))
    model = AngularEmbedding(1, center="zero", max_angle=np.pi / 3).fit(X)
    assert model.support_[10:].all()
    U = unit_rows(X, 0)
    printed = np.argmin((U @ U.T < 0.5).sum(axis=1))
    assert np.count_nonzero(U[10:] @ U[printed] < 0.5) > 35


def test_drawn_anchors_are_as_good_as_promised():
    X = noisy_planted("tall")
    exact = AngularEmbedding(3, max_angle=np.pi / 3, center="mean").fit(X)
    cosines = np.abs(unit_rows(X, exact.mean_) @ unit_rows(X, exact.mean_).T)
    counts = np.sort((cosines < 0.5 - 1e-9).sum(axis=1))
    missed = 0
    for seed in range(40):
        model = AngularEmbedding(
            3, max_angle=np.pi / 3, center="mean", anchors=20, random_state=seed
        ).fit(X)
        assert model.n_trimmed_ == (cosines[model.anchor_] < 0.5 - 1e-9).sum()
        missed += model.n_trimmed_ > counts[len(X) // 10]
    # Each misses the best tenth with a probability of 0.9 ** 20 = 0.12; nine of 40 are rare.
    assert missed <= 10
    all_of_them = AngularEmbedding(3, max_angle=np.pi / 3, center="mean", anchors=1000).fit(X)
    assert_array_equal(all_of_them.support_, exact.support_)


@pytest.mark.parametrize("max_angle", [None, np.pi / 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_rotated_data_have_rotated_components(max_angle, solver, rng):
    X = noisy_planted("tall")
    rotation = np.linalg.qr(rng.normal(size=(90, 90)))[0]
    still, turned = (
        AngularEmbedding(3, max_angle=max_angle, solver=solver, power_iterations=20).fit(Z)
        for Z in (X, X @ rotation + 5)
    )
    assert subspace_distance(turned.components_, still.components_ @ rotation) < 1e-7
    assert_allclose(turned.mean_, still.mean_ @ rotation + 5, atol=1e-7)
    assert_array_equal(turned.support_, still.support_)
    assert turned.anchor_ == still.anchor_


def test_duplicating_the_data_changes_nothing():
    X = noisy_planted("tall")
    once = AngularEmbedding(3, max_angle=1.2).fit(X)
    twice = AngularEmbedding(3, max_angle=1.2).fit(np.vstack([X, X]))
    assert_allclose(twice.components_, once.components_, atol=1e-8)
    assert_array_equal(twice.support_, np.tile(once.support_, 2))
    assert twice.anchor_ == once.anchor_


@pytest.mark.parametrize("max_angle", [None, np.pi / 3])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_files_and_clusters_give_the_same_bits(max_angle, solver, dtype, tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    X = noisy_planted("wide").astype(dtype)
    monkeypatch.setattr(rows, "BLOCK_BYTES", X.nbytes // 5)
    monkeypatch.setattr(angular, "FIRST_GROUP", 5)
    stored = np.memmap(tmp_path / "X", dtype, "w+", shape=X.shape)
    stored[:] = X
    stored.flush()
    model = AngularEmbedding(3, max_angle=max_angle, solver=solver)
    here = model.fit(X)
    expected = here.components_, here.mean_, here.support_, here.center_force_
    for other in (stored, as_dask(stored), da.from_array(X, chunks=(13, -1))):
        there = model.fit(other)
        for wanted, found in zip(
            expected,
            (there.components_, there.mean_, there.support_, there.center_force_),
            strict=True,
        ):
            assert_array_equal(found, wanted)


@pytest.mark.parametrize("max_angle", [None, np.pi / 3])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_features", [30, 200])
def test_sparse_rows_give_what_dense_ones_do(max_angle, solver, n_features, rng):
    X = rng.gamma(1, size=(120, 3)) @ rng.gamma(0.3, size=(3, n_features))
    X = sparse.csr_matrix(np.where(rng.random(X.shape) < 0.4, X, 0))
    settings = {"max_angle": max_angle, "solver": solver, "power_iterations": 20}
    dense = AngularEmbedding(3, **settings).fit(X.toarray())
    found = AngularEmbedding(3, **settings).fit(X)
    assert subspace_distance(found.components_, dense.components_) < 1e-4
    assert_array_equal(found.support_, dense.support_)


def test_variances_and_cutoffs_are_those_of_the_clean_rows(rng):
    X = rng.normal(size=(4000, 12)) * [5, 3, *[0.5] * 10]
    X[:800] = 200 + rng.normal(size=(800, 12))
    model = AngularEmbedding(2).fit(X)
    # A fifth of the rows is far away, which moves medians of the others by tens of percents.
    assert 9 < model.explained_variance_[1] < 18
    assert (model.predict(X[:800]) == -1).all()
    assert (model.predict(X[800:]) == -1).mean() < 0.1
    assert 0.5 < model.explained_variance_ratio_.sum() < 1


def test_a_share_of_clean_gaussian_rows_is_flagged(rng):
    X = rng.normal(size=(4000, 12)) * [5, 3, *[0.5] * 10]
    model = AngularEmbedding(2).fit(X)
    assert 0.007 < (model.predict(X) == -1).mean() < 0.04
    assert_allclose(model.explained_variance_, [25, 9], rtol=0.1)


def test_progress_is_printed_and_an_interrupt_leaves_no_fit(capsys, monkeypatch):
    X = noisy_planted("tall")
    model = AngularEmbedding(3, max_angle=np.pi / 3, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("[AngularEmbedding] ") for line in lines)
    assert "of 400 anchors counted" in lines[0]
    assert model.converged_

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    fresh = AngularEmbedding(3, max_angle=np.pi / 3)
    monkeypatch.setattr(angular.Counter, "count", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X)
    assert not hasattr(fresh, "components_")


def test_a_centre_can_be_given():
    X = noisy_planted("few features")
    center = X[7] + 0.5
    model = AngularEmbedding(2, center=center).fit(X)
    assert_array_equal(model.mean_, center)
    assert model.center_force_ is None
    with pytest.raises(ValueError, match=r"center has shape \(3,\), but X has 8 features"):
        AngularEmbedding(2, center=[1, 2, 3]).fit(X)
    with pytest.raises(ValueError, match="center"):
        AngularEmbedding(2, center="middle").fit(X)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_angle", [None, 0.5])
@pytest.mark.parametrize("shape", [(10, 4), (5, 9), (12, 80), (90, 70)])
def test_equal_samples_give_the_first_axes(solver, max_angle, shape):
    X = np.tile(np.linspace(0.1, 0.7, shape[1]), (shape[0], 1))
    model = AngularEmbedding(2, solver=solver, max_angle=max_angle).fit(X)
    assert_array_equal(model.components_, np.eye(2, shape[1]))
    assert_allclose(model.mean_, X[0], rtol=1e-14)
    assert_array_equal(model.cosines_, 0)
    assert model.support_.all()
    assert model.center_force_ == 0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_angle", [None, 0.5])
@pytest.mark.parametrize("shape", [(10, 1), (10, 4), (12, 80), (90, 70), (2, 5), (3, 100)])
def test_rank_one_and_few_rows(solver, max_angle, shape, rng):
    direction = rng.normal(size=(1, shape[1]))
    X = rng.normal(size=(shape[0], 1)) @ direction + 4
    c = min(2, *shape)
    model = AngularEmbedding(c, solver=solver, max_angle=max_angle).fit(X)
    assert_allclose(model.components_ @ model.components_.T, np.eye(c), atol=1e-10)
    assert degrees(model.components_[:1], direction) < 1e-3
    assert model.n_trimmed_ == 0
    assert_allclose(model.reconstruct(X), X, atol=1e-8)


def test_constant_columns_stay_out(rng):
    for shape in ((80, 10), (20, 90)):
        X = rng.normal(size=shape)
        X[:, 3] = 7.0
        for solver in SOLVERS:
            model = AngularEmbedding(2, solver=solver).fit(X)
            assert_array_equal(model.components_[:, 3], 0)
            assert model.mean_[3] == pytest.approx(7, rel=1e-14)


def test_duplicates_and_rows_at_the_centre(rng):
    X = rng.normal(size=(41, 6))
    X[20:40] = -X[:20]
    X[40] = 0
    model = AngularEmbedding(2, max_angle=1.0).fit(X)
    assert_allclose(model.mean_, 0, atol=1e-10)
    assert model.support_[40]
    assert model.anchor_ < 20
    force, held = remaining_force(ArrayRows(X), model.mean_)
    assert force <= max(held, 1e-9)
