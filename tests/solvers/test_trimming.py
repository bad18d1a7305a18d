"""Counting angles: the blocks, bounds and precisions must not show in the result."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine import rows
from robustpca.engine.rows import ArrayRows
from robustpca.engine.spherical import RowDirections, explore, near_rows
from robustpca.metrics import subspace_distance
from robustpca.solvers import angular
from robustpca.solvers.angular import Counter, exact_axes, trim, view_axes


def directions(X, center):
    """Unit vectors from the centre, and which rows have one."""
    Z = np.asarray(X, dtype=np.float64) - center
    lengths = np.linalg.norm(Z, axis=1)
    away = lengths[lengths > 0]
    usable = lengths > 1e-10 * np.median(away) if len(away) else lengths > 0
    return np.where(usable[:, None], Z, 0) / np.where(usable, lengths, 1)[:, None], usable


def direct_count(X, center, max_angle):
    """Anchor and kept rows from the whole matrix of cosines, as the method is defined."""
    U, usable = directions(X, center)
    cosines = np.abs(U @ U.T)
    far = (cosines < np.cos(max_angle) - angular.NEAR_TIE) & usable
    counts = np.where(usable, far.sum(axis=1), len(X))
    sums = np.where(far | ~usable, 0, cosines).sum(axis=1)
    sums[counts > counts.min()] = -np.inf
    anchor = int(np.argmax(sums >= sums.max() - angular.NEAR_TIE * len(X)))
    return anchor, ~far[anchor]


def explored(X, center=None, n_expansions=2):
    near = near_rows(ArrayRows(X))
    found = RowDirections(near if center is None else near.centred(np.asarray(center)))
    found.initialise(7, np.random.default_rng(0))
    explore(found, 7, n_expansions)
    return found


def check_trimming(X, max_angle, center=None):
    view = explored(X, center).view
    found = trim(view, max_angle)
    anchor, kept = direct_count(X, view.point, max_angle)
    assert found.anchor == anchor
    assert_array_equal(found.support, kept)
    assert found.support[found.anchor]
    return found


@st.composite
def awkward_directions(draw):
    """Rows with ties of all kinds: copies, mirror images, multiples, a grid, rows at the centre."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 60)), draw(st.one_of(st.integers(1, 8), st.integers(66, 90)))
    kind = draw(st.sampled_from(["normal", "grid", "axes", "low rank"]))
    X = rng.normal(size=(n, d))
    if kind == "grid":
        X = rng.integers(-1, 2, size=(n, d)).astype(float)
    if kind == "axes":
        X = np.eye(d)[rng.integers(d, size=n)] * rng.choice([-2.0, 1.0], size=(n, 1))
    if kind == "low rank":
        X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.05 * X
    copies = draw(st.integers(0, n // 2))
    factors = rng.choice([-1.0, 1.0, -0.5, 3.0], size=(copies, 1))
    X[n - copies :] = factors * X[rng.integers(n, size=copies)]
    X[: draw(st.integers(0, n // 4))] = 0
    if draw(st.booleans()):
        X = np.vstack([X, -X])
    return X.astype(draw(st.sampled_from([np.float64, np.float32])))


ANGLES = [0.0, 0.2, np.pi / 6, np.pi / 4, np.pi / 3, 1.3, 1.57]


@settings(max_examples=300)
@given(X=awkward_directions(), max_angle=st.sampled_from(ANGLES))
def test_the_anchor_and_the_kept_rows_are_those_of_the_direct_count(X, max_angle):
    if not X.any():
        return
    check_trimming(X, max_angle, center=np.zeros(X.shape[1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_angle", [0.4, np.pi / 3, 1.3])
@pytest.mark.parametrize("shape", [(300, 20), (200, 90), (150, 1500)])
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_planted_data_in_small_blocks_and_groups(dtype, max_angle, shape, noise, rng, monkeypatch):
    n, d = shape
    X = planted_subspace(rng, n, d, 3, n // 5, noise=noise)[0].astype(dtype)
    monkeypatch.setattr(rows, "BLOCK_BYTES", X.nbytes // 9)
    monkeypatch.setattr(angular, "GROUP_BYTES", 0)
    monkeypatch.setattr(angular, "FIRST_GROUP", 5)
    monkeypatch.setattr(angular, "TALL", 10)
    found = check_trimming(X, max_angle)
    if noise == 0.02 and max_angle < 1:
        # So close to a subspace, bounds from the view leave hardly anything to count.
        assert found.n_counted < n / 2


def test_all_pairs_are_counted_when_bounds_tell_nothing(rng, monkeypatch):
    X = rng.normal(size=(160, 300))
    monkeypatch.setattr(rows, "BLOCK_BYTES", X.nbytes // 7)
    monkeypatch.setattr(angular, "GROUP_BYTES", 0)
    monkeypatch.setattr(angular, "FIRST_GROUP", 3)
    monkeypatch.setattr(angular, "TALL", 20)
    reports = []
    view = explored(X).view
    # At this angle some pairs of random directions are near and most are not.
    max_angle = 1.5
    found = trim(view, max_angle, report=reports.append)
    anchor, kept = direct_count(X, view.point, max_angle)
    assert found.anchor == anchor
    assert_array_equal(found.support, kept)
    assert found.n_counted == 160
    assert reports == sorted(reports)
    assert reports[-1] == 160
    assert len(reports) > 3


def test_bounds_and_counts_hold_the_exact_numbers(rng):
    for dtype in (np.float32, np.float64):
        X = (planted_subspace(rng, 200, 120, 3, 20, noise=0.03)[0] + 2).astype(dtype)
        view = explored(X).view
        U, _ = directions(X, view.point)
        wanted = (np.abs(U @ U.T) < 0.5).sum(axis=1)
        counter = Counter(view, 0.5)
        low, high, guess = counter.bounds()
        assert np.all(low <= wanted)
        assert np.all(wanted <= high)
        assert np.all((low <= guess) & (guess <= high))
        assert np.mean(high - low) < 30
        for counts in (counter.count(np.arange(200)), counter.count_all(lambda _: None)):
            assert np.all(counts[0] <= wanted)
            assert np.all(wanted <= counts[1])
            assert np.mean(counts[1] - counts[0]) < 1


def test_rows_far_from_the_origin_are_counted_right(rng):
    X = planted_subspace(rng, 150, 80, 3, 15, noise=0.2)[0]
    check_trimming(X + 1e7, np.pi / 3)
    check_trimming((X + 1e3).astype(np.float32), np.pi / 3)


def test_only_the_given_anchors_are_considered(rng):
    X = planted_subspace(rng, 150, 30, 3, 15, noise=0.2)[0]
    view = explored(X).view
    U, _ = directions(X, view.point)
    counts = (np.abs(U @ U.T) < 0.5).sum(axis=1)
    anchors = np.argsort(counts)[40:60]
    found = trim(view, np.pi / 3, anchors=anchors)
    assert found.anchor in anchors
    assert np.count_nonzero(~found.support) == counts[anchors].min()


def test_rows_at_the_centre_are_neither_counted_nor_trimmed(rng):
    X = rng.normal(size=(30, 4))
    X[[3, 17]] = 0
    found = trim(explored(X, np.zeros(4)).view, 0.3)
    assert found.support[[3, 17]].all()
    rest = np.delete(X, [3, 17], axis=0)
    assert_array_equal(
        np.delete(found.support, [3, 17]), trim(explored(rest, np.zeros(4)).view, 0.3).support
    )
    nothing = trim(explored(np.zeros((5, 4)), np.zeros(4)).view, 0.3)
    assert nothing.anchor == -1
    assert nothing.support.all()


SHAPES = [(90, 12), (12, 90), (150, 150), (70, 500)]


@pytest.mark.parametrize("shape", SHAPES)
def test_both_sides_and_the_view_give_the_same_axes(shape, rng):
    X = planted_subspace(rng, *shape, 3, shape[0] // 6, noise=0.2)[0]
    center = X.mean(axis=0)
    U, _ = directions(X, center)
    _, values, components = np.linalg.svd(U, full_matrices=False)
    near = near_rows(ArrayRows(X)).centred(center)
    weights = 1 / np.sum((X - center) ** 2, axis=1)
    found = explored(X, center, 12)
    for axes in (exact_axes(near, weights, 3), view_axes(found, 3)):
        assert subspace_distance(axes.components, components[:3]) < 1e-7
        assert_allclose(axes.values, values[:3] ** 2)
        Z = X - center
        rest = Z - Z @ axes.components.T @ axes.components
        assert_allclose(axes.residuals, np.sum(rest**2, axis=1), atol=1e-10)
        assert_allclose(axes.codes, Z @ axes.components.T, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_missing_rank_is_made_up_for(shape, rng):
    X = np.outer(rng.normal(size=shape[0]), rng.normal(size=shape[1]))
    near = near_rows(ArrayRows(X)).centred(np.zeros(shape[1]))
    weights = 1 / np.sum(X**2, axis=1)
    found = explored(X, np.zeros(shape[1]))
    for axes in (exact_axes(near, weights, 4), view_axes(found, 4)):
        assert_allclose(axes.components @ axes.components.T, np.eye(4), atol=1e-12)
        assert_allclose(axes.values, [shape[0], 0, 0, 0], atol=1e-6)
        assert_allclose(axes.residuals, 0, atol=1e-12)
