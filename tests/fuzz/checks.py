"""What must hold for every case: a right answer, or one clear ValueError or TypeError."""

import copy
import linecache
import pickle
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from drawn import Case
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import robustpca
from robustpca.metrics import subspace_distance
from robustpca.models.precision import SIZES

OURS, THEIRS = str(Path(robustpca.__file__).parent), str(Path(sklearn.__file__).parent)
# CPU seconds of a case of some dozen rows from which it counts as one that hangs. Kernels may have
# to be compiled first.
TOO_LONG = 60.0
# Attributes that are documented to be infinite or NaN in some cases.
MAY_LACK = ("gamma_", "dual_gap_")
# What a case may be made of.
NAMES: dict[str, Any] = {"np": np, "sparse": sparse}
exec("from robustpca import *\nfrom robustpca.parts import *", NAMES)
exec("from sklearn.cluster import KMeans\nfrom sklearn.linear_model import Ridge", NAMES)


class WrongError(AssertionError):
    """What is wrong with an answer."""


class HangsError(BaseException):
    """The time is over; no `except` of a library stops it."""


def fault(case: Case) -> str:
    """What is wrong with the answer to a case; empty if nothing is."""
    names = dict(NAMES)
    with np.errstate(all="ignore"):
        exec("\n".join(case.lines), names)
    try:
        with limited(TOO_LONG):
            _check(case, eval(case.model, names), names["X"], names.get("y"))
    except (WrongError, HangsError) as error:
        return str(error)
    except Exception as error:
        return f"cannot be checked: {type(error).__name__}: {error}"
    return ""


def _check(case: Case, model: Any, X: Any, y: Any) -> None:
    before = copy.deepcopy(X)
    refused = answer(lambda: model.fit(X, y))
    if not _equal(X, before):
        raise WrongError("fit: changes X")
    if refused is None:
        if case.refused:
            raise WrongError("fit: takes what it should refuse")
        _check_fitted(case, model, X, y)


def _check_fitted(case: Case, model: Any, X: Any, y: Any) -> None:
    for name, value in sorted(vars(model).items()):
        if name.endswith("_") and not name.startswith("_") and name not in MAY_LACK:
            finite(f"fit: {name}", value)
    again, copied = clone(model), pickle.loads(pickle.dumps(model))
    answer(lambda: again.fit(X, y))
    loaded, second = dict(_answers(copied, X)), dict(_answers(again, X))
    for name, found in _answers(model, X):
        finite(name, found)
        if not _same(found, loaded[name]):
            raise WrongError(f"{name}: differs after a round trip by pickle")
        if not _same(found, second[name]):
            raise WrongError(f"{name}: differs after a second fit to the same data")
    for name, found in _answers(model, _new_rows(X)):
        finite(f"{name} of new rows", found)
    if hasattr(model, "decompose"):
        finite("decompose", _kept(partial(model.decompose, X)))
    if case.planted and hasattr(model, "components_"):
        _check_scaled(model, X)


def _check_scaled(model: Any, X: Any) -> None:
    """Other units give the same subspace, or are refused."""
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=getattr(X, "dtype", float))
    if not dense.any():
        # Nothing of the data was left when they were rounded.
        return
    for exponent in (-30, 30):
        other, factor = clone(model), dense.dtype.type(4.0**exponent)
        if not np.abs(dense.astype(float)).max() < 1e300 * 4.0**-exponent:
            continue
        if answer(partial(other.fit, factor * dense)) is None:
            distance = subspace_distance(model.components_, other.components_)
            if not distance < 1e-3:
                raise WrongError(
                    f"fit: data times 4**{exponent} turn the subspace by {distance:.0e}"
                )


def _new_rows(X: Any) -> Any:
    """Rows near those of the training, and one that is far from all."""
    if not hasattr(X, "astype") or X.dtype.kind != "f":
        return X
    new = X[:2].toarray() if sparse.issparse(X) else np.array(X[:2])
    far = new[:1] * new.dtype.type(100)
    # What cannot be squared would be refused.
    largest = SIZES["float32" if new.dtype == np.float32 else "float64"][1]
    size = float(np.nanmax(np.abs(far), initial=0.0))
    return np.concatenate([new, far]) if size < largest else new


