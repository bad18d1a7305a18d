"""Which pixels move: evidence of single pixels and of their neighbours, cleaned up."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter, label, uniform_filter

from robustpca.engine.linalg import Array

__all__ = ["MaskRule", "is_shadow", "mask_of", "posterior"]

# A shadow leaves so much of the light, and deviates so little from that nearby.
DARKEST, EVEN = 0.5, 0.03


@dataclass(frozen=True)
class MaskRule:
    """The constants of the mask; one set serves all scenes.

    ``prior`` is the evidence before a frame is seen, ``pull`` how much the neighbours say, within
    ``reach`` pixels, ``cap`` the most that one pixel can say. What moves holds a pixel with
    evidence above ``sure``, and at least ``min_size`` pixels.
    """

    prior: float = 0.0
    pull: float = 6.0
    reach: float = 1.5
    cap: float = 10.0
    sure: float = 2.0
    min_size: int = 12
    n_passes: int = 3


def posterior(logit: Array, rule: MaskRule) -> Array:
    """Evidence of each pixel once its neighbours were heard: some passes of the mean field."""
    total = gaussian_filter(logit, 0.7 * rule.reach, truncate=2.0)
    for _ in range(rule.n_passes):
        heard = gaussian_filter(np.tanh(0.5 * total), rule.reach, truncate=2.0)
        total = logit + rule.pull * heard + rule.prior
    return total


def mask_of(logit: Array, rule: MaskRule) -> Array:
    """Pixels that move: hysteresis, without small islands, with holes closed."""
    total = posterior(logit, rule)
    regions, n_regions = label(total > 0)
    if n_regions == 0:
        return np.zeros(logit.shape, bool)
    sizes = np.bincount(regions.ravel(), minlength=n_regions + 1)
    is_sure = np.zeros(n_regions + 1, bool)
    is_sure[regions[total > rule.sure]] = True
    kept = is_sure & (sizes >= rule.min_size)
    kept[0] = False
    mask = kept[regions]
    holes, n_holes = label(~mask)
    sizes = np.bincount(holes.ravel(), minlength=n_holes + 1)
    small = sizes < 2 * rule.min_size
    small[0] = False
    # What touches the border is open.
    for edge in (holes[0], holes[-1], holes[:, 0], holes[:, -1]):
        small[edge] = False
    return mask | small[holes]


def is_shadow(frame: Array, behind: Array, span: float) -> Array:
    """Pixels that look like the background in less light: darker by an even factor nearby."""
    ratio = (frame.astype(np.float32) + span / 100) / (np.maximum(behind, 0) + span / 100)
    mean = uniform_filter(ratio, (5, 5, 0))
    spread = np.sqrt(np.maximum(uniform_filter(ratio**2, (5, 5, 0)) - mean**2, 0))
    darker = (mean > DARKEST) & (mean < 0.95) & (spread < EVEN)
    # A shadow has the colour of the ground.
    same = np.ptp(mean, axis=2) < EVEN
    return darker.all(axis=2) & same
