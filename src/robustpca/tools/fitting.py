"""Any method by name on a table: fit it, use it, and say what it is."""

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import RobustScaler
from sklearn.utils import get_tags

from robustpca.engine.linalg import Array
from robustpca.models import all_estimators, all_methods
from robustpca.parts.units import column_units, unit_differences
from robustpca.tools.files import LargeTable, Table, with_values
from robustpca.tools.files.table import counted, extra
from robustpca.tools.streaming import asked

__all__ = [
    "Fitted",
    "Transformed",
    "checked",
    "fit_table",
    "last_step",
    "method_named",
    "model_lines",
    "names_of",
    "rebuilt_table",
    "scores_table",
    "settings_from",
]

WORDS = {"true": True, "false": False, "none": None}


def method_named(name: str) -> type:
    """A method that can be fitted to a table, by its name in any case.

    Parameters
    ----------
    name : str
        As in `all_estimators`.

    Returns
    -------
    kind : class
        An estimator that has ``transform`` and needs nothing but data.
    """
    estimators = all_estimators()
    known = {each.lower(): each for each in estimators}
    if name.lower() not in known:
        near = get_close_matches(name.lower(), known, n=1)
        hint = f"Did you mean {known[near[0]]}? " if near else ""
        raise ValueError(f"No method is called {name!r}. {hint}`robustpca methods` lists them all.")
    kind = estimators[known[name.lower()]]
    needed = [
        parameter.name
        for parameter in inspect.signature(kind).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]
    if needed or not hasattr(kind, "transform"):
        what = f"needs {' and '.join(needed)}" if needed else "has no scores of new rows"
        raise ValueError(
            f"{kind.__name__} {what}: use it from Python, or choose another method. "
            "`robustpca methods` lists them all."
        )
    return kind


def settings_from(kind: type, texts: Sequence[str]) -> dict[str, Any]:
    """Parameters of a method from texts such as ``n_components=3``.

    Parameters
    ----------
    kind : class
        The method.
    texts : sequence of str
        Names and values. A value is a number, a tuple and so on as in Python; true, false, none;
        or a word, which needs no quotes.

    Returns
    -------
    settings : dict of str to object
        Values by name.

    Examples
    --------
    >>> from robustpca import RPCA
    >>> from robustpca.tools.fitting import settings_from
    >>> settings_from(RPCA, ["n_components=auto", "noise=0.5", "debias=true"])
    {'n_components': 'auto', 'noise': 0.5, 'debias': True}
    """
    known = [name for name in inspect.signature(kind).parameters if name != "callback"]
    settings = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise ValueError(f"--set {text} should read name=value, as in n_components=3.")
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"{kind.__name__} has no parameter {name!r}: it takes {', '.join(known)}.{hint}"
            )
        settings[name] = _value(text, value)
    return settings


def _value(text: str, value: str) -> Any:
    if value.lower() in WORDS:
        return WORDS[value.lower()]
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        if re.fullmatch(r"[A-Za-z][\w-]*", value):
            return value
    raise ValueError(
        f"The value in --set {text} is neither a number nor a word nor a tuple such as (4,3)."
    )


