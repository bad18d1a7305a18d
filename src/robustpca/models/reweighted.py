"""Reweighted PCA: one loop, `solvers.reweighting.reweight`; a loss and a weighting per method."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import Rows
from robustpca.models.base import Fit, Subspace, SubspaceModel, reporter, unconverged
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.capture import ADVICE, capture_warnings
from robustpca.parts.centers import CENTERS
from robustpca.parts.losses import (
    LOSSES,
    CauchyLoss,
    HuberLoss,
    L21Loss,
    Loss,
    SigmaLoss,
    SquaredLoss,
    named,
)
from robustpca.parts.weightings import WEIGHTINGS, AdaptiveNeighbors, CoRobust, Uniform, Weighting
from robustpca.solvers.reweighting import ReweightedSubspace, reweighted_subspace
from robustpca.solvers.weighted_pca import WeightedPCA

__all__ = ["EPCA", "PCAAN", "PCAOM", "R1PCA", "ReweightedPCA"]

# What to do where samples are left out already.
FEWER = (
    "Use init='robust', and let fewer samples count: lower n_active of PCAAN or the threshold of "
    "the loss."
)


class ReweightedModel(SubspaceModel):
    """What all reweighted methods share, whatever the shape of the subspace."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "init": [StrOptions({"auto", "pca", "robust", "random"})],
        "random_state": ["random_state"],
    }

    init: str
    random_state: Any = 0
    loss: Any
    weighting: Any
    weights_: Array
    sample_weights_: Array
    n_active_: int
    loss_: Any

    def _parts(self) -> tuple[Loss, Weighting]:
        """The loss and the weighting of the method: its parameters, unless it fixes them."""
        return (
            named(self.loss, LOSSES, "loss"),
            named(self.weighting, WEIGHTINGS, "weighting"),
        )

    def _model(self, rows: Rows, init: str) -> Any:
        """The subspace that fits the rows with equal weights: a `SubspaceEstimate`."""
        raise NotImplementedError

    def _own_attributes(self, model: Any, result: ReweightedSubspace) -> dict[str, Any]:
        """Fitted attributes that only this method has."""
        return {}

    def _fit(self, rows: Rows) -> Fit:
        loss, weighting = self._parts()
        init = self.init
        if init == "auto":
            init = "robust" if loss.drops or weighting.drops else "pca"
        model = self._model(rows, init)
        result = reweighted_subspace(
            model,
            loss,
            weighting,
            init=init,
            rng=check_random_state(self.random_state),
            share=share_of_variance(self.n_components),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=reporter(self),
        )
        subspace = Subspace.of(
            rows,
            result.mean,
            result.components,
            residuals=result.residuals,
            sample_weights=result.fitted_with,
            variances=result.variances,
            total=result.total,
            floor=result.floor,
            scores=model.scores,
        )
        share = result.weights / result.weights.sum()
        weights = share if result.step.weights is None else result.step.weights
        attributes = {
            "sample_weights_": share,
            "weights_": weights,
            "n_active_": int(np.count_nonzero(weights)),
            "loss_": result.loss,
            **self._own_attributes(model, result),
        }
        advice = FEWER if weighting.drops or loss.drops else ADVICE
        warnings = capture_warnings(type(self).__name__, *model.seen(), advice=advice)
        return Fit(attributes, subspace, result, (*unconverged(self, result), *warnings))


def share_of_variance(n_components: Any) -> float | None:
    """``n_components`` if it is a share of the variance and not a number of components."""
    is_share = isinstance(n_components, Real) and not isinstance(n_components, Integral)
    return float(n_components) if is_share else None


