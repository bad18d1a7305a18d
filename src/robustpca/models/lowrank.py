"""Low rank + sparse: single entries are wrong or missing, the rest is nearly low rank.

RPCA and RPCAG minimise a nuclear norm by `solvers.splitting.split`; RPCA also knows
`solvers.altproj.alternating_projections` and, for large data, `solvers.sampled.sampled_pursuit`,
and refits its low-rank part by `solvers.refit.refit`.
"""

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from robustpca.engine.entries import EntryList, compact, joined, n_nonzero
from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import Rows
from robustpca.engine.scratch import each, taken
from robustpca.engine.svt import LowRank, row_tiles
from robustpca.models.base import Fit, reporter, unconverged
from robustpca.models.lowrank_advice import pursuit_advice, units_advice
from robustpca.models.lowrank_base import (
    GRAPH_CONSTRAINTS,
    SMOOTHNESS_CONSTRAINT,
    LowRankModel,
    NuclearDecomposition,
    RefittedDecomposition,
    checked_entries,
    observed,
    significant_errors,
)
from robustpca.models.lowrank_factors import (
    column_norms,
    observed_scale,
    principal_axes,
    rescaled,
    scaled_columns,
    significant,
)
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.entry_losses import EntryLoss
from robustpca.parts.graphs import adjacency_of, laplacian
from robustpca.parts.units import Units, column_units
from robustpca.solvers.altproj import alternating_projections
from robustpca.solvers.known_rows import KnownRows
from robustpca.solvers.new_rows import RowProblem, TrainingGraph
from robustpca.solvers.noise import pursuit_loss
from robustpca.solvers.penalties import Balanced, Growing, HandOver, count_observed
from robustpca.solvers.refit import ResidualFlags, refit
from robustpca.solvers.sampled import Check, sampled_pursuit
from robustpca.solvers.smoothness import pursuit_smoothness
from robustpca.solvers.split_matrix import GraphSmoothness
from robustpca.solvers.splitting import FAR, Split, split

__all__ = ["RPCA", "RPCAG"]

# If the low-rank part is fitted again, the convex problem is only its start: a gap of so many times
# the tolerance is small enough then, up to a largest one.
START_FACTOR, START_GAP = 1e4, 1e-2
# Singular values of the low-rank part below this share of the largest count as zero.
NUCLEAR_RANK_TOL = 1e-6

SCHEDULES = {"auto": HandOver, "admm": Balanced, "ialm": Growing}
PURSUIT_CONSTRAINTS: dict[str, Any] = {
    **LowRankModel._parameter_constraints,
    "sparsity": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "noise": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "center": [StrOptions({"auto", "median"}), None],
    "scale": [StrOptions({"auto", "mad"}), None],
    "debias": ["boolean"],
}


