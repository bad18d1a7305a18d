"""LowRankModel: what the low rank + sparse methods share, and their fitted decompositions.

A fit stores one frozen value: a `NuclearDecomposition` (RPCAG, and RPCA without a refit), a
`RefittedDecomposition` (RPCA) or a `GraphDecomposition` (FRPCAG). It holds both parts of the
training data, and it decomposes new rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.blocks import DenseBlock, slices
from robustpca.engine.entries import DENSE_SHARE, EntryList, compact, joined
from robustpca.engine.linalg import Array, orthonormal, square_norms
from robustpca.engine.rows import ArrayRows, Rows
from robustpca.engine.scratch import each, empty_beside, is_scratch
from robustpca.engine.svt import LowRank, row_tiles, tile_rows
from robustpca.models.base import Subspace, SubspaceModel, prediction_errors
from robustpca.models.flags import Distances, Scatter
from robustpca.models.lowrank_factors import nonzero
from robustpca.models.params import Interval, StrOptions
from robustpca.models.precision import checked_size
from robustpca.parts.entry_losses import EntryLoss
from robustpca.parts.units import Units
from robustpca.solvers.known_rows import KnownRows
from robustpca.solvers.new_rows import RowProblem, TrainingGraph, smooth_rows, split_errors
from robustpca.solvers.refit import ResidualFlags, RobustRows

GRAPH_CONSTRAINTS: dict[str, Any] = {
    "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    "normalized": ["boolean"],
}
# Some rows of the training data.
Places = slice | Array
SMOOTHNESS_CONSTRAINT = [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")]


class LowRankModel(SubspaceModel):
    """Base of the methods that split the data into a low-rank and a sparse part.

    ``_fit`` returns a `Fit` with a `Decomposition` as the attribute ``_decomposition``, which
    holds both parts of the training data and decomposes new rows.
    """

    rank_: int
    density_: float
    column_noise_: Array

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "center_low_rank": ["boolean"],
        "flag_rate": [Interval(Real, 0, 0.5, closed="neither")],
        "warm_start": ["boolean"],
    }
    _accept_sparse = False
    _allow_nan = True
    _by_blocks = False
    # Whether rows without any error differ from their low-rank part too. Then this part does not
    # tell outliers: the rows themselves do, and only missing entries are taken from it.
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

        Rows that are equal to one of the training data, missing entries included, get the parts
        that the fit found for it, by whatever solver and even if it has not converged. To a graph
        equal rows are several vertices, whose parts may differ: such a row gets those of the first.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            New rows, or rows of the training data; NaN where an entry is missing.

        Returns
        -------
        low_rank : ndarray of shape (n_samples, n_features)
            Low-rank part, with values for the missing entries.
        sparse : csr_array or ndarray of shape (n_samples, n_features)
            Sparse part. Of a Dask array both parts are Dask arrays, with dense chunks.
        """
        check_is_fitted(self)
        low_rank, sparse_part, _ = self._solved(self._rows(X, reset=False), _split)
        lazy = not isinstance(sparse_part, np.ndarray)
        return low_rank, sparse_part if lazy else compact(sparse_part)

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
        flags: Array = self._solved(self._rows(X, reset=False), _split)[2]
        return flags

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
        codes: Array = self._solved(self._rows(X, reset=False), _codes, self._axes)
        return codes

    @property
    def _axes(self) -> tuple[Array, Array]:
        return self.mean_, self.components_

    def _solved(self, rows: Rows, function: Any, *state: Any) -> Any:
        """Apply a function to blocks of new rows and to the problem that each of them solves."""
        if isinstance(rows, ArrayRows) and len(rows.bounds) > 1:
            observed(rows)  # bad rows are told by their place among all
        problem = self._decomposition.row_problem
        return rows.centred(self.mean_).rowwise(function, problem, *state)

    def _distances_of(self, rows: Rows) -> Distances:
        orthogonal, score, central = self._solved(
            rows, _distances, self._axes, self._flags.scatter, self._changes_clean_rows
        )
        return orthogonal, score, central

    def _entry_errors(self, X: Any) -> Array:
        rows = self._rows(X, reset=False)
        return np.asarray(self._solved(rows, _entry_errors, self._axes, self._basis))

    def _training_codes(self, rows: Rows, places: list[slice]) -> Array:
        fitted, axes = self._decomposition, self._axes
        chosen = np.concatenate([np.arange(place.start, place.stop) for place in places])
        codes = []
        for place, X, low_rank in _with_low_rank(rows, fitted, chosen):
            points = _judged(X, low_rank, self._changes_clean_rows)
            codes.append(_projected(points, fitted, axes)[_inside(place, chosen)])
        return np.concatenate(codes)

    def _start(self, shape: tuple[int, int]) -> Any:
        """Where the loop starts: with ``warm_start`` at the end of the previous fit."""
        previous = getattr(self, "_decomposition", None)
        if not self.warm_start or previous is None or previous.start is None:
            return None
        return previous.start if previous.start.shape == shape else None

    def _subspace(
        self,
        rows: Rows,
        size: float,
        decomposition: "Decomposition",
        mean: Array,
        values: Array,
        directions: Array,
        rank: int,
    ) -> Subspace:
        """Subspace of the low-rank part of data with entries of this size.

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
        basis, alone = components[:known], self._changes_clean_rows
        # A low-rank part of which no direction is left out is its own projection.
        whole = not alone and known == len(values)

        def projected(X: Array, low_rank: Array) -> Array:
            if whole:
                return low_rank
            return mean + (_judged(X, low_rank, alone) - mean) @ basis.T @ basis

        residuals = empty_beside(decomposition.stored[0], (n_samples,), np.float64)
        for place, X, low_rank in _with_low_rank(rows, decomposition):
            residuals[place] = square_residuals(X, projected(X, low_rank))
        return Subspace.of(
            rows,
            mean,
            components,
            residuals=residuals,
            variances=variances,
            total=float(np.sum(values**2)) / n_samples,
            floor=1e-6 * size * np.sqrt(n_features),
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


def _split(block: DenseBlock, problem: "Decomposition") -> tuple[Array, ...]:
    return problem.split_rows(observed_block(block))


def _codes(block: DenseBlock, problem: "Decomposition", axes: tuple[Array, Array]) -> Array:
    return _robust_codes(observed_block(block), problem, axes)


def _robust_codes(X: Array, problem: "Decomposition", axes: tuple[Array, Array]) -> Array:
    return _projected(problem.low_rank_rows(X), problem, axes)


def _projected(points: Array, problem: "Decomposition", axes: tuple[Array, Array]) -> Array:
    mean, components = axes
    codes = (points - mean) @ components.T
    # Along directions that only complete the basis there is nothing but rounding error.
    codes[:, problem.n_directions :] = 0
    return codes.astype(components.dtype, copy=False)


def _judged(X: Array, low_rank: Array, by_themselves: bool) -> Array:
    """The points whose distances tell which rows of ``X`` are outliers."""
    return np.where(np.isnan(X), low_rank, X) if by_themselves else low_rank


def _distances(
    block: DenseBlock,
    problem: "Decomposition",
    axes: tuple[Array, Array],
    scatter: Scatter,
    by_themselves: bool,
) -> Distances:
    X, (mean, components) = observed_block(block), axes
    points = X
    if not by_themselves or np.isnan(X).any():
        points = _judged(X, problem.low_rank_rows(X), by_themselves)
    codes = _projected(points, problem, axes)
    orthogonal = np.sqrt(square_residuals(X, codes @ components + mean))
    return orthogonal, scatter.distances(codes), scatter.central(codes, orthogonal)


def _entry_errors(
    block: DenseBlock, problem: "Decomposition", axes: tuple[Array, Array], basis: Array
) -> Array:
    X, (mean, components) = observed_block(block), axes
    points = _robust_codes(X, problem, axes) @ components
    return np.asarray(np.nanmean(prediction_errors(X - mean, points, basis) ** 2, axis=1))


class Decomposed:
    """What decompositions share: dense arrays are made when they are asked for.

    They are then where the decomposition has its own arrays, in memory or in scratch files.
    """

    @property
    def stored(self) -> tuple[Array, ...]:
        """Arrays with the rows of the training data, which may be in scratch files."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the training data."""
        raise NotImplementedError

    def tile(self, place: Places) -> Array:
        """Low-rank part of some rows of the training data."""
        raise NotImplementedError

    def tiles(self) -> Iterator[Array]:
        """Low-rank part of the training data, a tile of rows at a time."""
        return map(self.tile, self._places())

    @property
    def low_rank(self) -> Array:
        """Low-rank part of the training data."""
        return self._assembled(self.tile)

    def _places(self, *others: Array) -> Iterator[slice]:
        """Tiles of the rows for a pass over the training data."""
        return each(row_tiles(self.shape), *self.stored, *others)

    def _assembled(self, tile: Callable[[slice], Array]) -> Array:
        """All tiles as one array."""
        whole = empty_beside(self.stored[0], self.shape, tile(slice(0, 1)).dtype)
        for place in self._places(whole):
            whole[place] = tile(place)
        return whole


