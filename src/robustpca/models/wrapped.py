"""The weightings around other people's models: `Reweighted` wraps a regressor or clusterer."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone, is_clusterer, is_regressor
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import ArrayRows
from robustpca.engine.threads import one_openmp_thread
from robustpca.models.base import Fit, reporter, store, unconverged
from robustpca.models.estimator import Estimator, all_or_nothing, rowwise
from robustpca.models.params import HasMethods, Interval, StrOptions
from robustpca.parts.losses import LOSSES, Loss, named
from robustpca.parts.starts import trusted_half
from robustpca.parts.weightings import WEIGHTINGS, Weighting
from robustpca.solvers.reweighting import reweight

__all__ = ["Reweighted"]

# Fourth powers of larger entries are beyond double precision.
LARGEST = float(np.finfo(np.float64).max) ** 0.25


class _WeightedModel:
    """An estimator that takes ``sample_weight``, as a model for the reweighting loop."""

    exact = True

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.fitted: Any = None
        self.largest = max(float(X.max()), -float(X.min()))

    @property
    def given(self) -> tuple[Any, ...]:
        return self.estimator, self.X, self.y

    def fit(self, weights: Array) -> None:
        fresh = clone(self.estimator)
        previous = getattr(self.fitted, "cluster_centers_", None)
        if previous is not None and {"init", "n_init"} <= fresh.get_params().keys():
            # Clusters go on from where they were: a new search could end anywhere.
            fresh.set_params(init=previous, n_init=1)
        # Mean one, so that a penalty of the estimator means what it means without weights.
        shares = weights / weights.mean()
        # What overflows may end as a model of zeros. Functions that overflow for entries of a
        # usual size are meant to.
        single = self.X.dtype == np.float32
        with np.errstate(over="raise" if single or self.largest > LARGEST else None):
            try:
                self.fitted = fresh.fit(self.X, self.y, sample_weight=shares)
            except FloatingPointError as error:
                raise self._overflow("overflows on X") from error

    def _overflow(self, what: str) -> ValueError:
        """The error of an estimator that cannot compute with numbers of this size."""
        single = self.X.dtype == np.float32
        way_out = "use float64, or divide X by that." if single else "divide X by that."
        return ValueError(
            f"{type(self.estimator).__name__} {what}, which is {self.X.dtype} with entries up to "
            f"{self.largest:.0e}: {way_out}"
        )

    def residuals(self) -> Array:
        if hasattr(self.fitted, "cluster_centers_"):
            distances = pairwise_distances_argmin_min(self.X, self.fitted.cluster_centers_)[1]
            return np.square(distances, dtype=np.float64)
        n_samples = self.X.shape[0]
        predicted = np.reshape(self.fitted.predict(self.X), (n_samples, -1))
        if not np.isfinite(predicted).all():
            raise self._overflow("predicts NaN or infinity for X")
        errors = np.reshape(self.y, (n_samples, -1)) - predicted
        return np.square(errors, dtype=np.float64).sum(axis=1)

    def expand(self, weights: Array, enough: float) -> bool:
        return False


def _fitted_has(name: str) -> Any:
    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


class Reweighted(MetaEstimatorMixin, Estimator):
    r"""Robust version of a regressor or clusterer by learned sample weights.

    Minimises :math:`\mathrm{Reg}(a) + \sum_i a_i\, \psi(g_i)` over the weights a and the
    parameters of the estimator, where :math:`g_i` is the squared error of a prediction or the
    squared distance to the nearest cluster centre. The weightings come from [1]_ and [2]_,
    which name least squares and k-means as their uses.

    Parameters
    ----------
    estimator : object
        A regressor, or a clusterer with ``cluster_centers_``, whose ``fit`` takes
        ``sample_weight``.
    weighting : str or Weighting, default='adaptive'
        Weights of the samples: a name in `robustpca.parts.WEIGHTINGS`, or such an object with its
        parameters.
    loss : str or Loss, default='squared'
        Loss of the squared residual: a name in `robustpca.parts.LOSSES`, or such an object with its
        parameters.
    init : {'robust', 'uniform'}, default='robust'
        Where to start: with the samples that look trustworthy (regression: the half with the
        least Stahel-Donoho outlyingness, target included; clustering: the three quarters with
        the nearest neighbours), or with all of them.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start.
    tol : float, default=1e-6
        Stop when a pass lowers the objective by less than this share of it (adaptive weights:
        when no weight changes by more).
    max_iter : int, default=200
        Largest number of fits.
    callback : callable, default=None
        Called after each fit with its ``iteration``, ``objective``, ``change``, ``n_active``.
    verbose : int, default=0
        Print a line after each fit.

    Attributes
    ----------
    estimator_ : object
        The estimator fitted with the last weights.
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    n_active_ : int
        Number of samples with a positive weight.
    labels_ : ndarray of shape (n_samples,)
        Clusters of the training samples, if the estimator is a clusterer.
    objective_ : ndarray
        Objective at the start and after each fit.
    n_iter_ : int
        Number of fits.
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
    >>> from sklearn.linear_model import LinearRegression
    >>> from robustpca import Reweighted
    >>> X = [[0], [1], [2], [3], [4], [5], [6], [7]]
    >>> y = [0, 1, 2, 3, 4, 5, 6, 70]
    >>> Reweighted(LinearRegression()).fit(X, y).estimator_.coef_.round(2)
    array([1.])
    """

    _of_training = ("weights_", "labels_")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "weighting": [StrOptions(set(WEIGHTINGS)), Weighting],
        "loss": [StrOptions(set(LOSSES)), Loss],
        "init": [StrOptions({"robust", "uniform"})],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    estimator_: Any
    weights_: Array
    n_active_: int
    labels_: Array
    objective_: Array
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        estimator: Any,
        *,
        weighting: Any = "adaptive",
        loss: Any = "squared",
        init: str = "robust",
        random_state: Any = 0,
        tol: float = 1e-6,
        max_iter: int = 200,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.weighting = weighting
        self.loss = loss
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose

    @all_or_nothing(skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the estimator and the weights of the samples in turn.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Targets of a regressor; not used by a clusterer.

        Returns
        -------
        self : object
            The fitted model.
        """
        name, supervised = type(self.estimator).__name__, is_regressor(self.estimator)
        if not (supervised or is_clusterer(self.estimator)):
            raise TypeError(f"Reweighted takes a regressor or a clusterer, but {name} is neither.")
        if not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(f"Reweighted needs sample_weight, but {name}.fit does not take it.")
        if supervised:
            X, y = self._validated(
                X, y, accept_sparse="csr", multi_output=True, y_numeric=True,
                ensure_min_samples=2,
            )  # fmt: skip
        else:
            X = self._validated(X, accept_sparse="csr", ensure_min_samples=2)
        return store(self, self._fit(X, y if supervised else None))

    def _fit(self, X: Any, y: Any) -> Fit:
        name = type(self.estimator).__name__
        model = _WeightedModel(self.estimator, X, y)
        model.fit(self._start(X, y))
        if is_clusterer(self.estimator) and not hasattr(model.fitted, "cluster_centers_"):
            raise TypeError(f"Reweighted needs cluster_centers_, but {name} has none.")
        residuals = model.residuals()
        floor = 1e-10 * float(np.sqrt(residuals.mean())) + np.finfo(np.float64).tiny
        result = reweight(
            model,
            named(self.loss, LOSSES, "loss").tuned(residuals, floor),
            named(self.weighting, WEIGHTINGS, "weighting"),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=reporter(self, "fit"),
        )
        share = result.weights / result.weights.sum()
        weights = share if result.step.weights is None else result.step.weights
        labels = {"labels_": model.fitted.predict(X)} if hasattr(model.fitted, "labels_") else {}
        return Fit(
            attributes={
                "estimator_": model.fitted,
                "weights_": weights,
                "n_active_": int(np.count_nonzero(weights)),
                **labels,
            },
            ending=result,
            warnings=unconverged(self, result, "fits", name=f"Reweighted({name})"),
        )

    def _start(self, X: Any, y: Any) -> Array:
        if self.init == "uniform" or not isinstance(X, np.ndarray):
            return np.ones(X.shape[0])
        if is_regressor(self.estimator):
            # In units of their own spread, so that neither features nor targets dominate.
            joint = np.column_stack([X, y])
            spread = joint.std(axis=0)
            rows = ArrayRows(joint / np.where(spread > 0, spread, 1.0))
            rng = check_random_state(self.random_state)
            return trusted_half(rows, np.zeros(len(X)), rng)
        n_neighbors = min(len(X) - 1, max(5, len(X) // 50))
        search = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
        reach = search.kneighbors()[0][:, -1]
        return (reach <= np.quantile(reach, 0.75)).astype(np.float64)

    @available_if(_fitted_has("predict"))
    @rowwise
    def predict(self, X: Any) -> Array:
        """Predict with the fitted estimator.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Targets or clusters.
        """
        return np.asarray(self._ask("predict", X))

    @available_if(_fitted_has("transform"))
    @rowwise
    def transform(self, X: Any) -> Array:
        """Transform with the fitted estimator.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        Z : ndarray
            What the estimator makes of them; for k-means the distances to the centres.
        """
        return np.asarray(self._ask("transform", X))

    @available_if(_fitted_has("transform"))
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and transform the samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : None
            Ignored.

        Returns
        -------
        Z : ndarray
            The same as ``fit(X).transform(X)``.
        """
        return self.fit(X, y).transform(X)

    @available_if(_fitted_has("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Fit, and return the clusters of the samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : None
            Ignored.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Clusters.
        """
        return self.fit(X).labels_

    @available_if(_fitted_has("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """Score of the fitted estimator.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,), default=None
            Targets.

        Returns
        -------
        score : float
            As the estimator defines it.
        """
        return float(self._ask("score", X, y))

    def _ask(self, method: str, X: Any, *more: Any) -> Any:
        check_is_fitted(self)
        X = self._validated(X, accept_sparse="csr", reset=False)
        with one_openmp_thread():
            return getattr(self.estimator_, method)(X, *more)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.regressor_tags = inner.regressor_tags
        tags.transformer_tags = inner.transformer_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.array_api_support = False
        return tags
