"""PCA that knows which samples are neighbours: one eigenproblem, or a loop of such.

A method supplies a symmetric operator made of the data and the Laplacian of a graph, and
`solvers.eigenvectors` solves it.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.linalg import Array, flip_signs, orthonormal, principal_axes, square_norms
from robustpca.engine.progress import Callback, ClosedForm
from robustpca.engine.rows import Rows
from robustpca.models.base import Fit, ObliqueModel, Subspace, SubspaceModel, reporter, unconverged
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.centers import CENTERS
from robustpca.parts.graphs import adjacency_of, laplacian
from robustpca.solvers.eigenvectors import (
    Embedding,
    graph_embedding,
    graph_weight,
    robust_embedding,
    roughness,
    smooth_factors,
)

__all__ = ["GLPCA", "MMF", "RGLPCA"]


@dataclass(frozen=True)
class GraphData:
    """The rows about their mean in double precision, and a graph of them."""

    rows: Rows
    mean: Array
    X: Array
    graph: Any
    laplacian: Any

    def subspace(self, components: Array, variances: Array, weights: Array) -> Subspace:
        """The span of those components (rows) that have variance."""
        basis, norms = components[variances > 0], square_norms(self.X)
        return Subspace.of(
            self.rows,
            self.mean,
            components,
            residuals=square_norms(self.X - (self.X @ basis.T) @ basis),
            sample_weights=weights,
            variances=variances,
            total=float(weights / weights.sum() @ norms),
            floor=self.rows.floor * float(np.sqrt(norms.mean())),
        )


class GraphModel(SubspaceModel):
    """What the methods with a graph of the samples share."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "graph": ["array-like", "sparse matrix", None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "normalized": ["boolean"],
    }
    _accept_sparse = False
    _by_blocks = False

    graph: Any
    n_neighbors: int
    normalized: bool
    embedding_: Array
    graph_: Any

    def _data(self, rows: Rows, center: str) -> GraphData:
        # Bad numbers in data that were not in memory are found here.
        mean = CENTERS[center](rows)
        X = rows.whole()
        graph = adjacency_of(self.graph, X, self.n_neighbors)
        matrix = laplacian(graph, normalized=self.normalized).astype(np.float64)
        # The centre as it will be stored.
        mean = mean.astype(rows.dtype).astype(np.float64)
        return GraphData(rows, mean, X.astype(np.float64) - mean, graph, matrix)


class EmbeddingModel(GraphModel, ObliqueModel):
    """A subspace that is spanned by the loadings of an embedding."""

    exclude_constant: bool
    alpha_: float

    def _rank(self, rows: Rows) -> int:
        n, d = rows.shape
        if self.n_components is None:
            return min(n - self.exclude_constant, d)
        if self.n_components == n <= d and self.exclude_constant:
            raise ValueError(
                f"n_components={n} is more than {n} samples can give without the constant "
                f"vector: choose at most {n - 1}, or exclude_constant=False."
            )
        return super()._rank(rows)

    @property
    def _basis(self) -> Array:
        # Components without variance complete the basis; they are no part of the span.
        return np.asarray(self.components_.T * (self.explained_variance_ > 0))

    @property
    def _encoder(self) -> Array:
        basis = self._basis.astype(np.float64)
        rounding = 0.1 * DenseBlock.floors[self.loadings_.dtype.name]
        return basis @ np.linalg.pinv(self.loadings_ @ basis, rcond=rounding)


def _spanned(data: GraphData, pair: Embedding, weights: Array) -> tuple[Subspace, dict[str, Any]]:
    """The principal axes of the span of the loadings, and attributes of the embedding."""
    dtype, count = data.rows.dtype, len(pair.loadings)
    sides, sizes, _ = linalg.svd(pair.loadings.T, full_matrices=False, check_finite=False)
    # A vector that the data know nothing of has loadings that are rounding error.
    span = sides[:, sizes > data.rows.floor * max(sizes[0], np.finfo(np.float64).tiny)]
    codes = data.X @ span
    share = weights / weights.sum()
    values, axes = principal_axes(codes.T @ (share[:, None] * codes))
    basis = span @ axes
    if span.shape[1] < count:
        basis = np.hstack([basis, orthonormal(np.eye(len(basis))[:, :count], basis)])
    variances = np.append(values, np.zeros(count))[:count]
    loadings = pair.loadings @ span @ span.T
    flipped = flip_signs(loadings)
    signs = np.where(np.einsum("ij,ij->i", flipped, loadings) < 0, -1.0, 1.0)
    return data.subspace(basis[:, :count].T, variances, weights), {
        "loadings_": np.ascontiguousarray(flipped, dtype=dtype),
        "embedding_": np.ascontiguousarray(pair.codes * signs, dtype=dtype),
        "graph_": data.graph,
    }


