"""Images recovered from corrupted ones: data sets, errors and pictures.

What a method recovers is its low-rank approximation of the training data themselves. For the
methods with an embedding this is not `reconstruct`, which would project each image by itself and
forget the graph.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from robustpca.bench.shown import picture
from robustpca.datasets import Dataset, load, make_graph_clusters
from robustpca.engine.linalg import Array
from robustpca.metrics import recovery_error

__all__ = [
    "before_and_after",
    "error_hidden",
    "error_visible",
    "faces_of",
    "one_face",
    "planted_images",
    "recovered",
    "squared_error",
]


def faces_of(n_persons: int = 40, n_images: int = 20) -> Dataset:
    """The first persons of CMU PIE, the same number of images of each, evenly over the lights."""
    data = load("pie")
    return data.taken(_rows(data, range(n_persons), n_images))


def one_face(n_images: int = 20, random_state: int = 0) -> Dataset:
    """A single person of CMU PIE, another one for each seed, evenly over the lights."""
    data = load("pie")
    person = random_state % (int(data.y.max()) + 1)  # type: ignore[union-attr]
    return data.taken(_rows(data, [person], n_images))


def planted_images(n_samples: int = 200, side: int = 16, random_state: int = 0) -> Dataset:
    """Square images of six kinds, of low rank and smooth on the graphs of images and of pixels.

    This is `make_graph_clusters` without gross errors, as grey levels from 1 to 255: black is
    left to the corruption.
    """
    data = make_graph_clusters(
        n_samples, side * side, share=0.0, noise=0.05, random_state=random_state
    )
    pixels = np.clip(128 + 40 * data.X, 1, 255)
    return replace(data, X=pixels, image_shape=(side, side), extras={})


def recovered(model: Any, X: Array) -> Array:
    """The low-rank approximation that a model has made of its training data ``X``."""
    if hasattr(model, "low_rank_"):
        return np.asarray(model.low_rank_)
    codes = model.embedding_ if hasattr(model, "embedding_") else model.transform(X)
    return np.asarray(model.inverse_transform(codes))


def squared_error(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Mean squared error of a pixel."""
    return recovery_error(X_clean, recovered(model, X_corrupt))


def error_hidden(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """Mean squared error of the pixels that were hidden from the model."""
    return recovery_error(X_clean, recovered(model, X_corrupt), where=mask)


def error_visible(model: Any, X_clean: Array, X_corrupt: Array, mask: Array) -> float:
    """Mean squared error of the pixels that the model saw as they are."""
    return recovery_error(X_clean, recovered(model, X_corrupt), where=~mask)


def before_and_after(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    image_shape: tuple[int, int],
    n_images: int = 8,
    zoom: int = 1,
) -> dict[str, Any]:
    """Some images side by side: clean above, corrupted in the middle, recovered below."""
    rows = np.linspace(0, len(X_clean) - 1, n_images).round().astype(int)
    versions = (X_clean, X_corrupt, recovered(model, X_corrupt))
    images = [version[rows].reshape(-1, *image_shape) for version in versions]
    return picture(np.concatenate(images, axis=1), high=float(X_clean.max()), zoom=zoom)


def _rows(data: Dataset, persons: Any, n_images: int) -> Array:
    found = [np.flatnonzero(data.y == person) for person in persons]
    return np.concatenate(
        [rows[np.linspace(0, len(rows) - 1, n_images).round().astype(int)] for rows in found]
    )
