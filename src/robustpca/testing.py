"""Help for tests and benchmarks: planted truths, distances between subspaces, discovery."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import robustpca
from robustpca.base import SubspaceModel
from robustpca.core.linalg import Array

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


def planted_subspace(
    rng: np.random.Generator,
    n_samples: int = 200,
    n_features: int = 30,
    n_components: int = 4,
    n_outliers: int = 0,
    *,
    noise: float = 0.01,
    clustered: bool = False,
    distance: float = 30.0,
) -> tuple[Array, Array, Array]:
    """Samples near a random subspace, some of them replaced by gross outliers.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    n_samples, n_features, n_components, n_outliers : int
        Sizes; the outliers are among the samples.
    noise : float, default=0.01
        Standard deviation of each entry of the noise.
    clustered : bool, default=False
        Put all outliers into one tight cloud instead of scattering them.
    distance : float, default=30.0
        How far from the centre the outliers lie.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The samples, in random order.
    basis : ndarray of shape (n_components, n_features)
        Orthonormal rows spanning the planted subspace.
    is_outlier : ndarray of shape (n_samples,)
        Which samples were replaced.
    """
    basis = np.linalg.qr(rng.normal(size=(n_features, n_components)))[0].T
    scales = np.linspace(6.0, 2.0, n_components)
    X = (rng.normal(size=(n_samples, n_components)) * scales) @ basis
    X += noise * rng.normal(size=X.shape)
    is_outlier = np.zeros(n_samples, dtype=bool)
    is_outlier[rng.choice(n_samples, n_outliers, replace=False)] = True
    directions = rng.normal(size=(1 if clustered else n_outliers, n_features))
    directions *= distance / np.linalg.norm(directions, axis=1, keepdims=True)
    X[is_outlier] = directions + noise * rng.normal(size=(n_outliers, n_features))
    return X + rng.normal(size=n_features), basis, is_outlier


def subspace_distance(first: Any, second: Any) -> float:
    """Sine of the largest principal angle between the row spaces of two matrices."""
    A = np.linalg.qr(np.asarray(first, dtype=np.float64).T)[0]
    B = np.linalg.qr(np.asarray(second, dtype=np.float64).T)[0]
    if A.shape[1] < B.shape[1]:
        A, B = B, A
    return float(np.linalg.norm(B - A @ (A.T @ B), 2))
