"""Accelerated proximal gradient descent for data that are smooth on two graphs.

`fista` is the loop of FRPCAG. The gradient is a pair of sparse products, one over the rows and
one over the columns; the loss is elementwise. An iteration is one pass over tiles of rows that
fit the cache: both products, proximal step, momentum and all sums are done on a tile at a time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from robustpca.engine.blocks import slices
from robustpca.engine.checkpoint import followed
from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.scratch import empty_beside, gathered, in_groups, is_scratch
from robustpca.engine.threads import ThreadPool, compiled, one_blas_thread
from robustpca.parts.entry_losses import EntryLoss
from robustpca.parts.graphs import eigenvalue_bound, locality_order

R = TypeVar("R")

# Size of a tile of one array: some six of them should fit the cache of a core.
TILE_BYTES = 5 << 16
# Tiles that a thread takes at a time.
BATCH = 8
# Iterations without a shorter step after which Nesterov's momentum replaces the greedy one.
PATIENCE = 30
# Iterations between two evaluations of the objective, each of which costs a third of one.
EVERY = 10


@dataclass(frozen=True)
class Descent:
    """Where the descent ended.

    Attributes
    ----------
    low_rank : ndarray of shape (n_samples, n_features)
        The point that was found.
    objective : ndarray of shape (n_iter + 1,)
        Objective at the start, and after each iteration the latest value that is known: it is
        evaluated where every tenth iteration starts from, and at the end.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the tolerance was reached.
    change : float
        Length of the last step relative to the point it led to.
    """

    low_rank: Array
    objective: Array
    n_iter: int
    converged: bool
    change: float


def fista(
    X: Array,
    loss: EntryLoss,
    sample_laplacian: sparse.csr_array | None = None,
    sample_smoothness: float = 1.0,
    feature_laplacian: sparse.csr_array | None = None,
    feature_smoothness: float = 1.0,
    *,
    tol: float = 1e-5,
    max_iter: int = 500,
    restart: bool = True,
    greedy: bool = True,
    callback: Callback = ignore,
    **options: Any,
) -> Descent:
    """Minimise a loss plus smoothness on one or two graphs by descent with momentum.

    The objective is ``loss(X - U) + sample_smoothness * trace(U.T @ L @ U)``, where ``L`` is
    the Laplacian of the samples, ``+ feature_smoothness * trace(U @ L @ U.T)`` with that of
    the features. The momentum is reset when it points uphill [2]_.

    The loop ends when the step of an iteration, which vanishes only at a minimiser, is no
    longer than ``tol`` times the norm of the point it leads to. Some subgradient of the
    objective there is then at most ``tol`` times the Lipschitz constant of the gradient times
    the length of that point; with the default, the objective is mostly within 1e-6 of its
    minimum. Steps shorter than four units in the last digit are rounding error, so the
    tolerance is at least as large.

    With ``greedy`` the momentum is not Nesterov's [1]_, which grows slowly, but from the
    beginning as large as the last move [3]_. That takes a tenth to a third fewer iterations, and
    is not proved to converge: if steps do not get shorter for a while, the loop continues
    without it.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data; NaN where missing. Single precision is retained, anything else becomes double. An
        array in C order is not copied.
    loss : EntryLoss
        Loss of the residual entries.
    sample_laplacian, feature_laplacian : csr_array, default=None
        Laplacians over the rows and over the columns; None for no such term.
    sample_smoothness, feature_smoothness : float, default=1.0
        Weights of the two terms.
    tol : float, default=1e-5
        Tolerance.
    max_iter : int, default=500
        Largest number of iterations.
    restart : bool, default=True
        Whether to reset a momentum that points uphill.
    greedy : bool, default=True
        Whether to start with greedy momentum; it needs ``restart``.
    callback : callable
        Called with a `Progress` after each iteration.
    **options
        ``sample_norm``, ``feature_norm``, ``start`` and ``order``, as in `GraphDescent`.

    References
    ----------
    .. [1] A. Beck and M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for
       linear inverse problems", SIAM Journal on Imaging Sciences, 2009.
    .. [2] B. O'Donoghue and E. Candes, "Adaptive restart for accelerated gradient schemes",
       Foundations of Computational Mathematics, 2015.
    .. [3] J. Liang, T. Luo and C.-B. Schonlieb, "Improving fast iterative shrinkage-thresholding
       algorithm: faster, smarter, and greedier", SIAM Journal on Scientific Computing, 2022.
    """
    laplacians = (sample_laplacian, sample_smoothness, feature_laplacian, feature_smoothness)
    problem = GraphDescent(X, loss, *laplacians, **options)
    tol = max(tol, 4 * float(np.finfo(problem.U.dtype).eps))
    # Without any smoothness the start is the answer.
    converged = problem.curvature == 0
    at = _Position(converged, 0.0 if converged else np.inf, restart and greedy)
    with problem.threads(), followed(at, problem, given=problem.given) as between_passes:
        at.objective = at.objective or ([problem.value()] if converged else [])
        while at.iteration < max_iter and not at.converged:
            between_passes()
            at.iteration += 1
            pace = (1 + np.sqrt(1 + 4 * at.pace**2)) / 2
            evaluate = at.iteration == 1 or at.iteration % EVERY == 0
            move = problem.advance(1.0 if at.greedy else (at.pace - 1) / pace, evaluate)
            at.pace, at.change = pace, move.change
            if at.iteration == 1:
                at.objective.append(move.objective)
            at.objective.append(move.objective if evaluate else at.objective[-1])
            at.converged = at.change <= tol
            shorter = at.change < 0.9 * at.shortest
            at.shortest, at.since = (at.change, 0) if shorter else (at.shortest, at.since + 1)
            stalled = at.greedy and at.since >= PATIENCE
            at.greedy = at.greedy and not stalled
            if stalled or (restart and move.uphill > 0):
                problem.reset_momentum()
                at.pace, at.n_restarts = 1.0, at.n_restarts + 1
            if at.converged or at.iteration == max_iter:
                at.objective[-1] = problem.value()
            callback(Progress(at.iteration, at.objective[-1], at.change, n_restarts=at.n_restarts))
    objective = np.array(at.objective)
    return Descent(problem.result(), objective, at.iteration, at.converged, at.change)


@dataclass
class _Position:
    """What a pass changes beside the problem."""

    converged: bool
    change: float
    greedy: bool
    objective: list[float] = field(default_factory=list)
    pace: float = 1.0
    iteration: int = 0
    n_restarts: int = 0
    since: int = 0
    shortest: float = np.inf


@dataclass(frozen=True)
class Move:
    """Sums over all entries that an iteration computes.

    With ``Y`` the point the iteration started from, ``U`` the one it found and ``V`` the one
    found before: ``square_step`` is the squared norm of ``U - Y``, which vanishes only at a
    minimiser, ``square_norm`` that of ``U``, and ``uphill`` the inner product of ``Y - U`` and
    ``U - V``, which is positive when the momentum points the wrong way. ``objective`` is that
    of ``Y``, if it was evaluated.
    """

    square_step: float
    square_norm: float
    uphill: float
    objective: float = 0.0

    @property
    def change(self) -> float:
        """Length of the step relative to the point it led to."""
        if self.square_step == 0:
            return 0.0
        return float(np.sqrt(self.square_step / self.square_norm)) if self.square_norm else np.inf


class Graph:
    """A multiple of a Laplacian, its vertices in another order, as arrays for the kernels."""

    def __init__(
        self, laplacian: sparse.csr_array, factor: float, order: Array, dtype: np.dtype[Any]
    ) -> None:
        # Unsigned, so that kernels need not test whether an index counts from the end.
        place = np.zeros(len(order), np.uint32)
        place[order] = np.arange(len(order))
        laplacian = laplacian[order]
        self.start = laplacian.indptr.astype(np.int64)
        self.index = place[laplacian.indices]
        weight = np.multiply(laplacian.data, factor, dtype=np.float64)
        self.weight = weight.astype(dtype, copy=False)

    def add(self, factor: float, source: Array, target: Array, rows: slice) -> None:
        """Write ``factor * source`` plus the product with it to some rows of ``target``."""
        graph = (self.start, self.index, self.weight, source.dtype.type(factor))
        compiled(_add_neighbors)(*graph, source, target, rows.start, rows.stop)


class GraphDescent:
    """The problem of `fista` and the state of its loop.

    Besides ``X``, three arrays of its size are stored, with rows in an order that brings
    neighbours together. If ``X`` is in a scratch file (`engine.scratch`), so are these, and ``X``
    in their order besides.

    Parameters
    ----------
    X, loss, sample_laplacian, sample_smoothness, feature_laplacian, feature_smoothness
        As in `fista`.
    sample_norm, feature_norm : float, default=None
        Largest eigenvalues of the Laplacians or bounds on them; None to compute them.
    start : ndarray of shape (n_samples, n_features), default=None
        Where to start; None for ``X``, with zeros for missing entries.
    order : ndarray of shape (n_samples,), default=None
        Order in which the rows are stored; None for the reverse Cuthill-McKee order.

    Attributes
    ----------
    curvature : float
        Lipschitz constant of the gradient of both terms; a step is as long as its inverse.
    """

    def __init__(
        self,
        X: Array,
        loss: EntryLoss,
        sample_laplacian: sparse.csr_array | None = None,
        sample_smoothness: float = 1.0,
        feature_laplacian: sparse.csr_array | None = None,
        feature_smoothness: float = 1.0,
        *,
        sample_norm: float | None = None,
        feature_norm: float | None = None,
        start: Array | None = None,
        order: Array | None = None,
    ) -> None:
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.X = np.ascontiguousarray(X, self.dtype)
        self.loss = loss
        self.pool: ThreadPool | None = None
        # Rows of a tile: many at a time if they are short, and whole vector registers.
        self.height = min(max(32, TILE_BYTES // self.X[0].nbytes // 32 * 32), 512)

        n_samples, n_features = X.shape
        samples, by_samples = _term(sample_laplacian, sample_smoothness, sample_norm, n_samples)
        features, by_features = _term(
            feature_laplacian, feature_smoothness, feature_norm, n_features
        )
        self.curvature = by_samples + by_features
        factor = -2 / self.curvature if self.curvature else 0.0
        if order is None:
            order = locality_order(samples) if samples.nnz else np.arange(n_samples)
        self.order = order.astype(np.intp)
        self.samples = Graph(samples, factor * sample_smoothness, self.order, self.dtype)
        as_is = np.arange(n_features)
        self.features = Graph(features, factor * feature_smoothness, as_is, self.dtype)

        # Where rows are taken from: those in a file are brought into the order of the passes.
        self.places = self.order
        if is_scratch(self.X):
            self.X, self.places = gathered(self.X, self.order), np.arange(n_samples)
            start = None if start is None else gathered(start, self.order)
        self.U, self.Y = self._empty(), self._empty()
        self.spare: Array | None = None
        self._initialise(start)

    @property
    def given(self) -> tuple[Any, ...]:
        """What no pass changes."""
        return self.X, self.loss, self.order, self.samples, self.features, self.pool

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "spare": None}

    def _initialise(self, start: Array | None) -> None:
        """Set the starting point, which without any smoothness is the answer."""
        given = np.broadcast_to(0.0, self.X.shape) if start is None else start

        def work(batch: slice) -> None:
            X, first = self.X[self.places[batch]], given[self.places[batch]]
            unknown = np.isnan(X) if start is None or self.curvature == 0 else True
            self.U[batch] = np.where(unknown, first, X)

        self._each(work)
        self.reset_momentum()

    def advance(self, momentum: float, evaluate: bool = False) -> Move:
        """Take the proximal gradient step from ``Y``, then put ``Y`` beyond the new ``U``."""
        slope, bound = self.loss.dual_map(1 / self.curvature)
        numbers = [self.dtype.type(number) for number in (slope, bound, momentum)]
        spare = self._spare()

        def work(batch: slice) -> Array:
            sums = np.zeros(4)
            for rows, X in self._tiles(batch, self.Y, spare, factor=1):
                if evaluate:
                    sums[3] += self._objective(X, self.Y[rows], spare[rows] - self.Y[rows])
                tiles = (X, self.U[rows], self.Y[rows], spare[rows])
                sums[:3] += compiled(_descend)(*tiles, *numbers)
            return sums

        sums = sum(self._each(work), start=np.zeros(4))
        self.Y, self.spare = spare, self.Y
        return Move(*sums.tolist())

    def _objective(self, X: Array, U: Array, descent: Array) -> float:
        """Objective of some rows of a point, from the gradient step of both graph terms."""
        energies = np.einsum("ij,ij->i", U, descent)
        energy = -self.curvature / 2 * float(energies.sum(dtype=np.float64))
        return self.loss.value(X - U) + energy

    def reset_momentum(self) -> None:
        """Continue from ``U`` without momentum."""

        def work(batch: slice) -> None:
            self.Y[batch] = self.U[batch]

        self._each(work)

    def value(self) -> float:
        """The objective of ``U``."""
        spare = self._spare()

        def work(batch: slice) -> float:
            tiles = self._tiles(batch, self.U, spare, factor=0)
            return sum(self._objective(X, self.U[rows], spare[rows]) for rows, X in tiles)

        return sum(self._each(work))

    def result(self) -> Array:
        """The point ``U`` with its rows in the order of ``X``."""
        # The spare array is returned; a later iteration allocates another.
        if is_scratch(self.U):
            return gathered(self.U, np.argsort(self.order))
        result, self.spare = self._spare(), None
        result[self.order] = self.U
        return result

    def _spare(self) -> Array:
        if self.spare is None:
            self.spare = self._empty()
        return self.spare

    def _empty(self) -> Array:
        if is_scratch(self.X):
            return empty_beside(self.X)
        return _aligned(self.X.shape, self.dtype)

    def _tiles(
        self, batch: slice, source: Array, target: Array, factor: float
    ) -> Iterator[tuple[slice, Array]]:
        """Write ``factor * source`` plus both products to ``target``, one tile after the other.

        Each is yielded with its rows of the data.
        """
        width = source.shape[1]
        scratch = _aligned((3, self.height * width), self.dtype)
        for rows in slices(batch.stop, self.height, batch.start):
            height = rows.stop - rows.start
            data, transposed, sums = scratch[:, : height * width]
            self.samples.add(factor, source, target, rows)
            if self.features.weight.size:
                # In a transposed tile, neighbouring features are rows again.
                shape = (width, height)
                transposed, sums = transposed.reshape(shape), sums.reshape(shape)
                transposed[...] = source[rows].T
                self.features.add(0, transposed, sums, slice(0, width))
                compiled(_add_transposed)(sums, target[rows])
            data = data.reshape(height, width)
            yield rows, self.X.take(self.places[rows], axis=0, out=data, mode="clip")

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Share the work among threads inside of this context."""
        with ThreadPool() as self.pool:
            try:
                yield
            finally:
                self.pool = None

    def _each(self, work: Callable[[slice], R]) -> list[R]:
        """Do the work for batches of rows that do not depend on the number of threads."""
        batches, results = slices(len(self.X), BATCH * self.height), list[R]()
        for group in in_groups(batches, self.X, self.U, self.Y, self._spare()):
            results += self.pool.map(work, group) if self.pool else map(work, group)
        return results


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """New memory that starts on a cache line: loads across the end of a line cost double."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + size].view(dtype).reshape(shape)


def _term(
    laplacian: sparse.csr_array | None, smoothness: float, norm: float | None, size: int
) -> tuple[sparse.csr_array, float]:
    """A Laplacian, empty if there is none, and its share of the curvature."""
    if laplacian is None or smoothness == 0:
        return sparse.csr_array((size, size)), 0.0
    laplacian = sparse.csr_array(laplacian)
    if laplacian.shape != (size, size):
        raise ValueError(
            f"A Laplacian of shape {laplacian.shape} does not go with {size} samples or "
            "features; build it from the rows or the columns of the same X."
        )
    if norm is None:
        with one_blas_thread():
            norm = eigenvalue_bound(laplacian)
    return laplacian, 2 * smoothness * norm


def _add_neighbors(
    start: Array,
    index: Array,
    weight: Array,
    factor: float,
    source: Array,
    target: Array,
    first: int,
    last: int,
) -> None:
    """Kernel: rows of ``factor * source`` plus the weighted sums of their neighbours' rows."""
    width = source.shape[1]
    zero = factor - factor
    for i in range(first, last):
        for j in range(width):
            target[i, j] = factor * source[i, j]
        stop = start[i + 1]
        # Six at a time, so that the sums are seldom written and read again. When fewer are
        # left, the last one is repeated with no weight.
        for e in range(start[i], stop, 6):
            e1, e2, e3 = min(e + 1, stop - 1), min(e + 2, stop - 1), min(e + 3, stop - 1)
            e4, e5 = min(e + 4, stop - 1), min(e + 5, stop - 1)
            k0, k1, k2 = index[e], index[e1], index[e2]
            k3, k4, k5 = index[e3], index[e4], index[e5]
            w0 = weight[e]
            w1 = weight[e1] if e + 1 < stop else zero
            w2 = weight[e2] if e + 2 < stop else zero
            w3 = weight[e3] if e + 3 < stop else zero
            w4 = weight[e4] if e + 4 < stop else zero
            w5 = weight[e5] if e + 5 < stop else zero
            for j in range(width):
                target[i, j] += (
                    (w0 * source[k0, j] + w1 * source[k1, j])
                    + (w2 * source[k2, j] + w3 * source[k3, j])
                    + (w4 * source[k4, j] + w5 * source[k5, j])
                )


def _add_transposed(A: Array, B: Array) -> None:
    """Kernel: add the transpose of ``A`` to ``B``."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[j, i] += A[i, j]


def _descend(
    X: Array, U: Array, Y: Array, Z: Array, slope: float, bound: float, momentum: float
) -> tuple[float, float, float]:
    """Kernel: proximal step from ``Z``, then momentum; ``Z`` becomes the next ``Y``."""
    square_step, square_norm, uphill = 0.0, 0.0, 0.0
    zero = slope - slope
    for i in range(X.shape[0]):
        # A row is summed in its own precision, which is faster, and the rows in double.
        steps = norms = backwards = zero
        for j in range(X.shape[1]):
            z = Z[i, j]
            pull = slope * (X[i, j] - z)
            clipped = min(max(pull, -bound), bound)
            # A missing entry pulls nowhere.
            u = z + (clipped if pull == pull else zero)
            step = u - Y[i, j]
            progress = u - U[i, j]
            U[i, j] = u
            Z[i, j] = u + momentum * progress
            steps += step * step
            norms += u * u
            backwards -= step * progress
        square_step += steps
        square_norm += norms
        uphill += backwards
    return square_step, square_norm, uphill