class Flagged(Decomposed):
    """What decompositions share that know their flagged entries."""

    flagged: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the training data."""
        shape: tuple[int, int] = self.flagged.shape
        return shape

    @property
    def flags(self) -> Array:
        """Flagged entries of the training data."""
        return self._assembled(lambda place: nonzero(self.flagged[place]))


class Recalling(Decomposed):
    """What decompositions share that know the rows of the training data and split others."""

    known: KnownRows

    def known_parts(self, places: Array) -> tuple[Array, ...]:
        """Low-rank part, sparse part and flagged entries of some rows of the training data."""
        raise NotImplementedError

    def new_low_rank(self, X: Array) -> Array:
        """Low-rank part of rows that are not among the training data."""
        raise NotImplementedError

    def new_parts(self, X: Array) -> tuple[Array, ...]:
        """Low-rank part, sparse part and flagged entries of such rows."""
        raise NotImplementedError

    def low_rank_rows(self, X: Array) -> Array:
        """Low-rank part of rows, which is that of the fit for those of the training data."""
        return self._by_origin(X, lambda q: (self.tile(q),), lambda x: (self.new_low_rank(x),))[0]

    def split_rows(self, X: Array) -> tuple[Array, ...]:
        """Low-rank part, sparse part and flagged entries of rows, those of the fit if known."""
        return self._by_origin(X, self.known_parts, self.new_parts)

    def _by_origin(
        self,
        X: Array,
        recall: Callable[[Array], tuple[Array, ...]],
        solve: Callable[[Array], tuple[Array, ...]],
    ) -> tuple[Array, ...]:
        places = self.known.find(X)
        new = places < 0
        if new.all():
            return solve(X)
        parts = []
        for old in recall(places[~new]):
            parts.append(np.empty(X.shape, bool if old.dtype == bool else X.dtype))
            parts[-1][~new] = old
        if new.any():
            for part, fresh in zip(parts, solve(X[new]), strict=True):
                part[new] = fresh
        return tuple(parts)


@dataclass(frozen=True)
class NuclearDecomposition(Flagged, Recalling):
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
    known : KnownRows
        The rows of the training data, in the user's units.
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
    known: KnownRows
    start: Any

    @property
    def stored(self) -> tuple[Array, ...]:
        """Arrays with the rows of the training data, which may be in scratch files."""
        return (self.factors.left,)

    @property
    def row_problem(self) -> "NuclearDecomposition":
        """What rows need of it, which may be those of the training data."""
        return replace(self, start=None)

    @property
    def n_directions(self) -> int:
        """Number of directions that the low-rank part of a new row can have."""
        return len(self.problem.basis)

    def tile(self, place: Places) -> Array:
        """Low-rank part of some rows of the training data."""
        return self.units.restore(self.factors.dense(place))

    def known_parts(self, places: Array) -> tuple[Array, ...]:
        """Low-rank part, sparse part and flagged entries of some rows of the training data."""
        sparse_part = self.sparse[places]
        if sparse.issparse(sparse_part):
            sparse_part = sparse_part.toarray()
        return self.tile(places), sparse_part, nonzero(self.flagged[places])

    def new_low_rank(self, X: Array) -> Array:
        """Low-rank part of rows that are not among the training data."""
        return self.units.restore(self._low_rank(self.units.remove(X)), X.dtype)

    def _low_rank(self, data: Array) -> Array:
        problem, weights, pulls = self.problem, None, None
        if self.graph is not None:
            diagonal, edges = self.graph.edges(data)
            weights = 2 * self.smoothness * diagonal
            neighbors = edges @ (self.factors.left @ (self.factors.right @ problem.basis.T))
            pulls = 2 * self.smoothness * neighbors
            pulls -= np.outer(weights, problem.basis @ problem.mean)
        low_rank: Array = problem.solve(data, weights, pulls) @ problem.basis
        low_rank += problem.mean
        return low_rank

    def new_parts(self, X: Array) -> tuple[Array, ...]:
        """Low-rank part, sparse part and flagged entries of such rows."""
        data = self.units.remove(X)
        low_rank, scale = self._low_rank(data), self.units.scale
        threshold = np.full(len(scale), self.problem.loss.threshold)
        parts = split_errors(data, low_rank, threshold, self.entries.limits, scale)
        return self.units.restore(low_rank, X.dtype), *parts


@dataclass(frozen=True)
class RefittedDecomposition(Flagged):
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
    def of(
        cls, entries: RobustRows, X: Array, data: Array, units: Units, start: Any
    ) -> "RefittedDecomposition":
        """Fit the rows of the training data, given in the user's units (``X``) and in these."""
        codes = empty_beside(X, (len(X), len(entries.basis)), np.float64)
        flagged, errors = EntryList(X, bool), EntryList(X, X.dtype)
        for place, found, flags in entries.solved(data, X, codes):
            codes[place] = found
            low_rank = units.restore(entries.low_rank(found), X.dtype)
            errors.add_tile(np.where(flags, X[place] - low_rank, 0))
            flagged.add_tile(flags)
        part, wrong = (compact(joined([listed], X), X) for listed in (errors, flagged))
        return cls(entries, codes, part, wrong, units, start)

    @property
    def stored(self) -> tuple[Array, ...]:
        """Arrays with the rows of the training data, which may be in scratch files."""
        return (self.codes,)

    @property
    def row_problem(self) -> "RefittedDecomposition":
        """What new rows need of it, without anything of the training rows."""
        return replace(self, codes=self.codes[:0], sparse=None, flagged=None, start=None)

    @property
    def n_directions(self) -> int:
        """Number of directions that the low-rank part of a new row can have."""
        return len(self.entries.basis)

    def tile(self, place: Places) -> Array:
        """Low-rank part of some rows of the training data."""
        return self.units.restore(self.entries.low_rank(self.codes[place]), self.sparse.dtype)

    def low_rank_rows(self, X: Array) -> Array:
        """Low-rank part of new rows."""
        return self.split_rows(X)[0]

    def split_rows(self, X: Array) -> tuple[Array, Array, Array]:
        """Low-rank part, sparse part and flagged entries of new rows."""
        codes, flags = self.entries.solve(self.units.remove(X))
        low_rank = self.units.restore(self.entries.low_rank(codes), X.dtype)
        return low_rank, np.where(flags, X - low_rank, 0), flags


