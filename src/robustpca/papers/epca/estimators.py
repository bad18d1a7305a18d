"""An estimator that stands for a loss, so that a table can draw its curve."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from robustpca.parts.losses import Loss

__all__ = ["LossAt"]


class LossAt(BaseEstimator):
    """The value of a loss at one residual; it does not depend on data.

    Parameters
    ----------
    loss : loss
        An object from `robustpca.parts.losses` with all its parameters as numbers.
    residual : float, default=1.0
        Residual of the one sample, with its sign.

    Attributes
    ----------
    value_ : float
        Loss of the sample.

    Examples
    --------
    >>> from robustpca.papers.epca.estimators import LossAt
    >>> from robustpca.parts.losses import SigmaLoss
    >>> LossAt(SigmaLoss(1.0), residual=-3.0).fit([[0.0]]).value_
    4.5
    """

    def __init__(self, loss: Loss, residual: float = 1.0) -> None:
        self.loss = loss
        self.residual = residual

    def fit(self, X: Any, y: Any = None) -> Self:
        """Evaluate the loss."""
        self.value_ = float(self.loss.values(np.array([float(self.residual) ** 2]))[0])
        return self
