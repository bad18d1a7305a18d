"""Low rank + sparse: single entries are wrong or missing, the rest is nearly low rank.

RPCA and RPCAG minimise a nuclear norm by `solvers.splitting.split`, RPCA also by
`solvers.altproj.alternating_projections`; FRPCAG minimises the smoothness on two graphs by
`solvers.graph_descent.fista`.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import Rows
from robustpca.engine.svt import LowRank
from robustpca.models.base import Fit, reporter, unconverged
from robustpca.models.lowrank_base import (
    GraphDecomposition,
    LowRankModel,
    NuclearDecomposition,
    observed,
    observed_scale,
    significant,
)
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.entry_losses import ENTRY_LOSSES, EntryLoss
from robustpca.parts.graphs import adjacency_of, eigenvalue_bound, laplacian
from robustpca.parts.losses import named
from robustpca.solvers.altproj import alternating_projections
from robustpca.solvers.graph_descent import fista
from robustpca.solvers.new_rows import RowProblem, TrainingGraph
from robustpca.solvers.penalties import Balanced, Growing, HandOver
from robustpca.solvers.splitting import GraphSmoothness, Split, pursuit_loss, split

__all__ = ["FRPCAG", "RPCA", "RPCAG"]

# Singular values of the low-rank part below these shares of the largest count as zero. Without a
# nuclear norm they are small and not zero.
NUCLEAR_RANK_TOL, GRAPH_RANK_TOL = 1e-6, 1e-2

SCHEDULES = {"auto": HandOver, "admm": Balanced, "ialm": Growing}
PURSUIT_CONSTRAINTS: dict[str, Any] = {
    **LowRankModel._parameter_constraints,
    "sparsity": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "noise": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "center": [StrOptions({"median"}), None],
}
GRAPH_CONSTRAINTS: dict[str, Any] = {
    "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    "normalized": ["boolean"],
}


class RPCA(LowRankModel):
    r"""Robust PCA by principal component pursuit: low rank + sparse (RPCA).

    Minimises :math:`\lVert L \rVert_* + \lambda \lVert S \rVert_1` subject to :math:`L + S = X`
    [1]_, where X may have missing entries. With ``noise``, the parts need not add up exactly:
    :math:`\lVert X - L - S \rVert_F^2 / (2\mu)` is added to the objective instead [2]_.

    New rows are decomposed for the row space and the singular values of L: the low-rank part l
    of a row x minimises :math:`\lambda \lVert x - l \rVert_1 + \tfrac12 l^\top V \Sigma^{-1}
    V^\top l`. That is what the nuclear norm amounts to for one row among those of the training
    data, so these get their training decomposition back.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace: a number, a share of the variance of the low-rank part, or
        None for its rank.
    sparsity : float or 'auto', default='auto'
        Weight of the sparse part: raise it for fewer entries in ``sparse_`` and a higher rank,
        lower it for the contrary. 'auto' is one over the square root of the number of observed
        entries in a row or column, whichever is longer, on average.
    noise : float or 'auto', default=0.0
        Standard deviation of dense noise, in the units of the data, which neither part has to
        explain. 'auto' estimates it from the median absolute deviation of the residuals.
    solver : {'auto', 'admm', 'ialm', 'altproj'}, default='auto'
        'auto' and 'admm' reach the optimum. 'auto' raises the penalty as 'ialm' does until it
        suits the data, then holds it and accelerates; 'admm' balances it from the start. 'ialm'
        (inexact augmented Lagrangian [3]_) stops when the parts add up to the data, and falls
        short of the optimum on noisy data: see ``dual_gap_``. 'altproj' (accelerated alternating
        projections [4]_) takes ``n_components`` as the rank of L; it is not convex, tolerates
        more corruption where it works, and has no warm start.
    center : {'median'} or None, default=None
        Subtract the median of each column first. Without it a constant shift of the data is
        part of the low-rank part, as one more direction.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    tol : float, default=1e-6
        Stop when ``dual_gap_`` is this small and the residual of the two parts is as small a
        share of the data.
    max_iter : int, default=1000
        Largest number of passes.
    warm_start : bool, default=False
        Whether `fit` starts from the result of the previous call, if that was for data of the
        same shape.
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
    loss_ : EntryLoss
        Loss of the residual entries, with all its parameters as numbers.
    dual_gap_ : float
        By which share of itself the objective can at most still be lowered: a certificate. NaN
        for ``solver='altproj'``, which minimises no objective.
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
        **PURSUIT_CONSTRAINTS,
        "solver": [StrOptions({"auto", "admm", "ialm", "altproj"})],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        sparsity: float | str = "auto",
        noise: float | str = 0.0,
        solver: str = "auto",
        center: str | None = None,
        center_low_rank: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
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
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        if self.solver == "altproj" and not isinstance(self.n_components, Integral):
            raise ValueError(
                f"solver='altproj' needs to know the rank, but n_components={self.n_components}: "
                "set n_components to it, or use solver='admm'."
            )
        X = observed(rows, axes=(1, 0))
        data, offset = _without_offset(X, self.center)
        loss, noise, start = pursuit_loss(data, self.sparsity, self.noise)
        if self.solver == "altproj":
            result = alternating_projections(
                data,
                self._rank(rows),
                tol=self.tol,
                max_iter=self.max_iter,
                floor=3 * noise,
                callback=reporter(self),
            )
        else:
            result = split(
                data,
                loss,
                schedule=SCHEDULES[self.solver],
                tol=self.tol,
                max_iter=self.max_iter,
                callback=reporter(self),
                start=self._start(X.shape) or start,
                multipliers=self.warm_start,
            )
        return _pursuit_fit(self, rows, X, offset, loss, noise, result)


