"""How much dense noise a pursuit has to allow for, and the loss that follows from it.

The noise is read from the residuals of a few passes of `splitting.Run`; fit and estimate are then
refined together.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from robustpca.engine.checkpoint import followed
from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback, Progress, ignore
from robustpca.engine.scratch import taken
from robustpca.engine.svt import LowRank
from robustpca.engine.threads import ThreadPool
from robustpca.parts.entry_losses import EntryLoss, HuberNorm, L1Norm
from robustpca.solvers.penalties import (
    TINY,
    Balanced,
    Exploring,
    count_observed,
    largest_entry,
    next_root,
)
from robustpca.solvers.split_matrix import GAUSSIAN, SAMPLE, GraphSmoothness
from robustpca.solvers.splitting import Run, Start

# Passes between two estimates of the noise, how many estimates there are at most, and the share by
# which the last one may be wrong.
PASSES_PER_ESTIMATE, MOST_ESTIMATES, ACCURACY = 4, 20, 0.08
# Noise of this share of the usual residual is none.
FAINT = 0.05
# Rows that the residual entries of a median come from at least.
SAMPLE_ROWS = 30


def pursuit_loss(
    X: Array,
    sparsity: float | str = "auto",
    noise: float | str = 0.0,
    smoothness: GraphSmoothness | None = None,
    *,
    callback: Callback = ignore,
) -> tuple[EntryLoss, float, Start | None]:
    """Loss of the residual entries, the deviation of the noise that it allows for, and a start.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data; NaN where missing.
    sparsity : float or 'auto', default='auto'
        Weight of the loss; 'auto' is that of theory.
    noise : float or 'auto', default=0.0
        Standard deviation of dense noise; 'auto' to estimate it.
    smoothness : GraphSmoothness, default=None
        Smoothness of the low-rank part that the estimate takes into account.
    callback : callable
        Called with a `Progress` after each pass of the estimate.

    Returns
    -------
    loss : EntryLoss
        The loss.
    noise : float
        Standard deviation of the noise.
    start : Start or None
        Where `split` may start: the end of the estimate, if there was one.
    """
    n_observed = count_observed(X)
    # The observed entries of a row or column of the longer side.
    weight = float(n_observed / min(X.shape)) ** -0.5 if sparsity == "auto" else float(sparsity)
    # Spectral norm of noise of deviation one at as many entries: singular values below it must
    # not enter the low-rank part.
    norm = float(np.sum(np.sqrt(X.shape)) * np.sqrt(n_observed / X.size))

    def loss_for(noise: float) -> EntryLoss:
        return HuberNorm(weight, weight * noise * norm) if noise > 0 else L1Norm(weight)

    start = None
    if noise == "auto":
        noise, start = _estimated_noise(X, loss_for, norm, smoothness, callback)
    return loss_for(float(noise)), float(noise), start


def _estimated_noise(
    X: Array,
    loss_for: Callable[[float], EntryLoss],
    norm: float,
    smoothness: GraphSmoothness | None,
    callback: Callback,
) -> tuple[float, Start | None]:
    """Noise level at which the residuals of the fit have just this median absolute deviation.

    Passes with a growing penalty and without noise show whether there is any, and about how much.
    """
    if largest_entry(X) == 0:
        return 0.0, None
    with ThreadPool() as pool:
        run = Run(X, loss_for(0.0), None, Exploring(), pool)

        def advance() -> None:
            objective = run.advance()
            done = Progress(run.iteration, objective, run.change, rank=run.low_rank.rank)
            callback(replace(done, phase="noise", counted=False))

        with followed(run, given=run.given) as between_passes:
            while not run.penalties.fixed:
                between_passes()
                advance()
                if not run.penalties.fixed and run.change <= Exploring.small:
                    # The loop that goes on has a pass of its own in any case.
                    run.penalties.resume(run.loop.loss, True)

        def is_faint(noise: float) -> bool:
            return noise <= FAINT * run.loop.usual_residual(run.low_rank)

        at = _Estimate(_median_residual(X, run.low_rank, 0.0))
        if run.penalties.vanishing or is_faint(at.noise):
            return 0.0, (run.start() if smoothness is None else None)
        if smoothness is not None:
            run = Run(X, loss_for(at.noise), smoothness, Balanced(), pool)
        with followed(at, run, given=run.given) as between_passes:
            while not at.found and len(at.sizes) < MOST_ESTIMATES:
                between_passes()
                run.change_loss(loss_for(at.noise), anew=smoothness is None and not at.sizes)
                for _ in range(PASSES_PER_ESTIMATE if smoothness is None else 40):
                    advance()
                size = _median_residual(X, run.low_rank, at.noise * norm)
                at.sizes.append((np.log(at.noise), np.log(max(size, TINY) / at.noise)))
                at.found = abs(at.sizes[-1][1]) < ACCURACY
                if not at.found:
                    at.noise = float(np.exp(next_root(at.sizes)))
                    at.found = at.faint = is_faint(at.noise)
        if at.faint:
            return 0.0, (run.start() if smoothness is None else None)
        return at.noise, run.start()


@dataclass
class _Estimate:
    """The noise, and logarithms of the levels tried and of the residuals there in their units."""

    noise: float
    sizes: list[tuple[float, float]] = field(default_factory=list)
    found: bool = False
    faint: bool = False


def _median_residual(X: Array, low_rank: LowRank, shrinkage: float) -> float:
    """Deviation of the residual entries in a sample of the rows, the shrinkage undone.

    Where most entries are zero, as the margins of images are, they say nothing about the others.
    """
    full = 1 + shrinkage / np.maximum(low_rank.values, TINY)
    chosen = slice(None, None, max(1, min(X.size // (2 * SAMPLE), len(X) // SAMPLE_ROWS)))
    low = (taken(low_rank.left, chosen) * full.astype(X.dtype)) @ low_rank.right
    some = taken(X, chosen)
    sizes, zero = np.abs(some - low), some == 0
    if 2 * np.count_nonzero(zero) > zero.size:
        sizes = sizes[~zero]
    return GAUSSIAN * float(np.nanmedian(sizes)) if sizes.size else 0.0
