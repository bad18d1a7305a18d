"""What moves in a video: the pixels that differ from the background that a model has found."""

from typing import Any, Literal

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.metrics import foreground_scores
from robustpca.papers.approximations import recovered

__all__ = ["THRESHOLD", "foreground", "moving"]

# Grey levels, of 255, by which a pixel must differ from the background to count as moving.
THRESHOLD = 25.0


def moving(model: Any, X: Array) -> Array:
    """Which pixels of the frames ``X`` differ from the background."""
    return np.asarray(np.abs(X - recovered(model, X)) > THRESHOLD)


def foreground(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    extras: Any,
    measure: Literal["precision", "recall", "f_measure"],
) -> float:
    """How well the moving pixels agree with the masks of a video; NaN if it has none."""
    if "masks" not in extras:
        return float("nan")
    return float(getattr(foreground_scores(extras["masks"], moving(model, X_corrupt)), measure))
