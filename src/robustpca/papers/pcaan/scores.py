"""Scores of the PCA-AN paper: errors of images in several readings, and time for a pass."""

from typing import Any

import numpy as np

from robustpca.engine.linalg import Array, square_norms
from robustpca.metrics import reconstruction_error, weighted_reconstruction_error

__all__ = [
    "error_without_mean",
    "mean_error",
    "mean_error_observed",
    "seconds_per_pass",
    "unit_pixels",
    "weighted_error",
    "weighted_error_observed",
]


def unit_pixels(X: Array) -> Array:
    """Eight-bit pixels as numbers from 0 to 1."""
    return X / 255


def weighted_error(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Squared error of an image, averaged with the model's own weights, or equally without any."""
    weights = getattr(model, "weights_", np.ones(len(X_clean)))
    return weighted_reconstruction_error(model, X_clean, X_corrupt, weights)


def mean_error(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Squared error of an image, averaged over all images alike."""
    return reconstruction_error(model, X_clean, X_corrupt) / len(X_clean)


def weighted_error_observed(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """`weighted_error` against the images as they were given to the model."""
    return weighted_error(model, X_corrupt, X_corrupt)


def mean_error_observed(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """`mean_error` against the images as they were given to the model."""
    return mean_error(model, X_corrupt, X_corrupt)


def error_without_mean(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """`mean_error_observed` of reconstructions to which the mean was not added back."""
    restored = model.inverse_transform(model.transform(X_corrupt)) - model.mean_
    return float(square_norms(X_corrupt - restored).mean())


def seconds_per_pass(model: Any, X_clean: Array, X_corrupt: Array, seconds: float) -> float:
    """Seconds of the fit, its start included, over the number of its passes."""
    return seconds / float(model.n_iter_)
