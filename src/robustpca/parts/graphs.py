"""Graphs of rows or columns, as sparse adjacencies, and their Laplacians."""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from scipy.sparse import csgraph

from robustpca.engine.linalg import Array
from robustpca.engine.neighbors import (
    Method,
    check_option,
    checked_rows,
    nearest_neighbors,
    neighbor_recall,
)

__all__ = [
    "adjacency_of",
    "as_adjacency",
    "grid_graph",
    "knn_graph",
    "laplacian",
    "locality_order",
    "nearest_neighbors",
    "neighbor_recall",
    "spectral_norm",
]

Symmetrize = Literal["max", "average", "mutual"]


def knn_graph(
    X: ArrayLike,
    n_neighbors: int = 10,
    *,
    bandwidth: Literal["mean"] | float | None = "mean",
    symmetrize: Symmetrize = "max",
    method: Method = "auto",
    random_state: int = 0,
) -> sparse.csr_array:
    r"""Adjacency of the rows of ``X`` (for its features: of ``X.T``), joined to the nearest.

    The weight of an edge is :math:`\exp(-\lVert x_i - x_j \rVert^2 / \sigma^2)`. The matrix is
    symmetric, with a zero diagonal, and in the precision of ``X``.

    Parameters
    ----------
    X, method, random_state
        As in `nearest_neighbors`; each row is a vertex.
    n_neighbors : int, default=10
        Neighbours of each vertex; all others where there are no more than that.
    bandwidth : "mean", float or None, default="mean"
        The width sigma; ``"mean"`` is the mean distance of the directed edges. ``None`` gives
        all edges weight 1.
    symmetrize : {"max", "average", "mutual"}, default="max"
        Weight of an edge between two vertices only one of which has the other among its
        neighbours: in full, by half, or none.
    """
    X = checked_rows(X, "X")
    check_option("symmetrize", symmetrize, get_args(Symmetrize))
    if bandwidth not in ("mean", None) and not 0 < float(bandwidth) < np.inf:
        raise ValueError(f'bandwidth={bandwidth!r} must be a positive number, "mean" or None.')
    if len(X) == 1 and n_neighbors >= 1:
        return sparse.csr_array((1, 1), dtype=X.dtype)
    n_neighbors = min(n_neighbors, len(X) - 1)
    indices, gaps = nearest_neighbors(X, n_neighbors, method=method, random_state=random_state)
    distances = np.sqrt(gaps, dtype=np.float64)
    weights = _gaussian(distances, bandwidth).astype(X.dtype)
    alone = (weights.max(axis=1) == 0) & np.isfinite(distances[:, 0])
    if alone.any():
        told = f"All weights of {np.count_nonzero(alone)} vertices vanish: their neighbours are "
        told += f"{distances[alone].min():.3g} or more away, too far for bandwidth={bandwidth!r}. "
        told += "Raise bandwidth, or use bandwidth=None for equal weights."
        warnings.warn(told, UserWarning, stacklevel=2)
    starts = np.arange(0, weights.size + 1, n_neighbors)
    directed = sparse.csr_array((weights.ravel(), indices.ravel(), starts), (len(X), len(X)))
    return _symmetric(directed, symmetrize)


def laplacian(adjacency: sparse.csr_array, *, normalized: bool = True) -> sparse.csr_array:
    r"""Laplacian of a graph: :math:`I - D^{-1/2} A D^{-1/2}`, or :math:`D - A`.

    The spectrum of the first is in [0, 2]. A vertex without edges has a zero row in both, and
    so carries no penalty.
    """
    graph = sparse.csr_array(adjacency)
    degrees = graph.sum(axis=1, dtype=np.float64)
    if normalized:
        roots = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        scale, degrees = sparse.diags_array(roots.astype(graph.dtype)), np.sign(degrees)
        graph = scale @ graph @ scale
    return _tidy((sparse.diags_array(degrees, format="csr") - graph).astype(graph.dtype))


def as_adjacency(graph: Any, n_vertices: int, name: str = "samples") -> sparse.csr_array:
    """Make an adjacency of a given graph: symmetric, not negative, zero diagonal.

    The graph holds symmetric weights, sparse or dense; or it is what ``kneighbors_graph`` and
    ``KNeighborsTransformer`` of scikit-learn give: ones, or distances, which become Gaussian
    weights with their mean as bandwidth. Such a graph is known by being sparse, with equally
    many entries in each row, and not symmetric or with stored zeros between vertices. It
    should have ``n_vertices`` vertices, the ``name`` ("samples" or "features") of ``X``.
    """
    stored = sparse.csr_array(graph if sparse.issparse(graph) else np.atleast_2d(graph))
    _check_graph(stored, n_vertices, name)
    per_row = np.diff(stored.indptr)
    rows = np.repeat(np.arange(n_vertices), per_row)
    off = rows != stored.indices
    values, places = stored.data[off], (rows[off], stored.indices[off])
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64)
    edges = sparse.csr_array((values, places), stored.shape)
    difference = float(abs(edges - edges.T).max())
    # Weights that were computed in both directions may differ by rounding.
    rounding = 100 * np.finfo(values.dtype).eps * values.max(initial=0.0)
    of_neighbors = sparse.issparse(graph) and (per_row == per_row[0]).all()
    if difference <= rounding and not (of_neighbors and (values == 0).any()):
        return _symmetric(edges, "average")
    if not of_neighbors:
        told = f"The graph is not symmetric: two directions differ by up to {difference:.3g}"
        raise ValueError(f"{told}. Pass graph.maximum(graph.T), or make it with knn_graph(X).")
    if (values != 1).any():
        values = _gaussian(values.astype(np.float64), "mean").astype(values.dtype)
    return _symmetric(sparse.csr_array((values, places), stored.shape), "max")


