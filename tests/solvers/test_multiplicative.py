"""Multiplicative updates never raise the objective, and are NMF's where there is no graph."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.decomposition import NMF

from robustpca.parts.graphs import knn_graph, laplacian
from robustpca.solvers.multiplicative import nonnegative_factors


@pytest.fixture(name="X")
def planted(rng):
    X = rng.random((60, 3)) @ rng.random((3, 20)) + 0.1 * rng.random((60, 20))
    X[5] = 0.0
    X[:, 7] = 0.0
    return X


def start(rng, X, count=3):
    return rng.random((X.shape[0], count)), rng.random((count, X.shape[1]))


@pytest.mark.parametrize("smoothness", [0.0, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("free", [False, True])
def test_the_objective_never_rises_and_is_what_it_says(X, rng, smoothness, normalized, kind, free):
    matrix = laplacian(knn_graph(X, 5), normalized=normalized)
    codes, basis = start(rng, X)
    told = []
    result = nonnegative_factors(
        kind(X),
        matrix,
        smoothness,
        codes,
        basis,
        free=free,
        tol=0.0,
        max_iter=300,
        callback=told.append,
    )
    assert (np.diff(result.objective) <= 1e-12 * np.sum(X**2)).all()
    for H, B, value in (
        (codes, basis, result.objective[0]),
        (result.codes, result.basis, result.objective[-1]),
    ):
        scaled = H if free else H * np.linalg.norm(B, axis=1)
        expected = np.linalg.norm(X - H @ B) ** 2 + smoothness * np.vdot(scaled, matrix @ scaled)
        assert value == pytest.approx(expected, rel=1e-9)
    assert result.objective[-1] < 0.5 * result.objective[0]
    assert min(result.codes.min(), result.basis.min()) >= 0
    assert [step.objective for step in told] == result.objective[1:].tolist()


@pytest.mark.parametrize("free", [False, True])
def test_without_a_graph_the_updates_are_those_of_nmf(X, rng, free):
    codes, basis = start(rng, X)
    model = NMF(3, init="custom", solver="mu", tol=0, max_iter=40)
    expected = model.fit_transform(X, W=codes.copy(), H=basis.copy())
    matrix = laplacian(knn_graph(X, 5))
    result = nonnegative_factors(X, matrix, 0.0, codes, basis, free=free, tol=0.0, max_iter=40)
    assert_allclose(result.codes, expected, atol=1e-12)
    assert_allclose(result.basis, model.components_, atol=1e-12)


def test_zeros_stay_zero_and_empty_rows_get_no_codes(X, rng):
    codes, basis = start(rng, X)
    codes[3, 1] = basis[2, 4] = 0.0
    matrix = laplacian(knn_graph(X, 5), normalized=False)
    result = nonnegative_factors(X, matrix, 0.0, codes, basis, free=False, tol=0.0, max_iter=50)
    assert result.codes[3, 1] == result.basis[2, 4] == 0
    assert not result.codes[5].any()
    assert not result.basis[:, 7].any()
    nothing = nonnegative_factors(
        0 * X, matrix, 0.0, codes, basis, free=False, tol=1e-6, max_iter=50
    )
    assert nothing.converged
    assert nothing.objective[-1] == 0


def test_more_smoothness_makes_codes_smoother(X, rng):
    matrix = laplacian(knn_graph(X, 5), normalized=False)
    codes, basis = start(rng, X)

    def rough(smoothness):
        found = nonnegative_factors(
            X, matrix, smoothness, codes, basis, free=False, tol=0.0, max_iter=100
        )
        return np.vdot(found.codes, matrix @ found.codes) / np.vdot(found.codes, found.codes)

    values = [rough(smoothness) for smoothness in (0.0, 1.0, 10.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.5 * values[0]


def test_lengths_of_the_basis_matter_only_if_they_are_free(X, rng):
    matrix = laplacian(knn_graph(X, 5), normalized=False)
    codes, basis = start(rng, X)
    lengths = np.array([0.1, 1.0, 10.0])

    def product(free, factor):
        found = nonnegative_factors(
            X, matrix, 1.0, codes * factor, basis / factor[:, None], free=free, tol=0, max_iter=30
        )
        return found.codes @ found.basis

    assert_allclose(product(False, lengths), product(False, np.ones(3)), rtol=1e-8, atol=1e-12)
    assert not np.allclose(product(True, lengths), product(True, np.ones(3)), rtol=1e-2)


def test_with_free_lengths_the_graph_is_forgotten_in_the_end(X, rng):
    matrix = laplacian(knn_graph(X, 5), normalized=False)
    codes, basis = start(rng, X)

    def reached(free, smoothness):
        found = nonnegative_factors(
            X, matrix, smoothness, codes, basis, free=free, tol=0, max_iter=20_000
        )
        return np.linalg.norm(X - found.codes @ found.basis) ** 2, found.objective[-1]

    plain = reached(True, 0.0)[1]
    assert reached(True, 1.0)[1] < 1.1 * plain
    assert reached(False, 1.0)[1] > 1.5 * plain
