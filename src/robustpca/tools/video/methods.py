"""Backgrounds of other methods: a subspace of theirs, and the noise of each pixel about it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from robustpca.engine.linalg import Array
from robustpca.models import FRPCAG, PCAAN, RPCA, AngularEmbedding, GrassmannAverage
from robustpca.tools.video.background import (
    Background,
    light_codes,
    masked_background,
    noise_about,
)
from robustpca.tools.video.masks import MaskRule

__all__ = ["METHODS", "learned"]

# Estimators by the name of the method, given the number of components.
METHODS: dict[str, Callable[[int], Any]] = {
    "pca": lambda k: PCA(k, random_state=0),
    "rpca": lambda k: RPCA(k, noise="auto", scale=None, tol=1e-4),
    "frpcag": lambda k: FRPCAG(k, standardize=False),
    "tae": lambda k: AngularEmbedding(k, max_angle=np.pi / 3),
    "grassmann": lambda k: GrassmannAverage(k),
    "pcaan": lambda k: PCAAN(k),
}


def learned(
    samples: Array, method: str, span: float, rule: MaskRule, n_components: int | None = None
) -> Background:
    """The background of some frames (n_frames, height, width, channels) by a method."""
    if method == "masked":
        return masked_background(samples, span, rule, n_components)
    n_frames, *shape = samples.shape
    flat = samples.reshape(n_frames, -1)
    if method == "median" or n_frames < 3:
        center = np.median(flat, axis=0).astype(np.float32)
        components = np.zeros((0, flat.shape[1]), np.float32)
    else:
        # One component at least: without any, they would all be a mean.
        k = n_components or max(light_codes(samples).shape[1], 1)
        model = METHODS[method](min(k, n_frames - 1)).fit(flat.astype(np.float32))
        center, components = model.mean_, model.components_[:k]
    start = Background(
        np.asarray(center, np.float32).reshape(shape),
        np.asarray(components, np.float32).reshape(-1, *shape),
        np.full(shape, span / 50, np.float32),
        span,
    )
    return noise_about(samples, start, rule)