class RPCAG(LowRankModel):
    r"""Robust PCA on graphs: low rank + sparse, and neighbours alike (RPCAG).

    Minimises :math:`\lVert L \rVert_* + \lambda \lVert S \rVert_1 + \gamma\, \mathrm{tr}(L^\top
    \Phi L)` subject to :math:`L + S = X` [1]_, where :math:`\Phi` is the Laplacian of a graph of
    the samples and X may have missing entries. New rows are connected to their nearest training
    rows; a row of the training data has its own edges.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace: a number, a share of the variance of the low-rank part, or
        None for its rank.
    smoothness : float, default=1.0
        Weight of the graph, for data in units of their root mean square entry: raise it to make
        neighbours more alike.
    sparsity : float or 'auto', default='auto'
        Weight of the sparse part: raise it for fewer entries in ``sparse_`` and a higher rank,
        lower it for the contrary. 'auto' is one over the square root of the number of observed
        entries in a row or column, whichever is longer, on average.
    noise : float or 'auto', default=0.0
        Standard deviation of dense noise, in the units of the data, which neither part has to
        explain. 'auto' estimates it from the median absolute deviation of the residuals.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=True
        Whether to use the normalised Laplacian.
    center : {'median'} or None, default=None
        Subtract the median of each column first. Without it a constant shift of the data is
        part of the low-rank part, as one more direction.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    tol : float, default=1e-5
        Stop when ``dual_gap_`` is this small and the residual of the two parts is as small a
        share of the data.
    max_iter : int, default=2000
        Largest number of passes.
    warm_start : bool, default=False
        Whether `fit` starts from the result of the previous call, if that was for data of the
        same shape.
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
    loss_ : EntryLoss
        Loss of the residual entries, with all its parameters as numbers.
    dual_gap_ : float
        By which share of itself the objective can at most still be lowered: a certificate.
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
        **PURSUIT_CONSTRAINTS,
        **GRAPH_CONSTRAINTS,
        "smoothness": [Interval(Real, 0, None, closed="left")],
        "graph": ["array-like", "sparse matrix", None],
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
        warm_start: bool = False,
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
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        X = observed(rows, axes=(1, 0))
        data, offset = _without_offset(X, self.center)
        scale = observed_scale(data)
        weight = self.smoothness / scale if scale > 0 else 0.0
        graph = adjacency_of(self.graph, data, self.n_neighbors)
        matrix = laplacian(graph, normalized=self.normalized)
        smoothness, training = None, None
        if weight > 0:
            smoothness = GraphSmoothness.of(matrix, weight)
            # A copy, since the user may change the array afterwards.
            stored = data.copy() if data is X else data
            training = TrainingGraph(stored, graph, matrix, self.n_neighbors, self.normalized)
        loss, noise, start = pursuit_loss(data, self.sparsity, self.noise, smoothness)
        result = split(
            data,
            loss,
            smoothness,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
            start=self._start(X.shape) or start,
            multipliers=self.warm_start,
        )
        attributes = {"graph_": graph, "smoothness_": weight}
        return _pursuit_fit(
            self, rows, X, offset, loss, noise, result, training, weight, attributes
        )


class FRPCAG(LowRankModel):
    r"""Fast robust PCA on graphs: smooth over samples and over features (FRPCAG).

    Minimises :math:`\ell(X - U) + \gamma_1 \mathrm{tr}(U^\top \Phi_1 U) + \gamma_2 \mathrm{tr}(U
    \Phi_2 U^\top)` over U, with Laplacians of a graph of the samples and one of the features
    [1]_: U becomes low rank without any singular value being computed. X may have missing
    entries.

    New rows are connected to their nearest training rows, whose low-rank parts are fixed, and
    each solves the same problem; a row of the training data has its own edges.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Dimension of the subspace: a number, a share of the variance of the low-rank part, or
        None for its rank.
    sample_smoothness : float, default=1.0
        Weight of the graph of the samples, for data in units of their root mean square entry,
        which is one after standardisation: raise it to make neighbouring samples more alike.
    feature_smoothness : float, default=1.0
        The same for the graph of the features.
    loss : str or EntryLoss, default='l1'
        Loss of the residual entries: a name in `robustpca.parts.ENTRY_LOSSES`, or such an object
        with its parameters.
    standardize : bool, default=True
        Whether to give all features mean zero and variance one first, as the paper does; both
        parts are returned in the units of the data.
    sample_graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    feature_graph : sparse array of shape (n_features, n_features), default=None
        The same for the features. For the pixels of images use `robustpca.parts.grid_graph`.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=True
        Whether to use the normalised Laplacian.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    tol : float, default=1e-5
        Stop when a step is this small a share of the point it leads to.
    max_iter : int, default=500
        Largest number of passes.
    warm_start : bool, default=False
        Whether `fit` starts from the result of the previous call, if that was for data of the
        same shape.
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
        Weights of the graphs for the data after standardisation.
    sample_graph_, feature_graph_ : csr_array
        Adjacencies that were used; pass them to another fit of the same data.
    loss_ : EntryLoss
        Loss of the residual entries, with all its parameters as numbers.
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
        **GRAPH_CONSTRAINTS,
        "sample_smoothness": [Interval(Real, 0, None, closed="left")],
        "feature_smoothness": [Interval(Real, 0, None, closed="left")],
        "loss": [StrOptions(set(ENTRY_LOSSES)), EntryLoss],
        "standardize": ["boolean"],
        "sample_graph": ["array-like", "sparse matrix", None],
        "feature_graph": ["array-like", "sparse matrix", None],
    }

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
        warm_start: bool = False,
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
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        X = observed(rows, axes=(1, 0))
        shift, scale = _column_units(X, self.standardize)
        data = (X - shift) / scale if self.standardize else X
        unit = observed_scale(data) or 1.0
        loss: EntryLoss = named(self.loss, ENTRY_LOSSES, "loss").scaled(unit)
        # The graphs weigh squares: in other units, a loss of degree one needs other weights.
        factor = unit ** (loss.degree - 2)
        sample_smoothness = factor * self.sample_smoothness
        feature_smoothness = factor * self.feature_smoothness
        sample_graph = adjacency_of(self.sample_graph, data, self.n_neighbors)
        feature_graph = adjacency_of(self.feature_graph, data.T, self.n_neighbors, "features")
        samples = laplacian(sample_graph, normalized=self.normalized)
        features = laplacian(feature_graph, normalized=self.normalized)
        feature_norm = eigenvalue_bound(features)
        result = fista(
            data,
            loss,
            samples,
            sample_smoothness,
            features,
            feature_smoothness,
            sample_norm=eigenvalue_bound(samples),
            feature_norm=feature_norm,
            start=self._start(X.shape),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
        )
        # A copy, since the user may change the array afterwards.
        stored = data.copy() if data is X else data
        decomposition = GraphDecomposition(
            result.low_rank,
            shift,
            scale,
            loss,
            TrainingGraph(stored, sample_graph, samples, self.n_neighbors, self.normalized),
            sample_smoothness,
            feature_smoothness,
            features,
            feature_norm,
        )
        mean, values, directions = decomposition.principal_axes(self.center_low_rank)
        rank = significant(values, GRAPH_RANK_TOL)
        return Fit(
            attributes={
                "_decomposition": decomposition,
                "rank_": rank,
                "density_": decomposition.density,
                "loss_": loss,
                "sample_graph_": sample_graph,
                "feature_graph_": feature_graph,
                "sample_smoothness_": sample_smoothness,
                "feature_smoothness_": feature_smoothness,
            },
            subspace=self._subspace(rows, X, decomposition, mean, values, directions, rank),
            ending=result,
            warnings=(*self._advice(decomposition, rank), *unconverged(self, result)),
        )

    def _advice(self, decomposition: GraphDecomposition, rank: int) -> tuple[Warning, ...]:
        """What to change if the decomposition is trivial."""
        if decomposition.density == 0 and decomposition.loss.threshold == 0:
            found = "sparse_ is all zero and low_rank_ is the data"
        elif rank == min(decomposition.smooth.shape) > 1:
            found = f"low_rank_ has full rank {rank}"
        else:
            return ()
        return (
            UserWarning(
                f"FRPCAG: {found}. Raise sample_smoothness={self.sample_smoothness:.3g} or "
                f"feature_smoothness={self.feature_smoothness:.3g}, and see smoothness_path."
            ),
        )


