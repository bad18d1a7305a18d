"""Which rows are outliers: three distances, one level of all, and a cutoff that fits the rows.

Nothing here supposes that clean rows are Gaussian. The distances of the training rows themselves
tell what is usual: their logarithms are taken in units of the spread above their median, the three
are added up, and the cutoff is set from the bulk of the sums, so that skewed and heavy-tailed data
have about as many rows beyond it as Gaussian data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import special
from scipy.linalg import lapack

from robustpca.engine.linalg import QUARTILE, Array, bulk, median, medians, square_norms

# Of each row: to the subspace; within it to the centre, in standard deviations; to the centre.
Distances = tuple[Array, Array, Array]

# Logarithms of distances that are more than FAR spreads above their bulk do not count for their
# scale, and levels more than NEAR spreads above theirs do not count for the cutoff, which is put
# BEYOND spreads above it. These numbers were chosen together: of clean data, Gaussian,
# heavy-tailed, skewed or correlated, 1 to 5 % of the rows are beyond the cutoff.
FAR, NEAR, BEYOND = 5.0, 1.9, 3.0
# Beyond this quantile of the training rows there is no cutoff: so many are flagged if they are
# enough.
LAST = 0.98
# Up to this many components their covariances are estimated, and not only their variances.
MANY_COMPONENTS = 128
# Scores within this quantile of Gaussian ones give their centre and covariance.
CLEAN = 0.975
# No direction of them may be tighter than this share of the variance of all rows.
RIDGE = 1e-4
# Medians and concentration steps look at about so many rows, or so many for each component if
# that is more.
STEP_ROWS, STEP_ROWS_PER_COMPONENT = 1000, 16
# A larger share of the rows than this at one point counts once.
MANY_EQUAL = 0.1
# The largest leverage that a row is believed to have, and the share of the weight from which on
# one row decides on a direction alone.
LARGEST_LEVERAGE, DECISIVE = 0.9, 0.1
# Level of a distance that is rounding error.
LEAST = -30.0


@dataclass(frozen=True)
class Scatter:
    """Centre of the scores, and the matrix that makes their covariance the identity."""

    center: Array
    whitener: Array

    def distances(self, codes: Array) -> Array:
        """Distance of each row of scores to the centre, in standard deviations."""
        # Scores are near the centre, which may be subtracted later. BLAS is a good deal faster on
        # the transposes.
        scores = self.whitener.T @ codes.T
        scores -= (self.center @ self.whitener)[:, None]
        return np.sqrt(square_norms(scores.T))

    def central(self, codes: Array, orthogonal: Array) -> Array:
        """Distance of each row to the centre, in the units of the data."""
        return np.sqrt(square_norms(codes - self.center) + np.square(orthogonal))

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the covariance, over directions that have variance."""
        sizes = np.linalg.svd(self.whitener, compute_uv=False)
        return float(-2 * np.log(sizes[sizes > 1e-9 * sizes.max(initial=0.0)]).sum())


@dataclass(frozen=True)
class LogScale:
    """Distances as multiples of their usual spread above the median, on a logarithmic scale."""

    floor: float
    typical: float
    spread: float

    @classmethod
    def of(cls, distances: Array, floor: float) -> "LogScale":
        """The scale of these distances, of which those up to ``floor`` are rounding error."""
        logs = np.log(np.maximum(distances, floor))
        typical, high = np.quantile(bulk(logs, FAR), (0.5, 0.75))
        if typical <= np.log(floor):
            return cls(floor, float(typical), 1.0)
        return cls(floor, float(typical), max(float(high - typical) / QUARTILE, 1e-4))

    def levels(self, distances: Array) -> Array:
        """Levels of the distances: 0 for a usual one."""
        logs = np.log(np.maximum(distances, self.floor))
        levels = np.maximum((logs - self.typical) / self.spread, LEAST)
        return np.where(distances > self.floor, levels, LEAST)

    def distance(self, level: float) -> float:
        """The distance that has this level."""
        # A level far beyond all rows has no finite distance.
        return float(np.exp(min(self.typical + self.spread * level, 700.0)))


@dataclass(frozen=True)
class Flags:
    """All that is known of the distances of clean rows.

    ``scatter`` gives the distances to the centre; ``scales`` are those of the first of the
    `Distances`, which count; a row whose levels add up to ``middle`` is typical, and beyond
    ``cutoff`` it is an outlier.
    ``noise_variance`` is that of each direction outside of the subspace, of which there are
    ``n_outside``.
    """

    scatter: Scatter
    scales: tuple[LogScale, ...]
    middle: float
    cutoff: float
    noise_variance: float
    n_outside: int

    def scores(self, distances: Distances) -> Array:
        """How normal rows with these distances are: 0 for a typical row, -1 at the cutoff."""
        return (self.middle - joint(self.scales, distances)) / (self.cutoff - self.middle)

    @property
    def cutoffs(self) -> tuple[float, float]:
        """Distances to and in the subspace that make an outlier while the others are typical."""
        # The levels of the others are then 0, and there must be something left above them.
        high = max(self.cutoff, 0.75)
        level = float(high + np.log1p(-(len(self.scales) - 1) * np.exp(-high)))
        orthogonal, score = self.scales[:2]
        return orthogonal.distance(level), score.distance(level)


