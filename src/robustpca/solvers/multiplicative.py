"""Non-negative factors by multiplicative updates, smooth on a graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.checkpoint import followed
from robustpca.engine.linalg import Array, square_norms
from robustpca.engine.progress import Callback, Progress, ignore


@dataclass(frozen=True)
class Factors:
    """Where the updates ended: ``codes @ basis`` is near the data."""

    codes: Array
    basis: Array
    objective: Array
    n_iter: int
    converged: bool
    change: float


def nonnegative_factors(
    X: Any,
    laplacian: Any,
    smoothness: float,
    codes: Array,
    basis: Array,
    *,
    free: bool,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
) -> Factors:
    """Lower ``|X - H B|^2 + smoothness sum_k s_k h_k' L h_k`` over ``H, B >= 0``.

    The scales ``s_k`` are one if ``free``, else the squared norms of the rows of B: then the
    lengths of these rows do not matter. The updates multiply each factor by the ratio of the two
    halves of its gradient, so nothing changes its sign and the objective never rises.
    """
    degrees = laplacian.diagonal()
    adjacency = sparse.csr_array(sparse.diags_array(degrees) - laplacian)
    total = float(X.multiply(X).sum()) if sparse.issparse(X) else float(np.vdot(X, X))

    def weights(basis: Array) -> Array:
        return smoothness * (np.ones(len(basis)) if free else square_norms(basis))

    def roughness(codes: Array) -> Array:
        columns = np.einsum("ij,ij->j", codes, degrees[:, None] * codes - adjacency @ codes)
        return np.maximum(columns, 0.0)

    def measured(basis: Array, cross: Array, inner: Array, rough: Array) -> float:
        apart = total - 2 * float(np.vdot(cross, basis)) + float(np.vdot(inner, basis @ basis.T))
        return max(apart, 0.0) + float(weights(basis) @ rough)

    # Changes count in shares of the objective, or of rounding errors where that is smaller.
    least = np.finfo(np.float64).eps * total + np.finfo(np.float64).tiny
    first = measured(basis, (X.T @ codes).T, codes.T @ codes, roughness(codes))
    at = _Position(codes, basis, [first])
    with followed(at) as between_passes:
        while len(at.history) <= max_iter and not at.converged:
            between_passes()
            codes, basis = at.codes, at.basis
            scaled = codes * weights(basis)
            above = X @ basis.T + adjacency @ scaled
            codes = codes * _ratio(above, codes @ (basis @ basis.T) + degrees[:, None] * scaled)
            cross, inner, rough = (X.T @ codes).T, codes.T @ codes, roughness(codes)
            ridge = np.zeros(len(basis)) if free else smoothness * rough
            basis = basis * _ratio(cross, inner @ basis + ridge[:, None] * basis)
            at.codes, at.basis = codes, basis
            history = at.history
            history.append(measured(basis, cross, inner, rough))
            at.change = (history[-2] - history[-1]) / max(history[-2], least)
            at.converged = at.change <= tol
            callback(Progress(len(history) - 1, history[-1], at.change))
    n_iter, objective = len(at.history) - 1, np.array(at.history)
    return Factors(at.codes, at.basis, objective, n_iter, at.converged, at.change)


@dataclass
class _Position:
    """What a pass changes."""

    codes: Array
    basis: Array
    history: list[float]
    change: float = np.inf
    converged: bool = False


def _ratio(above: Array, below: Array) -> Array:
    """The quotient, and zero where there is nothing to divide by: such an entry is zero."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)
