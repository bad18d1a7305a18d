"""The rank of data with outlying rows and wrong or missing entries: ``n_components='auto'``.

The data are cleaned for a rank: outlying rows are left out, and entries far from a fit of that
rank are replaced by it. Cross-validation then says how many components the clean data want, by
the errors of blocks of entries that are predicted from the others [1]_. A rank is consistent if
the data that are cleaned for it want no more, and the smallest such rank is the answer: cleaning
for too high a rank would take wrong entries for signal.

.. [1] Owen, Perry, Bi-cross-validation of the SVD and the nonnegative matrix factorization,
   Annals of Applied Statistics, 2009.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from robustpca.engine.linalg import Array, square_norms
from robustpca.engine.rows import ArrayRows, Rows
from robustpca.parts.starts import outlyingness

# A sample of rows and columns tells the rank of all; the shorter side costs the most time.
LONG_SIDE, SHORT_SIDE, LARGEST = 1000, 300, 100
# Entries this many deviations from the median of their column, or from a fit, are replaced.
FAR = 4.0
# Rows this many deviations farther from a fit than others are left out.
FAR_ROWS = 3.0
N_PASSES = 15
# Of so many entries, one division into blocks tells enough.
MANY = 100_000
# What a component has to lower the error by: this share of it, and this many standard errors.
GAIN, N_ERRORS = 0.02, 2.0
# Errors below this share of the entries are rounding error.
ROUNDING = 1e-6
TO_DEVIATION = float(1 / stats.norm.ppf(0.75))

Plane = tuple[Array, Array]


def rank_of(rows: Rows) -> int:
    """Number of components that the rows are worth, at least one.

    Of many rows and columns a sample is read, the same each time. Entries that are not finite
    count as missing.
    """
    X = _sample(rows)
    if min(X.shape) < 3:
        return 1
    X = X - _medians(X)
    deviations = TO_DEVIATION * _medians(np.abs(X))
    if not deviations.any():
        deviations = np.sqrt(np.nanmean(np.square(X), axis=0))
    unit = float(np.sqrt(np.mean(np.square(deviations))))
    if unit == 0:
        return 1
    # What is large for a column of small numbers does not matter unless it is large for all.
    suspicious = ~(np.abs(X) <= FAR * np.maximum(deviations, unit))
    X, start = X / unit, np.where(suspicious, 0.0, X) / unit
    if not start.any():
        return 1
    largest = min(LARGEST, min(X.shape) - 1)

    def wanted(rank: int) -> int:
        rng = np.random.RandomState(0)
        clean, seen = _cleaned(X, start, rank, rng)
        return _fewest(_held_out_errors(clean, seen, min(largest, 2 * rank + 8), rng))

    return _smallest_consistent(wanted, largest)


def _sample(rows: Rows) -> Array:
    """Some rows and columns in double precision, NaN where an entry is missing."""
    rng = np.random.RandomState(0)
    n, d = rows.shape
    tall = n >= d
    n_rows = min(n, LONG_SIDE if tall or d <= SHORT_SIDE else SHORT_SIDE)
    n_columns = min(d, SHORT_SIDE if tall and n > SHORT_SIDE else LONG_SIDE)
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.choice(n, n_rows, replace=False)] = True
    columns = np.sort(rng.choice(d, n_columns, replace=False))
    sample = rows.map(_entries, columns, along=(chosen,))
    there = np.isfinite(sample)
    sample = np.where(there, sample, np.nan)
    return sample[np.ix_(there.any(axis=1), there.any(axis=0))]


def _entries(block: Any, chosen: Array, columns: Array) -> Array:
    taken: Array = block.take(chosen)[:, columns]
    return taken


def _smallest_consistent(wanted: Callable[[int], int], largest: int) -> int:
    """The smallest rank that wants no more components, to a tenth of itself, by bisection."""
    low, high, rank = 0, largest, min(2, largest)
    while high - low > max(1, high // 10):
        target = wanted(rank)
        if target > rank:
            low, target = rank, min(target, high)
        else:
            high = target = max(target, low + 1)
        rank = (low + target + 1) // 2
    return high


def _cleaned(X: Array, start: Array, rank: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Rows that are not outlying, their wrong entries replaced, and which entries were not.

    ``start`` is X with zero in place of missing and suspicious entries.
    """
    codes, squares = _coordinates(start, _plane(start, rank))
    far = outlyingness(ArrayRows(codes), squares, rng)
    trusted = far <= np.median(far)
    # Distances to the power 2/3 are nearly Gaussian.
    lengths = np.cbrt(_coordinates(start, _plane(start[trusted], rank))[1])
    typical = np.median(lengths)
    spread = TO_DEVIATION * np.median(np.abs(lengths - typical))
    near = (far <= 2 * np.median(far)) & (lengths <= typical + FAR_ROWS * spread)
    near = near if near.mean() >= 0.5 else trusted
    X, clean, plane = X[near], start[near], None
    for _ in range(N_PASSES):
        plane = middle, axes = _plane(clean, rank, plane)
        fitted = (clean - middle) @ axes @ axes.T + middle
        errors = np.abs(X - fitted)
        deviations = TO_DEVIATION * _medians(errors)
        floor = 0.5 * np.sqrt(np.nanmean(np.square(deviations)))
        seen = errors <= FAR * np.maximum(deviations, floor)
        before, clean = clean, np.where(seen, X, fitted)
        if np.abs(clean - before).max() <= 0.1 * floor:
            break
    return clean, seen


