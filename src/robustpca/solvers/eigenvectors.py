"""Extreme eigenvectors of one symmetric operator, and the embeddings that are made of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, eigsh

from robustpca.engine.checkpoint import followed
from robustpca.engine.linalg import Array, orthonormal, square_norms
from robustpca.engine.progress import Callback, Progress, ignore

Product = Callable[[Array], Array]

# Up to this size all products are formed and the matrix is decomposed.
DENSE_SIZE = 500
# Up to this many vertices an inverse is formed once; products with it are then fast.
DENSE_VERTICES = 1500
# Eigenvalues that differ by less are one and the same.
SAME = 1e-9
# Accuracy of eigenvectors that the next pass of a loop will change anyway.
ROUGH = 1e-6


def largest_eigenvectors(
    product: Product,
    size: int,
    count: int,
    against: Array | None = None,
    *,
    start: Array | None = None,
) -> tuple[Array, Array]:
    """Largest eigenvalues of a symmetric operator, in decreasing order, and their vectors.

    Parameters
    ----------
    product : callable
        Multiplies the operator by a block of columns. Its eigenvalues must lie in [-1, 1].
    size : int
        Number of rows of the operator.
    count : int
        How many eigenvectors to find.
    against : ndarray of shape (size, n_fixed), default=None
        Orthonormal columns; the operator is restricted to what is at right angles to them.
    start : ndarray of shape (size, count), default=None
        Eigenvectors of an operator nearby. A large problem is then solved to six digits only.

    Returns
    -------
    values : ndarray of shape (count,)
        Eigenvalues.
    vectors : ndarray of shape (size, count)
        Orthonormal eigenvectors, one per column.
    """
    fixed = np.zeros((size, 0)) if against is None else against
    if size <= DENSE_SIZE or 4 * count >= size:
        return _dense(product, size, count, fixed)
    if start is not None:
        return _lanczos(product, size, count, fixed, start=start, tol=ROUGH)
    values, vectors = _lanczos(product, size, count, fixed)
    # From one starting vector Lanczos finds one vector of a multiple eigenvalue, and the others
    # by rounding error or not at all. So the largest eigenvalue of the rest is compared.
    while True:
        held = np.hstack([fixed, vectors])
        if _lanczos(product, size, 1, held, tol=ROUGH)[0][0] <= values[-1] + SAME:
            return values, vectors
        value, vector = _lanczos(product, size, 1, held)
        order = np.argsort(-np.append(values, value), kind="stable")[:count]
        values = np.append(values, value)[order]
        vectors = np.hstack([vectors, vector])[:, order]


def _dense(product: Product, size: int, count: int, fixed: Array) -> tuple[Array, Array]:
    matrix = _restricted(product, fixed)(np.eye(size))
    matrix = (matrix + matrix.T) / 2
    chosen = (size - count, size - 1)
    try:
        values, vectors = linalg.eigh(matrix, subset_by_index=chosen, check_finite=False)
    except linalg.LinAlgError:
        values = np.empty(0)
    if len(values) < count:
        # LAPACK loses its way among many equal eigenvalues if only some are asked for.
        values, vectors = linalg.eigh(matrix, driver="evd", check_finite=False)
        values, vectors = values[-count:], vectors[:, -count:]
    return values[::-1], vectors[:, ::-1]


def _lanczos(
    product: Product,
    size: int,
    count: int,
    fixed: Array,
    *,
    start: Array | None = None,
    tol: float = 0.0,
) -> tuple[Array, Array]:
    inside = _restricted(product, fixed)

    # One more than the operator, so that no vector is sent to zero.
    def shifted(q: Array) -> Array:
        return q + inside(q.reshape(-1, 1)).reshape(q.shape)

    operator = LinearOperator((size, size), matvec=shifted, dtype=np.float64)
    begin = np.random.default_rng(0).standard_normal(size)
    # Where eigenvalues crowd, twice as many vectors as is usual save products.
    width = max(4 * count, 40)
    if start is not None:
        # Eigenvectors alone would leave the others out of the space that is built from them.
        begin = start.sum(axis=1) + begin * (1e-3 / np.sqrt(size))
        width = max(2 * count + 1, 20)
    values, vectors = eigsh(operator, count, which="LA", v0=begin, tol=tol, ncv=min(width, size))
    return values[::-1] - 1, vectors[:, ::-1]


def _restricted(product: Product, fixed: Array) -> Product:
    """The operator at right angles to ``fixed``, whose own directions come last of all."""
    if fixed.shape[1] == 0:
        return product

    def inside(A: Array) -> Array:
        held = fixed.T @ A
        image = product(A - fixed @ held)
        return image - fixed @ (fixed.T @ image + 2 * held)

    return inside


def largest_eigenvalue(laplacian: Any) -> float:
    """Largest eigenvalue of a Laplacian, to rounding error."""
    bound = float(abs(laplacian).sum(axis=1).max())
    if bound == 0:
        return 0.0
    values, _ = largest_eigenvectors(lambda A: laplacian @ A / bound, laplacian.shape[0], 1)
    return bound * float(values[0])


def largest_square(X: Array) -> float:
    """Square of the largest singular value."""
    total = float(np.vdot(X, X))
    if total == 0:
        return 0.0
    tall = X if len(X) >= X.shape[1] else X.T
    values, _ = largest_eigenvectors(lambda A: tall.T @ (tall @ A) / total, tall.shape[1], 1)
    return total * float(values[0])


def graph_weight(X: Array, laplacian: Any, beta: float) -> float:
    """Weight of the graph at which its share of both terms, each of norm one, is ``beta``."""
    largest = largest_eigenvalue(laplacian) if beta > 0 else 0.0
    return beta / (1 - beta) * largest_square(X) / largest if largest > 0 else 0.0


@dataclass(frozen=True)
class Embedding:
    """Two factors whose product ``codes @ loadings`` is near the data."""

    codes: Array
    loadings: Array


def graph_embedding(
    X: Array,
    laplacian: Any,
    n_components: int,
    weight: float,
    *,
    exclude_constant: bool = False,
    start: Array | None = None,
) -> Embedding:
    """Minimise ``|X - Q B|^2 + weight tr(Q' L Q)`` over ``B`` and ``Q`` with ``Q' Q = I``.

    The columns of Q, the codes, are the first eigenvectors of ``weight L - X X'``, least
    eigenvalue first; with ``exclude_constant``, among those at right angles to a constant.
    """
    against = np.full((len(X), 1), len(X) ** -0.5) if exclude_constant else None
    bound = float(np.vdot(X, X)) + weight * float(abs(laplacian).sum(axis=1).max())
    scale = 1 / bound if bound > 0 else 0.0

    def product(A: Array) -> Array:
        return scale * (X @ (X.T @ A)) - (scale * weight) * (laplacian @ A)

    _, codes = largest_eigenvectors(product, len(X), n_components, against, start=start)
    return Embedding(codes, codes.T @ X)


def roughness(codes: Array, laplacian: Any) -> float:
    """The trace of ``Q' L Q``: how much neighbours differ."""
    return float(np.vdot(codes, laplacian @ codes))


# How the penalty grows from pass to pass, and up to where, for rows of length one.
GROWTH, LARGEST_PENALTY = 1.05, 1e10
# Residual norms below this share of a usual row count the same in polishing the loadings.
SHORTEST = 1e-9


@dataclass(frozen=True)
class RobustEmbedding:
    """The best pair of all passes, and how the search ended."""

    best: Embedding
    objective: Array
    n_iter: int
    converged: bool
    change: float


def robust_embedding(
    X: Array,
    laplacian: Any,
    n_components: int,
    weight: float,
    *,
    starts: Sequence[float],
    unit: float,
    exclude_constant: bool,
    tol: float,
    max_iter: int,
    callback: Callback = ignore,
) -> RobustEmbedding:
    """Minimise the sum of the row norms of ``X - Q B`` plus ``weight tr(Q' L Q)``, ``Q' Q = I``.

    The problem is not convex, and no pass is sure to lower the objective, so the best pair is
    returned. The search begins at the best of the solutions for squared errors with the weights
    ``starts``. An augmented Lagrangian method splits the data until both parts agree; then the
    loadings are made optimal for the codes of the best pair. A typical row has norm ``unit``.
    """

    def solve(target: Array, weight: float, start: Array | None = None) -> Embedding:
        return graph_embedding(
            target, laplacian, n_components, weight, exclude_constant=exclude_constant, start=start
        )

    def measure(pair: Embedding) -> tuple[float, Array]:
        """The objective of a pair, and what it leaves of the data."""
        rest = X - pair.codes @ pair.loadings
        value = float(np.sqrt(square_norms(rest)).sum())
        return value + weight * roughness(pair.codes, laplacian), rest

    tiny = float(np.finfo(np.float64).tiny)
    first = min((solve(X, start) for start in starts), key=lambda pair: measure(pair)[0])
    least, errors = measure(first)
    size = max(float(np.linalg.norm(X)), tiny)
    at = _Position(first, first, least, errors, np.zeros_like(X), 1 / unit, [least])
    with followed(at) as between_passes:
        while not at.agreed and len(at.history) <= max_iter:
            between_passes()
            at.pair = solve(X - at.errors + at.dual, 2 * weight / at.penalty, start=at.pair.codes)
            value, rest = measure(at.pair)
            if value < at.least:
                at.best, at.least = at.pair, value
            at.errors = row_shrink(rest + at.dual, 1 / at.penalty)
            moved = rest + at.dual - at.errors
            at.change = float(np.linalg.norm(moved - at.dual)) / size
            at.agreed = at.change <= tol
            # The multiplier is the penalty times the dual, and does not change when the penalty
            # does.
            grown = min(GROWTH * at.penalty, LARGEST_PENALTY / unit)
            at.dual, at.penalty = moved * (at.penalty / grown), grown
            at.history.append(at.least)
            callback(Progress(len(at.history) - 1, at.least, at.change, phase="splitting"))
        while at.agreed and not at.polished and len(at.history) <= max_iter:
            between_passes()
            norms = np.sqrt(square_norms(measure(at.best)[1]))
            roots = 1 / np.sqrt(np.maximum(norms, SHORTEST * unit))[:, None]
            loadings = linalg.lstsq(roots * at.best.codes, roots * X, check_finite=False)[0]
            at.pair = Embedding(at.best.codes, loadings)
            value, before = measure(at.pair)[0], at.least
            if value < at.least:
                at.best, at.least = at.pair, value
            at.change = (before - at.least) / max(before, tiny)
            at.polished = at.change <= tol
            at.history.append(at.least)
            callback(Progress(len(at.history) - 1, at.least, at.change, phase="polishing"))
    n_iter, objective = len(at.history) - 1, np.array(at.history)
    return RobustEmbedding(at.best, objective, n_iter, at.polished, at.change)


@dataclass
class _Position:
    """What a pass of `robust_embedding` changes."""

    best: Embedding
    pair: Embedding
    least: float
    errors: Array
    dual: Array
    penalty: float
    history: list[float]
    change: float = np.inf
    agreed: bool = False
    polished: bool = False


def smooth_factors(X: Array, laplacian: Any, n_components: int, smoothness: float) -> Embedding:
    """Minimise ``|X - Z V'|^2 + smoothness tr(Z' L Z)`` over ``Z`` and ``V`` with ``V' V = I``.

    With the codes Z eliminated, V are the first eigenvectors of ``X' (I + smoothness L)^-1 X``.
    """
    total = float(np.vdot(X, X)) or 1.0
    smooth = graph_smoother(laplacian, smoothness)

    if len(X) >= X.shape[1]:
        coordinates, turn = X, None
    else:
        # Rows span no more directions than there are rows: as many coordinates will do.
        turn, coordinates = linalg.qr(X.T, mode="economic", check_finite=False)
        coordinates = np.ascontiguousarray(coordinates.T)

    def product(A: Array) -> Array:
        return coordinates.T @ smooth(coordinates @ A) / total

    _, axes = largest_eigenvectors(product, coordinates.shape[1], n_components)
    components = (axes if turn is None else turn @ axes).T
    return Embedding(smooth(X @ components.T), components)


def graph_smoother(laplacian: Any, factor: float) -> Product:
    """Multiplication by the inverse of ``I + factor * laplacian``."""
    n_vertices = laplacian.shape[0]
    if factor == 0:
        return np.asarray
    if n_vertices > DENSE_VERTICES:
        return partial(conjugate_gradients, laplacian, factor)
    system = np.eye(n_vertices) + factor * sparse.csr_array(laplacian).toarray()
    inverse = linalg.inv(system, overwrite_a=True)
    return lambda A: inverse.astype(A.dtype, copy=False) @ A


def conjugate_gradients(laplacian: Any, factor: float, A: Array) -> Array:
    """Solve ``(I + factor * laplacian) Z = A`` for all columns at once, to rounding error."""
    Z = A.copy()
    residual = -factor * (laplacian @ A)
    direction = residual.copy()
    squares = np.einsum("ij,ij->j", residual, residual)
    enough = squares.max(initial=0.0) * np.finfo(A.dtype).eps ** 2
    for _ in range(10 * A.shape[0]):
        if squares.max(initial=0.0) <= enough:
            break
        image = direction + factor * (laplacian @ direction)
        curve = np.einsum("ij,ij->j", direction, image)
        ahead = np.where(curve > 0, squares / np.where(curve > 0, curve, 1), 0).astype(A.dtype)
        Z += ahead * direction
        residual -= ahead * image
        previous, squares = squares, np.einsum("ij,ij->j", residual, residual)
        turn = np.where(previous > 0, squares / np.where(previous > 0, previous, 1), 0)
        direction = residual + turn.astype(A.dtype) * direction
    return Z


def row_shrink(A: Array, threshold: float) -> Array:
    """Shorten every row by ``threshold``, to zero at the least: proximal step of the l2,1 norm."""
    # Squares of what is divided by the largest entry can neither overflow nor vanish.
    largest = np.abs(A).max(axis=1, initial=0.0).astype(np.float64)
    units = np.where(largest > 0, largest, 1.0)
    norms = units * np.sqrt(square_norms(A / units[:, None]))
    factors = 1 - threshold / np.maximum(norms, max(threshold, np.finfo(np.float64).tiny))
    return A * factors.astype(A.dtype)[:, None]


@dataclass(frozen=True)
class Cuts:
    """Solutions of ``(D - A) y = l D y``, least l first; rows of isolated vertices are zero."""

    values: Array
    vectors: Array
    n_parts: int


def joined_vertices(adjacency: Any) -> Array:
    """Mask of the vertices that have an edge."""
    return np.asarray(adjacency.sum(axis=1, dtype=np.float64) > 0).ravel()


def normalized_cuts(adjacency: Any, count: int) -> Cuts:
    """First eigenvectors of the generalised problem of a graph, with ``Y' D Y = I``.

    Those of eigenvalue zero are constant on each connected part of the graph, and the first of
    all is constant. Should there be more parts than vectors, the largest are told apart.
    """
    joined = joined_vertices(adjacency)
    graph = adjacency[joined][:, joined].astype(np.float64)
    roots = np.sqrt(graph.sum(axis=1))
    n_parts, part = csgraph.connected_components(graph, directed=False)
    by_volume = np.argsort(-np.bincount(part, roots**2), kind="stable")
    # One of the parts follows from the others and the constant.
    n_known = min(n_parts, count)
    known = np.column_stack([np.ones(len(part)), *(part == k for k in by_volume[: n_known - 1])])
    found = orthonormal(roots[:, None] * known)
    values = np.zeros(n_known)
    if n_known < count:

        def product(A: Array) -> Array:
            return (graph @ (A / roots[:, None])) / roots[:, None]

        more, vectors = largest_eigenvectors(product, len(roots), count - n_known, found)
        values = np.append(values, np.clip(1 - more, 0.0, 2.0))
        found = np.hstack([found, vectors])
    vectors = np.zeros((len(joined), count))
    vectors[joined] = found / roots[:, None]
    return Cuts(values, vectors, int(n_parts))
