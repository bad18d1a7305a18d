"""Data of the angular paper: training and test parts, and frames drawn by the seed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from robustpca.bench.declarations import asked_for

__all__ = ["SomeSamples", "split"]


def split(
    source: Callable[..., Any], random_state: int = 0, share: float = 0.3, unit_range: bool = False
) -> Any:
    """The training part of a data set, with the other samples in its extras.

    Parameters
    ----------
    source : callable
        What returns the data set, drawn anew for each seed if it takes ``random_state``.
    random_state : int, default=0
        Draws the parts; every class has its share in both.
    share : float, default=0.3
        Share of the samples that are kept for the test.
    unit_range : bool, default=False
        Whether to bring every feature to [0, 1], by its range in the training part.

    Returns
    -------
    dataset : Dataset
        The training part; its extras also hold ``X_test`` and ``y_test``.
    """
    data = source(**asked_for(source, random_state=random_state))
    rows = np.arange(len(data.X))
    kept, held = train_test_split(rows, test_size=share, stratify=data.y, random_state=random_state)
    training, test = data.taken(kept), data.taken(held)
    X, X_test = training.X, test.X
    if unit_range:
        scaler = MinMaxScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return replace(training, X=X, extras={**training.extras, "X_test": X_test, "y_test": test.y})


@dataclass(frozen=True)
class SomeSamples:
    """A share of the samples of a data set, in their order, drawn anew for each seed."""

    source: Callable[..., Any]
    share: float

    def __call__(self, random_state: int = 0) -> Any:
        data = self.source()
        n_samples = len(data.X)
        rng = np.random.default_rng(random_state)
        return data.taken(
            np.sort(rng.choice(n_samples, round(self.share * n_samples), replace=False))
        )
