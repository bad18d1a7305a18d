"""Splitting loops for low rank + sparse decompositions: ADMM, inexact ALM, projections.

All minimise a nuclear norm plus a loss of the residual entries plus, perhaps, smooth terms of
the low-rank part, which enter by their gradients. One loop serves; only its schedule of
penalties differs between a method that reaches the optimum (fixed in the end) and one that
hurries (growing).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.svt import TILE_ROWS, LowRank, SingularThreshold, lanes, spectral_norm
from robustpca.engine.threads import Crew, compiled
from robustpca.parts.entry_losses import EntryLoss, SmoothTerm

# Iterations without a smaller residual after which single precision is at its end.
PATIENCE = 15
# When to see whether the residual still falls, and else to certify the gap, which costs as much
# as a few iterations.
LOOKS = range(60, 1_000_000, 20)


class Schedule(Protocol):
    """How the penalty moves; single precision serves until the change is ``single_until``."""

    relaxation: float
    exact: bool
    single_until: float

    def start(self, X: Array, loss: EntryLoss, crew: Crew) -> tuple[float, Array]:
        """First penalty, and first matrix to lower the singular values of."""

    def change(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        """Factor on the penalty, from the primal residual and how far the low rank moved."""

    def judge(self, iteration: int, excess: float) -> None:
        """Be told that the residual falls slowly, and how many times too large the gap is."""


class Balanced:
    """A penalty that is balanced at first and then fixed: the loop reaches the optimum.

    The best penalty depends on how small the noise is besides the gross errors, which is not
    known beforehand. It is moved until the low-rank part and the multipliers travel equally
    far in each iteration. A ``penalty`` that is given, from an earlier fit, stays as it is.
    """

    relaxation = 1.8
    exact = True
    single_until = 1e-4
    first, every = 10, 5
    # Multipliers may be right from the start, and noise may be as small as rounding error; the
    # penalty does not follow either to the end.
    narrow, wide = 64.0, 4096.0

    def __init__(self, penalty: float | None = None) -> None:
        self.penalty, self.total = penalty, 1.0
        self.last, self.highest, self.judged = 120, self.narrow, False

    def start(self, X: Array, loss: EntryLoss, crew: Crew) -> tuple[float, Array]:
        self.total, self.last, self.highest, self.judged = 1.0, 120, self.narrow, False
        size = max(mean_size(X), np.finfo(float).tiny)
        return self.penalty or 1 / (4 * size), filled(X.copy())

    def change(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        # How far the low-rank part moved is not known for nothing.
        early = self.first <= iteration <= self.last and iteration % self.every == 0
        if not early or self.penalty is not None:
            return 1.0
        step, travelled = self.relaxation * primal, moved()
        # A step is shared out between the two at right angles.
        rest = np.sqrt(max(step**2 - travelled**2, 0.0))
        wanted = np.sqrt(rest / max(travelled, 1e-3 * step)) if step > 0 else 1.0
        least, most = 1 / (self.narrow * self.total), self.highest / self.total
        least, most = max(0.25, least), min(4.0, most)
        factor = min(max(float(wanted), least), most)
        if 1 / 1.3 < factor < 1.3:
            return 1.0
        self.total *= factor
        return factor

    def judge(self, iteration: int, excess: float) -> None:
        # Decided once: a gap that is nearly small enough needs no other penalty.
        if iteration >= self.last and not self.judged:
            self.judged = True
            if excess > 10:
                self.highest, self.last = self.wide, iteration + 60


class Growing:
    """A penalty that grows by ``rate`` each time: fast on data that are exactly low rank + sparse.

    The multipliers freeze before they are right when there is noise, so the loop may end near
    the optimum and not at it.
    """

    relaxation = 1.0
    exact = False
    single_until = 1e-5

    def __init__(self, rate: float = 1.5) -> None:
        self.rate = rate

    def start(self, X: Array, loss: EntryLoss, crew: Crew) -> tuple[float, Array]:
        norm = max(spectral_norm(X, crew, 6), np.finfo(float).tiny)
        largest = largest_entry(X)
        penalty = 1.25 / norm
        slope, bound = loss.dual_map(1 / penalty)
        # One step for the sparse part from a zero low-rank part and scaled data as multipliers.
        stretch = slope * (1 + 1 / (penalty * max(norm, largest / loss.weight)))
        A = filled(X * X.dtype.type(stretch))
        np.clip(A, -bound, bound, out=A)
        self.room = 1e7
        return penalty, A

    def change(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        factor = min(self.rate, self.room)
        self.room /= factor
        return factor

    def judge(self, iteration: int, excess: float) -> None:
        pass


@dataclass(frozen=True)
class Split:
    """Where a splitting loop ended; ``multipliers`` belong to the nuclear norm."""

    low_rank: LowRank
    sparse: Any
    objective: Array
    n_iter: int
    converged: bool
    change: float
    gap: float
    penalty: float
    multipliers: Array

    def start(self) -> Array:
        """Where a loop for nearly the same problem may start."""
        return self.low_rank.dense() + self.multipliers / self.penalty


@dataclass(frozen=True)
class Certificate:
    """A low-rank part, the sparse part, and by which share of itself the objective may fall."""

    low_rank: LowRank
    sparse: Any
    gap: float


def update(
    X: Array,
    A: Array,
    L: Array,
    decay: Array,
    slope: Array,
    bound: Array,
    relaxation: float,
    knee: float,
    curvature: float,
    sums: Array,
) -> None:
    """Kernel: the step of the residual part and of its multipliers, on a tile.

    ``A - L`` are the scaled multipliers; ``decay``, ``slope`` and ``bound`` hold a number for
    each row. Each row of ``sums`` gets the squared norms of the primal residual and of the new
    multipliers, and the loss of ``X - L``.
    """
    zero = relaxation - relaxation  # of the same precision as the rest
    for i in range(X.shape[0]):
        primal = dual = value = zero
        shrunk, rise, most = decay[i], slope[i], bound[i]
        for j in range(X.shape[1]):
            low = L[i, j]
            old = (A[i, j] - low) * shrunk
            error = X[i, j] - low
            new = min(max(rise * (error + old), -most), most)
            size = abs(error)
            flat = min(size, knee)
            cost = size - flat + curvature * flat * flat
            if error != error:  # a missing entry: no force, no cost
                new = zero
                cost = zero
            step = new - old
            A[i, j] = low + old + relaxation * step
            primal += step * step
            dual += new * new
            value += cost
        sums[i, 0] = primal
        sums[i, 1] = dual
        sums[i, 2] = value


def harvest(
    X: Array,
    A: Array,
    L: Array,
    slope: float,
    bound: float,
    knee: float,
    curvature: float,
    penalty: float,
    counts: Array,
    columns: Array,
    entries: Array,
) -> tuple[int, float, float, float]:
    """Kernel: turn a tile of ``A`` into multipliers and list the sparse entries of its rows.

    Returns the number of entries, the inner product of data and multipliers, the squared norm
    of the multipliers, and the loss of ``X - L``.
    """
    zero = slope - slope
    found, inner, squares, value = 0, 0.0, 0.0, 0.0
    for i in range(X.shape[0]):
        first = found
        for j in range(X.shape[1]):
            error = X[i, j] - L[i, j]
            if error != error:
                A[i, j] = zero
                continue
            push = error + (A[i, j] - L[i, j])
            force = min(max(slope * push, -bound), bound)
            flat = min(abs(error), knee)
            value += abs(error) - flat + curvature * flat * flat
            rest = push - force
            rest -= min(max(rest, -knee), knee)
            dual = penalty * force
            A[i, j] = dual
            inner += X[i, j] * dual
            squares += dual * dual
            if rest != zero:
                columns[found] = j
                entries[found] = rest
                found += 1
        counts[i] = found - first
    return found, inner, squares, value


class Splitting:
    """The state of the loop: data, and the matrix ``A`` whose singular values are lowered.

    What remains of ``A`` after the low-rank part is taken away are its multipliers over the
    penalty, so neither these nor the sparse part are stored.
    """

    def __init__(self, X: Array, loss: EntryLoss, terms: Sequence[SmoothTerm], crew: Crew) -> None:
        self.X, self.loss, self.terms, self.crew = X, loss, terms, crew
        self.lanes = lanes(X.shape[0])
        self.shrink = SingularThreshold(X.shape, crew)
        self.norm = 0.0
        self.lipschitz = sum(term.lipschitz for term in terms)

    def begin(self, data: Array, A: Array) -> None:
        """Start, or go on in another precision."""
        self.data, self.A, self.dtype = data, A, A.dtype
        self.shrink.look(A)

    def lowered(self, penalty: float) -> LowRank:
        """The low-rank part: ``A`` with lowered singular values."""
        return self.shrink.solve(self.A, 1 / penalty)

    def pull(self, low_rank: LowRank) -> Array | None:
        """Gradient of the terms, as the left factor that belongs to the same right one."""
        if not self.terms:
            return None
        gradients = [term.gradient(low_rank.left) for term in self.terms]
        return np.asarray(sum(gradients), dtype=self.dtype)

    def cost(self, low_rank: LowRank) -> float:
        """Nuclear norm and terms; these see the left factor, as the right one is orthonormal."""
        smooth = sum(term.value(low_rank.left) for term in self.terms)
        return float(low_rank.values.sum()) + smooth

    def sweep(
        self, low_rank: LowRank, penalty: float, decay: float, relaxation: float
    ) -> tuple[float, float, float]:
        """Move ``A``; return primal residual, norm of the multipliers, and the loss."""
        rows = (decay, *self.loss.dual_map(1 / penalty))
        numbers = (relaxation, self.loss.knee, self.loss.curvature)
        settings = [np.full(TILE_ROWS, number, self.dtype) for number in rows]
        settings += [self.dtype.type(number) for number in numbers]
        kernel, pull = compiled(update), self.pull(low_rank)
        self.shrink.begin(self.dtype)

        def work(lane: int) -> Array:
            total, sums = np.zeros(3), np.zeros((TILE_ROWS, 3))
            buffer = np.empty((TILE_ROWS, self.X.shape[1]), self.dtype)
            for place in self.lanes[lane]:
                tile = self.A[place]
                low = low_rank.dense(place, out=buffer[: len(tile)])
                if pull is not None:
                    # The residual part has to bear the gradient of the terms as well.
                    force = (pull[place] / self.dtype.type(penalty)) @ low_rank.right
                    tile += force / self.dtype.type(decay)
                kernel(self.data[place], tile, low, *settings, sums)
                if pull is not None:
                    tile -= force
                total += sums[: len(tile)].sum(axis=0)
                self.shrink.see(lane, place, tile)
            return total

        sums = np.sum(self.crew.each(work, range(len(self.lanes))), axis=0)
        primal, dual, value = sums.tolist()
        return float(np.sqrt(primal)), float(np.sqrt(dual)), self.loss.weight * value

    def certify(self, penalty: float, n_steps: int) -> Certificate:
        """Both parts and the gap; afterwards ``A`` holds the multipliers."""
        low_rank = self.lowered(penalty)
        found, cost, bound = self.harvest(low_rank, penalty, n_steps)
        # The bound rests on a norm that is good to many digits, but comes from below.
        gap = max(cost - bound, 0.0) / max(abs(cost), np.finfo(float).tiny)
        return Certificate(low_rank, found, gap)

    def resume(self, low_rank: LowRank, penalty: float) -> None:
        """Go on after `certify`, as after an iteration without relaxation."""
        for lane in self.lanes:
            for place in lane:
                self.A[place] = low_rank.dense(place) + self.A[place] / self.dtype.type(penalty)
        self.shrink.look(self.A)

    def harvest(self, low_rank: LowRank, penalty: float, n_steps: int) -> tuple[Any, float, float]:
        """Sparse part, objective and a lower bound of it; ``A`` becomes the multipliers."""
        numbers = (*self.loss.dual_map(1 / penalty), self.loss.knee, self.loss.curvature, penalty)
        settings = [self.dtype.type(number) for number in numbers]
        kernel, pull = compiled(harvest), self.pull(low_rank)
        size = TILE_ROWS * self.X.shape[1]

        def work(lane: int) -> tuple[list[Array], list[Array], Array, Array]:
            columns, entries = np.empty(size, np.int32), np.empty(size, self.dtype)
            counts, sums = [], np.zeros(3)
            found: tuple[list[Array], list[Array]] = ([], [])
            for place in self.lanes[lane]:
                tile, low = self.A[place], low_rank.dense(place)
                if pull is not None:
                    force = pull[place] @ low_rank.right
                    tile += force / self.dtype.type(penalty)
                counts.append(np.empty(len(tile), np.int64))
                n, *products = kernel(
                    self.data[place], tile, low, *settings, counts[-1], columns, entries
                )
                if pull is not None:
                    tile -= force
                sums += products
                found[0].append(columns[:n].copy())
                found[1].append(entries[:n].astype(self.X.dtype))
            return *found, np.concatenate(counts), sums

        parts = self.crew.each(work, range(len(self.lanes)))
        columns = np.concatenate([piece for part in parts for piece in part[0]])
        entries = np.concatenate([piece for part in parts for piece in part[1]])
        starts = np.concatenate([[0], np.cumsum(np.concatenate([part[2] for part in parts]))])
        found = sparse.csr_array((entries, columns, starts), shape=self.X.shape)
        inner, squares, value = np.sum([part[3] for part in parts], axis=0).tolist()
        cost = self.cost(low_rank)
        smooth = cost - float(low_rank.values.sum())
        # Multipliers and gradients, made feasible by scaling, bound the objective from below.
        scale = max(1.0, spectral_norm(self.A, self.crew, n_steps))
        bound = inner / scale - (self.loss.conjugate_of(squares) + smooth) / scale**2
        return found, cost + self.loss.weight * value, bound


def observed_norm(X: Array) -> float:
    """Frobenius norm of the entries that are there."""
    squares = _squares(X)
    if not np.isfinite(squares):
        tiles = (X[place] for lane in lanes(X.shape[0]) for place in lane)
        squares = sum(np.nansum(np.square(tile, dtype=np.float64)) for tile in tiles)
    return float(np.sqrt(squares))


def largest_entry(X: Array) -> float:
    """Largest magnitude among the entries that are there."""
    return max(float(np.nanmax(X)), -float(np.nanmin(X)))


def mean_size(X: Array) -> float:
    """Mean magnitude of the entries that are there, from some of them, the largest clipped."""
    sizes = np.abs(X.ravel()[:: max(1, X.size // 100_000)])
    # A few entries may be larger than all the others together.
    usual = 100 * float(np.nanmedian(sizes))
    return float(np.nanmean(np.minimum(sizes, usual) if usual > 0 else np.abs(X)))


def within_reach(X: Array) -> Array:
    """The data, but entries beyond twenty times the mean size, which cannot but be wrong, cut.

    A start or a stopping rule that followed such an entry would not see the others.
    """
    most = 20 * mean_size(X)
    return X if largest_entry(X) <= most else np.clip(X, -most, most)


def filled(A: Array) -> Array:
    """The same array, with zeros written where entries are missing."""
    np.copyto(A, 0, where=np.isnan(A))
    return A


def _squares(A: Array) -> float:
    return float(np.einsum("ij,ij->", A, A, dtype=np.float64))


def split(
    X: Array,
    loss: EntryLoss,
    terms: Sequence[SmoothTerm] = (),
    *,
    schedule: Schedule,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
    start: Array | None = None,
) -> Split:
    """Minimise ``||L||_* + loss(X - L) + sum of the terms of L``; NaN entries are missing.

    The low-rank part is exact for its multipliers at every iteration and the residual part for
    its own, so the primal residual is all that is wrong: the loop ends when it is below ``tol``
    times the norm of the data and, with a schedule that is exact, of the multipliers. Where noise
    is tiny, multipliers take long to settle though the objective has: a loop whose residual falls
    slowly also ends when the certified gap is below ``tol``.

    Without terms this is Douglas-Rachford splitting, another name of the two-block ADMM; with
    them it is the three-operator splitting of Davis and Yin, which asks for a penalty of more
    than half the Lipschitz constant of their gradients.
    """
    tiny = np.finfo(float).tiny
    with Crew() as crew:
        loop = Splitting(X, loss, terms, crew)
        least = 0.55 * loop.lipschitz
        # A start that is nearly right has digits which single precision does not.
        rough = start is None and _single_precision_will_do(X)
        dtype = np.float32 if rough else np.float64
        data = X.astype(np.float32, copy=False) if dtype == np.float32 else X
        # Entries that cannot but be wrong start in the sparse part: getting there takes long.
        tame = within_reach(data)
        loop.norm = observed_norm(tame)
        penalty, first = schedule.start(tame, loss, crew)
        penalty = max(penalty, least)
        loop.begin(data, (first if start is None else start.copy()).astype(dtype, copy=False))
        if start is not None:
            loop.shrink.warm(loop.A, 1 / penalty)
        tiles = [data[place] for lane in loop.lanes for place in lane]
        objective = [sum(loss.value(tile) for tile in tiles)]
        del first, tame, data, tiles
        low_rank, change, converged = LowRank.zeros(X.shape, loop.dtype), np.inf, False
        primal, best, since, iteration = np.inf, np.inf, 0, 0
        certificate: Certificate | None = None
        mark = np.inf
        while iteration < max_iter and not converged:
            iteration += 1
            previous, low_rank = low_rank, loop.lowered(penalty)
            wanted = schedule.change(iteration, primal, partial(low_rank.distance, previous))
            factor = max(wanted, least / penalty)
            penalty *= factor
            relaxation = min(schedule.relaxation, 0.98 * (2 - loop.lipschitz / (2 * penalty)))
            primal, dual, cost = loop.sweep(low_rank, penalty, 1 / factor, relaxation)
            change = primal / max(loop.norm, tiny)
            if schedule.exact:
                change = max(change, primal / max(dual, tiny))
            objective.append(cost + loop.cost(low_rank))
            callback(Progress(iteration, objective[-1], change, rank=low_rank.rank))
            best, since = (change, 0) if change < 0.9 * best else (best, since + 1)
            converged = change <= tol and (loop.dtype == np.float64 or tol >= schedule.single_until)
            done = change <= max(tol, schedule.single_until) or since >= PATIENCE
            if loop.dtype == np.float32 and done and not converged:
                loop.data = X
                loop.begin(X, loop.A.astype(np.float64))
            elif schedule.exact and iteration in LOOKS and not converged:
                slow, mark = change > 0.5 * mark, change
                certificate = loop.certify(penalty, 40) if slow else None
                if certificate is not None:
                    converged = bool(certificate.gap <= tol)
                    if not converged:
                        loop.resume(certificate.low_rank, penalty)
                        schedule.judge(iteration, certificate.gap / max(tol, tiny))
                        certificate = None
        if certificate is None:
            certificate = loop.certify(penalty, 40 if schedule.exact else 12)
        return Split(
            certificate.low_rank.astype(X.dtype),
            certificate.sparse,
            np.array(objective),
            iteration,
            converged,
            change,
            certificate.gap,
            penalty,
            loop.A,
        )


def _single_precision_will_do(X: Array) -> bool:
    """Whether squares of the entries, and of what is added up, are far from overflow."""
    return 1e-12 < largest_entry(X) < 1e12
