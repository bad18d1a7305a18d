"""Multipliers that prove a decomposition of exact data to be optimal.

Once the parts add up to the data, a splitting changes the multipliers only, and slowly. Those that
belong to given parts satisfy linear equations. On the tangent space of the low-rank part they are
the product U V' of its singular vectors, and at the entries of the sparse part the weight with its
sign. `completed` solves them by conjugate gradients, whose steps touch no other entries.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.scratch import each, empty_beside, summed_parts
from robustpca.engine.svt import LowRank, lanes, products, row_tiles
from robustpca.engine.threads import ThreadPool, compiled

# How often entries that reach the weight are held there, steps of conjugate gradients in between,
# and the error of the equations at the end, for each singular value.
ROUNDS, STEPS, TOL = 4, 12, 1e-7
# If more entries are given, the equations may have no solution.
MOST_FIXED = 0.5
# Share of the square of a direction that is rounding error.
ROUNDING = 1e-14


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
    tangent = _Tangent(low_rank, dual, pool)
    for _ in range(ROUNDS):
        error = tangent.error(dual)
        if np.sqrt(tangent.inner(error, error)) <= TOL * np.sqrt(low_rank.rank):
            return
        fixed = empty_beside(dual, dtype=bool)
        starts, total = empty_beside(dual, (len(dual) + 1,), np.int64), 0
        starts[0] = 0
        for place in each(row_tiles(dual.shape), dual, data, fixed, starts):
            fixed[place] = (np.abs(dual[place]) >= (1 - 1e-12) * weight) | np.isnan(data[place])
            counts = np.count_nonzero(fixed[place], axis=1)
            starts[place.start + 1 : place.stop + 1] = total + np.cumsum(counts)
            total = int(starts[place.stop])
        if total > MOST_FIXED * dual.size:
            return
        columns = empty_beside(dual, (total,), np.int32)
        for place in each(row_tiles(dual.shape), fixed, columns, starts):
            columns[starts[place.start] : starts[place.stop]] = np.nonzero(fixed[place])[1]
        tangent.add(dual, tangent.solve(error, columns, starts), fixed, weight)


class _Point(NamedTuple):
    """A matrix ``U A' + B V'`` with ``U' B = 0``; A has a row for each feature, B one a sample."""

    A: Array
    B: Array


class _Tangent:
    """Such matrices for given U and V. What has a row for each sample is where the data are."""

    def __init__(self, low_rank: LowRank, beside: Array, pool: ThreadPool) -> None:
        self.beside, self.pool, shape = beside, pool, low_rank.left.shape
        self.U = empty_beside(beside, shape, np.float64)
        for place in each(summed_parts(self.U), self.U, low_rank.left):
            self.U[place] = low_rank.left[place] / low_rank.values
        self.V = np.ascontiguousarray(low_rank.right.T)
        self.lanes = [tiles for tiles in lanes((len(self.U), len(self.V))) if tiles]

    def _zeros(self) -> _Point:
        B = empty_beside(self.beside, self.U.shape, np.float64)
        for place in self._parts(B):
            B[place] = 0.0
        return _Point(np.zeros(self.V.shape), B)

    def _parts(self, *arrays: Array) -> Iterator[slice]:
        """Parts of the samples, for a pass over some arrays."""
        return each(summed_parts(self.U), *arrays)

    def _inside(self, B: Array) -> Array:
        """What of ``B`` is in the span of U, as its coordinates."""
        parts = (self.U[place].T @ B[place] for place in self._parts(self.U, B))
        return np.asarray(sum(parts))

    def inner(self, one: _Point, other: _Point) -> float:
        """Inner product of two matrices."""
        parts = (np.vdot(one.B[place], other.B[place]) for place in self._parts(one.B, other.B))
        return float(np.vdot(one.A, other.A)) + float(sum(parts))

    def error(self, dual: Array) -> _Point:
        """By how much a matrix must change on this space to be the product of both bases."""
        sums = products(dual, lambda place: dual[place].T @ self.U[place], self.pool, add=True)
        B = empty_beside(self.beside, self.U.shape, np.float64)
        products(dual, lambda place: -(dual[place] @ self.V), self.pool, out=B)
        inside = self._inside(B)
        for place in self._parts(self.U, B):
            B[place] -= self.U[place] @ inside
        return _Point(self.V - sums, B)

    def solve(self, error: _Point, columns: Array, starts: Array) -> _Point:
        """The matrix that is ``error`` on this space after some entries are set to zero.

        ``error`` is used up.
        """
        rest, found, direction, change = error, self._zeros(), self._zeros(), self._zeros()
        self._go_on(direction, rest, 0.0)
        size = self.inner(rest, rest)
        least = 1e-8 * size
        for _ in range(STEPS):
            self._rest_of(direction, columns, starts, change)
            curvature = self.inner(direction, change)
            # All that the direction has is given, but for rounding errors.
            if curvature <= ROUNDING * self.inner(direction, direction):
                break
            before, size = size, self._step(found, rest, direction, change, size / curvature)
            if size <= least:
                break
            self._go_on(direction, rest, size / before)
        return found

    def _step(
        self, found: _Point, rest: _Point, direction: _Point, change: _Point, length: float
    ) -> float:
        """Go along a direction; returns the square of what is left."""
        found.A[...] += length * direction.A
        rest.A[...] -= length * change.A
        size = 0.0
        for place in self._parts(found.B, rest.B, direction.B, change.B):
            found.B[place] += length * direction.B[place]
            rest.B[place] -= length * change.B[place]
            size += float(np.vdot(rest.B[place], rest.B[place]))
        return size + float(np.vdot(rest.A, rest.A))

    def _go_on(self, direction: _Point, rest: _Point, share: float) -> None:
        """The next direction is what is left, and a share of the last one."""
        direction.A[...] = share * direction.A + rest.A
        for place in self._parts(direction.B, rest.B):
            direction.B[place] *= share
            direction.B[place] += rest.B[place]

    def _rest_of(self, point: _Point, columns: Array, starts: Array, out: _Point) -> None:
        """A matrix of this space with some entries set to zero, projected to it."""
        kernel, left = compiled(tangent_rows), out.B

        def work(tiles: list[slice]) -> Array:
            right = np.zeros_like(point.A)
            for place in each(tiles, self.U, point.B, left, columns, starts):
                lines, part = starts[place.start : place.stop + 1], left[place]
                part[...] = 0.0
                kernel(self.U[place], self.V, point.A, point.B[place], columns, lines, right, part)
            return right

        out.A[...] = point.A - np.sum(self.pool.map(work, self.lanes), axis=0)
        inside = self._inside(left)
        for place in self._parts(self.U, point.B, left):
            np.subtract(point.B[place], left[place], out=left[place])
            left[place] += self.U[place] @ inside

    def add(self, dual: Array, point: _Point, fixed: Array, weight: float) -> None:
        """Add a matrix of this space to all entries that are not fixed, up to the weight."""

        def work(tiles: list[slice]) -> None:
            for place in each(tiles, self.U, point.B, dual, fixed):
                moves = self.U[place] @ point.A.T
                moves += point.B[place] @ self.V.T
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
