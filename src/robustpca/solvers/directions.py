"""Directions along which the data reach far: maximising a convex function pass by pass.

All methods here maximise a convex function of some directions, such as the sum of the absolute
scores, over a compact set, such as the unit sphere. A pass replaces the function by its tangent
at the present point and goes to the point of the set where the tangent is highest. A convex
function lies above its tangents, so it never falls.

What is special about a method is an *average*, which gives the tangent, and a *shape*, the set
that is maximised over. Components come one after the other, each in the space that the others
leave; or all in one stage, if the shape has several columns.
"""

import copy
import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from robustpca.engine.blocks import DenseBlock, cached_rows, slices
from robustpca.engine.checkpoint import followed
from robustpca.engine.linalg import Array, finite, orthonormal, principal_axes, square_norms
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.rows import Rows
from robustpca.engine.threads import ThreadPool
from robustpca.engine.trimmed_means import TrimmedMeans

# Turns of a direction, and scores of a unit sample, below which there is only rounding error.
ROUNDING = {"float64": 1e-12, "float32": 1e-6}
# Share by which entries may differ that count as equal: squares of less are rounding error.
TIED = 1e-7
# Powers of ten up to which a sum of powers can be told.
LARGEST_POWER = 290


class Average:
    """Centred rows as they are left after some directions were taken out of them.

    A subclass says how the rows are averaged: ``_sum(W)`` adds up, for each column of W, the
    rows times a factor that depends on their score. Directions are taken out by projection of
    W and of the sum, so the data stay as they are.

    Attributes
    ----------
    basis : ndarray of shape (n_features, n_directions)
        Orthonormal basis of the directions taken out.
    remaining : ndarray of shape (n_samples,)
        Squared norms of what is left of the rows.
    cycled : bool
        Whether the last gradient was one of the same stage before, though not of the last pass.
    """

    cycled: bool = False

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.rounding = ROUNDING[rows.dtype.name]
        self.basis = np.empty((rows.shape[1], 0))
        self.norms = self.remaining = finite(rows.map("square_norms"))

    @property
    def given(self) -> tuple[Any, ...]:
        """What no pass changes."""
        return (self.rows,)

    def _sum(self, W: Array) -> Array:
        raise NotImplementedError

    def gradient(self, W: Array) -> Array:
        """Gradient at W, a stack of matrices whose columns are directions."""
        side_by_side = np.concatenate(list(W), axis=1)
        gradients = self.deflated(self._sum(self.deflated(side_by_side)))
        return np.stack(np.split(gradients, len(W), axis=1))

    def deflated(self, W: Array) -> Array:
        """W without the directions that were taken out."""
        rest: Array = W - self.basis @ (self.basis.T @ W)
        return rest

    def other_gradient(self, W: Array, gradient: Array) -> Array | None:
        """Another gradient where there are several, or None."""
        return None

    def deflate(self, W: Array) -> None:
        """Take the columns of W out of the rows."""
        added = orthonormal(W, against=self.basis)
        self.basis = np.hstack([self.basis, added])
        taken = square_norms(self.rows.map("project", added))
        self.remaining = np.maximum(self.remaining - taken, 0.0)
        if self.remaining.max() < 1e-3 * self.norms.max():
            # So much was subtracted that few digits are left.
            self.remaining = self.rows.map(codes_and_rest, self.basis)[1]

    @property
    def exhausted(self) -> bool:
        """Whether only rounding error is left of the rows."""
        return bool(self.remaining.max() <= self.rows.floor**2 * self.norms.max())

    def samples(self, indices: Array) -> Array:
        """What is left of some rows, as columns."""
        return self.deflated(np.stack([self.rows.row(i) for i in indices]).T)

    def farthest(self, n_columns: int) -> Array:
        """The row of which most is left; then the next, without the first; and so on."""
        rest, picked = copy.copy(self), []
        for i in range(n_columns):
            picked.append(rest.samples(np.array([rest.remaining.argmax()])))
            if i + 1 < n_columns:
                Average.deflate(rest, picked[-1])
        return np.hstack(picked)

    def completion(self, n_columns: int) -> Array:
        """Directions to complete a basis with: what is left of the axes that are least in it."""
        order = np.argsort(square_norms(self.basis), kind="stable")[:n_columns]
        return self.deflated(np.eye(len(self.basis))[:, order])


