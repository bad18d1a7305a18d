"""From the factors of a low-rank part, and a sparse one, to what a fit tells of them."""

from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.blocks import slices
from robustpca.engine.entries import LISTED
from robustpca.engine.linalg import Array, inner_product
from robustpca.engine.scratch import each, empty_beside, of_rows, summed
from robustpca.engine.svt import row_tiles
from robustpca.parts.units import Units


def principal_axes(left: Array, right: Array, center: bool) -> tuple[Array, Array, Array]:
    """Mean of the rows of ``left @ right``, or zero; singular values and axes (rows) about it.

    The rows of ``right`` are orthonormal.
    """
    middle = np.zeros(left.shape[1])
    if center:
        middle = summed(lambda rows: rows.sum(axis=0), left) / len(left)
    squares, rotation = np.linalg.eigh(summed(lambda rows: _gram(rows - middle), left))
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    return middle @ right, values, rotation.T[::-1] @ right


def _gram(rows: Array) -> Array:
    return rows.T @ rows


def column_norms(A: Array) -> Array:
    """Length of each column."""
    return np.sqrt(summed(lambda rows: np.square(rows).sum(axis=0), A))


def rescaled(left: Array, right: Array, scale: Array) -> tuple[Array, Array]:
    """Factors of a product whose columns are multiplied by ``scale``; the right one orthonormal."""
    basis, turn = np.linalg.qr((right * scale).T)
    turned = of_rows(lambda rows: rows @ turn.T, left, n_columns=len(turn))
    return turned, np.ascontiguousarray(basis.T)


def scaled_columns(part: Any, units: Units) -> Any:
    """A sparse part in the user's units."""
    if units.trivial:
        return part
    if sparse.issparse(part):
        entries = empty_beside(part.data)
        for place in each(slices(len(entries), LISTED), entries, part.data, part.indices):
            entries[place] = part.data[place] * units.scale[part.indices[place]]
        return sparse.csr_array((entries, part.indices, part.indptr), shape=part.shape)
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
