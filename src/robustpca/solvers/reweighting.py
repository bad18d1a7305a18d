"""The reweighting loop, and fits of a subspace by it.

Given a concave loss and a weighting, the loop alternates three exact steps: losses from the
squared residuals, weights from the losses, a weighted least-squares fit from the weights. Any
model that offers `residuals`, `fit` and `expand` can be put in.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.rows import Rows
from robustpca.parts.losses import L21Loss, Loss
from robustpca.parts.starts import trusted_half
from robustpca.parts.weightings import Uniform, Weighted, Weighting

# The sum of distances need not fall further for a rule about them.
SETTLED = 1e-2


class Model(Protocol):
    """Something that can be fitted to weighted samples by least squares.

    It is ``exact`` if the last expansion left nothing to gain for its weights.
    """

    exact: bool

    def residuals(self) -> Array:
        """Squared residual of every sample under the present parameters."""

    def fit(self, weights: Array) -> None:
        """Make the weighted sum of squared residuals as small as the present view allows."""

    def expand(self, weights: Array, enough: float) -> bool:
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


# A view is expanded once a pass brings less than this share of all since the last expansion.
EARLY = 0.05


def reweight(
    model: Model,
    loss: Loss,
    weighting: Weighting,
    *,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
) -> Reweighting:
    """Alternate losses, weights and weighted fits until the objective converges.

    The objective never rises if the weighting is monotone. One that is not is watched by its
    weights instead, and made monotone after a quarter of the passes if it has not converged by
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
        # Samples without any residual weigh so much that single precision would overflow.
        largest = weights.max()
        return step, weights if largest < 1e60 else weights / largest

    residuals = model.residuals()
    step, weights = weigh(residuals)
    fitted_with, history = weights, [step.objective]
    anchor, after, expanded, verified, patience = step, step, False, None, EARLY
    change, converged, iteration = np.inf, False, 0
    while iteration < max_iter and not converged:
        iteration += 1
        model.fit(weights)
        fitted_with = weights
        residuals = model.residuals()
        previous = step
        step, weights = weigh(residuals)
        after = step if anchor is previous else after
        history.append(step.objective)
        change = _change(previous, step, weighting.monotone)
        callback(Progress(iteration, step.objective, change, n_active=step.n_active))
        if not weighting.monotone and iteration == max_iter // 4:
            weighting, tol = weighting.frozen(step), 10 * tol
        # Passes inside the view are cheap and expanding it is not, but convergence in a view
        # that is still poor is worth nothing: it is expanded as soon as progress slows down.
        since = abs(_change(anchor, step, weighting.monotone))
        if change > max(tol, patience * since):
            continue
        # Weights may stand still while the subspace is poor; an objective does not.
        known_good = weighting.monotone and expanded and since <= tol
        # What passes gain after an exact expansion is more than another expansion would.
        if weighting.monotone and expanded and model.exact:
            known_good |= _change(after, step, True) <= tol
        if verified is not None:
            known_good |= abs(_change(verified, step, weighting.monotone)) <= 100 * tol
        # The same tolerance for a sum of squares as for an objective that has been frozen.
        scale = abs(step.objective) if weighting.monotone else 10 * float(weights @ residuals)
        enough = tol * scale
        if change <= tol and known_good:
            converged = True
        elif model.expand(weights, enough):
            anchor, expanded, verified, patience = step, True, None, EARLY
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


class SubspaceEstimate(Model, Protocol):
    """A model that is a subspace."""

    floor: float

    def refine(self, weights: Array) -> None:
        """Make sure that the last fit, with these weights, is as good as on the full data."""

    def coordinates(self) -> tuple[Rows, Array]:
        """Coordinates of the samples, and their squared distance from what these describe."""

    def subspace(self) -> tuple[Array, Array]:
        """Centre and principal axes (as rows) of the last fit."""

    def variances(self) -> tuple[Array, float]:
        """Weighted variance along each axis, and in all."""


@dataclass(frozen=True)
class ReweightedSubspace(Reweighting):
    """A subspace with the loss and the weights that led to it.

    ``variances`` along the ``components`` (rows) and the ``total`` are weighted with
    ``fitted_with``; ``floor`` is the distance that counts as zero.
    """

    loss: Any
    mean: Array
    components: Array
    variances: Array
    total: float
    floor: float


def reweighted_subspace(
    model: Any,
    loss: Loss,
    weighting: Weighting,
    *,
    init: str = "pca",
    rng: np.random.RandomState,
    share: float | None = None,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
) -> ReweightedSubspace:
    """Fit a subspace with a loss and a weighting of the samples.

    Parameters
    ----------
    model : SubspaceEstimate
        The subspace that fits all samples with equal weights.
    loss : Loss
        Loss of the squared residuals.
    weighting : Weighting
        Weights of the samples.
    init : str, default='pca'
        Where to start: 'robust' for the samples with the least outlyingness, 'random' for random
        weights, anything else for the model as it is.
    rng : RandomState
        Draws the directions of the robust start or the random weights.
    share : float, default=None
        Share of the weighted variance that decides the number of components, for a `model` whose
        ``n_components`` can be set.
    tol, max_iter, callback
        As in `reweight`.

    Returns
    -------
    ReweightedSubspace
        The subspace, the weights and how the loop ended.
    """
    if init in ("robust", "random"):
        coordinates, outside = model.coordinates()
        if init == "robust":
            weights = trusted_half(coordinates, outside, rng)
        else:
            weights = rng.uniform(size=len(outside))
        model.fit(weights)
        if loss.by_start:
            model.refine(weights)
    if share is not None:
        model.n_components = model.rank_for(share)
    if loss.by_distances:
        distances = L21Loss().tuned(model.residuals(), model.floor)
        reweight(model, distances, Uniform(), tol=SETTLED, max_iter=max_iter)
    loss = loss.tuned(model.residuals(), model.floor)

    def run() -> Reweighting:
        return reweight(model, loss, weighting, tol=tol, max_iter=max_iter, callback=callback)

    result = run()
    # A share of the variance is a share of the weighted one, which the weights decide.
    tried: set[int] = set()
    while share is not None and model.n_components not in tried:
        tried.add(model.n_components)
        wanted = model.rank_for(share)
        # Two ranks may each ask for the other; the larger one then holds the share.
        wanted = max(wanted, model.n_components) if wanted in tried else wanted
        if wanted != model.n_components:
            model.n_components = wanted
            result = run()
    mean, components = model.subspace()
    variances, total = model.variances()
    return ReweightedSubspace(
        **vars(result),
        loss=loss,
        mean=mean,
        components=components,
        variances=variances,
        total=total,
        floor=model.floor,
    )
