"""Principal component pursuit by splitting: ADMM and the inexact augmented Lagrangian method.

`split` minimises the nuclear norm of the low-rank part plus a loss of the residual entries and,
for RPCAG, the smoothness of the low-rank part on a graph, which enters by its gradient. One loop
serves both methods, which differ in their schedule of penalties: `Balanced` ends with a fixed
penalty and reaches the optimum, `Growing` is faster and may stop near it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.checkpoint import followed
from robustpca.engine.entries import compact, joined, n_nonzero
from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.scratch import contiguous, each, empty_beside, of_rows, taken
from robustpca.engine.svt import (
    LowRank,
    SingularThreshold,
    lanes,
    restricted_norm,
    row_tiles,
    short_side_norm,
    spectral_norm,
    tile_rows,
)
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.parts.entry_losses import EntryLoss, HuberNorm, L1Norm
from robustpca.parts.graphs import eigenvalue_bound
from robustpca.solvers.anderson import Anderson
from robustpca.solvers.certificate import completed
from robustpca.solvers.entry_steps import extract_tile, residual_step
from robustpca.solvers.penalties import (
    TINY,
    Balanced,
    Exploring,
    Growing,
    HandOver,
    Schedule,
    clip_outliers,
    count_observed,
    fill_missing,
    fits_single_precision,
    largest_entry,
    mean_size,
    next_root,
    observed_norm,
    usual_penalty,
)

# Iterations without a smaller residual after which single precision gives no more digits.
PATIENCE = 15
# A gap down to which single precision is good enough.
ROUGH_GAP = 1e-5
# A gap beyond which parts that add up to the data are no answer.
FAR = 2e-3
# Lanczos steps for the norm of the multipliers, and the length of a side up to which it is exact.
NORM_STEPS, SMALL_SIDE = 12, 450
# Passes between two estimates of the noise, how many estimates there are at most, and the share by
# which the last one may be wrong.
PASSES_PER_ESTIMATE, MOST_ESTIMATES, ACCURACY = 4, 20, 0.08
# Noise of this share of the usual residual is none.
FAINT = 0.05
# Residual entries of which medians are taken, and rows that these come from at least.
SAMPLE, SAMPLE_ROWS = 10_000, 30
# The median absolute value of a Gaussian times this is its standard deviation.
GAUSSIAN = 1.4826

__all__ = [
    "FAR",
    "TINY",
    "Balanced",
    "GraphSmoothness",
    "Growing",
    "HandOver",
    "Split",
    "Start",
    "clip_outliers",
    "extract_tile",
    "fill_missing",
    "largest_entry",
    "mean_size",
    "observed_norm",
    "pursuit_loss",
    "residual_step",
    "split",
    "usual_penalty",
]


@dataclass(frozen=True)
class GraphSmoothness:
    r"""``weight`` times the trace of :math:`L^\top \Phi L`, which makes neighbours alike.

    The Laplacian has one vertex for each row; ``norm`` is its largest eigenvalue.
    """

    laplacian: Any
    weight: float
    norm: float

    @classmethod
    def of(cls, laplacian: Any, weight: float) -> "GraphSmoothness":
        """The term with the norm of its Laplacian."""
        return cls(laplacian, weight, eigenvalue_bound(laplacian))

    def value(self, A: Array) -> float:
        """How much neighbours differ."""
        return self.weight * float(np.vdot(A, self.laplacian @ A))

    def gradient(self, A: Array) -> Array:
        """Gradient of the value."""
        return 2 * self.weight * (self.laplacian @ A)

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant of the gradient."""
        return 2 * self.weight * self.norm


