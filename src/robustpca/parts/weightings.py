"""Weightings: how much each sample counts, decided from the losses of all of them.

A weighting minimises ``regulariser(weights) + sum(direct * losses)`` over its own feasible set
exactly; ``direct`` is the factor that the weights put on each loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Self

import numpy as np

from robustpca.engine.linalg import Array


@dataclass(frozen=True)
class Weighted:
    """The minimiser for given losses and the value it reaches.

    ``weights`` are those of the paper (they sum to one; None if it has none), ``direct`` the
    factors on the losses, ``n_active`` the number of samples the weighting singles out,
    ``gamma`` the strength of the regulariser where there is one.
    """

    weights: Array | None
    direct: Array
    objective: float
    n_active: int
    gamma: float | None = None


class Weighting:
    """Base of all weightings; a new one defines `solve`.

    Attributes
    ----------
    monotone : bool
        Whether the objective can only fall.
    drops : bool
        Whether far samples weigh nothing at all; the default start is then the robust one.
    """

    monotone: bool = True
    drops: ClassVar[bool] = False

    def solve(self, losses: Array) -> Weighted:
        """The best weights for these losses."""
        raise NotImplementedError

    def frozen(self, step: Weighted) -> Self:
        """A monotone weighting to continue with when the weights do not converge."""
        return self


@dataclass(frozen=True)
class Uniform(Weighting):
    """Every sample counts the same."""

    def solve(self, losses: Array) -> Weighted:
        return Weighted(None, np.ones(len(losses)), float(np.sum(losses)), len(losses))


def simplex_projection(point: Array) -> Array:
    """The point of the probability simplex nearest to ``point``."""
    ordered = np.sort(point)[::-1]
    # The largest entry is subtracted first: only differences matter, and far smaller entries
    # must not drown the others.
    surplus = np.cumsum(ordered - ordered[0]) - 1
    count = np.arange(1, len(point) + 1)
    n_positive = int(np.count_nonzero((ordered - ordered[0]) - surplus / count > 0))
    projected = np.maximum(point - ordered[0] - surplus[n_positive - 1] / n_positive, 0.0)
    return projected / projected.sum()


@dataclass(frozen=True)
class AdaptiveNeighbors(Weighting):
    """Robust weight learning with adaptive neighbours: the best-fitting samples share the weight.

    Minimises ``weights @ losses + gamma * sum(weights**2)`` over the probability simplex.

    Parameters
    ----------
    n_active : int or float, default=0.75
        How many samples get a positive weight, as a number or as a share in (0, 1]. At least as
        many samples should be clean. ``gamma`` is then chosen anew at every pass so that
        exactly this many remain, and the objective may rise between passes.
    gamma : float, default=None
        A fixed strength instead; ``n_active`` is not used and the objective never rises.
    """

    n_active: int | float = 0.75
    gamma: float | None = None

    drops: ClassVar[bool] = True

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        return self.gamma is not None

    def count(self, n_samples: int) -> int:
        """How many of ``n_samples`` are to be active."""
        given = self.n_active
        if isinstance(given, float | np.floating) and 0 < given <= 1:
            # 0.15 * 100 is a hair above 15 in floating point; that must not make it 16.
            return max(1, int(np.ceil(given * n_samples - 1e-9)))
        whole = isinstance(given, Real) and float(given).is_integer()
        if not whole or not 1 <= given <= n_samples:
            raise ValueError(
                f"n_active={given!r} must be a share in (0, 1] or a number from 1 to "
                f"{n_samples}, the number of samples."
            )
        return int(given)

    def solve(self, losses: Array) -> Weighted:
        if self.gamma is not None:
            if not 0 < self.gamma < np.inf:
                raise ValueError(f"gamma={self.gamma} must be a positive number.")
            return self._result(simplex_projection(-losses / (2 * self.gamma)), losses, self.gamma)
        n, k = len(losses), self.count(len(losses))
        if k == n:  # there is no next sample to measure against: all count the same
            return self._result(np.full(n, 1 / n), losses, np.inf)
        next_loss = np.partition(losses, k)[k]
        margins = np.maximum(next_loss - losses, 0.0)
        total = float(margins.sum())
        if total <= 0:  # more than k samples tie for the best: gamma is 0 and they share
            best = (losses <= next_loss).astype(np.float64)
            return self._result(best / best.sum(), losses, 0.0)
        return self._result(margins / total, losses, total / 2)

    def _result(self, weights: Array, losses: Array, gamma: float) -> Weighted:
        penalty = gamma * float(weights @ weights) if np.isfinite(gamma) else 0.0
        value = float(weights @ losses) + penalty
        return Weighted(weights, weights, value, int(np.count_nonzero(weights)), gamma)

    def frozen(self, step: Weighted) -> Self:
        # gamma = 0 (a perfect fit) or infinity (all active) leaves nothing to hold on to.
        usable = step.gamma is not None and 0 < step.gamma < np.inf
        return replace(self, gamma=step.gamma) if usable else self


@dataclass(frozen=True)
class CoRobust(Weighting):
    """Collaborative-robust weights: a few best-fitting samples are raised, none is dropped.

    Minimises ``sum(losses / (1 - weights**gamma))`` over the probability simplex. The value
    lies within a factor n / (n - 1) of the plain sum, so for many samples the weighting hardly
    matters; for few it may fix on one sample and interpolate it, which ``max_weight`` prevents.

    Parameters
    ----------
    max_weight : float, default=None
        Upper bound of each weight, in (1/n, 1); 0.5 is advisable below 200 samples.
    gamma : float, default=1.0
        Exponent, at least 1. Above 1 every weight is positive.
    floor : float, default=1e-12
        No weight exceeds ``1 - sqrt(floor)``, which belongs to a loss that is this share of the
        next one, so that no factor is infinite. A bound of the weights, unlike one of the
        losses, leaves the minimum concave in the losses, and the objective falls to the end.
    """

    max_weight: float | None = None
    gamma: float = 1.0
    floor: float = 1e-12

    def solve(self, losses: Array) -> Weighted:
        n = len(losses)
        if n < 2:
            raise ValueError(f"Co-robust weights need at least 2 samples, but n_samples={n}.")
        if self.max_weight is not None and not 1 / n < self.max_weight < 1:
            raise ValueError(
                f"max_weight={self.max_weight} must lie between 1/n_samples = {1 / n:.3g} and 1."
            )
        if not 0 < self.floor < 1:
            raise ValueError(f"floor={self.floor} must be positive and less than 1.")
        if not 1 <= self.gamma < np.inf:
            raise ValueError(
                f"gamma={self.gamma} must be at least 1: below it the problem is not convex and "
                "its weights are not unique."
            )
        positive = losses[losses > 0]
        if len(positive) == 0:  # a perfect fit of all samples
            return Weighted(np.full(n, 1 / n), np.full(n, self._direct(1 / n)), 0.0, n)
        # In units of a typical loss: nothing depends on the scale, and nothing overflows.
        typical = np.quantile(positive, 0.5, method="lower")
        # Zero stands for something so small that the bound, not the loss, decides its weight.
        scaled = np.maximum(losses / typical, self.floor**2)
        # With few samples, the bound must leave room for equal weights.
        bound = self.max_weight or max(1 - self.floor**0.5, (1 / n + 1) / 2)
        weights = self._closed_form(scaled) if self.gamma == 1 else None
        if weights is None or weights.max() > bound:
            weights = self._by_multiplier(scaled, bound)
        direct = self._direct(weights)
        return Weighted(weights, direct, float(direct @ losses), int(np.count_nonzero(weights)))

    def _direct(self, weights: Array | float) -> Array:
        return np.asarray(1 / (1 - np.power(weights, self.gamma)))

    @staticmethod
    def _closed_form(losses: Array) -> Array:
        roots = np.sqrt(losses)
        ordered = np.sort(roots)
        sums = np.cumsum(ordered)
        # The active samples are a prefix of the ordered ones (Eq. 12 holds for this k alone).
        # Two are always active, even where the smaller root is lost in the sum.
        k = max(2, int(np.count_nonzero(sums - np.arange(len(roots)) * ordered > 0)))
        weights = np.maximum(1 - (k - 1) * roots / sums[k - 1], 0.0)
        return weights / weights.sum()

    def _by_multiplier(self, losses: Array, bound: float) -> Array:
        """Find the multiplier whose weights sum to one; each weight grows with it."""
        # Below the first limit all weights are under 1/n, above the second all at the bound.
        low = np.log(losses.min()) + (self.gamma - 1) * np.log(1 / len(losses)) - 1.0
        high = np.log(losses.max()) + 60.0

        def weights_at(log_multiplier: float) -> Array:
            return np.minimum(self._slope_root(np.exp(log_multiplier) / losses), bound)

        return _normalised(_bisect(lambda x: weights_at(x).sum() - 1, low, high, weights_at))

    def _slope_root(self, slope: Array) -> Array:
        """Where gamma w^(gamma-1) / (1 - w^gamma)^2, which grows with w, equals ``slope``."""
        if self.gamma == 1:
            return np.maximum(1 - 1 / np.sqrt(slope), 0.0)
        # In logarithms, so that tiny weights keep their digits. Near 0 the weight follows from
        # w^(gamma-1) alone, which bounds it from above.
        exponent = self.gamma - 1
        high = np.minimum(np.log(slope / self.gamma) / exponent, 0.0)
        low = high - 40.0 / min(exponent, 1.0)
        for _ in range(60):
            middle = (low + high) / 2
            power = np.exp(exponent * middle)
            with np.errstate(divide="ignore"):
                steep = self.gamma * power / (1 - power * np.exp(middle)) ** 2 > slope
            low, high = np.where(steep, low, middle), np.where(steep, middle, high)
        return np.exp(low)


def _bisect(
    excess: Callable[[float], float], low: float, high: float, result: Callable[[float], Array]
) -> Array:
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return result(high)


def _normalised(weights: Array) -> Array:
    return weights / weights.sum()


# Every place that names weightings takes the names from here.
WEIGHTINGS: Mapping[str, type[Weighting]] = {
    "uniform": Uniform,
    "adaptive": AdaptiveNeighbors,
    "corobust": CoRobust,
}
