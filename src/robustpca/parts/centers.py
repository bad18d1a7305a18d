"""Centres that are held fixed while a subspace is fitted."""

from collections.abc import Callable, Mapping

import numpy as np

from robustpca.engine.blocks import DenseBlock, cached_rows, slices
from robustpca.engine.linalg import Array, finite, square_norms
from robustpca.engine.rows import Rows
from robustpca.engine.spherical import FEW_ROWS, RowDirections, directed, explore, near_rows
from robustpca.engine.threads import ThreadPool
from robustpca.engine.trimmed_means import TrimmedMeans

# Columns are brought together in groups of this size, each by one pass over the data.
COLUMN_BYTES = 1 << 28
# Force per sample below which a point counts as the geometric median.
MEDIAN_TOL = {"float64": 1e-10, "float32": 1e-6}


def zero(rows: Rows) -> Array:
    """The origin."""
    return np.zeros(rows.shape[1])


def mean(rows: Rows) -> Array:
    """The arithmetic mean."""
    near = rows.median_centred(FEW_ROWS)
    ones = np.ones((rows.shape[0], 1))
    return near.center + finite(near.adjoint(ones))[:, 0] / len(ones)


def geometric_median(rows: Rows, tol: float | None = None) -> Array:
    """The point with the least sum of distances to the rows.

    It is found by Newton's method in a view of the rows, which is expanded by what still pulls
    the point, until the mean of the unit vectors towards the rows is shorter than ``tol`` (by
    default 1e-10, and 1e-6 in single precision). Half of the samples may be anywhere without
    carrying it away.
    """
    directions = RowDirections(near_rows(rows))
    directions.initialise(7, np.random.default_rng(0))
    explore(directions, 7, 2, tol=MEDIAN_TOL[rows.dtype.name] if tol is None else tol)
    return directions.view.point


def remaining_force(rows: Rows, point: Array) -> tuple[float, int]:
    """What pulls at ``point``, and how many samples hold it there.

    The length of the sum of the unit vectors from the point towards the samples that are not
    at it, and the number of those that are. The point is the geometric median if the first is
    at most the second.
    """
    near = rows.centred(point)
    mask, inverse = directed(np.sqrt(near.map("square_norms")), rows.floor)
    force = near.adjoint(inverse[:, None])
    return float(np.linalg.norm(force)), int(np.count_nonzero(~mask))


def trimmed_mean(rows: Rows, trim: float = 0.25) -> Array:
    """The mean of each feature without a share of its values at either end.

    By default it is the mean of the middle half. With a share of 0.5 it is the median.
    """
    near = rows.median_centred()
    n, d = rows.shape
    means = []
    with ThreadPool() as pool:
        for place in slices(d, max(1, COLUMN_BYTES // (n * rows.dtype.itemsize))):
            columns = finite(near.map("dense", place))
            means.append(TrimmedMeans(np.ascontiguousarray(columns.T), trim, pool)(np.ones(n)))
    return near.center + np.concatenate(means)


def median(rows: Rows) -> Array:
    """The median of each feature."""
    return trimmed_mean(rows, 0.5)


def medoid(rows: Rows) -> Array:
    """The sample with the least sum of distances to the others; of equals, the first.

    All pairs of samples are compared, a block at a time.
    """
    near = rows.median_centred().precise()
    blocks = (near.block(*bounds) for bounds in near.bounds)
    sums = [near.sum(_sum_distances, finite(block.dense())) for block in blocks]
    total = np.concatenate(sums)
    # A distance of zero comes out as the root of rounding error; that must not decide.
    index = int(np.argmax(total <= total.min() * (1 + 1e-7)))
    return near.center + near.row(index)


def _sum_distances(block: DenseBlock, points: Array) -> Array:
    """Sum of the distances of each point to the rows of the block."""
    sums, norms = np.zeros(len(points)), square_norms(points)
    for part in block.parts():
        own = part.square_norms()
        for place in slices(len(points), cached_rows(len(own) * 8)):
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
