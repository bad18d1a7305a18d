"""How well the low-rank part of a video is its still background."""

from typing import Any

import numpy as np

from robustpca.bench.shown import picture
from robustpca.engine.linalg import Array
from robustpca.metrics import recovery_error
from robustpca.papers.video import THRESHOLD, moving

__all__ = [
    "background_rmse",
    "motion_left",
    "show_background",
    "show_foreground",
    "show_frame",
]


def motion_left(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Change over time of the low-rank part as a share of that of the video.

    Both are medians over the pixels that change at all of their deviation over time: 0 is a
    still picture, 1 is the video itself. Light that changes is motion, too.
    """
    before = X_corrupt.std(axis=0, dtype=np.float64)
    after = model.low_rank_.std(axis=0, dtype=np.float64)
    changing = before > 0
    return float(np.median(after[changing]) / np.median(before[changing]))


def background_rmse(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """Root mean square difference to the known background, in grey levels; NaN if unknown."""
    if "background" not in extras:
        return float("nan")
    truth = np.broadcast_to(extras["background"], X_corrupt.shape)
    return float(recovery_error(truth, model.low_rank_, extras.get("background_valid")) ** 0.5)


def show_frame(model: Any, X_clean: Array, X_corrupt: Array, image_shape: Any) -> dict[str, Any]:
    """The frame that is shown: the one with most motion."""
    return _picture(X_corrupt[_busiest(X_corrupt)], image_shape)


def show_background(
    model: Any, X_clean: Array, X_corrupt: Array, image_shape: Any
) -> dict[str, Any]:
    """Low-rank part of that frame."""
    return _picture(model.low_rank_[_busiest(X_corrupt)], image_shape)


def show_foreground(
    model: Any, X_clean: Array, X_corrupt: Array, image_shape: Any
) -> dict[str, Any]:
    """What moves in that frame, white."""
    return _picture(255.0 * moving(model, X_corrupt)[_busiest(X_corrupt)], image_shape)


def _picture(frame: Array, image_shape: tuple[int, int]) -> dict[str, Any]:
    """A frame, about as wide as a stamp even if it has few pixels."""
    return picture(frame.reshape(image_shape), zoom=max(1, 160 // image_shape[1]))


def _busiest(X: Array) -> int:
    """The frame with most pixels far from their median: the same for all methods."""
    return int(np.argmax(np.count_nonzero(np.abs(X - np.median(X, axis=0)) > THRESHOLD, axis=1)))
