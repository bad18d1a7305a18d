"""What a model has made of its training data: a low-rank approximation, or coordinates of it.

The papers score reconstructed data, codes or a low-rank part. All have the same distances, so that
as few coordinates as hold all distances do. An embedding with orthonormal columns is another thing
than the low-rank approximation that its loadings make of it.
"""

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.pipeline import Pipeline

from robustpca.bench.shown import points
from robustpca.engine.linalg import Array

__all__ = [
    "approximation",
    "coordinates",
    "last_step",
    "recovered",
    "show_plane",
    "singular_vectors",
]


def last_step(model: Any, X: Array) -> tuple[Any, Array]:
    """The last step of a pipeline and the data that it is given; other models as they are."""
    if not isinstance(model, Pipeline):
        return model, X
    return model[-1], np.asarray(model[:-1].transform(X)) if len(model) > 1 else X


def recovered(model: Any, X: Array) -> Array:
    """Low-rank approximation of the training data ``X``, with their mean.

    For the methods with an embedding this is not ``reconstruct``, which would project each sample
    by itself and forget the graph.
    """
    if hasattr(model, "low_rank_"):
        return np.asarray(model.low_rank_)
    codes = model.embedding_ if hasattr(model, "embedding_") else model.transform(X)
    return np.asarray(model.inverse_transform(codes))


def coordinates(model: Any, X: Array, n_clusters: int | None = None) -> Array:
    """Coordinates of the training data ``X``, as few as preserve all distances.

    The embedding of the model if it has one, which is that of the low-rank part where there is
    one; else the codes of ``X``, those along loadings that are not orthonormal in an orthonormal
    basis of their span. Of a pipeline, the last step counts.
    """
    model, X = last_step(model, X)
    embedding = getattr(model, "embedding_", None)
    return approximation(model, X) if embedding is None else np.asarray(embedding)


def approximation(model: Any, X: Array, n_clusters: int | None = None) -> Array:
    """As `coordinates`, but of the low-rank approximation that an embedding stands for."""
    model, X = last_step(model, X)
    codes = np.asarray(model.embedding_ if hasattr(model, "embedding_") else model.transform(X))
    if not hasattr(model, "loadings_"):
        return codes
    left, values, _ = linalg.svd(model.loadings_, full_matrices=False)
    return np.asarray(codes @ (left * values))


def singular_vectors(model: Any, X: Array, n_clusters: int) -> Array:
    """As many left singular vectors of the low-rank part as clusters; else `coordinates`.

    Without the singular values, all of them count alike.
    """
    low_rank = getattr(last_step(model, X)[0], "low_rank_", None)
    if low_rank is None:
        return coordinates(model, X)
    return np.asarray(linalg.svd(low_rank, full_matrices=False)[0][:, :n_clusters])


def show_plane(
    model: Any, X_clean: Array, X_corrupt: Array, y: Array, n_points: int | None = None
) -> dict[str, Any]:
    """The first ``n_points`` samples, or all, in the first two coordinates; coloured by class."""
    return points(coordinates(model, X_corrupt)[:n_points, :2], y[:n_points])
