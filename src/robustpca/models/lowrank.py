"""Low rank + sparse: single entries are wrong or missing, the rest is nearly low rank.

Two loops: `solvers.splitting.split` for methods with a nuclear norm, and
`solvers.graph_descent.fista` for the one without. A method supplies a loss of the entries and
terms of the low-rank part.
"""

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import ArrayRows, Rows
from robustpca.models.base import announcer
from robustpca.models.decomposition import (
    DENSE_SHARE,
    LowRankModel,
    observed_scale,
    row_tiles,
    soft_beyond,
)
from robustpca.models.params import HasMethods, Interval, StrOptions
from robustpca.models.pursuit import PursuitModel
from robustpca.parts.entry_losses import LOSSES, GraphSmoothness
from robustpca.parts.graphs import adjacency_of, laplacian, spectral_norm
from robustpca.parts.losses import named
from robustpca.solvers.graph_descent import GraphDescent, fista
from robustpca.solvers.new_rows import TrainingGraph, smooth_rows

__all__ = ["FRPCAG", "RPCA", "RPCAG"]

TOL = """Stop when what the two parts leave of the data is this small a share of them, or, if it
        falls slowly, when ``dual_gap_`` is as small."""


class RPCA(PursuitModel):
    r"""Robust PCA by principal component pursuit: low rank + sparse (RPCA).

    Minimises :math:`\lVert L \rVert_* + \lambda \lVert S \rVert_1` subject to :math:`L + S = X`
    [1]_, where X may have missing entries. With ``noise``, the parts need not add up exactly:
    :math:`\lVert X - L - S \rVert_F^2 / (2\mu)` is paid instead [2]_.

    New rows are decomposed with the row space and the singular values of L held: a row l of
    the low-rank part pays :math:`\lambda \lVert x - l \rVert_1 + \tfrac12 l^\top V \Sigma^{-1}
    V^\top l`. That is what the nuclear norm amounts to for one row among those of the training
    data, so these get their training decomposition back.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace that is kept after the decomposition: a number, a share of
        the variance of the low-rank part, or None for its rank.
    sparsity : float or 'auto', default='auto'
        Weight of the sparse part: raise it for fewer entries in ``sparse_`` and a higher rank,
        lower it for the contrary. 'auto' is one over the root of the larger side, with the
        number of observed entries a row or column has.
    noise : float or 'auto', default=0.0
        Standard deviation of dense noise, in the units of the data, which neither part has to
        explain. 'auto' estimates it from the median absolute deviation of what is left.
    solver : {'admm', 'ialm', 'altproj'}, default='admm'
        'admm' reaches the optimum. 'ialm' (inexact augmented Lagrangian [3]_) is several times
        faster on data that are exactly low rank + sparse, but may stop short of the optimum on
        noisy data. 'altproj' (accelerated alternating projections [4]_) takes ``n_components``
        as the rank of L; it is not convex, and stands more corruption where it works.
    center : {'median'} or None, default=None
        Subtract the median of each column first. Without it a constant shift of the data is
        part of the low-rank part, as one more direction.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    tol : float, default=1e-6
        Stop when what the two parts leave of the data is this small a share of them, or, if it
        falls slowly, when ``dual_gap_`` is as small.
    max_iter : int, default=1000
        Largest number of passes.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective`` and ``change``. An
        exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    low_rank_ : ndarray of shape (n_samples, n_features)
        Low-rank part of the training data, with values for the missing entries.
    sparse_ : csr_array or ndarray of shape (n_samples, n_features)
        Sparse part; a SciPy sparse array where at most a third of its entries are not zero.
    rank_ : int
        Rank of the low-rank part.
    density_ : float
        Share of the observed entries that are not zero in the sparse part.
    embedding_ : ndarray of shape (n_samples, n_components)
        Scores of the low-rank part of the training data.
    sparsity_ : float
        Weight of the sparse part that was used.
    noise_ : float
        Standard deviation of the dense noise that was allowed for.
    dual_gap_ : float
        By how much of itself the objective can at most be lowered still: a certificate. NaN
        for ``solver='altproj'``, which has no objective.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows of the low-rank part, or zero.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis of the low-rank part, one direction per row, by decreasing variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance of the scores of the low-rank part, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier.
    objective_ : ndarray
        Objective at the start and after each pass.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Candes, Li, Ma, Wright, Robust principal component analysis?, JACM 2011.
    .. [2] Zhou, Li, Wright, Candes, Ma, Stable principal component pursuit, ISIT 2010.
    .. [3] Lin, Chen, Ma, The augmented Lagrange multiplier method for exact recovery of
       corrupted low-rank matrices, 2010.
    .. [4] Cai, Cai, Wei, Accelerated alternating projections for robust principal component
       analysis, JMLR 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca import RPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    >>> X[3, 5], X[7, 1] = 50.0, np.nan
    >>> model = RPCA().fit(X)
    >>> model.rank_, model.sparse_.nnz, bool(abs(model.sparse_[3, 5]) > 40)
    (2, 1, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PursuitModel._parameter_constraints,
        "solver": [StrOptions({"admm", "ialm", "altproj"})],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        sparsity: float | str = "auto",
        noise: float | str = 0.0,
        solver: str = "admm",
        center: str | None = None,
        center_low_rank: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sparsity = sparsity
        self.noise = noise
        self.solver = solver
        self.center = center
        self.center_low_rank = center_low_rank
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose


class RPCAG(PursuitModel):
    r"""Robust PCA on graphs: low rank + sparse, and neighbours alike (RPCAG).

    Minimises :math:`\lVert L \rVert_* + \lambda \lVert S \rVert_1 + \gamma\, \mathrm{tr}(L^\top
    \Phi L)` subject to :math:`L + S = X` [1]_, where :math:`\Phi` is the Laplacian of a graph of
    the samples and X may have missing entries. New rows are tied to their nearest training
    rows; a row of the training data keeps its own ties.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace that is kept after the decomposition: a number, a share of
        the variance of the low-rank part, or None for its rank.
    smoothness : float, default=1.0
        Weight of the graph, for data in units of their root mean square entry: raise it to make
        neighbours more alike.
    sparsity : float or 'auto', default='auto'
        Weight of the sparse part: raise it for fewer entries in ``sparse_`` and a higher rank,
        lower it for the contrary. 'auto' is one over the root of the larger side, with the
        number of observed entries a row or column has.
    noise : float or 'auto', default=0.0
        Standard deviation of dense noise, in the units of the data, which neither part has to
        explain. 'auto' estimates it from the median absolute deviation of what is left.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=True
        Whether to use normalised Laplacians.
    center : {'median'} or None, default=None
        Subtract the median of each column first. Without it a constant shift of the data is
        part of the low-rank part, as one more direction.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    tol : float, default=1e-5
        Stop when what the two parts leave of the data is this small a share of them, or, if it
        falls slowly, when ``dual_gap_`` is as small.
    max_iter : int, default=2000
        Largest number of passes.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective`` and ``change``. An
        exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    low_rank_ : ndarray of shape (n_samples, n_features)
        Low-rank part of the training data, with values for the missing entries.
    sparse_ : csr_array or ndarray of shape (n_samples, n_features)
        Sparse part; a SciPy sparse array where at most a third of its entries are not zero.
    rank_ : int
        Rank of the low-rank part.
    density_ : float
        Share of the observed entries that are not zero in the sparse part.
    embedding_ : ndarray of shape (n_samples, n_components)
        Scores of the low-rank part of the training data.
    smoothness_ : float
        Weight of the graph in the units of the data.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    sparsity_ : float
        Weight of the sparse part that was used.
    noise_ : float
        Standard deviation of the dense noise that was allowed for.
    dual_gap_ : float
        By how much of itself the objective can at most be lowered still: a certificate. NaN
        for ``solver='altproj'``, which has no objective.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows of the low-rank part, or zero.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis of the low-rank part, one direction per row, by decreasing variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance of the scores of the low-rank part, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier.
    objective_ : ndarray
        Objective at the start and after each pass.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Shahid, Kalofolias, Bresson, Bronstein, Vandergheynst, Robust principal component
       analysis on graphs, ICCV 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca import RPCAG
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(4, 30)), 15, axis=0)
    >>> X[3, 5] += 9.0
    >>> model = RPCAG().fit(X)
    >>> bool(model.sparse_[3, 5] > 6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PursuitModel._parameter_constraints,
        "smoothness": [Interval(Real, 0, None, closed="left")],
        "graph": ["array-like", "sparse matrix", None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "normalized": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        smoothness: float = 1.0,
        sparsity: float | str = "auto",
        noise: float | str = 0.0,
        graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = True,
        center: str | None = None,
        center_low_rank: bool = True,
        tol: float = 1e-5,
        max_iter: int = 2000,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.smoothness = smoothness
        self.sparsity = sparsity
        self.noise = noise
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.center = center
        self.center_low_rank = center_low_rank
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    def _terms(self, X: Array) -> list[GraphSmoothness]:
        scale = observed_scale(X)
        self.smoothness_ = self._smoothness = self.smoothness / scale if scale > 0 else 0.0
        self.graph_ = adjacency_of(self.graph, X, self.n_neighbors)
        matrix = laplacian(self.graph_, normalized=self.normalized)
        # A copy, for the user may go on working with the array.
        self._ties = TrainingGraph(X.copy(), self.graph_, matrix, self.n_neighbors, self.normalized)
        if self._smoothness == 0:
            return []
        return [GraphSmoothness(matrix, self._smoothness, spectral_norm(matrix))]


STEP = "Stop when a step is this small a share of the point it leads to."


class FRPCAG(LowRankModel):
    r"""Fast robust PCA on graphs: smooth over samples and over features (FRPCAG).

    Minimises :math:`\ell(X - U) + \gamma_1 \mathrm{tr}(U^\top \Phi_1 U) + \gamma_2 \mathrm{tr}(U
    \Phi_2 U^\top)` over U, with Laplacians of a graph of the samples and one of the features
    [1]_: U becomes low rank without any singular value being computed. X may have missing
    entries.

    New rows are tied to their nearest training rows, whose low-rank parts are held, and solve
    the same problem for themselves; a row of the training data keeps its own ties.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace that is kept after the decomposition: a number, a share of
        the variance of the low-rank part, or None for its rank.
    sample_smoothness : float, default=1.0
        Weight of the graph of the samples, for data in units of their root mean square entry,
        which is one after standardisation: raise it to make neighbouring samples more alike.
    feature_smoothness : float, default=1.0
        The same for the graph of the features.
    loss : {'l1', 'l2', 'huber'} or loss, default='l1'
        Loss of the residual entries. An object from `robustpca.parts.entry_losses` sets its
        parameters.
    standardize : bool, default=True
        Whether to give all features mean zero and variance one first, as the paper does; both
        parts come back in the units of the data.
    sample_graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    feature_graph : sparse array of shape (n_features, n_features), default=None
        The same for the features. For the pixels of images take
        `robustpca.parts.graphs.grid_graph`.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=True
        Whether to use normalised Laplacians.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    tol : float, default=1e-5
        Stop when a step is this small a share of the point it leads to.
    max_iter : int, default=500
        Largest number of passes.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective`` and ``change``. An
        exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    low_rank_ : ndarray of shape (n_samples, n_features)
        Low-rank part of the training data, with values for the missing entries.
    sparse_ : csr_array or ndarray of shape (n_samples, n_features)
        Sparse part; a SciPy sparse array where at most a third of its entries are not zero.
    rank_ : int
        Rank of the low-rank part.
    density_ : float
        Share of the observed entries that are not zero in the sparse part.
    embedding_ : ndarray of shape (n_samples, n_components)
        Scores of the low-rank part of the training data.
    sample_smoothness_, feature_smoothness_ : float
        Weights of the graphs in the units of the data that were solved for.
    sample_graph_, feature_graph_ : csr_array
        Adjacencies that were used; give them to another fit on the same data.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows of the low-rank part, or zero.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis of the low-rank part, one direction per row, by decreasing variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance of the scores of the low-rank part, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier.
    objective_ : ndarray
        Objective at the start and after each pass.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Shahid, Perraudin, Kalofolias, Puy, Vandergheynst, Fast robust PCA on graphs, IEEE
       Journal of Selected Topics in Signal Processing, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustpca import FRPCAG
    >>> X = load_digits().data
    >>> X[7, 20] = 100.0
    >>> model = FRPCAG().fit(X)
    >>> bool(model.sparse_[7, 20] > 80)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LowRankModel._parameter_constraints,
        "sample_smoothness": [Interval(Real, 0, None, closed="left")],
        "feature_smoothness": [Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions(set(LOSSES)), HasMethods(["dual_map", "value", "scaled"])],
        "standardize": ["boolean"],
        "sample_graph": ["array-like", "sparse matrix", None],
        "feature_graph": ["array-like", "sparse matrix", None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "normalized": ["boolean"],
    }
    _rank_tol = 1e-2

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        sample_smoothness: float = 1.0,
        feature_smoothness: float = 1.0,
        loss: Any = "l1",
        standardize: bool = True,
        sample_graph: Any = None,
        feature_graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = True,
        center_low_rank: bool = True,
        tol: float = 1e-5,
        max_iter: int = 500,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sample_smoothness = sample_smoothness
        self.feature_smoothness = feature_smoothness
        self.loss = loss
        self.standardize = standardize
        self.sample_graph = sample_graph
        self.feature_graph = feature_graph
        self.n_neighbors = n_neighbors
        self.normalized = normalized
        self.center_low_rank = center_low_rank
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    def _fit_whole(self, rows: Rows, X: Array) -> None:
        self._shift, self._scale = _column_units(X, self.standardize)
        solved = self._units(X)
        unit = observed_scale(solved) or 1.0
        self.loss_ = named(self.loss, LOSSES, "loss").scaled(unit)
        # The graphs weigh squares; this keeps their weight when the loss is of degree one.
        factor = unit ** (self.loss_.degree - 2)
        self.sample_smoothness_ = factor * self.sample_smoothness
        self.feature_smoothness_ = factor * self.feature_smoothness
        self.sample_graph_ = adjacency_of(self.sample_graph, solved, self.n_neighbors)
        self.feature_graph_ = adjacency_of(
            self.feature_graph, solved.T, self.n_neighbors, "features"
        )
        samples = laplacian(self.sample_graph_, normalized=self.normalized)
        features = laplacian(self.feature_graph_, normalized=self.normalized)
        self._feature_norm = spectral_norm(features)
        problem = GraphDescent(
            solved,
            self.loss_,
            samples,
            self.sample_smoothness_,
            features,
            self.feature_smoothness_,
            sample_norm=spectral_norm(samples),
            feature_norm=self._feature_norm,
            start=self._warm[0] if self._warm else None,
        )
        announce = announcer(type(self).__name__, "pass", self.verbose, self.callback)
        history: list[float] = []

        def watch(info: Any) -> None:
            history.append(info.objective)
            announce(info)

        result = fista(problem, tol=self.tol, max_iter=self.max_iter, watch=watch)
        del problem
        if self._warm is not None:
            self._warm = [result.low_rank]
        self._smooth, self._features = result.low_rank, features
        # A copy, for the user may go on working with the array.
        kept = solved if self.standardize else solved.copy()
        self._ties = TrainingGraph(
            kept, self.sample_graph_, samples, self.n_neighbors, self.normalized
        )
        self.objective_ = np.array([result.objective[0], *history])
        self.n_iter_, self.converged_ = result.n_iter, result.converged
        self._change = result.change
        self._settle(rows, X)

    def _units(self, X: Array) -> Array:
        """The data as they are solved for."""
        return (X - self._shift) / self._scale if self.standardize else X

    def _settle(self, rows: Rows, X: Array) -> None:
        """Principal axes of the smooth part, in the units of the data."""
        smooth = ArrayRows(self._smooth)
        n, d = X.shape
        middle = self._smooth.mean(axis=0, dtype=np.float64)
        if not self.center_low_rank:
            middle = -self._shift.astype(np.float64) / self._scale
        if n >= d:
            gram = smooth.centred(middle).sum("weighted_gram")[1]
            gram *= np.outer(self._scale, self._scale)
            squares, axes = np.linalg.eigh(gram)
            values, directions = np.sqrt(np.maximum(squares[::-1], 0.0)), axes.T[::-1]
        else:
            centred = (self._smooth - middle) * self._scale
            _, values, directions = np.linalg.svd(centred, full_matrices=False)
        mean = middle * self._scale + self._shift
        places = row_tiles(X)
        n_sparse = sum(self._n_wrong(place) for place in places)
        n_observed = sum(np.count_nonzero(~np.isnan(X[place])) for place in places)
        self.density_ = float(n_sparse / n_observed)
        self.rank_ = int(np.count_nonzero(values > self._rank_tol * values[0]))
        self._finish(rows, X, mean, values, directions)
        self._warn(X)

    @property
    def low_rank_(self) -> Array:
        """Low-rank part of the training data."""
        return self._smooth * self._scale + self._shift

    @property
    def sparse_(self) -> Any:
        """Sparse part of the training data."""
        tiles = (self._sparse_units(place) * self._scale for place in row_tiles(self._smooth))
        if self.density_ > DENSE_SHARE:
            return np.vstack(list(tiles))
        parts = [sparse.csr_array(tile) for tile in tiles]
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def _sparse_units(self, place: slice) -> Array:
        error, rounding = self._errors(place)
        return soft_beyond(np.where(np.abs(error) > rounding, error, 0), self.loss_.knee)

    def _errors(self, place: slice) -> tuple[Array, Array]:
        """Errors of some rows, and how large they may be for nothing to be wrong there.

        Such entries were found again but for the last digits of their row.
        """
        X, U = self._ties.X[place], self._smooth[place]
        ends = [
            np.fmax.reduce(X, axis=1),
            -np.fmin.reduce(X, axis=1),
            U.max(axis=1),
            -U.min(axis=1),
        ]
        return X - U, 32 * np.finfo(U.dtype).eps * np.maximum.reduce(ends)[:, None]

    def _n_wrong(self, place: slice) -> int:
        error, rounding = self._errors(place)
        return int(np.count_nonzero(np.abs(error) > np.maximum(rounding, self.loss_.knee)))

    def _sparse_rows(self, X: Array, low_rank: Array) -> Array:
        error = super()._sparse_rows(X, low_rank) / self._scale
        return soft_beyond(error, self.loss_.knee) * self._scale

    def _training_tiles(self) -> Iterator[Array]:
        places = row_tiles(self._smooth)
        return (self._smooth[place] * self._scale + self._shift for place in places)

    def _low_rank_rows(self, X: Array) -> Array:
        solved = self._units(X)
        diagonal, ties = self._ties.ties(solved)
        samples, features = 2 * self.sample_smoothness_, 2 * self.feature_smoothness_
        smooth = smooth_rows(
            solved,
            self.loss_,
            samples * diagonal,
            samples * (ties @ self._smooth),
            features * self._features,
            features * self._feature_norm,
        )
        return (smooth * self._scale + self._shift).astype(X.dtype)

    def _warn(self, X: Array) -> None:
        advice = None
        if self.density_ == 0 and self.loss_.knee == 0:
            advice = "sparse_ is all zero and low_rank_ is the data"
        elif self.rank_ == min(X.shape) and self.rank_ > 1:
            advice = f"low_rank_ has full rank {self.rank_}"
        if advice is not None:
            warnings.warn(
                f"FRPCAG: {advice}. Raise sample_smoothness={self.sample_smoothness:.3g} or "
                f"feature_smoothness={self.feature_smoothness:.3g}, and see smoothness_path.",
                UserWarning,
                stacklevel=7,
            )


def _column_units(X: Array, standardize: bool) -> tuple[Array, Array]:
    """Mean and deviation of the columns; a constant column keeps its units."""
    if not standardize:
        return np.zeros(X.shape[1], X.dtype), np.ones(X.shape[1], X.dtype)
    shift = np.nanmean(X, axis=0, dtype=np.float64)
    squares = np.nanmean(np.square(X - shift.astype(X.dtype)), axis=0, dtype=np.float64)
    deviation = np.sqrt(squares)
    constant = deviation <= 1e-7 * np.abs(shift)
    return shift.astype(X.dtype), np.where(constant, 1.0, deviation).astype(X.dtype)
