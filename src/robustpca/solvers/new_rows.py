"""Low-rank parts of new rows, given a fitted decomposition: a small robust problem for each row.

A row is solved by Newton's method if it has few directions, from a fit without its wrong entries
or else from one of all; and otherwise, or if that does not end, by the splitting of the fit. Each
row has its own iterations and stopping rule: it gets the same scores whatever other rows come with
it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.blocks import slices
from robustpca.engine.linalg import Array
from robustpca.engine.neighbors import nearest_neighbors
from robustpca.engine.svt import LowRank, tile_rows
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.parts.entry_losses import EntryLoss
from robustpca.solvers.entry_steps import residual_step
from robustpca.solvers.row_flags import LeastSquares, centre_rows, prove_rows
from robustpca.solvers.row_newton import newton_rows

# Rows, curves and linear terms to scores, and whether these are the solution.
Search = Callable[[Array, Array, Array], tuple[Array, Array]]
RELAXATION = 1.8
# Directions up to which Newton's method is used: a step costs the cube of their number.
NEWTON_RANK = 48
NEWTON_STEPS = 120
# It starts from a fit without the entries whose residuals are so many times the mean one, and not
# due to the accuracy of a decomposition, if there are so many features for each direction.
TOO_LARGE, EXACT, PER_DIRECTION = 3.0, 1e-6, 4
# Fits before the last one: of rows that may be matched exactly, and of others.
MATCHED, NEARLY = 3, 1
# Times that multipliers are looked for that prove a match.
PROOFS = 4
TINY = float(np.finfo(np.float64).tiny)
# Iterations in which the penalty of a row may be balanced.
BALANCED = frozenset(range(20, 400, 20))


@dataclass(frozen=True)
class RowProblem:
    """Minimise ``loss(x - l) + z' ridge z / 2 + linear' z`` over ``l = mean + z basis``.

    The rows of ``basis`` are orthonormal; ``penalty`` is the first one of the splitting.
    """

    mean: Array
    basis: Array
    ridge: Array
    linear: Array
    loss: EntryLoss
    penalty: float

    @classmethod
    def of(
        cls, low_rank: LowRank, mean: Array, basis: Array, loss: EntryLoss, penalty: float
    ) -> "RowProblem":
        """The problem of one row of a matrix whose nuclear norm is penalised.

        Given the right singular vectors and the singular values of ``low_rank``, the nuclear
        norm amounts to half the squared length of the row in the metric that they define.
        """
        directions = low_rank.right
        crossed = basis @ (directions.T / low_rank.values)
        ridge, linear = crossed @ directions @ basis.T, crossed @ (directions @ mean)
        return cls(mean, basis, ridge, linear, loss, penalty)

    def solve(
        self,
        X: Array,
        weights: Array | None = None,
        pulls: Array | None = None,
        *,
        tol: float = 1e-7,
        max_iter: int = 2000,
    ) -> Array:
        """Scores of the rows of ``X``; entries that are NaN are left out.

        With ``weights`` and ``pulls``, ``weight * |z|^2 / 2 - pull' z`` is added for each row.
        """
        values, rotation, basis = self.diagonal
        n = len(X)
        weights = np.zeros(n) if weights is None else weights
        linear = np.zeros((n, len(basis))) + self.linear @ rotation
        if pulls is not None:
            linear = linear - pulls @ rotation
        curves = np.maximum(values, 0.0) + weights[:, None]
        fit = LeastSquares(basis, np.zeros(len(basis)), n)
        solver = _Rows(self, fit, tol, max_iter)
        places = slices(n, tile_rows(X.shape[1]))
        with ThreadPool() as pool:
            parts = pool.map(lambda p: solver.run(X[p], curves[p], linear[p]), places)
        return np.concatenate(parts) @ rotation.T if parts else np.zeros((0, len(basis)))

    @cached_property
    def diagonal(self) -> tuple[Array, Array, Array]:
        """Eigenvalues and eigenvectors of the ridge, and the basis that they turn this one to."""
        none = np.zeros(0), self.ridge
        values, rotation = np.linalg.eigh(self.ridge) if len(self.basis) else none
        return values, rotation, np.ascontiguousarray(rotation.T @ self.basis)


@dataclass(frozen=True)
class _Rows:
    """A row problem in coordinates in which its ridge is diagonal."""

    problem: RowProblem
    fit: LeastSquares
    tol: float
    max_iter: int

    @property
    def basis(self) -> Array:
        """Directions of the scores."""
        return self.fit.basis

    @cached_property
    def gram(self) -> Array:
        """Products of the directions with each other, which are those of a unit matrix."""
        return self.basis @ self.basis.T

    def run(self, X: Array, curves: Array, linear: Array) -> Array:
        """Scores of a tile of rows: each search is for those that others have not solved."""
        X = np.ascontiguousarray(X, np.float64)
        first, *others = self._searches
        codes, solved = first(X, curves, linear)
        rest = np.arange(len(X))
        for search in others:
            if solved.all():
                break
            left = ~solved
            rest, X, curves, linear = rest[left], X[left], curves[left], linear[left]
            codes[rest], solved = search(X, curves, linear)
        return codes

    @property
    def _searches(self) -> list[Search]:
        """What to try, one after the other."""
        rank, n_features = self.basis.shape
        if rank > NEWTON_RANK:
            return [self._split]
        searches: list[Search] = [self._from_zero, self._split]
        if n_features >= PER_DIRECTION * rank and self.problem.loss.threshold < np.inf:
            searches.insert(0, self._from_trimmed)
        return searches

    def _from_trimmed(self, X: Array, curves: Array, linear: Array) -> tuple[Array, Array]:
        """From a fit without the wrong entries, which is the solution where that can be proved."""
        rows, lost, flags, codes, sizes = self._trimmed(X)
        if self.problem.loss.threshold > 0:
            return self._newton(X, curves, linear, codes, sizes)
        solved = np.empty(len(X), bool)
        pulls = (curves * codes + linear) @ self.basis
        numbers = self.problem.loss.weight, self.tol, PROOFS
        compiled(prove_rows)(
            rows, lost, flags, self.basis, self.fit.hat, pulls, numbers, codes, sizes, solved
        )
        rest = np.flatnonzero(~solved)
        if len(rest):
            left = X[rest], curves[rest], linear[rest], codes[rest], sizes[rest]
            codes[rest], solved[rest] = self._newton(*left)
        return codes, solved

    def _trimmed(self, X: Array) -> tuple[Array, ...]:
        """Least squares without the entries that are far off.

        Returns the rows without the mean, their missing and their wrong entries, scores, and mean
        sizes of the other residuals.
        """
        loss, extents = self.problem.loss, np.empty(len(X))
        rows, lost = np.empty_like(X), np.empty(X.shape, bool)
        compiled(centre_rows)(X, self.problem.mean, rows, lost, extents)
        least = np.maximum(loss.threshold, EXACT * extents)
        fits = NEARLY if loss.threshold > 0 else MATCHED
        codes, flags, sizes = self.fit.without_wrong(
            rows, lost, least**2, multiple=TOO_LARGE, max_iter=fits
        )
        return rows, lost, flags, codes, sizes

    def _from_zero(self, X: Array, curves: Array, linear: Array) -> tuple[Array, Array]:
        return self._newton(X, curves, linear, np.zeros(linear.shape), np.full(len(X), -1.0))

    def _newton(
        self, X: Array, curves: Array, linear: Array, codes: Array, starts: Array
    ) -> tuple[Array, Array]:
        """Newton's method: scores, and whether they are the solution."""
        solved = np.zeros(len(X), bool)
        loss = self.problem.loss
        slope = 2 * loss.weight * loss.curvature
        bound = slope * loss.threshold if loss.threshold > 0 else loss.weight
        compiled(newton_rows)(
            X,
            self.problem.mean,
            self.basis,
            self.gram,
            curves,
            linear,
            (loss.weight, loss.threshold, slope, bound, self.tol),
            codes,
            starts,
            NEWTON_STEPS,
            solved,
        )
        return codes, solved

    def _split(self, X: Array, curves: Array, linear: Array) -> tuple[Array, Array]:
        """Douglas-Rachford splitting on some rows, each with a penalty of its own.

        What it gives counts as the solution.
        """
        every = np.ones(len(X), bool)
        mean, loss = self.problem.mean, self.problem.loss
        codes = np.zeros(linear.shape)
        A = np.where(np.isnan(X), mean, X)
        norms = np.sqrt(np.nansum(X**2, axis=1))
        rows = np.arange(len(X))
        penalty = np.full(len(X), self.problem.penalty)
        decay, primal = np.ones(len(X)), np.zeros(len(X))
        kernel = compiled(residual_step)
        for iteration in range(1, self.max_iter + 1):
            pulled = penalty[:, None] * ((A - mean) @ self.basis.T) - linear
            fresh = pulled / (penalty[:, None] + curves)
            moved = np.linalg.norm(fresh - codes[rows], axis=1)
            codes[rows] = fresh
            if iteration in BALANCED:
                factor = balance(RELAXATION * primal, moved)
                penalty, decay = penalty * factor, 1 / factor
            sums = np.empty((len(rows), 3))
            slope, bound = (np.full(len(rows), v) for v in loss.dual_map(1 / penalty))
            low = mean + fresh @ self.basis
            numbers = (RELAXATION, loss.threshold, loss.curvature)
            kernel(X, A, low, decay, slope, bound, *numbers, sums)
            primal, dual = np.sqrt(sums[:, 0]), np.sqrt(sums[:, 1])
            decay = np.ones(len(rows))
            # A row that is matched exactly has no multipliers to compare with.
            open_rows = primal > self.tol * np.clip(dual, 1e-3 * norms, norms)
            if not open_rows.all():
                X, A, rows, norms = X[open_rows], A[open_rows], rows[open_rows], norms[open_rows]
                penalty, decay, primal = penalty[open_rows], decay[open_rows], primal[open_rows]
                curves, linear = curves[open_rows], linear[open_rows]
            if not len(rows):
                break
        return codes, every


