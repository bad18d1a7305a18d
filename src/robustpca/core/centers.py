"""Centres that are held fixed while a subspace is fitted."""

from collections.abc import Callable, Mapping

import numpy as np

from robustpca.core.linalg import Array, DenseBlock, square_norms, tile_slices
from robustpca.core.reweighted import finite
from robustpca.core.rows import Rows
from robustpca.core.threads import Crew
from robustpca.core.trimmed import TrimmedMeans

# Columns are brought together in groups of this size, each by one pass over the data.
COLUMN_BYTES = 1 << 28


def zero(rows: Rows) -> Array:
    """The origin."""
    return np.zeros(rows.shape[1])


def mean(rows: Rows) -> Array:
    """The arithmetic mean."""
    near = rows.settled()
    ones = np.ones((rows.shape[0], 1))
    return near.center + finite(near.sum("adjoint", along=(ones,)))[:, 0] / len(ones)


def geometric_median(rows: Rows, tol: float = 1e-10, max_iter: int = 500) -> Array:
    """The point with the least sum of distances to the rows.

    Weiszfeld's iteration from the mean, with the step of Vardi and Zhang where the point meets
    a sample. Half of the samples may be anywhere without carrying it away.
    """
    point = mean(rows)
    for _ in range(max_iter):
        near = rows.centred(point)
        distances = np.sqrt(near.map("square_norms"))
        # Distances below rounding error count as zero: the point stands on these samples.
        here = distances <= rows.floor * max(float(distances.max()), np.finfo(np.float64).tiny)
        if here.all():
            break
        pulls = np.where(here, 0.0, 1 / np.where(here, 1.0, distances))
        force = near.sum("adjoint", along=(pulls[:, None],))[:, 0]
        held = here.sum() / max(float(np.linalg.norm(force)), np.finfo(np.float64).tiny)
        step = max(0.0, 1 - held) * force / pulls.sum()
        point = near.center + step
        if np.linalg.norm(step) <= tol * (1 + np.linalg.norm(point)):
            break
    return point


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
