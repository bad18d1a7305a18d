"""Robust starts: which samples to trust before anything has been fitted."""

from dataclasses import dataclass

import numpy as np

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.linalg import (
    QUARTILE,
    Array,
    bulk,
    median,
    medians,
    principal_axes,
    square_norms,
)
from robustpca.engine.rows import ArrayRows, Rows

N_DIRECTIONS = 250
# Medians along a direction need no more rows than this to be good to two digits.
N_SAMPLE = 1000
# Rivals are fitted to so many rows, or so many for each component if that is more, along so many
# leading directions beside the components. Fewer rows than these are no sample to judge by.
N_ROWS, ROWS_PER_COMPONENT, N_BESIDE, FEWEST_ROWS = 300, 8, 10, 50
# Directions within a subspace along which rows are judged.
N_WITHIN = 50
# Every fit is repeated with the share of the rows that are nearest to it.
KEPT = 0.75
# Gross outliers are so many times as far as the typical row, and by so many spreads. No more than
# this share of the rows may lie between a half and three halves of that distance.
GROSS, FAR, AT_EDGE = 4.0, 8.0, 0.05
# Distances that differ by less, relative to the typical one, are equal.
EQUAL = 1e-6
# Directions that differ by less than this sine are the same. Most rows must be nearer to a rival
# by this factor along all others.
TURNED, NEARER = 0.25, 2.0


def trusted_half(
    rows: Rows,
    outside: Array,
    rng: np.random.RandomState,
    n_directions: int = N_DIRECTIONS,
) -> Array:
    """Weights 1 for the half of the rows with the least outlyingness, 0 for the others.

    Parameters
    ----------
    rows : Rows
        Coordinates of the samples.
    outside : ndarray of shape (n_samples,)
        Squared distance of each sample from the space that the coordinates describe.
    rng : RandomState
        Draws the directions.
    n_directions : int, default=250
        Number of directions.
    """
    far = outlyingness(rows, outside, rng, n_directions)
    half = np.partition(far, (len(far) - 1) // 2)[(len(far) - 1) // 2]
    return (far <= half).astype(np.float64)


def outlyingness(
    rows: Rows,
    outside: Array,
    rng: np.random.RandomState,
    n_directions: int = N_DIRECTIONS,
) -> Array:
    """Stahel-Donoho outlyingness over directions through pairs of samples.

    The largest distance from the median, in units of the median absolute deviation, along any
    of the directions and in the distance from the space of the coordinates. A cloud of far
    outliers that drags every average along cannot move medians while it is a minority.
    """
    n = rows.shape[0]
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.choice(n, size=min(n, N_SAMPLE), replace=False)] = True
    sample = rows.map("take", along=(chosen,))
    first, second = rng.randint(len(sample), size=(2, n_directions))
    directions = (sample[first] - sample[second]).T
    lengths = np.linalg.norm(directions, axis=0)
    directions = directions[:, lengths > 0] / lengths[lengths > 0]
    # One row for each direction: medians of contiguous numbers take a third of the time.
    scores = np.ascontiguousarray((sample @ directions).T)
    location = medians(scores)
    spread = medians(np.abs(scores - location[:, None]))
    useful = spread > 1e-12 * max(float(spread.max(initial=0.0)), np.finfo(np.float64).tiny)
    far = np.zeros(n)
    if useful.any():
        directions, location, spread = directions[:, useful], location[useful], spread[useful]
        far = rows.map(_largest, directions / spread, location / spread)
    distances = np.sqrt(np.maximum(outside, 0.0))
    middle = median(distances[chosen])
    deviation = median(np.abs(distances[chosen] - middle))
    if deviation > 0:
        far = np.maximum(far, (distances - middle) / deviation)
    return far


