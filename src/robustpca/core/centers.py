"""Centres that are held fixed while a subspace is fitted."""

from collections.abc import Callable, Mapping

import numpy as np

from robustpca.core.linalg import Array
from robustpca.core.reweighted import finite
from robustpca.core.rows import Rows
from robustpca.core.views import FEW_ROWS, View, directed, explore, near_rows

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


CENTERS: Mapping[str, Callable[[Rows], Array]] = {
    "mean": mean,
    "geometric_median": geometric_median,
    "zero": zero,
}