def split_errors(
    X: Array, low_rank: Array, threshold: Array, limit: Array, scale: Array
) -> tuple[Array, Array]:
    """Sparse part and flags of rows, from their low-rank part.

    Errors that are due to the accuracy of the fit count as none, and missing entries have none.

    Parameters
    ----------
    X, low_rank : ndarray of shape (n_rows, n_features)
        The rows, NaN where missing, and their low-rank part.
    threshold, limit : ndarray of shape (n_features,)
        Size up to which the errors of a column are noise, and beyond which they are flagged.
    scale : ndarray of shape (n_features,)
        Factors of the sparse part.
    """
    part, flags = np.empty(X.shape, X.dtype), np.empty(X.shape, bool)
    low_rank = np.ascontiguousarray(low_rank, X.dtype)
    columns = (np.asarray(a, np.float64) for a in (threshold, limit, scale))
    compiled(split_entries)(np.ascontiguousarray(X), low_rank, *columns, part, flags)
    return part, flags


def split_entries(
    X: Array,
    low_rank: Array,
    threshold: Array,
    limit: Array,
    scale: Array,
    part: Array,
    flags: Array,
) -> None:
    """Kernel: what `split_errors` returns."""
    for i in range(X.shape[0]):
        largest = 0.0
        for j in range(X.shape[1]):
            size = abs(X[i, j])
            largest = size if size > largest else largest
        least = 1e-6 * largest
        for j in range(X.shape[1]):
            error = X[i, j] - low_rank[i, j]
            size = abs(error)
            # Not true for missing entries.
            known = size > least
            rest = max(size - threshold[j], 0.0) * scale[j] if known else 0.0
            part[i, j] = rest if error > 0.0 else -rest
            flags[i, j] = known and size > limit[j]


