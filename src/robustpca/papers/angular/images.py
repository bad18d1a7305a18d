"""Scores of images that share a background: frames of a still camera, a face under many lights.

What a model recovers is the background, or the face without its shadows; what it leaves over is
what moves, or the shadow.
"""

from typing import Any

import numpy as np

from robustpca.bench.shown import picture
from robustpca.engine.linalg import Array
from robustpca.metrics import recovery_error
from robustpca.papers.approximations import recovered

__all__ = [
    "background_error",
    "block_error",
    "far_from_median",
    "ghost_error",
    "lit_error",
    "median_distance",
    "percent_kept",
    "shadow_gain",
    "triptych",
]

# Grey level, of 255, below which a pixel counts as shadow.
DARK = 25.0


def background_error(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """Root mean square error of the background in grey levels, up to the light of each frame."""
    return _rms(_background_errors(model, X_corrupt, extras))


def ghost_error(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """The same where something moves in front: what of it is left in the background."""
    moving = (extras["masks"] == 255)[:, _valid(extras)]
    return _rms(_background_errors(model, X_corrupt, extras)[moving])


def median_distance(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Mean distance of the backgrounds to the median of each pixel over time, in grey levels."""
    return float(np.mean(np.abs(recovered(model, X_corrupt) - np.median(X_corrupt, axis=0))))


def percent_kept(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Percentage of the images that were not trimmed."""
    return 100 * (1 - getattr(model, "n_trimmed_", 0) / len(X_corrupt))


def lit_error(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """Root mean square change of the pixels that are neither dark nor covered."""
    lit = (X_clean >= DARK) & ~mask
    return recovery_error(X_clean, recovered(model, X_corrupt), lit) ** 0.5


def shadow_gain(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """By how many grey levels the dark pixels become brighter, in the mean."""
    dark = (X_clean < DARK) & ~mask
    return float(np.mean((recovered(model, X_corrupt) - X_clean)[dark]))


def block_error(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """Root mean square error of covered pixels; NaN if there are none."""
    return recovery_error(X_clean, recovered(model, X_corrupt), mask) ** 0.5


def triptych(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    image_shape: tuple[int, int],
    half: int = 0,
    quantile: float = 1.0,
) -> dict[str, Any]:
    """An image, what the model makes of it, and their difference, where white is none.

    See `far_from_median` for ``half`` and ``quantile``, which say which image.
    """
    at = far_from_median(X_corrupt, half, quantile)
    image, background = X_corrupt[at], recovered(model, X_corrupt)[at]
    return picture(
        np.reshape([image, background, 255 - np.abs(image - background)], (3, *image_shape))
    )


def far_from_median(X: Array, half: int = 0, quantile: float = 1.0) -> int:
    """Number of an image far from the pixelwise median of all.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Images in rows.
    half : {0, 1}, default=0
        Search the first or the second half of them.
    quantile : float, default=1.0
        Where in the order of distances: 1 for the farthest image, 0 for the nearest.
    """
    middle = len(X) // 2
    part = slice(middle) if half == 0 else slice(middle, None)
    order = np.argsort(np.abs(X[part] - np.median(X, axis=0)).mean(axis=1))
    return int(order[round(quantile * (len(order) - 1))] + half * middle)


def _background_errors(model: Any, X: Array, extras: Any) -> Array:
    """Errors of the pixels whose background is known, with the light of each frame fitted."""
    valid = _valid(extras)
    found, truth = recovered(model, X)[:, valid], np.asarray(extras["background"], float)[valid]
    light = found @ truth / (truth @ truth)
    return found - light[:, None] * truth


def _valid(extras: Any) -> Array:
    known = extras.get("background_valid")
    return np.ones(len(extras["background"]), bool) if known is None else np.asarray(known, bool)


def _rms(errors: Array) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if errors.size else float("nan")
