"""Entries that are wrong, and a low-rank part that is fitted to all others.

A nuclear norm lowers all singular values, and the sparse part that comes with it holds noise as
well as errors. `refit` starts from such a decomposition and alternates: entries whose residual
exceeds a calibrated multiple of the noise of their column are flagged, and the low-rank part
becomes the least-squares fit to the others. Its rank is the number of singular values that noise
does not explain. The result, `RobustRows`, fits rows one by one, those of the training data
included. `ResidualFlags` flags the residuals of any other fit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import linalg, special

from robustpca.engine.blocks import slices
from robustpca.engine.linalg import Array, column_percentiles, square_norms
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.scratch import each, empty_beside, in_groups, of_rows, summed, taken
from robustpca.engine.svt import PRODUCT_ROWS, LowRank, lanes, tile_rows
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.solvers.penalties import observed_norm
from robustpca.solvers.row_flags import MOST_LEVERAGE, LeastSquares, accelerate, clip_forces

# Passes of the refit at most; it ends when a pass moves the low-rank part by less than this share
# of its statistical error.
MAX_PASSES, SMALL_MOVE = 20, 1e-2
# It also ends when a pass moves it by at least such a share of the move so many passes before:
# where residuals are not Gaussian, flags and noise may shift for ever.
PATIENCE, SLOW = 4, 0.8
# Once a pass moves it by less than this share of itself, its singular values can be judged.
NEARLY = 1e-2
# Least noise of a column beside that of all columns, and beside the size of the entries: scores in
# units of rounding error would not be found.
LEAST_NOISE, LEAST_SHARE = 0.1, 1e-10
# Huber's loss is linear from here on, in standard deviations of the noise. Its fit is only a start:
# it ends when a step is this small, in standard deviations of a score, or after so many.
HUBER, HUBER_TOL, MAX_HUBER = 1.345, 0.05, 300
# Share of the largest residual beyond which residuals are clipped at first, and by which that limit
# is lowered.
NARROWER = 0.3
# Single precision is enough for a start where entries are no larger than so many deviations of the
# noise; residuals of even more are certainly wrong.
FAR, EXTREME = 1e5, 1e6
# How often the flags of a row may change at most, and the share of them that may still do so.
MAX_REJECTIONS, FEW_CHANGES = 2, 0.005
# A row has too many flags if they are more than so many times those of this share of the rows, and
# more than this share of its entries.
TOO_MANY, MOST_ROWS, MANY = 1.5, 0.9, 0.1
# Share of the columns, those with the largest leverages, without which such a row starts once more.
PULLING = 0.2
# Standard deviations of a Gaussian per median absolute value.
PER_MEDIAN = 1.4826
# Entries of which a first estimate of the noise is made.
SAMPLED_ENTRIES = 2_000_000
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class RobustRows:
    """Rows of a low-rank matrix with Gaussian noise, some entries of which are wrong.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Row whose scores are zero.
    basis : ndarray of shape (rank, n_features)
        Orthonormal basis of the rows after division by the noise.
    deviations : ndarray of shape (rank,)
        Standard deviations of the scores.
    noise : ndarray of shape (n_features,)
        Standard deviation of the noise of each column.
    cut : float
        Residuals of more standard deviations are flagged.
    most_flags : float, default=1.0
        Share of the entries of a row beyond which it has too many flags.
    """

    mean: Array
    basis: Array
    deviations: Array
    noise: Array
    cut: float
    most_flags: float = 1.0

    def solve(self, X: Array) -> tuple[Array, Array]:
        """Scores of rows, and which of their entries are wrong; NaN entries are missing.

        Huber's loss gives first scores, whatever the size of the errors. Entries that are then
        too far off are left out, until these are the same as before. Where wrong entries of
        columns with large leverages pull the scores, it is the correct ones that are left out:
        rows with too many flags start once more without these columns, and the better fit is kept.
        """
        _, codes, flags = zip(*self.solved(X), strict=True)
        return np.concatenate(codes), np.concatenate(flags)

    def solved(self, X: Array, *others: Array) -> Iterator[tuple[slice, Array, Array]]:
        """What `solve` gives, a tile of rows at a time, for a pass over ``others`` as well."""
        places = slices(len(X), tile_rows(X.shape[1]))
        fit = LeastSquares(self.basis, self._ridge, len(X))
        with ThreadPool() as pool:
            for group in in_groups(places, X, *others):
                parts = pool.map(lambda place: self._tile(X[place], fit), group)
                for place, part in zip(group, parts, strict=True):
                    yield place, *part

    def low_rank(self, codes: Array) -> Array:
        """Rows that have these scores."""
        return codes @ (self.basis * self.noise) + self.mean

    def _tile(self, X: Array, fit: LeastSquares) -> tuple[Array, Array]:
        X = np.ascontiguousarray((X - self.mean) / self.noise, np.float64)
        codes, flags = self._without_wrong(X, self._huber(X), fit)
        many = np.flatnonzero(np.mean(flags, axis=1) > self.most_flags)
        if len(many):
            rows, others = X[many], X[many]
            others[:, self._pulling] = np.nan
            again = self._without_wrong(rows, self._huber(others), fit)
            better = self._loss(rows, *again) < self._loss(rows, codes[many], flags[many])
            codes[many[better]], flags[many[better]] = (found[better] for found in again)
        return codes, flags

    def _without_wrong(self, X: Array, start: Array, fit: LeastSquares) -> tuple[Array, Array]:
        """Scores by least squares and wrong entries, if one starts from such scores."""
        near = start @ self.basis
        errors = X - near
        # Entries far out would cost the digits of all others.
        extreme = np.abs(errors) > EXTREME
        lost = extreme | np.isnan(errors)
        codes, flags, sizes = fit.without_wrong(
            np.where(lost, near, X),
            lost,
            np.full(len(X), self.cut**2),
            errors,
            few=FEW_CHANGES,
            max_iter=MAX_REJECTIONS,
        )
        for row in np.flatnonzero(sizes < 0):
            # Too near to singular for a normal matrix: not squared, the shortest of solutions.
            known = ~(flags[row] | lost[row])
            system = np.vstack([self.basis[:, known].T, np.diag(1 / self.deviations)])
            goal = np.append(X[row, known], np.zeros(len(self.basis)))
            codes[row] = linalg.lstsq(system, goal)[0]
        return codes, flags | extreme

    def _loss(self, X: Array, codes: Array, flags: Array) -> Array:
        """Squared residuals of rows, those of flagged entries as large as the cut, and ridge."""
        errors = np.where(flags | np.isnan(X), 0.0, X - codes @ self.basis)
        n_flags = np.count_nonzero(flags, axis=1)
        return np.asarray(square_norms(errors) + self.cut**2 * n_flags + codes**2 @ self._ridge)

    @cached_property
    def _pulling(self) -> Array:
        """Columns with the largest leverages, the wrong entries of which may pull a row."""
        leverages = np.sum(self.basis**2, axis=0)
        return np.argsort(-leverages, kind="stable")[: int(PULLING * len(leverages))]

    @cached_property
    def _ridge(self) -> Array:
        return self.deviations**-2

    def _huber(self, X: Array) -> Array:
        """Scores by Huber's loss, where NaN entries are left out.

        They are only a start: rows whose entries are not far out are fitted in single precision.
        """
        codes = np.zeros((len(X), len(self.basis)))
        far = np.fmax.reduce(np.abs(X), axis=1, initial=0.0) > FAR
        for rows, dtype in ((~far, np.float32), (far, np.float64)):
            if rows.any():
                codes[rows] = self._descend(X[rows].astype(dtype))
        return codes

    def _descend(self, X: Array) -> Array:
        """Scores by Huber's loss, in the precision of the rows.

        The normal matrix of all entries is the identity, and with the ridge it bounds the
        curvature: a step needs two products with the basis and is taken for all rows at once,
        each with a momentum of its own. Residuals are clipped far out at first, and nearer once
        a step is shorter than that, so that neither large errors nor large scores take long.
        """
        basis, scale = self.basis.astype(X.dtype), (1 / (1 + self._ridge)).astype(X.dtype)
        ahead = (np.where(np.isnan(X), X.dtype.type(0), X) @ basis.T) * scale
        codes, rows = ahead.copy(), np.arange(len(X))
        pace, steps = np.ones(len(X)), np.zeros(len(X))
        clip = np.full(len(X), np.inf, X.dtype)
        enough = HUBER_TOL * np.sqrt(len(basis))
        limits = X.dtype.type(NARROWER), X.dtype.type(HUBER)
        for _ in range(MAX_HUBER):
            forces = ahead @ basis
            compiled(clip_forces)(X, rows, forces, clip, *limits)
            compiled(accelerate)(ahead, forces @ basis.T, codes, rows, scale, pace, steps)
            going = (steps > enough) | (clip > limits[1])
            clip = np.where(steps <= 0.5 * clip, limits[0] * clip, clip)
            if not going.all():
                rows, ahead, pace = rows[going], ahead[going], pace[going]
                clip, steps = clip[going], steps[going]
            if not len(rows):
                break
        return codes


@dataclass(frozen=True)
class ResidualFlags:
    """Flags of residuals that the noise of their columns does not explain.

    Attributes
    ----------
    noise : ndarray of shape (n_features,)
        Standard deviation of the noise of each column.
    cut : float
        Residuals of more standard deviations are flagged.
    """

    noise: Array
    cut: float

    @classmethod
    def of(cls, errors: Callable[[slice], Array], n_rows: int, rate: float) -> "ResidualFlags":
        """Estimate the noise from the residuals of some rows.

        Parameters
        ----------
        errors : callable
            Gives the residuals at a slice of the rows; NaN where missing.
        n_rows : int
            Number of rows.
        rate : float
            Share of the entries without an error that may be flagged.
        """
        cut, inside = gaussian_cut(rate)
        n_columns = errors(slice(0, 1)).shape[1]
        sample = errors(slice(None, None, max(1, n_rows * n_columns // SAMPLED_ENTRIES)))
        sizes = np.abs(sample.astype(np.float64))
        noise = _moderated(PER_MEDIAN * _medians(sizes), len(sizes))
        for _ in range(20):
            used = sizes <= cut * noise
            counts = np.maximum(np.count_nonzero(used, axis=0), 1)
            squares = np.sum(np.where(used, sizes, 0.0) ** 2, axis=0) / counts
            noise = _moderated(np.sqrt(squares / inside), len(sizes))
        return cls(noise, cut)

    @property
    def limits(self) -> Array:
        """Residual of each column beyond which an entry is flagged."""
        return self.cut * self.noise

    def flags(self, errors: Array) -> Array:
        """Which residuals are too large."""
        return np.asarray(np.abs(errors) > self.limits)


def refit(
    X: Array,
    low_rank: LowRank,
    shrinkage: float,
    rate: float,
    *,
    center: bool,
    callback: Callback = ignore,
) -> RobustRows:
    """Fit a low-rank matrix to all entries that are not wrong.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data; NaN where missing.
    low_rank : LowRank
        Where to start; its rank is the largest that the result can have.
    shrinkage : float
        By how much the singular values of the start are too low.
    rate : float
        Share of the entries without an error that may be flagged.
    center : bool
        Whether a row is added to the low-rank matrix that is the same everywhere.
    callback : callable
        Called with a `Progress` after each pass.
    """
    cut, inside = gaussian_cut(rate)
    longest = max(X.shape)
    threshold = hard_threshold(min(X.shape) / longest) * np.sqrt(longest)
    values = low_rank.values + shrinkage
    longer = values / low_rank.values
    left = of_rows(lambda rows: rows * longer, low_rank.left, np.float64)
    low_rank = LowRank(left, low_rank.right.astype(np.float64), values)
    noise, least = _first_noise(X, low_rank)
    mean, low_rank = np.zeros(X.shape[1]), replace(low_rank, right=low_rank.right / noise)
    moves: list[float] = []
    images = empty_beside(low_rank.left)
    with ThreadPool() as pool:
        for iteration in range(1, MAX_PASSES + 1):
            found, (totals, squares, counts), tally = _clean_fit(
                pool, X, mean, noise, low_rank, cut, center, images
            )
            if found is None:
                break
            if center:
                mean = mean + noise * totals / len(X)
            moves.append(found.distance(low_rank))
            # Factors of all rows are written in turn to two arrays.
            images = low_rank.left
            low_rank, values = found, found.values
            change = moves[-1] / max(float(np.linalg.norm(values)), TINY)
            done = Progress(iteration, float(squares.sum()), change, rank=len(values))
            callback(replace(done, phase="refit", counted=False))
            large = values > threshold / np.sqrt(counts.sum() / X.size)
            if moves[-1] < NEARLY * np.linalg.norm(values) and not large.all():
                low_rank = found.chosen(large)
                moves = []
            else:
                settled = moves[-1] < SMALL_MOVE * np.sqrt(len(values) * sum(X.shape))
                if settled or (len(moves) > PATIENCE and moves[-1] >= SLOW * moves[-1 - PATIENCE]):
                    break
            deviations = noise * np.sqrt(squares / (inside * np.maximum(counts, 1)))
            factor = _moderated(np.maximum(deviations, least), float(counts.mean())) / noise
            noise, low_rank = noise * factor, replace(low_rank, right=low_rank.right / factor)
    basis, turn = np.linalg.qr(low_rank.right.T)
    squares = summed(lambda rows: square_norms(turn @ rows.T), low_rank.left) / len(X)
    deviations = np.maximum(np.sqrt(squares), TINY**0.5)
    usual = int(np.searchsorted(np.cumsum(tally), MOST_ROWS * len(X)))
    most_flags = max(MANY, TOO_MANY * usual / X.shape[1])
    return RobustRows(mean, np.ascontiguousarray(basis.T), deviations, noise, cut, most_flags)


def _first_noise(X: Array, low_rank: LowRank) -> tuple[Array, float]:
    """Noise of each column about a low-rank part, from some rows, and the least it can be."""
    chosen = slice(None, None, max(1, X.size // SAMPLED_ENTRIES))
    some = taken(X, chosen)
    errors = np.abs(some - taken(low_rank.left, chosen) @ low_rank.right)
    size = observed_norm(some) / np.sqrt(np.count_nonzero(~np.isnan(some)))
    least = max(LEAST_SHARE, 10 * float(np.finfo(X.dtype).eps)) * float(size)
    least = least or 1.0  # data that are all zero fit in any unit
    return _moderated(np.maximum(PER_MEDIAN * _medians(errors), least), len(errors)), least


def gaussian_cut(rate: float) -> tuple[float, float]:
    """Cut beyond which Gaussian entries lie at this rate, and the variance of the others."""
    cut = -float(special.ndtri(rate / 2))
    density = np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi)
    return cut, float(1 - 2 * cut * density / (1 - rate))


def hard_threshold(ratio: float) -> float:
    """Least singular value that is more signal than noise, per root of the longer side.

    Gavish and Donoho, The optimal hard threshold for singular values is 4 / sqrt(3), 2014, for
    noise of deviation one; ``ratio`` is that of the shorter to the longer side.
    """
    bulk = ratio + 1 + np.sqrt(ratio**2 + 14 * ratio + 1)
    return float(np.sqrt(2 * (ratio + 1) + 8 * ratio / bulk))


def _rooms(right: Array) -> Array:
    """Share of each column's noise that a fit with these directions leaves in the residuals."""
    # The span of the rows of ``right``, which are nearly orthonormal, or too many for the data.
    whole = np.linalg.pinv(right @ right.T, hermitian=True) @ right
    return 1 - np.minimum(np.einsum("ij,ij->j", right, whole), MOST_LEVERAGE)


