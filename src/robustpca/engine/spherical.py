"""Directions of the rows from a point: their principal axes, and the geometric median.

Both are found in a `View` of the data, which is expanded along the leading axes of the
directions, and by what still pulls the point.
"""

import numpy as np
from scipy import linalg

from robustpca.engine.blocks import DenseBlock, WideBlock, cached_rows, slices
from robustpca.engine.linalg import Array, principal_axes, root_between, square_norms
from robustpca.engine.rows import Rows
from robustpca.engine.view import View

# With so few features no basis is needed.
FEW_FEATURES = 64
# Rows to take a point among the data from; wide rows are expensive.
FEW_ROWS = 5
# Angles in which axes count as known.
AXES_TOL = {"float64": 1e-10, "float32": 1e-6}
# Steps of Newton's method within a view, and expansions of a view.
MAX_STEPS, MAX_EXPANSIONS = 100, 60


def near_rows(rows: Rows) -> Rows:
    """The rows, centred among them, with the fastest products that are exact enough."""
    return rows.median_centred(FEW_ROWS, WideBlock)


class RowDirections:
    """Directions of all rows from the point of a view.

    Parameters
    ----------
    rows : Rows
        The data, centred where the point starts.
    max_width : int, default=48
        Most directions that the basis of the view may have; then the leading ones are retained.

    Attributes
    ----------
    view : View
        Coordinates of the rows, and the point.
    support : ndarray of shape (n_samples,)
        Rows that count for the axes; all of them to begin with.
    """

    def __init__(self, rows: Rows, max_width: int = 48) -> None:
        self.view, self.max_width = View(rows), max_width
        self.support = np.ones(rows.shape[0], dtype=bool)
        self.needs_basis = rows.shape[1] > FEW_FEATURES

    def lengths(self) -> Array:
        """Distance of each row from the point."""
        return np.sqrt(self.view.square_lengths())

    def inverse_lengths(self) -> Array:
        """One over the lengths; 0 for rows at the point, which have no direction."""
        return directed(self.lengths(), self.view.rows.floor)[1]

    def initialise(self, width: int, rng: np.random.Generator) -> None:
        """Begin the basis with random combinations of the directions."""
        if not self.needs_basis:
            return
        signs = rng.standard_normal((len(self.support), width))
        signs *= self.inverse_lengths()[:, None]
        if not self.expand(self.view.rows.adjoint(signs)):
            # All rows are the same: any direction will do.
            self.expand(np.eye(self.view.rows.shape[1], 1))

    def axes(self) -> tuple[Array, Array]:
        """Principal values and axes of the directions, in the coordinates of the view."""
        weights = self.support * self.inverse_lengths() ** 2
        return principal_axes(self.view.coordinates.sum("weighted_gram", along=(weights,))[1])

    def images(self, axes: Array, force: bool) -> Array:
        """Products of the directions with some axes, and the force on the point.

        The first is the sum of u u' times each axis, the second that of all u. Both lack a part
        that lies within the span of the basis.
        """
        inverse = self.inverse_lengths()[:, None]
        columns = [np.empty((len(inverse), 0))]
        if axes.shape[1]:
            scores = self.view.coordinates.map("project", axes)
            columns.append(scores * inverse**2 * self.support[:, None])
        if force:
            columns.append(inverse)
        return self.view.rows.adjoint(np.hstack(columns))

    def expand(self, images: Array) -> bool:
        """Add the span of ``images``, which are overwritten; false if it is in the basis."""
        view = self.view
        lengths = np.sqrt(square_norms(images.T))
        images /= np.where(lengths > 0, lengths, 1.0).astype(images.dtype)
        added = images
        least = 1e-12 if added.dtype == np.float32 else 1e-20
        for _ in range(3):
            added -= view.projection(added)
            values, vectors = linalg.eigh((added.T @ added).astype(np.float64))
            # What is left of a column within the span is rounding error.
            genuine = values > least
            added = added @ (vectors[:, genuine] / np.sqrt(values[genuine])).astype(added.dtype)
            least = 0.1
        width = view.codes.shape[1]
        added = added[:, : min(view.rows.shape) - width].astype(view.rows.dtype, copy=False)
        if not added.shape[1]:
            return False
        if width + added.shape[1] > self.max_width:
            leading = self.axes()[1][:, : self.max_width - added.shape[1]]
            view.restrict(leading.astype(view.rows.dtype))
        view.expand(added)
        return True


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
    directions: RowDirections,
    n_axes: int,
    n_expansions: int,
    *,
    n_converged: int = 0,
    tol: float | None = None,
    history: list[float] | None = None,
) -> float:
    """Expand the view along the leading axes of the directions of the rows.

    It is done ``n_expansions`` times, or until the first ``n_converged`` axes are known to about
    what rounding allows. With ``tol``, the point moves to the geometric median meanwhile, and
    the view is expanded until the force on the point, the mean of the directions, is at most
    that. Each sum of distances is appended to ``history``. Returns the force that is left.
    """
    view = directions.view
    n_samples, force, stalls, angle = view.rows.shape[0], np.inf, 0, np.inf
    history = [] if history is None else history
    for done in range(n_expansions + MAX_EXPANSIONS):
        inside, held = (0.0, 0) if tol is None else descend(view, tol, history)
        wanted = n_axes if done < n_expansions else 0
        if not directions.needs_basis or (tol is None and not wanted):
            return _excess(inside, held) / n_samples
        values, axes = directions.axes()
        images = directions.images(axes[:, :wanted], tol is not None)
        rest = np.sqrt(square_norms((images - view.projection(images)).T))
        if wanted:
            before, angle = angle, _angle(rest, values, n_converged)
            # An expansion lowers the error by as much as the last one did, or more.
            gain = angle / before if before < np.inf else 1.0
            if angle * min(1.0, gain) <= AXES_TOL[view.rows.dtype.name]:
                n_expansions = done + 1
        if tol is not None:
            previous, force = force, _excess(float(np.hypot(inside, rest[-1])), held) / n_samples
            stalls += force > 0.5 * previous
            if done >= n_expansions and (force <= tol or stalls > 3):
                return force
            lengths = directions.lengths()
            nearest = int(np.argmin(lengths))
            if lengths[nearest] < 0.1 * np.median(lengths):
                # The median may be at a sample, which shows only if that is within the span.
                images = np.hstack([images, view.rows.row(nearest)[:, None]])
        if not directions.expand(images):
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


