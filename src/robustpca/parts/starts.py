"""Robust starts: which samples to trust before anything has been fitted."""

import numpy as np

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.linalg import Array, median
from robustpca.engine.rows import Rows

N_DIRECTIONS = 250
# Medians along a direction need no more rows than this to be good to two digits.
N_SAMPLE = 1000


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
    location = np.median(scores, axis=1)
    spread = np.median(np.abs(scores - location[:, None]), axis=1)
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


def _largest(block: DenseBlock, directions: Array, location: Array) -> Array:
    distances = block.project(directions)
    distances -= location.astype(distances.dtype)
    return np.abs(distances, out=distances).max(axis=1)