class RPCA(LowRankModel):
    r"""Robust PCA by principal component pursuit: low rank + sparse (RPCA).

    Minimises :math:`\lVert L \rVert_* + \lambda \lVert S \rVert_1` subject to :math:`L + S = X`
    [1]_, where X may have missing entries. With ``noise``, the parts need not add up exactly:
    :math:`\lVert X - L - S \rVert_F^2 / (2\mu)` is added to the objective instead [2]_.

    New rows are decomposed for the row space and the singular values of L: the low-rank part l
    of a row x minimises :math:`\lambda \lVert x - l \rVert_1 + \tfrac12 l^\top V \Sigma^{-1}
    V^\top l`. That is what the nuclear norm amounts to for one row among those of the training
    data, where it has reached its optimum. A row of the training data gets its parts of the fit.

    Rows in a file, or of a Dask array, may be more than memory holds: the fit is then the same, to
    the last bit, with all arrays of the size of the data in scratch files in the folder for
    temporary files (``TMPDIR``), up to ten at a time. So are factors and sparse entries: memory
    hardly grows with the rows. ``low_rank_`` and ``entry_flags_`` of such a fit are made when they
    are asked for, in scratch files. ``solver='sampled'`` alone needs all rows in memory.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace: a number, a share of the variance of the low-rank part, 'auto'
        to find it by predicting held-out entries of the data, or None for its rank.
    sparsity : float or 'auto', default='auto'
        Weight of the sparse part: raise it for fewer entries in ``sparse_`` and a higher rank,
        lower it for the contrary. 'auto' is one over the square root of the number of observed
        entries in a row or column, whichever is longer, on average.
    noise : float or 'auto', default='auto'
        Standard deviation of dense noise, in the units of the data, which neither part has to
        explain; 0 for data that are exactly low rank + sparse. 'auto' estimates it, and finds 0
        for such data.
    solver : {'auto', 'admm', 'ialm', 'altproj', 'sampled'}, default='auto'
        'auto' and 'admm' reach the optimum. 'auto' raises the penalty as 'ialm' does until it
        suits the data, then holds it and accelerates; 'admm' balances it from the start. 'ialm'
        (inexact augmented Lagrangian, as printed [3]_) stops when the parts add up to the data,
        and falls short of the optimum on noisy data: see ``dual_gap_``. 'altproj' (accelerated
        alternating projections [4]_) takes ``n_components`` as the rank of L; it is not convex,
        tolerates more corruption where it works, and has no warm start. 'sampled' is for millions
        of entries: it finds the row and column space from a few hundred sampled rows and columns,
        as iterated robust CUR does [5]_, and makes one to eight passes over the data. It takes an
        integer ``n_components`` as the rank of L if that agrees with the data, and finds the rank
        otherwise; the noise is always estimated. The result is checked on rows and columns drawn
        anew; where residuals do not look like noise there, a warning says so and 'altproj' or
        'admm' follows.
    center : {'auto', 'median'} or None, default='auto'
        'median' subtracts the median of each column first. Without it a constant shift of the
        data is part of the low-rank part, as one more direction. 'auto' does it for tables whose
        columns have different units (see `robustpca.parts.unit_differences`), for data far from
        zero, and where few columns are: their offsets might as well be wrong entries.
    scale : {'auto', 'mad'} or None, default='auto'
        'mad' divides each column by its median absolute deviation first; both parts come back in
        the units of the data. 'auto' does it for tables whose columns have different units,
        unless ``noise`` is given in one unit for all.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    debias : bool, default=True
        Whether to fit the low-rank part again, by least squares, to the entries that are not
        flagged, if there is noise and no graph has a weight: without the bias of the nuclear
        norm, and of the rank that the noise allows for. ``sparse_`` then holds the errors of the
        flagged entries.
    flag_rate : float, default=0.001
        Share of the entries without an error that may be flagged in ``entry_flags_``.
    tol : float, default=1e-6
        Stop when ``dual_gap_`` is this small and the residual of the two parts is as small a
        share of the data ('ialm': the residual alone). Ten thousand times this, but at most 0.01,
        is enough if the low-rank part is fitted again (``debias``): that only starts there.
    max_iter : int, default=1000
        Largest number of passes.
    warm_start : bool, default=False
        Whether `fit` starts from the result of the previous call, if that was for data of the
        same shape.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
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
    entry_flags_ : ndarray of shape (n_samples, n_features), dtype bool
        Entries of the training data that are wrong: those whose residual the noise of their
        column does not explain.
    column_noise_ : ndarray of shape (n_features,)
        Standard deviation of the noise of each column, as estimated for the flags.
    embedding_ : ndarray of shape (n_samples, n_components)
        Scores of the low-rank part of the training data.
    sparsity_ : float
        Weight of the sparse part that was used.
    noise_ : float
        Standard deviation of the dense noise that was allowed for, after division of the columns
        by ``scale``.
    loss_ : EntryLoss
        Loss of the residual entries, with all its parameters as numbers.
    dual_gap_ : float
        By which share of itself the objective can at most still be lowered: a certificate. That
        of the convex problem also where the low-rank part was then fitted again. NaN
        for ``solver='altproj'``, which minimises no objective. For 'sampled', that of the convex
        problem for 300 rows and columns drawn anew: tiny for data without noise, if L is right.
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
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
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
    .. [5] Cai, Hamm, Huang, Li, Wang, Rapid robust principal component analysis: CUR accelerated
       inexact low rank estimation, IEEE Signal Processing Letters 2021.

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

    sparsity_: float
    noise_: float
    loss_: EntryLoss
    dual_gap_: float

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PURSUIT_CONSTRAINTS,
        "solver": [StrOptions({*SCHEDULES, "altproj", "sampled"})],
    }
    _by_blocks = True
    _holds = "some numbers for each row and component, and the wrong entries"
    _scratch_arrays = 10

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        sparsity: float | str = "auto",
        noise: float | str = "auto",
        solver: str = "auto",
        center: str | None = "auto",
        scale: str | None = "auto",
        center_low_rank: bool = True,
        debias: bool = True,
        flag_rate: float = 0.001,
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sparsity = sparsity
        self.noise = noise
        self.solver = solver
        self.center = center
        self.scale = scale
        self.center_low_rank = center_low_rank
        self.debias = debias
        self.flag_rate = flag_rate
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        known = self.n_components == "auto" or isinstance(self.n_components, Integral)
        if self.solver == "altproj" and not known:
            raise ValueError(
                f"solver='altproj' needs to know the rank, but n_components={self.n_components}: "
                "set n_components to it or to 'auto', or use solver='admm'."
            )
        X = checked_entries(rows.paged() if self._reads_blocks() else rows.whole(), axes=(1, 0))
        units = _units(X, self)
        data = units.remove(X)
        solver, loss, noise, result, told = self._pursued(rows, data)
        if noise == 0 or not self.debias:
            fit = _pursuit_fit(self, rows, X, data, units, loss, noise, result)
        else:
            shrinkage = loss.threshold / loss.weight if solver in SCHEDULES else 0.0
            fit = _refitted_fit(self, rows, X, data, units, loss, noise, result, shrinkage)
        return replace(fit, warnings=(*told, *fit.warnings))

    def _reads_blocks(self) -> bool:
        # Sampled columns are all of the columns, if these are not many.
        return self.solver != "sampled"

    def _parts(
        self, solver: str, rows: Rows, data: Array, loss: EntryLoss, noise: float, start: Any
    ) -> Split:
        """Both parts by one of the solvers that look at all entries."""
        if solver == "altproj":
            return alternating_projections(
                data,
                self._rank(rows),
                tol=self.tol,
                max_iter=self.max_iter,
                floor=3 * noise,
                callback=reporter(self),
            )
        schedule = SCHEDULES[solver]
        if noise == 0 and not schedule.exact:
            # Multipliers that are not quite right stay so while the penalty grows.
            start = None
        return split(
            data,
            loss,
            schedule=schedule,
            tol=_start_tol(self, noise) if schedule.exact else self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
            start=self._start(data.shape) or start,
            multipliers=self.warm_start,
            entries=noise == 0 or not self.debias,
        )

    def _pursued(
        self, rows: Rows, data: Array
    ) -> tuple[str, EntryLoss, float, Split, tuple[Warning, ...]]:
        """Solver that was used, loss, noise, both parts, and what the user should be told."""
        if self.solver != "sampled":
            loss, noise, start = pursuit_loss(
                data, self.sparsity, self.noise, callback=reporter(self)
            )
            result = self._parts(self.solver, rows, data, loss, noise, start)
            return self.solver, loss, noise, result, ()
        known = self.n_components is not None and not isinstance(self.n_components, float)
        rank = self._rank(rows) if known else None
        least = 0.0 if self.noise == "auto" else float(self.noise)
        result, check = sampled_pursuit(
            data, rank, noise=least, tol=self.tol, callback=reporter(self)
        )
        if not check.doubts:
            loss, noise, _ = pursuit_loss(data, self.sparsity, max(check.noise, least))
            return self.solver, loss, noise, result, ()
        loss, noise, start = pursuit_loss(data, self.sparsity, self.noise, callback=reporter(self))
        solver = "altproj"
        if rank is not None:
            result = self._parts(solver, rows, data, loss, noise, start)
        if rank is None or Check.of(data, result.low_rank, self.tol, seed=3).doubts:
            solver = "admm"
            result = self._parts(solver, rows, data, loss, noise, start)
        told = UserWarning(
            f"RPCA: solver='sampled' found no low-rank part to be trusted: {check.doubts}. "
            f"solver={solver!r} was used instead; set it to save the attempt."
        )
        return solver, loss, noise, result, (told,)


class RPCAG(LowRankModel):
    r"""Robust PCA on graphs: low rank + sparse, and neighbours alike (RPCAG).

    Minimises :math:`\lVert L \rVert_* + \lambda \lVert S \rVert_1 + \gamma\, \mathrm{tr}(L^\top
    \Phi L)` subject to :math:`L + S = X` [1]_, where :math:`\Phi` is the Laplacian of a graph of
    the samples and X may have missing entries. New rows are connected to their nearest training
    rows; a row of the training data gets its parts of the fit.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace: a number, a share of the variance of the low-rank part, 'auto'
        to find it by predicting held-out entries of the data, or None for its rank.
    smoothness : float or 'auto', default='auto'
        Weight of the graph, for data in units of their root mean square entry: raise it to make
        neighbours more alike. 'auto' spoils some entries and takes the weight with which they
        are mended best while the others stay; it is 0, as in `RPCA`, where no weight does better.
    sparsity : float or 'auto', default='auto'
        Weight of the sparse part: raise it for fewer entries in ``sparse_`` and a higher rank,
        lower it for the contrary. 'auto' is one over the square root of the number of observed
        entries in a row or column, whichever is longer, on average.
    noise : float or 'auto', default='auto'
        Standard deviation of dense noise, in the units of the data, which neither part has to
        explain; 0 for data that are exactly low rank + sparse. 'auto' estimates it, and finds 0
        for such data.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    normalized : bool, default=True
        Whether to use the normalised Laplacian.
    center : {'auto', 'median'} or None, default='auto'
        'median' subtracts the median of each column first. Without it a constant shift of the
        data is part of the low-rank part, as one more direction. 'auto' does it for tables whose
        columns have different units (see `robustpca.parts.unit_differences`), for data far from
        zero, and where few columns are: their offsets might as well be wrong entries.
    scale : {'auto', 'mad'} or None, default='auto'
        'mad' divides each column by its median absolute deviation first; both parts come back in
        the units of the data. 'auto' does it for tables whose columns have different units,
        unless ``noise`` is given in one unit for all.
    center_low_rank : bool, default=True
        Whether components are those of the low-rank part about its mean.
    debias : bool, default=True
        Whether to fit the low-rank part again, by least squares, to the entries that are not
        flagged, if there is noise and no graph has a weight: without the bias of the nuclear
        norm, and of the rank that the noise allows for. ``sparse_`` then holds the errors of the
        flagged entries.
    flag_rate : float, default=0.001
        Share of the entries without an error that may be flagged in ``entry_flags_``.
    tol : float, default=1e-5
        Stop when ``dual_gap_`` is this small and the residual of the two parts is as small a
        share of the data. Ten thousand times this, but at most 0.01, is enough if the low-rank
        part is fitted again (``debias``): that only starts there.
    max_iter : int, default=2000
        Largest number of passes.
    warm_start : bool, default=False
        Whether `fit` starts from the result of the previous call, if that was for data of the
        same shape.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
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
    entry_flags_ : ndarray of shape (n_samples, n_features), dtype bool
        Entries of the training data that are wrong: those whose residual the noise of their
        column does not explain.
    column_noise_ : ndarray of shape (n_features,)
        Standard deviation of the noise of each column, as estimated for the flags.
    embedding_ : ndarray of shape (n_samples, n_components)
        Scores of the low-rank part of the training data.
    smoothness_ : float
        Weight of the graph in the units of the data.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    sparsity_ : float
        Weight of the sparse part that was used.
    noise_ : float
        Standard deviation of the dense noise that was allowed for, after division of the columns
        by ``scale``.
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
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
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

    sparsity_: float
    noise_: float
    loss_: EntryLoss
    dual_gap_: float
    smoothness_: float
    graph_: Any

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PURSUIT_CONSTRAINTS,
        **GRAPH_CONSTRAINTS,
        "smoothness": SMOOTHNESS_CONSTRAINT,
        "graph": ["array-like", "sparse matrix", None],
    }

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        smoothness: float | str = "auto",
        sparsity: float | str = "auto",
        noise: float | str = "auto",
        graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = True,
        center: str | None = "auto",
        scale: str | None = "auto",
        center_low_rank: bool = True,
        debias: bool = True,
        flag_rate: float = 0.001,
        tol: float = 1e-5,
        max_iter: int = 2000,
        warm_start: bool = False,
        contamination: float | str = "auto",
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
        self.scale = scale
        self.center_low_rank = center_low_rank
        self.debias = debias
        self.flag_rate = flag_rate
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        X = observed(rows, axes=(1, 0))
        units = _units(X, self)
        data = units.remove(X)
        size = observed_scale(data)
        graph = adjacency_of(self.graph, data, self.n_neighbors)
        matrix = laplacian(graph, normalized=self.normalized)
        if self.smoothness == "auto":
            # The noise is that beside the nuclear norm: a graph hardly changes it.
            loss, noise, start = pursuit_loss(
                data, self.sparsity, self.noise, callback=reporter(self)
            )
            without = partial(_without_graph, self, units, loss, noise)
            weight = pursuit_smoothness(data, loss, matrix, size, without)
            smoothness = GraphSmoothness.of(matrix, weight) if weight > 0 else None
        else:
            weight = float(self.smoothness) / size if size > 0 else 0.0
            smoothness = GraphSmoothness.of(matrix, weight) if weight > 0 else None
            loss, noise, start = pursuit_loss(
                data, self.sparsity, self.noise, smoothness, callback=reporter(self)
            )
        training = None
        if weight > 0:
            # A copy, since the user may change the array afterwards.
            stored = data.copy() if data is X else data
            training = TrainingGraph(stored, graph, matrix, self.n_neighbors, self.normalized)
        result = split(
            data,
            loss,
            smoothness,
            tol=_start_tol(self, noise) if weight == 0 else self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
            start=self._start(X.shape) or start,
            multipliers=self.warm_start,
        )
        attributes = {"graph_": graph, "smoothness_": weight}
        if weight == 0 and noise > 0 and self.debias:
            shrinkage = loss.threshold / loss.weight
            return _refitted_fit(
                self, rows, X, data, units, loss, noise, result, shrinkage, attributes
            )
        return _pursuit_fit(
            self, rows, X, data, units, loss, noise, result, training, weight, attributes
        )


