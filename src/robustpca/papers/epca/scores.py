"""What a fitted model tells about itself, as scores."""

from typing import Any

from robustpca.engine.linalg import Array

__all__ = ["n_active", "passes", "seconds_per_pass", "share_active"]


def n_active(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Number of samples with a positive weight."""
    return float(model.n_active_)


def share_active(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Share of the samples that have a positive weight."""
    return float(model.n_active_) / len(X_corrupt)


def passes(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Number of passes after which the fit ended."""
    return float(model.n_iter_)


def seconds_per_pass(model: Any, X_clean: Array, X_corrupt: Array, seconds: float) -> float:
    """Seconds of the fit, its start included, over the number of its passes."""
    return seconds / float(model.n_iter_)
