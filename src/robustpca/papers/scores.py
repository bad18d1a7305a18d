"""What a fit took, as scores of several papers."""

from typing import Any

from robustpca.engine.linalg import Array

__all__ = ["passes", "seconds_of_fit"]


def seconds_of_fit(model: Any, X_clean: Array, X_corrupt: Array, seconds: float) -> float:
    """Seconds that the fit took."""
    return seconds


def passes(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Number of passes after which the fit ended."""
    return float(model.n_iter_)
