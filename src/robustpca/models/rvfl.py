"""A random vector functional link network: ridge regression on random features."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.models.base import Fit, store
from robustpca.models.estimator import Estimator, all_or_nothing, rowwise
from robustpca.models.params import Interval

__all__ = ["RVFLClassifier"]


@dataclass(frozen=True)
class HiddenLayer:
    """What the output weights are multiplied by: hidden nodes, and the features themselves."""

    shift: Array
    unit: Array
    weights: Array
    biases: Array
    scale: float
    direct_links: bool

    def __call__(self, X: Array) -> Array:
        X = (X - self.shift.astype(X.dtype)) / self.unit.astype(X.dtype)
        hidden = expit(self.scale * (X @ self.weights + self.biases))
        return np.hstack([hidden, X]) if self.direct_links else hidden


class RVFLClassifier(ClassifierMixin, Estimator):
    r"""Random vector functional link network (RVFL).

    Hidden nodes :math:`h = \mathrm{sigmoid}(s\,(A^\top x + b))` have weights A, uniform in [-1,
    1], and b, uniform in [0, 1], that are drawn once and never learned. The output weights W
    minimise :math:`\lVert Y - [h, x]\, W - 1 w_0^\top \rVert_F^2 + \alpha \lVert W \rVert_F^2`
    for the indicators Y of the classes, and the class with the largest output wins [1]_.

    Parameters
    ----------
    n_hidden : int, default=50
        Number of hidden nodes; 0 leaves the ridge classifier.
    alpha : float, default=1e-3
        Weight of the penalty.
    scale : float, default=1.0
        Factor s: raise it for steeper nodes.
    standardize : bool, default=True
        Whether to give all features mean zero and variance one first; the nodes saturate
        otherwise.
    direct_links : bool, default=True
        Whether the outputs use the features besides the hidden nodes.
    random_state : int, RandomState instance or None, default=0
        Draws the hidden nodes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    hidden_weights_ : ndarray of shape (n_features, n_hidden)
        Weights A of the hidden nodes.
    hidden_biases_ : ndarray of shape (n_hidden,)
        Their biases b.
    coef_ : ndarray of shape (n_classes, n_hidden + n_features)
        Output weights W of the hidden nodes and of the features.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts, which are not penalised.

    References
    ----------
    .. [1] Pao, Park, Sobajic, Learning and generalization characteristics of the random vector
       functional-link net, Neurocomputing, 1994.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from robustpca import RVFLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(RVFLClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_hidden": [Interval(Integral, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "scale": [Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean"],
        "direct_links": ["boolean"],
        "random_state": ["random_state"],
    }

    classes_: Array
    hidden_weights_: Array
    hidden_biases_: Array
    coef_: Array
    intercept_: Array

    def __init__(
        self,
        n_hidden: int = 50,
        *,
        alpha: float = 1e-3,
        scale: float = 1.0,
        standardize: bool = True,
        direct_links: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.scale = scale
        self.standardize = standardize
        self.direct_links = direct_links
        self.random_state = random_state

    @all_or_nothing()
    def fit(self, X: Any, y: Any) -> Self:
        """Draw the hidden nodes and learn the output weights.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,)
            Their classes.

        Returns
        -------
        self : object
            The fitted model.
        """
        if self.n_hidden == 0 and not self.direct_links:
            raise ValueError(
                "n_hidden=0 and direct_links=False leave nothing to learn from: raise n_hidden, or "
                "pass direct_links=True."
            )
        X, y = self._validated(X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        return store(self, self._fit(X, y))

    def _fit(self, X: Array, y: Array) -> Fit:
        classes, numbers = np.unique(y, return_inverse=True)
        scaler = StandardScaler(with_mean=self.standardize, with_std=self.standardize).fit(X)
        rng, width = check_random_state(self.random_state), X.shape[1]
        layer = HiddenLayer(
            shift=np.zeros(width) if scaler.mean_ is None else scaler.mean_,
            unit=np.ones(width) if scaler.scale_ is None else scaler.scale_,
            weights=rng.uniform(-1, 1, size=(width, self.n_hidden)).astype(X.dtype),
            biases=rng.uniform(0, 1, size=self.n_hidden).astype(X.dtype),
            scale=self.scale,
            direct_links=self.direct_links,
        )
        # scikit-learn solves for the weights of the nodes or of the samples, whichever are few.
        outputs = Ridge(self.alpha).fit(layer(X), np.eye(len(classes))[numbers])
        attributes = {
            "classes_": classes,
            "hidden_weights_": layer.weights,
            "hidden_biases_": layer.biases,
            "coef_": np.atleast_2d(outputs.coef_),
            "intercept_": np.atleast_1d(outputs.intercept_),
            "_layer": layer,
        }
        return Fit(attributes)

    @rowwise
    def decision_function(self, X: Any) -> Array:
        """How much the outputs speak for each class.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Outputs; for two classes the second output less the first.
        """
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    @rowwise
    def predict(self, X: Any) -> Array:
        """Class with the largest output.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        classes : ndarray of shape (n_samples,)
            The classes.
        """
        outputs = self._outputs(X)
        return np.asarray(self.classes_[outputs.argmax(axis=1)])

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self)
        X = self._validated(X, dtype=[np.float64, np.float32], reset=False)
        return self._layer(X) @ self.coef_.T + self.intercept_