def challenged(
    rows: Rows,
    outside: Array,
    weights: Array,
    n_components: int,
    rng: np.random.RandomState,
) -> Array:
    """The weights of a start, or others that lead to a far better subspace.

    Rows near the centre are usual along nearly every direction. A cloud of outliers among them is
    trusted like the rows around it, and is a larger share of the trusted half than of all rows: the
    subspace leads to it. In the scores of that subspace, each in units of its own spread, the
    cloud does stand out, and what is trusted there gives a rival. So do the scores of the subspace
    that fits all rows.

    A rival must leave less of the nearest three quarters of the rows, and the *median* row must be
    far nearer to it along the directions in which both subspaces differ. A tight group of far
    outliers can win the first of these, because a subspace through the group leaves nothing of
    it; no minority can win the second one, near or far.

    Parameters
    ----------
    rows : Rows
        Coordinates of the samples.
    outside : ndarray of shape (n_samples,)
        Squared distance of each sample from the space that the coordinates describe.
    weights : ndarray of shape (n_samples,)
        The start: positive for samples that are trusted.
    n_components : int
        Dimension of the subspace.
    rng : RandomState
        Draws a sample of the rows, and directions.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        Those given, or 1 for the half of the samples that are nearest to the rival, else 0.
    """
    n, least = rows.shape[0], ROWS_PER_COMPONENT * n_components
    if n < max(FEWEST_ROWS, least) or n_components >= rows.shape[1]:
        return weights
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.choice(n, min(n, max(N_ROWS, least)), replace=False)] = True
    sample = rows.map("take", along=(chosen,))
    middle = medians(sample.T)
    sample -= middle
    leading = _leading_directions(sample, n_components + N_BESIDE)
    X = sample @ leading
    rest = outside[chosen] + np.maximum(square_norms(sample) - square_norms(X), 0.0)
    trusted = _fitted(X, rest, weights[chosen] > 0, n_components)
    best = trusted
    for plane in (_fitted(X, rest, np.ones(len(X), dtype=bool), n_components), trusted):
        rival = _rival(plane, X, rest, rng)
        best = rival if _is_far_better(rival, best, X, rest) else best
    if best is trusted:
        return weights
    at = rows.centred(rows.center + middle + leading @ best.center)
    inside = square_norms(at.map("project", leading @ best.axes))
    return _nearest(outside + at.map("square_norms") - inside, 0.5).astype(np.float64)


