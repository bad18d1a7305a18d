"""Weights of graphs from the data: some entries are spoiled, and a good fit mends them.

Hidden entries would ask for too much: neighbours tell best what is not there at all, but a fit
should above all leave alone what is right. So a few entries are spoiled, fits are tried on the
spoiled data, and each is judged by both: how far it is from the true values of the spoiled
entries, and how far from the others. What the first weighs depends on how many entries of the
data are wrong themselves, which the fits tell; as many of the worst are left out of both.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.scratch import each, empty_beside, let_go
from robustpca.engine.svt import LowRank, row_tiles
from robustpca.parts.entry_losses import EntryLoss
from robustpca.parts.graphs import locality_order
from robustpca.parts.units import column_moments
from robustpca.solvers.graph_descent import fista
from robustpca.solvers.split_matrix import GraphSmoothness
from robustpca.solvers.splitting import split

# Share of the entries that are spoiled, by how many deviations, and the largest number of them.
SHARE, DISTANCE, N_PROBES = 0.05, 3.0, 100_000
# Weights to try, for a loss of weight one and data and Laplacian in units of their size.
LEVELS = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 1.8)
# What a spoiled entry counts for each entry that is wrong: not all wrong ones are as far off.
WEIGHT = 0.8
# An entry that is changed by more than a deviation is wrong. Those that are off by half of one or
# more are hidden among right ones, and so many for each that is off by one to two deviations.
UNSEEN = 0.5
# A trial needs no more accuracy than this.
TOL, MAX_ITER = 1e-2, 60
PURSUIT_TOL, PURSUIT_MAX_ITER = 1e-3, 100


@dataclass(frozen=True)
class Outcome:
    """What a trial did to the probes.

    Attributes
    ----------
    mended : ndarray
        Squared errors at the spoiled entries, by size.
    changed : ndarray
        The same at other entries.
    share : float
        Share of the other entries that the fit takes for wrong.
    """

    mended: Array
    changed: Array
    share: float

    def cost(self, wrong: float, weight: float) -> float:
        """Weighted mean of the errors without as many of the worst as are ``wrong``."""
        mended, changed = (
            float(errors[: max(1, round((1 - wrong) * len(errors)))].mean())
            for errors in (self.mended, self.changed)
        )
        return weight * mended + (1 - weight) * changed


@dataclass(frozen=True)
class Probes:
    """Data in which some entries are spoiled, and places to look at.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data with the spoiled entries.
    spoiled, others : tuple of two arrays
        Rows and columns of the spoiled entries, and of some others.
    truth, values : ndarray
        What was at these places.
    deviations, units : ndarray of shape (n_features,)
        Deviations of the columns, and what an error in them counts.
    """

    X: Array
    spoiled: tuple[Array, Array]
    others: tuple[Array, Array]
    truth: Array
    values: Array
    deviations: Array
    units: Array

    @classmethod
    def of(cls, X: Array, units: Array) -> "Probes":
        """Probes in data that may have missing entries (NaN)."""
        rng = np.random.default_rng(0)
        count = min(max(1, int(SHARE * X.size)), N_PROBES)
        places = rng.choice(X.size, min(2 * count, X.size), replace=False)
        rows, columns = np.unravel_index(places, X.shape)
        # In an order that goes with the rows: shuffling them must not change the probes.
        direction = np.asarray(rng.normal(size=X.shape[1]), X.dtype)
        tiles = row_tiles(X.shape)
        along = [np.nan_to_num(X[place]) @ direction for place in each(tiles, X)]
        rows = np.argsort(np.concatenate(along))[rows]
        there = ~np.isnan(X[rows, columns])
        rows, columns = rows[there], columns[there]
        half = (len(rows) + 1) // 2
        spoiled = rows[:half], columns[:half]
        others = rows[half:], columns[half:]
        means, deviations = column_moments(X)
        truth = X[spoiled]
        # To the other side of the mean, so that no spoiled value is a usual one.
        side = np.where(truth > means[spoiled[1]], -1.0, 1.0)
        wrong = empty_beside(X)
        for place in each(tiles, X, wrong):
            wrong[place] = X[place]
        wrong[spoiled] += (DISTANCE * side * deviations[spoiled[1]]).astype(X.dtype)
        values = X[others]
        let_go(X, wrong)
        return cls(wrong, spoiled, others, truth, values, deviations, units)

    def outcome(self, fitted: Array) -> Outcome:
        """What a fit of the spoiled data made of the probes."""
        mended = np.abs(fitted[self.spoiled] - self.truth, dtype=np.float64)
        changed = np.abs(fitted[self.others] - self.values, dtype=np.float64)
        let_go(fitted)
        deviations = self.deviations[self.others[1]]
        far, farther = (float(np.mean(changed > n * deviations)) for n in (1, 2))
        return Outcome(
            np.sort(np.square(mended * self.units[self.spoiled[1]])),
            np.sort(np.square(changed * self.units[self.others[1]])),
            far + UNSEEN * (far - farther),
        )


def best_of(outcomes: list[Outcome]) -> int:
    """The trial that does best, if as many entries are wrong as this trial finds."""
    wrong, weight, best = 0.1, 0.05, 0
    for _ in range(3):
        best = int(np.argmin([outcome.cost(wrong, weight) for outcome in outcomes]))
        wrong = float(np.clip(outcomes[best].share, 0.02, 0.15))
        weight = WEIGHT * wrong
    return best


def pursuit_smoothness(
    X: Array,
    loss: EntryLoss,
    laplacian: Any,
    scale: float,
    without: Callable[[Array, LowRank], Array],
) -> float:
    """Weight of a graph of the samples beside a nuclear norm; zero if the graph does not help.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data; NaN where missing.
    loss : EntryLoss
        Loss of the residual entries.
    laplacian : csr_array of shape (n_samples, n_samples)
        Laplacian of the samples.
    scale : float
        Root mean square of the entries.
    without : callable
        Gives the low-rank part that data get for which the weight is zero, from that of the
        convex problem.
    """
    if scale == 0:
        return 0.0
    probes = Probes.of(X, np.ones(X.shape[1]))
    unit = loss.weight / (scale * _mean_degree(laplacian))
    graph = GraphSmoothness.of(laplacian, 1.0)
    outcomes: list[Outcome] = []
    start = None
    for level in LEVELS:
        term = GraphSmoothness(laplacian, level * unit, graph.norm) if level else None
        result = split(
            probes.X, loss, term, tol=PURSUIT_TOL, max_iter=PURSUIT_MAX_ITER, start=start
        )
        start = result.start()
        fitted = result.low_rank.dense() if level else without(probes.X, result.low_rank)
        outcomes.append(probes.outcome(fitted))
        # More smoothness than what is best makes it worse and worse.
        if best_of(outcomes) < len(outcomes) - 1:
            break
    return LEVELS[best_of(outcomes)] * unit


def descent_smoothness(
    X: Array,
    loss: EntryLoss,
    laplacians: tuple[Any, Any],
    norms: tuple[float, float],
    weights: tuple[float | str, float | str],
    scale: float,
    units: Array,
) -> tuple[float, float]:
    """Weights of a graph of the samples and one of the features beside a loss of the entries.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data; NaN where missing.
    loss : EntryLoss
        Loss of the residual entries.
    laplacians : tuple of two csr_array
        Laplacians of the samples and of the features.
    norms : tuple of two float
        Their largest eigenvalues.
    weights : tuple of two float or 'auto'
        Weights for data in units of their size; 'auto' for those that are to be chosen.
    scale : float
        Root mean square of the entries.
    units : ndarray of shape (n_features,)
        What an error of one counts in each column.

    Returns
    -------
    sample_smoothness, feature_smoothness : float
        The weights for the data as they are.
    """
    # The graphs weigh squares: in other units, a loss of degree one needs other weights.
    unit = scale ** (loss.degree - 2)
    choices = [
        [unit * loss.weight * level / _mean_degree(matrix) for level in LEVELS]
        if weight == "auto"
        else [unit * float(weight)]
        for matrix, weight in zip(laplacians, weights, strict=True)
    ]
    if "auto" not in weights:
        return choices[0][0], choices[1][0]
    probes, order = Probes.of(X, units), locality_order(laplacians[0])
    outcomes: dict[tuple[int, ...], Outcome] = {}
    start = None

    def best_among(pairs: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        nonlocal start
        for pair in pairs:
            first, second = choices[0][pair[0]], choices[1][pair[1]]
            if pair in outcomes or first + second == 0:
                continue
            result = fista(
                probes.X,
                loss,
                laplacians[0],
                first,
                laplacians[1],
                second,
                sample_norm=norms[0],
                feature_norm=norms[1],
                order=order,
                start=start,
                tol=TOL,
                max_iter=MAX_ITER,
            )
            start = result.low_rank
            outcomes[pair] = probes.outcome(start)
        return list(outcomes)[best_of(list(outcomes.values()))]

    counts = [len(choice) for choice in choices]
    # Every second level first, then those beside the best pair.
    coarse = best_among(product(*(range(min(1, count - 1), count, 2) for count in counts)))
    beside = [range(max(0, i - 1), min(i + 2, n)) for i, n in zip(coarse, counts, strict=True)]
    best = best_among(product(*beside))
    return choices[0][best[0]], choices[1][best[1]]


def _mean_degree(laplacian: Any) -> float:
    """Mean of the diagonal, which is one for a normalised Laplacian; one for an empty graph."""
    return float(laplacian.diagonal().mean()) or 1.0
