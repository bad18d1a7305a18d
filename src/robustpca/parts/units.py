"""Units of the columns of a table: a robust centre and a robust scale for each.

Images, video and spectra share one unit and need neither. Tables often hold quantities with
different offsets and scales, beside which the errors of the others are invisible.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from robustpca.engine.column_ranks import column_medians, column_quantiles
from robustpca.engine.linalg import Array, column_percentiles
from robustpca.engine.scratch import each, of_rows, taken
from robustpca.engine.svt import row_tiles

__all__ = ["Differences", "Units", "column_units", "spreads", "unit_differences"]

# Standard deviations of a Gaussian per median absolute deviation, and per 10 % to 90 % range.
PER_MAD, PER_RANGE = 1.4826, 1 / 2.5631
# Columns have different units if the spreads of most differ by more than this factor,
SPREAD_RATIO = 10.0
# or their medians by more than this many spreads,
MEDIAN_RATIO = 3.0
# unless they are many, and neighbouring columns have similar offsets as in an image.
MANY_COLUMNS, NEIGHBOUR_CORRELATION = 50, 0.5
# Data that are this many spreads away from zero are centred in any case: digits would be lost.
FAR = 1e3
# So are data whose offsets are in few columns: a column of offsets is as sparse as it is of low
# rank, and the two parts cannot be told apart. An offset is a median that is farther from zero, by
# so many of its standard errors, than the farthest of as many medians is by chance; columns are few
# if the sum of the offsets is less than this many times the root of the sum of their squares, as
# that of ten equal ones is.
STANDARD_ERRORS, FEW_COLUMNS = 1.5, 3.2
# Standard error of a median, in standard deviations over the root of the number of rows.
MEDIAN_ERROR = float(np.sqrt(np.pi / 2))
# Data of other sizes are brought to size one, so that squares neither overflow nor vanish.
USUAL_SIZES = 1e-8, 1e8
# Spreads below this share of the largest entry are rounding error: such a column is constant.
ROUNDING = 1e-10
# Rows from which the rules are derived: at most, and at least.
SAMPLED_ROWS, FEW_ROWS = 400, 10


@dataclass(frozen=True)
class Differences:
    """In which way the units of columns differ.

    Attributes
    ----------
    medians : bool
        Whether the medians of the columns lie far apart, beside the spreads of the columns.
    spreads : bool
        Whether the spreads differ much.
    far : bool
        Whether all columns are so far from zero that digits would be lost.
    lone : bool
        Whether few columns have offsets.
    """

    medians: bool = False
    spreads: bool = False
    far: bool = False
    lone: bool = False


@dataclass(frozen=True)
class Units:
    """What was subtracted from the columns, and what they were then divided by.

    Parameters
    ----------
    shift, scale : ndarray of shape (n_features,)
        Offset and unit of each column.
    """

    shift: Array
    scale: Array

    @property
    def trivial(self) -> bool:
        """Whether the data stay as they are."""
        return not self.shift.any() and bool((self.scale == 1).all())

    def remove(self, X: Array) -> Array:
        """Data of the user in these units.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Data in the units of the user.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The same array if nothing changes.
        """
        return X if self.trivial else of_rows(lambda x: (x - self.shift) / self.scale, X)

    def restore(self, X: Array, dtype: Any = None) -> Array:
        """Data in these units in the user's, and of another type if wanted.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Data in these units.
        dtype : dtype, default=None
            Type of the result; None for that of ``X``.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Data in the units of the user.
        """
        values = X if self.trivial else X * self.scale + self.shift
        return values.astype(dtype or X.dtype, copy=False)


def column_units(X: Array, center: str | None, scale: str | None) -> Units:
    """Centre and scale of the columns of ``X``; NaN entries are missing.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    center : {'auto', 'median'} or None
        What to subtract.
    scale : {'auto', 'mad'} or None
        What to divide by: the median absolute deviation, in standard deviations of a Gaussian.
        'auto' scales if there are `unit_differences`, and centres if there are, or if data are far
        from zero or few columns are.
    """
    found = unit_differences(X) if "auto" in (center, scale) else Differences()
    differ = found.medians or found.spreads
    shift, sizes, medians = np.zeros(X.shape[1]), np.ones(X.shape[1]), None
    if center == "median" or (center == "auto" and (differ or found.far or found.lone)):
        medians = column_medians(X)
        shift = medians.astype(np.float64)
    if scale == "mad" or (scale == "auto" and differ):
        sizes = spreads(X, medians)
        return Units(shift, np.where(sizes > 0, sizes, 1.0))
    typical = 0.0
    for place in each(row_tiles(X.shape), X):
        moved = X[place] - shift if shift.any() else X[place]
        typical = float(np.fmax(typical, np.fmax.reduce(np.abs(moved), axis=None)))
    if typical > 0 and not USUAL_SIZES[0] < typical < USUAL_SIZES[1]:
        sizes *= 2.0 ** np.round(np.log2(typical))
    return Units(shift, sizes)


def unit_differences(X: Array) -> Differences:
    """Whether the columns of ``X`` have different units; the constants of this module say when.

    The entries of images, video and spectra share a unit: these have many columns, and
    neighbouring columns have similar medians.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data; NaN where missing.

    Returns
    -------
    Differences
        What differs.
    """
    X = taken(X, slice(None, None, max(1, -(-len(X) // SAMPLED_ROWS)))).astype(np.float64)
    X = X[:, np.count_nonzero(~np.isnan(X), axis=0) > 1]
    if X.shape[1] < 2 or len(X) < FEW_ROWS:
        return Differences()
    low, median, high = column_percentiles(X, [10, 50, 90])
    sizes = PER_RANGE * (high - low)
    # Rounding errors are those of a column itself, or of what it was computed from: usual columns,
    # but not one of far larger numbers, such as time stamps, beside which all others would be none.
    largest = np.maximum(np.abs(high), np.abs(low))
    genuine = sizes > ROUNDING * np.maximum(largest, np.median(largest))
    if np.count_nonzero(genuine) < 2:
        return Differences()
    typical = float(np.median(sizes[genuine]))
    offsets = _offsets(median, np.where(genuine, sizes, typical), len(X))
    lone = bool(0 < np.abs(offsets).sum() < FEW_COLUMNS * np.linalg.norm(offsets))
    median, sizes, offsets = median[genuine], sizes[genuine], offsets[genuine]
    far = float(np.median(np.abs(median))) > FAR * typical
    if len(sizes) >= MANY_COLUMNS and _alike(offsets[:-1], offsets[1:]) > NEIGHBOUR_CORRELATION:
        return Differences(far=far)
    least, most = np.percentile(sizes, [10, 90])
    apart = float(np.std(median)) > MEDIAN_RATIO * typical
    return Differences(apart, bool(most > SPREAD_RATIO * least), far, lone)


def _offsets(median: Array, sizes: Array, n_rows: int) -> Array:
    """Medians of columns, zero where they are no farther from it than by chance."""
    farthest = np.sqrt(2 * np.log(len(median))) + STANDARD_ERRORS
    errors = MEDIAN_ERROR * sizes / np.sqrt(n_rows)
    return np.where(np.abs(median) > farthest * errors, median, 0.0)


def _alike(before: Array, behind: Array) -> float:
    """Correlation of neighbours; zero for columns that are all alike."""
    if np.ptp(before) == 0 or np.ptp(behind) == 0:
        return 0.0
    return float(np.corrcoef(before, behind)[0, 1])


def column_moments(X: Array) -> tuple[Array, Array]:
    """Means and standard deviations of the columns without their missing entries (NaN)."""
    tiles = row_tiles(X.shape)
    counts = np.zeros(X.shape[1])
    means, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for place in each(tiles, X):
        known = ~np.isnan(X[place])
        counts += np.count_nonzero(known, axis=0)
        means += np.sum(X[place], axis=0, dtype=np.float64, where=known)
    means /= np.maximum(counts, 1)
    shift = means.astype(X.dtype)
    for place in each(tiles, X):
        squares += np.nansum(np.square(X[place] - shift), axis=0, dtype=np.float64)
    return means, np.sqrt(squares / np.maximum(counts, 1))


def spreads(X: Array, medians: Array | None = None) -> Array:
    """Robust standard deviation of each column; zero for one that is constant up to rounding.

    The median absolute deviation, or where it is zero since most entries are equal, the range of
    most entries, or the mean absolute deviation. ``medians`` are those of the columns, if known.
    """
    middle = (column_medians(X) if medians is None else medians).astype(np.float64)
    found = PER_MAD * column_medians(X, lambda rows: np.abs(rows - middle))
    if not found.all():
        low, high = column_quantiles(X, 0.1), column_quantiles(X, 0.9)
        found = np.where(found > 0, found, PER_RANGE * (high - low))
        found = np.where(found > 0, found, _mean_deviations(X, middle))
    largest = np.zeros(X.shape[1])
    for place in each(row_tiles(X.shape), X):
        largest = np.fmax(largest, np.fmax.reduce(np.abs(X[place]), axis=0))
    return np.where(found > ROUNDING * largest, found, 0.0)


def _mean_deviations(X: Array, middle: Array) -> Array:
    """Mean distance of the entries of each column from a point."""
    sums, counts = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for place in each(row_tiles(X.shape), X):
        sizes = np.abs(X[place] - middle)
        counts += np.count_nonzero(~np.isnan(sizes), axis=0)
        sums += np.nansum(sizes, axis=0)
    return sums / np.maximum(counts, 1)
