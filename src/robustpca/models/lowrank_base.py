"""LowRankModel: what the low rank + sparse methods share, and their fitted decompositions.

A fit stores one frozen value: a `NuclearDecomposition` (RPCAG, and RPCA without a refit), a
`RefittedDecomposition` (RPCA) or a `GraphDecomposition` (FRPCAG). It holds both parts of the
training data, and it decomposes new rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse, stats
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array, orthonormal, square_norms
from robustpca.engine.rows import ArrayRows, Rows
from robustpca.engine.svt import LowRank, lanes
from robustpca.models.base import Subspace, SubspaceModel, prediction_errors
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.entry_losses import EntryLoss
from robustpca.parts.units import Units
from robustpca.solvers.new_rows import RowProblem, TrainingGraph, smooth_rows
from robustpca.solvers.refit import ResidualFlags, RobustRows
from robustpca.solvers.splitting import DENSE_SHARE, compact, observed_norm

GRAPH_CONSTRAINTS: dict[str, Any] = {
    "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    "normalized": ["boolean"],
}
SMOOTHNESS_CONSTRAINT = [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")]


class LowRankModel(SubspaceModel):
    """Base of the methods that split the data into a low-rank and a sparse part.

    ``_fit`` returns a `Fit` with a `Decomposition` as the attribute ``_decomposition``, which
    holds both parts of the training data and decomposes new rows.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "center_low_rank": ["boolean"],
        "flag_rate": [Interval(Real, 0, 0.5, closed="neither")],
        "warm_start": ["boolean"],
    }
    _accept_sparse = False
    _allow_nan = True
    _by_blocks = False
    # Whether rows that are not outliers have errors too, some of them none at all.
    _changes_clean_rows: ClassVar[bool] = False

    center_low_rank: bool
    flag_rate: float
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
    def entry_flags_(self) -> Array:
        """Which entries of the training data are wrong."""
        return self._decomposition.flags

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
        low_rank, sparse_part, _ = self._decomposition.split_rows(X)
        return low_rank, compact(sparse_part)

    def flag_entries(self, X: Any) -> Array:
        """Tell which entries of new rows are wrong, given the fitted decomposition.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            New rows, or rows of the training data; NaN where an entry is missing.

        Returns
        -------
        flags : ndarray of shape (n_samples, n_features), dtype bool
            True for entries whose residual the noise of their column does not explain; of the
            entries without an error a share of ``flag_rate`` is flagged. Missing entries are not.
        """
        check_is_fitted(self)
        return self._decomposition.split_rows(observed(self._rows(X, reset=False)))[2]

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
        codes = (self._decomposition.split_rows(X)[0] - self.mean_) @ self.components_.T
        # Along directions that only complete the basis there is nothing but rounding error.
        codes[:, self._decomposition.n_directions :] = 0
        return codes.astype(self.components_.dtype, copy=False)

    def _distances(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        X = observed(self._rows(X, reset=False))
        codes = self._codes(X)
        squares = square_residuals(X, self.inverse_transform(codes))
        return np.sqrt(squares), self._flags.scatter.distances(codes)

    def _entry_errors(self, X: Any) -> Array:
        X = observed(self._rows(X, reset=False))
        points = self.inverse_transform(self._codes(X)) - self.mean_
        errors = prediction_errors(X - self.mean_, points, self._basis)
        return np.asarray(np.nanmean(errors**2, axis=1))

    def _training_codes(self, rows: Rows, places: list[slice]) -> Array:
        embedding = self.embedding_
        return np.concatenate([embedding[place] for place in places])

    def _start(self, shape: tuple[int, int]) -> Any:
        """Where the loop starts: with ``warm_start`` at the end of the previous fit."""
        previous = getattr(self, "_decomposition", None)
        if not self.warm_start or previous is None or previous.start is None:
            return None
        return previous.start if previous.start.shape == shape else None

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
        residuals = np.concatenate(
            [
                square_residuals(X[place], mean + (low - mean) @ components.T @ components)
                for place, low in tiles
            ]
        )
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


class Decomposed:
    """What decompositions share that know the training data in tiles, and which are flagged."""

    flagged: Any

    def tiles(self) -> Iterator[Array]:
        """Low-rank part of the training data, a tile of rows at a time."""
        raise NotImplementedError

    @property
    def low_rank(self) -> Array:
        """Low-rank part of the training data."""
        return np.concatenate(list(self.tiles()))

    @property
    def flags(self) -> Array:
        """Flagged entries of the training data."""
        return nonzero(self.flagged)


@dataclass(frozen=True)
class NuclearDecomposition(Decomposed):
    """Both parts of a decomposition with a nuclear norm: RPCA and RPCAG.

    Attributes
    ----------
    factors : LowRank
        Low-rank part of the data in ``units``.
    sparse : csr_array or ndarray
        Sparse part, in the user's units.
    units : Units
        Units of the columns in which the problem was solved.
    entries : ResidualFlags
        Noise of the columns, by which entries are flagged.
    flagged : csr_array or ndarray of shape (n_samples, n_features)
        Not zero at the flagged entries of the training data.
    problem : RowProblem
        The problem that a new row solves.
    graph : TrainingGraph or None
        Connects new rows to the training rows (RPCAG).
    smoothness : float
        Weight of the graph.
    start : ndarray, Start or None
        Where another fit may start; only with ``warm_start``.
    """

    factors: LowRank
    sparse: Any
    units: Units
    entries: ResidualFlags
    flagged: Any
    problem: RowProblem
    graph: TrainingGraph | None
    smoothness: float
    start: Any

    @property
    def n_directions(self) -> int:
        """Number of directions that the low-rank part of a new row can have."""
        return len(self.problem.basis)

    def tiles(self) -> Iterator[Array]:
        """Low-rank part of the training data, a tile of rows at a time."""
        places = row_tiles(self.factors.left)
        return (self.units.restore(self.factors.dense(place)) for place in places)

    def split_rows(self, X: Array) -> tuple[Array, Array, Array]:
        """Low-rank part, sparse part and flagged entries of new rows."""
        problem, data = self.problem, self.units.remove(X)
        weights = pulls = None
        if self.graph is not None:
            diagonal, edges = self.graph.edges(data)
            weights = 2 * self.smoothness * diagonal
            neighbors = edges @ (self.factors.left @ (self.factors.right @ problem.basis.T))
            pulls = 2 * self.smoothness * neighbors
            pulls -= np.outer(weights, problem.basis @ problem.mean)
        low_rank = problem.solve(data, weights, pulls) @ problem.basis + problem.mean
        errors = significant_errors(data, low_rank)
        flags, errors = self.entries.flags(errors), np.nan_to_num(errors, nan=0.0)
        sparse_part = (problem.loss.sparse_part(errors) * self.units.scale).astype(X.dtype)
        return self.units.restore(low_rank, X.dtype), sparse_part, flags


@dataclass(frozen=True)
class RefittedDecomposition(Decomposed):
    """Both parts of a decomposition whose low-rank part is fitted to the entries without error.

    Attributes
    ----------
    entries : RobustRows
        Row space, noise and cut, by which all rows are fitted.
    codes : ndarray of shape (n_samples, rank)
        Scores of the training data.
    sparse : csr_array or ndarray of shape (n_samples, n_features)
        Errors of the flagged entries, in the user's units.
    flagged : csr_array or ndarray of shape (n_samples, n_features)
        Not zero at the flagged entries of the training data.
    units : Units
        Units of the columns in which the rows were fitted.
    start : Start or None
        Where another fit may start; only with ``warm_start``.
    """

    entries: RobustRows
    codes: Array
    sparse: Any
    flagged: Any
    units: Units
    start: Any

    @classmethod
    def of(cls, entries: RobustRows, X: Array, units: Units, start: Any) -> "RefittedDecomposition":
        """Fit the rows of the training data, which are given in the user's units."""
        codes, flags = entries.solve(units.remove(X))
        parts = []
        for place in row_tiles(X):
            low_rank = units.restore(entries.low_rank(codes[place]), X.dtype)
            parts.append(sparse.csr_array(np.where(flags[place], X[place] - low_rank, 0)))
        errors = sparse.csr_array(sparse.vstack(parts, format="csr"))
        return cls(entries, codes, compact(errors), compact(flags), units, start)

    @property
    def n_directions(self) -> int:
        """Number of directions that the low-rank part of a new row can have."""
        return len(self.entries.basis)

    def tiles(self) -> Iterator[Array]:
        """Low-rank part of the training data, a tile of rows at a time."""
        tiles = (self.entries.low_rank(self.codes[place]) for place in row_tiles(self.codes))
        return (self.units.restore(tile, self.sparse.dtype) for tile in tiles)

    def split_rows(self, X: Array) -> tuple[Array, Array, Array]:
        """Low-rank part, sparse part and flagged entries of new rows."""
        codes, flags = self.entries.solve(self.units.remove(X))
        low_rank = self.units.restore(self.entries.low_rank(codes), X.dtype)
        return low_rank, np.where(flags, X - low_rank, 0), flags


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
    entries : ResidualFlags
        Noise of the columns after standardisation, by which entries are flagged.
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
    entries: ResidualFlags
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
            errors = graph_errors(self.graph.X[place], self.smooth[place])
            n_sparse += int(np.count_nonzero(np.abs(errors) > self.loss.threshold))
            n_observed += int(np.count_nonzero(~np.isnan(errors)))
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

    @cached_property
    def flags(self) -> Array:
        """Flagged entries of the training data."""
        places = row_tiles(self.smooth)
        tiles = (graph_errors(self.graph.X[place], self.smooth[place]) for place in places)
        return np.concatenate([self.entries.flags(errors) for errors in tiles])

    def split_rows(self, X: Array) -> tuple[Array, Array, Array]:
        """Low-rank part, sparse part and flagged entries of new rows."""
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
        low_rank = (smooth * self.scale + self.shift).astype(X.dtype)
        errors = significant_errors(X, low_rank) / self.scale
        flags, errors = self.entries.flags(errors), np.nan_to_num(errors, nan=0.0)
        return low_rank, self.loss.sparse_part(errors) * self.scale, flags

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
        errors = graph_errors(self.graph.X[place], self.smooth[place])
        return self.loss.sparse_part(np.nan_to_num(errors, nan=0.0))


Decomposition = NuclearDecomposition | RefittedDecomposition | GraphDecomposition


def graph_errors(X: Array, smooth: Array) -> Array:
    """Errors of rows, zero where they are due to rounding; NaN where missing."""
    sizes = [
        np.fmax.reduce(X, axis=1),
        -np.fmin.reduce(X, axis=1),
        smooth.max(axis=1),
        -smooth.min(axis=1),
    ]
    rounding = 32 * np.finfo(smooth.dtype).eps * np.maximum.reduce(sizes)[:, None]
    errors = X - smooth
    return np.where(np.abs(errors) <= rounding, 0, errors)


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
    """Errors of rows, zero where they are due to the accuracy of the fit; NaN where missing."""
    errors = X - low_rank
    size = 1e-6 * np.nanmax(np.abs(X), axis=1, keepdims=True)
    return np.where(np.abs(errors) <= size, 0, errors).astype(X.dtype, copy=False)


def principal_axes(left: Array, right: Array, center: bool) -> tuple[Array, Array, Array]:
    """Mean of the rows of ``left @ right``, or zero; singular values and axes (rows) about it.

    The rows of ``right`` are orthonormal.
    """
    middle = left.mean(axis=0) if center else np.zeros(left.shape[1])
    centred = left - middle
    squares, rotation = np.linalg.eigh(centred.T @ centred)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    return middle @ right, values, rotation.T[::-1] @ right


def rescaled(left: Array, right: Array, scale: Array) -> tuple[Array, Array]:
    """Factors of a product whose columns are multiplied by ``scale``; the right one orthonormal."""
    basis, turn = np.linalg.qr((right * scale).T)
    return left @ turn.T, np.ascontiguousarray(basis.T)


def scaled_columns(part: Any, units: Units) -> Any:
    """A sparse part in the user's units."""
    if units.trivial:
        return part
    if sparse.issparse(part):
        return sparse.csr_array(part * units.scale).astype(part.dtype)
    return (part * units.scale).astype(part.dtype)


def nonzero(part: Any) -> Array:
    """Where the entries of a sparse or dense array are not zero."""
    return np.asarray(part.astype(bool).toarray() if sparse.issparse(part) else part != 0)


def observed_scale(X: Array) -> float:
    """Root mean square of the entries that are not missing."""
    n_observed = sum(np.count_nonzero(~np.isnan(X[place])) for place in row_tiles(X))
    return observed_norm(X) / np.sqrt(max(float(n_observed), 1.0))


def significant(values: Array, tol: float) -> int:
    """Number of singular values above ``tol`` times the largest."""
    return int(np.count_nonzero(values > tol * values[:1].max(initial=0.0)))