def n_usual(residuals: Array) -> int:
    """How many samples are no gross outliers, given their squared residuals; at least half.

    Gross outliers are farther than the typical sample by many spreads of the bulk of all, and by
    a factor. Where many samples lie between, as those of heavy tails and of groups, none of them
    are. Where most distances are equal, as those of equal samples, nothing is known about it, and
    all samples count as usual, too.
    """
    n, distances = len(residuals), np.sqrt(residuals)
    middle = median(distances)
    if middle <= 0:
        return n
    distances /= middle
    kept = bulk(distances, FAR)
    typical = median(kept)
    spread = median(np.abs(kept - typical)) / QUARTILE
    edge = max(typical + FAR * spread, GROSS * typical)
    at_edge = (distances > edge / 2) & (distances < 1.5 * edge)
    if spread <= EQUAL or np.count_nonzero(at_edge) > AT_EDGE * n:
        return n
    return max(int(np.count_nonzero(distances <= edge)), (n + 1) // 2)


def nearer_half(
    X: Array, outside: Array, n_components: int, rng: np.random.RandomState
) -> Array | None:
    """Weights 1 for the half of the rows that are nearest to a subspace far better than a fit.

    The fit is that of the first columns, about zero. None if the half of the rows that is trusted
    among its scores gives no subspace that beats it, as in `challenged`.
    """
    axes = np.eye(X.shape[1], n_components)
    fit = _Plane(np.zeros(X.shape[1]), axes, X[:, :n_components].var(axis=0))
    rival = _rival(fit, X, outside, rng)
    if not _is_far_better(rival, fit, X, outside):
        return None
    return _nearest(rival.distances(X, outside), 0.5).astype(np.float64)


@dataclass(frozen=True)
class _Plane:
    """A subspace: its centre, orthonormal columns, and the variances along these."""

    center: Array
    axes: Array
    variances: Array

    def scores(self, X: Array) -> Array:
        """Coordinates of the rows along the axes, each in units of its own spread."""
        largest = float(self.variances.max())
        # Equal rows have no spread; what is far from them keeps the units of the data.
        units = np.maximum(self.variances, 1e-12 * largest) if largest > 0 else 1.0
        return np.asarray((X - self.center) @ (self.axes / np.sqrt(units)))

    def distances(self, X: Array, rest: Array) -> Array:
        """Squared distances of the rows, of which ``rest`` is outside of the coordinates."""
        Z = X - self.center
        return np.maximum(square_norms(Z) - square_norms(Z @ self.axes), 0.0) + rest


def _leading_directions(X: Array, n_directions: int) -> Array:
    """Columns along which rows that are brought to one length vary most: far ones do not count."""
    lengths = np.sqrt(square_norms(X))
    Z = X / np.where(lengths > 0, lengths, 1.0)[:, None]
    return principal_axes(Z.T @ Z)[1][:, :n_directions]


def _rival(plane: _Plane, X: Array, rest: Array, rng: np.random.RandomState) -> _Plane:
    """The subspace of the half of the rows that is trusted among the scores of another one."""
    scores = ArrayRows(plane.scores(X))
    within = trusted_half(scores, plane.distances(X, rest), rng, N_WITHIN)
    return _fitted(X, rest, within > 0, plane.axes.shape[1])


def _fitted(X: Array, rest: Array, chosen: Array, n_components: int) -> _Plane:
    """The subspace of those rows that are nearest to the subspace of the chosen ones."""
    first = _principal_plane(X[chosen], n_components)
    return _principal_plane(X[_nearest(first.distances(X, rest), KEPT)], n_components)


def _principal_plane(X: Array, n_components: int) -> _Plane:
    center = X.mean(axis=0)
    Z = X - center
    variances, axes = principal_axes(Z.T @ Z / len(Z))
    return _Plane(center, axes[:, :n_components], variances[:n_components])


def _nearest(distances: Array, share: float) -> Array:
    """Which rows are this share of all, with the least distances."""
    last = int(np.ceil(share * len(distances))) - 1
    return np.asarray(distances <= np.partition(distances, last)[last])


def _is_far_better(rival: _Plane, plane: _Plane, X: Array, rest: Array) -> bool:
    """Whether a rival leaves less of the rows, and far less of the median one where both differ."""
    left, cosines, right = np.linalg.svd(plane.axes.T @ rival.axes)
    sines = np.sqrt(np.maximum(1 - cosines**2, 0.0))
    turned = sines > TURNED
    kept = int(KEPT * len(X))
    lost, rival_lost = (np.sort(one.distances(X, rest))[:kept].sum() for one in (plane, rival))
    if not turned.any() or rival_lost >= lost:
        return False
    cosines, sines = cosines[turned], sines[turned]
    ours, theirs = (plane.axes @ left)[:, turned], (rival.axes @ right.T)[:, turned]
    # Of the plane of two such directions, each subspace leaves what is orthogonal to its own one.
    left_over = np.hstack([theirs - ours * cosines, ours - theirs * cosines])
    scores = (left_over / np.tile(sines, 2)).T @ X.T
    spread = medians(np.abs(scores - medians(scores)[:, None]))
    by_us, by_rival = np.split(spread, 2)
    return bool(by_us @ by_us > NEARER**2 * (by_rival @ by_rival))


def _largest(block: DenseBlock, directions: Array, location: Array) -> Array:
    distances = block.project(directions)
    distances -= location.astype(distances.dtype)
    return np.abs(distances, out=distances).max(axis=1)
