"""What all estimators have in common with the world around: checks of the data, and links."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

import joblib
import numpy as np
from scipy import sparse
from sklearn import get_config, set_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.checkpoint import one_fit
from robustpca.engine.dask_rows import lazy_rows
from robustpca.engine.linalg import Array
from robustpca.engine.memory import refuse_too_large
from robustpca.engine.threads import (
    one_blas_thread,
    one_openmp_thread,
    openmp_threads,
    set_openmp_threads,
)
from robustpca.models.params import fit_context
from robustpca.models.precision import checked_size
from robustpca.models.saving import RELEASE, Saved

Fitting = TypeVar("Fitting", bound=Callable[..., Any])
Asking = TypeVar("Asking", bound=Callable[..., Any])

# Where the pages of `make docs` are published.
DOCUMENTATION = "https://robustpca.readthedocs.io/en/stable"
# Objects that hold a matrix among other things, by the first part of their module: what to pass.
CONTAINERS = {"anndata": "adata.X", "mudata": "mdata['name'].X"}


class Estimator(Saved, BaseEstimator):
    """Base of every estimator of this library."""

    # Their pictures in notebooks link to the page of their class.
    _doc_link_module = "robustpca"
    _doc_link_template = DOCUMENTATION + "/generated/robustpca.{estimator_name}.html"
    _doc_link_url_param_generator = None

    # Attributes of a fit that belong to its training rows, and that new rows do not need.
    _of_training: ClassVar[tuple[str, ...]] = ()

    def _validated(self, X: Any, *others: Any, **options: Any) -> Any:
        """`validate_data` of scikit-learn, with advice for what people pass by mistake.

        Entries whose squares overflow or vanish are refused as well.
        """
        refuse_containers(X)
        rows = lazy_rows(X)
        if rows is not None:
            refuse_too_large(rows.counted(), type(self).__name__)
            X = X.compute() if hasattr(X, "compute") else np.asarray(X)
        try:
            # Its sums of infinite entries are for it to judge.
            with np.errstate(all="ignore"), naming_columns(X):
                checked = validate_data(self, X, *others, **options)
        except ValueError as error:
            if "contains NaN" not in str(error):
                raise
            raise ValueError(
                f"Input X contains NaN, and {type(self).__name__} takes no missing entries. "
                f"{', '.join(takers_of_nan())} do: fill them in by "
                "np.where(np.isnan(X), RPCA().fit(X).low_rank_, X)."
            ) from None
        given = checked[0] if others else checked
        stored = given.data if sparse.issparse(given) else given
        name = "float32" if stored.dtype == np.float32 else "float64"
        checked_size(stored, name, to_learn=options.get("reset", True))
        return checked

    def _without_training(self) -> Self:
        """A copy that answers for new rows alone, to be sent to other processes."""
        left_out = {"feature_names_in_", "_sklearn_output_config", *self._of_training}
        other = object.__new__(type(self))
        other.__dict__.update({k: v for k, v in vars(self).items() if k not in left_out})
        if "callback" in vars(other):
            other.__dict__["callback"] = None
        return other


def rowwise(method: Asking) -> Asking:
    """Let a method that looks at each row for itself take rows that are not in memory.

    Files are read block by block, and of Dask arrays and data frames it gives Dask arrays, of which
    nothing is computed yet. Models with a subspace tell the row engine themselves what to do.
    """

    @wraps(method)
    def asked(estimator: Any, X: Any) -> Any:
        rows = lazy_rows(X)
        if rows is None:
            return method(estimator, X)
        check_is_fitted(estimator)
        validate_data(estimator, rows.header(), reset=False, skip_check_array=True)
        return rows.rowwise(answer, estimator._without_training(), method.__name__)

    return asked  # type: ignore[return-value]


def answer(block: DenseBlock, estimator: Any, method: str) -> Array:
    """What a method of an estimator says of the rows of a block."""
    return np.asarray(getattr(estimator, method)(block.block))


def all_or_nothing(*, skip_nested_validation: bool = True) -> Callable[[Fitting], Fitting]:
    """Let a ``fit`` check the parameters, and change its estimator only when it is done.

    It works on a copy of the estimator, whose attributes take the place of the old ones in a single
    step. Whatever ends it before, an error or Ctrl-C, leaves the estimator as it was. Meanwhile the
    libraries below have one thread, so that their number changes no bit, and estimators that limit
    them on their own do not restore each other's limits; the threads of the engine do the work.
    """

    def decorate(fit: Fitting) -> Fitting:
        checked = fit_context(prefer_skip_nested_validation=skip_nested_validation)(fit)

        @wraps(fit)
        def whole(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            trial = object.__new__(type(estimator))
            trial.__dict__.update(vars(estimator))
            settings, n_threads = get_config(), openmp_threads()
            try:
                name = type(estimator).__name__
                following = one_fit(name, lambda: identity(trial, args, kwargs))
                with one_blas_thread(), one_openmp_thread(), following:
                    checked(trial, *args, **kwargs)
            except BaseException:
                # An interrupt may have kept scikit-learn from restoring its settings, and then no
                # parameter would be checked any more; and us from restoring OpenMP.
                set_config(**settings)
                set_openmp_threads(n_threads)
                raise
            estimator.__dict__ = vars(trial)
            return estimator

        return whole  # type: ignore[return-value]

    return decorate


def identity(estimator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A hash of everything that decides on the result of a fit: data, parameters, version."""
    given = {
        name: _kind(value) if isinstance(value, BaseEstimator) else _hashable(value)
        for name, value in estimator.get_params().items()
        if name.rpartition("__")[2] not in ("callback", "verbose")
    }
    data = [_content(each) for each in (*args, *kwargs.values())]
    return str(joblib.hash((RELEASE, _kind(estimator), given, data)))


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _hashable(value: Any) -> Any:
    """A parameter, or the name of its class if it cannot be hashed, as a function cannot."""
    try:
        return joblib.hash(value)
    except Exception:
        return _kind(value)


