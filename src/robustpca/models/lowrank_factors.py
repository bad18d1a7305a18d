"""From the factors of a low-rank part, and a sparse one, to what a fit tells of them."""

from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array, inner_product
from robustpca.engine.scratch import each, of_rows
from robustpca.engine.svt import row_tiles
from robustpca.parts.units import Units


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
    return of_rows(lambda rows: rows * units.scale, part)


def nonzero(part: Any) -> Array:
    """Where the entries of a sparse or dense array are not zero."""
    return np.asarray(part.astype(bool).toarray() if sparse.issparse(part) else part != 0)


def observed_scale(X: Array) -> float:
    """Root mean square of the entries that are not missing."""
    n_observed, squares = 0, 0.0
    for place in each(row_tiles(X.shape), X):
        n_observed += int(np.count_nonzero(~np.isnan(X[place])))
        tile = X[place].astype(np.float64, copy=False)
        squares += inner_product(tile, tile)
    return float(np.sqrt(squares / max(n_observed, 1)))


def significant(values: Array, tol: float) -> int:
    """Number of singular values above ``tol`` times the largest."""
    return int(np.count_nonzero(values > tol * values[:1].max(initial=0.0)))
