"""Images that share a background: frames of a still camera, a face under many lights.

What a model recovers is the background, or the face without its shadows; what it leaves over is
what moves, or the shadow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from robustpca.bench.scores.recovery import recovered
from robustpca.bench.shown import picture
from robustpca.engine.linalg import Array
from robustpca.metrics import foreground_scores

__all__ = [
    "PixelMedian",
    "SomeSamples",
    "background_error",
    "block_error",
    "f_measure",
    "ghost_error",
    "lit_error",
    "median_distance",
    "percent_kept",
    "precision",
    "recall",
    "shadow_gain",
    "telling",
    "triptych",
]

# Grey levels of 255: what differs more is in the foreground, what is darker lies in the shadow.
THRESHOLD = 25.0
DARK = 25.0


@dataclass(frozen=True)
class SomeSamples:
    """A share of the samples of a data set, in their order, drawn anew for each seed."""

    source: Callable[..., Any]
    share: float

    def __call__(self, random_state: int = 0) -> Any:
        data = self.source()
        n_samples = len(data.X)
        rng = np.random.default_rng(random_state)
        return data.taken(
            np.sort(rng.choice(n_samples, round(self.share * n_samples), replace=False))
        )


class PixelMedian(BaseEstimator):
    """The simplest background: the median of each pixel over time, the same in all frames."""

    def fit(self, X: Array, y: Any = None) -> Self:
        self.low_rank_ = np.broadcast_to(np.median(X, axis=0), X.shape)
        return self


def f_measure(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """F-measure of the pixels that differ from the background by more than 25 grey levels."""
    return _foreground(model, X_corrupt, extras).f_measure


def precision(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """Share of moving pixels among those that differ from the background."""
    return _foreground(model, X_corrupt, extras).precision


def recall(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """Share of the moving pixels that differ from the background."""
    return _foreground(model, X_corrupt, extras).recall


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
    return _rms((recovered(model, X_corrupt) - X_clean)[lit])


def shadow_gain(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """By how many grey levels the dark pixels become brighter, in the mean."""
    dark = (X_clean < DARK) & ~mask
    return float(np.mean((recovered(model, X_corrupt) - X_clean)[dark]))


def block_error(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """Root mean square error of covered pixels; NaN if there are none."""
    return _rms((recovered(model, X_corrupt) - X_clean)[mask])


def triptych(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    image_shape: tuple[int, int],
    half: int = 0,
    quantile: float = 1.0,
) -> dict[str, Any]:
    """An image, what the model makes of it, and their difference, where white is none.

    See `telling` for ``half`` and ``quantile``, which say which image.
    """
    at = telling(X_corrupt, half, quantile)
    image, background = X_corrupt[at], recovered(model, X_corrupt)[at]
    return picture(
        np.reshape([image, background, 255 - np.abs(image - background)], (3, *image_shape))
    )


def telling(X: Array, half: int = 0, quantile: float = 1.0) -> int:
    """Number of an image far from the pixelwise median of all.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Images in rows.
    half : {0, 1}, default=0
        Look in the first or the second half of them.
    quantile : float, default=1.0
        Where in the order of distances: 1 for the farthest image, 0 for the nearest.
    """
    middle = len(X) // 2
    part = slice(middle) if half == 0 else slice(middle, None)
    order = np.argsort(np.abs(X[part] - np.median(X, axis=0)).mean(axis=1))
    return int(order[round(quantile * (len(order) - 1))] + half * middle)


def _foreground(model: Any, X: Array, extras: Any) -> Any:
    return foreground_scores(extras["masks"], np.abs(X - recovered(model, X)) > THRESHOLD)


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
