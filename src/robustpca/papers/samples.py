"""Parts of data sets that papers take: some classes, some samples of each."""

from collections.abc import Sequence

import numpy as np

from robustpca.datasets import Dataset, load
from robustpca.engine.linalg import Array

__all__ = ["evenly", "ordered_classes"]


def ordered_classes(
    name: str,
    classes: Sequence[int] | int | None = None,
    n_each: int | None = None,
    size: tuple[int, int] | None = None,
    spaced: bool = False,
) -> Dataset:
    """Samples of some classes, one class after the other.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    classes : sequence of int, int or None, default=None
        Which classes, or how many of the first; None for all.
    n_each : int, default=None
        At most so many samples of each; None for all.
    size : tuple of two int, default=None
        Height and width of the images; None for those of the stored file.
    spaced : bool, default=False
        Whether to take the samples of a class at equal distances instead of the first ones.

    Returns
    -------
    dataset : Dataset
        The samples.

    Examples
    --------
    >>> from robustpca.papers.samples import ordered_classes
    >>> ordered_classes("digits", [0, 1], 50).y.tolist() == 50 * [0] + 50 * [1]
    True
    """
    data = load(name, size=size)
    if data.y is None:
        raise ValueError(f"{name} has no classes to choose from.")
    wanted = np.unique(data.y)[:classes] if classes is None or isinstance(classes, int) else classes
    rows = []
    for label in wanted:
        own = np.flatnonzero(data.y == label)
        rows.append(own[evenly(len(own), n_each)] if spaced else own[:n_each])
    return data.taken(np.concatenate(rows))


def evenly(total: int, count: int | None) -> Array:
    """Numbers of ``count`` of ``total`` things at equal distances, the first and the last included.

    Examples
    --------
    >>> from robustpca.papers.samples import evenly
    >>> evenly(10, 4)
    array([0, 3, 6, 9])
    """
    return np.linspace(0, total - 1, min(count or total, total)).round().astype(int)
