"""Graphs of samples or features, as sparse adjacency matrices, and their Laplacians.

Examples
--------
>>> import numpy as np
>>> from robustpca.parts.graphs import grid_graph, knn_graph, laplacian
>>> X = np.array([[0.0], [1.0], [3.0]])
>>> knn_graph(X, 1, bandwidth=None).toarray()
array([[0., 1., 0.],
       [1., 0., 1.],
       [0., 1., 0.]])
>>> laplacian(grid_graph((3,)), normalized=False).toarray()
array([[ 1., -1.,  0.],
       [-1.,  2., -1.],
       [ 0., -1.,  1.]])
"""

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
    "adjacency_of_distances",
    "as_adjacency",
    "eigenvalue_bound",
    "grid_graph",
    "knn_graph",
    "laplacian",
    "locality_order",
    "nearest_neighbors",
    "neighbor_recall",
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
    r"""Connect each row of ``X`` to its nearest rows.

    The weight of an edge is :math:`\exp(-\lVert x_i - x_j \rVert^2 / \sigma^2)`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data, one vertex for each row; pass ``X.T`` for a graph of the features. NaN where a
        value is missing, see `nearest_neighbors`.
    n_neighbors : int, default=10
        Neighbours of each vertex; all others where there are no more than that.
    bandwidth : "mean", float or None, default="mean"
        The width sigma; ``"mean"`` is the mean distance of the directed edges. ``None`` gives
        all edges weight 1.
    symmetrize : {"max", "average", "mutual"}, default="max"
        Weight of an edge between two vertices only one of which has the other among its
        neighbours: in full, by half, or none.
    method : {"auto", "exact", "projected", "approximate"}, default="auto"
        How neighbours are searched, see `nearest_neighbors`.
    random_state : int, default=0
        Seed of the search.

    Returns
    -------
    adjacency : csr_array of shape (n_samples, n_samples)
        Symmetric weights in the precision of ``X``, with a zero diagonal.

    Warns
    -----
    UserWarning
        If some vertices are so far from all others that their weights are zero.
    """
    search = {"method": method, "random_state": random_state}
    adjacency, message = _knn_graph(X, n_neighbors, bandwidth, symmetrize, **search)
    if message:
        warnings.warn(message, UserWarning, stacklevel=2)
    return adjacency


def _knn_graph(
    X: ArrayLike,
    n_neighbors: int,
    bandwidth: Any = "mean",
    symmetrize: Symmetrize = "max",
    **search: Any,
) -> tuple[sparse.csr_array, str]:
    """The graph, and a message about vertices without any weight, or an empty one."""
    X = checked_rows(X, "X")
    check_option("symmetrize", symmetrize, get_args(Symmetrize))
    if bandwidth not in ("mean", None) and not 0 < float(bandwidth) < np.inf:
        raise ValueError(f'bandwidth={bandwidth!r} must be a positive number, "mean" or None.')
    if len(X) == 1 and n_neighbors >= 1:
        return sparse.csr_array((1, 1), dtype=X.dtype), ""
    n_neighbors = min(n_neighbors, len(X) - 1)
    indices, squares = nearest_neighbors(X, n_neighbors, **search)
    distances = np.sqrt(squares, dtype=np.float64)
    weights = _gaussian(distances, bandwidth).astype(X.dtype)
    isolated = (weights.max(axis=1) == 0) & np.isfinite(distances[:, 0])
    message = ""
    if isolated.any():
        message = (
            f"All weights of {np.count_nonzero(isolated)} vertices vanish: their neighbours are "
            f"{distances[isolated].min():.3g} or more away, too far for bandwidth={bandwidth!r}. "
            "Raise bandwidth, or use bandwidth=None for equal weights."
        )
    starts = np.arange(0, weights.size + 1, n_neighbors)
    directed = sparse.csr_array((weights.ravel(), indices.ravel(), starts), (len(X), len(X)))
    return _symmetric(directed, symmetrize), message


def laplacian(adjacency: sparse.csr_array, *, normalized: bool = True) -> sparse.csr_array:
    r"""Laplacian of a graph: :math:`I - D^{-1/2} A D^{-1/2}`, or :math:`D - A`.

    Parameters
    ----------
    adjacency : csr_array of shape (n_vertices, n_vertices)
        Symmetric weights A with a zero diagonal; D holds their row sums, the degrees.
    normalized : bool, default=True
        Whether to return the first form, whose eigenvalues are in [0, 2].

    Returns
    -------
    laplacian : csr_array of shape (n_vertices, n_vertices)
        Symmetric and positive semidefinite. A vertex without edges has a zero row in both forms.
    """
    graph = sparse.csr_array(adjacency)
    degrees = graph.sum(axis=1, dtype=np.float64)
    if normalized:
        roots = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        scale, degrees = sparse.diags_array(roots.astype(graph.dtype)), np.sign(degrees)
        graph = scale @ graph @ scale
    return _tidy((sparse.diags_array(degrees, format="csr") - graph).astype(graph.dtype))


