"""Losses of one residual, so that their curves can be drawn by a table."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from robustpca.engine.linalg import Array
from robustpca.parts.losses import Loss

__all__ = ["LossAt", "loss_value"]


class LossAt(BaseEstimator):
    """The value of a loss at one residual; it looks at no data.

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
    >>> from robustpca.bench.scores.losses import LossAt
    >>> from robustpca.parts.losses import SigmaLoss
    >>> LossAt(SigmaLoss(1.0), residual=-3.0).fit([[0.0]]).value_
    4.5
    """

    def __init__(self, loss: Loss, residual: float = 1.0) -> None:
        self.loss = loss
        self.residual = residual

    def fit(self, X: Any, y: Any = None) -> Self:
        self.value_ = float(self.loss.values(np.array([float(self.residual) ** 2]))[0])
        return self


def loss_value(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """The value of a `LossAt`."""
    return float(model.value_)
