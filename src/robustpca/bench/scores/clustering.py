"""How well k-means on what a model makes of the data finds the classes.

The papers run k-means on reconstructed data, on codes or on a low-rank part. All are the same up
to a rotation, so that k-means runs on as few coordinates as hold all distances. An embedding with
orthonormal columns is another thing than the low-rank approximation that its loadings make of it.
"""

from collections.abc import Callable
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
    "approximation",
    "best_accuracy",
    "best_error",
    "best_mutual_information",
    "best_rand_index",
    "coordinates",
    "mean_accuracy",
    "mean_error",
    "partitions",
    "separation",
    "singular_vectors",
    "smallest_error",
]


@dataclass(frozen=True)
class Partition:
    """Clusters of one run of k-means, and the sum of squares it could not lower further."""

    labels: Array
    inertia: float


_found: WeakKeyDictionary[Any, dict[Any, list[Partition]]] = WeakKeyDictionary()


def coordinates(model: Any, X: Array, n_clusters: int | None = None) -> Array:
    """What a model makes of its training data, in as few coordinates as keep all distances.

    Its embedding if it has one, which is that of the low-rank part where there is one; else the
    codes of ``X``, those along loadings that are not orthonormal in an orthonormal basis of
    their span. Of a pipeline, the last step counts.
    """
    model, X = _last_step(model, X)
    embedding = getattr(model, "embedding_", None)
    return approximation(model, X) if embedding is None else np.asarray(embedding)


def approximation(model: Any, X: Array, n_clusters: int | None = None) -> Array:
    """As `coordinates`, but of the low-rank approximation that an embedding stands for."""
    model, X = _last_step(model, X)
    codes = np.asarray(model.embedding_ if hasattr(model, "embedding_") else model.transform(X))
    if not hasattr(model, "loadings_"):
        return codes
    left, values, _ = linalg.svd(model.loadings_, full_matrices=False)
    return np.asarray(codes @ (left * values))


def singular_vectors(model: Any, X: Array, n_clusters: int) -> Array:
    """As many left singular vectors of the low-rank part as clusters; else `coordinates`.

    Without the singular values, all of them count alike.
    """
    low_rank = getattr(_last_step(model, X)[0], "low_rank_", None)
    if low_rank is None:
        return coordinates(model, X)
    return np.asarray(linalg.svd(low_rank, full_matrices=False)[0][:, :n_clusters])


def _last_step(model: Any, X: Array) -> tuple[Any, Array]:
    if not isinstance(model, Pipeline):
        return model, X
    return model[-1], model[:-1].transform(X) if len(model) > 1 else X


Features = Callable[[Any, Array, int], Array]


def partitions(
    model: Any,
    X: Array,
    n_clusters: int,
    n_runs: int,
    random_state: int,
    of: Features = coordinates,
) -> list[Partition]:
    """Runs of k-means, each from one random start; those of a model are made once."""
    runs = _found.setdefault(model, {})
    key = (id(X), n_clusters, n_runs, random_state, of)
    if key not in runs:
        codes = of(model, X, n_clusters)
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
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 10,
    of: Features = coordinates,
) -> float:
    """Share of samples in the right cluster, of the run of k-means with the lowest inertia."""
    return clustering_accuracy(y, _best(model, X_corrupt, y, random_state, n_runs, of))


def best_error(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 10,
    of: Features = coordinates,
) -> float:
    """Share of samples in a wrong cluster, of the run of k-means with the lowest inertia."""
    return 1 - best_accuracy(model, X_clean, X_corrupt, y, random_state, n_runs, of)


def smallest_error(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 10,
    of: Features = coordinates,
) -> float:
    """Share of samples in a wrong cluster, of the run of k-means that comes nearest the labels.

    It says what k-means could find, not what it finds without them.
    """
    runs = partitions(model, X_corrupt, len(np.unique(y)), n_runs, random_state, of)
    return min(clustering_error(y, run.labels) for run in runs)


def best_mutual_information(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 10,
    of: Features = coordinates,
) -> float:
    """Normalised mutual information of that run, with the geometric mean of the entropies."""
    labels = _best(model, X_corrupt, y, random_state, n_runs, of)
    return float(normalized_mutual_info_score(y, labels, average_method="geometric"))


def best_rand_index(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 10,
    of: Features = coordinates,
) -> float:
    """Adjusted Rand index of that run."""
    return float(adjusted_rand_score(y, _best(model, X_corrupt, y, random_state, n_runs, of)))


def separation(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Silhouette of the classes, from -1 to 1: how much nearer samples are to their own."""
    return float(silhouette_score(coordinates(model, X_corrupt), y))


def _best(model: Any, X: Array, y: Array, random_state: int, n_runs: int, of: Features) -> Array:
    runs = partitions(model, X, len(np.unique(y)), n_runs, random_state, of)
    return min(runs, key=lambda run: run.inertia).labels
