"""LowRankModel: what a decomposition into a low-rank and a sparse part is good for afterwards."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array, orthonormal, square_norms
from robustpca.engine.rows import Rows
from robustpca.engine.svt import lanes
from robustpca.models.base import SubspaceModel
from robustpca.solvers.splitting import observed_norm

# A sparse matrix with a larger share of entries takes more room than a dense array.
DENSE_SHARE = 1 / 3


class LowRankModel(SubspaceModel):
    """What the decompositions share: missing entries, both parts, and those of new rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "center_low_rank": ["boolean"],
    }
    _accept_sparse = False
    _allow_nan = True
    _rank_tol = 1e-6
    # Where the loop starts, and where it leaves its end; None to do neither.
    _warm: list[Array] | None = None

    center_low_rank: bool

    def _fit(self, rows: Rows) -> None:
        self._fit_whole(rows, self._observed(rows, (1, 0)))

    def _fit_whole(self, rows: Rows, X: Array) -> None:
        raise NotImplementedError

    def decompose(self, X: Any) -> tuple[Array, Any]:
        """Split new rows into a low-rank and a sparse part, with what was learned held.

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
        X = self._observed(self._rows(X, reset=False))
        low_rank = self._low_rank_rows(X)
        return low_rank, compact(self._sparse_rows(X, low_rank))

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
        return self._codes(self._observed(self._rows(X, reset=False)))

    @property
    def embedding_(self) -> Array:
        """Scores of the low-rank part of the training data."""
        return np.concatenate(
            [(tile - self.mean_) @ self.components_.T for tile in self._training_tiles()]
        )

    def _codes(self, X: Array) -> Array:
        codes = (self._low_rank_rows(X) - self.mean_) @ self.components_.T
        return codes.astype(self.components_.dtype, copy=False)

    def _low_rank_rows(self, X: Array) -> Array:
        """Low-rank part of new rows."""
        raise NotImplementedError

    def _sparse_rows(self, X: Array, low_rank: Array) -> Array:
        """Sparse part of new rows whose low-rank part is known."""
        error = np.nan_to_num(X - low_rank, nan=0.0)
        # A row problem is solved to rounding error, which is not a part of the data.
        size = 1e-6 * np.nanmax(np.abs(X), axis=1, keepdims=True)
        return np.where(np.abs(error) > size, error, 0).astype(X.dtype, copy=False)

    def _training_tiles(self) -> Iterator[Array]:
        """Low-rank part of the training data, a tile of rows at a time."""
        raise NotImplementedError

    def _distances(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        X = self._observed(self._rows(X, reset=False))
        codes = self._codes(X)
        squares = square_residuals(X, self.inverse_transform(codes))
        scores = np.sqrt(np.square(codes, dtype=np.float64) @ self._inverse_deviations**2)
        return np.sqrt(squares), scores

    def _observed(self, rows: Rows, axes: tuple[int, ...] = (1,)) -> Array:
        """All rows, of which none may be empty; nor a column, if ``axes`` says so."""
        X = rows.whole()
        self._check_size(X)
        if np.isfinite(X.sum()):
            return X
        if np.isinf(X).any():
            raise ValueError("Input X contains infinity; mark missing entries with NaN.")
        missing = np.isnan(X)
        if not missing.any():
            return X
        for axis in axes:
            empty, kind = np.flatnonzero(missing.all(axis=axis)), ("columns", "rows")[axis]
            if len(empty):
                raise ValueError(
                    f"{len(empty)} {kind} of X hold no value at all (NaN everywhere), the first "
                    f"at {empty[:5].tolist()}: nothing can be said about them. Leave them out."
                )
        return X

    @staticmethod
    def _check_size(X: Array) -> None:
        low, high = np.fmin.reduce(X, axis=None), np.fmax.reduce(X, axis=None)
        largest = max(abs(float(low)), abs(float(high)))
        if np.isfinite(largest) and largest != 0 and not 1e-100 < largest < 1e100:
            raise ValueError(
                f"The entries of X are of the size {largest:.0e}, whose squares are no numbers "
                f"any more: divide X by it."
            )

    def _finish(self, rows: Rows, X: Array, mean: Array, values: Array, directions: Array) -> None:
        """Keep the subspace: ``values`` and ``directions`` (rows) of the centred low-rank part."""
        rank = int(np.count_nonzero(values > self._rank_tol * values[:1].max(initial=0.0)))
        count = self._count(values, rank, rows)
        components = directions[: min(count, rank)].astype(np.float64)
        if count > rank:
            # Rule for data without enough rank: complete the basis in any way.
            more = orthonormal(np.eye(rows.shape[1])[:, : count + rank], components.T)
            components = np.vstack([components, more.T[: count - rank]])
        variances = np.zeros(count)
        variances[: min(count, rank)] = values[: min(count, rank)] ** 2 / len(X)
        self._keep(
            rows,
            mean,
            components,
            residuals=self._training_residuals(X),
            sample_weights=np.ones(len(X)),
            variances=variances,
            total=float(np.sum(values**2)) / len(X),
            floor=1e-6 * observed_scale(X) * np.sqrt(rows.shape[1]),
        )

    def _training_residuals(self, X: Array) -> Array:
        tiles = zip(row_tiles(X), self._training_tiles(), strict=True)
        return np.concatenate([square_residuals(X[place], low) for place, low in tiles])

    def _count(self, values: Array, rank: int, rows: Rows) -> int:
        """Number of components: as given, by a share of the variance, or the rank."""
        if self.n_components is None:
            return max(rank, 1)
        if isinstance(self.n_components, Integral):
            return self._rank(rows)
        shares = np.cumsum(values**2) / max(float(np.sum(values**2)), np.finfo(float).tiny)
        return max(1, min(int(np.searchsorted(shares, self.n_components) + 1), rank))


def row_tiles(X: Array) -> list[slice]:
    """Places of the tiles that a pass over all rows goes through."""
    return [place for lane in lanes(len(X)) for place in lane]


def square_residuals(X: Array, low_rank: Array) -> Array:
    """Squared distances of rows over the entries they have, scaled up for those they lack."""
    error = X - low_rank
    missing = np.isnan(error)
    if not missing.any():
        return square_norms(error)
    shares = 1 - missing.mean(axis=1)
    return square_norms(np.where(missing, 0.0, error)) / np.maximum(shares, 1e-300)


def observed_scale(X: Array) -> float:
    """Root mean square of the entries that are there."""
    n_observed = sum(np.count_nonzero(~np.isnan(X[place])) for place in row_tiles(X))
    return observed_norm(X) / np.sqrt(max(float(n_observed), 1.0))


def compact(A: Any) -> Any:
    """A sparse matrix in the form that takes less room."""
    if sparse.issparse(A):
        return A if A.nnz <= DENSE_SHARE * np.prod(A.shape) else A.toarray()
    few = np.count_nonzero(A) <= DENSE_SHARE * A.size
    return sparse.csr_array(A) if few else A


def soft_beyond(error: Array, knee: float) -> Array:
    """What of each error is beyond the knee of a loss: the sparse part, without the noise."""
    knee = error.dtype.type(knee)
    return error - np.clip(error, -knee, knee)
