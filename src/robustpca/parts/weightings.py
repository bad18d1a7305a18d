"""Weightings: how much each sample counts, decided from the losses of all of them.

A weighting minimises ``regulariser(weights) + sum(direct * losses)`` over its own feasible set
exactly; ``direct`` is the factor that the weights put on each loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from robustpca.engine.linalg import Array, root_between, selected
from robustpca.parts.starts import n_usual

# Multipliers between which stationary points are looked for, how many of these are compared to
# the last digit, and steps to a weight.
N_MULTIPLIERS, N_COMPARED, NEWTON_STEPS = 400, 8, 12
# So near to the least slope, its logarithm is a parabola of that of the weight.
NEAR_TURN = 0.01
# Exponents between this one and 1 have hundreds of stationary points.
NEARLY_ONE = 0.99
# Share of the samples that are active where most of the others are no gross outliers.
ACTIVE = 0.75
# Samples among which the active ones are sought before all are put into order.
FEW_ACTIVE = 4096


@dataclass(frozen=True)
class Weighted:
    """The minimiser for given losses and the value it reaches.

    Parameters
    ----------
    weights : ndarray of shape (n_samples,) or None
        Weights of the paper, which sum to one; None if it has none.
    direct : ndarray of shape (n_samples,)
        Factors on the losses.
    objective : float
        Value that is reached.
    n_active : int
        Number of samples that the weighting singles out.
    gamma : float, default=None
        Strength of the regulariser where there is one.
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
        """The best weights for these losses.

        Parameters
        ----------
        losses : ndarray of shape (n_samples,)
            Loss of each sample.

        Returns
        -------
        weighted : Weighted
            The weights, and the objective with them.
        """
        raise NotImplementedError

    def tuned(self, residuals: Array) -> Self:
        """The same weighting with parameters that are to follow from the data.

        It is asked for at the start, and again where the weights have converged.

        Parameters
        ----------
        residuals : ndarray of shape (n_samples,)
            Squared residual of each sample.

        Returns
        -------
        weighting : Weighting
            One that `solve` needs nothing else for.
        """
        return self

    def frozen(self, step: Weighted) -> Self:
        """A monotone weighting to continue with when the weights do not converge.

        Parameters
        ----------
        step : Weighted
            The last result of `solve`.

        Returns
        -------
        weighting : Weighting
            One whose objective can only fall.
        """
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
    n_active : int, float or 'auto', default='auto'
        How many samples get a positive weight, as a number or as a share in (0, 1]. At least as
        many samples should be clean. ``gamma`` is then chosen anew at every pass so that
        exactly this many remain, and the objective may rise between passes. 'auto' is 0.75, or
        less where more than a quarter of the samples are gross outliers of the subspace.
    gamma : float, default=None
        A fixed strength instead; ``n_active`` is not used and the objective never rises.
    """

    n_active: int | float | str = "auto"
    gamma: float | None = None

    drops: ClassVar[bool] = True

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        return self.gamma is not None

    def count(self, n_samples: int) -> int:
        """How many of ``n_samples`` are to be active.

        Parameters
        ----------
        n_samples : int
            Number of samples.

        Returns
        -------
        count : int
            A share of them is rounded up.
        """
        given: Any = ACTIVE if self.n_active == "auto" else self.n_active
        if isinstance(given, float | np.floating) and 0 < given <= 1:
            # 0.15 * 100 is a hair above 15 in floating point; that must not make it 16.
            return max(1, int(np.ceil(given * n_samples - 1e-9)))
        whole = isinstance(given, Real) and float(given).is_integer()
        if not whole or not 1 <= given <= n_samples:
            raise ValueError(
                f"n_active={given!r} must be 'auto', a share in (0, 1] or a number from 1 to "
                f"{n_samples}, the number of samples."
            )
        return int(given)

    def tuned(self, residuals: Array) -> Self:
        if self.n_active != "auto" or self.gamma is not None:
            return self
        fewer = n_usual(residuals)
        return replace(self, n_active=fewer) if fewer < self.count(len(residuals)) else self

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
    lies within a factor n / (n - 1) of the plain sum if gamma is at least 1, so for many samples
    the weighting hardly matters; for few it may fix on one sample and interpolate it, which
    ``max_weight`` prevents.

    Parameters
    ----------
    max_weight : float, default=None
        Upper bound of each weight, in (1/n, 1); 0.5 is advisable below 200 samples.
    gamma : float, default=1.0
        Exponent, at least 1 or in (0, 0.99]. Above 1 every weight is positive. Below 1 the problem
        is not convex and its minimiser need not be unique: few weights are positive (at most 10
        for 0.5, 27 for 0.9), and samples with equal losses may weigh differently. It is the best
        of all stationary points.
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
        if not (0 < self.gamma <= NEARLY_ONE or 1 <= self.gamma < np.inf):
            raise ValueError(
                f"gamma={self.gamma} must be at least 1, or positive and at most {NEARLY_ONE}: in "
                "between there are too many stationary points to choose from."
            )
        if self.max_weight is not None and self.max_weight < self._turn:
            raise ValueError(
                f"max_weight={self.max_weight} must be at least {self._turn:.3g} if "
                f"gamma={self.gamma}: below, only the bound would decide about the weights."
            )
        positive = losses if losses.min() > 0 else losses[losses > 0]
        if len(positive) == 0:  # a perfect fit of all samples
            return Weighted(np.full(n, 1 / n), np.full(n, self._direct(1 / n)), 0.0, n)
        # In units of a typical loss: nothing depends on the scale, and nothing overflows.
        typical = selected(positive, (len(positive) - 1) // 2)
        # Zero stands for something so small that the bound, not the loss, decides its weight.
        scaled = np.maximum(losses / typical, self.floor**2)
        # With few samples, the bound must leave room for equal weights.
        bound = self.max_weight or max(1 - self.floor**0.5, (1 / n + 1) / 2)
        weights = self._weights(scaled, bound)
        direct = self._direct(weights)
        return Weighted(weights, direct, float(direct @ losses), int(np.count_nonzero(weights)))

    def _weights(self, losses: Array, bound: float) -> Array:
        if self.gamma < 1:
            return self._best_stationary(losses, bound)
        if self.gamma == 1:
            weights = self._closed_form(losses)
            if weights.max() <= bound:
                return weights
        return self._by_multiplier(losses, bound)

    def _direct(self, weights: Array | float) -> Array:
        powers = weights if self.gamma == 1 else np.power(weights, self.gamma)
        return np.asarray(1 / (1 - powers))

    @staticmethod
    def _closed_form(losses: Array) -> Array:
        roots = np.sqrt(losses)
        # The active samples are a prefix of the ordered ones (Eq. 12 holds for this k alone). It is
        # short most often, and then the others need no order.
        for n_ordered in (min(FEW_ACTIVE, len(roots)), len(roots)):
            ordered = np.sort(roots[roots <= selected(roots, n_ordered - 1)])[:n_ordered]
            sums = np.cumsum(ordered)
            margins = sums - np.arange(n_ordered) * ordered  # these fall
            if margins[-1] < 0:
                break
        # Two are always active, even where the smaller root is lost in the sum.
        k = max(2, int(np.count_nonzero(margins > 0)))
        # Beyond this root, a hair above the k-th one, weights are zero.
        chosen = np.flatnonzero(roots <= (1 + 1e-9) * sums[k - 1] / (k - 1))
        weights = np.zeros(len(roots))
        weights[chosen] = np.maximum(1 - (k - 1) * roots[chosen] / sums[k - 1], 0.0)
        weights[chosen] /= weights.sum()
        return weights

    def _by_multiplier(self, losses: Array, bound: float) -> Array:
        """Find the multiplier whose weights sum to one; each weight grows with it."""
        # Below the first limit all weights are under 1/n, above the second all at the bound.
        low = np.log(losses.min()) + (self.gamma - 1) * np.log(1 / len(losses)) - 1.0
        high = np.log(losses.max()) + 60.0

        def weights_at(log_multiplier: float) -> Array:
            if self.gamma == 1:
                return np.clip(1 - 1 / np.sqrt(np.exp(log_multiplier) / losses), 0.0, bound)
            return np.minimum(self._slope_root(log_multiplier - np.log(losses)), bound)

        return _normalised(_bisect(lambda x: weights_at(x).sum() - 1, low, high, weights_at))

    def _slope_root(self, log_slope: Array) -> Array:
        """Where gamma w^(gamma-1) / (1 - w^gamma)^2, which grows with w, has this logarithm."""
        # In logarithms, so that tiny weights keep their digits, the equation is convex: Newton's
        # method goes straight to the root from a bound above it. Near 0 the weight follows from
        # w^(gamma-1) alone, and near 1 from the square, where w^(gamma-1) >= w^gamma.
        gamma, log_slope = self.gamma, log_slope - np.log(self.gamma)
        size = 1 + np.sqrt(1 + 4 * np.exp(log_slope))
        with np.errstate(divide="ignore"):
            large = np.log1p(-2 / size)
        square = np.where(log_slope < 0, log_slope + 2 * np.log(2 / size), large)
        root = np.minimum(log_slope / (gamma - 1), square / gamma)
        for _ in range(100):
            left = -np.expm1(gamma * root)
            value = (gamma - 1) * root - 2 * np.log(left) - log_slope
            step = value / ((gamma - 1) + 2 * gamma * (1 - left) / left)
            root = root - step
            if (np.abs(step) <= 1e-15 * np.maximum(np.abs(root), 1e-8)).all():
                break
        return np.exp(root)

    @property
    def _turn(self) -> float:
        """Below this weight, if gamma is below 1, 1 / (1 - w^gamma) is concave; above, convex."""
        gamma = self.gamma
        return ((1 - gamma) / (1 + gamma)) ** (1 / gamma) if gamma < 1 else 0.0

    def _best_stationary(self, losses: Array, bound: float) -> Array:
        """The minimiser for an exponent below 1: the best of all stationary points.

        By the conditions of second order at most one of the positive weights is in the concave
        part. It is the least, so it belongs to the largest of their losses; and since a
        better sample never weighs less, the k positive weights are those of the k least losses.
        For each k, with and without a weight in the concave part, all multipliers are sought for
        which the weights sum to one.
        """
        order = np.argsort(losses, kind="stable")[: int(1 / self._turn) + 1]
        leading = losses[order]
        least = float(self._log_slope(np.log(self._turn)))
        starts = np.log(leading) + least  # multipliers from which each sample may be active
        most = float(self._log_slope(np.log(bound)))
        # A weight in the concave part falls to what is left when all others are at the bound, and
        # multipliers go beyond that.
        left = max(1 - (np.ceil(1 / bound) - 1) * bound, 1e-13)
        top = starts[-1] - least + max(most, float(self._log_slope(np.log(left / 2))))
        grid = np.union1d(starts, np.linspace(starts[0], top, N_MULTIPLIERS))

        def both(x: Array) -> tuple[Array, Array]:
            """Weights in the convex and in the concave part; NaN below the start of a sample."""
            slopes = x[:, None] - np.log(leading)
            slopes = np.where(slopes >= least - 1e-12, np.maximum(slopes, least), np.nan)
            high = self._root(np.minimum(slopes, most), convex=True)
            high[slopes >= most] = bound
            return high, self._root(slopes)

        def excess(x: Array) -> Array:
            """What all weights sum to beyond 1, without and with one in the concave part."""
            high, low = both(x)
            sums = np.cumsum(high, axis=1)
            mixed = np.full_like(sums, np.nan)
            mixed[:, 1:] = sums[:, :-1] + low[:, 1:]
            beyond = np.array([sums, mixed]) - 1
            return np.where(np.abs(beyond) < 1e-13, 0.0, beyond)  # weights at the bound add up to 1

        def weights_at(x: Array, last: Array) -> Array:
            """A row of weights for each multiplier, of which the ``last`` has what is left."""
            found = np.where(np.arange(len(order)) < last[:, None], both(x)[0], 0.0)
            found[np.arange(len(x)), last] = np.maximum(1 - found.sum(axis=1), 0.0)
            return found

        values = excess(grid)
        part, at, last = np.nonzero(values[:, :-1] * values[:, 1:] <= 0)
        before, after = values[part, at, last], values[part, at + 1, last]
        share = before / np.where(before == after, 1.0, before - after)
        near = weights_at(grid[at] + share * (grid[at + 1] - grid[at]), last)
        promising = np.argsort(self._direct(near) @ leading, kind="stable")[:N_COMPARED]
        part, at, last = part[promising], at[promising], last[promising]

        def crossing(part: int, at: int, last: int) -> float:
            def value(x: float) -> float:
                return float(excess(np.array([x]))[part, 0, last])

            return root_between(value, grid[at], grid[at + 1], 1e-15)

        places = np.transpose([part, at, last]).tolist()
        x = np.array([crossing(*place) for place in places])
        found = weights_at(x, last)
        weights = np.zeros(len(losses))
        weights[order] = found[np.argmin(self._direct(found) @ leading)]
        return weights

    def _log_slope(self, log_weights: Array | float) -> Array:
        """Logarithm of the slope of 1 / (1 - w^gamma), which is convex in that of the weight."""
        powers = np.exp(self.gamma * np.asarray(log_weights))
        return np.log(self.gamma) + (self.gamma - 1) * log_weights - 2 * np.log1p(-powers)

    def _root(self, log_slopes: Array, convex: bool = False) -> Array:
        """The weights with these slopes in the convex or in the concave part, by Newton's method.

        It starts beyond the solution, where the slope is larger, and so approaches it from there;
        near the least slope, where both parts meet, from the roots of a parabola.
        """
        gamma, turn = self.gamma, np.log(self._turn)
        if convex:
            powers = -np.expm1((np.log(gamma) - log_slopes) / 2)
            x = np.log(np.maximum(powers, self._turn**gamma)) / gamma
        else:
            x = np.minimum((np.log(gamma) - log_slopes) / (1 - gamma), turn)
        above = np.maximum(log_slopes - self._log_slope(turn), 0.0)
        away = 2 * np.sqrt(above / (1 - gamma**2))
        x = np.where(above < NEAR_TURN, turn + (away if convex else -away), x)
        for _ in range(NEWTON_STEPS):
            powers = np.exp(gamma * x)
            rise = gamma - 1 + 2 * gamma * powers / (1 - powers)
            steep = np.abs(rise) > 1e-8  # at the turn itself there is nothing to correct
            step = (self._log_slope(x) - log_slopes) / np.where(steep, rise, np.inf)
            x = x - step
        return np.exp(x)


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