def balance(step: Array, moved: Array) -> Array:
    """Factors on penalties that make multipliers and scores move equally far.

    The two moves are orthogonal parts of a step of the splitting, so the distance by which the
    scores ``moved`` determines the other. Factors near one are replaced by one.
    """
    least = 1e-6 * step + np.finfo(np.float64).tiny
    ratio = np.sqrt(np.maximum(step**2 - moved**2, 0.0)) / np.maximum(moved, least)
    factor = np.clip(np.sqrt(ratio), 0.25, 4.0)
    return np.where((factor > 1.3) | (factor < 1 / 1.3), factor, 1.0)


def smooth_rows(
    X: Array,
    loss: EntryLoss,
    weights: Array,
    pulls: Array,
    feature_laplacian: Any,
    curvature: float,
    *,
    tol: float = 1e-8,
    max_iter: int = 2000,
) -> Array:
    """Minimise ``loss(x - u) + weight |u|^2 / 2 - pull' u + u' G u / 2`` for each row.

    ``feature_laplacian`` is G, ``curvature`` a bound on its largest eigenvalue. Each row has
    its own step, momentum and stopping rule, so its answer does not depend on the others.
    """
    steps = 1 / np.maximum(weights + curvature, np.finfo(np.float64).tiny)
    X = np.ascontiguousarray(X, np.float64)
    out = np.where(np.isnan(X), steps[:, None] * pulls, X)
    slopes, bounds = (np.broadcast_to(number, steps.shape) for number in loss.dual_map(steps))
    rows = np.flatnonzero(weights + curvature > 0)
    graph = sparse.csc_array(feature_laplacian)
    if curvature == 0:
        # Each entry is a problem of its own, and the first step ends at its minimum.
        graph, max_iter = sparse.csc_array(graph.shape), 1
    numbers = np.column_stack([weights, steps, slopes, bounds])
    kernel, columns = compiled(descend_rows), (graph.data, graph.indices, graph.indptr)
    pulls = np.ascontiguousarray(pulls, np.float64)
    with ThreadPool() as pool:
        places = [rows[place] for place in slices(len(rows), tile_rows(X.shape[1]))]
        pool.map(lambda some: kernel(X, pulls, numbers, *columns, some, tol, max_iter, out), places)
    return out


