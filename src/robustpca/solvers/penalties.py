"""How the penalty of a splitting changes from pass to pass.

`Balanced` ends with a fixed penalty and reaches the optimum. `Growing` is faster on exact data and
may stop short of the optimum on others. `HandOver` begins like the second and ends like the first.
"""

from collections.abc import Callable

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.scratch import each, of_rows, taken
from robustpca.engine.svt import row_tiles, spectral_norm
from robustpca.engine.threads import ThreadPool
from robustpca.parts.entry_losses import EntryLoss

TINY = float(np.finfo(np.float64).tiny)


class Schedule:
    """How the penalty changes in one run of the loop.

    ``exact`` schedules reach the optimum: their loop ends when the duality gap is small enough,
    with ``strict`` ones only if the multipliers converge no more or have converged as well.
    Single precision is used until the change is below ``single_until``. A penalty may be ``fixed``
    from some pass on, and then the residual may be ``vanishing``. With ``printed_order`` the
    multipliers change after both parts, and then the penalty; otherwise after the low-rank part.
    """

    relaxation: float
    exact: bool
    single_until: float
    accelerated = False
    printed_order = False
    strict = False
    fixed = False
    vanishing = False

    def start(self, X: Array, loss: EntryLoss, pool: ThreadPool) -> tuple[float, Array]:
        """First penalty, and first matrix to lower the singular values of."""
        raise NotImplementedError

    def resume(self, loss: EntryLoss, vanishing: bool) -> None:
        """Go on from where another loop has ended."""

    def observe(
        self, penalty: float, change: float, turn: float, spread: Callable[[], float]
    ) -> None:
        """Take into account the last pass.

        ``change`` is its residual as a share of the data, ``turn`` as a share of the multipliers,
        ``spread`` the usual size of the residual entries.
        """

    def factor(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        """Factor on the penalty, from the primal residual and how far the low rank moved."""
        raise NotImplementedError

    def is_checked(self, iteration: int, change: float, tol: float) -> bool:
        """Whether the gap is computed at this iteration, which costs as much as a few others."""
        return False

    def note_gap(self, iteration: int, gap: float) -> None:
        """Take into account how large the gap is."""


def _balance(step: float, distance: float) -> float:
    """Factor on the penalty with which low-rank part and multipliers would move equally far."""
    if not 0 < step < np.inf:
        return 1.0
    # Their moves are orthogonal parts of the step.
    rest = np.sqrt(max(step**2 - distance**2, 0.0))
    return float(np.sqrt(rest / max(distance, 1e-3 * step)))


class Balanced(Schedule):
    """A penalty that is balanced at first and then fixed: the loop reaches the optimum.

    The best penalty depends on how small the noise is besides the gross errors, which is not
    known beforehand. It is changed until the low-rank part and the multipliers move equally
    far in each iteration. A ``penalty`` that is given, from an earlier fit, stays as it is.
    """

    relaxation = 1.8
    exact = strict = True
    single_until = 1e-4
    first, every = 10, 5
    # Multipliers may be right from the start, and noise may be as small as rounding error; the
    # penalty changes in either case by at most these factors.
    narrow, wide = 64.0, 4096.0

    def __init__(self, penalty: float | None = None) -> None:
        self.penalty, self.total = penalty, 1.0
        self.last, self.highest, self.extended = 120, self.narrow, False

    def start(self, X: Array, loss: EntryLoss, pool: ThreadPool) -> tuple[float, Array]:
        return self.penalty or usual_penalty(X), of_rows(_filled, X)

    def factor(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        # The distance that the low-rank part moved costs something.
        early = self.first <= iteration <= self.last and iteration % self.every == 0
        if not early or self.penalty is not None:
            return 1.0
        wanted = _balance(self.relaxation * primal, moved())
        least, most = 1 / (self.narrow * self.total), self.highest / self.total
        least, most = max(0.25, least), min(4.0, most)
        factor = min(max(wanted, least), most)
        if 1 / 1.3 < factor < 1.3:
            return 1.0
        self.total *= factor
        return factor

    def is_checked(self, iteration: int, change: float, tol: float) -> bool:
        return change <= tol or (iteration >= 60 and iteration % 20 == 0)

    def note_gap(self, iteration: int, gap: float) -> None:
        # Decided once: a gap that is nearly small enough needs no other penalty.
        if iteration >= self.last and not self.extended:
            self.extended = True
            if gap > 1e-5:
                self.highest, self.last = self.wide, iteration + 60


class Growing(Schedule):
    """A penalty that grows by ``rate`` each time: fast on data that are exactly low rank + sparse.

    This is the inexact augmented Lagrangian method as it is printed. The multipliers stop changing
    before they are right when there is noise, so the loop may end near the optimum and not at it,
    and an error in them is never made good.
    """

    relaxation = 1.0
    exact = False
    printed_order = True
    single_until = 2e-6

    def __init__(self, rate: float = 1.5) -> None:
        self.rate, self.growth_left = rate, 1e7

    def start(self, X: Array, loss: EntryLoss, pool: ThreadPool) -> tuple[float, Array]:
        penalty, stretch = self._first(X, loss, pool)
        factor = X.dtype.type(stretch)
        return penalty, of_rows(lambda rows: fill_missing(rows * factor), X)

    def _first(self, X: Array, loss: EntryLoss, pool: ThreadPool) -> tuple[float, float]:
        """First penalty, and the data plus the first multipliers over it, in units of the data."""
        norm = max(spectral_norm(X, pool, 6), TINY)
        penalty = 1.25 / norm
        return penalty, 1 + 1 / (penalty * max(norm, largest_entry(X) / loss.weight))

    def factor(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        return self._grown(self.rate)

    def _grown(self, rate: float) -> float:
        factor = min(rate, self.growth_left)
        self.growth_left /= factor
        return factor


class HandOver(Growing):
    """A penalty that grows until it suits the data, and is fixed from then on.

    On data that are exactly low rank + sparse the residual vanishes while the penalty grows, faster
    towards the end, and a few passes more make the multipliers right; growth ends early, and the
    last of it is undone, if they stop approaching in ``patience`` passes. On other data it ends
    where the smallest sparse entry has the size of a usual residual: larger penalties stop the
    multipliers, lower ones the low-rank part.
    """

    exact, printed_order = True, False
    # Accelerated steps need more digits than growth does.
    single_until_held = 1e-5
    # Residual below which data count as exact; the smallest sparse entry in units of the usual
    # residual, at hand-over and where that one is about to vanish; the penalty in units of the
    # curvature of a loss that allows for noise; what counts as falling.
    small, usual, far, curved, falling = 1e-6, 2.0, 200.0, 0.5, 0.85
    # Passes that exact data need at most before acceleration pays; how often the penalty is
    # examined after the hand-over, and until when.
    plain, every, last = 5, 40, 400
    # Passes in a row in which the multipliers do not approach: a single one says nothing.
    patience = 2
    # Growth while the residual vanishes and the multipliers move by less than this share, and by
    # how much the penalty is lowered if the first proof fails.
    fast, steady, back = 2.0, 0.03, 0.03
    # Passes before which residuals tell nothing, since the low-rank part is only coming up.
    least = 6

    def __init__(self, rate: float = 1.5) -> None:
        super().__init__(rate)
        self.since, self.settled, self.fixed, self.vanishing = 0, 0, False, False
        self.stalls, self.undoing = 0, 1.0
        self.hurries, self.looked = False, False
        self.spreads, self.turns = [np.inf], [np.inf, np.inf]

    def start(self, X: Array, loss: EntryLoss, pool: ThreadPool) -> tuple[float, Array]:
        self.loss = loss
        penalty, stretch = self._first(X, loss, pool)
        slope, bound = loss.dual_map(1 / penalty)
        # One step for the sparse part from a low-rank part that is zero.
        factor = X.dtype.type(slope * stretch)
        return penalty, of_rows(lambda x: np.clip(fill_missing(x * factor), -bound, bound), X)

    def observe(
        self, penalty: float, change: float, turn: float, spread: Callable[[], float]
    ) -> None:
        if self.fixed:
            return
        if self.loss.threshold > 0:
            if penalty * self.loss.threshold >= self.curved * self.loss.weight:
                self.resume(self.loss, False)
            return
        self.spreads.append(spread())
        self.turns.append(turn)
        ratio = self.loss.weight / max(penalty * self.spreads[-1], TINY)
        falling = ratio > self.far and self.spreads[-1] <= self.falling * self.spreads[-2]
        rests = self.turns[-1] > self.falling * self.turns[-3]
        self.stalls = self.stalls + 1 if rests and (falling or self.stalls > 0) else 0
        self.hurries = falling and self.stalls == 0 and turn <= self.steady
        vanishing = change <= self.small or self.growth_left <= 1
        if self.stalls >= self.patience and not vanishing:
            vanishing, self.undoing = True, self.rate**-self.patience
        if vanishing or (ratio <= self.usual and len(self.spreads) > self.least):
            self.resume(self.loss, vanishing)

    def factor(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        if not self.fixed:
            return self._grown(self.fast if self.hurries else self.rate)
        if self.undoing < 1:
            factor, self.undoing = self.undoing, 1.0
            return factor
        self.since += 1
        if self.since % self.every == 0:
            # After a pass without acceleration: does the penalty suit the data?
            factor = min(max(_balance(self.relaxation * primal, moved()), 0.25), 4.0)
            return factor if self.since < self.last and not 0.5 < factor < 2 else 1.0
        before_exam = (self.since + 1) % self.every == 0 and self.since < self.last
        patient = self.relaxation > 1 or self.since > self.plain
        self.accelerated = patient and not before_exam
        return 1.0

    def note_gap(self, iteration: int, gap: float) -> None:
        # A penalty that has grown so far, and not been compared with a balanced one yet, is too
        # high for the multipliers to become right soon.
        if self.vanishing and not self.looked and self.since < self.every:
            self.looked, self.undoing = True, self.back

    def resume(self, loss: EntryLoss, vanishing: bool) -> None:
        self.loss, self.vanishing = loss, vanishing
        self.single_until = self.single_until_held
        self.fixed, self.since, self.relaxation = True, 0, 1.0 if vanishing else 1.5

    def is_checked(self, iteration: int, change: float, tol: float) -> bool:
        # Whatever the tolerance is, so that a lower one never takes fewer passes.
        if not self.vanishing:
            return self.fixed and self.since % 3 == 1
        self.settled = self.settled + 1 if change <= self.small else 0
        return self.settled % 3 == 1


class Exploring(HandOver):
    """Ends its growth while dense noise is still in neither part.

    The loss changes every few passes from then on, which leaves no time to accelerate.
    """

    usual = 5.0

    def factor(self, iteration: int, primal: float, moved: Callable[[], float]) -> float:
        waits = self.fixed and self.undoing == 1
        return 1.0 if waits else super().factor(iteration, primal, moved)


def largest_entry(X: Array) -> float:
    """Largest magnitude among the entries that are not missing."""
    ends = [
        (np.fmax.reduce(X[place], axis=None), -np.fmin.reduce(X[place], axis=None))
        for place in each(row_tiles(X.shape), X)
    ]
    return float(np.fmax.reduce(ends, axis=None))


def count_observed(X: Array) -> int:
    """Number of entries that are not missing."""
    places = each(row_tiles(X.shape), X)
    return X.size - sum(int(np.count_nonzero(np.isnan(X[place]))) for place in places)


def mean_size(X: Array) -> float:
    """Mean magnitude of the entries, estimated from some of them, the largest clipped."""
    sizes = np.abs(taken(X.ravel(), slice(None, None, max(1, X.size // 20_000))))
    # A few entries may be larger than all the others together.
    usual = 100 * float(np.nanmedian(sizes))
    if usual > 0:
        return float(np.nanmean(np.minimum(sizes, usual)))
    places = each(row_tiles(X.shape), X)
    return sum(float(np.nansum(np.abs(X[place]))) for place in places) / count_observed(X)


def usual_penalty(X: Array) -> float:
    """A penalty in the inverse units of the data."""
    return 0.25 / max(mean_size(X), TINY)


def fill_missing(A: Array) -> Array:
    """The same array, with zeros written where entries are missing."""
    np.copyto(A, 0, where=np.isnan(A))
    return A


def _filled(X: Array) -> Array:
    return fill_missing(X.copy())


def observed_norm(X: Array) -> float:
    """Frobenius norm of the entries that are not missing."""
    squares = 0.0
    for place in each(row_tiles(X.shape), X):
        found = float(np.einsum("ij,ij->", X[place], X[place], dtype=np.float64))
        if not np.isfinite(found):
            found = float(np.nansum(np.square(X[place], dtype=np.float64)))
        squares += found
    return float(np.sqrt(squares))


def clip_outliers(X: Array) -> Array:
    """The data, with entries beyond twenty times the mean size, which must be wrong, clipped.

    A start or a stopping rule that followed such an entry would neglect the others.
    """
    most = 20 * mean_size(X)
    if largest_entry(X) <= most:
        return X
    return of_rows(lambda rows: np.clip(rows, -most, most), X)


def fits_single_precision(X: Array) -> bool:
    """Whether squares of the entries, and their sums, are far from overflow."""
    return 1e-12 < largest_entry(X) < 1e12


def next_root(points: list[tuple[float, float]]) -> float:
    """Next estimate of where a falling function vanishes, from its last points."""
    (x, y), slope = points[-1], -1.0
    if len(points) > 1 and points[-2][0] != x:
        slope = (y - points[-2][1]) / (x - points[-2][0])
    # The slope of a function that hardly falls is not trusted.
    return x + float(np.clip(-y / min(slope, -0.25), -1.5, 1.5))