class ReweightedPCA(ReweightedModel):
    r"""PCA with any loss and any weighting: the framework behind the other methods here.

    Minimises :math:`\mathrm{Reg}(a) + \sum_i a_i\, \psi(\lVert (I - WW^\top)(x_i - m)
    \rVert^2)` over the centre m, the basis W and the weights a, where the loss :math:`\psi` is
    concave and the weighting says what a may be and what it costs [1]_ [2]_.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace; a float in (0, 1) for the smallest one that holds this share
        of the weighted variance; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    loss : str or Loss, default='l21'
        Loss of the squared residual: a name in `robustpca.parts.LOSSES`, or such an object with its
        parameters.
    weighting : str or Weighting, default='uniform'
        Weights of the samples: a name in `robustpca.parts.WEIGHTINGS`, or such an object with its
        parameters.
    center : str, default='weighted'
        The centre: 'weighted' for the weighted mean, fitted along, or one that is found first
        and held: 'mean', 'median', 'trimmed_mean', 'geometric_median', 'medoid', 'zero'.
    solver : {'eig', 'power'}, default='eig'
        Find the best subspace in each pass, or take one step of orthogonal iteration, as the
        paper on R1-PCA does.
    init : {'auto', 'pca', 'robust', 'random'}, default='auto'
        Where to start: at plain PCA; at the half of the samples with the least
        Stahel-Donoho outlyingness, which survives outliers that form a cloud of their own;
        or at random weights. 'auto' is 'robust' for methods that drop samples, else 'pca'.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start, or the random weights.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=200
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
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
    .. [1] Zhang, Tong, Robust principal component analysis with adaptive neighbors,
       NeurIPS 2019.
    .. [2] Zhang, Zhang, Li, Enhanced principal component analysis under a
       collaborative-robust framework, 2021.

    Examples
    --------
    >>> from robustpca import ReweightedPCA
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> model = ReweightedPCA(1, loss="cauchy", weighting="adaptive").fit(X)
    >>> model.components_.round(2)
    array([[0.71, 0.71]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ReweightedModel._parameter_constraints,
        "loss": [StrOptions(set(LOSSES)), Loss],
        "weighting": [StrOptions(set(WEIGHTINGS)), Weighting],
        "center": [StrOptions({"weighted", *CENTERS})],
        "solver": [StrOptions({"eig", "power"})],
    }

    center = "weighted"
    solver = "eig"

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        loss: Any = "l21",
        weighting: Any = "uniform",
        center: str = "weighted",
        solver: str = "eig",
        init: str = "auto",
        random_state: Any = 0,
        tol: float = 1e-7,
        max_iter: int = 200,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.weighting = weighting
        self.center = center
        self.solver = solver
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _model(self, rows: Rows, init: str) -> WeightedPCA:
        share = share_of_variance(self.n_components)
        return WeightedPCA(
            rows,
            self._rank(rows) if share is None else 1,
            share=share,
            center=None if self.center == "weighted" else CENTERS[self.center](rows),
            power=self.solver == "power",
            rough=init != "pca",
            tol=self.tol,
        )


class PCAOM(ReweightedPCA):
    r"""Robust PCA with optimal mean (PCA-OM).

    Minimises :math:`\sum_i \lVert (I - WW^\top)(x_i - m) \rVert_2` over m and W [1]_: the
    residual norms are not squared, so a gross outlier pulls with a bounded force. Outliers that
    lie together far away can still hold the start for good; use `PCAAN` against those.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace; a float in (0, 1) for the smallest one that holds this share
        of the weighted variance; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    init : {'auto', 'pca', 'robust', 'random'}, default='pca'
        Where to start: at plain PCA; at the half of the samples with the least
        Stahel-Donoho outlyingness, which survives outliers that form a cloud of their own;
        or at random weights. 'auto' is 'robust' for methods that drop samples, else 'pca'.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start, or the random weights.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=200
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
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
    .. [1] Nie, Yuan, Huang, Optimal mean robust principal component analysis, ICML 2014.

    Examples
    --------
    >>> from robustpca import PCAOM
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> PCAOM(n_components=1).fit(X).components_.round(2)
    array([[0.71, 0.71]])
    """

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        init: str = "pca",
        random_state: Any = 0,
        tol: float = 1e-7,
        max_iter: int = 200,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _parts(self) -> tuple[Loss, Weighting]:
        return L21Loss(), Uniform()


class R1PCA(ReweightedPCA):
    r"""Rotational invariant l1-norm PCA (R1-PCA).

    Minimises :math:`\sum_i \rho(\lVert (I - WW^\top)(x_i - m) \rVert_2)` over W, with the
    centre m found beforehand [1]_.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace; a float in (0, 1) for the smallest one that holds this share
        of the weighted variance; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    loss : {'huber', 'l1', 'cauchy'}, default='huber'
        The function rho. Cauchy's forgets far samples fastest.
    cutoff : float or 'auto', default='auto'
        Residual norm beyond which a sample counts as far, for 'huber' and 'cauchy'; by default
        the median: for 'huber' of the distances from the subspace that has about the least sum
        of them, for 'cauchy' of those at the start. Lower it to trust fewer samples.
    center : str, default='mean'
        The centre, found first and held: 'mean', 'median', 'trimmed_mean' (of the middle half
        of each feature), 'geometric_median', 'medoid' (the sample nearest to all others) or
        'zero'. The mean is the papers'; the others resist outliers.
    solver : {'eig', 'power'}, default='eig'
        Find the best subspace in each pass, or take one step of orthogonal iteration, as the
        paper on R1-PCA does.
    init : {'auto', 'pca', 'robust', 'random'}, default='pca'
        Where to start: at plain PCA; at the half of the samples with the least
        Stahel-Donoho outlyingness, which survives outliers that form a cloud of their own;
        or at random weights. 'auto' is 'robust' for methods that drop samples, else 'pca'.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start, or the random weights.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=200
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
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
    .. [1] Ding, Zhou, He, Zha, R1-PCA: rotational invariant L1-norm principal component
       analysis for robust subspace factorization, ICML 2006.

    Examples
    --------
    >>> from robustpca import R1PCA
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> R1PCA(1, loss="l1", center="geometric_median").fit(X).components_.round(2)
    array([[0.71, 0.71]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ReweightedPCA._parameter_constraints,
        "loss": [StrOptions({"huber", "l1", "cauchy"})],
        "cutoff": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "center": [StrOptions(set(CENTERS))],
    }

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        loss: str = "huber",
        cutoff: float | str = "auto",
        center: str = "mean",
        solver: str = "eig",
        init: str = "pca",
        random_state: Any = 0,
        tol: float = 1e-7,
        max_iter: int = 200,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.cutoff = cutoff
        self.center = center
        self.solver = solver
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _parts(self) -> tuple[Loss, Weighting]:
        losses: dict[str, Loss] = {
            "huber": HuberLoss(self.cutoff),
            "l1": L21Loss(),
            "cauchy": CauchyLoss(self.cutoff),
        }
        return losses[self.loss], Uniform()


class PCAAN(ReweightedPCA):
    r"""PCA with adaptive neighbours (PCA-AN).

    Minimises :math:`\sum_i p_i \lVert (I - WW^\top)(x_i - m) \rVert_2^2 + \gamma \lVert p
    \rVert^2` over m, W and weights p on the probability simplex [1]_. Only the ``n_active``
    best-fitting samples weigh anything: outliers are left out altogether, and with the robust
    start even those that lie together far away.

    With ``n_active``, :math:`\gamma` is chosen anew in each pass, so the objective may rise; what
    a pass gains is then measured with the last :math:`\gamma`. If it has not converged after 15 %
    of ``max_iter`` passes, :math:`\gamma` is frozen, and the objective only falls from there.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=0.9
        Dimension of the subspace; a float in (0, 1) for the smallest one that holds this share
        of the weighted variance; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    n_active : int, float or 'auto', default='auto'
        How many samples may weigh, as a number or as a share. Keep it at or below the number of
        clean samples; raise it towards 1 when few samples are bad. 'auto' is 0.75, or less where
        more than a quarter of the samples are gross outliers: at least four times as far from the
        subspace as the typical sample, and with a gap between them and the others.
    gamma : float, default=None
        A fixed regulariser instead of ``n_active``; it scales with the square of the data.
    init : {'auto', 'pca', 'robust', 'random'}, default='robust'
        Where to start: at plain PCA; at the half of the samples with the least
        Stahel-Donoho outlyingness, which survives outliers that form a cloud of their own;
        or at random weights. 'auto' is 'robust' for methods that drop samples, else 'pca'.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start, or the random weights.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=200
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    gamma_ : float
        Regulariser of the last pass; infinite if all samples are active.
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
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
    .. [1] Zhang, Tong, Robust principal component analysis with adaptive neighbors,
       NeurIPS 2019.

    Examples
    --------
    >>> from robustpca import PCAAN
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> model = PCAAN(n_components=1).fit(X)
    >>> model.components_.round(2)
    array([[0.71, 0.71]])
    >>> model.predict([[2.5, 2.5], [2, 8]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ReweightedPCA._parameter_constraints,
        "n_active": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"auto"}),
        ],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
    }

    gamma_: float

    def __init__(
        self,
        n_components: int | float | str | None = 0.9,
        *,
        n_active: int | float | str = "auto",
        gamma: float | None = None,
        init: str = "robust",
        random_state: Any = 0,
        tol: float = 1e-7,
        max_iter: int = 200,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_active = n_active
        self.gamma = gamma
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _parts(self) -> tuple[Loss, Weighting]:
        return SquaredLoss(), AdaptiveNeighbors(self.n_active, self.gamma)

    def _own_attributes(self, model: Any, result: ReweightedSubspace) -> dict[str, Any]:
        return {"gamma_": result.step.gamma}

    def _fit(self, rows: Rows) -> Fit:
        fit = super()._fit(rows)
        assert fit.subspace is not None
        n_active, n_components = fit.attributes["n_active_"], fit.subspace.n_components
        if n_active > n_components or self.n_components is None:
            return fit
        too_few = UserWarning(
            f"Only {n_active} samples are active, too few to fix {n_components} components: raise "
            "n_active or lower n_components."
        )
        return replace(fit, warnings=(too_few, *fit.warnings))


class EPCA(ReweightedPCA):
    r"""Enhanced PCA under a collaborative-robust framework (EPCA).

    Minimises :math:`\sum_i \frac{1}{1 - \alpha_i} \frac{(1 + \sigma) r_i^2}{r_i + \sigma}`,
    :math:`r_i = \lVert (I - WW^\top)(x_i - m) \rVert_2`, over m, W and weights
    :math:`\alpha` on the probability simplex [1]_. The sigma-loss limits the influence of bad
    samples, and the weights raise that of a few good ones.

    The weights change the objective by a factor of at most n / (n - 1): with many samples they
    hardly matter, and EPCA is PCA with the sigma-loss. With few, the weight of one sample may
    run towards one and the subspace through that sample; ``max_weight=0.5`` prevents it.

    Parameters
    ----------
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace; a float in (0, 1) for the smallest one that holds this share
        of the weighted variance; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    sigma : float or 'auto', default='auto'
        Residual norm at which the loss turns from quadratic to linear; by default a quarter of
        the median distance from the subspace that has about the least sum of distances. Lower it
        for more robustness (towards PCA-OM), raise it towards plain PCA.
    max_weight : float, default=None
        Upper bound of each weight, in (1/n_samples, 1); 0.5 is advisable below 200 samples.
    gamma : float, default=1.0
        Exponent of the weights. Above 1 every sample is raised a little; below 1 only a handful
        of them are, and those of several equally good ones that come first.
    init : {'auto', 'pca', 'robust', 'random'}, default='pca'
        Where to start: at plain PCA; at the half of the samples with the least
        Stahel-Donoho outlyingness, which survives outliers that form a cloud of their own;
        or at random weights. 'auto' is 'robust' for methods that drop samples, else 'pca'.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start, or the random weights.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=200
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    direct_weights_ : ndarray of shape (n_samples,)
        Factor on the loss of each sample, at least 1.
    sigma_ : float
        The sigma used.
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
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
    .. [1] Zhang, Zhang, Li, Enhanced principal component analysis under a
       collaborative-robust framework, 2021.

    Examples
    --------
    >>> from robustpca import EPCA
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> EPCA(n_components=1, max_weight=0.5).fit(X).components_.round(2)
    array([[0.71, 0.71]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ReweightedPCA._parameter_constraints,
        "sigma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "max_weight": [Interval(Real, 0, 1, closed="neither"), None],
        "gamma": [Interval(Real, 0, None, closed="neither")],
    }

    sigma_: float
    direct_weights_: Array

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        sigma: float | str = "auto",
        max_weight: float | None = None,
        gamma: float = 1.0,
        init: str = "pca",
        random_state: Any = 0,
        tol: float = 1e-7,
        max_iter: int = 200,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.sigma = sigma
        self.max_weight = max_weight
        self.gamma = gamma
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _parts(self) -> tuple[Loss, Weighting]:
        return SigmaLoss(self.sigma), CoRobust(self.max_weight, self.gamma)

    def _own_attributes(self, model: Any, result: ReweightedSubspace) -> dict[str, Any]:
        return {"direct_weights_": result.step.direct, "sigma_": result.loss.sigma}
