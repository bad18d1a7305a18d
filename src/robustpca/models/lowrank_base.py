"""LowRankModel: what the low rank + sparse methods share, and their fitted decompositions.

A fit stores one frozen value: a `NuclearDecomposition` (RPCA, RPCAG) or a `GraphDecomposition`
(FRPCAG). It holds both parts of the training data and decomposes new rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse, stats
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array, orthonormal, square_norms
from robustpca.engine.rows import ArrayRows, Rows
from robustpca.engine.svt import LowRank, lanes
from robustpca.models.base import Subspace, SubspaceModel
from robustpca.parts.entry_losses import EntryLoss
from robustpca.solvers.new_rows import RowProblem, TrainingGraph, smooth_rows
from robustpca.solvers.splitting import DENSE_SHARE, compact, observed_norm


class LowRankModel(SubspaceModel):
    """Base of the methods that split the data into a low-rank and a sparse part.

    ``_fit`` returns a `Fit` with a `Decomposition` as the attribute ``_decomposition``, which
    holds both parts of the training data and decomposes new rows.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "center_low_rank": ["boolean"],
        "warm_start": ["boolean"],
    }
    _accept_sparse = False
    _allow_nan = True
    _by_blocks = False
    # Whether rows that are not outliers have errors too, some of them none at all.
    _changes_clean_rows: ClassVar[bool] = False

    center_low_rank: bool
    warm_start: bool
    _decomposition: "Decomposition"

    @property
    def low_rank_(self) -> Array:
        """Low-rank part of the training data."""
        return self._decomposition.low_rank

    @property
    def sparse_(self) -> Any:
        """Sparse part of the training data."""
        return self._decomposition.sparse

    @property
    def embedding_(self) -> Array:
        """Scores of the low-rank part of the training data."""
        tiles = self._decomposition.tiles()
        return np.concatenate([(tile - self.mean_) @ self.components_.T for tile in tiles])

    def decompose(self, X: Any) -> tuple[Array, Any]:
        """Split new rows into a low-rank and a sparse part, given the fitted decomposition.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            New rows, or rows of the training data; NaN where an entry is missing.

        Returns
        -------
        low_rank : ndarray of shape (n_samples, n_features)
            Low-rank part, with values for the missing entries.
        sparse : csr_array or ndarray of shape (n_samples, n_features)
            Sparse part.
        """
        check_is_fitted(self)
        X = observed(self._rows(X, reset=False))
        low_rank = self._decomposition.low_rank_rows(X)
        return low_rank, compact(self._decomposition.sparse_rows(X, low_rank))

    def transform(self, X: Any) -> Array:
        """Robust scores of the rows of ``X``: those of their low-rank part.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            New rows, or rows of the training data; NaN where an entry is missing.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            The scores.
        """
        check_is_fitted(self)
        return self._codes(observed(self._rows(X, reset=False)))

    def _codes(self, X: Array) -> Array:
        codes = (self._decomposition.low_rank_rows(X) - self.mean_) @ self.components_.T
        # Along directions that only complete the basis there is nothing but rounding error.
        codes[:, self._decomposition.n_directions :] = 0
        return codes.astype(self.components_.dtype, copy=False)

    def _distances(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        X = observed(self._rows(X, reset=False))
        codes = self._codes(X)
        squares = square_residuals(X, self.inverse_transform(codes))
        scores = np.sqrt(np.square(codes, dtype=np.float64) @ self._inverse_deviations**2)
        return np.sqrt(squares), scores

    def _start(self, shape: tuple[int, int]) -> Array | None:
        """Where the loop starts: with ``warm_start`` at the end of the previous fit."""
        previous = getattr(self, "_decomposition", None)
        if not self.warm_start or previous is None or previous.start is None:
            return None
        start: Array = previous.start
        return start if start.shape == shape else None

    def _subspace(
        self,
        rows: Rows,
        X: Array,
        decomposition: "Decomposition",
        mean: Array,
        values: Array,
        directions: Array,
        rank: int,
    ) -> Subspace:
        """Subspace of the low-rank part.

        ``values`` and ``directions`` (rows) are its singular values and right singular vectors
        about ``mean``; the first ``rank`` are significant.
        """
        n_samples, n_features = rows.shape
        count = self._n_components(values, rank, rows)
        known = min(count, rank)
        components = directions[:known].astype(np.float64)
        if count > rank:
            # Data of a lower rank than asked for: complete the basis in any way.
            more = orthonormal(np.eye(n_features)[:, : count + rank], components.T)
            components = np.vstack([components, more.T[: count - rank]])
        variances = np.zeros(count)
        variances[:known] = values[:known] ** 2 / n_samples
        tiles = zip(row_tiles(X), decomposition.tiles(), strict=True)
        residuals = np.concatenate([square_residuals(X[place], low) for place, low in tiles])
        rounding = 1e-6 * observed_scale(X) * np.sqrt(n_features)
        return Subspace.of(
            rows,
            mean,
            components,
            residuals=residuals,
            variances=variances,
            total=float(np.sum(values**2)) / n_samples,
            floor=_usual_distance(residuals, rounding) if self._changes_clean_rows else rounding,
        )

    def _n_components(self, values: Array, rank: int, rows: Rows) -> int:
        """Number of components: as given, found, by a share of the variance, or the rank."""
        if self.n_components is None:
            return max(rank, 1)
        if isinstance(self.n_components, Integral):
            return self._rank(rows)
        if self.n_components == "auto":
            return max(1, min(self._rank(rows), rank))
        shares = np.cumsum(values**2) / max(float(np.sum(values**2)), np.finfo(float).tiny)
        return max(1, min(int(np.searchsorted(shares, self.n_components) + 1), rank))


@dataclass(frozen=True)
class NuclearDecomposition:
    """Both parts of a decomposition with a nuclear norm: RPCA and RPCAG.

    Attributes
    ----------
    factors : LowRank
        Low-rank part of the data without the offset.
    sparse : csr_array or ndarray
        Sparse part.
    offset : ndarray of shape (n_features,)
        What was subtracted from the columns.
    problem : RowProblem
        The problem that a new row solves.
    graph : TrainingGraph or None
        Connects new rows to the training rows (RPCAG).
    smoothness : float
        Weight of the graph.
    start : ndarray or None
        Where another fit may start; only with ``warm_start``.
    """

    factors: LowRank
    sparse: Any
    offset: Array
    problem: RowProblem
    graph: TrainingGraph | None
    smoothness: float
    start: Array | None

    @property
    def low_rank(self) -> Array:
        """Low-rank part of the training data."""
        return self.factors.dense() + self.offset

    @property
    def n_directions(self) -> int:
        """Number of directions that the low-rank part of a new row can have."""
        return len(self.problem.basis)

    def tiles(self) -> Iterator[Array]:
        """Low-rank part of the training data, a tile of rows at a time."""
        places = row_tiles(self.factors.left)
        return (self.factors.dense(place) + self.offset for place in places)

    def low_rank_rows(self, X: Array) -> Array:
        """Low-rank part of new rows."""
        problem, data = self.problem, X - self.offset
        weights = pulls = None
        if self.graph is not None:
            diagonal, edges = self.graph.edges(data)
            weights = 2 * self.smoothness * diagonal
            neighbors = edges @ (self.factors.left @ (self.factors.right @ problem.basis.T))
            pulls = 2 * self.smoothness * neighbors
            pulls -= np.outer(weights, problem.basis @ problem.mean)
        codes = problem.solve(data, weights, pulls)
        low_rank = codes @ problem.basis + problem.mean + self.offset
        return low_rank.astype(X.dtype, copy=False)

    def sparse_rows(self, X: Array, low_rank: Array) -> Array:
        """Sparse part of new rows whose low-rank part is known."""
        return self.problem.loss.sparse_part(significant_errors(X, low_rank))


@dataclass(frozen=True)
class GraphDecomposition:
    """Both parts of a decomposition with two graphs: FRPCAG.

    Attributes
    ----------
    smooth : ndarray of shape (n_samples, n_features)
        Low-rank part of the data, after standardisation.
    shift, scale : ndarray of shape (n_features,)
        What was subtracted from the columns, and what they were then divided by.
    loss : EntryLoss
        Loss of the residual entries.
    graph : TrainingGraph
        The data after standardisation, and what connects new rows to them.
    sample_smoothness, feature_smoothness : float
        Weights of the graphs.
    feature_laplacian : csr_array of shape (n_features, n_features)
        Laplacian of the features.
    feature_norm : float
        Its largest eigenvalue.
    """

    smooth: Array
    shift: Array
    scale: Array
    loss: EntryLoss
    graph: TrainingGraph
    sample_smoothness: float
    feature_smoothness: float
    feature_laplacian: Any
    feature_norm: float

    @property
    def low_rank(self) -> Array:
        """Low-rank part of the training data."""
        return self.smooth * self.scale + self.shift

    @property
    def sparse(self) -> Any:
        """Sparse part of the training data."""
        tiles = (self._sparse_tile(place) * self.scale for place in row_tiles(self.smooth))
        if self.density > DENSE_SHARE:
            return np.vstack(list(tiles))
        parts = [sparse.csr_array(tile) for tile in tiles]
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    @cached_property
    def density(self) -> float:
        """Share of the observed entries that are not zero in the sparse part."""
        n_sparse = n_observed = 0
        for place in row_tiles(self.smooth):
            error, rounding = self._errors(place)
            large = np.abs(error) > np.maximum(rounding, self.loss.threshold)
            n_sparse += int(np.count_nonzero(large))
            n_observed += int(np.count_nonzero(~np.isnan(error)))
        return n_sparse / n_observed

    @property
    def n_directions(self) -> int:
        """Number of directions that the low-rank part of a new row can have."""
        return self.smooth.shape[1]

    @property
    def start(self) -> Array:
        """Where another fit may start."""
        return self.smooth

    def tiles(self) -> Iterator[Array]:
        """Low-rank part of the training data, a tile of rows at a time."""
        places = row_tiles(self.smooth)
        return (self.smooth[place] * self.scale + self.shift for place in places)

    def low_rank_rows(self, X: Array) -> Array:
        """Low-rank part of new rows."""
        data = (X - self.shift) / self.scale
        diagonal, edges = self.graph.edges(data)
        samples, features = 2 * self.sample_smoothness, 2 * self.feature_smoothness
        smooth = smooth_rows(
            data,
            self.loss,
            samples * diagonal,
            samples * (edges @ self.smooth),
            features * self.feature_laplacian,
            features * self.feature_norm,
        )
        return (smooth * self.scale + self.shift).astype(X.dtype)

    def sparse_rows(self, X: Array, low_rank: Array) -> Array:
        """Sparse part of new rows whose low-rank part is known."""
        errors = significant_errors(X, low_rank) / self.scale
        return self.loss.sparse_part(errors) * self.scale

    def principal_axes(self, center: bool) -> tuple[Array, Array, Array]:
        """Mean of the low-rank part, or zero; singular values and right vectors (rows) about it."""
        n_samples, n_features = self.smooth.shape
        middle = self.smooth.mean(axis=0, dtype=np.float64)
        if not center:
            middle = -self.shift.astype(np.float64) / self.scale
        if n_samples >= n_features:
            gram = ArrayRows(self.smooth).centred(middle).sum("weighted_gram")[1]
            gram *= np.outer(self.scale, self.scale)
            squares, axes = np.linalg.eigh(gram)
            values, directions = np.sqrt(np.maximum(squares[::-1], 0.0)), axes.T[::-1]
        else:
            centred = (self.smooth - middle) * self.scale
            _, values, directions = np.linalg.svd(centred, full_matrices=False)
        return middle * self.scale + self.shift, values, directions

    def _sparse_tile(self, place: slice) -> Array:
        error, rounding = self._errors(place)
        return self.loss.sparse_part(np.where(np.abs(error) > rounding, error, 0))

    def _errors(self, place: slice) -> tuple[Array, Array]:
        """Errors of some rows, and for each row the size of errors that are due to rounding."""
        X, U = self.graph.X[place], self.smooth[place]
        sizes = [
            np.fmax.reduce(X, axis=1),
            -np.fmin.reduce(X, axis=1),
            U.max(axis=1),
            -U.min(axis=1),
        ]
        return X - U, 32 * np.finfo(U.dtype).eps * np.maximum.reduce(sizes)[:, None]


Decomposition = NuclearDecomposition | GraphDecomposition


def observed(rows: Rows, axes: tuple[int, ...] = (1,)) -> Array:
    """All rows as an array, in which NaN marks missing entries.

    Raises ValueError for entries that are infinite or whose squares overflow, and for rows
    (``axes`` contains 1) or columns (it contains 0) without any entry.
    """
    X = rows.whole()
    low, high = np.fmin.reduce(X, axis=None), np.fmax.reduce(X, axis=None)
    largest = max(abs(float(low)), abs(float(high)))
    if np.isfinite(largest) and largest != 0 and not 1e-100 < largest < 1e100:
        raise ValueError(
            f"The entries of X are of the size {largest:.0e}, whose squares overflow or vanish: "
            "divide X by it."
        )
    if np.isfinite(X.sum()):
        return X
    if np.isinf(X).any():
        raise ValueError("Input X contains infinity; mark missing entries with NaN.")
    missing = np.isnan(X)
    for axis in axes:
        empty, kind = np.flatnonzero(missing.all(axis=axis)), ("columns", "rows")[axis]
        if len(empty):
            raise ValueError(
                f"{len(empty)} {kind} of X hold no value at all (NaN everywhere), the first at "
                f"{empty[:5].tolist()}: nothing can be said about them. Leave them out."
            )
    return X


def row_tiles(X: Array) -> list[slice]:
    """Places of the tiles of all rows."""
    return [place for lane in lanes(len(X)) for place in lane]


def square_residuals(X: Array, low_rank: Array) -> Array:
    """Squared distances of rows over their observed entries, scaled up for the missing ones."""
    error = X - low_rank
    missing = np.isnan(error)
    if not missing.any():
        return square_norms(error)
    shares = 1 - missing.mean(axis=1)
    return square_norms(np.where(missing, 0.0, error)) / np.maximum(shares, 1e-300)


def _usual_distance(residuals: Array, rounding: float) -> float:
    """Distance up to which a row is not unusual, given the squared distances of all rows.

    Rows without any error say nothing about the size of errors. Where these are many, it follows
    from the others: their median, and three deviations of the logarithms above it.
    """
    inexact = residuals[residuals > rounding**2]
    if not 0 < len(inexact) / len(residuals) < 0.75:
        return rounding
    logs = np.log(inexact) / 2
    typical = np.median(logs)
    spread = np.median(np.abs(logs - typical)) / stats.norm.ppf(0.75)
    return float(np.exp(min(typical + 3 * spread, np.quantile(logs, 0.95))))


def significant_errors(X: Array, low_rank: Array) -> Array:
    """Errors of new rows, zero where they are due to the accuracy of the row problems."""
    error = np.nan_to_num(X - low_rank, nan=0.0)
    size = 1e-6 * np.nanmax(np.abs(X), axis=1, keepdims=True)
    return np.where(np.abs(error) > size, error, 0).astype(X.dtype, copy=False)


def observed_scale(X: Array) -> float:
    """Root mean square of the entries that are not missing."""
    n_observed = sum(np.count_nonzero(~np.isnan(X[place])) for place in row_tiles(X))
    return observed_norm(X) / np.sqrt(max(float(n_observed), 1.0))


def significant(values: Array, tol: float) -> int:
    """Number of singular values above ``tol`` times the largest."""
    return int(np.count_nonzero(values > tol * values[:1].max(initial=0.0)))