def _content(X: Any) -> Any:
    rows = lazy_rows(X)
    if rows is not None:
        # A hash of each block, where the block is.
        return rows.counted().map(_digest)
    return X if X is None or sparse.issparse(X) else np.asarray(X)


def _digest(block: Any) -> Array:
    return np.frombuffer(hashlib.blake2b(block.block.tobytes()).digest(), np.uint8)


def refuse_containers(X: Any) -> None:
    """Say at once what to pass instead of an object that holds a matrix among other things."""
    home, _, _ = type(X).__module__.partition(".")
    if home in CONTAINERS and not hasattr(X, "__array__"):
        raise TypeError(
            f"X is of type {type(X).__name__} of {home}, which holds a matrix among other things: "
            f"pass {CONTAINERS[home]}."
        )


@contextmanager
def naming_columns(X: Any) -> Iterator[None]:
    """Say which columns of a data frame hold no numbers, if a check of it fails for that."""
    try:
        yield
    except (TypeError, ValueError):
        if not (hasattr(X, "iloc") and hasattr(X, "columns")):
            raise
        named = [repr(name) for place, name in enumerate(X) if not _is_numeric(X.iloc[:, place])]
        if not named:
            raise
        shown = ", ".join(named[:10]) + (f" and {len(named) - 10} more" if named[10:] else "")
        raise ValueError(
            f"X has no numbers in the column{'s' if named[1:] else ''} {shown}: leave "
            f"{'them' if named[1:] else 'it'} out, as X.select_dtypes('number') does, or encode "
            f"{'them' if named[1:] else 'it'} in a ColumnTransformer."
        ) from None


def _is_numeric(column: Any) -> bool:
    """Whether the cells of a column can be taken as numbers; dates cannot."""
    if getattr(column.dtype, "kind", "O") in "mM":
        return False
    try:
        column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return False
    return True


def takers_of_nan() -> list[str]:
    """Names of the public estimators that take missing entries."""
    found, pending = set(), [Estimator]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        # A class without parameters is a base class; others may have classes of their own.
        public = "__init__" in vars(kind) and kind.__module__.startswith(__package__)
        if public and getattr(kind, "_allow_nan", False):
            found.add(kind.__name__)
    return sorted(found)
