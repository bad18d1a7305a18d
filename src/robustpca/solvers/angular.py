"""Spherical PCA: the leading axes of the directions of the rows, some of them trimmed.

A row counts by its direction from the centre alone. This is one weighted fit with the centre
held and weights one over the squared lengths.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustpca.engine.blocks import DenseBlock, slices
from robustpca.engine.compact import inner_products
from robustpca.engine.linalg import Array, finite, orthonormal, principal_axes, square_norms
from robustpca.engine.progress import Callback, ClosedForm, Ending, ignore
from robustpca.engine.rows import Rows
from robustpca.engine.spherical import RowDirections, directed, explore, near_rows
from robustpca.engine.threads import ThreadPool
from robustpca.engine.view import View, square_distances
from robustpca.parts.centers import MEDIAN_TOL, geometric_median, remaining_force
from robustpca.solvers.directions import Average, Directions, RandomStart, Span, find_directions

# Axes beyond the components that a view is expanded along at a time.
MORE_AXES = 10
# Expansions of a view that serves to bound angles only.
FEW_EXPANSIONS = 2
# Angles this near to the largest one count as within it: rounding must not decide ties.
NEAR_TIE = 1e-9
# Bytes of the anchors that are compared with all rows at a time, as a share of the data.
GROUP_SHARE, GROUP_BYTES = 1 / 12, 1 << 24
# Anchors that are counted first, to have something to compare the others with.
FIRST_GROUP = 32
# Rows of a block that are compared with anchors at a time.
TALL = 256
# Entries of a tile of the bounds on all angles.
TILE = 1 << 19


@dataclass(frozen=True)
class Axes:
    """Leading axes of the directions, and where the rows are.

    ``values`` are the sums of squared cosines with each of the ``components`` (rows),
    ``residuals`` the squared distances of the rows to their span.
    """

    components: Array
    values: Array
    codes: Array
    residuals: Array


@dataclass(frozen=True)
class AngularSubspace:
    """Axes of the directions from a centre, and the rows that count (``support``).

    ``force`` is the length of the mean direction at the geometric median, as far as rows at that
    point do not balance it; None at other centres. Distances below ``floor`` are rounding error.
    ``ending`` tells of the passes, if there were any.
    """

    center: Array
    axes: Axes
    support: Array
    anchor: int | None
    force: float | None
    floor: float
    ending: Ending


def angular_subspace(
    rows: Rows,
    center: Array | None,
    n_components: int,
    *,
    exact: bool,
    max_angle: float,
    n_anchors: int | None,
    n_expansions: int,
    rng: np.random.Generator,
    report: Callable[[int, int], object],
    find_axes: Callable[[Rows, Array, int], tuple[Axes, Ending]] | None = None,
) -> AngularSubspace:
    """Maximise the squared cosines between the rows, taken from ``center``, and a subspace.

    A centre of None is the geometric median. Rows that are farther than ``max_angle`` from the
    best of ``n_anchors`` random rows (None for all rows) are left out; ``report`` receives how
    many anchors have been counted, and of how many. The eigenproblem is solved as it is if
    ``exact``, or by ``find_axes`` if given, such as `em_axes`; else in a random subspace that is
    expanded ``n_expansions`` times.
    """
    near, force, tol = near_rows(rows), None, None
    if center is None and not exact:
        # A view that is expanded anyway finds the geometric median on its way.
        tol = MEDIAN_TOL[rows.dtype.name]
    else:
        near = near.centred(geometric_median(rows) if center is None else center)
    # BLAS likes eight columns at a time, one of which may be the force on the centre.
    columns = -(-(n_components + MORE_AXES + 1) // 8) * 8
    width = columns if tol is None else columns - 1
    directions = RowDirections(near, 3 * columns)
    view, trims, anchor = directions.view, max_angle < np.pi / 2, None
    if trims or not exact:
        directions.initialise(width, rng)
        n_first = FEW_EXPANSIONS if trims else n_expansions
        force = explore(directions, width, n_first, n_converged=n_components, tol=tol)
    if trims:
        usable = np.flatnonzero(directed(directions.lengths(), view.rows.floor)[0])
        anchors = None
        if n_anchors is not None and n_anchors < len(usable):
            anchors = rng.choice(usable, n_anchors, replace=False)
        total = len(usable if anchors is None else anchors)
        found = trim(view, max_angle, anchors=anchors, report=lambda done: report(done, total))
        directions.support, anchor = found.support, found.anchor
    support = directions.support
    ending: Ending | None = None
    if not exact:
        if trims:
            explore(directions, width, n_expansions, n_converged=n_components)
        axes = view_axes(directions, n_components)
    else:
        weights = support * directions.inverse_lengths() ** 2
        if find_axes is None:
            axes = exact_axes(near, weights, n_components)
        else:
            axes, ending = find_axes(near, weights, n_components)
    if center is not None:
        force = None
    elif exact:
        pull, held = remaining_force(rows, near.center)
        force = 0.0 if pull <= held else pull / rows.shape[0]
    floor = view.rows.floor * float(np.median(directions.lengths()))
    ending = ending or ClosedForm(np.array([axes.values.sum()]))
    return AngularSubspace(view.point, axes, support, anchor, force, floor, ending)


def exact_axes(rows: Rows, weights: Array, n_components: int) -> Axes:
    """Solve the eigenproblem of the features, or of the samples if these are fewer."""
    n, d = rows.shape
    if d <= n:
        values, axes = principal_axes(rows.sum("weighted_gram", along=(weights,))[1])
        basis = axes[:, :n_components]
    else:
        roots = np.sqrt(weights)
        products = _products(rows.precise()) * np.outer(roots, roots)
        values, axes = principal_axes(products)
        # Directions without any variance are left to the factorisation.
        leading = axes[:, :n_components] * (values[:n_components] > 1e-12 * values[0])
        basis = orthonormal(rows.sum("adjoint", along=(roots[:, None] * leading,)))
    codes, norms = rows.map("coordinates", basis)
    residuals = square_distances(rows, codes, norms, basis)
    return Axes(basis.T, values[:n_components], codes, residuals)


def em_axes(
    rows: Rows,
    weights: Array,
    n_components: int,
    *,
    rng: Any,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
) -> tuple[Axes, Directions]:
    """Alternate least squares for the scores of the directions and for the axes.

    Both steps together replace the subspace by its image under the sum of u u', so that only
    products with the rows are needed, block by block, and the sum of squared cosines never falls.
    """
    found = find_directions(
        SquaredCosines(rows, weights),
        Span(),
        RandomStart(n_components, rng),
        1,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
    )
    codes, norms = rows.map("coordinates", found.directions)
    precise = codes.astype(np.float64)
    # A span has no axes of its own: take the principal ones within it.
    values, turn = principal_axes((weights[:, None] * precise).T @ precise)
    basis, codes = found.directions @ turn, codes @ turn.astype(codes.dtype)
    return Axes(basis.T, values, codes, square_distances(rows, codes, norms, basis)), found


class SquaredCosines(Average):
    """Sum over the rows of the squared scores of their directions.

    Parameters
    ----------
    rows : Rows
        The rows, centred.
    weights : ndarray of shape (n_samples,)
        One over the squared length of each row; 0 for those that do not count.
    """

    def __init__(self, rows: Rows, weights: Array) -> None:
        super().__init__(rows)
        self.weights = weights

    def _sum(self, W: Array) -> Array:
        return finite(self.rows.sum(_weighted_image, W, along=(self.weights,)))


def _weighted_image(block: DenseBlock, weights: Array, W: Array) -> Array:
    total = np.zeros(W.shape)
    start = 0
    for part in block.parts():
        here = weights[start : start + len(part), None]
        total += part.adjoint(here * part.project(W))
        start += len(part)
    return total


def _products(rows: Rows) -> Array:
    """Inner products of all centred rows."""
    n, d = rows.shape
    if rows.is_dense:
        products = np.tril(inner_products(rows))
        return products + np.tril(products, -1).T
    products = np.empty((n, n))
    for place in slices(n, max(1, GROUP_BYTES // (8 * d))):
        others = rows.block(place.start, place.stop).take(slice(None))
        products[:, place] = rows.map("project", others.T)
    return (products + products.T) / 2


def view_axes(directions: RowDirections, n_components: int) -> Axes:
    """Leading axes within a view that has been expanded along them."""
    view = directions.view
    values, axes = directions.axes()
    axes = axes[:, :n_components]
    missing = n_components - axes.shape[1]
    found = np.pad(view.directions(axes).astype(np.float64), ((0, 0), (0, missing)))
    basis = orthonormal(found)
    # The factorisation may turn an axis round.
    basis *= np.where(np.einsum("ij,ij->j", basis, found) < 0, -1.0, 1.0)
    codes = np.pad(view.coordinates.map("project", axes), ((0, 0), (0, missing)))
    values = np.pad(values[:n_components], (0, missing))
    rows = view.rows.centred(view.point)
    residuals = square_distances(rows, codes, directions.lengths() ** 2, basis)
    return Axes(basis.T, values, codes, residuals)


@dataclass(frozen=True)
class Trimming:
    """The rows within the largest angle of the ``anchor``, and how many anchors were counted."""

    anchor: int
    support: Array
    n_counted: int


def trim(
    view: View,
    max_angle: float,
    *,
    anchors: Array | None = None,
    report: Callable[[int], object] = lambda _: None,
) -> Trimming:
    """Find the row with the fewest others farther than ``max_angle`` from its line.

    Of rows with equally many, the one with the larger sum of absolute cosines with those it
    keeps wins, then the first. The result is that of counting all pairs in double precision.
    Bounds on all cosines come from the view, since what lies outside of it can change a cosine
    by no more than the product of the two lengths there. Rows that cannot win any more are not
    counted, and only what rounding could have decided is counted in double precision.

    ``anchors`` are the only rows to be considered, if given.
    """
    counter = Counter(view, float(np.cos(max_angle)) - NEAR_TIE)
    n_samples = len(counter.usable)
    if not counter.usable.any():
        return Trimming(-1, ~counter.usable, 0)
    if anchors is None:
        low, high, order = counter.bounds()
    else:
        low, high = np.full(n_samples, np.inf), np.full(n_samples, np.inf)
        low[anchors], high[anchors], order = 0, n_samples, np.zeros(n_samples)
    counted, size = np.zeros(n_samples, dtype=bool), FIRST_GROUP
    while True:
        contenders = low <= high.min()
        waiting = np.flatnonzero(contenders & ~counted)
        if not len(waiting) or np.count_nonzero(contenders) == 1:
            break
        if counted.any() and len(waiting) > n_samples / 2:
            # Each pair is counted once, while one by one it would be counted for both rows.
            low, high = counter.count_all(report)
            counted = counter.usable
            continue
        group = np.sort(waiting[np.argsort(order[waiting], kind="stable")[:size]])
        low[group], high[group] = counter.count(group)
        counted[group] = True
        report(int(np.count_nonzero(counted)))
        size = counter.group_size
    anchor = counter.best(np.flatnonzero(contenders))
    return Trimming(anchor, counter.within(anchor), int(np.count_nonzero(counted)))


class Counter:
    """Counts of rows that are far from the lines through others, with rounding bounded.

    Rows at the centre have no direction: they are not counted, and never trimmed.
    """

    def __init__(self, view: View, cosine: float) -> None:
        self.view, self.cosine = view, cosine
        # Counts do not depend on the blocks, and large products are faster than small ones.
        self.rows = rows = view.rows.centred(view.point).coarser(TALL)
        self.usable, self.inverse = directed(np.sqrt(rows.map("square_norms")), rows.floor)
        self.band = rows.cosine_errors(self.inverse)
        row_bytes = rows.shape[1] * rows.dtype.itemsize
        share = max(GROUP_BYTES, int(GROUP_SHARE * rows.shape[0] * row_bytes))
        self.group_size = max(FIRST_GROUP, share // row_bytes)

    @property
    def _along(self) -> tuple[Array, ...]:
        return self.usable, self.inverse, self.band

    def bounds(self) -> tuple[Array, Array, Array]:
        """Least and largest count that each row can have, and a guess."""
        view = self.view
        if view.basis is None:
            codes = view.coordinates.map("project", np.eye(self.rows.shape[1]))
        else:
            codes = view.codes - view.coordinates.center
        chosen = self.usable
        inverse = self.inverse[chosen]
        # Each coordinate may be wrong by that much.
        band = (np.sqrt(codes.shape[1]) + 1) * self.band[chosen]
        single = self.rows.dtype
        units = (codes[chosen] * inverse[:, None]).astype(single)
        outside = np.sqrt(view.outside[chosen] * inverse**2 + 2 * band).astype(single)
        band = (band + 2.0**-22 * (single == np.float32)).astype(single)

        def work(place: slice) -> Array:
            cosines = np.abs(units[place] @ units.T)
            slack = np.outer(outside[place], outside)
            slack += band[place, None]
            slack += band
            guess = np.count_nonzero(cosines < self.cosine, axis=1)
            high = np.count_nonzero(cosines - slack < self.cosine, axis=1)
            cosines += slack
            return np.array([np.count_nonzero(cosines < self.cosine, axis=1), high, guess])

        with ThreadPool() as pool:
            places = slices(len(units), max(1, TILE // len(units)))
            counts = np.hstack(pool.map(work, places))
        out = np.full((3, len(chosen)), np.inf)
        out[:, chosen] = counts
        return out[0], out[1], out[2]

    def count(self, group: Array) -> tuple[Array, Array]:
        """Least and largest count of some rows, from products with all rows."""
        units = self._units(self.rows, group)
        low, high = self.rows.sum(_count, units, self.cosine, along=self._along)
        return low, high

    def count_all(self, report: Callable[[int], object]) -> tuple[Array, Array]:
        """Least and largest count of all rows, from the product of each pair."""
        rows, counts = self.rows, np.zeros((len(self.usable), 2))
        # (x - m)'(y - m) is (x - m)'y less (x - m)'m, so y need not be centred.
        center = rows.operand_center
        shifts = rows.map("project", center[:, None])[:, 0]
        # Rounding of both rows, as lengths from the origin, as a product of one number for each.
        least = float(rows.cosine_errors(np.zeros(1))[0])
        doubts = np.sqrt(4 * least) * (1 + float(np.linalg.norm(center)) * self.inverse)
        along = (self.usable, self.inverse, doubts, shifts)
        for first, (start, stop) in enumerate(rows.bounds):
            others = rows.block(start, stop).operand()
            group = (self.inverse[start:stop], doubts[start:stop])
            ours, theirs = rows.map(
                _count_both, others, *group, self.cosine, along=along, first=first
            )
            counts[start:stop] += ours.reshape(-1, stop - start, 2).sum(axis=0)
            counts[stop:] += theirs[stop - start :]
            report(stop)
        counts[~self.usable] = np.inf
        return counts[:, 0], counts[:, 1]

    def best(self, contenders: Array) -> int:
        """The winner among rows whose counts rounding could not tell apart."""
        if len(contenders) == 1:
            return int(contenders[0])
        counts, sums, slack = self._in_groups(self.rows, contenders, _decide, self._along)
        sums[counts > counts.min()] = -np.inf
        tied = sums + slack >= np.max(sums - slack)
        if np.count_nonzero(tied) == 1:
            return int(contenders[np.argmax(tied)])
        contenders, exact = contenders[tied], self.rows.precise()
        inverse = directed(np.sqrt(exact.map("square_norms")), self.rows.floor)[1]
        (sums,) = self._in_groups(exact, contenders, _sum_kept, (self.usable, inverse))
        tied = sums >= sums.max() - NEAR_TIE * len(self.usable)
        return int(contenders[np.argmax(tied)])

    def _in_groups(
        self, rows: Rows, contenders: Array, function: Any, along: tuple[Array, ...]
    ) -> list[Array]:
        """Sums over all rows of a function of some directions, in double precision."""
        size = max(1, self.group_size // 2)
        results = []
        for place in slices(len(contenders), size):
            units = self._units(self.rows.precise(), contenders[place])
            results.append(rows.sum(function, units, self.cosine, along=along))
        return [np.concatenate(parts) for parts in zip(*results, strict=True)]

    def within(self, anchor: int) -> Array:
        """Rows within the largest angle of the anchor, and those without a direction."""
        unit = self.rows.precise().row(anchor)
        unit /= np.linalg.norm(unit)
        kept: Array = self.rows.map(_within, unit, self.cosine, along=self._along)
        return kept

    def _units(self, rows: Rows, group: Array) -> Array:
        chosen = np.zeros(len(self.usable), dtype=bool)
        chosen[group] = True
        units: Array = rows.map(_units, along=(chosen, self.usable))
        return units


def _units(block: Any, chosen: Array, usable: Array) -> Array:
    """Directions of the chosen rows."""
    units: Array = block.select(chosen).dense()
    lengths = np.sqrt(square_norms(units))
    scales = np.where(usable[chosen], 1 / np.where(lengths > 0, lengths, 1.0), 0.0)
    units *= scales[:, None].astype(units.dtype)
    return units


def _doubtless(
    block: Any, usable: Array, inverse: Array, band: Array, units: Array, cosine: float
) -> tuple[Array, Array]:
    """Pairs of rows and units that are surely far apart, and pairs that may be."""
    cosines = np.abs(block.project(units.T))
    limits = cosine / np.where(usable, inverse, 1.0)
    doubt = band / np.where(usable, inverse, 1.0)
    # Comparing products with a limit for each row saves dividing all of them.
    low = np.where(usable, limits - doubt, -1.0).astype(cosines.dtype)
    high = np.where(usable, limits + doubt, -1.0).astype(cosines.dtype)
    return cosines < low[:, None], cosines < high[:, None]


def _count(
    block: Any, usable: Array, inverse: Array, band: Array, units: Array, cosine: float
) -> tuple[Array, Array]:
    sure, possible = _doubtless(block, usable, inverse, band, units, cosine)
    return np.count_nonzero(sure, axis=0), np.count_nonzero(possible, axis=0)


def _count_both(
    block: Any,
    usable: Array,
    inverse: Array,
    doubts: Array,
    shifts: Array,
    others: Array,
    their_inverse: Array,
    their_doubts: Array,
    cosine: float,
) -> tuple[Array, Array]:
    """Far rows of each of the others, and far others of each row: at least and at most."""
    cosines = block.project(others.T)
    cosines -= shifts[:, None].astype(cosines.dtype)
    cosines *= inverse[:, None].astype(cosines.dtype)
    cosines *= their_inverse.astype(cosines.dtype)
    np.abs(cosines, out=cosines)
    doubt = np.outer(doubts, their_doubts).astype(cosines.dtype)
    both = usable[:, None] & (their_inverse > 0)
    far = [both & (cosines < cosine - doubt), both & (cosines < cosine + doubt)]
    ours, theirs = (
        np.column_stack([np.count_nonzero(pairs, axis=axis) for pairs in far]) for axis in (0, 1)
    )
    return ours, theirs


def _decide(
    block: Any, usable: Array, inverse: Array, band: Array, units: Array, cosine: float
) -> tuple[Array, Array, Array]:
    """Far rows of each unit, and the sum of absolute cosines with the others, give or take."""
    cosines = np.abs(block.project(units.T)).astype(np.float64) * inverse[:, None]
    near = np.abs(cosines - cosine) <= band[:, None]
    doubtful = np.flatnonzero(near.any(axis=1) & usable)
    rows = block.take(doubtful)
    lengths = np.sqrt(square_norms(rows))
    cosines[doubtful] = np.abs(rows @ units.T) / lengths[:, None]
    far = (cosines < cosine) & usable[:, None]
    kept = ~far & usable[:, None]
    sums = np.where(kept, cosines, 0.0).sum(axis=0)
    return np.count_nonzero(far, axis=0), sums, np.where(kept, band[:, None], 0.0).sum(axis=0)


def _sum_kept(
    block: Any, usable: Array, inverse: Array, units: Array, cosine: float
) -> tuple[Array]:
    """The sum of absolute cosines of each unit with the rows that are not far."""
    cosines = np.abs(block.project(units.T)[usable]) * inverse[usable, None]
    return (np.where(cosines < cosine, 0.0, cosines).sum(axis=0),)


def _within(
    block: Any, usable: Array, inverse: Array, band: Array, unit: Array, cosine: float
) -> Array:
    sure, possible = _doubtless(block, usable, inverse, band, unit[None], cosine)
    far = sure[:, 0]
    doubtful = np.flatnonzero(far != possible[:, 0])
    rows = block.take(doubtful)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    far[doubtful] = np.abs(rows @ unit) < cosine * lengths
    return ~far