def flags(
    codes: Array,
    residuals: Array,
    *,
    variances: Array,
    shares: Array,
    floor: float,
    n_outside: int,
) -> Flags:
    """Learn from training rows how far from a subspace clean rows are.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_components)
        Scores of the rows along orthonormal directions.
    residuals : ndarray of shape (n_rows,)
        Squared distances of the rows to the subspace.
    variances : ndarray of shape (n_components,)
        Variances of the scores as the subspace was fitted to them.
    shares : ndarray of shape (n_rows,)
        Share of each row in that fit; one over the number of rows if all had the same.
    floor : float
        Distances to the subspace that are rounding error.
    n_outside : int
        Number of directions outside of the subspace.

    Returns
    -------
    Flags
        Scales and cutoffs of the distances.
    """
    # Rows that the method left out do not say what is usual, and stand for no others like them; all
    # other rows are taken to be usual.
    if not shares.all():
        order = np.argsort(shares <= 0, kind="stable")
        codes, residuals, shares = codes[order], residuals[order], shares[order]
    usable = variances > 1e-12 * max(variances.max(initial=0.0), np.finfo(np.float64).tiny)
    units = np.where(usable, 1 / np.sqrt(np.where(usable, variances, 1.0)), 0.0)
    scaled = codes.astype(np.float64) * units
    # A row draws the subspace towards itself: a new one like it would be farther away.
    leverage = np.minimum(leverages(scaled, shares), LARGEST_LEVERAGE)
    orthogonal = np.sqrt(residuals) / (1 - leverage)
    genuine = np.where(orthogonal > floor, orthogonal / max(orthogonal.max(), floor), 0.0)
    kinds, n_usual = different_rows(np.column_stack([scaled, genuine]))
    scaled, orthogonal, shares = scaled[kinds], orthogonal[kinds], shares[kinds]
    scatter, score = robust_scatter(scaled)
    scatter = Scatter(
        scatter.center * np.where(usable, np.sqrt(variances), 0.0),
        units[:, None] * scatter.whitener,
    )
    trusted = shares > 0
    central = scatter.central(codes[kinds], orthogonal)
    scales = [LogScale.of(orthogonal[trusted], floor), LogScale.of(score[trusted], 1e-12)]
    # The plain distance to the centre tells outliers that were left out. Those that had a say hide
    # in it: they drew the centre and the axes, and are not far away any more (record 48).
    if not trusted.all():
        n_usual = max(n_usual, int(np.count_nonzero(trusted)))
        scales.append(LogScale.of(central[trusted], floor))
    middle, cutoff = cutoff_of(joint(scales, (orthogonal, score, central)), n_usual)
    noise = 0.0
    if n_outside > 0:
        noise = median(orthogonal) ** 2 / _chi_square(0.5, n_outside)
        noise = max(noise, floor**2 / n_outside)
    return Flags(scatter, tuple(scales), middle, cutoff, noise, n_outside)


def leverages(codes: Array, shares: Array) -> Array:
    """Share of each row in its own fitted point, given its scores in standard deviations."""
    if shares.max() < DECISIVE:
        return np.asarray(shares * (1 + square_norms(codes)))
    # Beside a row with nearly all the weight, variances say nothing about the other rows, which
    # decide on the other directions.
    design = np.sqrt(shares)[:, None] * np.column_stack([np.ones(len(codes)), codes])
    lengths = np.linalg.norm(design, axis=0)
    left, sizes, _ = np.linalg.svd(design[:, lengths > 0] / lengths[lengths > 0], False)
    return np.asarray(square_norms(left[:, sizes > 1e-12 * sizes.max()]))


def different_rows(values: Array) -> tuple[Any, int]:
    """The rows to learn from, and how many of them are usual for sure.

    These are one of each kind where most rows have their equal or many are at one point, else all:
    nothing would be usual but such points. Where most have their equal, a kind is usual that has
    half as many rows as the average one.
    """
    keys = values @ np.cos(np.arange(1, values.shape[1] + 1))
    _, first, counts = np.unique(np.round(keys, 9), return_index=True, return_counts=True)
    if 2 * len(first) >= len(values):
        return (first if counts.max() > MANY_EQUAL * len(values) else slice(None)), 0
    return first, int(np.count_nonzero(counts >= counts.mean() / 2))


