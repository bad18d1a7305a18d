"""The matrix of a splitting: what a pass does to its tiles, and what it proves at the end.

`splitting.split` lowers its singular values in each pass, and lets `SplitMatrix.step` do the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustpca.engine.entries import EntryList, joined
from robustpca.engine.linalg import Array, inner_product, median
from robustpca.engine.scratch import each, empty_beside, taken
from robustpca.engine.svt import (
    LowRank,
    SingularThreshold,
    lanes,
    restricted_norm,
    row_tiles,
    short_side_norm,
    spectral_norm,
    tile_rows,
)
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.parts.entry_losses import EntryLoss
from robustpca.parts.graphs import eigenvalue_bound
from robustpca.solvers.anderson import Anderson
from robustpca.solvers.certificate import completed
from robustpca.solvers.entry_steps import extract_tile, printed_step, residual_step
from robustpca.solvers.penalties import TINY, fill_missing, fits_single_precision

# Lanczos steps for the norm of the multipliers, and the length of a side up to which it is exact.
NORM_STEPS, SMALL_SIDE = 12, 450
# Residual entries of which medians are taken.
SAMPLE = 10_000
# The median absolute value of a Gaussian times this is its standard deviation.
GAUSSIAN = 1.4826


@dataclass(frozen=True)
class GraphSmoothness:
    r"""``weight`` times the trace of :math:`L^\top \Phi L`, which makes neighbours alike.

    The Laplacian has one vertex for each row; ``norm`` is its largest eigenvalue.
    """

    laplacian: Any
    weight: float
    norm: float

    @classmethod
    def of(cls, laplacian: Any, weight: float) -> "GraphSmoothness":
        """The term with the norm of its Laplacian."""
        return cls(laplacian, weight, eigenvalue_bound(laplacian))

    def value(self, A: Array) -> float:
        """How much neighbours differ."""
        return self.weight * float(np.vdot(A, self.laplacian @ A))

    def gradient(self, A: Array) -> Array:
        """Gradient of the value."""
        return 2 * self.weight * (self.laplacian @ A)

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant of the gradient."""
        return 2 * self.weight * self.norm


@dataclass(frozen=True)
class Certificate:
    """Both parts, and by which share of itself the objective may fall."""

    low_rank: LowRank
    sparse: Any
    gap: float


