"""Multipliers that prove a decomposition of exact data to be optimal.

Once the parts add up to the data, a splitting changes the multipliers only, and slowly. Those that
belong to given parts satisfy linear equations. On the tangent space of the low-rank part they are
the product U V' of its singular vectors, and at the entries of the sparse part the weight with its
sign. `completed` solves them by conjugate gradients, whose steps touch no other entries.
"""

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.scratch import each, empty_beside
from robustpca.engine.svt import LowRank, lanes, products, row_tiles
from robustpca.engine.threads import ThreadPool, compiled

# How often entries that reach the weight are held there, steps of conjugate gradients in between,
# and the error of the equations at the end, for each singular value.
ROUNDS, STEPS, TOL = 4, 12, 1e-7
# If more entries are given, the equations may have no solution.
MOST_FIXED = 0.5


def completed(dual: Array, data: Array, low_rank: LowRank, weight: float, pool: ThreadPool) -> None:
    """Change multipliers within the bounds so that they agree with the low-rank part.

    Parameters
    ----------
    dual : ndarray of shape (n_samples, n_features)
        Multipliers, not larger than ``weight``; those of the sparse part are of that size.
    data : ndarray of shape (n_samples, n_features)
        The data; where they are missing (NaN), the multipliers are zero and stay so.
    low_rank : LowRank
        Low-rank part.
    weight : float
        Weight of the sparse part.
    pool : ThreadPool
        Threads.
    """
    tangent = _Tangent(low_rank, pool)
    for _ in range(ROUNDS):
        error = tangent.error(dual)
        if np.linalg.norm(error) <= TOL * np.sqrt(low_rank.rank):
            return
        fixed, counts = empty_beside(dual, dtype=bool), np.empty(len(dual), np.int64)
        for place in each(row_tiles(dual.shape), dual, data, fixed):
            fixed[place] = (np.abs(dual[place]) >= (1 - 1e-12) * weight) | np.isnan(data[place])
            counts[place] = np.count_nonzero(fixed[place], axis=1)
        starts = np.concatenate([[0], np.cumsum(counts)])
        if starts[-1] > MOST_FIXED * dual.size:
            return
        columns = empty_beside(dual, (int(starts[-1]),), np.int32)
        for place in each(row_tiles(dual.shape), fixed, columns):
            columns[starts[place.start] : starts[place.stop]] = np.nonzero(fixed[place])[1]
        tangent.add(dual, tangent.solve(error, columns, starts), fixed, weight)


class _Tangent:
    """Matrices ``U A' + B V`` with ``U' B = 0``, each stored as the rows of A and of B."""

    def __init__(self, low_rank: LowRank, pool: ThreadPool) -> None:
        self.U = np.ascontiguousarray(low_rank.left / low_rank.values)
        self.V, self.pool = np.ascontiguousarray(low_rank.right.T), pool
        self.lanes = [tiles for tiles in lanes((len(self.U), len(self.V))) if tiles]
        self.n_columns = len(self.V)

    def _projected(self, A: Array, B: Array) -> Array:
        point = np.vstack([A, B])
        point[len(A) :] -= self.U @ (self.U.T @ B)
        return point

    def error(self, dual: Array) -> Array:
        """By how much a matrix must change on this space to be the product of both bases."""
        sums = products(dual, lambda place: dual[place].T @ self.U[place], self.pool, add=True)
        images = products(dual, lambda place: dual[place] @ self.V, self.pool)
        return self._projected(self.V - sums, -images)

    def solve(self, error: Array, columns: Array, starts: Array) -> Array:
        """The matrix that is ``error`` on this space after some entries are set to zero."""
        found, rest, direction = np.zeros_like(error), error.copy(), error.copy()
        size = float(np.vdot(rest, rest))
        least = 1e-8 * size
        for _ in range(STEPS):
            change = direction - self._at_entries(direction, columns, starts)
            curvature = float(np.vdot(direction, change))
            if curvature <= 0:  # all that the direction has is given
                break
            length = size / curvature
            found += length * direction
            rest -= length * change
            before, size = size, float(np.vdot(rest, rest))
            if size <= least:
                break
            direction *= size / before
            direction += rest
        return found

    def _at_entries(self, point: Array, columns: Array, starts: Array) -> Array:
        """A matrix of this space with all but some entries set to zero, projected to it."""
        A, B = point[: self.n_columns], point[self.n_columns :]
        kernel = compiled(tangent_rows)

        left = np.zeros_like(B)

        def work(tiles: list[slice]) -> Array:
            right = np.zeros_like(A)
            for place in each(tiles, columns):
                lines = slice(place.start, place.stop + 1)
                given = self.U[place], self.V, A, B[place], columns, starts[lines]
                kernel(*given, right, left[place])
            return right

        total = np.sum(self.pool.map(work, self.lanes), axis=0)
        return self._projected(total, left)

    def add(self, dual: Array, point: Array, fixed: Array, weight: float) -> None:
        """Add a matrix of this space to all entries that are not fixed, up to the weight."""
        A, B = point[: self.n_columns], point[self.n_columns :]

        def work(tiles: list[slice]) -> None:
            for place in each(tiles, dual, fixed):
                moves = self.U[place] @ A.T
                moves += B[place] @ self.V.T
                moves[fixed[place]] = 0.0
                moves += dual[place]
                np.clip(moves, -weight, weight, out=dual[place])

        self.pool.map(work, self.lanes)


def tangent_rows(
    U: Array, V: Array, A: Array, B: Array, columns: Array, starts: Array, right: Array, left: Array
) -> None:
    """Kernel: entries of ``U A' + B V'`` at some places, times V (``left``), transposed times U."""
    k = U.shape[1]
    for i in range(U.shape[0]):
        for place in range(starts[i], starts[i + 1]):
            j = columns[place]
            value = 0.0
            for a in range(k):
                value += U[i, a] * A[j, a] + B[i, a] * V[j, a]
            for a in range(k):
                right[j, a] += value * U[i, a]
                left[i, a] += value * V[j, a]