def as_adjacency(graph: Any, n_vertices: int, name: str = "samples") -> sparse.csr_array:
    """Check a given graph and bring it to the form that the methods expect.

    Parameters
    ----------
    graph : array-like or sparse matrix of shape (n_vertices, n_vertices)
        Symmetric weights; or the result of ``kneighbors_graph`` or ``KNeighborsTransformer`` of
        scikit-learn: ones, or distances, which become Gaussian weights with their mean as
        bandwidth. Such a graph is recognised by being sparse, with equally many entries in each
        row, and not symmetric or with stored zeros between vertices.
    n_vertices : int
        Number of vertices that it must have.
    name : {"samples", "features"}, default="samples"
        What the vertices are, for error messages.

    Returns
    -------
    adjacency : csr_array of shape (n_vertices, n_vertices)
        Symmetric weights of at least 0 with a zero diagonal.
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
        raise ValueError(
            f"The graph is not symmetric: two directions differ by up to {difference:.3g}. Pass "
            "graph.maximum(graph.T), or make it with knn_graph(X)."
        )
    return adjacency_of_distances(edges) if (values != 1).any() else _symmetric(edges, "max")


def adjacency_of_distances(distances: Any) -> sparse.csr_array:
    """Symmetric weights of edges that are given by their lengths.

    Parameters
    ----------
    distances : csr_array of shape (n_vertices, n_vertices)
        Distances to the neighbours of each vertex; one that is stored is an edge, zero or not.

    Returns
    -------
    adjacency : csr_array of shape (n_vertices, n_vertices)
        Gaussian weights with the mean distance as bandwidth.
    """
    lengths = distances.data
    weights = _gaussian(lengths.astype(np.float64), "mean").astype(lengths.dtype)
    directed = sparse.csr_array((weights, distances.indices, distances.indptr), distances.shape)
    return _symmetric(directed, "max")


def adjacency_of(given: Any, X: Array, n_neighbors: int, name: str = "samples") -> sparse.csr_array:
    """Adjacency that a method uses: the given one, or that of the nearest rows of ``X``.

    Parameters
    ----------
    given : array-like, sparse matrix or None
        Graph that the user gave, as in `as_adjacency`.
    X : ndarray of shape (n_vertices, n_features)
        Data, one vertex for each row.
    n_neighbors : int
        Neighbours of each vertex in a graph that is made here.
    name : {"samples", "features"}, default="samples"
        What the vertices are, for error messages.

    Returns
    -------
    adjacency : csr_array of shape (n_vertices, n_vertices)
        Symmetric weights. A far outlier may have none, which is no reason to warn here.
    """
    if given is not None:
        return as_adjacency(given, X.shape[0], name)
    return _knn_graph(X, n_neighbors)[0]


def grid_graph(shape: Sequence[int], *, diagonals: bool = False) -> sparse.csr_array:
    """Connect the points of a grid, numbered in C order, to their neighbours.

    Parameters
    ----------
    shape : sequence of int
        ``(height, width)`` for the pixels of an image, ``(n_frames,)`` for a video, three
        numbers for a volume.
    diagonals : bool, default=False
        Whether to connect points that touch only at a corner or an edge as well.

    Returns
    -------
    adjacency : csr_array of shape (n_points, n_points)
        Symmetric; all weights are 1.
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


def eigenvalue_bound(laplacian: sparse.csr_array) -> float:
    """Upper bound on the largest eigenvalue of a Laplacian, by Lanczos iteration.

    Parameters
    ----------
    laplacian : csr_array of shape (n_vertices, n_vertices)
        As `laplacian` gives it.

    Returns
    -------
    bound : float
        At most a hundredth larger than the eigenvalue.
    """
    n_vertices, bound = laplacian.shape[0], float(abs(laplacian).sum(axis=1, dtype=float).max())
    if n_vertices <= 100:
        return float(linalg.eigvalsh(laplacian.toarray().astype(np.float64))[-1]) * (1 + 1e-12)
    if np.isin(laplacian.diagonal(), (0.0, 1.0)).all():
        bound = min(bound, 2.0)
    # After so many Lanczos steps from a random start, more than a hundredth is missing less
    # than once in a million times (Kuczynski and Wozniakowski, SIAM J. Matrix Anal. 1992).
    n_steps = int(np.log(1.648e6 * np.sqrt(n_vertices)) / (2 * np.sqrt(0.01)) + 1.5)
    diagonal, off_diagonal = np.zeros(n_steps), np.zeros(n_steps)
    new = np.random.default_rng(0).standard_normal(n_vertices).astype(laplacian.dtype)
    old = direction = np.zeros_like(new)
    for i in range(n_steps):
        size = float(linalg.norm(new))
        # The directions so far span an invariant subspace; the rest is rounding error.
        if size <= 1e-6 * bound:
            break
        old, direction = direction, new / size
        new = laplacian @ direction - size * old
        diagonal[i], off_diagonal[i] = new @ direction, size
        new -= float(diagonal[i]) * direction
    return min(float(linalg.eigvalsh_tridiagonal(diagonal, off_diagonal[1:])[-1]) / 0.99, bound)


def locality_order(adjacency: sparse.csr_array) -> Array:
    """Order the vertices so that neighbours are close, by the reverse Cuthill-McKee method.

    Parameters
    ----------
    adjacency : csr_array of shape (n_vertices, n_vertices)
        Graph, or its Laplacian.

    Returns
    -------
    order : ndarray of shape (n_vertices,)
        Indices of the vertices.
    """
    return np.asarray(csgraph.reverse_cuthill_mckee(sparse.csr_matrix(adjacency), True))


def _gaussian(distances: Array, bandwidth: Any) -> Array:
    """Weights of edges of these lengths; infinite ones weigh nothing."""
    finite = np.isfinite(distances)
    if bandwidth == "mean":
        bandwidth = distances.mean(where=finite) if finite.any() else None
    # Where all neighbours are duplicates, the width is zero and all weigh the same.
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
        raise ValueError(
            f"The graph has {given} vertices and X has {n_vertices} {name}; build it from the "
            f"same {same}."
        )
    if not np.isfinite(graph.data).all():
        raise ValueError("The graph has weights that are not finite; leave such edges out.")
    if smallest < 0:
        raise ValueError(f"The graph has weights down to {smallest:.3g}; give 0 or more.")
