"""What a fit has done to singular values and singular vectors."""

from typing import Any, Literal

import numpy as np

from robustpca.bench.shown import curve, picture
from robustpca.datasets import resize_images
from robustpca.diagnostics import (
    SingularValues,
    coupling_matrix,
    shape_interaction_matrix,
    singular_values_before_and_after,
)
from robustpca.engine.linalg import Array
from robustpca.papers.approximations import last_step
from robustpca.parts.graphs import laplacian

__all__ = [
    "block_contrast",
    "n_large",
    "share_of_nuclear_norm",
    "show_coupling",
    "show_interaction",
    "show_singular_values",
    "smooth_share",
]

# Singular values below this share of the largest do not count as rank; the lowest eigenvectors
# of a graph are this many; pictures of matrices have at most so many pixels a side.
RANK_TOL, LOWEST, N_PIXELS = 1e-2, 10, 100

Side = Literal["samples", "features"]


def n_large(model: Any, X_clean: Array, X_corrupt: Array) -> int:
    """Number of singular values above a hundredth of the largest."""
    return _singular_values(model, X_corrupt).rank_after


def share_of_nuclear_norm(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Sum of the singular values of the low-rank part over that of the data it was made of."""
    values = _singular_values(model, X_corrupt)
    return float(values.after.sum() / values.before.sum())


def block_contrast(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Mean magnitude of the interaction of samples of one class over that of different classes."""
    interaction = np.abs(_interaction(model, X_corrupt))
    same = y[:, None] == y
    return float(interaction[same].mean() / interaction[~same].mean())


def smooth_share(model: Any, X_clean: Array, X_corrupt: Array, side: Side) -> float:
    """Share of the low-rank part in the ten lowest eigenvectors of one of its graphs."""
    squares = np.sum(_coupling(model, X_corrupt, side) ** 2, axis=0)
    return float(squares[:LOWEST].sum() / squares.sum())


def show_interaction(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> dict[str, Any]:
    """Magnitude of the interaction of samples in the order of their classes."""
    order = np.argsort(y, kind="stable")
    magnitude = _smaller(np.abs(_interaction(model, X_corrupt)[order][:, order]))
    # The diagonal is much larger than the blocks, and says nothing.
    return picture(magnitude, high=float(np.quantile(magnitude, 0.98)), zoom=2)


def show_singular_values(
    model: Any, X_clean: Array, X_corrupt: Array, of: Literal["before", "after"]
) -> dict[str, Any]:
    """Singular values of the data before the fit, or of the low-rank part after it."""
    values = getattr(_singular_values(model, X_corrupt), of)
    return curve(np.arange(1, len(values) + 1), values)


def show_coupling(model: Any, X_clean: Array, X_corrupt: Array, side: Side) -> dict[str, Any]:
    """First singular vectors (down) in the lowest eigenvectors of one of the graphs (across)."""
    corner = np.abs(_coupling(model, X_corrupt, side)[:40, :40])
    decibel = 20 * np.log10(np.maximum(corner / corner.max(), 1e-9))
    return picture(decibel, low=-50, high=0, zoom=4)


def _singular_values(model: Any, X: Array) -> SingularValues:
    last, given = last_step(model, X)
    return singular_values_before_and_after(given, last.low_rank_, rank_tol=RANK_TOL)


def _interaction(model: Any, X: Array) -> Array:
    return shape_interaction_matrix(last_step(model, X)[0].low_rank_, rank_tol=RANK_TOL)


def _coupling(model: Any, X: Array, side: Side) -> Array:
    last, _ = last_step(model, X)
    graph = last.sample_graph_ if side == "samples" else last.feature_graph_
    return coupling_matrix(last.low_rank_, laplacian(graph), side)


def _smaller(A: Array) -> Array:
    """The same picture with at most `N_PIXELS` pixels a side."""
    side = min(len(A), N_PIXELS)
    return resize_images(A.reshape(1, -1), A.shape, (side, side)).reshape(side, side)