def joint(scales: Sequence[LogScale], distances: Distances) -> Array:
    """One level of distances that have a scale: the largest, and more if others are near it."""
    levels = [scale.levels(values) for scale, values in zip(scales, distances, strict=False)]
    return reduce(np.logaddexp, levels)


def cutoff_of(levels: Array, n_usual: int = 0) -> tuple[float, float]:
    """The median of the levels of clean rows, and the cutoff beyond which few of them are.

    At least ``n_usual`` of them are taken to be clean.
    """
    clean = bulk(levels, NEAR, n_usual)
    middle, high = np.quantile(clean, (0.5, 0.9))
    # Quantiles of few rows are known as badly as the variance of a quarter of them.
    beyond = -special.stdtrit(max(len(clean) / 4, 3), special.ndtr(-BEYOND))
    cutoff = middle + beyond * (high - middle) / special.ndtri(0.9)
    # A tail that ends earlier than this one still has an end.
    last = np.quantile(levels, LAST, method="higher")
    # Rows that are equal to the one at the end are not beyond it by their rounding errors.
    cutoff = min(cutoff, last + 1e-9 * abs(last))
    return float(middle), float(max(cutoff, middle + 0.1))


def robust_scatter(codes: Array) -> tuple[Scatter, Array]:
    """Centre and covariance of most of the rows, and the distances that new rows would have.

    Concentration steps from the medians lead to the half of the rows that lie closest together;
    all rows that are not far from that half give the estimate, as in the minimum covariance
    determinant. With few rows or many components only the variances are estimated, by medians.
    """
    n_rows, used = len(codes), codes.any(axis=0)
    n_used = max(int(np.count_nonzero(used)), 1)
    n_some = max(STEP_ROWS, STEP_ROWS_PER_COMPONENT * n_used)
    # All that follows is faster along columns.
    codes = np.asfortranarray(codes)
    some = np.asfortranarray(codes[:: max(1, n_rows // n_some)])
    center = medians(some.T)
    spread = medians(np.abs(some - center).T) / QUARTILE
    spread = np.where(used, np.maximum(spread, np.sqrt(RIDGE)), 1.0)
    scatter = Scatter(center, np.diag(used / spread))
    if n_used > MANY_COMPONENTS or n_rows < 4 * n_used + 2:
        distances = scatter.distances(codes)
        scale = _scale(distances, n_used, 0.5)
        return Scatter(center, scatter.whitener / scale), distances / scale
    distances, n_half = scatter.distances(some), (len(some) + n_used + 1) // 2
    near = np.zeros(len(some), dtype=bool)
    for _ in range(10):
        before = near
        near = distances <= np.partition(distances, n_half - 1)[n_half - 1]
        if np.array_equal(near, before):
            break
        scatter = _scatter(some.T.compress(near, axis=1).T)
        distances = scatter.distances(some)
    distances = scatter.distances(codes)
    scale, farthest = _scale(distances, n_used, 0.5), np.sqrt(_chi_square(CLEAN, n_used))
    for _ in range(3):
        near = distances <= scale * farthest
        scatter = _scatter(codes.T.compress(near, axis=1).T)
        distances = scatter.distances(codes)
        scale = _scale(distances[near], n_used, 0.5 * CLEAN)
    # Rows draw the estimate towards themselves, which new rows do not.
    leverage = np.minimum((1 + distances**2) / max(np.count_nonzero(near) - 1, 1), LARGEST_LEVERAGE)
    distances = distances / np.sqrt(1 - np.where(near, leverage, 0.0))
    scale = _scale(distances[near], n_used, 0.5 * CLEAN)
    return Scatter(scatter.center, scatter.whitener / scale), distances / scale


def _scale(distances: Array, n_components: int, quantile: float) -> float:
    """What the median of distances is a multiple of, if it is this quantile of Gaussian ones."""
    scale = median(distances) / float(np.sqrt(_chi_square(quantile, n_components)))
    return scale if scale > 0 else 1.0


def _chi_square(quantile: float, degrees: int) -> float:
    """Quantile of a sum of squares of Gaussian numbers, without the checks of `scipy.stats`."""
    return float(special.chdtri(degrees, 1 - quantile))


def _scatter(codes: Array) -> Scatter:
    center = codes.mean(axis=0)
    centred = codes - center
    covariance = centred.T @ centred / max(len(codes) - 1, 1)
    # A triangular factor takes a fifth of the time of eigenvectors, and has no floor of its own.
    if lapack.dpotrf(covariance - RIDGE * np.eye(len(covariance)))[1] == 0:
        return Scatter(center, lapack.dtrtri(lapack.dpotrf(covariance)[0])[0])
    values, axes = np.linalg.eigh(covariance)
    return Scatter(center, axes / np.sqrt(np.maximum(values, RIDGE)))
