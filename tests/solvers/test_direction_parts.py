"""Parts of the directions loop: gradients are exact, and so are maxima over shapes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.engine.threads import ThreadPool
from robustpca.solvers.directions import (
    BoundedSphere,
    Frames,
    PowerSum,
    RandomStart,
    Span,
    SparseSphere,
    Sphere,
    Start,
    TrimmedSum,
    find_directions,
)


def unit(A, axis=0):
    return A / np.linalg.norm(A, axis=axis, keepdims=True)


def random_frame(rng, d, c):
    return np.linalg.qr(rng.normal(size=(d, c)))[0]


def power_sum(Y, W, p):
    return np.sum(np.abs(Y @ W) ** p)


class Given:
    """A start that is known."""

    def __init__(self, W):
        self.W, self.n_columns = W, W.shape[1]

    def __call__(self, average):
        return self.W[None]


def run(average, shape, start, n_stages=1, tol=1e-12, max_iter=500, **rest):
    return find_directions(average, shape, start, n_stages, tol=tol, max_iter=max_iter, **rest)


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0, 3.0])
def test_the_gradient_is_that_of_the_sum_of_powers(p, rng):
    Y, W = rng.normal(size=(50, 6)), rng.normal(size=(2, 6, 3))
    gradients = PowerSum(ArrayRows(Y), p).gradient(W)
    step = 1e-6
    for start in range(2):
        for index in np.ndindex(6, 3):
            up, down = W[start].copy(), W[start].copy()
            up[index] += step
            down[index] -= step
            slope = (power_sum(Y, up, p) - power_sum(Y, down, p)) / (2 * step)
            assert p * gradients[start][index] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        assert np.sum(gradients[start] * W[start]) == pytest.approx(power_sum(Y, W[start], p))


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
def test_directions_are_taken_out_without_touching_the_data(p, rng):
    Y = rng.normal(size=(40, 6))
    before = Y.copy()
    average = PowerSum(ArrayRows(Y), p)
    U = random_frame(rng, 6, 2)
    average.deflate(U[:, :1])
    average.deflate(U[:, 1:])
    left = Y - Y @ U @ U.T
    W = rng.normal(size=(1, 6, 2))
    assert_allclose(average.gradient(W), PowerSum(ArrayRows(left), p).gradient(W), atol=1e-12)
    assert_allclose(average.remaining, np.sum(left**2, axis=1), atol=1e-12)
    assert_allclose(average.samples(np.array([3, 5])), left[[3, 5]].T, atol=1e-12)
    assert_array_equal(Y, before)


def test_what_is_left_is_measured_to_the_last_digits(rng):
    U = random_frame(rng, 5, 5)
    Y = rng.normal(size=(30, 5)) * [1e6, 1e5, 1.0, 1e-3, 0.0] @ U.T
    average = PowerSum(ArrayRows(Y), 1)
    for j in range(4):
        assert not average.exhausted
        average.deflate(U[:, j : j + 1])
        rest = Y @ U[:, j + 1 :]
        # Entries of a million are known to ten digits behind the point.
        assert_allclose(np.sqrt(average.remaining), np.linalg.norm(rest, axis=1), atol=1e-9)
    assert average.exhausted


@pytest.mark.parametrize("far", [0.0, 30.0, 1e10])
def test_every_kind_of_block_gives_the_same_gradient(far, rng):
    # Near the origin, away from it, and so far that the centre must be subtracted first.
    X = np.round(rng.normal(size=(3000, 200)), 3) + far
    center, W = X.mean(axis=0), rng.normal(size=(1, 200, 2))
    expected = (X - center).T @ np.where((X - center) @ W[0] < 0, -1.0, 1.0)
    for rows in (ArrayRows(X).median_centred(), ArrayRows(np.asfortranarray(X)), ArrayRows(X)):
        gradient = PowerSum(rows.centred(center), 1).gradient(W)[0]
        assert_allclose(gradient, expected, atol=1e-9)
    if far == 0:
        sparse_rows = SparseRows(sparse.csr_matrix(X)).centred(center)
        assert_allclose(PowerSum(sparse_rows, 1).gradient(W)[0], expected, atol=1e-9)
        single = ArrayRows(X.astype(np.float32)).median_centred().centred(center)
        assert_allclose(PowerSum(single, 1).gradient(W)[0], expected, atol=0.5)


@pytest.mark.parametrize("trim", [0.1, 0.5])
def test_the_trimmed_sum_is_made_of_scipys_trimmed_means(trim, rng):
    Y = rng.standard_cauchy(size=(81, 5))
    w = unit(rng.normal(size=(1, 5, 1)), axis=1)

    def expected(Y, w):
        signed = np.where(Y @ w < 0, -1.0, 1.0) * Y
        return 81 * (np.median(signed, axis=0) if trim == 0.5 else stats.trim_mean(signed, trim))

    with ThreadPool() as pool:
        average = TrimmedSum(ArrayRows(Y), trim, pool)
        assert_allclose(average.gradient(w)[0, :, 0], expected(Y, w[0]), rtol=1e-12)
        u = random_frame(rng, 5, 1)
        average.deflate(u)
        left = Y - Y @ u @ u.T
        gradient = expected(left, w[0])
        assert_allclose(
            average.gradient(w)[0, :, 0], gradient - u[:, 0] * (u[:, 0] @ gradient), atol=1e-10
        )


SHAPES = {
    "sphere": (Sphere(), 1),
    "frames": (Frames(), 3),
    "sparse": (SparseSphere(2), 1),
    "bounded": (BoundedSphere(1.5), 1),
    "nearly one entry": (BoundedSphere(1.0001), 1),
    "without effect": (BoundedSphere(np.sqrt(7)), 1),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("kind", ["normal", "ties", "one entry"])
def test_no_point_of_a_shape_is_higher_than_the_best(name, kind, rng):
    shape, n_columns = SHAPES[name]
    for _ in range(20):
        gradient = rng.normal(size=(1, 7, n_columns))
        if kind == "ties":
            gradient = rng.choice([-2.0, 1.0, 2.0], size=gradient.shape)
        elif kind == "one entry":
            gradient *= np.arange(7)[:, None] == rng.integers(7)
            gradient = gradient + 1e-300 if n_columns == 1 else gradient
        best = shape.maximise(gradient)
        assert_allclose(np.linalg.norm(best, axis=1), 1, atol=1e-12)
        # Points of the shape near the best one and anywhere.
        others = [
            shape.maximise(best + size * rng.normal(size=best.shape)) for size in (1e-3, 0.1, 9)
        ]
        others += [shape.maximise(rng.normal(size=best.shape)) for _ in range(50)]
        for other in others:
            assert np.sum(gradient * other) <= np.sum(gradient * best) + 1e-9


def test_frames_are_orthonormal_also_without_rank(rng):
    gradients = np.zeros((2, 6, 3))
    gradients[0, :, :1] = rng.normal(size=(6, 1))
    for frame in Frames().maximise(gradients):
        assert_allclose(frame.T @ frame, np.eye(3), atol=1e-12)


def test_sparse_directions_take_the_first_of_equal_entries():
    gradient = np.array([1.0, -3.0, 3.0, 3.0, 0.5])[None, :, None]
    expected = np.array([0.0, -1.0, 1.0, 0.0, 0.0]) / np.sqrt(2)
    assert_allclose(SparseSphere(2).maximise(gradient)[0, :, 0], expected)


@pytest.mark.parametrize("bound", [1.0, 1.3, 2.0, 2.9])
def test_the_l1_bound_is_reached_as_by_bisection_of_the_threshold(bound, rng):
    for _ in range(30):
        gradient = rng.normal(size=9)
        w = BoundedSphere(bound).maximise(gradient[None, :, None])[0, :, 0]
        low, high = 0.0, np.abs(gradient).max()
        for _ in range(200):
            middle = (low + high) / 2
            shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - middle, 0)
            within = np.abs(shrunk).sum() <= bound * np.linalg.norm(shrunk)
            low, high = (low, middle) if within else (middle, high)
        if np.abs(gradient).sum() <= bound * np.linalg.norm(gradient):
            assert_allclose(w, unit(gradient))
        elif bound > 1:
            assert_allclose(w, unit(shrunk), atol=1e-6)
            assert np.abs(w).sum() == pytest.approx(bound)
        else:
            assert np.count_nonzero(w) == 1
            assert np.abs(w).argmax() == np.abs(gradient).argmax()


@pytest.mark.parametrize("bound", [1.0, 1.2, np.sqrt(2), 1.6, 2.0])
def test_the_l1_bound_holds_among_equal_entries(bound):
    gradient = np.array([1.0, -5.0, 5.0, 5.0, -5.0, 5.0, 2.0])
    w = BoundedSphere(bound).maximise(gradient[None, :, None])[0, :, 0]
    assert np.abs(w).sum() == pytest.approx(bound)
    assert np.linalg.norm(w) == pytest.approx(1)
    # No unit vector within the bound can do better than the largest entry times the bound.
    assert gradient @ w == pytest.approx(5 * bound)


def test_angles_between_points_of_a_shape(rng):
    W, turn = random_frame(rng, 6, 2)[None], random_frame(rng, 2, 2)[None]
    assert Span().change(W, W @ turn)[0] < 1e-12
    assert Frames().change(W, W @ turn)[0] > 1e-3
    assert Sphere().change(W[:, :, :1], -W[:, :, :1])[0] < 1e-12
    tilted = unit(W[:, :, :1] + 1e-7 * W[:, :, 1:], axis=1)
    assert Sphere().change(W[:, :, :1], tilted)[0] == pytest.approx(1e-7, rel=1e-6)


def test_a_saddle_with_samples_at_right_angles_is_left():
    # At (1, 0) the other two samples cancel each other, whichever sign both of them have.
    Y = np.array([[3.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    result = run(PowerSum(ArrayRows(Y), 1), Sphere(), Start(1))
    w = result.directions[:, 0]
    assert result.converged
    assert_allclose(np.abs(w), unit(np.array([3.0, 4.0])))
    assert_allclose(result.objective[[0, -1]], [3.0, 5.0])
    assert np.abs(Y @ w).min() > 0.1


@pytest.mark.parametrize("n_columns", [1, 3])
def test_restarts_run_side_by_side_and_the_highest_is_kept(n_columns, rng):
    Y = rng.standard_t(2, size=(25, 6))
    average, shape = PowerSum(ArrayRows(Y), 1), Sphere() if n_columns == 1 else Frames()
    start = Start(n_columns, None, 20, np.random.RandomState(0))
    starts = shape.maximise(start(average))
    assert starts.shape == (20, 6, n_columns)
    alone = []
    for W in starts:
        single = run(PowerSum(ArrayRows(Y), 1), shape, Given(W))
        alone.append(single.objective[-1])
    again = Start(n_columns, None, 20, np.random.RandomState(0))
    result = run(PowerSum(ArrayRows(Y), 1), shape, again)
    assert result.objective[-1] == pytest.approx(max(alone), rel=1e-12)
    assert max(alone) > 1.001 * min(alone)


def test_the_first_start_is_the_farthest_sample_then_what_is_left_of_the_next(rng):
    Y = rng.normal(size=(30, 4))
    Y[7] *= 50
    Y[11] = 0.9 * Y[7] + rng.normal(size=4)
    Y[13] *= 10
    picked = Start(2)(PowerSum(ArrayRows(Y), 1))[0]
    assert_allclose(picked[:, 0], Y[7])
    direction = unit(Y[7])
    assert_allclose(picked[:, 1], Y[13] - direction * (direction @ Y[13]), atol=1e-9)


def test_principal_axes_to_start_from_are_those_that_are_left(rng):
    axes = random_frame(rng, 5, 3) * [5.0, 3.0, 1.0]
    average = PowerSum(ArrayRows(rng.normal(size=(20, 5))), 1)
    start = Start(1, axes)
    for j in range(3):
        w = start(average)[0]
        assert abs(unit(axes[:, j]) @ w[:, 0]) == pytest.approx(1)
        average.deflate(w)


def test_stages_stop_where_nothing_is_left_and_complete_the_basis(rng):
    Y = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 6))
    result = run(PowerSum(ArrayRows(Y), 1), Sphere(), Start(1), 5)
    assert result.converged
    assert_allclose(result.basis.T @ result.basis, np.eye(5), atol=1e-12)
    assert_allclose(Y @ result.basis[:, 2:], 0, atol=1e-9)


def test_a_lack_of_rank_does_not_keep_a_span_from_settling(rng):
    Y = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 6))
    start = RandomStart(4, np.random.RandomState(0))
    result = run(PowerSum(ArrayRows(Y), 2), Span(), start, tol=1e-8)
    assert result.converged
    assert_allclose(Y @ result.basis @ result.basis.T, Y, atol=1e-7)


def test_a_cycle_of_trimmed_averages_is_noticed(monkeypatch, rng):
    # Averages are replaced by a rule that turns the direction by a fixed angle for ever.
    Y = rng.normal(size=(40, 2))
    with ThreadPool() as pool:
        average = TrimmedSum(ArrayRows(Y), 0.1, pool)
        angle = 2 * np.pi / 5
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turns = iter(range(1000))
        monkeypatch.setattr(
            average,
            "means",
            lambda signs: np.linalg.matrix_power(turn, next(turns)) @ np.array([1.0, 0.0]),
        )
        result = run(average, Sphere(), Start(1), max_iter=300)
    assert result.cycled
    assert not result.converged
    assert result.n_iter < 10
