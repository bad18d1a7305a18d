"""What a fit took, as scores of several papers."""

from typing import Any

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["largest_rise", "passes", "seconds_of_fit"]


def seconds_of_fit(model: Any, X_clean: Array, X_corrupt: Array, seconds: float) -> float:
    """Seconds that the fit took."""
    return seconds


def passes(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Number of passes after which the fit ended."""
    return float(model.n_iter_)


def largest_rise(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Largest rise of the objective from one pass to the next, as a share of its first value.

    Negative if it falls in every pass; 0 if there is but one value.
    """
    values = np.asarray(model.objective_, float)
    return float(np.diff(values).max() / abs(values[0])) if len(values) > 1 else 0.0
