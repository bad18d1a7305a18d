"""Views that grow, the products they are made of, and the geometric median they find."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse

from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.linalg import DenseBlock
from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.engine.view import (
    FEATURES,
    View,
    WideBlock,
    adjoint,
    directed,
    explore,
    near_rows,
    square_distances,
)
from robustpca.metrics import subspace_distance
from robustpca.parts.centers import geometric_median, remaining_force

DTYPES = [np.float32, np.float64]


def opened(X, width=7, seed=0):
    view = View(near_rows(ArrayRows(X)))
    view.start(width, np.random.default_rng(seed))
    return view


def total_distance(X, point):
    return np.linalg.norm(X - point, axis=1).sum()


def certified(X, point, tol):
    """Whether the rows pull the point no more than those that it stands on hold it."""
    force, held = remaining_force(ArrayRows(X), point)
    return force <= max(held, tol * len(X))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_features", [1, 300, FEATURES + 5, 3 * FEATURES])
@pytest.mark.parametrize("n_columns", [1, 3, 16])
def test_wide_blocks_multiply_as_others_do(dtype, n_features, n_columns, rng):
    X = rng.normal(size=(37, n_features)).astype(dtype)
    center = rng.normal(size=n_features).astype(dtype).astype(float)
    wide, dense = (kind(X, center, np.dtype(dtype)) for kind in (WideBlock, DenseBlock))
    basis, A = rng.normal(size=(n_features, n_columns)), rng.normal(size=(37, n_columns))
    atol = (1e-4 if dtype == np.float32 else 1e-11) * np.sqrt(n_features)
    assert_allclose(wide.project(basis), dense.project(basis), atol=atol)
    assert_allclose(wide.adjoint(A), dense.adjoint(A), atol=atol)
    assert_allclose(wide.square_norms(), dense.square_norms(), rtol=1e-5)
    assert wide.project(basis).dtype == wide.adjoint(A).dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_in_parts_is_the_sum(dtype, rng, monkeypatch):
    X = (rng.normal(size=(40, 3 * FEATURES + 7)) + 1).astype(dtype)
    rows, A = near_rows(ArrayRows(X)), rng.normal(size=(40, 5))
    assert rows.block_kind is WideBlock
    expected = (X - rows.center).T @ A
    whole = adjoint(rows, A)
    monkeypatch.setattr("robustpca.engine.view.TERM_BYTES", 1)
    assert_array_equal(adjoint(rows, A), whole)
    assert_allclose(whole, expected, atol=1e-3 if dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_view_knows_the_distances_from_any_point_in_it(dtype, rng):
    X = (planted_subspace(rng, 90, 200, 4, 9)[0] + 3).astype(dtype)
    view = opened(X)
    explore(view, 7, 3)
    assert_allclose(view.basis.T @ view.basis, np.eye(view.basis.shape[1]), atol=1e-5)
    view.seen = view.seen.centred(rng.normal(size=view.basis.shape[1]))
    rtol = 1e-4 if dtype == np.float32 else 1e-10
    assert_allclose(view.lengths(), np.linalg.norm(X - view.point, axis=1), rtol=rtol)


def test_a_narrowed_view_knows_them_too(rng):
    X = planted_subspace(rng, 150, 200, 4, 15, noise=0.3)[0]
    view = View(near_rows(ArrayRows(X)), widest=20)
    view.start(8, rng)
    view.seen = view.seen.centred(np.ones(8))
    explore(view, 8, 5)
    assert view.basis.shape[1] <= 20
    assert_allclose(view.lengths(), np.linalg.norm(X - view.point, axis=1), rtol=1e-10)
    # The point is held, so narrowing must not have moved it.
    held = opened(X, 8).rows
    assert np.linalg.norm(view.point - held.center) > 1


def test_what_lies_in_the_view_widens_it_by_nothing(rng):
    X = rng.normal(size=(30, 100))
    view = opened(X)
    assert not view.widen(view.basis @ rng.normal(size=(7, 3)))
    assert not view.widen(np.zeros((100, 2)))
    assert view.widen(rng.normal(size=(100, 2)))
    assert view.basis.shape[1] == 9


def test_a_view_holds_no_more_directions_than_there_are_rows(rng):
    X = rng.normal(size=(12, 100))
    view = opened(X, 10)
    explore(view, 10, 6)
    assert view.basis.shape[1] <= 12
    assert_allclose(view.outside, 0, atol=1e-20)


def test_exploring_ends_when_the_axes_have_settled(rng):
    X = planted_subspace(rng, 300, 400, 3, noise=0.05)[0]
    view = opened(X, 16)
    widenings = []
    widen = view.widen
    view.widen = lambda images: widenings.append(1) or widen(images)
    explore(view, 16, 50, n_settled=3)
    assert len(widenings) < 20
    U = X - view.point
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    wanted = np.linalg.svd(U, full_matrices=False)[2][:3]
    found = (view.basis @ view.axes()[1][:, :3]).T
    assert subspace_distance(found, wanted) < 1e-9


def test_square_distances_do_not_cancel(rng):
    basis = np.linalg.qr(rng.normal(size=(50, 3)))[0]
    X = 1e4 * rng.normal(size=(20, 3)) @ basis.T
    X += 1e-6 * rng.normal(size=X.shape)
    rows, codes = ArrayRows(X), X @ basis
    expected = np.sum((X - codes @ basis.T) ** 2, axis=1)
    found = square_distances(rows, codes, np.sum(X**2, axis=1), basis)
    assert_allclose(found, expected, rtol=1e-4)


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
    view, sums = opened(X), []
    force = explore(view, 7, 2, tol=1e-10 if dtype == np.float64 else 1e-6, watch=sums)
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
    view, sums = opened(X), []
    assert explore(view, 7, 2, tol=1e-10, watch=sums) == 0
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