class GLPCA(EmbeddingModel):
    r"""Graph-Laplacian PCA (GLPCA).

    Minimises :math:`\lVert X - QB^\top \rVert_F^2 + \alpha\, \mathrm{tr}(Q^\top \Phi Q)` over B
    and Q with orthonormal columns [1]_, where X is centred and :math:`\Phi` is the Laplacian of
    a graph of the samples: PCA whose scores are alike for neighbours. The solution is global:
    the first eigenvectors of :math:`\alpha \Phi - XX^\top`.

    ``embedding_`` holds Q, which exists for the training rows alone; `transform` gives the
    scores of the nearest point of the subspace, for these rows as for new ones.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    beta : float, default=0.5
        Share of the graph, in [0, 1): 0 is PCA, towards 1 the embedding becomes that of the
        graph alone. :math:`\alpha = \frac{\beta}{1-\beta} \frac{\lambda}{\xi}` with the largest
        eigenvalues :math:`\lambda` of :math:`XX^\top` and :math:`\xi` of :math:`\Phi`.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=False
        Whether to use the normalised Laplacian.
    exclude_constant : bool, default=True
        Whether the columns of the embedding must sum to zero. Otherwise one of them may be
        constant, which is smooth on any graph but says nothing.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Embedding Q of the training rows, smooth on the graph; its columns are orthonormal.
    loadings_ : ndarray of shape (n_components, n_features)
        What the columns of the embedding stand for, as rows: ``inverse_transform(embedding_)``
        is the reconstruction of the training rows.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis of the span of the loadings: principal axes of ``reconstruct(X)``.
    alpha_ : float
        Weight of the graph.
    objective_ : ndarray of shape (1,)
        The objective.
    n_iter_ : int
        One: the solution is found at once.
    converged_ : bool
        True.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance along each component, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.

    References
    ----------
    .. [1] Jiang, Ding, Luo, Tang, Graph-Laplacian PCA: closed-form solution and robustness,
       CVPR 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from robustpca import GLPCA
    >>> X = load_iris().data
    >>> model = GLPCA(n_components=2, beta=0.7).fit(X)
    >>> model.embedding_.shape, model.transform(X[:5]).shape
    ((150, 2), (5, 2))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphModel._parameter_constraints,
        "beta": [Interval(Real, 0, 1, closed="left")],
        "exclude_constant": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        beta: float = 0.5,
        graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = False,
        exclude_constant: bool = True,
        contamination: float | str = "auto",
    ) -> None:
        self.n_components = n_components
        self.beta = beta
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.exclude_constant = exclude_constant
        self.contamination = contamination

    def _fit(self, rows: Rows) -> Fit:
        n_components, data = self._rank(rows), self._data(rows, "mean")
        alpha = graph_weight(data.X, data.laplacian, self.beta)
        pair = graph_embedding(
            data.X, data.laplacian, n_components, alpha, exclude_constant=self.exclude_constant
        )
        subspace, attributes = _spanned(data, pair, np.ones(len(data.X)))
        error = float(square_norms(data.X - pair.codes @ pair.loadings).sum())
        objective = error + alpha * roughness(pair.codes, data.laplacian)
        attributes["alpha_"] = alpha
        return Fit(attributes, subspace, ClosedForm(np.array([objective])))


class RGLPCA(EmbeddingModel):
    r"""Robust graph-Laplacian PCA (RGLPCA).

    Minimises :math:`\sum_i \lVert x_i - Bq_i \rVert + \alpha\, \mathrm{tr}(Q^\top \Phi Q)` over B
    and Q with orthonormal columns [1]_: as `GLPCA`, but the error of a sample is not squared.

    The problem is not convex. The loop is an augmented Lagrangian method whose passes solve a
    `GLPCA` each. It starts from the better of PCA and `GLPCA`; the best pair of all passes is
    used, and its B made optimal for its Q. An outlier so far away that it is worth a column of
    Q of its own gets one: find such rows with `PCAAN` first.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    beta : float, default=0.5
        Share of the graph, in [0, 1), as in `GLPCA`, for rows in units of their median norm, of
        which longer ones count as one: far outliers do not change the weight of the graph.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=False
        Whether to use the normalised Laplacian.
    exclude_constant : bool, default=True
        Whether the columns of the embedding must sum to zero. Otherwise one of them may be
        constant, which is smooth on any graph but says nothing.
    center : str, default='geometric_median'
        The centre, found first and held: 'mean', 'median', 'trimmed_mean' (of the middle half
        of each feature), 'geometric_median', 'medoid' (the sample nearest to all others) or
        'zero'. The mean is the papers'; the others resist outliers.
    tol : float, default=1e-7
        Stop when both parts of the data add up to this share of them, and then when a pass
        lowers the objective by less than this share of it.
    max_iter : int, default=500
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and ``phase``.
        An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Embedding Q of the training rows, smooth on the graph; its columns are orthonormal.
    loadings_ : ndarray of shape (n_components, n_features)
        What the columns of the embedding stand for, as rows: ``inverse_transform(embedding_)``
        is the reconstruction of the training rows.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis of the span of the loadings: principal axes of ``reconstruct(X)``.
    sparse_rows_ : ndarray of shape (n_samples, n_features)
        What the embedding and its loadings leave of the training rows; large for outliers, and
        zero for rows that fit within ``tol``.
    alpha_ : float
        Weight of the graph.
    objective_ : ndarray
        Least objective so far, at the start and after each pass.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance along each component, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.

    References
    ----------
    .. [1] Jiang, Ding, Luo, Tang, Graph-Laplacian PCA: closed-form solution and robustness,
       CVPR 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from robustpca import RGLPCA
    >>> X = load_iris().data
    >>> X[7] = 10.0
    >>> model = RGLPCA(n_components=2).fit(X)
    >>> int(np.linalg.norm(model.sparse_rows_, axis=1).argmax())
    7
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GLPCA._parameter_constraints,
        "center": [StrOptions(set(CENTERS))],
    }

    sparse_rows_: Array

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        beta: float = 0.5,
        graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = False,
        exclude_constant: bool = True,
        center: str = "geometric_median",
        tol: float = 1e-7,
        max_iter: int = 500,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.beta = beta
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.exclude_constant = exclude_constant
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        n_components, data = self._rank(rows), self._data(rows, self.center)
        X, norms = data.X, np.sqrt(square_norms(data.X))
        unit = float(np.median(norms)) or float(norms.mean()) or 1.0
        # ADR 14: the paper takes all rows as they are; one far outlier then drowns the data.
        bounded = X / np.maximum(norms, unit)[:, None]
        alpha = unit * graph_weight(bounded, data.laplacian, self.beta)
        result = robust_embedding(
            X,
            data.laplacian,
            n_components,
            alpha,
            # Plain PCA and GLPCA.
            starts=(0.0, graph_weight(X, data.laplacian, self.beta)),
            unit=unit,
            exclude_constant=self.exclude_constant,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
        )
        rest = X - result.best.codes @ result.best.loadings
        errors = np.sqrt(square_norms(rest))
        # Below the tolerance of the loop an error is not known.
        fits = errors <= max(self.tol, rows.floor) * unit
        # Rows that fit better than most count the same; the others by the slope of their loss.
        typical = max(float(np.median(errors)), rows.floor * unit)
        subspace, attributes = _spanned(data, result.best, typical / np.maximum(errors, typical))
        attributes["sparse_rows_"] = np.where(fits[:, None], 0.0, rest).astype(rows.dtype)
        attributes["alpha_"] = alpha
        return Fit(attributes, subspace, result, unconverged(self, result))