class PowerSum(Average):
    """Sum over the rows of the absolute scores to the power ``p``, which is at least one.

    The sum is the inner product of W and its gradient, up to the factor p.
    """

    def __init__(self, rows: Rows, p: float) -> None:
        super().__init__(rows)
        self.p = float(p)
        # In units of the longest row no power is large.
        self.unit = float(np.sqrt(self.norms.max())) or 1.0 if p > 2 else 1.0
        if abs(self.p * np.log10(self.unit)) > LARGEST_POWER:
            raise ValueError(
                f"Rows of X are up to {self.unit:.0e} from the centre, and the power p={p} of that "
                f"overflows or vanishes: divide X by {self.unit:.0e}, or choose a lower p."
            )

    def _sum(self, W: Array) -> Array:
        sums = self.rows.sum(_power_gradient, W / self.unit, self.p)
        return finite(self.unit ** (self.p - 1) * sums)

    def other_gradient(self, W: Array, gradient: Array) -> Array | None:
        """Change the sign of a sample at right angles to a single direction, if there is one.

        At p = 1 such a sample may count with either sign. A direction that does not move with
        one sign does with the other, and the sum rises: no maximum has such samples.
        """
        if self.p > 1 or W.shape[1] > 1:
            return None
        codes = self.rows.map("project", self.deflated(W))[:, 0].astype(np.float64)
        flat = np.abs(codes) <= self.rounding * np.sqrt(self.remaining)
        flat &= self.remaining > self.rows.floor**2 * self.norms.max()
        if not flat.any():
            return None
        index = np.where(flat, self.remaining, 0.0).argmax()
        sign = -1.0 if codes[index] < 0 else 1.0
        return gradient - 2 * sign * self.samples(np.array([index]))


def _power_gradient(block: DenseBlock, W: Array, p: float) -> Array:
    total = np.zeros(W.shape)
    for part in block.parts():
        total += part.adjoint(_slopes(part.project(W), p))
    return total


def _slopes(codes: Array, p: float) -> Array:
    if p == 1:
        one = codes.dtype.type(1)
        return np.where(codes < 0, -one, one)
    return codes if p == 2 else np.copysign(np.abs(codes) ** (p - 1), codes)


