"""Non-negative factors that are smooth on a graph of the samples."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg, optimize, sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import NMF
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import rows_in_memory
from robustpca.models.base import Fit, points_of, reporter, store, unconverged
from robustpca.models.estimator import Estimator, all_or_nothing, rowwise
from robustpca.models.graph import GraphModel
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.graphs import adjacency_of, adjacency_of_distances, laplacian
from robustpca.parts.ranks import rank_of
from robustpca.solvers.multiplicative import nonnegative_factors

__all__ = ["GNMF"]


class GNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    r"""Graph-regularised non-negative matrix factorisation (GNMF).

    Lowers :math:`\lVert X - HB \rVert_F^2 + \lambda\, \mathrm{tr}(H^\top \Phi H)` over
    non-negative codes H and a non-negative basis B with rows of unit length [1]_, where
    :math:`\Phi` is the Laplacian of a graph of the samples. Multiplicative updates never raise
    it. With ``smoothness=0`` this is scikit-learn's ``NMF(solver="mu")``.

    The paper leaves the rows of B any length until the end. That objective has no minimiser: a
    smaller H and a larger B leave their product alone while the graph pays less, so with more
    passes the graph has less and less of a say. ``scale="free"`` does as the paper does.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Number of components; 'auto' for one more than the dimension that predicts held-out
        entries about their medians; None for the largest possible.
    smoothness : float, default=1.0
        Weight of the graph: raise it to make codes of neighbours more alike.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=False
        Whether to use the normalised Laplacian.
    scale : {'unit', 'free'}, default='unit'
        Whether the rows of the basis have unit length all along, or are only brought to it at
        the end, as in the paper.
    init : {'nndsvda', 'random'}, default='nndsvda'
        Where to start: after one pass of scikit-learn's `NMF` from its start of this name.
    random_state : int, RandomState instance or None, default=0
        Draws the random start.
    tol : float, default=1e-4
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=1000
        Largest number of passes.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective`` and ``change``. An
        exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Basis B, with rows of unit length.
    embedding_ : ndarray of shape (n_samples, n_components)
        Codes H of the training rows, smooth on the graph.
    n_components_ : int
        Number of components.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    objective_ : ndarray
        Objective at the start and after each pass; with ``scale="free"`` before the basis was
        brought to unit length.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Cai, He, Han, Huang, Graph regularized nonnegative matrix factorization for data
       representation, IEEE Transactions on Pattern Analysis and Machine Intelligence, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustpca import GNMF
    >>> X = load_digits().data
    >>> model = GNMF(n_components=10).fit(X)
    >>> model.transform(X[:5]).shape, bool((model.components_ >= 0).all())
    ((5, 10), True)
    """

    _of_training = ("embedding_", "graph_")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphModel._parameter_constraints,
        "smoothness": [Interval(Real, 0, None, closed="left")],
        "scale": [StrOptions({"unit", "free"})],
        "init": [StrOptions({"nndsvda", "random"})],
        "random_state": ["random_state"],
    }

    components_: Array
    embedding_: Array
    n_components_: int
    graph_: Any
    objective_: Array
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        smoothness: float = 1.0,
        graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = False,
        scale: str = "unit",
        init: str = "nndsvda",
        random_state: Any = 0,
        tol: float = 1e-4,
        max_iter: int = 1000,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.smoothness = smoothness
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.scale = scale
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    @all_or_nothing()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Factor the rows of ``X``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples; no entry may be negative.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted model.
        """
        return store(self, self._fit(self._checked(X, reset=True)))

    def _fit(self, X: Any) -> Fit:
        largest = min(X.shape)
        n_components = largest if self.n_components is None else self.n_components
        if n_components == "auto":
            # Without negative numbers the mean takes a component of its own.
            n_components = min(rank_of(rows_in_memory(X)) + 1, largest)
        if n_components > largest:
            raise ValueError(
                f"n_components={n_components} is more than the data can give: X has shape "
                f"{X.shape}, so choose at most {largest}."
            )
        if self.graph is None and sparse.issparse(X):
            n_neighbors = min(self.n_neighbors, X.shape[0] - 1)
            graph = adjacency_of_distances(kneighbors_graph(X, n_neighbors, mode="distance"))
        else:
            graph = adjacency_of(self.graph, X, self.n_neighbors)
        exact = X.astype(np.float64)
        codes, basis = self._start(exact, int(n_components))
        result = nonnegative_factors(
            exact,
            laplacian(graph, normalized=self.normalized).astype(np.float64),
            self.smoothness,
            codes,
            basis,
            free=self.scale == "free",
            tol=self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
        )
        codes, basis = _unit_basis(result.codes, result.basis)
        attributes = {
            "components_": np.ascontiguousarray(basis, X.dtype),
            "embedding_": np.ascontiguousarray(codes, X.dtype),
            "n_components_": int(n_components),
            "graph_": graph,
        }
        return Fit(attributes, None, result, unconverged(self, result))

    def _start(self, X: Any, n_components: int) -> tuple[Array, Array]:
        """Codes and basis that scikit-learn's NMF starts from, after one pass."""
        # Some of the start is filled with the mean, which has other units than a factor.
        unit = X.mean() or 1.0
        # Of data with fewer directions, its start by singular vectors is not a number.
        for init in (self.init, "random"):
            start = NMF(
                n_components,
                init=init,
                solver="mu",
                max_iter=1,
                tol=0,
                random_state=self.random_state,
            )
            # Nor may be the root of its error, a difference that is not used.
            with np.errstate(invalid="ignore"):
                codes = start.fit_transform(X / unit) * unit
            if np.isfinite(codes).all():
                break
        return _unit_basis(codes, start.components_)

    @rowwise
    def transform(self, X: Any) -> Array:
        """Codes of the rows of ``X`` by non-negative least squares with a fixed basis.

        They do not use the graph, so those of the training rows are not ``embedding_``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples; no entry may be negative.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            The codes.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        # A rotation makes the problem of each row as small as the number of components.
        turn, small = linalg.qr(self.components_.T.astype(np.float64), mode="economic")
        codes = [optimize.nnls(small, row)[0] for row in X.astype(np.float64) @ turn]
        return np.array(codes, self.components_.dtype)

    def inverse_transform(self, X: Any) -> Array:
        """Rows that have these codes.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Codes, as given by `transform`.

        Returns
        -------
        points : ndarray of shape (n_samples, n_features)
            The rows.
        """
        return points_of(self, X, self.components_, 0.0)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        X = self._validated(
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
        )
        least = X.min()
        if least < 0:
            raise ValueError(
                f"Negative values in data passed to GNMF: X has entries down to {least:.3g}, but "
                "all must be 0 or more. Shift the features that have them, or use MMF."
            )
        return X

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _unit_basis(codes: Array, basis: Array) -> tuple[Array, Array]:
    """The same product, with rows of unit length in the basis."""
    lengths = np.linalg.norm(basis, axis=1)
    lengths[lengths == 0] = 1.0
    return codes * lengths, basis / lengths[:, None]