def descend(view: View, tol: float, history: list[float]) -> tuple[float, int]:
    """Move the point of the view to where the sum of distances is least.

    Returns the force on it within the view, and the number of samples at the point.

    Newton's method with an exact search along each direction, so the sum never rises. Samples
    at the point hold it with a force of one each (Vardi and Zhang).
    """
    n_samples, tried = view.rows.shape[0], set[int]()
    size, here, floor = 0.0, 0, 0.0
    for _ in range(MAX_STEPS):
        lengths = np.sqrt(view.square_lengths())
        history.append(float(lengths.sum()))
        typical = float(np.median(lengths))
        # The typical length vanishes on the way to a point at which most rows are.
        floor = max(floor, view.rows.floor * typical)
        if typical == 0:
            return 0.0, n_samples
        here, pull, force, gram = view.coordinates.sum(_slopes, floor, along=(view.outside,))
        size = float(np.linalg.norm(force))
        if size <= max(here, tol * n_samples):
            break
        nearest = int(np.argmin(lengths))
        reachable = view.outside[nearest] <= floor**2 and lengths[nearest] < 0.1 * typical
        if reachable and nearest not in tried:
            tried.add(nearest)
            at = view.coordinates
            view.move(at.row(nearest))
            held, _, around, _ = view.coordinates.sum(_slopes, floor, along=(view.outside,))
            if np.linalg.norm(around) <= held:
                history.append(float(np.sqrt(view.square_lengths()).sum()))
                return float(np.linalg.norm(around)), held
            view.coordinates = at
        values, vectors = linalg.eigh(gram)
        stiffness = np.maximum(pull - values, 1e-12 * pull)
        direction = vectors @ ((vectors.T @ force) / stiffness)
        if direction @ force <= here * np.linalg.norm(direction):
            direction = force
        direction /= np.linalg.norm(direction)
        along = view.coordinates.map("project", direction[:, None])[:, 0].astype(np.float64)
        reach, before = _reach(along, lengths, 2 * size / pull), view.coordinates.center
        view.move(reach * direction)
        if reach <= 0 or np.array_equal(view.coordinates.center, before):
            break
    return size, here


def _slopes(block: DenseBlock, outside: Array, floor: float) -> tuple[int, float, Array, Array]:
    """Rows at the point; the pull, the force and the curvature of the others."""
    lengths = np.sqrt(block.square_norms() + outside)
    here = lengths <= floor
    pulls = np.where(here, 0.0, 1 / np.where(here, 1.0, lengths))
    force = block.adjoint(pulls[:, None])[:, 0]
    # Cubes in the unit of the largest, since those of small data overflow.
    unit = float(pulls.max(initial=0.0)) or 1.0
    curvature = block.weighted_gram((pulls / unit) ** 3)[1] * unit * unit * unit
    return int(here.sum()), float(pulls.sum()), force, curvature


def _reach(along: Array, lengths: Array, guess: float) -> float:
    """How far to go in a direction, given what each row is ahead, for the least distances."""
    across = np.sqrt(np.maximum(lengths**2 - along**2, 0.0))

    def slope(reach: float) -> float:
        total = 0.0
        # By parts that a cache holds: new memory for all rows would cost more than the arithmetic.
        for place in slices(len(along), cached_rows(4 * along.itemsize)):
            ahead = reach - along[place]
            away = np.hypot(ahead, across[place])
            total += float(np.sum(ahead / np.where(away > 0, away, 1.0)))
        return total

    if slope(0.0) >= 0:
        return 0.0
    while slope(guess) < 0:
        guess *= 2
    return root_between(slope, 0.0, guess, 1e-16 * guess)
