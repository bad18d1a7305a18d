"""Scores of the FRPCAG paper: time for graphs, alignment with the covariance, Theorem 2."""

from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.metrics import silhouette_score

from robustpca.bench.shown import picture
from robustpca.diagnostics import Theorem2Bound, alignment_order, theorem2_bound
from robustpca.engine.linalg import Array
from robustpca.papers.approximations import coordinates
from robustpca.papers.frpcag.estimators import SIDES

__all__ = [
    "alignment",
    "bound",
    "graph_seconds",
    "printed_ratio",
    "seconds_after_graphs",
    "separation",
    "show_covariance_eigenvectors",
    "show_covariance_in_graph",
    "show_laplacian_eigenvectors",
]


def separation(model: Any, X_clean: Array, X_corrupt: Array, y: Array) -> float:
    """Silhouette of the classes, from -1 to 1: how much nearer samples are to their own."""
    return float(silhouette_score(coordinates(model, X_corrupt), y))


def seconds_after_graphs(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """Seconds of the method itself, once it has its graphs."""
    return float(model.loop_seconds_)


def graph_seconds(model: Any, X_clean: Array, X_corrupt: Array, side: str) -> float:
    """Seconds for the graph of the samples or of the features; NaN if the method has none."""
    spent = [s for name, s in model.graph_seconds_.items() if SIDES[name] == side]
    return sum(spent) if spent else float("nan")


def alignment(model: Any, X_clean: Array, X_corrupt: Array) -> float:
    """How nearly the eigenvectors of the graph of the features diagonalise the covariance."""
    return alignment_order(X_corrupt, model.laplacian_)


def show_covariance_eigenvectors(
    model: Any, X_clean: Array, X_corrupt: Array, image_shape: Any
) -> dict[str, Any]:
    """The 16 eigenvectors of the covariance about the mean of all entries with most variance."""
    _, vectors = np.linalg.eigh(_covariance(X_corrupt))
    return _eigenimages(vectors[:, :-17:-1], image_shape)


def show_laplacian_eigenvectors(
    model: Any, X_clean: Array, X_corrupt: Array, image_shape: Any
) -> dict[str, Any]:
    """The 16 smoothest eigenvectors of the Laplacian whose eigenvalue is not zero."""
    values, vectors = np.linalg.eigh(model.laplacian_.toarray())
    first = int(np.argmax(values > 1e-9))
    return _eigenimages(vectors[:, first : first + 16], image_shape)


def show_covariance_in_graph(model: Any, X_clean: Array, X_corrupt: Array) -> dict[str, Any]:
    """The covariance in the basis of the graph, in decibel: white is the largest, black -50 dB."""
    _, vectors = np.linalg.eigh(model.laplacian_.toarray())
    gram = np.abs(vectors.T @ _covariance(X_corrupt) @ vectors)
    return picture(10 * np.log10(np.maximum(gram / gram.max(), 1e-9)), low=-50, high=0)


def bound(
    model: Any,
    X_clean: Array,
    X_corrupt: Array,
    extras: Any,
    side: Literal["left", "right", "ratio"] = "ratio",
) -> float:
    """Left or right side of Theorem 2, or their ratio, which is at most 1.

    On the left are misfit and roughness of the low-rank part, on the right are the size of the
    corruption and gaps of the eigenvalues.
    """
    found = _bound(model, X_clean, X_corrupt, extras)
    return {"left": found.lhs, "right": found.rhs, "ratio": found.lhs / found.rhs}[side]


def printed_ratio(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> float:
    """Left over right side with the weights on the left that are printed, not those proved."""
    U = model.model_.low_rank_
    left = float(np.abs(U - X_corrupt).sum())
    for A, matrix, count, weight in zip(
        (U, U.T), model.laplacians_, model.counts_, model.weights_, strict=True
    ):
        inside = float(np.sum((_lowest(matrix, count).T @ A) ** 2))
        left += weight * (float(np.sum(A**2)) - inside)
    return left / _bound(model, X_clean, X_corrupt, extras).rhs


def _bound(model: Any, X_clean: Array, X_corrupt: Array, extras: Any) -> Theorem2Bound:
    """Both sides, for the part of the clean data that is low-rank on both graphs."""
    clean = np.asarray(extras.get("low_rank", X_clean), float)
    samples, features = (
        _lowest(matrix, count)
        for matrix, count in zip(model.laplacians_, model.counts_, strict=True)
    )
    star = samples @ (samples.T @ clean @ features) @ features.T
    return theorem2_bound(
        model.model_.low_rank_,
        X_corrupt,
        star,
        model.laplacians_[0],
        model.laplacians_[1],
        n_sample=model.counts_[0],
        n_feature=model.counts_[1],
        smoothness=model.smoothness,
    )


def _lowest(matrix: sparse.csr_array, count: int) -> Array:
    """The lowest eigenvectors of a Laplacian, in columns."""
    return np.asarray(np.linalg.eigh(matrix.toarray().astype(np.float64))[1][:, :count])


def _covariance(X: Array) -> Array:
    centred = X - X.mean()
    return centred.T @ centred / len(X)


def _eigenimages(vectors: Array, image_shape: Any) -> dict[str, Any]:
    """Columns as images, each scaled by its largest entry, which is made positive."""
    peaks = vectors[np.abs(vectors).argmax(axis=0), range(vectors.shape[1])]
    return picture((vectors / peaks).T.reshape(-1, *image_shape), low=-1, high=1, zoom=2)
