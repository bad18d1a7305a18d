r"""Losses of the residual entries of a low rank + sparse decomposition.

`ENTRY_LOSSES` lists them by name. Another loss is a class derived from `EntryLoss` and an entry
of that mapping, or an object that is given to the estimator.

Examples
--------
>>> import numpy as np
>>> from robustpca.parts.entry_losses import HuberNorm
>>> loss = HuberNorm(weight=1.0, threshold=2.0)
>>> loss.value(np.array([[1.0, -5.0, np.nan]]))
4.25
>>> loss.sparse_part(np.array([[1.0, -5.0]]))
array([[ 0., -3.]])
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["ENTRY_LOSSES", "EntryLoss", "HuberNorm", "L1Norm", "SquaredNorm"]


class EntryLoss:
    r"""A convex loss of single entries, quadratic up to a threshold and linear beyond it.

    The proximal step of all such losses, :math:`\arg\min_z \ell(z) + (z - v)^2 / (2\,
    \text{step})`, is ``v - clip(slope * v, -bound, bound)`` with the two numbers of `dual_map`,
    so one compiled kernel serves all. Missing entries (NaN) cost nothing.

    Attributes
    ----------
    weight : float
        Factor of the loss.
    threshold : float
        Where the quadratic part ends; errors below it are noise and not sparse.
    degree : int
        By which power of a factor the loss grows when entries and threshold are multiplied.
    """

    weight: float
    threshold: float
    degree = 1

    @property
    def curvature(self) -> float:
        """Factor of the square below the threshold, for a weight of one."""
        return 0.5 / self.threshold if self.threshold > 0 else 0.0

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        """Slope and bound of a proximal step, or of several.

        Parameters
        ----------
        step : float or ndarray
            Length of the step.

        Returns
        -------
        slope, bound : float or ndarray
            ``clip(slope * v, -bound, bound)`` is the step times the gradient where it leads.
        """
        raise NotImplementedError

    def conjugate(self, squares: float) -> float:
        """Convex conjugate at feasible multipliers.

        Parameters
        ----------
        squares : float
            Sum of the squares of the multipliers.

        Returns
        -------
        conjugate : float
            What a dual bound subtracts.
        """
        raise NotImplementedError

    def scaled(self, scale: float) -> Self:
        """The same loss for entries in other units.

        Parameters
        ----------
        scale : float
            What the entries are multiplied by.

        Returns
        -------
        loss : EntryLoss
            Its threshold is multiplied as well.
        """
        return self

    def value(self, A: Array) -> float:
        """Sum over all entries that are not missing.

        Parameters
        ----------
        A : ndarray
            The entries; NaN where one is missing.

        Returns
        -------
        value : float
            The loss.
        """
        size = np.abs(A)
        low = np.minimum(size, self.threshold)
        squares = self.curvature * np.square(low, dtype=np.float64)
        return self.weight * float(np.nansum(size - low + squares))

    def sparse_part(self, errors: Array) -> Array:
        """What each error exceeds the threshold by: the sparse part, without the noise.

        Parameters
        ----------
        errors : ndarray
            Data minus low-rank part.

        Returns
        -------
        sparse : ndarray
            Zero where an error is below the threshold.
        """
        threshold = errors.dtype.type(self.threshold)
        return errors - np.clip(errors, -threshold, threshold)


@dataclass(frozen=True)
class L1Norm(EntryLoss):
    """``weight`` times the sum of the absolute entries.

    Parameters
    ----------
    weight : float, default=1.0
        Factor of the loss.
    """

    weight: float = 1.0
    threshold: float = field(default=0.0, init=False, repr=False)

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        return 1.0, self.weight * step

    def conjugate(self, squares: float) -> float:
        return 0.0

    def value(self, A: Array) -> float:
        total = float(np.abs(A).sum(dtype=np.float64))
        return self.weight * total if np.isfinite(total) else super().value(A)


@dataclass(frozen=True)
class HuberNorm(EntryLoss):
    r"""Absolute entries, but a parabola below ``threshold``: allows for small dense noise.

    It is the minimum over s of :math:`|s| + (e - s)^2 / (2\,\text{threshold})`, so an error e
    is split into a sparse part s and noise.

    Parameters
    ----------
    weight : float, default=1.0
        Factor of the loss.
    threshold : float, default=1.345
        Where the parabola ends.
    """

    weight: float = 1.0
    threshold: float = 1.345

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        bound = self.weight * step
        return bound / (self.threshold + bound), bound

    def conjugate(self, squares: float) -> float:
        return self.threshold / (2 * self.weight) * squares

    def scaled(self, scale: float) -> Self:
        return type(self)(self.weight, self.threshold * scale)


@dataclass(frozen=True)
class SquaredNorm(EntryLoss):
    """``weight`` times half the sum of the squared entries.

    Parameters
    ----------
    weight : float, default=1.0
        Factor of the loss.
    """

    weight: float = 1.0
    threshold: float = field(default=np.inf, init=False, repr=False)
    degree = 2

    @property
    def curvature(self) -> float:
        return 0.5

    def dual_map(self, step: Any) -> tuple[Any, Any]:
        return self.weight * step / (1 + self.weight * step), np.inf

    def conjugate(self, squares: float) -> float:
        return squares / (2 * self.weight)


# Every loss by its name: constraints, error messages and tests take their list from here.
ENTRY_LOSSES: Mapping[str, type[EntryLoss]] = {
    "l1": L1Norm,
    "l2": SquaredNorm,
    "huber": HuberNorm,
}
