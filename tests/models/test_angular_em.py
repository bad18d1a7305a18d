"""Angular embedding by expectation maximisation, against the eigenvectors it is to find."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse

from robustpca import AngularEmbedding, EMAngularEmbedding
from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance


def directions(X, center):
    rays = X - center
    return rays / np.linalg.norm(rays, axis=1)[:, None]


@pytest.fixture(name="X", params=[(120, 15), (60, 150)], ids=["tall", "wide"])
def data(request, rng):
    n, d = request.param
    return rng.normal(size=(n, d)) * np.linspace(4, 1, d) ** 2 + rng.normal(size=d)


@pytest.mark.parametrize("center", ["mean", "geometric_median"])
def test_it_ends_at_the_leading_eigenvectors(X, center):
    model = EMAngularEmbedding(3, center=center, tol=1e-11, max_iter=20_000).fit(X)
    U = directions(X, model.mean_)
    values, vectors = linalg.eigh(U.T @ U)
    assert subspace_distance(model.components_, vectors[:, :-4:-1].T) < 1e-8
    assert_allclose(model.cosines_, values[:-4:-1], rtol=1e-10)
    assert model.objective_[-1] == pytest.approx(values[-3:].sum(), rel=1e-12)
    assert_allclose(np.abs(model.components_ @ vectors[:, :-4:-1]), np.eye(3), atol=1e-6)


def test_the_objective_never_falls_and_is_that_of_the_least_squares_that_alternate(X):
    model = EMAngularEmbedding(2, center="mean", max_iter=6, tol=0.0, random_state=3)
    with pytest.warns(match="EMAngularEmbedding stopped after max_iter=6 passes"):
        model.fit(X)
    assert np.all(np.diff(model.objective_) >= -1e-12 * model.objective_[-1])
    # The same passes as Roweis writes them down, from the same start.
    U = directions(X, X.mean(axis=0))
    seed = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
    C = np.random.default_rng(seed).normal(size=(1, X.shape[1], 2))[0]
    for _ in range(6):
        Z = U @ C @ linalg.inv(C.T @ C)
        C = U.T @ Z @ linalg.inv(Z.T @ Z)
    assert subspace_distance(model.components_, linalg.orth(C).T) < 1e-9
    rest = np.sum((U - U @ model.components_.T @ model.components_) ** 2)
    assert model.objective_[-1] == pytest.approx(len(X) - rest, rel=1e-12)


def test_a_fit_that_starts_at_its_end_stays_there(X):
    model = EMAngularEmbedding(2, center="mean", tol=1e-11, max_iter=20_000).fit(X)
    U, W = directions(X, X.mean(axis=0)), model.components_
    image = linalg.orth(U.T @ (U @ W.T)).T
    assert subspace_distance(W, image) < 1e-10


def test_a_planted_subspace_is_found_in_spite_of_far_outliers(rng):
    X, basis, is_outlier = planted_subspace(rng, 400, 30, 3, 80, distance=1e4)
    model = EMAngularEmbedding(3).fit(X)
    assert np.degrees(np.arcsin(subspace_distance(model.components_, basis))) < 3
    assert model.converged_
    assert (model.predict(X) == -1)[is_outlier].all()


@pytest.mark.parametrize("max_angle", [1.3, 1.5])
def test_trimming_is_that_of_angular_embedding(X, max_angle):
    model, exact = (
        method(2, max_angle=max_angle, **settings).fit(X)
        for method, settings in (
            (EMAngularEmbedding, {"tol": 1e-11, "max_iter": 20_000}),
            (AngularEmbedding, {"solver": "exact"}),
        )
    )
    assert_array_equal(model.support_, exact.support_)
    assert (model.anchor_, model.center_force_) == (exact.anchor_, exact.center_force_)
    assert subspace_distance(model.components_, exact.components_) < 1e-8


def test_sparse_rows_need_not_be_made_dense(rng):
    X = sparse.random_array((200, 60), density=0.1, rng=rng, format="csr")
    dense, found = (EMAngularEmbedding(2, center="zero").fit(A) for A in (X.toarray(), X))
    assert subspace_distance(dense.components_, found.components_) < 1e-6
