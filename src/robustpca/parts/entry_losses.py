r"""Terms of a convex objective: each has a value and a proximal step, the smooth ones a gradient.

The proximal step of a term t is :math:`\arg\min_Z t(Z) + \lVert Z - A \rVert_F^2 / (2
\text{step})`. Losses of single entries share one form, so that one compiled kernel serves all.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import linalg, sparse

from robustpca.engine.linalg import Array, square_norms
from robustpca.parts.graphs import spectral_norm


def soft_threshold(A: Array, threshold: float) -> Array:
    """Move every entry towards zero by ``threshold``: the proximal step of the l1 norm.

    Parameters
    ----------
    A : ndarray
        Any array; NaN stays NaN.
    threshold : float
        How far to move; entries within it become exactly zero.

    Returns
    -------
    ndarray
        The moved entries.
    """
    return A - np.clip(A, -threshold, threshold)


def row_shrink(A: Array, threshold: float) -> Array:
    """Shorten every row by ``threshold``: the proximal step of the l2,1 norm.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
        Any matrix.
    threshold : float
        How much of its norm a row loses; rows that are shorter become zero.

    Returns
    -------
    ndarray
        The shortened rows.
    """
    # Squares of what is divided by the largest entry can neither overflow nor vanish.
    largest = np.abs(A).max(axis=1, initial=0.0).astype(np.float64)
    units = np.where(largest > 0, largest, 1.0)
    norms = units * np.sqrt(square_norms(A / units[:, None]))
    factors = 1 - threshold / np.maximum(norms, max(threshold, np.finfo(np.float64).tiny))
    return A * factors.astype(A.dtype)[:, None]


def singular_value_threshold(A: Array, threshold: float) -> Array:
    """Lower every singular value by ``threshold``: the proximal step of the nuclear norm.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
        Any matrix; the decomposition is a full one.
    threshold : float
        What every singular value loses; those that are smaller become zero.

    Returns
    -------
    ndarray
        The matrix with the lowered singular values.
    """
    left, values, right = linalg.svd(A, full_matrices=False)
    rank = int(np.count_nonzero(values > threshold))
    return (left[:, :rank] * (values[:rank] - threshold)) @ right[:rank]


class Term(Protocol):
    """What the splitting loops ask of a term."""

    def value(self, A: Array) -> float:
        """What ``A`` costs."""

    def prox(self, A: Array, step: float) -> Array:
        """The proximal step from ``A``."""


class SmoothTerm(Protocol):
    """A quadratic term that treats all columns alike: its gradient is linear in each of them."""

    def value(self, A: Array) -> float:
        """What ``A`` costs."""

    def gradient(self, A: Array) -> Array:
        """Gradient of the value."""

    @property
    def lipschitz(self) -> float:
        """How fast the gradient changes."""


class EntryLoss:
    """A convex loss of single entries, quadratic up to a knee and linear beyond it.

    Its proximal step is ``v - clip(slope * v, -bound, bound)`` with the two numbers of
    `dual_map`; the clipped part is the gradient of the loss times the step. Missing entries
    (NaN) cost nothing.
    """

    weight: float
    knee: float
    curvature: float
    degree = 1

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        """The numbers ``slope`` and ``bound`` of the proximal step (or of several steps)."""
        raise NotImplementedError

    def conjugate_of(self, squares: float) -> float:
        """Convex conjugate at feasible multipliers, from the sum of their squares."""
        raise NotImplementedError

    def scaled(self, scale: float) -> "EntryLoss":
        """The same loss for entries measured in units of ``scale``."""
        return self

    def value(self, A: Array) -> float:
        """Sum over all entries that are there."""
        size = np.abs(A)
        low = np.minimum(size, self.knee)
        squares = self.curvature * np.square(low, dtype=np.float64)
        return self.weight * float(np.nansum(size - low + squares))

    def prox(self, A: Array, step: float) -> Array:
        """The proximal step; entries that are missing stay so."""
        slope, bound = self.dual_map(step)
        return A - np.clip(slope * A, -bound, bound)


@dataclass(frozen=True)
class L1Norm(EntryLoss):
    """``weight`` times the sum of the absolute entries."""

    weight: float = 1.0
    knee: float = field(default=0.0, init=False)
    curvature: float = field(default=0.0, init=False)

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        return 1.0, self.weight * step

    def conjugate_of(self, squares: float) -> float:
        return 0.0

    def value(self, A: Array) -> float:
        total = float(np.abs(A).sum(dtype=np.float64))
        return self.weight * total if np.isfinite(total) else super().value(A)


@dataclass(frozen=True)
class HuberNorm(EntryLoss):
    r"""Absolute entries, but a parabola below ``threshold``: room for small dense noise.

    It is what is left of :math:`|s| + (e - s)^2 / (2\,\text{threshold})` once s is chosen
    best, so an error e is split into a sparse part s and noise.
    """

    weight: float = 1.0
    threshold: float = 1.345
    degree = 1

    @property
    def knee(self) -> float:  # type: ignore[override]
        """End of the parabola."""
        return self.threshold

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """Factor of the square."""
        return 0.5 / self.threshold

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        bound = self.weight * step
        return bound / (self.threshold + bound), bound

    def conjugate_of(self, squares: float) -> float:
        return self.threshold / (2 * self.weight) * squares

    def scaled(self, scale: float) -> "HuberNorm":
        return HuberNorm(self.weight, self.threshold * scale)


@dataclass(frozen=True)
class SquaredNorm(EntryLoss):
    """``weight`` times half the sum of the squared entries."""

    weight: float = 1.0
    knee: float = field(default=np.inf, init=False)
    curvature: float = field(default=0.5, init=False)
    degree = 2

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        return self.weight * step / (1 + self.weight * step), np.inf

    def conjugate_of(self, squares: float) -> float:
        return squares / (2 * self.weight)


LOSSES: dict[str, type[EntryLoss]] = {"l1": L1Norm, "l2": SquaredNorm, "huber": HuberNorm}


@dataclass(frozen=True)
class L21Norm:
    """``weight`` times the sum of the norms of the rows: whole samples are wrong or right."""

    weight: float = 1.0

    def value(self, A: Array) -> float:
        """Sum of the row norms."""
        return self.weight * float(np.sqrt(square_norms(A)).sum())

    def prox(self, A: Array, step: float) -> Array:
        """Shorter rows."""
        return row_shrink(A, self.weight * step)


@dataclass(frozen=True)
class NuclearNorm:
    """``weight`` times the sum of the singular values."""

    weight: float = 1.0

    def value(self, A: Array) -> float:
        """Sum of the singular values."""
        return self.weight * float(linalg.svdvals(A).sum())

    def prox(self, A: Array, step: float) -> Array:
        """Lower singular values; the loops use `SingularThreshold`, which keeps a warm start."""
        return singular_value_threshold(A, self.weight * step)


# Up to this many vertices the inverse is formed once; products with it are then fast.
DENSE_VERTICES = 1500


@dataclass(frozen=True)
class GraphSmoothness:
    r"""``weight`` times the trace of :math:`Z^\top \Phi Z`: neighbours should be alike.

    The Laplacian has one vertex for each row. For columns, work on the transpose.
    """

    laplacian: Any
    weight: float = 1.0
    norm: float | None = None
    _inverses: dict[float, Array] = field(default_factory=dict, init=False, repr=False)

    def value(self, A: Array) -> float:
        """How much neighbours differ."""
        return self.weight * float(np.vdot(A, self.laplacian @ A))

    def gradient(self, A: Array) -> Array:
        """Gradient of the value."""
        return 2 * self.weight * (self.laplacian @ A)

    @cached_property
    def lipschitz(self) -> float:
        """How fast the gradient changes; ``norm`` is the largest eigenvalue of the Laplacian."""
        return 2 * self.weight * (spectral_norm(self.laplacian) if self.norm is None else self.norm)

    def prox(self, A: Array, step: float) -> Array:
        r"""Solve :math:`(I + 2\,\text{step}\,\text{weight}\,\Phi) Z = A`."""
        factor = 2 * self.weight * step
        n = A.shape[0]
        if factor == 0:
            return A
        if n > DENSE_VERTICES:
            return conjugate_gradients(self.laplacian, factor, A)
        if factor not in self._inverses:
            self._inverses.clear()
            system = np.eye(n) + factor * sparse.csr_array(self.laplacian).toarray()
            self._inverses[factor] = linalg.inv(system, overwrite_a=True)
        out: Array = self._inverses[factor].astype(A.dtype, copy=False) @ A
        return out


def conjugate_gradients(laplacian: Any, factor: float, A: Array) -> Array:
    """Solve ``(I + factor * laplacian) Z = A`` for all columns at once, to rounding error."""
    Z = A.copy()
    residual = -factor * (laplacian @ A)
    direction = residual.copy()
    squares = np.einsum("ij,ij->j", residual, residual)
    enough = squares.max(initial=0.0) * np.finfo(A.dtype).eps ** 2
    for _ in range(10 * A.shape[0]):
        if squares.max(initial=0.0) <= enough:
            break
        image = direction + factor * (laplacian @ direction)
        curve = np.einsum("ij,ij->j", direction, image)
        ahead = np.where(curve > 0, squares / np.where(curve > 0, curve, 1), 0).astype(A.dtype)
        Z += ahead * direction
        residual -= ahead * image
        previous, squares = squares, np.einsum("ij,ij->j", residual, residual)
        turn = np.where(previous > 0, squares / np.where(previous > 0, previous, 1), 0)
        direction = residual + turn.astype(A.dtype) * direction
    return Z
