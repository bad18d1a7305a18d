"""Which rows are outliers: two distances, one level of both, and a cutoff that fits the rows.

Nothing here supposes that clean rows are Gaussian. The distances of the training rows themselves
tell what is usual: their logarithms are taken in units of the spread above their median, the two
are added up, and the cutoff is set from the bulk of the sums, so that skewed and heavy-tailed data
have about as many rows beyond it as Gaussian data.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from robustpca.engine.linalg import Array, square_norms

# Logarithms of distances that are more than FAR spreads above their bulk do not count for their
# scale, and levels more than NEAR spreads above theirs do not count for the cutoff, which is put
# BEYOND spreads above it. These numbers were chosen together: of clean data, Gaussian,
# heavy-tailed, skewed or correlated, 1 to 5 % of the rows are beyond the cutoff.
FAR, NEAR, BEYOND = 5.0, 1.9, 3.0
# At least as many of the training rows are flagged, if they are enough.
LAST = 0.985
# Up to this many components their covariances are estimated, and not only their variances.
MANY_COMPONENTS = 128
# Scores within this quantile of Gaussian ones give their centre and covariance.
CLEAN = 0.975
# No direction of them may be tighter than this share of the variance of all rows.
RIDGE = 1e-4
# The largest leverage that a row is believed to have.
LARGEST_LEVERAGE = 0.9
# Level of a distance that is rounding error.
LEAST = -30.0


@dataclass(frozen=True)
class Scatter:
    """Centre of the scores, and the matrix that makes their covariance the identity."""

    center: Array
    whitener: Array

    def distances(self, codes: Array) -> Array:
        """Distance of each row of scores to the centre, in standard deviations."""
        return np.sqrt(square_norms((codes - self.center) @ self.whitener))

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
        return cls(floor, float(typical), max(float(high - typical) / stats.norm.ppf(0.75), 1e-4))

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

    ``scatter`` gives score distances; ``orthogonal`` and ``score`` are the scales of both
    distances; a row whose two levels add up to ``middle`` is typical, and beyond ``cutoff`` it is
    an outlier. ``noise_variance`` is that of each direction outside of the subspace, of which
    there are ``n_outside``.
    """

    scatter: Scatter
    orthogonal: LogScale
    score: LogScale
    middle: float
    cutoff: float
    noise_variance: float
    n_outside: int

    def scores(self, orthogonal: Array, score: Array) -> Array:
        """How normal rows with these distances are: 0 for a typical row, -1 at the cutoff."""
        levels = _sum(self.orthogonal.levels(orthogonal), self.score.levels(score))
        return (self.middle - levels) / (self.cutoff - self.middle)

    @property
    def cutoffs(self) -> tuple[float, float]:
        """Each distance at which a row is just an outlier while its other distance is typical."""
        high = max(self.cutoff, 0.1)
        level = float(high + np.log(-np.expm1(-high)))
        return self.orthogonal.distance(level), self.score.distance(level)


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
    usable = variances > 1e-12 * max(variances.max(initial=0.0), np.finfo(np.float64).tiny)
    units = np.where(usable, 1 / np.sqrt(np.where(usable, variances, 1.0)), 0.0)
    scaled = codes.astype(np.float64) * units
    # A row draws the subspace towards itself: a new one like it would be farther away.
    leverage = np.minimum(shares * (1 + square_norms(scaled)), LARGEST_LEVERAGE)
    orthogonal = np.sqrt(residuals) / (1 - leverage)
    scatter, score = robust_scatter(scaled)
    # Rows that the method left out do not say what is usual.
    trusted = shares > 0
    orthogonal_scale = LogScale.of(orthogonal[trusted], floor)
    score_scale = LogScale.of(score[trusted], 1e-12)
    levels = _sum(orthogonal_scale.levels(orthogonal), score_scale.levels(score))
    middle, cutoff = cutoff_of(levels)
    noise = 0.0
    if n_outside > 0:
        noise = float(np.median(orthogonal)) ** 2 / float(stats.chi2.ppf(0.5, n_outside))
        noise = max(noise, floor**2 / n_outside)
    return Flags(
        Scatter(scatter.center * np.where(usable, np.sqrt(variances), 0.0),
                units[:, None] * scatter.whitener),
        orthogonal_scale,
        score_scale,
        middle,
        cutoff,
        noise,
        n_outside,
    )  # fmt: skip


def _sum(orthogonal: Array, score: Array) -> Array:
    """One level of both distances: the larger one, and a little more if the other is near it."""
    return np.logaddexp(orthogonal, score)