def _clean_fit(
    pool: ThreadPool,
    X: Array,
    mean: Array,
    noise: Array,
    low_rank: LowRank,
    cut: float,
    center: bool,
    images: Array,
) -> tuple[LowRank | None, Array, Array]:
    """The low-rank part of rows without wrong entries, and what `clean_tile` counts.

    None if nothing is left to fit to. The left factor is a view of ``images``, an array with at
    least as many columns.
    """
    images = images[:, : low_rank.rank]
    rooms = _rooms(low_rank.right)
    work = partial(_clean_products, X, mean, noise, low_rank, rooms, cut, images)
    products, sums, tally = (
        np.sum(part, axis=0) for part in zip(*pool.map(work, lanes(X.shape)), strict=True)
    )
    totals, _, counts = sums
    if not counts.any():
        return None, sums, tally
    if center:
        average = summed(lambda rows: rows.sum(axis=0), images) / len(images)
        products = products - np.outer(average, totals)
        for place in each(slices(len(images), PRODUCT_ROWS), images):
            images[place] -= average
    return _principal(images, products), sums, tally


def _clean_products(
    X: Array,
    mean: Array,
    noise: Array,
    low_rank: LowRank,
    rooms: Array,
    cut: float,
    images: Array,
    tiles: list[slice],
) -> tuple[Array, Array, Array]:
    """Products of rows whose wrong and missing entries are replaced by the low-rank part.

    Writes the products with the directions to ``images``. Returns sums over rows: of the rows
    times their products, and those of `clean_tile`.
    """
    products = np.zeros(low_rank.right.shape)
    sums, tally = np.zeros((3, X.shape[1])), np.zeros(X.shape[1] + 1)
    for place in each(tiles, X, low_rank.left, images):
        low = low_rank.dense(place)
        compiled(clean_tile)(X[place], mean, 1 / noise, low, cut**2 * rooms, sums, tally)
        images[place] = low @ low_rank.right.T
        products += images[place].T @ low
    sums[1] /= rooms
    return products, sums, tally


