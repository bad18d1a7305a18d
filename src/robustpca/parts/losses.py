"""Losses of the squared residual of a sample, and their derivatives: the weights.

Every loss is non-decreasing and concave in the squared residual. Concavity is the whole trick:
a loss lies below its tangent, so a weighted least-squares fit with the slopes as weights can
only lower it. Parameters given as a rule (``"auto"``, ``"q0.8"``) become numbers in `tuned`,
which sees the residuals of the start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from robustpca.engine.linalg import Array, median

# Stands for zero where all samples are equal and nothing else gives a scale.
TINY = 1e-150


class Loss:
    """Base of all losses; a new one defines `values` and `weights`.

    Attributes
    ----------
    drops : bool
        Whether far samples weigh nothing at all; the default start is then the robust one.
    by_start : bool
        Whether parameters may be rules about the residuals of the start.
    by_distances : bool
        Whether they are such rules, and about distances from the subspace that has the least sum
        of them: outliers that hold plain PCA would make those of all samples large.
    """

    drops: ClassVar[bool] = False
    by_start: ClassVar[bool] = False
    by_distances: bool = False

    def values(self, residuals: Array) -> Array:
        """Loss of each sample from its squared residual.

        Parameters
        ----------
        residuals : ndarray of shape (n_samples,)
            Squared residuals.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Concave and non-decreasing in the squared residual.
        """
        raise NotImplementedError

    def weights(self, residuals: Array) -> Array:
        """Derivative of `values`: the weight of each sample in the next fit.

        Parameters
        ----------
        residuals : ndarray of shape (n_samples,)
            Squared residuals.

        Returns
        -------
        weights : ndarray of shape (n_samples,)
            Not negative, and the smaller the larger the residual.
        """
        raise NotImplementedError

    def tuned(self, residuals: Array, floor: float) -> Self:
        """The same loss with its rules turned into numbers.

        Parameters
        ----------
        residuals : ndarray of shape (n_samples,)
            Squared residuals of the start.
        floor : float
            A residual norm so small that it counts as zero.

        Returns
        -------
        loss : Loss
            One whose parameters are numbers.
        """
        return self


def _positive(name: str, value: Any, rule: str, largest: float = 1e150) -> float:
    # Beyond the largest number whose square is one, the formulas would overflow.
    if not isinstance(value, Real) or not 0 < float(value) <= largest:
        raise ValueError(f"{name}={value!r} must be a positive number or {rule}.")
    return float(value)


def _median_norm(residuals: Array, floor: float) -> float:
    return max(median(np.sqrt(residuals)), floor, TINY)


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """The squared residual: ordinary least squares."""

    def values(self, residuals: Array) -> Array:
        return residuals

    def weights(self, residuals: Array) -> Array:
        return np.ones_like(residuals)


@dataclass(frozen=True)
class L21Loss(Loss):
    """The residual norm r, replaced below ``floor`` by r^2 / (2 floor) + floor / 2.

    The parabola touches the norm from above, so the loss stays concave in r^2 and a sample on
    the subspace has a finite weight.

    Parameters
    ----------
    floor : float, default=None
        Norm below which the parabola takes over; None for rounding error of the data.
    """

    floor: float | None = None

    def values(self, residuals: Array) -> Array:
        norms = np.sqrt(residuals)
        floor = self._floor
        return np.where(norms >= floor, norms, residuals / (2 * floor) + floor / 2)

    def weights(self, residuals: Array) -> Array:
        return 1 / (2 * np.maximum(np.sqrt(residuals), self._floor))

    @property
    def _floor(self) -> float:
        return self.floor or TINY

    def tuned(self, residuals: Array, floor: float) -> Self:
        return self if self.floor is not None else replace(self, floor=floor)


@dataclass(frozen=True)
class HuberLoss(Loss):
    """Squared residual up to ``cutoff``, growing linearly with the norm beyond it.

    Parameters
    ----------
    cutoff : float or 'auto', default='auto'
        Residual norm where the linear part begins; 'auto' for the median distance from the
        subspace with about the least sum of distances.
    """

    by_start: ClassVar[bool] = True

    cutoff: float | str = "auto"

    @property
    def by_distances(self) -> bool:  # type: ignore[override]
        return self.cutoff == "auto"

    def values(self, residuals: Array) -> Array:
        cutoff: Any = self.cutoff
        norms = np.sqrt(residuals)
        # An infinite cutoff never reaches the second branch, whatever that gives.
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(norms <= cutoff, residuals, cutoff * (2 * norms - cutoff))

    def weights(self, residuals: Array) -> Array:
        cutoff: Any = self.cutoff
        return 1 / np.maximum(np.sqrt(residuals) / cutoff, 1.0)

    def tuned(self, residuals: Array, floor: float) -> Self:
        if self.cutoff == "auto":
            return replace(self, cutoff=_median_norm(residuals, floor))
        return replace(self, cutoff=_positive("cutoff", self.cutoff, "'auto'", largest=np.inf))


@dataclass(frozen=True)
class CauchyLoss(Loss):
    """cutoff^2 log(1 + r^2 / cutoff^2): grows ever more slowly, without being bounded.

    Parameters
    ----------
    cutoff : float or 'auto', default='auto'
        Residual norm of a sample that weighs half of one on the subspace; 'auto' for the median
        residual norm of the start.
    """

    by_start: ClassVar[bool] = True

    cutoff: float | str = "auto"

    def values(self, residuals: Array) -> Array:
        square: Any = np.square(self.cutoff)
        return square * np.log1p(residuals / square)

    def weights(self, residuals: Array) -> Array:
        square: Any = np.square(self.cutoff)
        return 1 / (1 + residuals / square)

    def tuned(self, residuals: Array, floor: float) -> Self:
        if self.cutoff == "auto":
            return replace(self, cutoff=_median_norm(residuals, floor))
        return replace(self, cutoff=_positive("cutoff", self.cutoff, "'auto'"))


@dataclass(frozen=True)
class SigmaLoss(Loss):
    """(1 + sigma) r^2 / (r + sigma): near r for a small ``sigma``, near r^2 for a large one.

    Parameters
    ----------
    sigma : float or 'auto', default='auto'
        Residual norm around which the loss turns from quadratic to linear; 'auto' for a quarter
        of the median distance from the subspace with about the least sum of distances.
    """

    by_start: ClassVar[bool] = True

    sigma: float | str = "auto"

    @property
    def by_distances(self) -> bool:  # type: ignore[override]
        return self.sigma == "auto"

    def values(self, residuals: Array) -> Array:
        sigma: Any = self.sigma
        return (1 + sigma) * residuals / (np.sqrt(residuals) + sigma)

    def weights(self, residuals: Array) -> Array:
        sigma: Any = self.sigma
        norms = np.sqrt(residuals)
        beyond = norms + sigma
        # One factor at a time: (norms + sigma)^2 would overflow for sigma beyond 1e154. In place,
        # since new arrays for many samples take longer than the arithmetic.
        norms += 2 * sigma
        norms /= beyond
        weights = (1 + sigma) / beyond
        weights *= norms
        weights /= 2
        return weights

    def tuned(self, residuals: Array, floor: float) -> Self:
        if self.sigma == "auto":
            # A quarter of it: near enough to the norm to stand a third of gross outliers.
            return replace(self, sigma=max(_median_norm(residuals, floor) / 4, floor, TINY))
        return replace(self, sigma=_positive("sigma", self.sigma, "'auto'"))


@dataclass(frozen=True)
class CappedLoss(Loss):
    """The residual norm up to ``threshold`` and constant beyond: far samples are ignored.

    Parameters
    ----------
    threshold : float or str, default='q0.8'
        A residual norm, or a string such as 'q0.8' for that quantile of the residual norms at the
        start.
    floor : float, default=None
        As in `L21Loss`.
    """

    drops: ClassVar[bool] = True
    by_start: ClassVar[bool] = True

    threshold: float | str = "q0.8"
    floor: float | None = None

    def values(self, residuals: Array) -> Array:
        return np.minimum(L21Loss(self.floor).values(residuals), self.threshold)

    def weights(self, residuals: Array) -> Array:
        inside = np.sqrt(residuals) <= self.threshold
        return np.where(inside, L21Loss(self.floor).weights(residuals), 0.0)

    def tuned(self, residuals: Array, floor: float) -> Self:
        resolution, floor = floor, floor if self.floor is None else self.floor
        threshold: Any = self.threshold
        if isinstance(threshold, str):
            try:
                share = float(threshold.removeprefix("q"))
            except ValueError:
                share = np.nan
            if not (threshold.startswith("q") and 0 < share <= 1):
                raise ValueError(
                    f"threshold={threshold!r} must be a positive number or a quantile such as "
                    "'q0.8'."
                )
            norms = np.sqrt(residuals)
            # Equal samples tie for the smallest residual. A threshold right at it would put
            # every sample beyond as soon as rounding in the next pass raises it.
            margin = 1.001 * float(norms.min()) + resolution
            threshold = max(float(np.quantile(norms, share)), margin, floor, TINY)
        threshold = _positive("threshold", threshold, "a quantile", largest=np.inf)
        return replace(self, threshold=max(threshold, floor), floor=floor)


# Every place that names losses (parameters, messages, documentation) takes the names from here.
LOSSES: Mapping[str, type[Loss]] = {
    "squared": SquaredLoss,
    "l21": L21Loss,
    "huber": HuberLoss,
    "cauchy": CauchyLoss,
    "sigma": SigmaLoss,
    "capped": CappedLoss,
}


def named(given: Any, known: Mapping[str, type], what: str) -> Any:
    """The object ``given``, or a fresh one of that name."""
    if not isinstance(given, str):
        return given
    if given not in known:
        raise ValueError(f"{what}={given!r} is not one of {', '.join(map(repr, known))}.")
    return known[given]()
