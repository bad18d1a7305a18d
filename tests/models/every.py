"""Every estimator with data for it, and what a fit comes to, bit by bit."""

import inspect
import warnings
from dataclasses import is_dataclass

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from robustpca import Reweighted, all_estimators
from robustpca.datasets.synthetic import planted_subspace

IMAGE_SHAPE = (6, 5)
NAMES = [name for name in all_estimators() if name != "Reweighted"]
NAMES += ["Reweighted(KMeans)", "Reweighted(Ridge)"]


def make(name, **settings):
    """An estimator by its name."""
    if name == "Reweighted(KMeans)":
        return Reweighted(KMeans(3, n_init=2, random_state=0), **settings)
    if name == "Reweighted(Ridge)":
        return Reweighted(Ridge(), **settings)
    kind = all_estimators()[name]
    known = inspect.signature(kind).parameters
    if "image_shape" in known:
        settings = {"n_components": (2, 2), "image_shape": IMAGE_SHAPE} | settings
    elif "n_components" in known:
        settings = {"n_components": 2} | settings
    return kind(**{key: value for key, value in settings.items() if key in known})


def data(name, n_samples=80, seed=0):
    """What ``fit`` of that estimator takes."""
    rng = np.random.default_rng(seed)
    X = planted_subspace(rng, n_samples, 30, 2, n_outliers=n_samples // 10, noise=0.1)[0]
    if name == "GNMF":
        X = np.abs(X)
    if name == "RVFLClassifier":
        return X, np.arange(n_samples) % 2
    return (X, X[:, 0] + rng.normal(size=n_samples)) if name == "Reweighted(Ridge)" else (X,)


def fit(name, *given, **settings):
    """Fit an estimator to its data; few passes and odd data give cause for warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*(takes in rows|full rank|circles)", UserWarning)
        return make(name, **settings).fit(*(given or data(name)))


def bits(value):
    """All numbers that an object holds, by the path to them; equal only if every bit is."""
    if isinstance(value, BaseEstimator):
        value = {key: each for key, each in vars(value).items() if key not in ("callback",)}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if sparse.issparse(value):
        value = value.tocsr()
        return [bits(part) for part in (value.data, value.indices, value.indptr)]
    if isinstance(value, dict):
        return {key: bits(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(each) for each in value]
    if is_dataclass(value) or type(value).__module__.startswith("robustpca."):
        return type(value).__name__, bits(vars(value))
    return repr(value)