def fit_table(
    table: Table,
    kind: type,
    settings: Mapping[str, Any],
    scale: str | None = "auto",
    callback: Any = None,
) -> Any:
    """Fit a method to a table.

    Parameters
    ----------
    table : Table
        The data. If they have names, the model knows them.
    kind : class
        The method, from `method_named`.
    settings : dict
        Parameters by name. ``n_components`` is 'auto' if it is not given and the method would
        keep all directions; ``image_shape`` is that of the table.
    scale : {'auto', 'mad'} or None, default='auto'
        Bring columns to one scale first: if their units differ, always, or never. Methods that
        do so themselves are left to it.
    callback : callable, default=None
        Called after each pass.

    Returns
    -------
    model : estimator
        The fitted method, or a pipeline of a scaler and the method.
    """
    model = kind(**settings)
    parameters = model.get_params(deep=False)
    images = "image_shape" in parameters
    if images and parameters["image_shape"] is None:
        if table.image_shape is None or len(table.image_shape) != 2:
            raise ValueError(
                f"{kind.__name__} takes grey images: give a folder or stack of them, or say how "
                "high and wide they are with --set image_shape=(height,width)."
            )
        model.set_params(image_shape=table.image_shape)
    n_missing = int(np.isnan(table.sample()).sum())
    if n_missing and not get_tags(model).input_tags.allow_nan:
        takers = [name for name, each in all_methods().items() if each._allow_nan]
        raise ValueError(
            f"{table.path.name} has {counted(n_missing, 'missing cell')}, and {kind.__name__} "
            "takes none: fill them with `robustpca entries` first, or use one of "
            f"{', '.join(takers)}."
        )
    automatic = issubclass(kind, tuple(all_methods().values())) and not images
    if automatic and "n_components" not in settings and parameters["n_components"] is None:
        model.set_params(n_components="auto")
    if callback is not None and "callback" in parameters:
        model.set_params(callback=callback)
    own = {"scale", "standardize"} & parameters.keys()
    data = _given(table)
    if scale is not None and automatic and not own and _differ(table.sample(), scale):
        scaler = _scaler(table)
        large = isinstance(table, LargeTable)
        data = asked(scaler, data, "transform") if large else scaler.transform(data)
        return make_pipeline(scaler, model.fit(data))
    return model.fit(data)


def _differ(X: Array, scale: str) -> bool:
    found = unit_differences(X)
    return scale == "mad" or found.medians or found.spreads


def _scaler(table: Table) -> RobustScaler:
    """A scaler of scikit-learn with the medians and spreads that the methods here use."""
    sample = table.sample()
    units = column_units(sample, "median", "mad")
    scaler = RobustScaler().fit(sample if table.frame is None else _given(table))
    scaler.center_, scaler.scale_ = units.shift, units.scale
    return scaler


def _given(table: Table) -> Any:
    """The numbers, with the names of their columns where the file has them."""
    if table.frame is None:
        return table.rows
    return extra("pandas", "Reading tables").DataFrame(table.X, columns=table.names)


def names_of(model: Any) -> list[str] | None:
    """Names of the columns that a model was fitted to, if these had names."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def last_step(model: Any) -> Any:
    """The method itself, without what comes before it in a pipeline."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


@dataclass(frozen=True)
class Fitted:
    """A fitted model and its data; printed, it is a text.

    Attributes
    ----------
    table : Table
        The data.
    model : estimator
        The fitted method, or a pipeline of a scaler and the method.
    reason : str
        Why this method was chosen, if nobody asked for it.
    """

    table: Table
    model: Any
    reason: str = ""

    @property
    def verdict(self) -> str:
        """The method and its size."""
        return f"{'; '.join(model_lines(self.model)[:4])}."

    def to_dict(self) -> dict[str, Any]:
        """The result in lists, numbers and texts, for JSON."""
        method = last_step(self.model)
        parameters = {name: _plain(one) for name, one in method.get_params(deep=False).items()}
        parameters.pop("callback", None)
        return {
            "verdict": self.verdict,
            "method": type(method).__name__,
            "n_components": np.ravel(getattr(method, "n_components_", ())).tolist(),
            "parameters": parameters,
            "columns": self.table.names,
            "scaled": method is not self.model,
        }

    def __str__(self) -> str:
        return "\n".join([self.verdict, *filter(None, [self.reason])])


