"""Low rank by smoothness on two graphs, without a nuclear norm: FRPCAG.

`solvers.graph_descent.fista` minimises its objective.
"""

from typing import Any, ClassVar

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import Rows
from robustpca.engine.scratch import each, is_scratch
from robustpca.engine.svt import row_tiles
from robustpca.models.base import Fit, reporter, unconverged
from robustpca.models.lowrank_base import (
    GRAPH_CONSTRAINTS,
    SMOOTHNESS_CONSTRAINT,
    GraphDecomposition,
    LowRankModel,
    checked_entries,
    graph_errors,
)
from robustpca.models.lowrank_factors import (
    observed_scale,
    significant,
)
from robustpca.models.params import StrOptions
from robustpca.parts.entry_losses import ENTRY_LOSSES, EntryLoss
from robustpca.parts.graphs import adjacency_of, eigenvalue_bound, laplacian
from robustpca.parts.losses import named
from robustpca.parts.units import column_moments
from robustpca.solvers.graph_descent import fista
from robustpca.solvers.known_rows import KnownRows
from robustpca.solvers.new_rows import TrainingGraph
from robustpca.solvers.refit import ResidualFlags
from robustpca.solvers.smoothness import descent_smoothness

__all__ = ["FRPCAG"]

# Singular values of the low-rank part below this share of the largest count as zero: without a
# nuclear norm they are small and not zero.
GRAPH_RANK_TOL = 1e-2
# Unit of a constant column, as a share of the usual one.
SMALL = 1e-6


