"""How well classes can be told apart in what a model keeps of the data.

Model and classifier are fitted to the training part alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA

from robustpca.engine.linalg import Array
from robustpca.metrics import principal_angles

__all__ = ["accuracy", "angle_to_clean"]


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


def angle_to_clean(
    model: Any, X_clean: Array, X_corrupt: Array, extras: Any, n_components: int | None = None
) -> float:
    """Degrees between the span of the components, or of the first, and PCA without outliers."""
    components = model.components_[:n_components]
    clean = PCA(len(components), svd_solver="full").fit(X_corrupt[~extras["is_outlier"]])
    return float(np.rad2deg(principal_angles(components, clean.components_)[-1]))
