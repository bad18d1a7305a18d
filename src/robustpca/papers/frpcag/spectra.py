"""What a fit has done to singular values and singular vectors."""

from typing import Any, Literal

import numpy as np
from scipy import linalg

from robustpca.bench.scores.clustering import coordinates
from robustpca.bench.shown import curve, picture, points
from robustpca.datasets import resize_images
from robustpca.diagnostics import coupling_matrix, shape_interaction_matrix
from robustpca.engine.linalg import Array
from robustpca.parts.graphs import laplacian

__all__ = [
    "block_contrast",
    "n_large",
    "share_of_nuclear_norm",
    "show_feature_coupling",
    "show_interaction",
    "show_plane",
    "show_sample_coupling",
    "show_singular_values",
    "show_singular_values_of_data",
    "smooth_share_of_features",
    "smooth_share_of_samples",
]

# Singular values below this share of the largest do not count as rank; the lowest eigenvectors
# of a graph are this many; pictures of matrices have at most so many pixels a side.
RANK_TOL, LOWEST, SIDE = 1e-2, 10, 100


def n_large(model: Any, X_clean: Array, X_corrupt: Array) -> int:
    """Number of singular values above a hundredth of the largest."""
    values = linalg.svdvals(_last(model).low_rank_)
    return int(np.count_nonzero(values > RANK_TOL * values[0]))


def share_of_nuclear_norm(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Sum of the singular values of the low-rank part over that of the data it was made of."""
    seen = _seen(model, X_corrupt)
    return float(linalg.svdvals(_last(model).low_rank_).sum() / linalg.svdvals(seen).sum())


def block_contrast(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Mean magnitude of the interaction of samples of one class over that of different classes."""
    interaction = np.abs(_interaction(model))
    same = y[:, None] == y
    return float(interaction[same].mean() / interaction[~same].mean())


def smooth_share_of_samples(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Share of the low-rank part in the ten lowest eigenvectors of the graph of the samples."""
    return _smooth_share(_coupling(model, "samples"))


def smooth_share_of_features(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Share of the low-rank part in the ten lowest eigenvectors of the graph of the features."""
    return _smooth_share(_coupling(model, "features"))


def show_interaction(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> dict[str, Any]:
    """Magnitude of the interaction of samples in the order of their classes."""
    order = np.argsort(y, kind="stable")
    magnitude = _smaller(np.abs(_interaction(model)[order][:, order]))
    # The diagonal is much larger than the blocks, and says nothing.
    return picture(magnitude, high=float(np.quantile(magnitude, 0.98)), zoom=2)


def show_singular_values(model: Any, X_clean: Array, X_corrupt: Array) -> dict[str, Any]:
    """Singular values of the low-rank part."""
    values = linalg.svdvals(_last(model).low_rank_)
    return curve(np.arange(1, len(values) + 1), values)


def show_singular_values_of_data(model: Any, X_clean: Array, X_corrupt: Array) -> dict[str, Any]:
    """Singular values of the data that the low-rank part was made of."""
    values = linalg.svdvals(_seen(model, X_corrupt))
    return curve(np.arange(1, len(values) + 1), values)


def show_sample_coupling(model: Any, X_clean: Array, X_corrupt: Array) -> dict[str, Any]:
    """First singular vectors (down) in the lowest eigenvectors of the sample graph (across)."""
    return _coupling_picture(_coupling(model, "samples"))


def show_feature_coupling(model: Any, X_clean: Array, X_corrupt: Array) -> dict[str, Any]:
    """First singular vectors (down) in the lowest eigenvectors of the feature graph (across)."""
    return _coupling_picture(_coupling(model, "features"))


def show_plane(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> dict[str, Any]:
    """The samples in the first two coordinates that the model gives them."""
    return points(coordinates(model, X_corrupt)[:, :2], y)


def _last(model: Any) -> Any:
    return model[-1] if hasattr(model, "steps") else model


def _seen(model: Any, X: Array) -> Array:
    """The data as the last step saw them."""
    return np.asarray(model[:-1].transform(X)) if hasattr(model, "steps") else X


def _interaction(model: Any) -> Array:
    return shape_interaction_matrix(_last(model).low_rank_, rank_tol=RANK_TOL)


def _coupling(model: Any, side: Literal["samples", "features"]) -> Array:
    last = _last(model)
    graph = last.sample_graph_ if side == "samples" else last.feature_graph_
    return coupling_matrix(last.low_rank_, laplacian(graph), side)


def _smooth_share(coupling: Array) -> float:
    squares = np.sum(coupling**2, axis=0)
    return float(squares[:LOWEST].sum() / squares.sum())


def _coupling_picture(coupling: Array) -> dict[str, Any]:
    corner = np.abs(coupling[:40, :40])
    decibel = 20 * np.log10(np.maximum(corner / corner.max(), 1e-9))
    return picture(decibel, low=-50, high=0, zoom=4)


def _smaller(A: Array) -> Array:
    """The same picture with at most `SIDE` pixels a side."""
    side = min(len(A), SIDE)
    return resize_images(A.reshape(1, -1), A.shape, (side, side)).reshape(side, side)