def _without_offset(X: Array, center: str | None) -> tuple[Array, Array]:
    """The data without the medians of the columns if wanted, and what was subtracted."""
    offset = np.nanmedian(X, axis=0) if center == "median" else np.zeros(X.shape[1])
    offset = offset.astype(X.dtype)
    return (X - offset if offset.any() else X), offset


def _pursuit_fit(
    model: RPCA | RPCAG,
    rows: Rows,
    X: Array,
    offset: Array,
    loss: EntryLoss,
    noise: float,
    result: Split,
    graph: TrainingGraph | None = None,
    smoothness: float = 0.0,
    attributes: dict[str, Any] | None = None,
) -> Fit:
    """The fit that follows from both parts: principal axes, and the problem of new rows."""
    found = result.low_rank.astype(np.float64)
    left, right = found.left, found.right
    middle = left.mean(axis=0) if model.center_low_rank else np.zeros(left.shape[1])
    centred = left - middle
    squares, rotation = np.linalg.eigh(centred.T @ centred)
    values, rotation = np.sqrt(np.maximum(squares[::-1], 0.0)), rotation.T[::-1]
    mean = middle @ right
    rank = significant(found.values, NUCLEAR_RANK_TOL)
    n_directions = significant(values, NUCLEAR_RANK_TOL)
    problem = RowProblem.of(
        LowRank(left[:, :rank], right[:rank], found.values[:rank]),
        mean,
        rotation[:n_directions] @ right,
        loss,
        result.row_penalty,
    )
    decomposition = NuclearDecomposition(
        result.low_rank, result.sparse, offset, problem, graph, smoothness, result.start()
    )
    density = result.n_sparse / int(np.count_nonzero(~np.isnan(X)))
    return Fit(
        attributes={
            "_decomposition": decomposition,
            "rank_": rank,
            "density_": density,
            "loss_": loss,
            "sparsity_": loss.weight,
            "noise_": noise,
            "dual_gap_": result.gap,
            **(attributes or {}),
        },
        subspace=model._subspace(
            rows, X, decomposition, mean + offset, values, rotation @ right, n_directions
        ),
        ending=result,
        warnings=(
            *_pursuit_advice(model, rank, density, noise, loss.weight, min(X.shape)),
            *_unfinished(model, result),
        ),
    )


