"""The reweighting loop, and the vector model it is mostly used with.

Given a concave loss and a weighting, the loop alternates three exact steps: losses from the
squared residuals, weights from the losses, a weighted least-squares fit from the weights. Any
model that offers `residuals`, `fit` and `widen` can be put in.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robustpca.engine.linalg import (
    Array,
)
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.rows import Rows
from robustpca.parts.losses import Loss
from robustpca.parts.weightings import Weighted, Weighting


class Model(Protocol):
    """Something that can be fitted to weighted samples by least squares."""

    def residuals(self) -> Array:
        """Squared residual of every sample under the present parameters."""

    def fit(self, weights: Array) -> None:
        """Make the weighted sum of squared residuals as small as the present view allows."""

    def widen(self, weights: Array, enough: float) -> bool:
        """Enlarge the view when that could lower the weighted sum by more than ``enough``."""


@dataclass(frozen=True)
class Reweighting:
    """Where the loop ended.

    ``step`` and ``weights`` (the factors on the squared residuals) follow from the
    ``residuals`` of the returned parameters, which were fitted with ``fitted_with``.
    """

    step: Weighted
    residuals: Array
    weights: Array
    fitted_with: Array
    objective: Array
    n_iter: int
    converged: bool
    change: float


# A view is widened once a pass brings less than this share of all since the last widening.
EARLY = 0.2


def reweight(
    model: Model,
    loss: Loss,
    weighting: Weighting,
    *,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
) -> Reweighting:
    """Alternate losses, weights and weighted fits until the objective settles.

    The objective never rises if the weighting is monotone. One that is not is watched by its
    weights instead, and made monotone after a quarter of the passes if it has not settled by
    then; ten times the tolerance then applies to the objective.
    """

    def weigh(residuals: Array) -> tuple[Weighted, Array]:
        step = weighting.solve(loss.values(residuals))
        weights = step.direct * loss.weights(residuals)
        if not weights.any():
            raise ValueError(
                "Every sample is beyond the threshold of the loss: the smallest residual is "
                f"{np.sqrt(residuals.min()):.4g}. Raise the threshold above it."
            )
        return step, weights

    residuals = model.residuals()
    step, weights = weigh(residuals)
    fitted_with, history = weights, [step.objective]
    anchor, widened, verified, patience = step, False, None, EARLY
    change, converged, iteration = np.inf, False, 0
    while iteration < max_iter and not converged:
        iteration += 1
        model.fit(weights)
        fitted_with = weights
        residuals = model.residuals()
        previous = step
        step, weights = weigh(residuals)
        history.append(step.objective)
        change = _change(previous, step, weighting.monotone)
        callback(Progress(iteration, step.objective, change, n_active=step.n_active))
        if not weighting.monotone and iteration == max_iter // 4:
            weighting, tol = weighting.frozen(step), 10 * tol
        # Passes inside the view are cheap and widening it is not, but a view that is still
        # poor is not worth settling in: it is widened as soon as progress slows down.
        since = abs(_change(anchor, step, weighting.monotone))
        if change > max(tol, patience * since):
            continue
        # Weights may stand still while the subspace is poor; an objective does not.
        known_good = weighting.monotone and widened and since <= tol
        if verified is not None:
            known_good |= abs(_change(verified, step, weighting.monotone)) <= 100 * tol
        # The same tolerance for a sum of squares as for an objective that has been frozen.
        scale = abs(step.objective) if weighting.monotone else 10 * float(weights @ residuals)
        enough = tol * scale
        if change <= tol and known_good:
            converged = True
        elif model.widen(weights, enough):
            anchor, widened, verified, patience = step, True, None, EARLY
        else:
            converged, verified, patience = change <= tol, step, 0.0
    return Reweighting(
        step, residuals, weights, fitted_with, np.array(history), iteration, converged, change
    )


def _change(old: Weighted, new: Weighted, monotone: bool) -> float:
    """Relative decrease of the objective, or the largest change of a weight."""
    if monotone:
        tiny = np.finfo(np.float64).tiny
        return (old.objective - new.objective) / max(abs(old.objective), tiny)
    return float(np.abs(new.direct - old.direct).max())


class SubspaceFit(Model, Protocol):
    """A model that is a subspace."""

    floor: float

    def settle(self, weights: Array) -> None:
        """Make sure that the last fit, with these weights, is as good as on the full data."""

    def coordinates(self) -> tuple[Rows, Array]:
        """Coordinates of the samples, and their squared distance from what these describe."""

    def subspace(self) -> tuple[Array, Array]:
        """Centre and principal axes (as rows) of the last fit."""

    def variances(self) -> tuple[Array, float]:
        """Weighted variance along each axis, and in all."""