def _without_graph(
    model: "RPCAG", units: Units, loss: EntryLoss, noise: float, data: Array, low_rank: LowRank
) -> Array:
    """Low-rank part of data if the graph has no weight."""
    if noise == 0 or not model.debias:
        return low_rank.dense()
    shrinkage, center = loss.threshold / loss.weight, bool(units.shift.any())
    found = refit(data, low_rank, shrinkage, model.flag_rate, center=center)
    return found.low_rank(found.solve(data)[0])


def _start_tol(model: "RPCA | RPCAG", noise: float) -> float:
    """Tolerance of the convex problem, which is only a start if a refit follows."""
    if noise == 0 or not model.debias:
        return model.tol
    return max(model.tol, min(START_FACTOR * model.tol, START_GAP))


def _units(X: Array, model: "RPCA | RPCAG") -> Units:
    """Units of the columns; a level of noise is a number only if they share one unit."""
    given = not isinstance(model.noise, str) and model.noise > 0
    return column_units(X, model.center, None if given and model.scale == "auto" else model.scale)


def _pursuit_fit(
    model: RPCA | RPCAG,
    rows: Rows,
    X: Array,
    data: Array,
    units: Units,
    loss: EntryLoss,
    noise: float,
    result: Split,
    graph: TrainingGraph | None = None,
    smoothness: float = 0.0,
    attributes: dict[str, Any] | None = None,
) -> Fit:
    """The fit that follows from both parts of the convex problem."""
    found = result.low_rank.astype(np.float64)
    rank = significant(found.values, NUCLEAR_RANK_TOL)
    middle, values, axes = principal_axes(found.left, found.right, model.center_low_rank)
    n_directions = significant(values, NUCLEAR_RANK_TOL)
    problem = RowProblem.of(
        LowRank(found.left[:, :rank], found.right[:rank], found.values[:rank]),
        middle,
        axes[:n_directions],
        loss,
        result.row_penalty,
    )
    sparse_part = scaled_columns(result.sparse, units)
    if noise > 0:

        def errors(place: slice) -> Array:
            return significant_errors(taken(data, place), result.low_rank.dense(place))

        entries = ResidualFlags.of(errors, len(X), model.flag_rate)
        listed = EntryList(X, bool)
        for place in each(row_tiles(X.shape), data, result.low_rank.left):
            listed.add_tile(entries.flags(errors(place)))
        flagged = compact(joined([listed], X), X)
    else:
        entries, flagged = ResidualFlags(np.zeros(X.shape[1]), 1.0), sparse_part
    decomposition = NuclearDecomposition(
        result.low_rank,
        sparse_part,
        units,
        entries,
        flagged,
        problem,
        graph,
        smoothness,
        KnownRows.of(X),
        result.start(),
    )
    density = result.n_sparse / count_observed(X)
    return _decomposed(
        model,
        rows,
        X,
        decomposition,
        found.left,
        found.right,
        units.shift,
        density,
        noise,
        result,
        {"loss_": loss, "sparsity_": loss.weight, **(attributes or {})},
    )


