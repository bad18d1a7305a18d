"""How well k-means on what a model has made of its training data finds the classes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from robustpca.engine.linalg import Array
from robustpca.metrics import clustering_error
from robustpca.papers.approximations import coordinates

__all__ = ["Clustering", "mutual_information", "partitions", "spread"]


@dataclass(frozen=True)
class Partition:
    """Clusters of one run of k-means, and the sum of squares it could not lower further."""

    labels: Array
    inertia: float


_found: WeakKeyDictionary[Any, dict[Any, list[Partition]]] = WeakKeyDictionary()


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
    take : callable, default=None
        Takes the values of all runs and returns that of the model, such as `statistics.fmean`.
        ``min`` says what k-means could find and not what it finds without the classes. None for
        the run with the lowest inertia, which knows nothing of the classes.
    of : callable, default=coordinates
        What to cluster: a function of the model, its data and the number of clusters.
    n_runs : int, default=10
        Runs, each from one random start.
    """

    measure: Callable[[Array, Array], float] = clustering_error
    take: Callable[[list[float]], float] | None = None
    of: Features = coordinates
    n_runs: int = 10

    def __call__(
        self, model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int
    ) -> float:
        n_clusters = len(np.unique(y))
        runs = partitions(model, X_corrupt, n_clusters, self.n_runs, random_state, self.of)
        if self.take is None:
            return float(self.measure(y, min(runs, key=lambda run: run.inertia).labels))
        return self.take([float(self.measure(y, run.labels)) for run in runs])


# The reports divide by the geometric mean of the entropies, scikit-learn by the arithmetic one.
mutual_information = partial(normalized_mutual_info_score, average_method="geometric")


def spread(values: list[float]) -> float:
    """Standard deviation of the values of single runs."""
    return float(np.std(values, ddof=1))
