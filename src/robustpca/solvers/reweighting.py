"""The reweighting loop, and fits of a subspace by it.

Given a concave loss and a weighting, the loop alternates three exact steps: losses from the
squared residuals, weights from the losses, a weighted least-squares fit from the weights. Any
model that offers `residuals`, `fit` and `expand` can be put in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from robustpca.engine.checkpoint import followed
from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.rows import Rows
from robustpca.parts.losses import L21Loss, Loss
from robustpca.parts.starts import challenged, trusted_half
from robustpca.parts.weightings import Uniform, Weighted, Weighting

# The sum of distances need not fall further for a rule about them.
SETTLED = 1e-2
# Weightings are tuned at most so often, and from so many samples for each free component.
TUNED, ENOUGH = 3, 6
TINY = float(np.finfo(np.float64).tiny)


class Model(Protocol):
    """Something that can be fitted to weighted samples by least squares.

    It is ``exact`` if the last expansion left nothing to gain for its weights.
    """

    exact: bool

    @property
    def given(self) -> tuple[Any, ...]:
        """The data and whatever else no fit changes."""

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


@dataclass
class _Position:
    """What a pass changes beside the model.

    ``ahead`` are the weights to fit next, and ``weights`` what follows from the residuals alone.
    ``first`` and ``gained`` are what the first pass, and all passes, have gained since the view was
    expanded; ``verified`` is what they have since an expansion was found not to pay.
    """

    weighting: Weighting
    residuals: Array
    losses: Array
    step: Weighted
    weights: Array
    ahead: Array
    fitted_with: Array
    history: list[float]
    first: float | None = None
    gained: float = 0.0
    verified: float = np.inf
    change: float = np.inf
    expanded: bool = False
    converged: bool = False
    iteration: int = 0


# The first view, and any other, is expanded once a pass brings less than this share of all since
# the last expansion, or less than the last one if the view was the best one then. Expanded after
# one pass, when weights are still far from their end, PCA-AN ended 5 % above the objective that it
# reaches so on two of three sets of occluded faces.
FIRST, EARLY, LATE = 0.1, 0.03, 0.01
# Share of the passes in which a weighting need not be monotone.
FREE = 0.25
# An expansion is worth its cost if it gains as much as so many passes at the tolerance; or as one
# if the tolerance is this tight, and asks for digits of the subspace.
WORTH, TIGHT = 8.0, 1e-9


def reweight(
    model: Model,
    loss: Loss,
    weighting: Weighting,
    *,
    tol: float,
    max_iter: int,
    worth: float = WORTH,
    momentum: float = 0.0,
    callback: Callback = ignore,
) -> Reweighting:
    """Alternate losses, weights and weighted fits until the objective converges.

    The objective never rises if the weighting is monotone. One that is not chooses another
    objective at every pass: what a pass gains is bounded by the last one, and after a quarter of
    the passes the weighting is made monotone.

    With ``momentum`` weights go that share of their last change further before they are fitted,
    and a pass that is worse for it is done again without. As passes then bring about as much more,
    the weighting is made monotone earlier.
    """
    worth = worth if tol > TIGHT else 1.0

    def weigh(residuals: Array, weighting: Weighting) -> tuple[Array, Weighted, Array]:
        losses = loss.values(residuals)
        step = weighting.solve(losses)
        weights = step.direct * loss.weights(residuals)
        if not weights.any():
            raise ValueError(
                "Every sample is beyond the threshold of the loss: the smallest residual is "
                f"{np.sqrt(residuals.min()):.4g}. Raise the threshold above it."
            )
        # Samples without any residual weigh so much that single precision would overflow.
        largest = weights.max()
        return losses, step, weights if largest < 1e60 else weights / largest

    residuals = model.residuals()
    losses, step, weights = weigh(residuals, weighting)
    at = _Position(weighting, residuals, losses, step, weights, weights, weights, [step.objective])
    with followed(at, model, given=(loss, weighting, *model.given)) as between_passes:
        while at.iteration < max_iter and not at.converged:
            between_passes()
            at.iteration += 1
            plain, before, previous = at.weights, at.losses, at.step
            for weights in (at.ahead, plain):
                model.fit(weights)
                at.residuals, at.fitted_with = model.residuals(), weights
                at.losses, at.step, at.weights = weigh(at.residuals, at.weighting)
                if at.weighting.monotone:
                    gain = previous.objective - at.step.objective
                else:
                    gain = float(previous.direct @ (before - at.losses))
                if gain >= 0 or weights is plain:
                    break
            at.ahead = _beyond(at.weights, plain, momentum)
            step = at.step
            at.history.append(step.objective)
            # Shares of the weighted losses: a regulariser may be far larger, and hide what they do.
            scale = max(float(step.direct @ at.losses), 1e-9 * abs(step.objective), TINY)
            if at.weighting.monotone:
                change = (previous.objective - step.objective) / scale
            else:
                # The least value is concave in the losses: no more was gained than along its
                # tangent.
                change = abs(float(step.direct @ (before - at.losses))) / scale
            at.change, at.gained, at.verified = change, at.gained + change, at.verified + change
            at.first = change if at.first is None else at.first
            callback(Progress(at.iteration, step.objective, change, n_active=step.n_active))
            if at.iteration == round(FREE * (1 - momentum) * max_iter):
                at.weighting = at.weighting.frozen(step)
            # Passes inside the view are cheap and expanding it is not, but convergence in a view
            # that is still poor is worth nothing: it is expanded as soon as progress slows down.
            patience = (LATE if model.exact else EARLY) if at.expanded else FIRST
            patience = 0.0 if at.verified < np.inf else patience
            if change > max(tol, patience * abs(at.gained)):
                continue
            known_good = at.expanded and abs(at.gained) <= tol
            # What passes gain after an exact expansion is more than another expansion would. The
            # first one after it has gained what the expansion was for.
            since = at.gained - at.first if at.expanded else at.gained
            known_good |= model.exact and since <= worth * tol
            known_good |= abs(at.verified) <= 100 * tol
            settled = change <= tol
            if settled and known_good:
                at.converged = True
            elif model.expand(at.ahead, worth * tol * scale):
                at.gained, at.first, at.verified, at.expanded = 0.0, None, np.inf, True
            else:
                at.converged, at.verified = settled, 0.0
    return Reweighting(
        at.step,
        at.residuals,
        at.weights,
        at.fitted_with,
        np.array(at.history),
        at.iteration,
        at.converged,
        at.change,
    )


def _beyond(weights: Array, last: Array, momentum: float) -> Array:
    """Weights that go on from the last ones through these; zero where these are, and only there."""
    if not momentum:
        return weights
    # Only shares of weights count in a fit.
    last = last * (weights.sum() / last.sum())
    return np.maximum(weights + momentum * (weights - last), 0.5 * weights)


class SubspaceEstimate(Model, Protocol):
    """A model that is a subspace."""

    floor: float
    momentum: float
    n_components: int
    scores: Callable[[Array], Array] | None

    def refine(self, weights: Array) -> None:
        """Make sure that the last fit, with these weights, is as good as on the full data."""

    def coordinates(self) -> tuple[Rows, Array]:
        """Coordinates of the samples, and their squared distance from what these describe."""

    def subspace(self) -> tuple[Array, Array]:
        """Centre and principal axes (as rows) of the last fit."""

    def seen(self) -> tuple[Rows, Array, Array, Array | None]:
        """Rows, centre, components, and what is outside of the rows, as `capture` takes them."""

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


def _tuned(weighting: Weighting, model: Any) -> Weighting:
    """The weighting for the present residuals, if these say what is far.

    Of a start that few samples decide on, all others are.
    """
    residuals = model.residuals()
    if len(residuals) < ENOUGH * (model.n_components + 1):
        return weighting
    return weighting.tuned(residuals)


def _settle_rank(model: Any, share: float, run: Callable[[], Reweighting]) -> Reweighting:
    """Run with the rank that holds a share of the variance which comes out in the end."""
    tried: set[int] = set()
    while True:
        result = run()
        tried.add(model.n_components)
        wanted = model.rank_for(share)
        # Two ranks may each ask for the other; the larger one then holds the share.
        wanted = max(wanted, model.n_components) if wanted in tried else wanted
        if wanted == model.n_components:
            return result
        model.n_components = wanted


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
        if init == "robust":
            rank = model.n_components if share is None else model.rank_for(share)
            better = challenged(coordinates, outside, weights, rank, rng)
            if better is not weights:
                weights = better
                model.fit(weights)
        model.exact = False
        if loss.by_start:
            model.refine(weights)
    if share is not None:
        model.n_components = model.rank_for(share)
    if loss.by_distances:
        distances = L21Loss().tuned(model.residuals(), model.floor)
        reweight(model, distances, Uniform(), tol=SETTLED, max_iter=max_iter, worth=1.0)
    loss = loss.tuned(model.residuals(), model.floor)
    # The view was made for other weights.
    model.exact = False

    def run(tol: float, worth: float = WORTH) -> Reweighting:
        tuned = None
        for _ in range(TUNED):
            before, tuned = tuned, _tuned(weighting, model)
            if tuned == before:
                break
            result = reweight(
                model,
                loss,
                tuned,
                tol=tol,
                max_iter=max_iter,
                worth=worth,
                momentum=model.momentum,
                callback=callback,
            )
        return result

    if share is None:
        result = run(tol)
    else:
        # A share of the variance is a share of the weighted one, which the weights decide. Few
        # digits of them do to see which rank follows.
        _settle_rank(model, share, lambda: run(max(tol, SETTLED), worth=1.0))
        result = _settle_rank(model, share, lambda: run(tol))
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