def adjacency_of(given: Any, X: Array, n_neighbors: int, name: str = "samples") -> sparse.csr_array:
    """Adjacency that a user gave, or one of the nearest rows of ``X`` if it is None."""
    if given is not None:
        return as_adjacency(given, X.shape[0], name)
    with warnings.catch_warnings():
        # A far outlier may be too far for a tie of any weight; it is then left to itself.
        warnings.filterwarnings("ignore", message="All weights of", category=UserWarning)
        return knn_graph(X, n_neighbors)


def grid_graph(shape: Sequence[int], *, diagonals: bool = False) -> sparse.csr_array:
    """Adjacency of the points of a grid, numbered in C order; all weights are 1.

    ``shape`` is ``(height, width)`` for the pixels of an image, ``(n_frames,)`` for a video,
    three numbers for a volume. ``diagonals`` joins points that touch at a corner as well.
    """
    if len(shape) == 0 or min(shape) < 1:
        raise ValueError(f"shape={tuple(shape)} is no grid; give one positive size per axis.")
    numbers = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    grid = sparse.csr_array((numbers.size, numbers.size))
    for step in itertools.product((-1, 0, 1), repeat=len(shape)):
        # Of a step and the opposite one, the second follows from symmetry.
        if step > (0,) * len(shape) and (diagonals or np.count_nonzero(step) == 1):
            moves = list(zip(step, shape, strict=True))
            starts = numbers[tuple(slice(max(-s, 0), n - max(s, 0)) for s, n in moves)].ravel()
            ends = numbers[tuple(slice(max(s, 0), n - max(-s, 0)) for s, n in moves)].ravel()
            grid += sparse.csr_array((np.ones(len(ends)), (starts, ends)), grid.shape)
    return _symmetric(grid, "max")


def spectral_norm(laplacian: sparse.csr_array) -> float:
    """Largest eigenvalue of a Laplacian, at most a hundredth too large and never too small."""
    n_vertices, bound = laplacian.shape[0], float(abs(laplacian).sum(axis=1, dtype=float).max())
    if n_vertices <= 100:
        return float(linalg.eigvalsh(laplacian.toarray().astype(np.float64))[-1]) * (1 + 1e-12)
    if np.isin(laplacian.diagonal(), (0.0, 1.0)).all():
        bound = min(bound, 2.0)
    # After so many Lanczos steps from a random start, more than a hundredth is missing less
    # than once in a million times (Kuczynski and Wozniakowski, SIAM J. Matrix Anal. 1992).
    n_steps = int(np.log(1.648e6 * np.sqrt(n_vertices)) / (2 * np.sqrt(0.01)) + 1.5)
    diagonal, beside = np.zeros(n_steps), np.zeros(n_steps)
    new = np.random.default_rng(0).standard_normal(n_vertices).astype(laplacian.dtype)
    old = direction = np.zeros_like(new)
    for i in range(n_steps):
        size = float(linalg.norm(new))
        # The directions so far hold everything; beyond, there is only rounding error.
        if size <= 1e-6 * bound:
            break
        old, direction = direction, new / size
        new = laplacian @ direction - size * old
        diagonal[i], beside[i] = new @ direction, size
        new -= float(diagonal[i]) * direction
    return min(float(linalg.eigvalsh_tridiagonal(diagonal, beside[1:])[-1]) / 0.99, bound)


def locality_order(adjacency: sparse.csr_array) -> Array:
    """Order of the vertices in which neighbours are close: reverse Cuthill-McKee."""
    return np.asarray(csgraph.reverse_cuthill_mckee(sparse.csr_matrix(adjacency), True))


def _gaussian(distances: Array, bandwidth: Any) -> Array:
    """Weights of edges of these lengths; infinite ones weigh nothing."""
    finite = np.isfinite(distances)
    if bandwidth == "mean":
        bandwidth = distances.mean(where=finite) if finite.any() else None
    # Where all neighbours are duplicates, there is no width and all weigh the same.
    if not bandwidth:
        return finite.astype(np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-((distances / bandwidth) ** 2)))


def _symmetric(directed: sparse.csr_array, how: Symmetrize) -> sparse.csr_array:
    other = directed.T.tocsr()
    if how == "average":
        return _tidy((directed + other) * 0.5)
    return _tidy(directed.maximum(other) if how == "max" else directed.minimum(other))


def _tidy(graph: sparse.csr_array) -> sparse.csr_array:
    """Sorted, without stored zeros, and with indices as small as can be."""
    graph.eliminate_zeros()
    graph.sort_indices()
    dtype = np.int32 if graph.nnz < 2**31 else np.int64
    graph.indices, graph.indptr = graph.indices.astype(dtype), graph.indptr.astype(dtype)
    return graph


def _check_graph(graph: sparse.csr_array, n_vertices: int, name: str) -> None:
    given, smallest = graph.shape[0], graph.data.min(initial=0)
    if graph.shape != (given, given):
        raise ValueError(f"The graph has shape {graph.shape}, but should be a square matrix.")
    if given != n_vertices:
        same = "columns with knn_graph(X.T)" if name == "features" else "rows with knn_graph(X)"
        told = f"The graph has {given} vertices and X has {n_vertices} {name}"
        raise ValueError(f"{told}; build it from the same {same}.")
    if not np.isfinite(graph.data).all():
        raise ValueError("The graph has weights that are not finite; leave such edges out.")
    if smallest < 0:
        raise ValueError(f"The graph has weights down to {smallest:.3g}; give 0 or more.")
