"""Medians and other ranked values of all columns at once, from tiles of rows.

No column is sorted or copied. A sample tells between which values a wanted one is; passes over the
rows count how many are in each of some intervals between these, and end when all values of the
interval that has the wanted one are equal. The result is that of sorting, to the last bit.
"""

from collections.abc import Callable

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.scratch import each, taken
from robustpca.engine.svt import row_tiles
from robustpca.engine.threads import compiled

# Rows that are sorted, all of them or a sample; and intervals for each column.
SORTED_ROWS, N_INTERVALS = 4096, 128
# A sample misses the wanted place by less than this many times the root of its length.
MARGIN = 4.0

Function = Callable[[Array], Array]


def column_medians(X: Array, function: Function = np.asarray) -> Array:
    """Median of each column of what a function gives for the rows of ``X``, as of `nanmedian`.

    Missing entries (NaN) do not count; a column of nothing else has the median NaN.
    """
    values, following, share = ranked(X, 0.5, function)
    return np.where(share > 0, np.mean([values, following], axis=0), values)


def column_quantiles(X: Array, wanted: float) -> Array:
    """Quantile of each column, interpolated between two values."""
    values, following, share = ranked(X, wanted, np.asarray)
    return np.asarray(values + share * (following - values))


def ranked(X: Array, wanted: float, function: Function) -> tuple[Array, Array, Array]:
    """The values before and behind a quantile of each column, and where between the two it is."""
    some = np.sort(function(taken(X, slice(None, None, -(-len(X) // SORTED_ROWS)))), axis=0)
    counts = np.count_nonzero(~np.isnan(some), axis=0)
    if len(some) == len(X):
        last = np.maximum(counts - 1, 0)
        places = wanted * last
        before = places.astype(np.int64)
        at = [
            np.take_along_axis(some, p[None], 0)[0] for p in (before, np.minimum(before + 1, last))
        ]
        return at[0], at[1], places - before
    search = _Search(some, counts, wanted)
    while len(search.open):
        search.start_pass()
        for place in each(row_tiles(X.shape), X):
            search.count(function(X[place]))
        search.narrow()
    return search.values, search.following, search.shares


class _Search:
    """Between which two values of each column the wanted one is, and those that are found."""

    def __init__(self, some: Array, counts: Array, wanted: float) -> None:
        n_columns, self.wanted = some.shape[1], wanted
        self.values, self.following = np.full((2, n_columns), np.nan, some.dtype)
        self.shares = np.zeros(n_columns)
        self.open = np.arange(n_columns)
        last, margin = np.maximum(counts - 1, 0), MARGIN * np.sqrt(counts)
        ends = [
            np.take_along_axis(some, np.clip(wanted * last + away, 0, last).astype(int)[None], 0)[0]
            for away in (-margin, margin)
        ]
        # Any value will do where the sample has none.
        self.low, self.high = (np.where(counts > 0, end, 0).astype(np.float64) for end in ends)

    def start_pass(self) -> None:
        """Begin to count: below the interval, in each part of it, and above."""
        shape = len(self.open), N_INTERVALS + 2
        self.counts = np.zeros(shape, np.int64)
        self.least, self.most = np.full(shape, np.inf), np.full(shape, -np.inf)
        # Not infinite, for intervals that are next to nothing.
        lengths = np.maximum(self.high - self.low, N_INTERVALS * 1e-300)
        self.scale = N_INTERVALS / lengths

    def count(self, tile: Array) -> None:
        """Count the values of some rows."""
        whole = len(self.open) == tile.shape[1]
        tile = np.ascontiguousarray(tile if whole else tile[:, self.open])
        found = self.counts, self.least, self.most
        compiled(count_values)(tile, self.low, self.high, self.scale, *found)

    def narrow(self) -> None:
        """Go on with the part that has the wanted value, or keep that."""
        until = np.cumsum(self.counts, axis=1)
        places = self.wanted * np.maximum(until[:, -1] - 1, 0)
        ranks = places.astype(np.int64)
        lines, parts = np.arange(len(ranks)), np.argmax(until > ranks[:, None], axis=1)
        self.low, self.high = self.least[lines, parts], self.most[lines, parts]
        done = (self.low >= self.high) | (until[:, -1] == 0)
        there = done & (until[:, -1] > 0)
        # The least of all that are greater.
        later = np.arange(N_INTERVALS + 2) > parts[:, None]
        greater = np.where(later, self.least, np.inf).min(axis=1)
        another = (until[lines, parts] > ranks + 1) | np.isinf(greater)
        columns = self.open[there]
        self.values[columns] = self.low[there]
        self.following[columns] = np.where(another, self.low, greater)[there]
        self.shares[columns] = (places - ranks)[there]
        self.open, self.low, self.high = self.open[~done], self.low[~done], self.high[~done]


def count_values(
    X: Array, low: Array, high: Array, scale: Array, counts: Array, least: Array, most: Array
) -> None:
    """Kernel: how many values of each column are in each part of an interval, and their extremes.

    The first part is below the interval, the last above. Its two ends are never in the same part.
    """
    n_parts = counts.shape[1] - 2
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            value = X[i, j]
            if value != value:
                continue
            if value < low[j]:
                part = 0
            elif value > high[j]:
                part = n_parts + 1
            elif value == high[j]:
                part = n_parts
            else:
                part = 1 + min(int((value - low[j]) * scale[j]), n_parts - 1)
            counts[j, part] += 1
            least[j, part] = min(least[j, part], value)
            most[j, part] = max(most[j, part], value)
