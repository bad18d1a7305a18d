"""How well k-means on what a model makes of the data finds the classes.

The papers run k-means on reconstructed data, on codes or on a low-rank part. All are the same up
to a rotation, so that k-means runs on as few coordinates as hold all distances. An embedding with
orthonormal columns is another thing than the low-rank approximation that its loadings make of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import linalg
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score, silhouette_score
from sklearn.pipeline import Pipeline

from robustpca.engine.linalg import Array
from robustpca.metrics import clustering_error

__all__ = [
    "Clustering",
    "approximation",
    "coordinates",
    "mutual_information",
    "partitions",
    "separation",
    "singular_vectors",
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


@dataclass(frozen=True)
class Clustering:
    """A score: how the clusters that k-means finds in what a model makes of its data agree with y.

    Parameters
    ----------
    measure : callable, default=clustering_error
        Takes the classes and the clusters.
    take : {'best', 'mean', 'smallest'}, default='best'
        Which run counts: the one with the lowest inertia, which knows nothing of the classes; all
        of them, in the mean; or the one with the smallest value, which says what k-means could
        find and not what it finds without the classes.
    of : callable, default=coordinates
        What to cluster: a function of the model, its data and the number of clusters.
    n_runs : int, default=10
        Runs, each from one random start.
    """

    measure: Callable[[Array, Array], float] = clustering_error
    take: str = "best"
    of: Features = coordinates
    n_runs: int = 10

    def __call__(
        self, model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int
    ) -> float:
        n_clusters = len(np.unique(y))
        runs = partitions(model, X_corrupt, n_clusters, self.n_runs, random_state, self.of)
        if self.take == "best":
            runs = [min(runs, key=lambda run: run.inertia)]
        values = [float(self.measure(y, run.labels)) for run in runs]
        return min(values) if self.take == "smallest" else fmean(values)


# The reports divide by the geometric mean of the entropies, scikit-learn by the arithmetic one.
mutual_information = partial(normalized_mutual_info_score, average_method="geometric")


def separation(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Silhouette of the classes, from -1 to 1: how much nearer samples are to their own."""
    return float(silhouette_score(coordinates(model, X_corrupt), y))
