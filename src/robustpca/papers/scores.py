"""Time as a score."""

from typing import Any

from robustpca.engine.linalg import Array

__all__ = ["seconds_of_fit"]


def seconds_of_fit(model: Any, X_clean: Array, X_corrupt: Array, seconds: float) -> float:
    """Seconds that the fit took."""
    return seconds