class FRPCAG(LowRankModel):
    r"""Fast robust PCA on graphs: smooth over samples and over features (FRPCAG).

    Minimises :math:`\ell(X - U) + \gamma_1 \mathrm{tr}(U^\top \Phi_1 U) + \gamma_2 \mathrm{tr}(U
    \Phi_2 U^\top)` over U, with Laplacians of a graph of the samples and one of the features
    [1]_: U becomes low rank without any singular value being computed. X may have missing
    entries.

    New rows are connected to their nearest training rows, whose low-rank parts are fixed, and
    each solves the same problem; a row of the training data gets its parts of the fit.

    Rows in a file may be more than memory holds: the fit is then the same, to the last bit, with
    all arrays of the size of the data in scratch files in the folder for temporary files
    (``TMPDIR``), up to eight at a time. In memory are the graph and some numbers for each row.
    ``low_rank_``, ``sparse_`` and ``entry_flags_`` of such a fit are made when they are asked
    for, as dense arrays in scratch files.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace: a number, a share of the variance of the low-rank part, 'auto'
        to find it by predicting held-out entries of the data, or None for its rank.
    sample_smoothness : float or 'auto', default='auto'
        Weight of the graph of the samples, for data in units of their root mean square entry,
        which is one after standardisation: raise it to make neighbouring samples more alike.
        'auto' spoils some entries and takes the weights with which they are mended best while
        the others stay.
    feature_smoothness : float or 'auto', default='auto'
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
    flag_rate : float, default=0.001
        Share of the entries without an error that may be flagged in ``entry_flags_``.
    tol : float, default=1e-5
        Stop when a step is this small a share of the point it leads to.
    max_iter : int, default=500
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

    sample_smoothness_: float
    feature_smoothness_: float
    sample_graph_: Any
    feature_graph_: Any
    loss_: EntryLoss

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LowRankModel._parameter_constraints,
        **GRAPH_CONSTRAINTS,
        "sample_smoothness": SMOOTHNESS_CONSTRAINT,
        "feature_smoothness": SMOOTHNESS_CONSTRAINT,
        "loss": [StrOptions(set(ENTRY_LOSSES)), EntryLoss],
        "standardize": ["boolean"],
        "sample_graph": ["array-like", "sparse matrix", None],
        "feature_graph": ["array-like", "sparse matrix", None],
    }
    _changes_clean_rows = True
    _by_blocks = True
    _holds = "a graph of the rows"
    _scratch_arrays = 8

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        sample_smoothness: float | str = "auto",
        feature_smoothness: float | str = "auto",
        loss: Any = "l1",
        standardize: bool = True,
        sample_graph: Any = None,
        feature_graph: Any = None,
        n_neighbors: int = 10,
        normalized: bool = True,
        center_low_rank: bool = True,
        flag_rate: float = 0.001,
        tol: float = 1e-5,
        max_iter: int = 500,
        warm_start: bool = False,
        contamination: float | str = "auto",
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
        self.flag_rate = flag_rate
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        X = checked_entries(rows.paged(), axes=(1, 0))
        # Before the columns get other units, which may be in place.
        size, known = observed_scale(X), KnownRows.of(X)
        shift, scale = _column_units(X, self.standardize)
        data = _standardized(X, shift, scale) if self.standardize else X
        unit = observed_scale(data) or 1.0
        loss: EntryLoss = named(self.loss, ENTRY_LOSSES, "loss").scaled(unit)
        sample_graph = adjacency_of(self.sample_graph, data, self.n_neighbors)
        feature_graph = adjacency_of(self.feature_graph, data.T, self.n_neighbors, "features")
        samples = laplacian(sample_graph, normalized=self.normalized)
        features = laplacian(feature_graph, normalized=self.normalized)
        sample_norm, feature_norm = eigenvalue_bound(samples), eigenvalue_bound(features)
        sample_smoothness, feature_smoothness = descent_smoothness(
            data,
            loss,
            (samples, features),
            (sample_norm, feature_norm),
            (self.sample_smoothness, self.feature_smoothness),
            unit,
            scale,
        )
        result = fista(
            data,
            loss,
            samples,
            sample_smoothness,
            features,
            feature_smoothness,
            sample_norm=sample_norm,
            feature_norm=feature_norm,
            start=self._start(X.shape),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
        )
        # A copy, since the user may change the array afterwards.
        stored = data.copy() if data is X and not is_scratch(X) else data

        def errors(place: slice) -> Array:
            chosen = np.arange(len(data))[place]
            parts = [chosen[part] for part in row_tiles((len(chosen), data.shape[1]))]
            low_rank = result.low_rank
            return np.concatenate(
                [graph_errors(data[part], low_rank[part]) for part in each(parts, data, low_rank)]
            )

        decomposition = GraphDecomposition(
            result.low_rank,
            shift,
            scale,
            loss,
            ResidualFlags.of(errors, len(data), self.flag_rate),
            TrainingGraph(stored, sample_graph, samples, self.n_neighbors, self.normalized),
            sample_smoothness,
            feature_smoothness,
            features,
            feature_norm,
            known,
        )
        mean, values, directions = decomposition.principal_axes(self.center_low_rank)
        rank = significant(values, GRAPH_RANK_TOL)
        return Fit(
            attributes={
                "_decomposition": decomposition,
                "rank_": rank,
                "density_": decomposition.density,
                "column_noise_": decomposition.entries.noise * scale,
                "loss_": loss,
                "sample_graph_": sample_graph,
                "feature_graph_": feature_graph,
                "sample_smoothness_": sample_smoothness,
                "feature_smoothness_": feature_smoothness,
            },
            subspace=self._subspace(rows, size, decomposition, mean, values, directions, rank),
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
        if "auto" in (self.sample_smoothness, self.feature_smoothness):
            return ()
        return (
            UserWarning(
                f"FRPCAG: {found}. Raise sample_smoothness={self.sample_smoothness:.3g} or "
                f"feature_smoothness={self.feature_smoothness:.3g}, and see smoothness_path."
            ),
        )


def _column_units(X: Array, standardize: bool) -> tuple[Array, Array]:
    """What to subtract from the columns and to divide them by.

    The unit of a constant column is small beside the others, so that what its neighbours in the
    graph say of its missing entries leaves it constant.
    """
    if not standardize:
        return np.zeros(X.shape[1], X.dtype), np.ones(X.shape[1], X.dtype)
    shift, deviation = column_moments(X)
    constant = deviation <= 8 * np.finfo(X.dtype).eps * np.abs(shift)
    size = float(np.median(deviation[~constant])) if not constant.all() else 1.0
    return shift.astype(X.dtype), np.where(constant, SMALL * size, deviation).astype(X.dtype)


def _standardized(X: Array, shift: Array, scale: Array) -> Array:
    """Columns in these units; a scratch array, which is not the user's, is overwritten."""
    out = X if is_scratch(X) else np.empty_like(X)
    for place in each(row_tiles(X.shape), X):
        out[place] = (X[place] - shift) / scale
    return out
