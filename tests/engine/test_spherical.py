"""Directions of the rows in a view that is expanded, and the geometric median found in it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse

from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.engine.spherical import RowDirections, directed, explore, near_rows
from robustpca.metrics import subspace_distance
from robustpca.parts.centers import geometric_median, remaining_force

DTYPES = [np.float32, np.float64]


def opened(X, width=7, seed=0):
    directions = RowDirections(near_rows(ArrayRows(X)))
    directions.initialise(width, np.random.default_rng(seed))
    return directions


def total_distance(X, point):
    return np.linalg.norm(X - point, axis=1).sum()


def certified(X, point, tol):
    """Whether the rows pull the point no more than those that it stands on hold it."""
    force, held = remaining_force(ArrayRows(X), point)
    return force <= max(held, tol * len(X))


def test_the_point_is_not_moved_when_the_basis_is_restricted(rng):
    X = planted_subspace(rng, 150, 200, 4, 15, noise=0.3)[0]
    directions = RowDirections(near_rows(ArrayRows(X)), max_width=20)
    directions.initialise(8, rng)
    view = directions.view
    view.move(np.ones(8))
    point = view.point
    explore(directions, 8, 5)
    assert view.basis.shape[1] <= 20
    assert_allclose(view.point, point, atol=1e-10)
    assert_allclose(directions.lengths(), np.linalg.norm(X - point, axis=1), rtol=1e-10)


def test_what_lies_in_the_span_expands_it_by_nothing(rng):
    X = rng.normal(size=(30, 100))
    directions = opened(X)
    basis = directions.view.basis
    assert not directions.expand(basis @ rng.normal(size=(7, 3)))
    assert not directions.expand(np.zeros((100, 2)))
    assert directions.expand(rng.normal(size=(100, 2)))
    assert directions.view.basis.shape[1] == 9


def test_a_basis_has_no_more_directions_than_there_are_rows(rng):
    X = rng.normal(size=(12, 100))
    directions = opened(X, 10)
    explore(directions, 10, 6)
    assert directions.view.basis.shape[1] <= 12
    assert_allclose(directions.view.outside, 0, atol=1e-20)


def test_exploring_ends_when_the_axes_have_converged(rng):
    X = planted_subspace(rng, 300, 400, 3, noise=0.05)[0]
    directions = opened(X, 16)
    view, expansions, expand = directions.view, [], directions.expand
    directions.expand = lambda images: expansions.append(1) or expand(images)
    explore(directions, 16, 50, n_converged=3)
    assert len(expansions) < 20
    U = X - view.point
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    wanted = np.linalg.svd(U, full_matrices=False)[2][:3]
    found = (view.basis @ directions.axes()[1][:, :3]).T
    assert subspace_distance(found, wanted) < 1e-9


def test_one_far_row_leaves_the_others_their_directions():
    mask, inverse = directed(np.array([0.0, 1e-14, 1.0, 2.0, 1e30]), 1e-10)
    assert_array_equal(mask, [False, False, True, True, True])
    assert_allclose(inverse, [0, 0, 1, 0.5, 1e-30])
    assert not directed(np.zeros(3), 1e-10)[0].any()


SHAPES = {
    "few features": (80, 6),
    "many samples": (900, 70),
    "wide": (60, 700),
    "square": (300, 300),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_of_distances_never_rises(shape, dtype, rng):
    n, d = SHAPES[shape]
    X = planted_subspace(rng, n, d, min(4, d), n // 5, noise=0.5)[0].astype(dtype)
    directions, sums = opened(X), []
    tol = 1e-10 if dtype == np.float64 else 1e-6
    force, view = explore(directions, 7, 2, tol=tol, history=sums), directions.view
    assert len(sums) > 2
    rounding = 1e-14 if dtype == np.float64 else 1e-7
    assert np.all(np.diff(sums) <= rounding * sums[0])
    assert sums[-1] == pytest.approx(total_distance(X.astype(float), view.point), rel=1e-5)
    exact = X.astype(np.float64)
    left = remaining_force(ArrayRows(exact), view.point)[0] / n
    assert left == pytest.approx(force, abs=1e-12 if dtype == np.float64 else 2e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_geometric_median_is_certified(shape, rng):
    n, d = SHAPES[shape]
    X = planted_subspace(rng, n, d, min(4, d), n // 5, noise=0.5)[0]
    point = geometric_median(ArrayRows(X))
    assert certified(X, point, 1e-10)
    best = total_distance(X, point)
    for step in (1e-3, 1e-1):
        assert total_distance(X, point + step * rng.normal(size=d)) > best


@pytest.mark.parametrize("shape", SHAPES)
def test_the_geometric_median_in_single_precision(shape, rng):
    n, d = SHAPES[shape]
    X = planted_subspace(rng, n, d, min(4, d), n // 5, noise=0.5)[0]
    single, double = (geometric_median(ArrayRows(X.astype(t))) for t in DTYPES)
    assert np.linalg.norm(single - double) < 1e-4 * np.median(np.linalg.norm(X - double, axis=1))


def test_the_geometric_median_minimises_what_a_general_solver_does(rng):
    X = rng.normal(size=(40, 4)) * [5, 1, 1, 0.1]
    found = geometric_median(ArrayRows(X))
    wanted = optimize.minimize(lambda m: total_distance(X, m), X.mean(axis=0), tol=1e-14)
    assert total_distance(X, found) <= wanted.fun * (1 + 1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_geometric_median_turns_moves_and_grows_with_the_data(shape, rng):
    n, d = SHAPES[shape]
    X = planted_subspace(rng, n, d, min(4, d), n // 5, noise=0.5)[0]
    point = geometric_median(ArrayRows(X))
    rotation, shift = np.linalg.qr(rng.normal(size=(d, d)))[0], 100 * rng.normal(size=d)
    moved = geometric_median(ArrayRows(1e3 * (X @ rotation) + shift))
    assert_allclose(moved, 1e3 * (point @ rotation) + shift, atol=1e-5)


@pytest.mark.parametrize("n_features", [3, 200])
def test_up_to_half_of_the_samples_cannot_carry_the_geometric_median_away(n_features, rng):
    X = rng.normal(size=(101, n_features))
    for far in (1e3, 1e6, 1e9):
        X[:50] = far * (1 + 0.1 * rng.normal(size=(50, n_features)))
        point = geometric_median(ArrayRows(X))
        assert np.linalg.norm(point) < 20 * np.sqrt(n_features)
        assert certified(X, point, 1e-9)


@pytest.mark.parametrize("n_features", [3, 200])
@pytest.mark.parametrize("copies", [1, 3])
def test_the_geometric_median_stands_on_a_sample_that_holds_it(n_features, copies, rng):
    arms = rng.normal(size=(20, n_features))
    middle, far = np.zeros((copies, n_features)), np.eye(2, n_features)
    far[1] = [-0.8, 0.6] + [0] * (n_features - 2)
    X = np.vstack([arms, -arms, middle, 9 * far])[rng.permutation(42 + copies)] + 2
    directions = opened(X)
    assert explore(directions, 7, 2, tol=1e-10) == 0
    view = directions.view
    force, held = remaining_force(ArrayRows(X), view.point)
    assert held == copies
    # The arms cancel, and the far samples pull almost against each other.
    assert force == pytest.approx(np.hypot(0.2, 0.6), abs=1e-6)
    assert_allclose(view.point, 2, atol=1e-9)


@pytest.mark.parametrize("n_features", [1, 5, 300])
@pytest.mark.parametrize("n_samples", [51, 50, 2, 3])
def test_the_geometric_median_of_a_line_is_its_median(n_features, n_samples, rng):
    along, direction = rng.normal(size=n_samples), rng.normal(size=n_features)
    X = np.outer(along, direction) + 3
    found = (geometric_median(ArrayRows(X)) - 3) @ direction / (direction @ direction)
    # With an even number any point between the two in the middle will do.
    low, high = np.sort(along)[[(n_samples - 1) // 2, n_samples // 2]]
    assert low - 1e-9 <= found <= high + 1e-9


@pytest.mark.parametrize("n_features", [2, 100])
def test_the_geometric_median_of_equal_samples_and_of_a_majority(n_features, rng):
    sample = rng.normal(size=n_features)
    assert_array_equal(geometric_median(ArrayRows(np.tile(sample, (9, 1)))), sample)
    X = np.vstack([rng.normal(size=(15, n_features)), np.tile(sample, (20, 1))])
    assert_allclose(geometric_median(ArrayRows(X)), sample, atol=1e-9)


@pytest.mark.parametrize("n_features", [20, 200])
def test_the_geometric_median_of_sparse_rows(n_features):
    X = sparse.random(120, n_features, 0.1, format="csr", random_state=0)
    found = geometric_median(SparseRows(X))
    assert certified(X.toarray(), found, 1e-7)


def test_a_force_is_not_missed(rng):
    X = rng.normal(size=(100, 5))
    point = geometric_median(ArrayRows(X))
    elsewhere = point + np.eye(5)[0]
    force, held = remaining_force(ArrayRows(X), elsewhere)
    Z = X - elsewhere
    wanted = np.linalg.norm((Z / np.linalg.norm(Z, axis=1, keepdims=True)).sum(axis=0))
    assert force == pytest.approx(wanted)
    assert held == 0
    assert force > 10
