"""Errors and pictures of images that a method has recovered from corrupted ones."""

from typing import Any

import numpy as np

from robustpca.bench.shown import picture
from robustpca.engine.linalg import Array
from robustpca.metrics import recovery_error
from robustpca.papers.approximations import recovered
from robustpca.papers.samples import evenly

__all__ = ["before_and_after", "error_hidden", "error_visible", "squared_error"]


def squared_error(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Mean squared error of a pixel."""
    return recovery_error(X_clean, recovered(model, X_corrupt))


def error_hidden(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """Mean squared error of the pixels that were hidden from the model."""
    return recovery_error(X_clean, recovered(model, X_corrupt), where=mask)


def error_visible(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """Mean squared error of the pixels that the model was given as they are."""
    return recovery_error(X_clean, recovered(model, X_corrupt), where=~mask)


def before_and_after(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    image_shape: tuple[int, int],
    n_images: int = 8,
    zoom: int = 1,
) -> dict[str, Any]:
    """Some images side by side: clean above, corrupted in the middle, recovered below."""
    rows = evenly(len(X_clean), n_images)
    versions = (X_clean, X_corrupt, recovered(model, X_corrupt))
    images = [version[rows].reshape(-1, *image_shape) for version in versions]
    return picture(np.concatenate(images, axis=1), high=float(X_clean.max()), zoom=zoom)