def descend_rows(
    X: Array,
    pulls: Array,
    numbers: Array,
    entries: Array,
    indices: Array,
    starts: Array,
    rows: Array,
    tol: float,
    max_iter: int,
    out: Array,
) -> None:
    """Kernel: accelerated proximal descent on some rows of ``out``, which hold the start.

    Each row of ``numbers`` has a weight, the length of a step, and the numbers of the loss for it;
    ``entries``, ``indices`` and ``starts`` are the columns of the Laplacian of the features.
    """
    d = X.shape[1]
    u, ahead, y = np.empty(d), np.empty(d), np.empty(d)
    for i in rows:
        weight, step, slope, bound = numbers[i]
        for j in range(d):
            u[j] = y[j] = out[i, j]
        pace, iteration, going = 1.0, 0, True
        while going and iteration < max_iter:
            iteration += 1
            uphill, change, size = 0.0, 0.0, 0.0
            for j in range(d):
                pull = pulls[i, j] - weight * y[j]
                for q in range(starts[j], starts[j + 1]):
                    pull -= entries[q] * y[indices[q]]
                point = y[j] + step * pull
                force = min(max(slope * (X[i, j] - point), -bound), bound)
                # Missing entries have none.
                ahead[j] = point + (force if X[i, j] == X[i, j] else 0.0)
                move = ahead[j] - y[j]
                uphill -= move * (ahead[j] - u[j])
                change += move * move
                size += ahead[j] * ahead[j]
            following, momentum = 1.0, 0.0
            if uphill <= 0.0:
                following = (1.0 + (1.0 + 4.0 * pace * pace) ** 0.5) / 2.0
                momentum = (pace - 1.0) / following
            pace = following
            for j in range(d):
                y[j] = ahead[j] + momentum * (ahead[j] - u[j])
                u[j] = ahead[j]
            going = change > tol * tol * max(size, TINY)
        for j in range(d):
            out[i, j] = u[j]


