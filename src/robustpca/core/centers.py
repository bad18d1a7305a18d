"""Centres that are held fixed while a subspace is fitted."""

from collections.abc import Callable, Mapping

import numpy as np

from robustpca.core.linalg import Array
from robustpca.core.reweighted import finite
from robustpca.core.rows import Rows


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


CENTERS: Mapping[str, Callable[[Rows], Array]] = {
    "mean": mean,
    "geometric_median": geometric_median,
    "zero": zero,
}