class TrimmedSum(Average):
    """Number of rows times the trimmed mean of their entries, each row with its score's sign.

    Without trimming it is `PowerSum` with p = 1. With it nothing is maximised, and passes may
    go round in circles. All rows are held in memory, turned so that a feature is contiguous.
    """

    def __init__(self, rows: Rows, trim: float, pool: ThreadPool) -> None:
        super().__init__(rows)
        self.pool = pool
        self.features = np.ascontiguousarray(rows.map("dense").T)
        self.means = TrimmedMeans(self.features, trim, pool)
        self.patterns: list[bytes] = []

    @property
    def given(self) -> tuple[Any, ...]:
        return self.rows, self.pool

    def _sum(self, W: Array) -> Array:
        negative = self._scores(W) < 0
        # Not `hash`, which is another one in every process.
        pattern = hashlib.blake2b(np.packbits(negative).tobytes()).digest()
        self.cycled = pattern in self.patterns[:-1] and pattern != self.patterns[-1]
        self.patterns.append(pattern)
        signs = np.where(negative, -1.0, 1.0)
        return len(self.remaining) * np.column_stack([self.means(row) for row in signs])

    def _scores(self, W: Array) -> Array:
        turned = W.T.astype(self.features.dtype)
        places = slices(self.rows.shape[0], -(-self.rows.shape[0] // 4))
        return np.hstack(self.pool.map(lambda place: turned @ self.features[:, place], places))

    def deflate(self, W: Array) -> None:
        """Take the columns of W out of the rows; trimming needs their entries as they are left."""
        n_before = self.basis.shape[1]
        super().deflate(W)
        added = self.basis[:, n_before:].astype(self.features.dtype)
        scores = self._scores(added)
        n_features, n_samples = self.features.shape
        for place in slices(n_features, cached_rows(n_samples * scores.itemsize, at_least=1)):
            self.features[place] -= added[place] @ scores
        self.patterns, self.cycled = [], False


class Shape(Protocol):
    """A set of directions, given as stacks of matrices of shape (n_features, n_columns)."""

    def maximise(self, gradients: Array) -> Array:
        """The points of the set where the inner products with the gradients are largest."""

    def change(self, old: Array, new: Array) -> Array:
        """Sine of the largest angle between two points, for each pair."""


class Sphere:
    """Unit vectors; columns are on their own."""

    def maximise(self, gradients: Array) -> Array:
        """Gradients of unit length."""
        unit: Array = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
        return unit

    def change(self, old: Array, new: Array) -> Array:
        """Sine of the largest angle between two columns."""
        along = np.sum(old * new, axis=1, keepdims=True)
        sines: Array = np.linalg.norm(new - along * old, axis=1)
        return sines.max(axis=1)


class Frames(Sphere):
    """Orthonormal columns, each of which matters."""

    def maximise(self, gradients: Array) -> Array:
        """Orthonormal polar factors."""
        left, _, right = np.linalg.svd(gradients, full_matrices=False)
        frames: Array = left @ right
        return frames


class Span(Sphere):
    """Subspaces, given by orthonormal columns."""

    def maximise(self, gradients: Array) -> Array:
        """Orthonormal bases of the columns."""
        bases: Array = np.linalg.qr(gradients)[0]
        return bases

    def change(self, old: Array, new: Array) -> Array:
        """Sine of the largest principal angle."""
        rest = new - old @ (np.swapaxes(old, 1, 2) @ new)
        sines: Array = np.linalg.norm(rest, 2, axis=(1, 2))
        return sines


@dataclass(frozen=True)
class SparseSphere(Sphere):
    """Unit vectors with at most ``n_nonzero`` entries that are not zero."""

    n_nonzero: int

    def maximise(self, gradients: Array) -> Array:
        """The largest entries, the first ones of a tie, at unit length."""
        order = np.argsort(-np.abs(gradients), axis=1, kind="stable")[:, : self.n_nonzero]
        largest = np.zeros_like(gradients)
        np.put_along_axis(largest, order, np.take_along_axis(gradients, order, axis=1), axis=1)
        return super().maximise(largest)


@dataclass(frozen=True)
class BoundedSphere(Sphere):
    """Unit vectors whose absolute entries sum to at most ``bound``, which is at least one."""

    bound: float

    def maximise(self, gradients: Array) -> Array:
        """Entries moved towards zero until the bound holds, at unit length."""
        return super().maximise(np.apply_along_axis(self._shrunk, 1, gradients))

    def _shrunk(self, gradient: Array) -> Array:
        sizes = -np.sort(-np.abs(gradient))
        counts, sums, squares = np.arange(1, len(sizes) + 1), np.cumsum(sizes), np.cumsum(sizes**2)
        # Sum over norm of the entries when the threshold is at each of the sizes.
        above = sums - counts * sizes
        norms = np.sqrt(np.maximum(squares - 2 * sizes * sums + counts * sizes**2, 0.0))
        fits = above <= self.bound * norms
        if sums[-1] <= self.bound * np.sqrt(squares[-1]):
            return gradient
        tied = np.flatnonzero(np.abs(gradient) >= (1 - TIED) * sizes[0])
        if len(tied) >= self.bound**2:
            return self._at_ties(np.sign(gradient), tied)
        # The threshold lies below the last size that fits; k entries are above it, and
        # (sum - k t)^2 = bound^2 (squares - 2 t sum + k t^2) gives t.
        k = int(np.flatnonzero(fits)[-1]) + 1
        total, square = sums[k - 1], squares[k - 1]
        spread = max(square / k - (total / k) ** 2, 0.0)
        threshold = total / k - self.bound * np.sqrt(spread / (k - self.bound**2))
        shrunk: Array = np.sign(gradient) * np.maximum(np.abs(gradient) - threshold, 0.0)
        return shrunk

    def _at_ties(self, signs: Array, tied: Array) -> Array:
        """The bound is reached among equal entries: one large, and as few others as suffice."""
        n_others = int(np.ceil(self.bound**2)) - 1
        root = np.sqrt(n_others * (n_others + 1 - self.bound**2))
        one = (self.bound + root) / (n_others + 1)
        sizes = np.zeros_like(signs)
        sizes[tied[: n_others + 1]] = (self.bound - one) / max(n_others, 1)
        sizes[tied[0]] = one
        return sizes * signs


@dataclass(frozen=True)
class Start:
    """Where a stage starts: a stack of matrices of shape (n_features, n_columns).

    The first start is the farthest sample or, given some principal ``axes`` as columns as long
    as their deviations, the leading one of what is left of them. Others are random samples.
    """

    n_columns: int
    axes: Array | None = None
    n_init: int = 1
    rng: Any = None

    def __call__(self, average: Average) -> Array:
        """Starts in what is left of the data; they need not be in any set."""
        if self.axes is None:
            first = average.farthest(self.n_columns)
        else:
            # Not by singular values, whose search has failed where those left are tiny.
            left = average.deflated(self.axes)
            first = principal_axes(left @ left.T)[1][:, : self.n_columns]
        usable = np.flatnonzero(average.remaining > average.rows.floor**2 * average.norms.max())
        drawn = [
            average.samples(self.rng.choice(usable, self.n_columns)) for _ in range(self.n_init - 1)
        ]
        return np.stack([first, *drawn])


@dataclass(frozen=True)
class RandomStart:
    """Start with directions that know nothing of the data."""

    n_columns: int
    rng: Any

    def __call__(self, average: Average) -> Array:
        """One start."""
        return self.rng.normal(size=(1, average.rows.shape[1], self.n_columns))


@dataclass(frozen=True)
class Directions:
    """Where the loop ended: directions as columns, and an orthonormal basis of their span.

    The basis has the span of the first k directions in its first k columns.
    """

    directions: Array
    basis: Array
    objective: Array
    n_iter: int
    converged: bool
    cycled: bool
    change: float


def find_directions(
    average: Average,
    shape: Shape,
    start: Start | RandomStart,
    n_stages: int,
    *,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
) -> Directions:
    """Maximise over the shape, stage by stage, each in the space that the ones before leave.

    A stage runs all its starts side by side until none of them turns by more than ``tol``, or
    for ``max_iter`` passes, and the highest is taken. The objective is the sum of all stages so
    far.
    """
    tol, at = max(tol, average.rounding), _Position()
    drawing = getattr(start, "rng", None)
    with followed(at, average, drawing, given=average.given) as between_passes:
        while len(at.found) < n_stages:
            if at.stage is None:
                at.stage = _Stage.begun(average, shape, start, max_iter)
                at.history = at.history or [float(at.stage.values.max())]
            while at.stage.n_left > 0:
                between_passes()
                at.stage.advance(average, shape, tol)
                at.n_iter += 1
                at.history.append(at.reached + float(at.stage.values.max()))
                stage = len(at.found) + 1
                callback(Progress(at.n_iter, at.history[-1], at.stage.change, stage=stage))
                at.stage.decide(average)
            value, directions = at.stage.best()
            at.found.append(directions)
            at.reached += value
            at.worst = max(at.worst, at.stage.change)
            at.cycled, at.stage = at.cycled or average.cycled, None
            average.deflate(directions)
    objective = np.array(at.history)
    return Directions(
        np.hstack(at.found),
        average.basis,
        objective,
        at.n_iter,
        at.worst <= tol,
        at.cycled,
        at.worst,
    )


@dataclass
class _Stage:
    """The starts of one stage, side by side: where they are, and what is known there.

    Some of them are ``moving``; at most ``n_left`` passes are still to come. A maximum at or below
    the ``barrier`` has been left once for another gradient.
    """

    W: Array
    gradients: Array
    values: Array
    n_left: int
    change: float = 0.0
    barrier: float = -np.inf
    moving: bool = True

    @classmethod
    def begun(
        cls, average: Average, shape: Shape, start: Start | RandomStart, max_iter: int
    ) -> "_Stage":
        """The starts."""
        # Nothing is left to be done where nothing is left of the data.
        begin = np.zeros((1, 1, 1)) if average.exhausted else start(average)
        done = not begin.any(axis=(1, 2)).all()
        W = shape.maximise(average.completion(start.n_columns)[None] if done else begin)
        gradients = average.gradient(W)
        return cls(W, gradients, np.sum(W * gradients, axis=(1, 2)), 0 if done else max_iter)

    def advance(self, average: Average, shape: Shape, tol: float) -> None:
        """One pass."""
        moved = shape.maximise(_steadied(self.gradients, self.W, average.rounding))
        changes = shape.change(self.W, moved)
        self.change = float(changes.max())
        moving = changes > tol
        self.moving, self.n_left = bool(moving.any()), self.n_left - 1
        if self.moving:
            self.W[moving] = moved[moving]
            self.gradients[moving] = average.gradient(self.W[moving])
            self.values = np.sum(self.W * self.gradients, axis=(1, 2))

    def decide(self, average: Average) -> None:
        """End the stage, unless something moves or another gradient leads on."""
        if average.cycled:
            self.n_left = 0
        elif not self.moving:
            best = int(self.values.argmax())
            other = average.other_gradient(self.W[best], self.gradients[best])
            if other is None or self.values[best] <= self.barrier:
                self.n_left = 0
            else:
                self.gradients[best] = other
                self.barrier = self.values[best] * (1 + average.rounding)

    def best(self) -> tuple[float, Array]:
        """The highest value, and its directions from the most to the least important one."""
        best = int(self.values.argmax())
        W, gradients = self.W[best], self.gradients[best]
        order = np.argsort(-np.sum(W * gradients, axis=0), kind="stable")
        return float(self.values[best]), W[:, order]


@dataclass
class _Position:
    """What passes and stages change beside the average."""

    found: list[Array] = field(default_factory=list)
    history: list[float] = field(default_factory=list)
    stage: _Stage | None = None
    n_iter: int = 0
    reached: float = 0.0
    worst: float = 0.0
    cycled: bool = False


def _steadied(gradients: Array, W: Array, share: float) -> Array:
    """Pulls of size one with a slight gradient to stay, which decides where there is no other."""
    sizes = np.abs(gradients).max(axis=(1, 2), keepdims=True)
    return gradients / np.where(sizes > 0, sizes, 1.0) + share * W


def codes_and_rest(block: DenseBlock, basis: Array) -> tuple[Array, Array]:
    """Scores of the rows along a basis, and their squared distances from its span."""
    codes, norms = block.coordinates(basis)
    return codes, np.maximum(block.square_distances(codes, norms, basis), 0.0)
