"""Non-negative factors by multiplicative updates, smooth on a graph."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.core.linalg import Array


@dataclass(frozen=True)
class Step:
    """What a callback is told after each pass."""

    iteration: int
    objective: float
    change: float

    @property
    def detail(self) -> str:
        """The rest of a progress line."""
        return "factors >= 0"


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
    tol: float,
    max_iter: int,
    watch: Callable[[Step], object] = lambda _: None,
) -> Factors:
    """Lower ``|X - H B|^2 + smoothness tr(H' L H)`` over ``H, B >= 0``, from a given start.

    The updates multiply each factor by the ratio of the two halves of its gradient, so nothing
    changes its sign and the objective never rises.
    """
    degrees = laplacian.diagonal()
    adjacency = sparse.csr_array(sparse.diags_array(degrees) - laplacian)
    pull, hold = smoothness * adjacency, smoothness * degrees[:, None]
    total = float(X.multiply(X).sum()) if sparse.issparse(X) else float(np.vdot(X, X))

    def measured(codes: Array, basis: Array, cross: Array, inner: Array) -> float:
        smooth = float(np.vdot(codes, hold * codes - pull @ codes))
        apart = total - 2 * float(np.vdot(cross, basis)) + float(np.vdot(inner, basis @ basis.T))
        return max(apart, 0.0) + max(smooth, 0.0)

    history = [measured(codes, basis, (X.T @ codes).T, codes.T @ codes)]
    change, converged = np.inf, False
    while len(history) <= max_iter and not converged:
        above = X @ basis.T + pull @ codes
        codes = codes * _ratio(above, codes @ (basis @ basis.T) + hold * codes)
        cross, inner = (X.T @ codes).T, codes.T @ codes
        basis = basis * _ratio(cross, inner @ basis)
        history.append(measured(codes, basis, cross, inner))
        change = (history[-2] - history[-1]) / max(history[-2], np.finfo(np.float64).tiny)
        converged = change <= tol
        watch(Step(len(history) - 1, history[-1], change))
    return Factors(codes, basis, np.array(history), len(history) - 1, converged, change)


def _ratio(above: Array, below: Array) -> Array:
    """The quotient, and zero where there is nothing to divide by: such an entry is zero."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)
