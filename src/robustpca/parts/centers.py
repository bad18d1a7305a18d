"""Centres that are held fixed while a subspace is fitted."""

from collections.abc import Callable, Mapping

import numpy as np

from robustpca.engine.linalg import Array, DenseBlock, finite, square_norms, tile_slices
from robustpca.engine.rows import Rows
from robustpca.engine.threads import Crew
from robustpca.engine.trimmed_means import TrimmedMeans
from robustpca.engine.view import FEW_ROWS, View, directed, explore, near_rows

# Columns are brought together in groups of this size, each by one pass over the data.
COLUMN_BYTES = 1 << 28
# Force per sample below which a point counts as the geometric median.
MEDIAN_TOL = {"float64": 1e-10, "float32": 1e-6}


def zero(rows: Rows) -> Array:
    """The origin."""
    return np.zeros(rows.shape[1])


def mean(rows: Rows) -> Array:
    """The arithmetic mean."""
    near = rows.settled(FEW_ROWS)
    ones = np.ones((rows.shape[0], 1))
    return near.center + finite(near.sum("adjoint", along=(ones,)))[:, 0] / len(ones)


def geometric_median(rows: Rows, tol: float | None = None) -> Array:
    """The point with the least sum of distances to the rows.

    It is found by Newton's method in a view of the rows, which is widened by what still pulls
    the point, until the mean of the unit vectors towards the rows is shorter than ``tol`` (by
    default 1e-10, and 1e-6 in single precision). Half of the samples may be anywhere without
    carrying it away.
    """
    view = View(near_rows(rows))
    view.start(7, np.random.default_rng(0))
    explore(view, 7, 2, tol=MEDIAN_TOL[rows.dtype.name] if tol is None else tol)
    return view.point


def remaining_force(rows: Rows, point: Array) -> tuple[float, int]:
    """What pulls at ``point``, and how many samples hold it there.

    The length of the sum of the unit vectors from the point towards the samples that are not
    at it, and the number of those that are. The point is the geometric median if the first is
    at most the second.
    """
    near = rows.centred(point)
    mask, inverse = directed(np.sqrt(near.map("square_norms")), rows.floor)
    force = near.sum("adjoint", along=(inverse[:, None],))
    return float(np.linalg.norm(force)), int(np.count_nonzero(~mask))


def trimmed_mean(rows: Rows, trim: float = 0.25) -> Array:
    """The mean of each feature without a share of its values at either end.

    By default it is the mean of the middle half. With a share of 0.5 it is the median.
    """
    near = rows.settled()
    n, d = rows.shape
    width = max(1, COLUMN_BYTES // (n * rows.dtype.itemsize))
    means = []
    with Crew() as crew:
        for at in range(0, d, width):
            columns = finite(near.map("columns", slice(at, at + width)))
            means.append(TrimmedMeans(np.ascontiguousarray(columns.T), trim, crew)(np.ones(n)))
    return near.center + np.concatenate(means)


def median(rows: Rows) -> Array:
    """The median of each feature."""
    return trimmed_mean(rows, 0.5)


def medoid(rows: Rows) -> Array:
    """The sample with the least sum of distances to the others; of equals, the first.

    All pairs of samples are looked at, a block at a time.
    """
    near = rows.settled().precise()
    sums = []
    for start, stop in near.bounds:
        block = near.block_kind(near.read(start, stop), near.center, near.dtype)
        sums.append(near.sum(_sum_distances, finite(block.columns(slice(None)))))
    total = np.concatenate(sums)
    # A distance of zero comes out as the root of rounding error; that must not decide.
    index = int(np.argmax(total <= total.min() * (1 + 1e-7)))
    block = near.block_kind(near.read(index, index + 1), near.center, near.dtype)
    return near.center + block.take(slice(None))[0]


def _sum_distances(block: DenseBlock, points: Array) -> Array:
    """Sum of the distances of each point to the rows of the block."""
    sums, norms = np.zeros(len(points)), square_norms(points)
    for part in block.parts():
        own = part.square_norms()
        for place in tile_slices(len(points), len(own) * 8):
            squares = own + norms[place, None] - 2.0 * part.project(points[place].T).T
            sums[place] += np.sqrt(np.maximum(squares, 0.0)).sum(axis=1)
    return sums


CENTERS: Mapping[str, Callable[[Rows], Array]] = {
    "mean": mean,
    "median": median,
    "trimmed_mean": trimmed_mean,
    "geometric_median": geometric_median,
    "medoid": medoid,
    "zero": zero,
}
