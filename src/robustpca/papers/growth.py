"""The first rows of a data set: how the time of a fit grows with their number."""

from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from robustpca.engine.linalg import Array

__all__ = ["FirstRows"]


class FirstRows(BaseEstimator):
    """An estimator that is fitted to as many rows of its data as a table asks for.

    Parameters
    ----------
    estimator : estimator
        What is fitted.
    n_samples : int, default=None
        Number of rows, the first ones; None for all.

    Attributes
    ----------
    estimator_ : estimator
        The fitted one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from robustpca.papers.growth import FirstRows
    >>> FirstRows(PCA(1), n_samples=3).fit(np.eye(5)).estimator_.n_samples_
    3
    """

    def __init__(self, estimator: Any, n_samples: int | None = None) -> None:
        self.estimator = estimator
        self.n_samples = n_samples

    def fit(self, X: Array, y: Any = None) -> Self:
        """Fit to the first rows."""
        if self.n_samples is not None and len(X) < self.n_samples:
            raise ValueError(f"n_samples={self.n_samples}, but the data have {len(X)} rows.")
        self.estimator_ = clone(self.estimator).fit(X[: self.n_samples])
        return self