def _medians(X: Array) -> Array:
    """Medians of the columns, the lower ones where entries are missing (NaN)."""
    missing = np.isnan(X)
    if not missing.any():
        return np.asarray(np.median(X, axis=0))
    middle = np.maximum(len(X) - 1 - missing.sum(axis=0), 0) // 2
    return np.asarray(np.take_along_axis(np.sort(X, axis=0), middle[None], axis=0)[0])


def _plane(X: Array, rank: int, near: Plane | None = None) -> Plane:
    """Mean and leading axes of the rows; from axes that are near by one power iteration."""
    middle = X.mean(axis=0)
    centred = X - middle
    if near is None:
        return middle, _axes(centred, rank)[1]
    return middle, np.linalg.qr(centred.T @ (centred @ near[1]))[0]


def _coordinates(X: Array, plane: Plane) -> tuple[Array, Array]:
    """Scores of the rows, and their squared distances from the plane."""
    middle, axes = plane
    codes = (X - middle) @ axes
    return codes, np.maximum(square_norms(X - middle) - square_norms(codes), 0.0)


def _axes(X: Array, count: int) -> tuple[Array, Array]:
    """Leading singular values that are not rounding error, and right singular vectors."""
    tall = len(X) >= X.shape[1]
    squares, vectors = np.linalg.eigh(X.T @ X if tall else X @ X.T)
    values = np.sqrt(np.maximum(squares[::-1][:count], 0.0))
    values = values[values > ROUNDING * values.max(initial=np.finfo(np.float64).tiny)]
    vectors = vectors[:, ::-1][:, : len(values)]
    return values, vectors if tall else X.T @ vectors / values


def _held_out_errors(X: Array, seen: Array, largest: int, rng: np.random.RandomState) -> Array:
    """Mean absolute errors of held-out blocks (rows) at ranks from zero on (columns).

    A block of some rows and some columns is predicted from the rest: the other rows give the
    components, the other columns the scores. Only entries that were ``seen`` count.
    """
    n, d = X.shape
    errors = []
    for _ in range(2 if X.size < MANY else 1):
        of_row, of_column = rng.permutation(n) % 2, rng.permutation(d) % min(d, 4)
        for i, j in np.ndindex(2, min(d, 4)):
            above, left = of_row != i, of_column != j
            centred = X - X[above].mean(axis=0)
            train, outside = centred[np.ix_(above, left)], centred[np.ix_(above, ~left)]
            inside, target = centred[np.ix_(~above, left)], centred[np.ix_(~above, ~left)]
            counted = seen[np.ix_(~above, ~left)]
            if not counted.any():
                continue
            values, axes = _axes(train, largest)
            codes, loadings = inside @ axes, (train @ axes / values**2).T @ outside
            errors.append(np.full(largest + 1, np.abs(target[counted]).mean()))
            for k, (code, loading) in enumerate(zip(codes.T, loadings, strict=True)):
                target -= np.outer(code, loading)
                errors[-1][k + 1 :] = np.abs(target[counted]).mean()
    return np.array(errors)


def _fewest(errors: Array) -> int:
    """The fewest components that do as well as the best number of them."""
    typical = errors[:, 0].mean()
    if typical == 0:
        return 0
    scores = np.log(errors + ROUNDING * typical) + GAIN * np.arange(errors.shape[1])
    worse = scores - scores[:, [int(np.argmin(scores.mean(axis=0)))]]
    allowed = N_ERRORS * worse.std(axis=0, ddof=1) / np.sqrt(len(worse))
    return int(np.argmax(worse.mean(axis=0) <= allowed))