class MMF(GraphModel):
    r"""Manifold regularised matrix factorisation (MMF).

    Minimises :math:`\lVert X - ZV^\top \rVert_F^2 + \gamma\, \mathrm{tr}(Z^\top \Phi Z)` over Z
    and V with orthonormal columns [1]_, where X is centred and :math:`\Phi` is the Laplacian of
    a graph of the samples. The solution is global: V are the first eigenvectors of
    :math:`X^\top (I + \gamma \Phi)^{-1} X`, and :math:`Z = (I + \gamma \Phi)^{-1} X V`.

    ``embedding_`` holds Z, the smooth scores of the training rows; `transform` gives plain
    scores along the components, for these rows as for new ones.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    smoothness : float, default=1.0
        Weight of the graph: 0 is PCA, raise it to make neighbours more alike.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=True
        Whether to use the normalised Laplacian.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Smooth scores Z of the training rows; ``inverse_transform(embedding_)`` is their
        reconstruction.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing variance that is smooth on the
        graph.
    objective_ : ndarray of shape (1,)
        The objective.
    n_iter_ : int
        One: the solution is found at once.
    converged_ : bool
        True.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance along each component, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.

    References
    ----------
    .. [1] Zhang, Zhao, Low-rank matrix approximation with manifold regularization, IEEE
       Transactions on Pattern Analysis and Machine Intelligence, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from robustpca import MMF
    >>> X = load_iris().data
    >>> model = MMF(n_components=2).fit(X)
    >>> model.embedding_.shape, model.transform(X[:5]).shape
    ((150, 2), (5, 2))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphModel._parameter_constraints,
        "smoothness": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        smoothness: float = 1.0,
        graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = True,
        contamination: float | str = "auto",
    ) -> None:
        self.n_components = n_components
        self.smoothness = smoothness
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.contamination = contamination

    def _fit(self, rows: Rows) -> Fit:
        n_components, data = self._rank(rows), self._data(rows, "mean")
        pair = smooth_factors(data.X, data.laplacian, n_components, self.smoothness)
        # The signs that the components are stored with.
        signs = np.sign(np.einsum("ij,ij->i", flip_signs(pair.loadings), pair.loadings))
        components, codes = pair.loadings * signs[:, None], pair.codes * signs
        variances = square_norms((data.X @ components.T).T) / len(codes)
        error = float(square_norms(data.X - codes @ components).sum())
        objective = error + self.smoothness * roughness(codes, data.laplacian)
        attributes = {
            "embedding_": np.ascontiguousarray(codes, dtype=rows.dtype),
            "graph_": data.graph,
        }
        subspace = data.subspace(components, variances, np.ones(len(codes)))
        return Fit(attributes, subspace, ClosedForm(np.array([objective])))