@dataclass(frozen=True)
class Transformed:
    """That the rows of a table were transformed by a model; printed, it is a text."""

    table: Table
    model: Any
    rebuilt: bool

    @property
    def verdict(self) -> str:
        """What was done."""
        rows, name = counted(self.table.X.shape[0], "row"), type(last_step(self.model)).__name__
        return f"{'Rebuilt' if self.rebuilt else 'Computed the scores of'} {rows} by {name}."

    def to_dict(self) -> dict[str, Any]:
        """The result in lists, numbers and texts, for JSON."""
        return {"verdict": self.verdict, "n_rows": self.table.X.shape[0]}

    def __str__(self) -> str:
        return self.verdict


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def checked(model: Any, table: Table) -> Any:
    """The numbers of a table as the model takes them, if it can use them.

    Parameters
    ----------
    model : estimator
        A fitted model.
    table : Table
        With the columns that the model was fitted to.

    Returns
    -------
    X : array or pandas.DataFrame
        With the names of the columns if the model knows them.
    """
    if table.X.shape[1] != model.n_features_in_:
        raise ValueError(
            f"{table.path.name} has {counted(table.X.shape[1], 'numeric column')}, and the model "
            f"was fitted to {model.n_features_in_}."
        )
    if np.isnan(table.sample()).any() and not get_tags(last_step(model)).input_tags.allow_nan:
        raise ValueError(
            f"{table.path.name} has missing cells, and {type(last_step(model)).__name__} takes "
            "none: fill them with `robustpca entries` first."
        )
    return _given(table) if names_of(model) is not None else table.rows


def scores_table(model: Any, table: Table) -> Any:
    """Scores of the rows of a table.

    Parameters
    ----------
    model : estimator
        A fitted model.
    table : Table
        With the columns that the model was fitted to.

    Returns
    -------
    scores : pandas.DataFrame or ndarray
        For tables the columns that are no numbers, such as the index, and the scores behind them;
        for arrays and images the scores alone.
    """
    scores = np.asarray(model.transform(checked(model, table)))
    if table.frame is None:
        return scores
    others = [
        name for name in table.frame if table.left_out.get(name, "not chosen") != "not chosen"
    ]
    frame = table.frame[[name for name in table.frame if name in others]].copy()
    names = getattr(model, "get_feature_names_out", lambda: None)()
    for place, column in enumerate(scores.T):
        frame[str(names[place]) if names is not None else f"score{place}"] = column
    return frame


def rebuilt_table(model: Any, table: Table) -> Any:
    """The table with its numbers as the model sees them: projected on its subspace.

    Parameters
    ----------
    model : estimator
        A fitted model.
    table : Table
        With the columns that the model was fitted to.

    Returns
    -------
    rebuilt : pandas.DataFrame or ndarray
        In the units of the table, with all other columns.
    """
    if not hasattr(model, "inverse_transform"):
        name = type(last_step(model)).__name__
        raise ValueError(f"{name} cannot rebuild rows from their scores.")
    return with_values(table, model.inverse_transform(model.transform(checked(model, table))))


def model_lines(model: Any) -> list[str]:
    """What a fitted model is, in lines.

    Parameters
    ----------
    model : estimator
        A fitted model.

    Returns
    -------
    lines : list of str
        The method, its size, the parameters that are not the defaults, the columns.
    """
    method = last_step(model)
    kind = type(method)
    size = f"{kind.__name__}, fitted to "
    if hasattr(method, "n_samples_"):
        size += f"{counted(int(method.n_samples_), 'row')} and "
    lines = [f"{size}{counted(int(model.n_features_in_), 'column')}"]
    if hasattr(method, "n_components_"):
        shown = np.ravel(method.n_components_).tolist()
        lines.append(f"components: {' x '.join(map(str, shown))}")
    ratio = getattr(method, "explained_variance_ratio_", None)
    if ratio is not None:
        lines.append(f"share of the variance: {float(np.sum(ratio)):.1%}")
    if method is not model:
        lines.append(f"after {', '.join(type(step).__name__ for _, step in model.steps[:-1])}")
    defaults = inspect.signature(kind).parameters
    changed = [
        f"{name}={value!r}"
        for name, value in method.get_params(deep=False).items()
        if name != "callback" and not _is_default(value, defaults[name].default)
    ]
    if changed:
        lines.append(f"parameters: {', '.join(changed)}")
    names = names_of(model)
    if names:
        more = f", and {len(names) - 20} more" if len(names) > 20 else ""
        lines.append(f"names of columns: {', '.join(names[:20])}{more}")
    return lines


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, str | int | float | tuple) and value == default)
