"""Trimmed means: the same as SciPy's whatever the values, the signs and the calls before."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from threadpoolctl import threadpool_limits

from robustpca.engine.threads import ThreadPool
from robustpca.engine.trimmed_means import TrimmedMeans

VALUES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "far from zero": lambda rng, shape: 1e6 + rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_cauchy(size=shape),
    "ties": lambda rng, shape: rng.integers(-2, 3, size=shape).astype(float),
    "two values": lambda rng, shape: (rng.random(size=shape) < 0.1).astype(float),
    "ascending": lambda rng, shape: np.sort(rng.normal(size=shape), axis=1),
    # A regular sample of these sees nothing but one of the values.
    "periodic": lambda rng, shape: np.resize(np.r_[np.zeros(15), 1.0], shape),
    "one gross error": lambda rng, shape: np.where(
        np.arange(shape[1]) == shape[1] // 2, 1e30, rng.normal(size=shape)
    ),
}


def expected_means(A, trim):
    if trim == 0.5:
        return np.median(A, axis=1)
    return stats.trim_mean(A, trim, axis=1)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("trim", [0.001, 0.1, 0.25, 0.45, 0.5])
def test_equal_those_of_scipy_as_the_signs_change(kind, dtype, trim, rng):
    for n in (1, 2, 3, 64, 257, 1000, 4003):
        A = np.ascontiguousarray(VALUES[kind](rng, (5, n)), dtype)
        signs = rng.choice([-1.0, 1.0], n)
        with ThreadPool() as pool:
            means = TrimmedMeans(A, trim, pool)
            # All signs are new, none is, a few are, most are.
            for share in (0.0, 0.0, 0.002, 0.01, 0.9, 0.02):
                signs[rng.random(n) < share] *= -1
                signed = A.astype(np.float64) * signs
                scale = np.abs(np.sort(signed, axis=1)[:, int(trim * n)]).max() + 1e-300
                rtol = 1e-13 if dtype == np.float64 else 1e-12
                assert_allclose(
                    means(signs), expected_means(signed, trim), rtol=rtol, atol=rtol * scale
                )


def test_equal_values_are_their_own_mean_to_the_last_digit():
    A = np.repeat(np.array([[0.1], [1e8 + 0.1], [-0.3]]), 997, axis=1)
    with ThreadPool() as pool:
        means = TrimmedMeans(A, 0.2, pool)
        for _ in range(3):
            assert_array_equal(means(np.ones(997)), A[:, 0])


def test_do_not_depend_on_the_number_of_threads(rng):
    A, signs = rng.normal(size=(50, 3000)), rng.choice([-1.0, 1.0], 3000)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads), ThreadPool() as pool:
            means = TrimmedMeans(A, 0.25, pool)
            found.append([means(signs), means(-signs)])
    assert_array_equal(found[0], found[1])
    assert_allclose(found[0][0], -found[0][1], rtol=1e-12)


def test_the_bands_follow_the_thresholds_so_that_few_values_are_looked_at(rng):
    A = rng.normal(size=(4, 20000))
    signs = rng.choice([-1.0, 1.0], 20000)
    with ThreadPool() as pool:
        means = TrimmedMeans(A, 0.25, pool)
        for _ in range(3):
            signs[rng.integers(20000, size=20)] *= -1
            means(signs)
    lower, upper, below, above = means.bands
    signed = np.sort(A * signs, axis=1)
    assert_array_equal(lower, signed[:, 5000])
    assert_array_equal(upper, signed[:, -5001])
    for middle, reach in ((lower, below), (upper, above)):
        inside = np.abs(A * signs - middle[:, None]) <= reach[:, None]
        assert (inside.mean(axis=1) < 0.02).all()
        assert (inside.mean(axis=1) > 0.002).all()
