"""Kernels of the splitting loop against NumPy, and the smoothness on a graph."""

import numpy as np
import pytest

from robustpca.engine.threads import compiled
from robustpca.parts.entry_losses import HuberNorm, L1Norm, SquaredNorm
from robustpca.parts.graphs import knn_graph, laplacian
from robustpca.solvers.entry_steps import extract_tile, printed_step, residual_step
from robustpca.solvers.split_matrix import GraphSmoothness


class TestKernels:
    """Compiled kernels do what they do when Python runs them, in the precision of the data."""

    @pytest.fixture(params=[np.float64, np.float32])
    def dtype(self, request):
        return request.param

    @pytest.fixture
    def arrays(self, dtype, rng):
        X = (3 * rng.normal(size=(6, 9))).astype(dtype)
        X[rng.random(X.shape) < 0.2] = np.nan
        X[2] = np.nan
        A, L = (rng.normal(size=X.shape).astype(dtype) for _ in range(2))
        return X, A, L

    LOSSES = [L1Norm(0.7), HuberNorm(0.7, 0.5), SquaredNorm(0.7)]

    @pytest.mark.parametrize("loss", LOSSES, ids=["l1", "huber", "l2"])
    @pytest.mark.parametrize("relaxation", [1.0, 1.8])
    def test_residual_step(self, loss, relaxation, arrays, dtype):
        X, A, L = arrays
        steps = np.linspace(0.5, 2, 6)
        decay = np.linspace(0.5, 1.5, 6).astype(dtype)
        slope, bound = (np.broadcast_to(v, 6).astype(dtype) for v in loss.dual_map(steps))
        numbers = [dtype(number) for number in (relaxation, loss.threshold, loss.curvature)]
        found = []
        for kernel in (residual_step, compiled(residual_step)):
            moved, sums = A.copy(), np.zeros((6, 3))
            kernel(X, moved, L, decay, slope, bound, *numbers, sums)
            found.append((moved, sums))
        rounding = 30 * np.finfo(dtype).eps
        for plain, fast in zip(*found, strict=True):
            np.testing.assert_allclose(fast, plain, rtol=rounding, atol=rounding)
        # And both do what the formulas say.
        exact = [array.astype(np.float64) for array in (X, A, L)]
        old = (exact[1] - exact[2]) * decay[:, None]
        error = exact[0] - exact[2]
        new = np.nan_to_num(
            np.clip(slope[:, None] * (error + old), -bound[:, None], bound[:, None])
        )
        moved, sums = found[1]
        expected = exact[2] + old + relaxation * (new - old)
        np.testing.assert_allclose(moved, expected, rtol=0, atol=10 * rounding)
        np.testing.assert_allclose(sums[:, 0], np.sum((new - old) ** 2, axis=1), rtol=10 * rounding)
        np.testing.assert_allclose(sums[:, 1], np.sum(new**2, axis=1), rtol=10 * rounding)
        costs = [loss.value(row[None]) / loss.weight for row in error]
        np.testing.assert_allclose(sums[:, 2], costs, rtol=10 * rounding)

    @pytest.mark.parametrize("loss", LOSSES, ids=["l1", "huber", "l2"])
    def test_printed_step(self, loss, arrays, dtype, rng):
        X, A, L = arrays
        Y = np.where(np.isnan(X), 0, rng.normal(size=X.shape)).astype(np.float32)
        decay = np.linspace(0.5, 1.5, 6).astype(dtype)
        slope, bound = (np.broadcast_to(v, 6).astype(dtype) for v in loss.dual_map(np.ones(6)))
        numbers = [dtype(number) for number in (loss.threshold, loss.curvature)]
        rounding, found = 30 * np.finfo(dtype).eps, []
        for kernel in (printed_step, compiled(printed_step)):
            moved, kept, sums = A.copy(), Y.copy(), np.zeros((6, 3))
            kernel(X, moved, kept, L, decay, slope, bound, *numbers, sums)
            found.append((moved, sums))
        for plain, fast in zip(*found, strict=True):
            np.testing.assert_allclose(fast, plain, rtol=rounding, atol=rounding)
        # The residual part by its proximal step, multipliers, and the matrix of the next pass.
        error = (X - L).astype(np.float64)
        new = np.nan_to_num(np.clip(slope[0] * (error + Y), -bound[0], bound[0]))
        rest = np.nan_to_num(error + Y - new)
        expected = np.where(np.isnan(X), L, X - rest + decay[:, None] * new)
        np.testing.assert_allclose(moved, expected, rtol=0, atol=10 * rounding)
        np.testing.assert_allclose(kept, decay[:, None] * new, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(sums[:, 0], np.sum((new - Y) ** 2, axis=1), rtol=10 * rounding)
        np.testing.assert_allclose(sums[:, 1], np.sum(new**2, axis=1), rtol=10 * rounding)

    def test_a_step_in_single_precision_is_not_done_in_double(self, rng):
        X, A, L = (rng.normal(size=(5, 50)).astype(np.float32) for _ in range(3))
        ones = np.ones(5, np.float32)
        sums = np.zeros((5, 3))
        numbers = [np.float32(number) for number in (1.8, 0.5, 1.0)]
        compiled(residual_step)(X, A, L, ones, ones, ones, *numbers, sums)
        # What was added up in double precision would not fit into single precision.
        np.testing.assert_array_equal(sums, sums.astype(np.float32))
        assert len(np.unique(sums)) == sums.size

    @pytest.mark.parametrize("loss", LOSSES, ids=["l1", "huber", "l2"])
    def test_extract_tile(self, loss, arrays, dtype):
        X, A, L = arrays
        penalty = 1.3
        numbers = (*loss.dual_map(1 / penalty), loss.threshold, loss.curvature, penalty)
        numbers = [dtype(number) for number in numbers]
        found = []
        for kernel in (extract_tile, compiled(extract_tile)):
            dual, counts = A.copy(), np.zeros(6, np.int64)
            columns, entries = np.zeros(54, np.int32), np.zeros(54, dtype)
            n, *sums = kernel(X, dual, L, *numbers, counts, columns, entries)
            found.append((dual, counts, columns[:n], entries[:n], np.array(sums)))
        rounding = 30 * np.finfo(dtype).eps
        for plain, fast in zip(*found, strict=True):
            np.testing.assert_allclose(fast, plain, rtol=rounding, atol=rounding)
        dual, counts, columns, entries, sums = found[1]
        assert dual.dtype == entries.dtype == dtype
        exact = [array.astype(np.float64) for array in (X, A, L)]
        error = exact[0] - exact[2]
        push = error + exact[1] - exact[2]
        # The residual part is the proximal step; its sparse share exceeds the threshold.
        slope, bound = loss.dual_map(1 / penalty)
        step = push - np.clip(slope * push, -bound, bound)
        forces = np.nan_to_num(penalty * (push - step))
        np.testing.assert_allclose(dual, forces, rtol=0, atol=10 * rounding)
        large = np.nan_to_num(step - np.clip(step, -loss.threshold, loss.threshold))
        dense = np.zeros_like(large)
        dense[np.repeat(np.arange(6), counts), columns] = entries
        np.testing.assert_allclose(dense, large, rtol=0, atol=10 * rounding)
        assert len(entries) == np.count_nonzero(np.abs(large) > 10 * rounding)
        value = loss.value(error) / loss.weight
        expected = np.nansum(exact[0] * forces), np.sum(forces**2), value
        np.testing.assert_allclose(sums, expected, rtol=10 * rounding)


class TestGraphSmoothness:
    @pytest.mark.parametrize("normalized", [True, False])
    def test_value_gradient_and_lipschitz_constant(self, normalized, rng):
        adjacency = knn_graph(rng.normal(size=(30, 3)), 4)
        term = GraphSmoothness.of(laplacian(adjacency, normalized=normalized), 0.7)
        A, direction = rng.normal(size=(2, 30, 4))
        if not normalized:
            differences = np.sum((A[:, None] - A[None]) ** 2, axis=-1)
            expected = 0.7 * np.sum(adjacency.toarray() * differences) / 2
            assert term.value(A) == pytest.approx(expected, rel=1e-13)
        # The value is a quadratic, so central differences are exact whatever the step.
        slope = (term.value(A + direction) - term.value(A - direction)) / 2
        assert np.vdot(term.gradient(A), direction) == pytest.approx(slope, rel=1e-11)
        change = np.linalg.norm(term.gradient(A) - term.gradient(direction))
        assert change <= term.lipschitz * np.linalg.norm(A - direction)
        # Along the roughest eigenvector gradients do differ by as much.
        rough = np.linalg.eigh(term.laplacian.toarray())[1][:, -1:]
        assert np.linalg.norm(term.gradient(rough)) == pytest.approx(term.lipschitz, rel=1e-9)
