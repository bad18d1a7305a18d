"""Scores of the EPCA paper: losses, active samples, and how much of an accuracy may be chance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from robustpca.engine.linalg import Array

__all__ = ["best_of_tries", "loss_value", "n_active", "share_active"]


def loss_value(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """The value of a `LossAt`."""
    return float(model.value_)


def n_active(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Number of samples with a positive weight."""
    return float(model.n_active_)


def share_active(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Share of the samples that have a positive weight."""
    return float(model.n_active_) / len(X_corrupt)


def best_of_tries(values: Sequence[float], n_tries: int) -> float:
    """Largest of ``n_tries`` values, as the mean over all ways of drawing so many of ``values``.

    If the values are accuracies of single runs of k-means, this is what a method reaches if it is
    run once for each of ``n_tries`` values of a parameter that changes nothing, and the highest
    accuracy counts.
    """
    # In how many draws the value of each rank is the largest one.
    ways = special.comb(np.arange(len(values)), n_tries - 1)
    return float(np.sort(values) @ ways / special.comb(len(values), n_tries))