@dataclass(frozen=True)
class GraphDecomposition(Recalling):
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
    known : KnownRows
        The rows of the training data, in the user's units.
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
    known: KnownRows

    @property
    def stored(self) -> tuple[Array, ...]:
        """Arrays with the rows of the training data, which may be in scratch files."""
        return self.smooth, self.graph.X

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the training data."""
        return self.smooth.shape[0], self.smooth.shape[1]

    @property
    def sparse(self) -> Any:
        """Sparse part of the training data."""
        if self.density > DENSE_SHARE or is_scratch(self.smooth):
            return self._assembled(self._sparse_tile)
        parts = [sparse.csr_array(self._sparse_tile(place)) for place in self._places()]
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    @cached_property
    def density(self) -> float:
        """Share of the observed entries that are not zero in the sparse part."""
        n_sparse = n_observed = 0
        for place in self._places():
            errors = graph_errors(self.graph.X[place], self.smooth[place])
            n_sparse += int(np.count_nonzero(np.abs(errors) > self.loss.threshold))
            n_observed += int(np.count_nonzero(~np.isnan(errors)))
        return n_sparse / n_observed

    @property
    def row_problem(self) -> "GraphDecomposition":
        """What new rows need of it: the training rows are their neighbours."""
        return self

    @property
    def n_directions(self) -> int:
        """Number of directions that the low-rank part of a new row can have."""
        return self.smooth.shape[1]

    @property
    def start(self) -> Array:
        """Where another fit may start."""
        return self.smooth

    def tile(self, place: Places) -> Array:
        """Low-rank part of some rows of the training data."""
        return self.smooth[place] * self.scale + self.shift

    @cached_property
    def flags(self) -> Array:
        """Flagged entries of the training data."""
        return self._assembled(self._flagged_tile)

    def _flagged_tile(self, place: Places) -> Array:
        return self.entries.flags(graph_errors(self.graph.X[place], self.smooth[place]))

    def known_parts(self, places: Array) -> tuple[Array, ...]:
        """Low-rank part, sparse part and flagged entries of some rows of the training data."""
        return self.tile(places), self._sparse_tile(places), self._flagged_tile(places)

    def new_low_rank(self, X: Array) -> Array:
        """Low-rank part of rows that are not among the training data."""
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

    def new_parts(self, X: Array) -> tuple[Array, ...]:
        """Low-rank part, sparse part and flagged entries of such rows."""
        low_rank, one = self.new_low_rank(X), np.ones(X.shape[1])
        threshold, limits = self.loss.threshold * self.scale, self.entries.limits * self.scale
        return low_rank, *split_errors(X, low_rank, threshold, limits, one)

    def principal_axes(self, center: bool) -> tuple[Array, Array, Array]:
        """Mean of the low-rank part, or zero; singular values and right vectors (rows) about it."""
        n_samples, n_features = self.smooth.shape
        middle = np.zeros(n_features)
        for place in self._places():
            middle += self.smooth[place].sum(axis=0, dtype=np.float64) / n_samples
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

    def _sparse_tile(self, place: Places) -> Array:
        errors = graph_errors(self.graph.X[place], self.smooth[place])
        return self.loss.sparse_part(np.nan_to_num(errors, nan=0.0)) * self.scale


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
    """All rows as an array in memory, in which NaN marks missing entries.

    What `checked_entries` does not allow is refused.
    """
    return checked_entries(rows.whole(), axes)


def observed_block(block: DenseBlock) -> Array:
    """What `observed` gives for the rows of a block."""
    return checked_entries(np.ascontiguousarray(block.block, block.dtype))


def checked_entries(X: Array, axes: tuple[int, ...] = (1,)) -> Array:
    """The same array, in which NaN marks missing entries.

    Raises ValueError for entries that are infinite or whose squares overflow, and for rows
    (``axes`` contains 1) or columns (it contains 0) without any entry.
    """
    places, total, ends = slices(len(X), tile_rows(X.shape[1])), 0.0, []
    for place in each(places, X):
        total += float(X[place].sum())
        ends.append([np.fmin.reduce(X[place], axis=None), np.fmax.reduce(X[place], axis=None)])
    checked_size(np.array(ends), X.dtype.name)
    if np.isfinite(total):
        return X
    if np.isinf(ends).any():
        raise ValueError("Input X contains infinity; mark missing entries with NaN.")
    known = [np.zeros(X.shape[1], bool), np.zeros(len(X), bool)]
    for place in each(places, X):
        there = ~np.isnan(X[place])
        known[0] |= there.any(axis=0)
        known[1][place] = there.any(axis=1)
    for axis in axes:
        empty, kind = np.flatnonzero(~known[axis]), ("columns", "rows")[axis]
        if len(empty):
            raise ValueError(
                f"{len(empty)} {kind} of X hold no value at all (NaN everywhere), the first at "
                f"{empty[:5].tolist()}: nothing can be said about them. Leave them out."
            )
    return X


def _with_low_rank(
    rows: Rows, decomposition: Decomposition, chosen: Array | None = None
) -> Iterator[tuple[slice, Array, Array]]:
    """Places of tiles of the training data, or of those with chosen rows; tiles, low-rank parts."""
    for start, stop in each(rows.bounds, *decomposition.stored):
        places = slices(stop, tile_rows(rows.shape[1]), start)
        if chosen is not None:
            places = [place for place in places if len(_inside(place, chosen))]
        if not places:
            continue
        block = rows.read(start, stop)
        for place in places:
            yield place, block[place.start - start : place.stop - start], decomposition.tile(place)


def _inside(place: slice, chosen: Array) -> Array:
    """Which rows of a tile are among the chosen ones, in ascending order."""
    inside = (chosen >= place.start) & (chosen < place.stop)
    return np.asarray(chosen[inside] - place.start)


def square_residuals(X: Array, low_rank: Array) -> Array:
    """Squared distances of rows over their observed entries, scaled up for the missing ones."""
    error = X - low_rank
    missing = np.isnan(error)
    if not missing.any():
        return square_norms(error)
    shares = 1 - missing.mean(axis=1)
    return square_norms(np.where(missing, 0.0, error)) / np.maximum(shares, 1e-300)


def significant_errors(X: Array, low_rank: Array) -> Array:
    """Errors of rows, zero where they are due to the accuracy of the fit; NaN where missing."""
    errors = X - low_rank
    size = 1e-6 * np.nanmax(np.abs(X), axis=1, keepdims=True)
    return np.where(np.abs(errors) <= size, 0, errors).astype(X.dtype, copy=False)