class SplitMatrix:
    """The state of the loop: data, and the matrix ``A`` whose singular values are lowered.

    What remains of ``A`` after the low-rank part is taken away are its multipliers over the
    penalty, so neither these nor the sparse part are stored. In the ``printed`` order of inexact
    ALM the residual part needs other multipliers over the penalty: ``dual``.
    """

    def __init__(
        self,
        X: Array,
        loss: EntryLoss,
        smoothness: GraphSmoothness | None,
        pool: ThreadPool,
        printed: bool,
    ) -> None:
        self.X, self.loss, self.smoothness, self.pool = X, loss, smoothness, pool
        self.lanes, self.tile_rows = lanes(X.shape), tile_rows(X.shape[1])
        self.threshold = SingularThreshold(X.shape, pool, careful=printed)
        self.dual: Array | None = None
        self.lipschitz = smoothness.lipschitz if smoothness is not None else 0.0
        self.anderson: Anderson | None = None
        self.accelerated, self.known_penalty = False, 0.0
        self.listed = True  # whether the entries of the sparse part are wanted
        self.sample = slice(None, None, max(1, X.size // SAMPLE))

    def accelerate(self, wanted: bool, penalty: float) -> None:
        """Accelerate the steps with this penalty from now on, or not for the time being."""
        # The steps are remembered in single precision.
        wanted = self.accelerated = wanted and fits_single_precision(self.X)
        if wanted and self.anderson is None:
            self.anderson = Anderson(self.A)
        if self.anderson is not None and (not wanted or penalty != self.known_penalty):
            self.anderson.forget(penalty != self.known_penalty)
        self.known_penalty = penalty

    def usual_residual(self, low_rank: LowRank) -> float:
        """Deviation of the noise that would have residual entries of this median size.

        Entries that are zero, as the margins of images are, say little about the others.
        """
        data, seen, nonzero = self.sampled
        sizes = np.abs(data - taken(low_rank.left, self.sample) @ low_rank.right)
        if nonzero is None:  # none of them is zero or missing
            return GAUSSIAN * median(sizes.ravel())
        if not nonzero.any():
            return 0.0
        others, every = median(sizes[nonzero]), median(sizes[seen])
        return GAUSSIAN * np.sqrt(others * max(every, 0.01 * others))

    def loss_of_data(self) -> float:
        """The loss of a low-rank part that is zero."""
        places = each(row_tiles(self.X.shape), self.data)
        return sum(self.loss.value(self.data[place]) for place in places)

    def restart(self, low_rank: LowRank, penalty: float) -> None:
        """Take the forces that the loss has at a low-rank part for its multipliers."""
        _, bound = self.loss.dual_map(1 / penalty)
        for place in each(row_tiles(self.X.shape), self.A, self.data, low_rank.left):
            low = low_rank.dense(place)
            force = fill_missing((self.data[place] - low) * (bound / self.loss.threshold))
            self.A[place] = low + np.clip(force, -bound, bound)
        self.threshold.multiply(self.A)

    def set_matrix(self, data: Array, A: Array, multiplied: bool = False) -> None:
        """Start, or continue in another precision, if ``multiplied`` after a pass."""
        self.data, self.A, self.dtype = data, A, A.dtype
        some = taken(data, self.sample)
        seen = np.isfinite(some)
        nonzero = seen & (some != 0)
        self.sampled = some, seen, None if nonzero.all() else nonzero
        if not multiplied:
            self.threshold.multiply(A)

    def low_rank(self, penalty: float) -> LowRank:
        """The low-rank part: ``A`` with lowered singular values."""
        return self.threshold.solve(self.A, 1 / penalty)

    def cost(self, low_rank: LowRank) -> float:
        """Nuclear norm and smoothness of the low-rank part."""
        nuclear = float(low_rank.values.sum())
        if self.smoothness is None:
            return nuclear
        # The right factor is orthonormal, so the left one is enough.
        return nuclear + self.smoothness.value(low_rank.left)

    def _graph_force(self, low_rank: LowRank) -> Array | None:
        """Gradient of the smooth term, as the left factor that belongs to the same right one."""
        if self.smoothness is None:
            return None
        return np.asarray(self.smoothness.gradient(low_rank.left), dtype=self.dtype)

    def step(
        self, low_rank: LowRank, penalty: float, decay: float, relaxation: float
    ) -> tuple[float, float, float]:
        """Update ``A``; return primal residual, norm of the multipliers, and the loss."""
        by_row = (decay, *self.loss.dual_map(1 / penalty))
        numbers: tuple[float, ...] = (self.loss.threshold, self.loss.curvature)
        state = [self.A]
        kernel, graph_force = compiled(printed_step), self._graph_force(low_rank)
        if self.dual is not None:
            state.append(self.dual)
        else:
            kernel, numbers = compiled(residual_step), (relaxation, *numbers)
        settings = [np.full(self.tile_rows, number, self.dtype) for number in by_row]
        settings += [self.dtype.type(number) for number in numbers]
        anderson = self.anderson if self.accelerated else None
        n_products = anderson.memory if anderson is not None else 0
        self.threshold.start_pass(self.A)
        arrays = [*state, self.data, low_rank.left, self.threshold.images]
        arrays += anderson.arrays if anderson is not None else []

        def work(lane: int) -> tuple[Array, Array]:
            total, sums = np.zeros(3), np.zeros((self.tile_rows, 3))
            products = np.zeros((2, n_products))
            buffer = np.empty((self.tile_rows, self.X.shape[1]), self.dtype)
            for place in each(self.lanes[lane], *arrays):
                tile = self.A[place]
                before = tile.copy() if anderson is not None else None
                low = low_rank.dense(place, out=buffer[: len(tile)])
                if graph_force is not None:
                    # The residual part has to balance the gradient of the smooth term as well.
                    force = (graph_force[place] / self.dtype.type(penalty)) @ low_rank.right
                    tile += force / self.dtype.type(decay)
                tiles = [array[place] for array in state]
                kernel(self.data[place], *tiles, low, *settings, sums)
                if graph_force is not None:
                    tile -= force
                total += sums[: len(tile)].sum(axis=0)
                if anderson is None:
                    self.threshold.multiply_tile(lane, place, tile)
                else:
                    products += anderson.record(place, tile - before)
            return total, products

        parts = self.pool.map(work, range(len(self.lanes)))
        primal, dual, value = np.sum([part[0] for part in parts], axis=0).tolist()
        if anderson is not None:
            products = np.sum([part[1] for part in parts], axis=0)
            self._accelerate(anderson, products, np.sqrt(primal))
        return float(np.sqrt(primal)), float(np.sqrt(dual)), self.loss.weight * value

    def _accelerate(self, anderson: Anderson, products: Array, length: float) -> None:
        """Go on from the combination of the last matrices that has the shortest step."""
        anderson.combine(products, length)

        def work(lane: int) -> None:
            for place in each(self.lanes[lane], self.A, self.threshold.images, *anderson.arrays):
                tile = self.A[place]
                anderson.move(place, tile)
                self.threshold.multiply_tile(lane, place, tile)

        self.pool.map(work, range(len(self.lanes)))
        anderson.moved()

    def gap(
        self, low_rank: LowRank, penalty: float, at_most: float, enough: float = np.inf
    ) -> tuple[Certificate, Array]:
        """Both parts and the duality gap, or a lower bound of it that is above ``at_most``.

        If the gap is more than ``enough``, multipliers are made to agree with both parts. The
        second result are the multipliers that prove the gap, if it is no more than that.
        """
        dual = empty_beside(self.A)
        sparse_part, inner, *sums = self.extract(low_rank, penalty, dual)
        found = self._bound(dual, low_rank, at_most, inner, *sums)
        if found > enough:
            # Among entries that are right up to rounding errors it may lead away from the proof.
            inner = self._completed(dual, low_rank)
            found = min(found, self._bound(dual, low_rank, at_most, inner, *sums))
        return Certificate(low_rank, sparse_part, found), dual

    def _bound(
        self, dual: Array, low_rank: LowRank, at_most: float, inner: float, *sums: float
    ) -> float:
        """The gap that multipliers prove, or a lower bound of it that is above ``at_most``."""
        found = self._gap(low_rank, 1.0, inner, *sums)
        # The norm costs as much as some passes; a part of it may be enough to see that the gap
        # is too large.
        for norm in self._norms(dual, low_rank):
            if found > at_most:
                break
            found = max(found, self._gap(low_rank, norm, inner, *sums))
        return found

    def certify(self, low_rank: LowRank, penalty: float, enough: float = np.inf) -> Certificate:
        """Both parts and the duality gap; afterwards ``A`` holds the multipliers.

        If the gap is more than ``enough``, multipliers are made to agree with both parts.
        """
        sparse_part, inner, *sums = self.extract(low_rank, penalty, self.A)
        found = self._gap(low_rank, max(self._norms(self.A, low_rank)), inner, *sums)
        if found > enough:
            inner = self._completed(self.A, low_rank)
            norm = max(self._norms(self.A, low_rank))
            found = min(found, self._gap(low_rank, norm, inner, *sums))
        return Certificate(low_rank, sparse_part, found)

    def _completed(self, dual: Array, low_rank: LowRank) -> float:
        """Make multipliers agree with both parts; returns their inner product with the data."""
        completed(dual, self.data, low_rank, self.loss.weight, self.pool)
        places = each(row_tiles(dual.shape), self.data, dual)
        return sum(inner_product(self.data[place], dual[place]) for place in places)

    def _norms(self, dual: Array, low_rank: LowRank) -> Iterator[float]:
        """Lower bounds of the spectral norm of the multipliers; the largest is accurate.

        All singular values that belong to the low-rank part are close to one, and no vector
        iteration can tell which of them is the largest: its row space is taken as a whole, with
        directions that are about to enter it. Others are left to Lanczos steps, which may miss
        some digits where singular values lie close together, unless a side is short.
        """
        block = self.threshold.block
        if block is None:
            yield short_side_norm(dual, self.pool)
            return
        near = low_rank.right if len(block) < low_rank.rank else block
        yield restricted_norm(dual, near.astype(dual.dtype, copy=False), self.pool)
        if self.threshold.short <= SMALL_SIDE:
            yield short_side_norm(dual, self.pool)
        else:
            yield spectral_norm(dual, self.pool, NORM_STEPS)

    def _gap(
        self, low_rank: LowRank, norm: float, inner: float, squares: float, value: float
    ) -> float:
        """The gap, from the sums of `extract_tile` and the spectral norm of the multipliers."""
        cost = self.cost(low_rank)
        smooth = cost - float(low_rank.values.sum())
        # Multipliers and gradients, made feasible by scaling, bound the objective from below.
        # The norm is accurate to many digits, but approximated from below.
        scale = max(1.0, norm)
        bound = inner / scale - (self.loss.conjugate(squares) + smooth) / scale**2
        total = cost + self.loss.weight * value
        return max(total - bound, 0.0) / max(abs(total), TINY)

    def extract(
        self, low_rank: LowRank, penalty: float, out: Array
    ) -> tuple[Any, float, float, float]:
        """Sparse part and the sums of `extract_tile`; the multipliers are written to ``out``."""
        slope, bound = self.loss.dual_map(1 / penalty)
        numbers = (slope, bound, self.loss.threshold, self.loss.curvature, penalty)
        settings = [self.dtype.type(number) for number in numbers]
        kernel, graph_force = compiled(extract_tile), self._graph_force(low_rank)
        size = self.tile_rows * self.X.shape[1]

        def work(lane: int) -> tuple[EntryList, Array]:
            columns, entries = np.empty(size, np.int32), np.empty(size, self.dtype)
            found, sums = EntryList(self.X, self.X.dtype), np.zeros(3)
            for place in each(self.lanes[lane], self.A, self.data, out, low_rank.left):
                tile, low = self.A[place].copy(), low_rank.dense(place)
                if graph_force is not None:
                    force = graph_force[place] @ low_rank.right
                    tile += force / self.dtype.type(penalty)
                counts = np.empty(len(tile), np.int64)
                n, *products = kernel(
                    self.data[place], tile, low, *settings, counts, columns, entries
                )
                if graph_force is not None:
                    tile -= force
                out[place] = tile
                sums += products
                if self.listed:
                    found.append(entries[:n], columns[:n], counts)
            return found, sums

        parts = self.pool.map(work, range(len(self.lanes)))
        lists = [found for found, _ in parts]
        sparse_part = joined(lists, self.X) if self.listed else None
        return sparse_part, *np.sum([sums for _, sums in parts], axis=0).tolist()
