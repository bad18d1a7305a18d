"""Accelerated alternating projections: low rank + sparse when the rank is known.

The loop projects in turn on the matrices of that rank, within the tangent space of the last
one, and on those that agree with the data except for large entries. The problem is not convex:
both parts are found when they are well apart, and no optimum is guaranteed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from robustpca.engine.checkpoint import followed
from robustpca.engine.entries import EntryList, compact, joined
from robustpca.engine.linalg import Array, orthonormal
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.scratch import each, empty_beside, of_rows, summed_parts
from robustpca.engine.svt import (
    LowRank,
    SingularThreshold,
    lanes,
    spectral_norm,
    tall_qr,
    tile_rows,
)
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.solvers.penalties import (
    clip_outliers,
    largest_entry,
    observed_norm,
    usual_penalty,
)
from robustpca.solvers.splitting import Split

# The threshold falls by this factor in each pass; slower is safer.
DECAY = 0.7
# Passes without a smaller residual after which only noise can be left.
PATIENCE = 10


def alternating_projections(
    X: Array,
    rank: int,
    *,
    tol: float,
    max_iter: int,
    floor: float = 0.0,
    callback: Callback = ignore,
) -> Split:
    """Split ``X`` into a matrix of that rank and a sparse one; NaN entries are missing.

    The loop ends when the norm of what neither part explains is below ``tol`` times that of the
    data, or has stopped falling: then it is noise. It is also the objective.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data.
    rank : int
        Rank of the low-rank part.
    tol : float
        Tolerance.
    max_iter : int
        Largest number of passes.
    floor : float, default=0.0
        Smaller entries are not put into the sparse part.
    callback : callable
        Called with a `Progress` after each pass.
    """
    if largest_entry(X) == 0:
        return Split.zero(X)
    norm = observed_norm(clip_outliers(X))
    sharpness = 0.5 / (X.shape[0] * X.shape[1]) ** 0.25
    with ThreadPool() as pool:
        loop = Projections(X, rank, pool)
        low_rank, largest = loop.start(4 * sharpness)
        at = _Position(low_rank, largest, max(sharpness * largest, floor), [norm])
        with followed(at) as between_passes:
            while at.iteration < max_iter and at.history[-1] > tol * norm and at.since < PATIENCE:
                between_passes()
                at.iteration += 1
                at.low_rank, at.largest, beyond, residual = loop.step(at.low_rank, at.threshold)
                fallen = beyond + DECAY**at.iteration * at.largest
                at.threshold = max(sharpness * fallen, floor)
                at.history.append(residual)
                at.since = 0 if residual < 0.99 * at.best else at.since + 1
                at.best = min(at.best, residual)
                callback(Progress(at.iteration, residual, residual / norm, rank=rank))
        found = loop.large_entries(at.low_rank, max(at.threshold, 1e-12 * at.largest))
    change = at.history[-1] / norm
    converged = change <= tol or at.since >= PATIENCE
    end = (np.array(at.history), at.iteration, converged, change)
    return Split(at.low_rank, compact(found, X), *end, row_penalty=usual_penalty(X))


@dataclass
class _Position:
    """What a pass changes."""

    low_rank: LowRank
    largest: float
    threshold: float
    history: list[float]
    best: float = np.inf
    since: int = 0
    iteration: int = 0


def accept(X: Array, L: Array, threshold: float) -> float:
    """Kernel: replace ``L`` by the data where the two differ little; return their distance."""
    squares = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            error = X[i, j] - L[i, j]
            if abs(error) <= threshold:
                squares += error * error
                L[i, j] = X[i, j]
    return squares


def list_large(
    X: Array, L: Array, threshold: float, counts: Array, columns: Array, entries: Array
) -> int:
    """Kernel: list the entries of ``X - L`` above the threshold, row by row; return how many."""
    found = 0
    for i in range(X.shape[0]):
        first = found
        for j in range(X.shape[1]):
            error = X[i, j] - L[i, j]
            # Written always and kept only if large: without a branch this is twice as fast.
            columns[found] = j
            entries[found] = error
            found += abs(error) > threshold
        counts[i] = found - first
    return found


class Projections:
    """The data, and the projections on both sets."""

    def __init__(self, X: Array, rank: int, pool: ThreadPool) -> None:
        self.X, self.rank, self.pool = X, rank, pool
        self.lanes = lanes(X.shape)

    def start(self, share: float) -> tuple[LowRank, float]:
        """Best matrix of that rank for the data without their largest entries."""
        threshold = share * spectral_norm(clip_outliers(self.X), self.pool)
        A = of_rows(lambda rows: np.where(np.abs(rows) <= threshold, rows, 0.0), self.X)
        low_rank = SingularThreshold(self.X.shape, self.pool).top(A, self.rank)
        return low_rank, float(low_rank.values[0])

    def step(self, low_rank: LowRank, threshold: float) -> tuple[LowRank, float, float, float]:
        """Leave out large entries, project on the tangent space, truncate to the rank.

        Returns the next matrix, its largest singular value, the first one that was truncated,
        and the norm of what is neither low rank nor left out.
        """
        lengths = np.where(low_rank.values > 0, low_rank.values, 1.0).astype(self.X.dtype)
        U, V = of_rows(lambda rows: rows / lengths, low_rank.left), low_rank.right.T
        if low_rank.values[-1] <= 1e-12 * low_rank.values[0]:
            # The data have a lower rank so far: complete the directions in any way.
            U, V = tall_qr(U)[0], orthonormal(V)
        AV, UA, squares = self._products(low_rank, U, V, threshold)
        parts = summed_parts(U)
        core = np.asarray(sum(U[place].T @ AV[place] for place in each(parts, U, AV)))
        for place in each(parts, U, AV):
            AV[place] -= U[place] @ core
        Q1, R1 = linalg.qr(UA.T - V @ core.T, mode="economic", check_finite=False)
        Q2, R2 = tall_qr(AV)
        middle = np.block([[core, R1.T], [R2, np.zeros_like(core)]]).astype(np.float64)
        left, values, right = linalg.svd(middle, check_finite=False)
        r = self.rank
        V = np.hstack([V, Q1]) @ right[:r].T.astype(self.X.dtype)
        turn = (left[:, :r] * values[:r]).astype(self.X.dtype)
        for place in each(parts, U, Q2):
            U[place] = U[place] @ turn[:r] + Q2[place] @ turn[r:]
        following = LowRank(U, np.ascontiguousarray(V.T), values[:r])
        return following, float(values[0]), float(values[r]), float(np.sqrt(squares))

    def _products(
        self, low_rank: LowRank, U: Array, V: Array, threshold: float
    ) -> tuple[Array, Array, float]:
        kernel, bound = compiled(accept), self.X.dtype.type(threshold)
        images = empty_beside(U)

        def work(lane: int) -> tuple[Array, float]:
            total, squares = np.zeros((self.rank, self.X.shape[1]), self.X.dtype), 0.0
            buffer = np.empty((tile_rows(self.X.shape[1]), self.X.shape[1]), self.X.dtype)
            for place in each(self.lanes[lane], self.X, low_rank.left, U, images):
                rows = self.X[place]
                tile = low_rank.dense(place, out=buffer[: len(rows)])
                squares += kernel(rows, tile, bound)
                np.matmul(tile, V, out=images[place])
                total += U[place].T @ tile
            return total, squares

        parts = self.pool.map(work, range(len(self.lanes)))
        sums, squares = sum(part[0] for part in parts), sum(part[1] for part in parts)
        return images, np.asarray(sums), float(squares)

    def large_entries(self, low_rank: LowRank, threshold: float) -> Any:
        """What differs from the low-rank part by more than the threshold."""
        kernel, bound = compiled(list_large), self.X.dtype.type(threshold)
        size = tile_rows(self.X.shape[1]) * self.X.shape[1]

        def work(lane: int) -> EntryList:
            columns, entries = np.empty(size, np.int32), np.empty(size, self.X.dtype)
            found = EntryList(self.X, self.X.dtype)
            for place in each(self.lanes[lane], self.X, low_rank.left):
                rows = self.X[place]
                counts = np.empty(len(rows), np.int64)
                n = kernel(rows, low_rank.dense(place), bound, counts, columns, entries)
                found.append(entries[:n], columns[:n], counts)
            return found

        return joined(self.pool.map(work, range(len(self.lanes))), self.X)
