"""How much of a clustering accuracy may be luck."""

from typing import Any

import numpy as np
from scipy import special

from robustpca.bench.scores.clustering import partitions
from robustpca.engine.linalg import Array
from robustpca.metrics import clustering_accuracy

__all__ = ["accuracy_spread", "lucky_accuracy"]


def accuracy_spread(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, random_state: int, n_runs: int = 50
) -> float:
    """Standard deviation of the share of samples in the right cluster over runs of k-means."""
    return float(np.std(_accuracies(model, X_corrupt, y, random_state, n_runs), ddof=1))


def lucky_accuracy(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    y: Array,
    random_state: int,
    n_runs: int = 50,
    n_tries: int = 10,
) -> float:
    """Share of samples in the right cluster that the best of ``n_tries`` single runs would have.

    The labels choose the run, and the result is the mean over all ways of drawing so many of the
    ``n_runs`` runs. It is what a method reaches if it is run once for each of ``n_tries`` values
    of a parameter that changes nothing, and the highest accuracy counts.
    """
    accuracies = np.sort(_accuracies(model, X_corrupt, y, random_state, n_runs))
    # In how many draws the run of each rank is the best one.
    ways = special.comb(np.arange(n_runs), n_tries - 1)
    return float(accuracies @ ways / special.comb(n_runs, n_tries))


def _accuracies(model: Any, X: Array, y: Array, random_state: int, n_runs: int) -> list[float]:
    runs = partitions(model, X, len(np.unique(y)), n_runs, random_state)
    return [clustering_accuracy(y, run.labels) for run in runs]
