"""Directions in the plane with pairs at right angles, and what these do to the first component."""

from typing import Any

import numpy as np
from sklearn.base import clone

from robustpca.bench.shown import curve, points
from robustpca.datasets import Dataset
from robustpca.engine.linalg import Array
from robustpca.metrics import principal_angles

__all__ = ["paired_directions", "share_of_bound", "show_directions", "show_objective", "turn"]

NORMAL, FIRST, SECOND, AXIS = range(4)  # labels of samples and, in pictures, of the component
N_ANGLES = 361  # of a component, over half a turn


def paired_directions(
    n_normal: int = 100, n_pairs: int = 80, deviation: float = 0.0, random_state: int = 0
) -> Dataset:
    """Normal samples about one direction, and longer ones in pairs at nearly right angles.

    Parameters
    ----------
    n_normal, n_pairs : int, default=100 and 80
        Numbers of normal samples, and of pairs of outliers in any direction.
    deviation : float, default=0.0
        By how many degrees, up or down, pairs are off the right angle.
    random_state : int, default=0
        Draws directions and lengths.

    Returns
    -------
    dataset : Dataset
        In the plane; ``y`` is 0 for normal samples, 1 and 2 for the parts of a pair, in order.
    """
    rng = np.random.default_rng(random_state)
    normal = rng.normal(0.0, np.deg2rad(20), n_normal)
    first = rng.uniform(0, 2 * np.pi, n_pairs)
    signs = rng.choice([-1.0, 1.0], n_pairs)
    second = first + np.pi / 2 + signs * np.deg2rad(deviation)
    angles = np.concatenate([normal, first, second])
    lengths = rng.uniform(0.5, 1.5, len(angles))
    lengths[n_normal:] *= 5
    X = lengths[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    y = np.repeat([NORMAL, FIRST, SECOND], [n_normal, n_pairs, n_pairs])
    return Dataset("pairs", X, y, None, "made by robustpca", {})


def turn(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Degrees by which the pairs turn the first component away from that of the normal samples."""
    alone = clone(model).fit(X_corrupt[y == NORMAL])
    angles = principal_angles(model.components_[:1], alone.components_[:1])
    return float(np.rad2deg(angles[0]))


def share_of_bound(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Largest influence of a pair on the objective as a share of the bound of Theorem 1.

    For a pair that is off the right angle by xi, the two squared cosines with a component add up
    to 1, give or take the sine of xi, wherever the component points. NaN if no pair is off.
    """
    units = X_corrupt / np.linalg.norm(X_corrupt, axis=1, keepdims=True)
    first, second = units[y == FIRST], units[y == SECOND]
    bounds = np.abs(np.einsum("ij,ij->i", first, second))  # the sine of xi
    if bounds.max() < 1e-9:
        return float("nan")
    components = _components()
    sums = (first @ components.T) ** 2 + (second @ components.T) ** 2
    return float((np.abs(sums - 1).max(axis=1) / bounds).max())


def show_directions(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> dict[str, Any]:
    """Samples on the circle, and the first component of the model as a line through it."""
    units = X_corrupt / np.linalg.norm(X_corrupt, axis=1, keepdims=True)
    axis = np.linspace(-1, 1, 41)[:, None] * model.components_[0]
    return points(np.vstack([units, axis]), np.concatenate([y, np.full(len(axis), AXIS)]))


def show_objective(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> dict[str, Any]:
    """Mean squared cosine of all samples with a component, by its angle in degrees."""
    units = X_corrupt / np.linalg.norm(X_corrupt, axis=1, keepdims=True)
    return curve(np.linspace(-90, 90, N_ANGLES), ((units @ _components().T) ** 2).mean(axis=0))


def _components() -> Array:
    """Unit vectors over half a turn."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, N_ANGLES)
    return np.column_stack([np.cos(angles), np.sin(angles)])