@dataclass(frozen=True)
class TrainingGraph:
    """The training rows and their graph, to which new rows are connected.

    A new row is connected to its nearest training rows, with Gaussian weights. A row that is
    itself a training row has the edges of that row.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training rows.
    adjacency, laplacian : csr_array of shape (n_samples, n_samples)
        Their graph.
    n_neighbors : int
        Neighbours of a new row.
    normalized : bool
        Whether the Laplacian is normalised.
    """

    X: Array
    adjacency: Any
    laplacian: Any
    n_neighbors: int
    normalized: bool

    @cached_property
    def bandwidth(self) -> float:
        """Mean distance of some training rows to their nearest neighbours."""
        chosen = np.unique(np.linspace(0, len(self.X) - 1, min(len(self.X), 500)).astype(int))
        k = min(self.n_neighbors + 1, len(self.X))
        squares = nearest_neighbors(self.X[chosen], k, among=self.X)[1]
        # The nearest of all is the row itself; rows without a common entry have no distance.
        gaps = squares[:, 1:][np.isfinite(squares[:, 1:])]
        return float(np.sqrt(gaps).mean()) if gaps.size else 0.0

    def edges(self, X: Array) -> tuple[Array, Any]:
        """Connect rows to the training rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            New rows, or training rows.

        Returns
        -------
        diagonal : ndarray of shape (n_rows,)
            Diagonal entry of the Laplacian for each row.
        edges : csr_array of shape (n_rows, n_samples)
            Weights E of the edges: the smoothness of a row l among training rows M is
            ``diagonal |l|^2 - 2 l' (E M)`` and something that does not depend on l.
        """
        k = min(self.n_neighbors, len(self.X))
        # A view, since the search would take the very same array for rows among themselves.
        indices, squares = nearest_neighbors(X.view(), k, among=self.X)
        scale = self.bandwidth**2
        weights = np.exp(-squares / scale) if scale > 0 else np.isfinite(squares).astype(float)
        degrees = weights.sum(axis=1, dtype=np.float64)
        diagonal = degrees.copy()
        if self.normalized:
            theirs = np.asarray(self.adjacency.sum(axis=1), dtype=np.float64).ravel()[indices]
            product = degrees[:, None] * theirs
            weights = np.where(product > 0, weights / np.sqrt(np.where(product > 0, product, 1)), 0)
            diagonal = weights.any(axis=1).astype(np.float64)
        starts = np.arange(0, indices.size + 1, k)
        shape = (len(X), len(self.X))
        edges = sparse.csr_array((weights.ravel(), indices.ravel(), starts), shape=shape)
        equal = self._equal_rows(X, indices, squares)
        known = np.flatnonzero(equal >= 0)
        if len(known):
            row = sparse.csr_array(self.laplacian)[equal[known]]
            diagonal[known] = self.laplacian.diagonal()[equal[known]]
            own = sparse.csr_array(
                (diagonal[known], (np.arange(len(known)), equal[known])), shape=row.shape
            )
            unknown = np.ones(len(X))
            unknown[known] = 0
            place = sparse.csr_array(
                (np.ones(len(known)), (known, np.arange(len(known)))), shape=(len(X), len(known))
            )
            edges = sparse.diags_array(unknown) @ edges + place @ (own - row)
        return diagonal, edges

    def _equal_rows(self, X: Array, indices: Array, squares: Array) -> Array:
        """For each row the training row that is equal to it, or -1."""
        equal = np.full(len(X), -1)
        for near, gaps in zip(indices.T, squares.T, strict=True):
            rows = np.flatnonzero((gaps == 0) & (equal < 0))
            rows = rows[_same(X[rows], self.X[near[rows]])]
            equal[rows] = near[rows]
        return equal


def _same(first: Array, second: Array) -> Array:
    equal = (first == second) | (np.isnan(first) & np.isnan(second))
    return np.asarray(equal.all(axis=1))
