"""How well the classes can be told apart in what a model keeps of the data.

The samples are split by the seed; model and classifier see the training part alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from robustpca.bench.declarations import asked_for
from robustpca.bench.shown import points
from robustpca.engine.linalg import Array
from robustpca.metrics import principal_angles

__all__ = ["accuracy", "first_angle", "plane", "plane_angle", "split"]


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


def accuracy(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    extras: Any,
    random_state: int,
    classifier: Any,
    step: int | None = None,
) -> float:
    """Percentage of the test samples that a classifier gets right from their codes.

    With ``step``, the mean over the first ``step`` codes, the first ``2 * step``, and so on, as
    far as there are as many: one fit serves all dimensions, since components are in order.
    """
    codes, codes_test = model.transform(X_corrupt), model.transform(extras["X_test"])
    n_codes = codes.shape[1]
    widths: Sequence[int] = [n_codes] if step is None else range(step, n_codes + 1, step)
    found = []
    for width in widths:
        learner = clone(classifier).set_params(random_state=random_state)
        learner.fit(codes[:, :width], y)
        found.append(learner.score(codes_test[:, :width], extras["y_test"]))
    return 100 * float(np.mean(found))


def first_angle(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """Degrees between the first component and that of PCA without the outliers."""
    return _angle(model.components_[:1], X_corrupt[~extras["is_outlier"]])


def plane_angle(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """Degrees between the span of all components and that of PCA without the outliers."""
    return _angle(model.components_, X_corrupt[~extras["is_outlier"]])


def plane(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, n_points: int = 600
) -> dict[str, Any]:
    """The first samples in the plane of the first two components, coloured by class."""
    return points(model.transform(X_corrupt[:n_points])[:, :2], y[:n_points])


def _angle(components: Array, X: Array) -> float:
    clean = PCA(len(components), svd_solver="full").fit(X).components_
    return float(np.rad2deg(principal_angles(components, clean)[-1]))
