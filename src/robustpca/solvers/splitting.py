"""Principal component pursuit by splitting: ADMM and the inexact augmented Lagrangian method.

`split` minimises the nuclear norm of the low-rank part plus a loss of the residual entries and,
for RPCAG, the smoothness of the low-rank part on a graph, which enters by its gradient. One loop
serves both methods, which differ in their schedule of penalties: `Balanced` ends with a fixed
penalty and reaches the optimum, `Growing` is faster and may stop near it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.checkpoint import followed
from robustpca.engine.entries import compact, n_nonzero
from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.scratch import contiguous, each, empty_beside, of_rows
from robustpca.engine.svt import LowRank, row_tiles
from robustpca.engine.threads import ThreadPool
from robustpca.parts.entry_losses import EntryLoss
from robustpca.solvers.penalties import (
    TINY,
    Balanced,
    HandOver,
    Schedule,
    clip_outliers,
    fill_missing,
    fits_single_precision,
    largest_entry,
    observed_norm,
    usual_penalty,
)
from robustpca.solvers.split_matrix import Certificate, GraphSmoothness, SplitMatrix

# Iterations without a smaller residual after which single precision gives no more digits.
PATIENCE = 15
# A gap down to which single precision is good enough.
ROUGH_GAP = 1e-5
# A gap beyond which parts that add up to the data are far from the optimum.
FAR = 2e-3


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
        for place in each(row_tiles(matrix.shape), matrix, self.multipliers, low_rank.left):
            matrix[place] = low_rank.dense(place) + self.multipliers[place] / self.penalty
        return Start(matrix, self.penalty, self.low_rank.right)


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
        run = Run(X, loss, smoothness, schedule(), pool, start)
        at = _Position([run.loop.loss_of_data()])
        exact, run.loop.listed = run.penalties.exact, entries
        with followed(at, run, given=run.given) as between_passes:
            while True:
                between_passes()
                change = run.change
                # A result has at least one pass of its own.
                checked = run.iteration > 0 and run.penalties.is_checked(run.iteration, change, tol)
                if exact and checked:
                    gap = run.gap(tol)
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
                low_rank, before, change = run.low_rank, change, run.change
                callback(Progress(run.iteration, at.objective[-1], change, rank=low_rank.rank))
                if not exact:
                    # One pass more than the rule asks for: it is worth half a digit.
                    arrived = max(before, change) <= tol
                    at.ended = arrived and run.is_accurate(tol, run.penalties.single_until)
            # As large as some copies of the data, and not needed any more.
            run.loop.anderson = None
        if X.dtype == np.float64 and not (at.ended and exact):
            run.use_double_precision()
        if run.loop.dual is not None:
            run.finish_pass()
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
        at.ended,
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


class Run:
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
        printed = penalties.printed_order and smoothness is None
        self.loop = loop = SplitMatrix(X, loss, smoothness, pool, printed)
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
        self.proof: tuple[Certificate, Array] | None = None
        if printed:
            # The first multipliers: what was added to the data, or what a start knows.
            loop.dual = empty_beside(loop.A)
            for place in each(row_tiles(X.shape), loop.A, loop.dual, clipped):
                known = clipped[place] if start is None else self.look().dense(place)
                loop.dual[place] = fill_missing(loop.A[place] - known)

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
        if loop.dual is None:
            self.penalty *= factor
        relaxation = min(penalties.relaxation, 0.98 * (2 - loop.lipschitz / (2 * self.penalty)))
        loop.accelerate(penalties.accelerated, self.penalty)
        self.primal, dual, cost = loop.step(low_rank, self.penalty, 1 / factor, relaxation)
        if loop.dual is not None:
            self.penalty *= factor
        self.is_current = False
        self.change, self.turn = self.primal / self.norm, self.primal / max(dual, TINY)
        if penalties.strict:
            self.change = max(self.change, self.turn)
        better = self.change < 0.9 * self.best
        self.best, self.since = (self.change, 0) if better else (self.best, self.since + 1)
        if self.change <= penalties.single_until or self.since >= PATIENCE:
            # The products of this pass have all digits that the matrix has.
            self.use_double_precision(multiplied=True)
        return cost + loop.cost(low_rank)

    def is_accurate(self, tol: float, enough: float) -> bool:
        """Whether the precision is good enough for this tolerance."""
        return self.loop.dtype == np.float64 or tol >= enough

    def use_double_precision(self, multiplied: bool = False) -> None:
        """Continue in double precision, if ``multiplied`` with the products of the last pass."""
        if self.loop.dtype == np.float32:
            self.loop.data = self.X  # the copy in single precision need not wait for the next line
            self.loop.set_matrix(self.X, contiguous(self.loop.A, np.float64), multiplied)
            self.is_current, self.since = False, 0

    def finish_pass(self) -> None:
        """Let the matrix be the next low-rank part with the multipliers of the residual part.

        So both parts are those of the next pass of the printed order.
        """
        low_rank, loop, dual = self.look(), self.loop, self.loop.dual
        assert dual is not None
        for place in each(row_tiles(self.X.shape), loop.A, dual, low_rank.left):
            loop.A[place] = low_rank.dense(place) + dual[place]
        loop.dual = None

    def gap(self, tol: float) -> float:
        """The duality gap if it is small enough to matter, otherwise a lower bound of it."""
        plain = self.loop.smoothness is None and self.loop.dtype == np.float64
        enough = tol if self.penalties.vanishing and plain else np.inf
        self.proof = self.loop.gap(self.look(), self.penalty, max(tol, ROUGH_GAP), enough)
        gap = self.proof[0].gap
        self.penalties.note_gap(self.iteration, gap)
        return gap

    def certify(self, proved: bool) -> Certificate:
        """Both parts and the gap, if not ``proved`` already; the matrix becomes the multipliers."""
        if not proved or not self.is_current or self.proof is None:
            plain = self.loop.smoothness is None and self.loop.loss.threshold == 0
            hurried = plain and not self.penalties.exact and self.loop.dtype == np.float64
            return self.loop.certify(self.look(), self.penalty, FAR if hurried else np.inf)
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