def _refitted_fit(
    model: RPCA | RPCAG,
    rows: Rows,
    X: Array,
    data: Array,
    units: Units,
    loss: EntryLoss,
    noise: float,
    result: Split,
    shrinkage: float,
    attributes: dict[str, Any] | None = None,
) -> Fit:
    """The fit of a low-rank part that is fitted again, without the flagged entries."""
    center = bool(units.shift.any())
    found = refit(
        data, result.low_rank, shrinkage, model.flag_rate, center=center, callback=reporter(model)
    )
    decomposition = RefittedDecomposition.of(found, X, data, units, result.start())
    density = n_nonzero(decomposition.flagged) / count_observed(X)
    left, right = rescaled(decomposition.codes, found.basis, found.noise)
    return _decomposed(
        model,
        rows,
        X,
        decomposition,
        left,
        right,
        units.restore(found.mean),
        density,
        noise,
        result,
        {"loss_": loss, "sparsity_": loss.weight, **(attributes or {})},
    )


def _decomposed(
    model: RPCA | RPCAG,
    rows: Rows,
    X: Array,
    decomposition: NuclearDecomposition | RefittedDecomposition,
    left: Array,
    right: Array,
    offset: Array,
    density: float,
    noise: float,
    result: Split,
    attributes: dict[str, Any],
) -> Fit:
    """The fit of a decomposition whose low-rank part is ``left @ right`` in its units.

    To that part ``offset`` is added, in the user's units.
    """
    units = decomposition.units
    if not units.trivial:
        left, right = rescaled(left, right, units.scale)
    mean, values, axes = principal_axes(left, right, model.center_low_rank)
    n_directions = significant(values, NUCLEAR_RANK_TOL)
    # An offset does not count: the rank is that about the mean.
    rank = n_directions if offset.any() else significant(column_norms(left), NUCLEAR_RANK_TOL)
    return Fit(
        attributes={
            "_decomposition": decomposition,
            "rank_": rank,
            "density_": density,
            "noise_": noise,
            "column_noise_": decomposition.entries.noise * units.scale,
            "dual_gap_": result.gap,
            **attributes,
        },
        subspace=model._subspace(
            rows, observed_scale(X), decomposition, mean + offset, values, axes, n_directions
        ),
        ending=result,
        warnings=(
            *units_advice(model, X),
            *pursuit_advice(model, rank, density, noise, attributes["sparsity_"], min(X.shape)),
            *_unfinished(model, result),
        ),
    )


def _unfinished(model: RPCA | RPCAG, result: Split) -> tuple[Warning, ...]:
    """What to change if the loop has not reached its end, or ended far from the optimum."""
    if result.converged and getattr(model, "solver", "admm") == "ialm" and result.gap > FAR:
        return (
            ConvergenceWarning(
                f"RPCA: solver='ialm' ended where low_rank_ + sparse_ is the data, but the "
                f"objective may be too high by a share of {result.gap:.1e}. Use solver='auto'."
            ),
        )
    if result.converged or result.change > model.tol:
        return unconverged(model, result)
    return (
        ConvergenceWarning(
            f"{type(model).__name__} stopped after max_iter={model.max_iter} passes, and the "
            f"objective may be too high by a share of {result.gap:.1e}, above "
            f"tol={model.tol:.1e}. Raise max_iter, or raise tol to accept this fit."
        ),
    )
