"""A background that the angular paper does not have: the median of each pixel."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from robustpca.engine.linalg import Array

__all__ = ["PixelMedian"]


class PixelMedian(BaseEstimator):
    """The simplest background: the median of each pixel over time, the same in all frames."""

    def fit(self, X: Array, y: Any = None) -> Self:
        """Store the median of each pixel as the low-rank part."""
        self.low_rank_ = np.broadcast_to(np.median(X, axis=0), X.shape)
        return self
