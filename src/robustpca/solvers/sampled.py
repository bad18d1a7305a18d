"""Low rank + sparse from sampled rows and columns: for matrices of many millions of entries.

Both parts of a small block, whose rows and columns are drawn at random, are found as usual. Each
column of the sampled rows is then regressed, robustly, on the column space of the block, which
gives the row space of the whole; and the sampled columns of each row on that row space, which
gives its scores. So far only a few hundred entries of each row and column were looked at. Where
there is noise, a few tangent-space projections of all entries make the best of them.

Nothing here is convex: whether the result is right is found out on rows and columns that are drawn
anew, see `Check`.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from robustpca.engine.entries import compact
from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.svt import LowRank
from robustpca.engine.threads import ThreadPool
from robustpca.parts.entry_losses import HuberNorm, L1Norm
from robustpca.solvers.altproj import Projections, alternating_projections
from robustpca.solvers.new_rows import RowProblem
from robustpca.solvers.noise import pursuit_loss
from robustpca.solvers.penalties import largest_entry, observed_norm, usual_penalty
from robustpca.solvers.split_matrix import GAUSSIAN
from robustpca.solvers.splitting import Split, split

# Rows and columns of the block: so many at least, and so many for each component.
BLOCK, BLOCK_PER_RANK = 300, 30
# Rows and columns on which a result is checked.
CHECKED = 300
# A residual beyond so many deviations of the noise is an error.
GROSS = 4.0
# Largest number of passes over all entries, and the share by which a pass has to lower the norm
# of the residuals for another one to follow.
PASSES, GAIN = 8, 1e-3
# Independent noise has a spectral norm of its deviation times the sum of the roots of both sides,
# up to this factor.
SLACK = 1.25
# By so much at least the last component has to lower the median error of entries it is not from.
WORTH = 1.01


@dataclass(frozen=True)
class Check:
    """What rows and columns that are drawn anew say about a low-rank part.

    Attributes
    ----------
    noise : float
        Deviation of the residuals, from their median size; zero if it is negligible.
    level : float
        The same as a share of the size of the low-rank part.
    gross : float
        Share of the observed entries whose residual is too large for noise.
    structure : float
        Spectral norm of the other residuals over that of independent noise: a component that
        was missed stands out, noise has about one.
    spare : bool
        Whether the last component predicts nothing: scores from half of the columns give the
        other half as well without it.
    gap : float
        By which share of itself the objective of the convex problem for these rows and columns
        can at most be lowered. It vanishes where the convex problem has the same solution, as it
        has for data without noise and with few errors; a larger one proves nothing.
    empty : bool
        Whether there is no low-rank part, in what was drawn at first, to be checked.
    """

    noise: float
    level: float
    gross: float
    structure: float
    spare: bool
    gap: float
    empty: bool = False

    @classmethod
    def of(cls, X: Array, low_rank: LowRank, tol: float, seed: int) -> "Check":
        """Check a low-rank part; residuals below ``tol`` times its size count as zero."""
        side = max(CHECKED, 10 * low_rank.rank)
        rows, columns = _drawn(X.shape, side, np.random.default_rng(seed))
        data = X[np.ix_(rows, columns)].astype(np.float64)
        left, right = low_rank.left[rows].astype(np.float64), low_rank.right[:, columns]
        error = data - left @ right
        noise, size = _deviation(error), _size(low_rank)
        noise = noise if noise > tol * size else 0.0
        there, large = ~np.isnan(error), np.abs(error) > max(GROSS * noise, tol * size)
        gross = float(large[there].mean()) if there.any() else 0.0
        structure = _structure(np.where(large | ~there, 0.0, error)) if noise > 0 else 1.0
        last = float(low_rank.values[-1]) / float(np.sqrt(np.prod(X.shape)))
        spare = _last_is_spare(data, right.astype(np.float64), noise, last, tol * size)
        gap = _convex_gap(data, left @ right, noise)
        return cls(noise, noise / size if size > 0 else 0.0, gross, structure, spare, gap)

    @property
    def doubts(self) -> str:
        """What speaks against the low-rank part; nothing if it is to be trusted."""
        if self.empty:
            return "the rows and columns that were drawn have no low-rank part"
        if self.gross > 0.45:
            return f"{self.gross:.0%} of the entries that were checked do not fit"
        if self.level > 0.5:
            return f"the residuals are {self.level:.2f} times as large as the low-rank part"
        if self.structure > SLACK:
            return (
                f"the residuals that were checked have {self.structure:.2f} times the spectral "
                "norm of noise, so components are missing"
            )
        return ""


def sampled_pursuit(
    X: Array,
    rank: int | None,
    *,
    noise: float = 0.0,
    tol: float,
    callback: Callback = ignore,
    seed: int = 0,
) -> tuple[Split, Check]:
    """Split ``X`` into a matrix of low rank and a sparse one; NaN entries are missing.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data.
    rank : int or None
        Rank of the low-rank part; None to take that of the convex solution for a block.
    noise : float, default=0.0
        Least deviation of dense noise. It is estimated from residuals in any case.
    tol : float
        Residuals below this share of the low-rank part count as zero.
    callback : callable
        Called with a `Progress` after each pass over all entries.
    seed : int, default=0
        Seed of the sampling.
    """
    if largest_entry(X) == 0:
        return Split.zero(X), Check(0.0, 0.0, 0.0, 1.0, False, 0.0)
    parts, check = _attempt(X, rank, noise, tol, callback, seed)
    if rank is not None and (check.doubts or check.spare):
        # Another rank than that of the data: find theirs.
        others = _attempt(X, None, noise, tol, callback, seed)
        if not others[1].doubts:
            return others
    return parts, check


def _attempt(
    X: Array, rank: int | None, noise: float, tol: float, callback: Callback, seed: int
) -> tuple[Split, Check]:
    low_rank = _from_samples(X, rank, noise, tol, np.random.default_rng(seed))
    if low_rank.rank == 0:
        return Split.zero(X), Check(0.0, 0.0, 0.0, 1.0, False, 1.0, empty=True)
    norm, history = observed_norm(X), []
    rows, columns = _drawn(X.shape, CHECKED, np.random.default_rng(seed + 1))
    with ThreadPool() as pool:
        loop = Projections(X, low_rank.rank, pool)
        for iteration in range(1, PASSES + 1):
            error = X[np.ix_(rows, columns)] - low_rank.left[rows] @ low_rank.right[:, columns]
            level, least = GROSS * max(_deviation(error), noise), tol * _size(low_rank)
            bound = max(level, least)
            following, _, _, residual = loop.step(low_rank, bound)
            history.append(residual)
            callback(Progress(iteration, residual, residual / norm, rank=low_rank.rank))
            if level <= least or (iteration > 1 and residual > (1 - GAIN) * history[-2]):
                break
            low_rank = following
        found = loop.large_entries(low_rank, bound)
    check = Check.of(X, low_rank, tol, seed + 2)
    end = (np.array([norm, *history]), len(history), not check.doubts, history[-1] / norm)
    parts = (low_rank, compact(found, X), *end)
    return Split(*parts, row_penalty=usual_penalty(X), gap=check.gap), check


def _from_samples(
    X: Array, rank: int | None, noise: float, tol: float, rng: np.random.Generator
) -> LowRank:
    """The low-rank part, from some entries of each row and column."""
    rows, columns, space, noise = _block(X, rank, noise, tol, rng)
    row_space = np.linalg.qr(_regress(X[rows].T, space.T, noise))[0].T
    scores = _regress(X[:, columns], row_space[:, columns], noise)
    U, values, turn = linalg.svd(scores, full_matrices=False, check_finite=False)
    genuine = _genuine(values)
    U, values, turn = U[:, genuine], values[genuine], turn[genuine]
    left, right = U * values, turn @ row_space
    return LowRank(left.astype(X.dtype), right.astype(X.dtype), values)


def _block(
    X: Array, rank: int | None, noise: float, tol: float, rng: np.random.Generator
) -> tuple[Array, Array, Array, float]:
    """Rows and columns of a block, its column space, and the deviation of its noise."""
    side = max(BLOCK, BLOCK_PER_RANK * (rank or 0))
    while True:
        rows, columns = _drawn(X.shape, side, rng)
        block = X[np.ix_(rows, columns)].astype(np.float64)
        if rank is not None:
            short = min(rank, *block.shape)
            low_rank = alternating_projections(block, short, tol=1e-10, max_iter=200).low_rank
            break
        loss, noise, start = pursuit_loss(block, noise="auto")
        if noise <= 1e-4 * float(np.nanstd(block)):  # more than so few entries can tell
            loss, noise, start = pursuit_loss(block, noise=0.0)
        low_rank = split(
            block, loss, tol=1e-6, max_iter=1000, start=start, multipliers=False
        ).low_rank
        # The noise is known roughly: what is hardly beyond it may be noise.
        least = max(1e-3 * low_rank.values.max(initial=0), 0.2 * loss.threshold / loss.weight)
        count = int(np.count_nonzero(low_rank.values > least))
        if count == 0:  # nothing that the convex problem does not take for errors
            rank = 1
            continue
        low_rank = LowRank(
            low_rank.left[:, :count], low_rank.right[:count], low_rank.values[:count]
        )
        # Of a block that is too small, the rank may be anything.
        if BLOCK_PER_RANK * count <= 2 * side or side >= max(X.shape):
            break
        side *= 2
    level = _deviation(block - low_rank.dense())
    exact = level <= tol * _size(low_rank)
    # Of a block of a lower rank than asked for, the other directions are rounding error.
    genuine = _genuine(low_rank.values)
    space = low_rank.left[:, genuine] / low_rank.values[genuine]
    return rows, columns, space, 0.0 if exact else max(level, noise)


def _regress(X: Array, space: Array, noise: float) -> Array:
    """Scores of rows in the span of the rows of ``space``, in spite of gross errors."""
    turn, sizes, basis = linalg.svd(space, full_matrices=False, check_finite=False)
    # Columns that are zero, or few, leave nothing of some directions: these get no score.
    genuine = _genuine(sizes)
    k, loss = int(genuine.sum()), HuberNorm(1.0, 1.345 * noise) if noise > 0 else L1Norm(1.0)
    if k == 0:
        return np.zeros((len(X), len(space)))
    nothing = np.zeros(X.shape[1]), basis[genuine], np.zeros((k, k)), np.zeros(k)
    codes = RowProblem(*nothing, loss, usual_penalty(X)).solve(X)
    return np.asarray(codes @ (turn[:, genuine] / sizes[genuine]).T)


def _genuine(sizes: Array) -> Array:
    """Which singular values are more than rounding error."""
    return np.asarray(sizes > 1e-10 * sizes.max(initial=0.0))


def _drawn(shape: tuple[int, int], size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Places of some rows and columns."""
    rows, columns = (
        np.sort(rng.choice(length, min(size, length), replace=False)) for length in shape
    )
    return rows, columns


