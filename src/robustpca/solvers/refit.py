"""Entries that are wrong, and a low-rank part that is fitted to all others.

A nuclear norm lowers all singular values, and the sparse part that comes with it holds noise as
well as errors. `refit` starts from such a decomposition and alternates: entries whose residual
exceeds a calibrated multiple of the noise of their column are flagged, and the low-rank part
becomes the least-squares fit to the others. Its rank is the number of singular values that noise
does not explain. The result, `RobustRows`, fits rows one by one, those of the training data
included. `ResidualFlags` flags the residuals of any other fit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import stats

from robustpca.engine.blocks import slices
from robustpca.engine.linalg import Array
from robustpca.engine.svt import TILE_ROWS, LowRank, lanes
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.parts.entry_losses import HuberNorm, SquaredNorm
from robustpca.solvers.new_rows import NEWTON_RANK, tile_solver

# Passes of the refit at most; it ends when a pass moves the low-rank part by less than this share
# of its statistical error.
MAX_PASSES, SMALL_MOVE = 50, 1e-2
# Once a pass moves it by less than this share of itself, its singular values can be judged.
NEARLY = 1e-2
# Least noise of a column beside that of all columns.
LEAST_NOISE = 0.1
# Leverages count as at most this, so that no residual is divided by zero.
MOST_LEVERAGE = 0.9
# Huber's loss is linear from here on, in standard deviations of the noise; its fit is only a start.
HUBER, HUBER_TOL = 1.345, 1e-3
# How often the flags of a row may change at most.
MAX_REJECTIONS = 5
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
    """

    mean: Array
    basis: Array
    deviations: Array
    noise: Array
    cut: float

    def solve(self, X: Array) -> tuple[Array, Array]:
        """Scores of rows, and which of their entries are wrong; NaN entries are missing.

        Huber's loss gives first scores, whatever the size of the errors. Entries that are then
        too far off are left out, until these are the same as before.
        """
        with ThreadPool() as pool:
            parts = pool.map(lambda place: self._tile(X[place]), slices(len(X), TILE_ROWS))
        codes, flags = zip(*parts, strict=True)
        return np.concatenate(codes), np.concatenate(flags)

    def low_rank(self, codes: Array) -> Array:
        """Rows that have these scores."""
        return codes @ (self.basis * self.noise) + self.mean

    @cached_property
    def leverages(self) -> Array:
        """Share of each entry of a row in its own fit, if no entry is left out."""
        return np.sum(self.basis**2, axis=0)

    @cached_property
    def _solvers(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """Scores by Huber's loss and by least squares, where NaN entries are left out."""
        ridge = self.deviations**-2
        huber = tile_solver(self.basis, ridge, HuberNorm(HUBER, HUBER), HUBER_TOL)
        return huber, tile_solver(self.basis, ridge, SquaredNorm())

    def _tile(self, X: Array) -> tuple[Array, Array]:
        X = np.ascontiguousarray((X - self.mean) / self.noise, np.float64)
        few = len(self.basis) <= NEWTON_RANK
        huber, least_squares = self._solvers
        codes, flags, rows = huber(X), np.zeros(X.shape, bool), np.arange(len(X))
        self._mark(X, codes, flags)
        # Each row ends when its own flags no longer change.
        for _ in range(MAX_REJECTIONS):
            found = flags[rows]
            used = np.where(found, np.nan, X[rows])
            fitted = least_squares(used) if few else self._least_squares(used)
            changed = self._mark(X[rows], fitted, found)
            codes[rows], flags[rows] = fitted, found
            rows = rows[changed]
            if not len(rows):
                break
        return codes, flags

    def _mark(self, X: Array, codes: Array, flags: Array) -> Array:
        """Flag anew entries whose residual is too large; return which rows have other flags."""
        changed, numbers = np.zeros(len(X), bool), (self.cut**2, MOST_LEVERAGE)
        compiled(mark_rows)(X, codes @ self.basis, self.leverages, *numbers, flags, changed)
        return changed

    def _least_squares(self, X: Array) -> Array:
        """Scores that fit the entries that are not NaN, one system of equations for each row."""
        used, codes = ~np.isnan(X), np.empty((len(X), len(self.basis)))
        ridge = self.deviations**-2
        for row, chosen, code in zip(X, used, codes, strict=True):
            # The normal matrix of all entries is the identity: whichever part of it is smaller.
            known, other = self.basis[:, chosen], self.basis[:, ~chosen]
            if known.shape[1] <= other.shape[1]:
                normal = np.diag(ridge) + known @ known.T
            else:
                normal = np.diag(1 + ridge) - other @ other.T
            code[:] = np.linalg.solve(normal, known @ row[chosen])
        return codes


def mark_rows(
    X: Array,
    low_rank: Array,
    leverages: Array,
    cut: float,
    most: float,
    flags: Array,
    changed: Array,
) -> None:
    """Kernel: flag entries whose squared residual is above ``cut``, given those left out so far.

    A fit comes nearer to the entries that it uses, and less near to those it was made without.
    """
    for i in range(X.shape[0]):
        n_used = 0.0
        for j in range(X.shape[1]):
            n_used += 1.0 if X[i, j] == X[i, j] and not flags[i, j] else 0.0
        share = max(n_used / X.shape[1], 1e-300)
        differ = False
        for j in range(X.shape[1]):
            room = 1.0 - min(leverages[j] / share, most)
            square = (X[i, j] - low_rank[i, j]) ** 2
            flag = square * room > cut if flags[i, j] else square > cut * room
            differ |= flag != flags[i, j]
            flags[i, j] = flag
        changed[i] = differ


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

    def flags(self, errors: Array) -> Array:
        """Which residuals are too large."""
        return np.asarray(np.abs(errors) > self.cut * self.noise)


def refit(
    X: Array, low_rank: LowRank, shrinkage: float, rate: float, *, center: bool
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
    """
    cut, inside = gaussian_cut(rate)
    longest = max(X.shape)
    threshold = hard_threshold(min(X.shape) / longest) * np.sqrt(longest)
    values, right = low_rank.values + shrinkage, low_rank.right.astype(np.float64)
    left = low_rank.left * (values / low_rank.values)
    chosen = slice(None, None, max(1, X.size // SAMPLED_ENTRIES))
    errors = np.abs(X[chosen] - left[chosen] @ right)
    noise = _moderated(PER_MEDIAN * _medians(errors), len(errors))
    mean, right = np.zeros(X.shape[1]), right / noise
    with ThreadPool() as pool:
        for _ in range(MAX_PASSES):
            work = partial(_clean_products, X, mean, noise, left, right, cut)
            parts = zip(*pool.map(work, lanes(len(X))), strict=True)
            images = np.concatenate(next(parts))
            sums, totals, squares, counts = (np.sum(part, axis=0) for part in parts)
            if center:
                average = images.mean(axis=0)
                mean, sums = mean + noise * totals / len(X), sums - np.outer(average, totals)
                images = images - average
            before = LowRank(left, right, values)
            left, right, values = _principal(images, sums)
            moved = LowRank(left, right, values).distance(before)
            large = values > threshold / np.sqrt(counts.sum() / X.size)
            if moved < NEARLY * np.linalg.norm(values) and not large.all():
                left, right, values = left[:, large], right[large], values[large]
            elif moved < SMALL_MOVE * np.sqrt(len(values) * sum(X.shape)):
                break
            variances = squares / (inside * np.maximum(counts, 1))
            factor = _moderated(noise * np.sqrt(variances), float(counts.mean())) / noise
            noise, right = noise * factor, right / factor
    basis, turn = np.linalg.qr(right.T)
    deviations = np.maximum(np.sqrt(np.mean((left @ turn.T) ** 2, axis=0)), TINY**0.5)
    return RobustRows(mean, np.ascontiguousarray(basis.T), deviations, noise, cut)


def gaussian_cut(rate: float) -> tuple[float, float]:
    """Cut beyond which Gaussian entries lie at this rate, and the variance of the others."""
    cut = float(stats.norm.isf(rate / 2))
    return cut, float(1 - 2 * cut * stats.norm.pdf(cut) / (1 - rate))


def hard_threshold(ratio: float) -> float:
    """Least singular value that is more signal than noise, per root of the longer side.

    Gavish and Donoho, The optimal hard threshold for singular values is 4 / sqrt(3), 2014, for
    noise of deviation one; ``ratio`` is that of the shorter to the longer side.
    """
    bulk = ratio + 1 + np.sqrt(ratio**2 + 14 * ratio + 1)
    return float(np.sqrt(2 * (ratio + 1) + 8 * ratio / bulk))


def _clean_products(
    X: Array, mean: Array, noise: Array, left: Array, right: Array, cut: float, tiles: list[slice]
) -> tuple[Array, Array, Array, Array, Array]:
    """Products of rows whose wrong and missing entries are replaced by the low-rank part.

    Returns the products with the directions, and sums over rows: of the rows times their
    products, of the rows, and for each column of the squared residuals of the entries that are
    not replaced, and of their number.
    """
    shape = right.shape
    room = 1 - np.minimum(np.sum(np.linalg.qr(right.T)[0] ** 2, axis=1), MOST_LEVERAGE)
    sums, (totals, squares, counts) = np.zeros(shape), np.zeros((3, shape[1]))
    images = [np.zeros((0, shape[0]))]
    for place in tiles:
        low = left[place] @ right
        errors = (X[place] - mean) / noise - low
        sizes = errors**2 / room
        used = sizes <= cut**2
        squares += np.sum(sizes, axis=0, where=used)
        counts += np.count_nonzero(used, axis=0)
        np.add(low, errors, out=low, where=used)
        totals += low.sum(axis=0)
        images.append(low @ right.T)
        sums += images[-1].T @ low
    return np.concatenate(images), sums, totals, squares, counts


def _principal(images: Array, sums: Array) -> tuple[Array, Array, Array]:
    """Singular vectors and values of a matrix within the span of its images.

    Returns the left vectors times the values, the right ones as rows, and the values.
    """
    gram = images.T @ images
    scale = 1 / np.sqrt(np.maximum(np.diag(gram), TINY))
    found, vectors = np.linalg.eigh(gram * scale[:, None] * scale)
    genuine = found > 1e-13 * len(found)
    root = scale[:, None] * vectors[:, genuine] / np.sqrt(found[genuine])
    turn, values, right = np.linalg.svd(root.T @ sums, full_matrices=False)
    return images @ (root @ (turn * values)), right, values


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
    empty = np.isnan(sizes).all(axis=0)
    return np.asarray(np.nanmedian(np.where(empty, 0.0, sizes), axis=0))