def bulk(values: Array, n_spreads: float) -> Array:
    """The values, in order, that are at most so many spreads above the bulk of them.

    The bulk is found from the shortest interval that holds half of them, so that up to half of
    them may be outliers.
    """
    ordered = np.sort(values)
    n_half = len(ordered) // 2 + 1
    widths = ordered[n_half - 1 :] - ordered[: len(ordered) - n_half + 1]
    first = int(np.argmin(widths))
    middle = (ordered[first] + ordered[first + n_half - 1]) / 2
    spread = widths[first] / 2 / stats.norm.ppf(0.75)
    kept = ordered
    for _ in range(30):
        n_before = len(kept)
        kept = ordered[ordered <= middle + n_spreads * spread + 1e-9]
        middle = np.median(kept)
        spread = np.median(np.abs(kept - middle)) / stats.norm.ppf(0.75)
        if len(kept) == n_before:
            break
    return kept


def cutoff_of(levels: Array) -> tuple[float, float]:
    """The median of the levels of clean rows, and the cutoff beyond which few of them are."""
    clean = bulk(levels, NEAR)
    middle, high = np.quantile(clean, (0.5, 0.9))
    # Quantiles of few rows are known as badly as the variance of a quarter of them.
    beyond = stats.t.isf(stats.norm.sf(BEYOND), max(len(clean) / 4, 3))
    cutoff = middle + beyond * (high - middle) / stats.norm.ppf(0.9)
    # A tail that ends earlier than this one still has an end.
    cutoff = min(cutoff, np.quantile(levels, LAST, method="higher"))
    return float(middle), float(max(cutoff, middle + 0.1))


def robust_scatter(codes: Array) -> tuple[Scatter, Array]:
    """Centre and covariance of most of the rows, and the distances that new rows would have.

    Concentration steps from the medians lead to the half of the rows that lie closest together;
    all rows that are not far from that half give the estimate, as in the minimum covariance
    determinant. With few rows or many components only the variances are estimated, by medians.
    """
    n_rows, used = len(codes), codes.any(axis=0)
    n_used = max(int(np.count_nonzero(used)), 1)
    center = np.median(codes, axis=0)
    spread = np.median(np.abs(codes - center), axis=0) / stats.norm.ppf(0.75)
    spread = np.where(used, np.maximum(spread, np.sqrt(RIDGE)), 1.0)
    scatter = Scatter(center, np.diag(used / spread))
    distances = scatter.distances(codes)
    if n_used > MANY_COMPONENTS or n_rows < 4 * n_used + 2:
        scale = _scale(distances, n_used, 0.5)
        return Scatter(center, scatter.whitener / scale), distances / scale
    n_half = (n_rows + n_used + 1) // 2
    near = np.zeros(n_rows, dtype=bool)
    for _ in range(10):
        before = near
        near = distances <= np.partition(distances, n_half - 1)[n_half - 1]
        if np.array_equal(near, before):
            break
        scatter = _scatter(codes[near])
        distances = scatter.distances(codes)
    scale, farthest = _scale(distances, n_used, 0.5), np.sqrt(stats.chi2.ppf(CLEAN, n_used))
    for _ in range(3):
        near = distances <= scale * farthest
        scatter = _scatter(codes[near])
        distances = scatter.distances(codes)
        scale = _scale(distances[near], n_used, 0.5 * CLEAN)
    # Rows draw the estimate towards themselves, which new rows do not.
    leverage = np.minimum((1 + distances**2) / max(np.count_nonzero(near) - 1, 1), LARGEST_LEVERAGE)
    distances = distances / np.sqrt(1 - np.where(near, leverage, 0.0))
    scale = _scale(distances[near], n_used, 0.5 * CLEAN)
    return Scatter(scatter.center, scatter.whitener / scale), distances / scale


def _scale(distances: Array, n_components: int, quantile: float) -> float:
    """What the median of distances is a multiple of, if it is this quantile of Gaussian ones."""
    scale = float(np.median(distances) / np.sqrt(stats.chi2.ppf(quantile, n_components)))
    return scale if scale > 0 else 1.0


def _scatter(codes: Array) -> Scatter:
    center = codes.mean(axis=0)
    centred = codes - center
    covariance = centred.T @ centred / max(len(codes) - 1, 1)
    values, axes = np.linalg.eigh(covariance)
    return Scatter(center, axes / np.sqrt(np.maximum(values, RIDGE)))
