"""A view of the rows that grows, and the point of least distances seen in it.

Many features cost much to look at. A `View` keeps the coordinates of all rows in a few dozen
directions and their squared distance from what these describe, so distances from any point of
the view are exact and cheap. Each widening takes two passes over the data.
"""

from collections.abc import Iterator

import numpy as np
from scipy import linalg
from scipy.optimize import brentq

from robustpca.engine.compact import coordinate_rows
from robustpca.engine.linalg import (
    Array,
    DenseBlock,
    NearBlock,
    finite,
    principal_axes,
    square_norms,
)
from robustpca.engine.rows import Rows

# Products of this many features at a time are left to the BLAS kernels for small matrices.
FEATURES = 1024
# Largest term of a sum over blocks.
TERM_BYTES = 1 << 21
# With so few features the view is the data themselves.
FEW_FEATURES = 64
# Rows to take a point among the data from; wide rows are expensive.
FEW_ROWS = 5
# Angles in which axes count as settled.
SETTLED = {"float64": 1e-10, "float32": 1e-6}
# Steps of Newton's method within a view, and widenings of a view.
MAX_STEPS, MAX_WIDENINGS = 100, 60


class WideBlock(NearBlock):
    """Wide rows near the origin, multiplied some features at a time.

    For large matrices BLAS first copies the rows, which costs more than a product with a few
    directions; its kernels for small matrices read them where they are.
    """

    def _parts(self, n_columns: int, first: int, last: int) -> Iterator[slice]:
        # The kernels are for products of about a million multiplications; with many columns the
        # copy costs little, and what counts is that sums are short.
        step = min(FEATURES, max(256, 600_000 // (len(self) * n_columns)))
        step = step if n_columns <= 32 else 4 * FEATURES
        return (slice(at, min(at + step, last)) for at in range(first, last, step))

    def project(self, basis: Array) -> Array:
        basis = np.asarray(basis, self.dtype)
        codes = np.zeros((len(self), basis.shape[1]), self.dtype)
        for part in self._parts(basis.shape[1], 0, len(basis)):
            codes += self.block[:, part] @ basis[part]
        codes -= self.center @ basis
        return codes

    def adjoint(self, A: Array) -> Array:
        out = self.uncentred_adjoint(A, 0, self.block.shape[1])
        return out - np.outer(self.center, A.sum(axis=0)).astype(self.dtype)

    def uncentred_adjoint(self, A: Array, first: int, last: int) -> Array:
        """What `adjoint` would be at a centre of zero, for some of the features."""
        turned = np.ascontiguousarray(A.T, self.dtype)
        out = np.empty((len(turned), last - first), self.dtype)
        for part in self._parts(len(turned), first, last):
            place = slice(part.start - first, part.stop - first)
            np.matmul(turned, self.block[:, part], out=out[:, place])
        return out.T

    def square_norms(self) -> Array:
        out, step = np.zeros(len(self)), 4 * FEATURES
        scratch = np.empty((len(self), step), self.dtype)
        for at in range(0, self.block.shape[1], step):
            part = self.block[:, at : at + step]
            tile = scratch[:, : part.shape[1]]
            np.subtract(part, self.center[at : at + step], out=tile)
            out += np.einsum("ij,ij->i", tile, tile)
        return out


def near_rows(rows: Rows) -> Rows:
    """The rows, seen from a point among them, with the fastest products that are exact enough."""
    near = rows.settled(FEW_ROWS)
    if near.block_kind is NearBlock:
        near.block_kind = WideBlock
    return near


def adjoint(rows: Rows, A: Array) -> Array:
    """Sum over all centred rows of each row times the same row of ``A``."""
    if not issubclass(rows.block_kind, WideBlock):
        total: Array = rows.sum("adjoint", along=(A,))
        return total
    # A sum has several terms at a time in memory; wide ones are added up part by part.
    d, n_columns = rows.shape[1], A.shape[1]
    step = max(FEATURES, TERM_BYTES // (n_columns * rows.dtype.itemsize * FEATURES) * FEATURES)
    out = np.empty((n_columns, d), rows.dtype)
    for first in range(0, d, step):
        last = min(first + step, d)
        out[:, first:last] = rows.sum("uncentred_adjoint", first, last, along=(A,)).T
    # The centre is the same for all rows, so one correction does.
    for column, weight in zip(out, A.sum(axis=0, dtype=np.float64), strict=True):
        column -= (weight * rows.center).astype(out.dtype)
    return out.T


class View:
    """Coordinates of all rows in a growing basis, and a point that moves within.

    Parameters
    ----------
    rows : Rows
        The data, seen from where the point starts.
    widest : int, default=48
        Directions that the view has at most; then the leading ones are kept.

    Attributes
    ----------
    seen : Rows
        Coordinates of the rows, centred at the point.
    outside : ndarray of shape (n_samples,)
        Squared distance of each row from the view.
    support : ndarray of shape (n_samples,)
        Rows that count for the axes; all of them to begin with.
    """

    def __init__(self, rows: Rows, widest: int = 48) -> None:
        self.widest = widest
        self.support = np.ones(rows.shape[0], dtype=bool)
        self.rows, self.norms = rows, finite(rows.map("square_norms"))
        self.basis: Array | None = None
        self.whole = rows.shape[1] <= FEW_FEATURES
        self.seen, self.outside = rows, np.zeros(len(self.norms))
        # What rounding does to single coordinates averages out, but not what it does to sums.
        self.codes: Array = np.empty((len(self.norms), 0))

    @property
    def point(self) -> Array:
        """The point, in the features of the data."""
        if self.basis is None:
            return self.seen.center
        return self.rows.center + self.basis @ self.seen.center.astype(self.basis.dtype)

    def lengths(self) -> Array:
        """Distance of each row from the point."""
        if self.basis is None and not self.whole:
            return np.sqrt(self.norms)
        return np.sqrt(self.seen.map("square_norms") + self.outside)

    def inverse_lengths(self) -> Array:
        """One over the lengths; 0 for rows at the point, which have no direction."""
        return directed(self.lengths(), self.rows.floor)[1]

    def start(self, width: int, rng: np.random.Generator) -> None:
        """Open the view at random combinations of the directions of the rows."""
        if self.whole:
            return
        signs = rng.standard_normal((len(self.norms), width))
        signs *= self.inverse_lengths()[:, None]
        if not self.widen(adjoint(self.rows, signs)):
            # All rows are the same: any direction will do.
            self.widen(np.eye(self.rows.shape[1], 1))

    def axes(self) -> tuple[Array, Array]:
        """Principal values and axes of the directions of the rows, within the view."""
        weights = self.support * self.inverse_lengths() ** 2
        return principal_axes(self.seen.sum("weighted_gram", along=(weights,))[1])

    def images(self, axes: Array, force: bool) -> Array:
        """What the directions of the rows make of some axes, and what pulls the point.

        The first is the sum of u u' times each axis, the second that of all u. Both come short
        of a part that lies within the view.
        """
        inverse = self.inverse_lengths()[:, None]
        columns = [np.empty((len(inverse), 0))]
        if axes.shape[1]:
            scores = self.seen.map("project", axes)
            columns.append(scores * inverse**2 * self.support[:, None])
        if force:
            columns.append(inverse)
        return adjoint(self.rows, np.hstack(columns))

    def beyond(self, A: Array) -> Array:
        """The part of the columns of ``A`` that is orthogonal to the view."""
        return A if self.basis is None else A - self.basis @ (self.basis.T @ A)

    def widen(self, images: Array) -> bool:
        """Add the span of ``images``, which are overwritten; false if the view holds it already."""
        lengths = np.sqrt(square_norms(images.T))
        images /= np.where(lengths > 0, lengths, 1.0).astype(images.dtype)
        added = images
        least = 1e-12 if added.dtype == np.float32 else 1e-20
        for _ in range(3):
            if self.basis is not None:
                added -= self.basis @ (self.basis.T @ added)
            values, vectors = linalg.eigh((added.T @ added).astype(np.float64))
            # What is left of a column within the view is rounding error.
            kept = values > least
            added = added @ (vectors[:, kept] / np.sqrt(values[kept])).astype(added.dtype)
            least = 0.1
        room = min(self.rows.shape) - self.codes.shape[1]
        added = added[:, :room].astype(self.rows.dtype, copy=False)
        if not added.shape[1]:
            return False
        if self.codes.shape[1] + added.shape[1] > self.widest:
            self._narrow(self.widest - added.shape[1])
        self._see(np.hstack([self.codes, self.rows.map("project", added)]), added)
        return True

    def _see(self, codes: Array, added: Array) -> None:
        center = np.zeros(codes.shape[1])
        if self.basis is not None:
            center[: self.basis.shape[1]] = self.seen.center
        self.basis = added if self.basis is None else np.hstack([self.basis, added])
        self.codes = codes
        self.seen = coordinate_rows(codes).centred(center)
        self._measure_outside()

    def _narrow(self, width: int) -> None:
        """Keep the leading axes only, and look from the point."""
        assert self.basis is not None
        leading = self.axes()[1][:, :width].astype(self.rows.dtype)
        point = self.point
        self.norms = self.seen.map("square_norms") + self.outside
        self.codes = np.ascontiguousarray(self.seen.map("project", leading))
        self.rows = self.rows.centred(point)
        self.basis = self.basis @ leading
        self.seen = coordinate_rows(self.codes)
        self._measure_outside()

    def _measure_outside(self) -> None:
        assert self.basis is not None
        self.outside = square_distances(self.rows, self.codes, self.norms, self.basis)


def square_distances(rows: Rows, codes: Array, norms: Array, basis: Array) -> Array:
    """Squared distance of each row from the span of ``basis``, given its coordinates there."""
    distances = norms - square_norms(codes)
    if (distances < 1e-3 * norms).any():
        # So much cancels that the differences themselves are measured.
        distances = rows.map("square_distances", basis, along=(codes, norms))
    return np.maximum(distances, 0.0)


def directed(lengths: Array, floor: float) -> tuple[Array, Array]:
    """Which rows are away from the centre, and the inverse of their lengths; 0 for the others.

    A row within rounding error of the centre, as compared with half of the others, has no
    direction. Compared with the farthest, one gross outlier could make all others vanish.
    """
    away = lengths[lengths > 0]
    typical = float(np.median(away)) if len(away) else 0.0
    mask = lengths > floor * typical
    return mask, np.where(mask, 1 / np.where(mask, lengths, 1.0), 0.0)


def explore(
    view: View,
    n_axes: int,
    n_widenings: int,
    *,
    n_settled: int = 0,
    tol: float | None = None,
    watch: list[float] | None = None,
) -> float:
    """Widen the view along the leading axes of the directions of the rows.

    It is done ``n_widenings`` times, or until the first ``n_settled`` axes are known to about
    what rounding allows. With ``tol``, the point moves to the geometric median meanwhile, and the
    view is widened until the force on the point, the mean of the directions, is at most that.
    Each sum of distances is appended to ``watch``. Returns the force that is left.
    """
    n_samples, force, stalls, angle = len(view.norms), np.inf, 0, np.inf
    watch = [] if watch is None else watch
    for done in range(n_widenings + MAX_WIDENINGS):
        inside, held = (0.0, 0) if tol is None else descend(view, tol, watch)
        wanted = n_axes if done < n_widenings else 0
        if view.whole or (tol is None and not wanted):
            return _excess(inside, held) / n_samples
        values, axes = view.axes()
        images = view.images(axes[:, :wanted], tol is not None)
        rest = np.sqrt(square_norms(view.beyond(images).T))
        if wanted:
            before, angle = angle, _angle(rest, values, n_settled)
            # A widening lowers the error by as much as the last one did, or more.
            gain = angle / before if before < np.inf else 1.0
            if angle * min(1.0, gain) <= SETTLED[view.rows.dtype.name]:
                n_widenings = done + 1
        if tol is not None:
            previous, force = force, _excess(float(np.hypot(inside, rest[-1])), held) / n_samples
            stalls += force > 0.5 * previous
            if done >= n_widenings and (force <= tol or stalls > 3):
                return force
            lengths = view.lengths()
            nearest = int(np.argmin(lengths))
            if lengths[nearest] < 0.1 * np.median(lengths):
                # The median may stand on a sample, which the view can only say if it holds it.
                images = np.hstack([images, row(view.rows, nearest)[:, None]])
        if not view.widen(images):
            return 0.0 if tol is None else force
    return force


def _angle(rest: Array, values: Array, n_axes: int) -> float:
    """Bound on the angle by which the leading axes are off, given what is left of their images.

    Its sine is at most the remainder over the distance to the other eigenvalues.
    """
    if not 0 < n_axes < len(values):
        return np.inf
    gaps = values[:n_axes] - values[n_axes]
    return float(np.max(rest[:n_axes] / np.maximum(gaps, np.finfo(np.float64).tiny)))


def _excess(force: float, held: int) -> float:
    """A force that the samples at the point can hold moves nothing."""
    return 0.0 if force <= held else force


def row(rows: Rows, index: int) -> Array:
    """One row in double precision, centred."""
    block = rows.block_kind(rows.read(index, index + 1), rows.center, rows.dtype)
    taken: Array = block.take(np.array([0]))
    return taken[0]


def descend(view: View, tol: float, watch: list[float]) -> tuple[float, int]:
    """Move the point of the view to where the sum of distances is least.

    Returns the force on it within the view, and the number of samples that it stands on.

    Newton's method with an exact search along each direction, so the sum never rises. Where
    the point stands on samples, these hold it with a force of one each (Vardi and Zhang).
    """
    n_samples, tried = len(view.norms), set[int]()
    size, here = 0.0, 0
    for _ in range(MAX_STEPS):
        lengths = view.lengths()
        watch.append(float(lengths.sum()))
        typical = float(np.median(lengths))
        floor = view.rows.floor * typical
        if typical == 0:
            return 0.0, n_samples
        here, pull, force, gram = view.seen.sum(_slopes, floor, along=(view.outside,))
        size = float(np.linalg.norm(force))
        if size <= max(here, tol * n_samples):
            break
        nearest = int(np.argmin(lengths))
        reachable = view.outside[nearest] <= floor**2 and lengths[nearest] < 0.1 * typical
        if reachable and nearest not in tried:
            tried.add(nearest)
            seen = view.seen.centred(view.seen.center + row(view.seen, nearest))
            held, _, around, _ = seen.sum(_slopes, floor, along=(view.outside,))
            if np.linalg.norm(around) <= held:
                view.seen = seen
                watch.append(float(view.lengths().sum()))
                return float(np.linalg.norm(around)), held
        values, vectors = linalg.eigh(gram)
        stiffness = np.maximum(pull - values, 1e-12 * pull)
        direction = vectors @ ((vectors.T @ force) / stiffness)
        if direction @ force <= here * np.linalg.norm(direction):
            direction = force
        direction /= np.linalg.norm(direction)
        along = view.seen.map("project", direction[:, None])[:, 0].astype(np.float64)
        reach = _reach(along, lengths, 2 * size / pull)
        before = view.seen
        view.seen = before.centred(before.center + reach * direction)
        if reach <= 0 or np.array_equal(view.seen.center, before.center):
            break
    return size, here


def _slopes(block: DenseBlock, outside: Array, floor: float) -> tuple[int, float, Array, Array]:
    """Rows at the point; the pull, the force and the curvature of the others."""
    lengths = np.sqrt(block.square_norms() + outside)
    here = lengths <= floor
    pulls = np.where(here, 0.0, 1 / np.where(here, 1.0, lengths))
    force = block.adjoint(pulls[:, None])[:, 0]
    return int(here.sum()), float(pulls.sum()), force, block.weighted_gram(pulls**3)[1]


def _reach(along: Array, lengths: Array, guess: float) -> float:
    """How far to go in a direction, given what each row is ahead, for the least distances."""
    across = np.sqrt(np.maximum(lengths**2 - along**2, 0.0))

    def slope(reach: float) -> float:
        ahead = reach - along
        away = np.hypot(ahead, across)
        return float(np.sum(ahead / np.where(away > 0, away, 1.0)))

    if slope(0.0) >= 0:
        return 0.0
    while slope(guess) < 0:
        guess *= 2
    return float(brentq(slope, 0.0, guess, xtol=1e-16 * guess, rtol=1e-15))