def _answers(model: Any, X: Any) -> Iterator[tuple[str, Any]]:
    """What a fitted model says of some rows."""
    for name in ("transform", "predict", "score_samples", "decision_function", "predict_proba"):
        if hasattr(model, name):
            found = _kept(partial(getattr(model, name), X))
            yield name, found
            if name == "transform" and hasattr(model, "inverse_transform"):
                yield "inverse_transform", _kept(partial(model.inverse_transform, found))
    for name in ("orthogonal_distances", "score_distances"):
        if hasattr(model, name):
            yield name, _kept(partial(getattr(model, name), X))


def _kept(work: Callable[[], Any]) -> Any:
    """The result of something that must be answered."""
    found: list[Any] = []
    refused = answer(lambda: found.append(work()))
    if refused is not None:
        where = traceback.extract_tb(refused.__traceback__)[1:]
        raise WrongError(f"{where[-1].name}: {in_words(refused)}")
    return found[0]


def answer(work: Callable[[], Any]) -> Exception | None:
    """Do some work; return the clear error that it ends with, if any."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            work()
            error = None
        except Exception as raised:
            error = raised
    if error is not None and not is_clear(error):
        raise WrongError(in_words(error)) from error
    for warning in told:
        # What an estimator of scikit-learn says that is wrapped in one of ours is its affair.
        foreign = warning.filename.startswith(THEIRS) and "linear_model" in warning.filename
        # OpenBLAS computes with what lies beside an array and does not use the result
        # (numpy/numpy#24067). A NaN that is used is found in the answer.
        foreign |= "invalid value encountered in matmul" in str(warning.message)
        if warning.category not in (UserWarning, ConvergenceWarning) and not foreign:
            text = f"{warning.category.__name__}: {warning.message}"
            raise WrongError(f"{text} ({Path(warning.filename).name}:{warning.lineno})")
    return error


def is_clear(error: Exception) -> bool:
    """Whether an error is of a plain kind, and its words were meant for the user.

    They were if a ``raise`` statement of this library or of scikit-learn's checks has made it:
    what NumPy and SciPy raise in the midst of some work is about that work.
    """
    kinds = {"ValueError", "TypeError", "InvalidParameterError"}
    if type(error).__name__ not in kinds or not str(error):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    if last.filename.startswith(THEIRS):
        return True
    line = linecache.getline(last.filename, last.lineno or 0)
    return last.filename.startswith(OURS) and line.lstrip().startswith("raise ")


def in_words(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(OURS)] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
    return f"{type(error).__name__}: {str(error)[:200]} ({place})"


def finite(name: str, value: Any) -> None:
    """Refuse NaN and infinities anywhere in a value."""
    if sparse.issparse(value):
        value = value.data
    if isinstance(value, float | np.floating | np.ndarray):
        value = np.asarray(value)
        if value.dtype.kind in "fc" and not np.isfinite(value).all():
            kind = "NaN" if np.isnan(value).any() else "infinite"
            raise WrongError(f"{name} is {kind}")
    elif isinstance(value, tuple | list):
        for one in value:
            finite(name, one)


def _equal(first: Any, second: Any) -> bool:
    """Whether two matrices hold the same numbers."""
    if sparse.issparse(first):
        first, second = first.toarray(), second.toarray()
    return repr(np.asarray(first).tolist()) == repr(np.asarray(second).tolist())


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, tuple):
        return all(map(_same, first, second))
    return bool(np.array_equal(first, second))


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes more CPU seconds than that, where the system can tell."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    start = time.process_time()

    def end(*_: Any) -> None:
        raise HangsError(f"hangs: not done after {time.process_time() - start:.0f} CPU seconds")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
