"""The only file that touches scikit-learn's private names."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions

__all__ = ["HasMethods", "Interval", "Options", "StrOptions", "fit_context"]
