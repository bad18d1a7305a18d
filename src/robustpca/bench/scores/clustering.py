"""How well k-means on what a model makes of the data finds the classes.

The papers run k-means on reconstructed data, on codes or on a low-rank part. All are the same up
to a rotation, so that k-means runs on as few coordinates as hold all distances.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import linalg
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    silhouette_score,
)
from sklearn.pipeline import Pipeline

from robustpca.core.linalg import Array
from robustpca.metrics import clustering_accuracy, clustering_error

__all__ = [
    "best_accuracy",
    "best_error",
    "best_mutual_information",
    "best_rand_index",
    "coordinates",
    "mean_accuracy",
    "mean_error",
    "partitions",
    "separation",
    "smallest_error",
]


@dataclass(frozen=True)
class Partition:
    """Clusters of one run of k-means, and the sum of squares it could not lower further."""

    labels: Array
    inertia: float


_found: WeakKeyDictionary[Any, dict[Any, list[Partition]]] = WeakKeyDictionary()


def coordinates(model: Any, X: Array, n_vectors: int | None = None) -> Array:
    """What a model makes of its training data, in as few coordinates as keep all distances.

    Its embedding if it has one, which is that of the low-rank part where there is one; else the
    codes of ``X``. Of a pipeline, the last step counts. With ``n_vectors``, a low-rank part is
    replaced by so many of its left singular vectors: without the singular values, all of them
    count alike.
    """
    if isinstance(model, Pipeline):
        X = model[:-1].transform(X) if len(model) > 1 else X
        return coordinates(model[-1], X, n_vectors)
    if n_vectors is not None and hasattr(model, "low_rank_"):
        return linalg.svd(model.low_rank_, full_matrices=False)[0][:, :n_vectors]
    embedding = getattr(model, "embedding_", None)
    return np.asarray(model.transform(X) if embedding is None else embedding)


def partitions(
    model: Any, X: Array, n_clusters: int, n_runs: int, random_state: int, vectors: bool = False
) -> list[Partition]:
    """Runs of k-means, each from one random start; those of a model are made once.

    With ``vectors``, a low-rank part is replaced by as many singular vectors as clusters.
    """
    runs = _found.setdefault(model, {})
    key = (id(X), n_clusters, n_runs, random_state, vectors)
    if key not in runs:
        codes = coordinates(model, X, n_clusters if vectors else None)
        starts = np.random.RandomState(random_state).randint(2**31 - 1, size=n_runs)
        fits = [KMeans(n_clusters, n_init=1, random_state=start).fit(codes) for start in starts]
        runs[key] = [Partition(fit.labels_, fit.inertia_) for fit in fits]
    return runs[key]


def mean_accuracy(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int, n_runs: int = 50
) -> float:
    """Share of samples in the right cluster, averaged over all runs of k-means."""
    runs = partitions(model, X_corrupt, len(np.unique(y)), n_runs, random_state)
    return float(np.mean([clustering_accuracy(y, run.labels) for run in runs]))


def mean_error(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int, n_runs: int = 50
) -> float:
    """Share of samples in a wrong cluster, averaged over all runs of k-means."""
    return 1 - mean_accuracy(model, X_clean, X_corrupt, y, random_state, n_runs)


def best_accuracy(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int, n_runs: int = 10
) -> float:
    """Share of samples in the right cluster, of the run of k-means with the lowest inertia."""
    return clustering_accuracy(y, _best(model, X_corrupt, y, random_state, n_runs))


def best_error(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 10,
    vectors: bool = False,
) -> float:
    """Share of samples in a wrong cluster, of the run of k-means with the lowest inertia.

    With ``vectors``, k-means runs on singular vectors, as in `partitions`.
    """
    return clustering_error(y, _best(model, X_corrupt, y, random_state, n_runs, vectors))


def smallest_error(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 10,
    vectors: bool = False,
) -> float:
    """Share of samples in a wrong cluster, of the run of k-means that comes nearest the labels.

    It says what k-means could find, not what it finds without them. With ``vectors``, it runs on
    singular vectors, as in `partitions`.
    """
    runs = partitions(model, X_corrupt, len(np.unique(y)), n_runs, random_state, vectors)
    return min(clustering_error(y, run.labels) for run in runs)


def best_mutual_information(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int, n_runs: int = 10
) -> float:
    """Normalised mutual information of that run, with the geometric mean of the entropies."""
    labels = _best(model, X_corrupt, y, random_state, n_runs)
    return float(normalized_mutual_info_score(y, labels, average_method="geometric"))


def best_rand_index(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int, n_runs: int = 10
) -> float:
    """Adjusted Rand index of that run."""
    return float(adjusted_rand_score(y, _best(model, X_corrupt, y, random_state, n_runs)))


def separation(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Silhouette of the classes, from -1 to 1: how much nearer samples are to their own."""
    return float(silhouette_score(coordinates(model, X_corrupt), y))


def _best(
    model: Any, X: Array, y: Array, random_state: int, n_runs: int, vectors: bool = False
) -> Array:
    runs = partitions(model, X, len(np.unique(y)), n_runs, random_state, vectors)
    return min(runs, key=lambda run: run.inertia).labels