def clean_tile(
    X: Array, mean: Array, scale: Array, low: Array, most: Array, sums: Array, tally: Array
) -> None:
    """Kernel: replace the rows of a low-rank part by those of the data, but for wrong entries.

    An entry is wrong if its squared residual is larger than ``most``. To the rows of ``sums`` are
    added: the rows of the result, the squared residuals of the entries that are not wrong, and
    their number. ``tally`` counts the rows by the number of their wrong entries.
    """
    for i in range(X.shape[0]):
        n_wrong = 0
        for j in range(X.shape[1]):
            error = (X[i, j] - mean[j]) * scale[j] - low[i, j]
            square = error * error
            # Not true for missing entries.
            if square <= most[j]:
                low[i, j] += error
                sums[1, j] += square
                sums[2, j] += 1.0
            n_wrong += square > most[j]
            sums[0, j] += low[i, j]
        tally[n_wrong] += 1


def _principal(images: Array, sums: Array) -> LowRank:
    """The part of a matrix within the span of its images, which are written over."""
    gram = summed(lambda rows: rows.T @ rows, images)
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), TINY))
    found, vectors = np.linalg.eigh(gram * scale[:, None] * scale)
    genuine = found > 1e-13 * len(found)
    root = scale[:, None] * vectors[:, genuine] / np.sqrt(found[genuine])
    projected = root.T @ sums
    squares, turn = np.linalg.eigh(projected @ projected.T)
    if squares.min(initial=np.inf) > 1e-8 * squares.max(initial=0.0):
        values, turn = np.sqrt(squares[::-1]), turn[:, ::-1]
        right = (turn.T @ projected) / values[:, None]
    else:
        # Squares would lose the digits of the smallest.
        turn, values, right = np.linalg.svd(projected, full_matrices=False)
    # In the place of the images, which are not needed any more.
    left, turned = images[:, : len(values)], root @ (turn * values)
    for place in each(slices(len(images), PRODUCT_ROWS), images):
        left[place] = images[place] @ turned
    return LowRank(left, right, values)


def _moderated(noise: Array, n_entries: float) -> Array:
    """Deviations of columns, drawn to each other as far as chance explains how they differ."""
    noise = np.maximum(noise, LEAST_NOISE * np.sqrt(np.mean(noise**2)))
    if not noise.any():
        return noise
    logs = np.log(noise)
    by_chance = 0.5 / max(n_entries, 1.0)
    genuine = max(0.0, 1 - by_chance / max(float(logs.var()), TINY))
    return np.asarray(np.exp(logs.mean() + genuine * (logs - logs.mean())))


def _medians(sizes: Array) -> Array:
    """Median of each column; zero for a column without entries."""
    return np.nan_to_num(column_percentiles(sizes, [50])[0])
