"""A view knows the distances of all rows, however its basis and its point have changed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from robustpca.engine.linalg import orthonormal
from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.engine.view import View, square_distances


def assert_true_to(view, X, rtol):
    """Compare all that a view knows with the data."""
    Z, basis = X.astype(np.float64) - view.point, view.basis
    scale = np.sqrt(np.mean(Z**2) * Z.shape[1])
    lengths = np.sum(Z**2, axis=1)
    assert_allclose(view.square_lengths(), lengths, rtol=rtol, atol=rtol * scale**2)
    assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    coordinates = view.coordinates.map("dense")
    assert_allclose(coordinates, Z @ basis, atol=rtol * scale)
    assert_allclose(view.codes - view.coordinates.center, Z @ basis, atol=rtol * scale)
    outside = np.sum((Z - Z @ basis @ basis.T) ** 2, axis=1)
    assert_allclose(view.outside, outside, rtol=rtol, atol=rtol * scale**2)


KINDS = {
    "double": (lambda X: ArrayRows(X), 1e-10),
    "single": (lambda X: ArrayRows(X.astype(np.float32)), 2e-5),
    "sparse": (lambda X: SparseRows(sparse.csr_matrix(X)), 1e-10),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("far", [1.0, 1e4])
def test_norms_about_a_new_centre_follow_from_those_about_the_old_one(kind, far, rng):
    source, rtol = KINDS[kind]
    X = rng.normal(size=(80, 60)).astype(np.float32).astype(np.float64)
    basis = np.linalg.qr(rng.normal(size=(60, 12)))[0]
    view = View(source(X).centred(np.full(60, far)))
    view.expand(basis[:, :5])
    # The new centre is a row: of its norm nothing is left but rounding errors.
    view.rebase(X[3], basis)
    norms = np.sum((X - X[3]) ** 2, axis=1)
    assert_allclose(view.norms, norms, rtol=rtol, atol=rtol * (far**2 if kind == "sparse" else 1))
    if far == 1.0:
        assert_true_to(view, X, rtol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norms_first", [False, True])
def test_distances_are_exact_after_every_change(kind, norms_first, rng):
    source, rtol = KINDS[kind]
    X = (rng.normal(size=(80, 60)) + 2).astype(np.float32).astype(np.float64)
    whole = np.linalg.qr(rng.normal(size=(60, 20)))[0]
    view = View(source(X).centred(X[0]))
    if norms_first:
        assert_allclose(view.norms, np.sum((X - X[0]) ** 2, axis=1), rtol=rtol, atol=1e-10)
    view.expand(whole[:, :8])
    assert_true_to(view, X, rtol)
    view.move(rng.normal(size=8))
    view.expand(whole[:, 8:14])
    assert_true_to(view, X, rtol)
    point = view.point
    assert_allclose(view.projection(point - X[0]), point - X[0], atol=1e-5)
    axes = np.linalg.qr(rng.normal(size=(14, 5)))[0]
    span = view.basis @ axes
    view.restrict(axes)
    assert_allclose(view.basis @ (view.basis.T @ span), span, atol=1e-12)
    assert_allclose(view.point, point, rtol=1e-6)
    assert_true_to(view, X, rtol)
    view.expand(orthonormal(whole[:, 14:], against=view.basis))
    view.move(rng.normal(size=11))
    assert_true_to(view, X, rtol)


class Watched(ArrayRows):
    """Rows that tell what is sent along with passes over them."""

    def _reduced(self, reduce, function, state, along, first=0):
        self.sent += [a.shape for a in along]
        return super()._reduced(reduce, function, state, along, first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise", [1e-3, 1e-1])
def test_codes_are_not_sent_back_to_rows_that_are_close_to_the_span(dtype, noise, rng):
    # So close that differences of squares are rounding error in single precision.
    axes = np.linalg.qr(rng.normal(size=(60, 20)))[0]
    X = rng.normal(size=(300, 8)) @ axes[:, :8].T + noise * rng.normal(size=(300, 60))
    X = X.astype(dtype)
    rows = Watched(X)
    rows.sent = []
    view = View(rows)
    view.expand(axes[:, :5])
    view.expand(axes[:, 5:8])
    view.restrict(np.eye(8)[:, :7])
    view.expand(axes[:, 7:10])
    view.rebase(X[:9].mean(axis=0), axes[:, 3:])
    view.expand(axes[:, :3])
    view.restrict(np.eye(20)[:, 2:])
    view.expand(orthonormal(axes, against=view.basis)[:, :2])
    Z, basis = X.astype(np.float64) - view.rows.center, view.basis
    outside = np.sum((Z - Z @ basis @ basis.T) ** 2, axis=1)
    assert_allclose(view.outside, outside, rtol=1e-3 if dtype == np.float32 else 1e-8)
    assert set(rows.sent) == {(300,)}


def test_without_a_basis_the_coordinates_are_the_features(rng):
    X, step = rng.normal(size=(30, 4)), rng.normal(size=4)
    view = View(ArrayRows(X))
    view.move(step)
    assert_allclose(view.point, step)
    assert_allclose(view.square_lengths(), np.sum((X - step) ** 2, axis=1))
    assert not view.outside.any()
    assert view.directions(np.eye(4)).shape == (4, 4)
    assert view.projection(X.T) == 0.0


def test_square_distances_do_not_cancel(rng):
    basis = np.linalg.qr(rng.normal(size=(50, 3)))[0]
    X = 1e4 * rng.normal(size=(20, 3)) @ basis.T
    X += 1e-6 * rng.normal(size=X.shape)
    rows, codes = ArrayRows(X), X @ basis
    expected = np.sum((X - codes @ basis.T) ** 2, axis=1)
    found = square_distances(rows, codes, np.sum(X**2, axis=1), basis)
    assert_allclose(found, expected, rtol=1e-4)


def test_a_copy_in_single_precision_keeps_the_digits_of_a_centre_far_away(rng):
    X = rng.normal(size=(80, 60)) + 1e7
    basis = np.linalg.qr(rng.normal(size=(60, 12)))[0]
    view = View.in_single_precision(ArrayRows(X).centred(X[0]))
    assert view.is_single
    view.rebase(np.zeros(60), basis)
    view.move(np.full(12, 0.5))
    assert view.codes.dtype == np.float32
    assert_true_to(view, X, 2e-6)
    # Whether it is the point or the basis that is asked for, the data as they are have the same.
    precise = view.precise()
    assert not precise.is_single
    assert_allclose(precise.point, view.point, rtol=1e-15)
    assert_true_to(precise, X, 1e-8)
    view.expand(np.linalg.qr(np.hstack([basis, rng.normal(size=(60, 3))]))[0][:, 12:])
    assert_true_to(view, X, 2e-6)
    view.restrict(np.linalg.qr(rng.normal(size=(15, 9)))[0])
    assert_true_to(view, X, 2e-6)


@pytest.mark.parametrize("size", [1e-30, 1e18, 1e200, 0.0])
def test_what_single_precision_cannot_hold_is_not_copied(size, rng):
    rows = ArrayRows(size * rng.normal(size=(80, 60)))
    assert not View.in_single_precision(rows).is_single
    X = rng.normal(size=(80, 60))
    X[3, 4] = 1e40
    assert not View.in_single_precision(ArrayRows(X)).is_single