def _unfinished(model: RPCA | RPCAG, result: Split) -> tuple[Warning, ...]:
    """What to change if the loop has not reached its end, or ended far from the optimum."""
    if result.converged or result.n_iter >= model.max_iter:
        return unconverged(model, result)
    return (
        ConvergenceWarning(
            f"RPCA: solver='ialm' ended where low_rank_ + sparse_ is the data, but the objective "
            f"may be too high by a share of {result.gap:.1e}. Use solver='auto'."
        ),
    )


def _pursuit_advice(
    model: RPCA | RPCAG, rank: int, density: float, noise: float, sparsity: float, short: int
) -> tuple[Warning, ...]:
    """What to change if the decomposition is trivial."""
    if getattr(model, "solver", "admm") == "altproj":
        if not ((density == 0 and rank > 0) or rank == short > 1):
            return ()
        advice = (
            f"low_rank_ has rank {rank} and sparse_ a density of {density:.3g}. Lower "
            f"n_components={model.n_components}."
        )
    elif density == 0 and rank > 0 and noise == 0:
        advice = (
            f"sparse_ is all zero and low_rank_ is the data: sparsity={sparsity:.3g} is too high "
            "for them. Lower it, and see sparsity_path."
        )
    elif rank == 0 and density > 0:
        advice = (
            f"low_rank_ is zero and sparse_ is the data: sparsity={sparsity:.3g} is too low for "
            "them. Raise it, and see sparsity_path."
        )
    elif rank == short > 1:
        advice = (
            f"low_rank_ has full rank {rank}. Lower sparsity={sparsity:.3g}, or set noise='auto' "
            "if the entries carry dense noise."
        )
    else:
        return ()
    return (UserWarning(f"{type(model).__name__}: {advice}"),)


def _column_units(X: Array, standardize: bool) -> tuple[Array, Array]:
    """What to subtract from the columns and to divide them by; a constant one is not divided."""
    if not standardize:
        return np.zeros(X.shape[1], X.dtype), np.ones(X.shape[1], X.dtype)
    shift = np.nanmean(X, axis=0, dtype=np.float64)
    squares = np.nanmean(np.square(X - shift.astype(X.dtype)), axis=0, dtype=np.float64)
    deviation = np.sqrt(squares)
    constant = deviation <= 1e-7 * np.abs(shift)
    return shift.astype(X.dtype), np.where(constant, 1.0, deviation).astype(X.dtype)
