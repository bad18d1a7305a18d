"""Data of the FRPCAG paper: waves of error, numerals without a view, flights."""

from dataclasses import replace

import numpy as np
from sklearn.preprocessing import scale

from robustpca.datasets import Dataset, load
from robustpca.papers.samples import ordered_classes

__all__ = ["busy_airports", "waves_of_error", "without_view"]


def waves_of_error(n_samples: int = 100, n_features: int = 20) -> Dataset:
    """Samples on a circle that are nothing but error, as smooth as can be on a ring.

    Nearest neighbours make rings of samples and of features, and each feature is a wave round
    the ring: next to constant features, nothing is smoother.

    Parameters
    ----------
    n_samples, n_features : int, default=100 and 20
        Sizes.

    Returns
    -------
    dataset : Dataset
        Its extras: ``low_rank``, which is zero.

    Examples
    --------
    >>> from robustpca.papers.frpcag.samples import waves_of_error
    >>> waves_of_error(4, 2).X.round(12) + 0.0
    array([[ 1., -1.],
           [ 0.,  0.],
           [-1.,  1.],
           [ 0.,  0.]])
    """
    angles = 2 * np.pi * np.arange(n_samples) / n_samples
    phases = 2 * np.pi * np.arange(n_features) / n_features
    X = np.cos(angles[:, None] + phases)
    return Dataset("waves", X, None, None, "made by robustpca", {"low_rank": np.zeros_like(X)})


def without_view(name: str, view: str, n_each: int | None = None) -> Dataset:
    """Samples in several views, all of which but one are kept.

    Parameters
    ----------
    name : str
        Name in the catalogue of a set with ``view_names`` and ``view_sizes``.
    view : str
        Name of the view to leave out.
    n_each : int, default=None
        At most so many samples of each class, the first ones; None for all.

    Returns
    -------
    dataset : Dataset
        The samples, one class after the other; its rows are not images.
    """
    data = ordered_classes(name, None, n_each)
    names = [str(label) for label in data.extras["view_names"]]
    owners = np.repeat(names, data.extras["view_sizes"])
    return replace(data, X=data.X[:, owners != view], image_shape=None, extras={})


def busy_airports(n_rows: int | None = None, n_features: int = 68) -> Dataset:
    """Flights with the busiest airports as columns of their own: a large table of mixed columns.

    Parameters
    ----------
    n_rows : int, default=None
        The first so many flights; None for all three million.
    n_features : int, default=68
        Number of columns: the numbers, and a share each for origins and destinations.

    Returns
    -------
    dataset : Dataset
        Single precision. Columns that are numbers are standardised, the others are 0 or 1.
    """
    stored = load("flights")
    names = [str(column).lower() for column in stored.extras["columns"]]
    table = stored.X[:n_rows]
    places = [i for i, name in enumerate(names) if name in ("origin", "destination")]
    numbers = [i for i in range(len(names)) if i not in places]
    X = np.zeros((len(table), n_features), np.float32)
    X[:, : len(numbers)] = scale(table[:, numbers].astype(np.float64))
    width, at = (n_features - len(numbers)) // len(places), len(numbers)
    for i in places:
        airports = table[:, i].astype(int)
        for airport in np.argsort(-np.bincount(airports), kind="stable")[:width]:
            X[:, at] = airports == airport
            at += 1
    return replace(stored, X=X, y=None, extras={})