def _deviation(error: Array) -> float:
    """Standard deviation of the noise among residuals, some of which are gross or missing."""
    sizes = np.abs(error[~np.isnan(error)])
    return GAUSSIAN * float(np.median(sizes)) if len(sizes) else 0.0


def _size(low_rank: LowRank) -> float:
    """Root mean square of the entries."""
    n_entries = low_rank.left.shape[0] * low_rank.right.shape[1]
    return float(np.sqrt(np.sum(low_rank.values**2) / n_entries))


def _structure(noise: Array) -> float:
    """Spectral norm over that of independent noise, rows and columns scaled alike."""
    for axis in (0, 1):
        deviations = np.sqrt(np.mean(noise**2, axis=axis, keepdims=True))
        noise = noise / np.where(deviations > 0, deviations, 1.0)
    edge = np.sqrt(np.mean(noise**2)) * np.sum(np.sqrt(noise.shape))
    return float(np.linalg.norm(noise, 2) / max(edge, np.finfo(float).tiny))


def _last_is_spare(data: Array, right: Array, noise: float, last: float, least: float) -> bool:
    """Whether half of the columns give the other half as well without the last component.

    Without it, its size ``last`` is noise.
    """
    used = np.flatnonzero(right.any(axis=0))
    given, asked = used[::2], used[1::2]
    if len(right) > len(asked):  # too few to tell
        return False
    errors = []
    for k, level in ((len(right), noise), (len(right) - 1, np.hypot(noise, last))):
        codes = _regress(data[:, given], right[:k, given], level)
        errors.append(_deviation(data[:, asked] - codes @ right[:k, asked]))
    return errors[1] <= max(WORTH * errors[0], 0.3 * last, least)


def _convex_gap(data: Array, low: Array, noise: float) -> float:
    """Excess of the convex objective at these parts over a lower bound of its optimum."""
    loss, _, _ = pursuit_loss(data, noise=noise)
    value = linalg.svdvals(low, check_finite=False).sum() + loss.value(data - low)
    if value == 0:
        return 0.0
    best = split(data, loss, tol=1e-5, max_iter=500, multipliers=False)
    return float(max(1 - (1 - best.gap) * best.objective[-1] / value, 0.0))
