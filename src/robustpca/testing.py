"""Help for tests and benchmarks: planted truths, distances between subspaces, discovery."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import robustpca
from robustpca.datasets.synthetic import planted_subspace
from robustpca.models.base import SubspaceModel

__all__ = ["all_estimators", "all_methods", "planted_subspace", "subspace_distance"]


def all_estimators() -> dict[str, type[BaseEstimator]]:
    """Every public estimator of the library by name, found without a list to keep."""
    found = {name: getattr(robustpca, name) for name in dir(robustpca)}
    return {
        name: kind
        for name, kind in sorted(found.items())
        if isinstance(kind, type) and issubclass(kind, BaseEstimator)
    }


def all_methods() -> dict[str, type[SubspaceModel]]:
    """Those of the estimators that end with a subspace: the methods of robust PCA."""
    estimators = all_estimators()
    return {name: kind for name, kind in estimators.items() if issubclass(kind, SubspaceModel)}


def subspace_distance(first: Any, second: Any) -> float:
    """Sine of the largest principal angle between the row spaces of two matrices."""
    A = np.linalg.qr(np.asarray(first, dtype=np.float64).T)[0]
    B = np.linalg.qr(np.asarray(second, dtype=np.float64).T)[0]
    if A.shape[1] < B.shape[1]:
        A, B = B, A
    return float(np.linalg.norm(B - A @ (A.T @ B), 2))