@dataclass(frozen=True)
class Start:
    """Where a loop for nearly the same problem may start.

    Attributes
    ----------
    matrix : ndarray
        Matrix whose singular values are lowered; the loop continues in its precision.
    penalty : float
        Penalty that belongs to it.
    directions : ndarray
        Row space of the low-rank part.
    vanishing : bool
        Whether the parts already add up to the data, so that only multipliers have to converge.
    change : float
        How far the last pass moved, as a share of the data, if the problem is the very same.
    """

    matrix: Array
    penalty: float
    directions: Array
    vanishing: bool = False
    change: float = np.inf

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the data."""
        return self.matrix.shape


@dataclass(frozen=True)
class Split:
    """A low-rank and a sparse part, and how the loop that found them ended.

    Attributes
    ----------
    low_rank : LowRank
        Factors of the low-rank part.
    sparse : csr_array, ndarray or None
        Sparse part, in the form that takes less memory, if it was asked for.
    objective : ndarray
        Objective at the start and after each iteration.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the tolerance was reached.
    change : float
        The last value of what is compared with the tolerance.
    row_penalty : float
        Penalty for the problems of new rows to start with.
    gap : float
        By which share of itself the objective can at most be lowered; NaN if it is not convex.
    penalty : float
        Last penalty.
    multipliers : ndarray or None
        Multipliers of the nuclear norm, if they were asked for.
    """

    low_rank: LowRank
    sparse: Any
    objective: Array
    n_iter: int
    converged: bool
    change: float
    row_penalty: float
    gap: float = np.nan
    penalty: float = np.nan
    multipliers: Array | None = None

    @classmethod
    def zero(cls, X: Array) -> "Split":
        """Both parts of data that are zero everywhere."""
        parts = LowRank.zeros(X.shape, X.dtype), sparse.csr_array(X.shape)
        return cls(*parts, np.zeros(1), 0, True, 0.0, row_penalty=1.0, gap=0.0)

    @property
    def n_sparse(self) -> int:
        """Number of entries of the sparse part that are not zero."""
        return n_nonzero(self.sparse)

    def start(self) -> Start | None:
        """Where a loop for nearly the same problem may start."""
        if self.multipliers is None:
            return None
        matrix, low_rank = empty_beside(self.multipliers), self.low_rank
        for place in each(row_tiles(matrix.shape), matrix, self.multipliers):
            matrix[place] = low_rank.dense(place) + self.multipliers[place] / self.penalty
        return Start(matrix, self.penalty, self.low_rank.right)


def pursuit_loss(
    X: Array,
    sparsity: float | str = "auto",
    noise: float | str = 0.0,
    smoothness: GraphSmoothness | None = None,
) -> tuple[EntryLoss, float, Start | None]:
    """Loss of the residual entries, the deviation of the noise that it allows for, and a start.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data; NaN where missing.
    sparsity : float or 'auto', default='auto'
        Weight of the loss; 'auto' is that of theory.
    noise : float or 'auto', default=0.0
        Standard deviation of dense noise; 'auto' to estimate it.
    smoothness : GraphSmoothness, default=None
        Smoothness of the low-rank part that the estimate takes into account.

    Returns
    -------
    loss : EntryLoss
        The loss.
    noise : float
        Standard deviation of the noise.
    start : Start or None
        Where `split` may start: the end of the estimate, if there was one.
    """
    n_observed = count_observed(X)
    # The observed entries of a row or column of the longer side.
    weight = float(n_observed / min(X.shape)) ** -0.5 if sparsity == "auto" else float(sparsity)
    # Spectral norm of noise of deviation one at as many entries: singular values below it must
    # not enter the low-rank part.
    norm = float(np.sum(np.sqrt(X.shape)) * np.sqrt(n_observed / X.size))

    def loss_for(noise: float) -> EntryLoss:
        return HuberNorm(weight, weight * noise * norm) if noise > 0 else L1Norm(weight)

    start = None
    if noise == "auto":
        noise, start = _estimated_noise(X, loss_for, norm, smoothness)
    return loss_for(float(noise)), float(noise), start


def _estimated_noise(
    X: Array,
    loss_for: Callable[[float], EntryLoss],
    norm: float,
    smoothness: GraphSmoothness | None,
) -> tuple[float, Start | None]:
    """Noise level at which the residuals of the fit have just this median absolute deviation.

    Passes with a growing penalty and without noise show whether there is any, and about how much.
    """
    if largest_entry(X) == 0:
        return 0.0, None
    with ThreadPool() as pool:
        run = _Run(X, loss_for(0.0), None, Exploring(), pool)
        with followed(run, given=run.given) as between_passes:
            while not run.penalties.fixed:
                between_passes()
                run.advance()

        def is_faint(noise: float) -> bool:
            return noise <= FAINT * run.loop.usual_residual(run.low_rank)

        at = _Estimate(_median_residual(X, run.low_rank, 0.0))
        if run.penalties.vanishing or is_faint(at.noise):
            return 0.0, (run.start() if smoothness is None else None)
        if smoothness is not None:
            run = _Run(X, loss_for(at.noise), smoothness, Balanced(), pool)
        with followed(at, run, given=run.given) as between_passes:
            while not at.found and len(at.sizes) < MOST_ESTIMATES:
                between_passes()
                run.change_loss(loss_for(at.noise), anew=smoothness is None and not at.sizes)
                for _ in range(PASSES_PER_ESTIMATE if smoothness is None else 40):
                    run.advance()
                size = _median_residual(X, run.low_rank, at.noise * norm)
                at.sizes.append((np.log(at.noise), np.log(max(size, TINY) / at.noise)))
                at.found = abs(at.sizes[-1][1]) < ACCURACY
                if not at.found:
                    at.noise = float(np.exp(next_root(at.sizes)))
                    at.found = at.faint = is_faint(at.noise)
        if at.faint:
            return 0.0, (run.start() if smoothness is None else None)
        return at.noise, run.start()


@dataclass
class _Estimate:
    """The noise, and logarithms of the levels tried and of the residuals there in their units."""

    noise: float
    sizes: list[tuple[float, float]] = field(default_factory=list)
    found: bool = False
    faint: bool = False


def _median_residual(X: Array, low_rank: LowRank, shrinkage: float) -> float:
    """Deviation of the residual entries in a sample of the rows, the shrinkage undone.

    Where most entries are zero, as the margins of images are, they say nothing about the others.
    """
    full = 1 + shrinkage / np.maximum(low_rank.values, TINY)
    chosen = slice(None, None, max(1, min(X.size // (2 * SAMPLE), len(X) // SAMPLE_ROWS)))
    low = (low_rank.left[chosen] * full.astype(X.dtype)) @ low_rank.right
    some = taken(X, chosen)
    sizes, zero = np.abs(some - low), some == 0
    if 2 * np.count_nonzero(zero) > zero.size:
        sizes = sizes[~zero]
    return GAUSSIAN * float(np.nanmedian(sizes)) if sizes.size else 0.0


def split(
    X: Array,
    loss: EntryLoss,
    smoothness: GraphSmoothness | None = None,
    *,
    schedule: Callable[[], Schedule] = Balanced,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
    start: Start | None = None,
    multipliers: bool = True,
    entries: bool = True,
) -> Split:
    """Minimise ``||L||_* + loss(X - L) + smoothness(L)``; NaN entries are missing.

    The low-rank part is optimal for its multipliers at every iteration and the residual part for
    its own, so the primal residual measures all of the error. With an exact schedule the loop
    ends when the certified gap of the objective is at most ``tol`` and both parts add up to the
    data, otherwise when the residual is below ``tol`` times the norm of the data. The tolerance
    decides on nothing but the end, so a lower one never takes fewer passes.

    Without a graph this is Douglas-Rachford splitting, another name of the two-block ADMM; with
    one it is the three-operator splitting of Davis and Yin, which needs a penalty of more than
    half the Lipschitz constant of the gradient of the smooth term.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data.
    loss : EntryLoss
        Loss of the residual entries.
    smoothness : GraphSmoothness, default=None
        Smooth term of the low-rank part.
    schedule : callable, default=Balanced
        Makes the schedule of this run: `Balanced`, `Growing` or `HandOver`.
    tol : float
        Tolerance.
    max_iter : int
        Largest number of iterations.
    callback : callable
        Called with a `Progress` after each iteration.
    start : Start, default=None
        Where to start: `Split.start` of a similar problem.
    multipliers : bool, default=True
        Whether the result holds the multipliers, which take as much memory as the data.
    entries : bool, default=True
        Whether the result holds the sparse part.
    """
    if largest_entry(X) == 0:
        return Split.zero(X)
    with ThreadPool() as pool:
        run = _Run(X, loss, smoothness, schedule(), pool, start)
        at = _Position([run.loop.loss_of_data()])
        exact, run.loop.listed = run.penalties.exact, entries
        with followed(at, run, given=run.given) as between_passes:
            while True:
                between_passes()
                change = run.change
                # A result has at least one pass of its own.
                checked = run.iteration > 0 and run.penalties.is_checked(run.iteration, change, tol)
                if exact and checked:
                    gap = run.gap(max(tol, ROUGH_GAP))
                    settled = change <= tol
                    if run.penalties.strict:
                        settled = settled or change > 0.5 * at.checked_change
                        at.checked_change = change
                    at.ended = gap <= tol and settled and run.is_accurate(tol, ROUGH_GAP)
                    if gap <= ROUGH_GAP and not at.ended:
                        run.use_double_precision()
                if at.ended or run.iteration == max_iter:
                    break
                at.objective.append(run.advance())
                low_rank, change = run.low_rank, run.change
                callback(Progress(run.iteration, at.objective[-1], change, rank=low_rank.rank))
                if not exact:
                    at.ended = change <= tol and run.is_accurate(tol, run.penalties.single_until)
            # As large as some copies of the data, and not needed any more.
            run.loop.anderson = None
        if X.dtype == np.float64 and not (at.ended and exact):
            run.use_double_precision()
        certificate = run.certify(at.ended and exact)
        dual_matrix = run.loop.A if multipliers else None
        penalty, change, iteration = run.penalty, run.change, run.iteration
        # The rest of the state is not needed any more and as large as the data.
        del run
    return Split(
        certificate.low_rank.astype(X.dtype),
        compact(certificate.sparse, X) if entries else None,
        np.array(at.objective),
        iteration,
        # Parts that add up to the data may still be far from the optimum.
        at.ended and (exact or certificate.gap <= FAR),
        change,
        # A penalty that has grown without bound is a bad start for new rows.
        row_penalty=penalty if exact else usual_penalty(X),
        gap=certificate.gap,
        penalty=penalty,
        multipliers=dual_matrix,
    )


@dataclass
class _Position:
    """What a pass of `split` changes beside its run."""

    objective: list[float]
    ended: bool = False
    checked_change: float = np.inf


class _Run:
    """The passes of one loop: its state, the schedule of its penalty, and its precision."""

    def __init__(
        self,
        X: Array,
        loss: EntryLoss,
        smoothness: GraphSmoothness | None,
        penalties: Schedule,
        pool: ThreadPool,
        start: Start | None = None,
    ) -> None:
        self.X, self.penalties = X, penalties
        self.loop = loop = _Splitting(X, loss, smoothness, pool)
        # A start that is nearly right has digits which single precision does not.
        rough = start is None or start.matrix.dtype == np.float32
        single = rough and fits_single_precision(X)
        data = contiguous(X, np.float32) if single else X
        # Entries that are certainly wrong start in the sparse part: getting there takes long.
        clipped = clip_outliers(data)
        self.norm = max(observed_norm(clipped), TINY)
        self.least = 0.55 * loop.lipschitz
        if start is None:
            penalty, A = penalties.start(clipped, loss, pool)
        else:
            penalty, A = start.penalty, of_rows(lambda rows: rows, start.matrix)
            penalties.resume(loss, start.vanishing)
            loop.threshold.begin(start.directions)
        self.penalty = max(penalty, self.least)
        loop.set_matrix(data, contiguous(A, np.float32 if single else np.float64))
        self.low_rank, self.is_current = LowRank.zeros(X.shape, loop.dtype), False
        self.change = start.change if start is not None else np.inf
        self.turn = self.primal = self.best = np.inf
        self.since = self.iteration = 0
        self.proof: tuple[_Certificate, Array] | None = None

    @property
    def given(self) -> tuple[Any, ...]:
        """What no pass changes."""
        loop = self.loop
        return self.X, loop.data, loop.loss, loop.smoothness, loop.pool

    def look(self) -> LowRank:
        """The low-rank part that belongs to the matrix as it is now."""
        if not self.is_current:
            self.previous, self.low_rank = self.low_rank, self.loop.low_rank(self.penalty)
            self.is_current = True
        return self.low_rank

    def advance(self) -> float:
        """One pass; returns the objective."""
        low_rank, loop, penalties = self.look(), self.loop, self.penalties
        self.iteration, self.proof = self.iteration + 1, None
        spread = partial(loop.usual_residual, low_rank)
        penalties.observe(self.penalty, self.change, self.turn, spread)
        moved = partial(low_rank.distance, self.previous)
        factor = max(
            penalties.factor(self.iteration, self.primal, moved), self.least / self.penalty
        )
        self.penalty *= factor
        relaxation = min(penalties.relaxation, 0.98 * (2 - loop.lipschitz / (2 * self.penalty)))
        loop.accelerate(penalties.accelerated, self.penalty)
        self.primal, dual, cost = loop.step(low_rank, self.penalty, 1 / factor, relaxation)
        self.is_current = False
        self.change, self.turn = self.primal / self.norm, self.primal / max(dual, TINY)
        if penalties.strict:
            self.change = max(self.change, self.turn)
        better = self.change < 0.9 * self.best
        self.best, self.since = (self.change, 0) if better else (self.best, self.since + 1)
        if self.change <= penalties.single_until or self.since >= PATIENCE:
            self.use_double_precision()
        return cost + loop.cost(low_rank)

    def is_accurate(self, tol: float, enough: float) -> bool:
        """Whether the precision is good enough for this tolerance."""
        return self.loop.dtype == np.float64 or tol >= enough

    def use_double_precision(self) -> None:
        """Continue in double precision."""
        if self.loop.dtype == np.float32:
            self.loop.set_matrix(self.X, contiguous(self.loop.A, np.float64))
            self.is_current, self.since = False, 0

    def gap(self, at_most: float) -> float:
        """The duality gap if it is no more than ``at_most``, otherwise a lower bound of it."""
        plain = self.loop.smoothness is None and self.loop.dtype == np.float64
        complete = self.penalties.vanishing and plain
        self.proof = self.loop.gap(self.look(), self.penalty, at_most, complete)
        gap = self.proof[0].gap
        self.penalties.note_gap(self.iteration, gap)
        return gap

    def certify(self, proved: bool) -> "_Certificate":
        """Both parts and the gap, if not ``proved`` already; the matrix becomes the multipliers."""
        if not proved or not self.is_current or self.proof is None:
            return self.loop.certify(self.look(), self.penalty)
        certificate, self.loop.A = self.proof
        return certificate

    def change_loss(self, loss: EntryLoss, anew: bool) -> None:
        """Continue with another loss, ``anew`` from the low-rank part and the forces on it."""
        self.loop.loss = loss
        if anew:
            self.penalty = HandOver.curved * loss.weight / loss.threshold
            self.loop.restart(self.low_rank, self.penalty)
            self.penalties.resume(loss, False)
        self.is_current, self.primal = False, np.inf
        self.loop.accelerate(False, 0.0)

    def start(self) -> Start:
        """Where another loop may go on."""
        vanishing = self.penalties.vanishing
        return Start(self.loop.A, self.penalty, self.low_rank.right, vanishing, self.change)


@dataclass(frozen=True)
class _Certificate:
    """Both parts, and by which share of itself the objective may fall."""

    low_rank: LowRank
    sparse: Any
    gap: float


class _Splitting:
    """The state of the loop: data, and the matrix ``A`` whose singular values are lowered.

    What remains of ``A`` after the low-rank part is taken away are its multipliers over the
    penalty, so neither these nor the sparse part are stored.
    """

    def __init__(
        self, X: Array, loss: EntryLoss, smoothness: GraphSmoothness | None, pool: ThreadPool
    ) -> None:
        self.X, self.loss, self.smoothness, self.pool = X, loss, smoothness, pool
        self.lanes, self.tile_rows = lanes(X.shape), tile_rows(X.shape[1])
        self.threshold = SingularThreshold(X.shape, pool)
        self.lipschitz = smoothness.lipschitz if smoothness is not None else 0.0
        self.anderson: Anderson | None = None
        self.accelerated, self.known_penalty = False, 0.0
        self.listed = True  # whether the entries of the sparse part are wanted
        self.sample = slice(None, None, max(1, X.size // SAMPLE))

    def accelerate(self, wanted: bool, penalty: float) -> None:
        """Accelerate the steps with this penalty from now on, or not for the time being."""
        # The steps are remembered in single precision.
        wanted = self.accelerated = wanted and fits_single_precision(self.X)
        if wanted and self.anderson is None:
            self.anderson = Anderson(self.A)
        if self.anderson is not None and (not wanted or penalty != self.known_penalty):
            self.anderson.forget(penalty != self.known_penalty)
        self.known_penalty = penalty

    def usual_residual(self, low_rank: LowRank) -> float:
        """Deviation of the noise that would have residual entries of this median size.

        Entries that are zero, as the margins of images are, say little about the others.
        """
        data, seen, nonzero = self.sampled
        sizes = np.abs(data - low_rank.left[self.sample] @ low_rank.right)
        if not nonzero.any():
            return 0.0
        others = float(np.median(sizes[nonzero]))
        every = others if nonzero.all() else float(np.median(sizes[seen]))
        return GAUSSIAN * np.sqrt(others * max(every, 0.01 * others))

    def loss_of_data(self) -> float:
        """The loss of a low-rank part that is zero."""
        places = each(row_tiles(self.X.shape), self.data)
        return sum(self.loss.value(self.data[place]) for place in places)

    def restart(self, low_rank: LowRank, penalty: float) -> None:
        """Take the forces that the loss has at a low-rank part for its multipliers."""
        _, bound = self.loss.dual_map(1 / penalty)
        for place in each(row_tiles(self.X.shape), self.A, self.data):
            low = low_rank.dense(place)
            force = fill_missing((self.data[place] - low) * (bound / self.loss.threshold))
            self.A[place] = low + np.clip(force, -bound, bound)
        self.threshold.multiply(self.A)

    def set_matrix(self, data: Array, A: Array) -> None:
        """Start, or continue in another precision."""
        self.data, self.A, self.dtype = data, A, A.dtype
        some = taken(data, self.sample)
        self.sampled = some, np.isfinite(some), np.isfinite(some) & (some != 0)
        self.threshold.multiply(A)

    def low_rank(self, penalty: float) -> LowRank:
        """The low-rank part: ``A`` with lowered singular values."""
        return self.threshold.solve(self.A, 1 / penalty)

    def cost(self, low_rank: LowRank) -> float:
        """Nuclear norm and smoothness of the low-rank part."""
        nuclear = float(low_rank.values.sum())
        if self.smoothness is None:
            return nuclear
        # The right factor is orthonormal, so the left one is enough.
        return nuclear + self.smoothness.value(low_rank.left)

    def _graph_force(self, low_rank: LowRank) -> Array | None:
        """Gradient of the smooth term, as the left factor that belongs to the same right one."""
        if self.smoothness is None:
            return None
        return np.asarray(self.smoothness.gradient(low_rank.left), dtype=self.dtype)

    def step(
        self, low_rank: LowRank, penalty: float, decay: float, relaxation: float
    ) -> tuple[float, float, float]:
        """Update ``A``; return primal residual, norm of the multipliers, and the loss."""
        by_row = (decay, *self.loss.dual_map(1 / penalty))
        numbers = (relaxation, self.loss.threshold, self.loss.curvature)
        settings = [np.full(self.tile_rows, number, self.dtype) for number in by_row]
        settings += [self.dtype.type(number) for number in numbers]
        kernel, graph_force = compiled(residual_step), self._graph_force(low_rank)
        anderson = self.anderson if self.accelerated else None
        n_products = anderson.memory if anderson is not None else 0
        arrays = [self.A, self.data, *(anderson.arrays if anderson is not None else ())]
        self.threshold.start_pass(self.dtype)

        def work(lane: int) -> tuple[Array, Array]:
            total, sums = np.zeros(3), np.zeros((self.tile_rows, 3))
            products = np.zeros((2, n_products))
            buffer = np.empty((self.tile_rows, self.X.shape[1]), self.dtype)
            for place in each(self.lanes[lane], *arrays):
                tile = self.A[place]
                before = tile.copy() if anderson is not None else None
                low = low_rank.dense(place, out=buffer[: len(tile)])
                if graph_force is not None:
                    # The residual part has to balance the gradient of the smooth term as well.
                    force = (graph_force[place] / self.dtype.type(penalty)) @ low_rank.right
                    tile += force / self.dtype.type(decay)
                kernel(self.data[place], tile, low, *settings, sums)
                if graph_force is not None:
                    tile -= force
                total += sums[: len(tile)].sum(axis=0)
                if anderson is None:
                    self.threshold.multiply_tile(lane, place, tile)
                else:
                    products += anderson.record(place, tile - before)
            return total, products

        parts = self.pool.map(work, range(len(self.lanes)))
        primal, dual, value = np.sum([part[0] for part in parts], axis=0).tolist()
        if anderson is not None:
            products = np.sum([part[1] for part in parts], axis=0)
            self._accelerate(anderson, products, np.sqrt(primal))
        return float(np.sqrt(primal)), float(np.sqrt(dual)), self.loss.weight * value

    def _accelerate(self, anderson: Anderson, products: Array, length: float) -> None:
        """Go on from the combination of the last matrices that has the shortest step."""
        anderson.combine(products, length)

        def work(lane: int) -> None:
            for place in each(self.lanes[lane], self.A, *anderson.arrays):
                tile = self.A[place]
                anderson.move(place, tile)
                self.threshold.multiply_tile(lane, place, tile)

        self.pool.map(work, range(len(self.lanes)))
        anderson.moved()

    def gap(
        self, low_rank: LowRank, penalty: float, at_most: float, complete: bool
    ) -> tuple[_Certificate, Array]:
        """Both parts and the duality gap, or a lower bound of it that is above ``at_most``.

        With ``complete``, multipliers are first made to agree with both parts. The second result
        are the multipliers that prove the gap.
        """
        dual = empty_beside(self.A)
        sparse_part, inner, squares, value = self.extract(low_rank, penalty, dual)
        if complete:
            completed(dual, self.data, low_rank, self.loss.weight, self.pool)
            places = each(row_tiles(dual.shape), self.data, dual)
            inner = sum(float(np.nansum(self.data[place] * dual[place])) for place in places)
        found = self._gap(low_rank, 1.0, inner, squares, value)
        # The norm costs as much as some passes; a part of it may be enough to see that the gap
        # is too large.
        for norm in self._norms(dual, low_rank):
            if found > at_most:
                break
            found = max(found, self._gap(low_rank, norm, inner, squares, value))
        return _Certificate(low_rank, sparse_part, found), dual

    def certify(self, low_rank: LowRank, penalty: float) -> _Certificate:
        """Both parts and the duality gap; afterwards ``A`` holds the multipliers."""
        sparse_part, *sums = self.extract(low_rank, penalty, self.A)
        norm = max(self._norms(self.A, low_rank))
        return _Certificate(low_rank, sparse_part, self._gap(low_rank, norm, *sums))

    def _norms(self, dual: Array, low_rank: LowRank) -> Iterator[float]:
        """Lower bounds of the spectral norm of the multipliers; the largest is accurate.

        All singular values that belong to the low-rank part are close to one, and no vector
        iteration can tell which of them is the largest: its row space is taken as a whole, with
        directions that are about to enter it. Others are left to Lanczos steps, which may miss
        some digits where singular values lie close together, unless a side is short.
        """
        block = self.threshold.block
        if block is None:
            yield short_side_norm(dual, self.pool)
            return
        near = low_rank.right if len(block) < low_rank.rank else block
        yield restricted_norm(dual, near.astype(dual.dtype, copy=False), self.pool)
        if self.threshold.short <= SMALL_SIDE:
            yield short_side_norm(dual, self.pool)
        else:
            yield spectral_norm(dual, self.pool, NORM_STEPS)

    def _gap(
        self, low_rank: LowRank, norm: float, inner: float, squares: float, value: float
    ) -> float:
        """The gap, from the sums of `extract_tile` and the spectral norm of the multipliers."""
        cost = self.cost(low_rank)
        smooth = cost - float(low_rank.values.sum())
        # Multipliers and gradients, made feasible by scaling, bound the objective from below.
        # The norm is accurate to many digits, but approximated from below.
        scale = max(1.0, norm)
        bound = inner / scale - (self.loss.conjugate(squares) + smooth) / scale**2
        total = cost + self.loss.weight * value
        return max(total - bound, 0.0) / max(abs(total), TINY)

    def extract(
        self, low_rank: LowRank, penalty: float, out: Array
    ) -> tuple[Any, float, float, float]:
        """Sparse part and the sums of `extract_tile`; the multipliers are written to ``out``."""
        slope, bound = self.loss.dual_map(1 / penalty)
        numbers = (slope, bound, self.loss.threshold, self.loss.curvature, penalty)
        settings = [self.dtype.type(number) for number in numbers]
        kernel, graph_force = compiled(extract_tile), self._graph_force(low_rank)
        size = self.tile_rows * self.X.shape[1]

        def work(lane: int) -> tuple[list[tuple[Array, Array, Array]], Array]:
            columns, entries = np.empty(size, np.int32), np.empty(size, self.dtype)
            found, sums = [], np.zeros(3)
            for place in each(self.lanes[lane], self.A, self.data, out):
                tile, low = self.A[place].copy(), low_rank.dense(place)
                if graph_force is not None:
                    force = graph_force[place] @ low_rank.right
                    tile += force / self.dtype.type(penalty)
                counts = np.empty(len(tile), np.int64)
                n, *products = kernel(
                    self.data[place], tile, low, *settings, counts, columns, entries
                )
                if graph_force is not None:
                    tile -= force
                out[place] = tile
                sums += products
                if self.listed:
                    found.append((entries[:n].astype(self.X.dtype), columns[:n].copy(), counts))
            return found, sums

        parts = self.pool.map(work, range(len(self.lanes)))
        pieces = (piece for found, _ in parts for piece in found)
        sparse_part = joined(pieces, self.X.shape) if self.listed else None
        return sparse_part, *np.sum([sums for _, sums in parts], axis=0).tolist()
