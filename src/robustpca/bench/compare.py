"""Methods on your own data, with troubles planted in it whose truth is known."""

import ast
import inspect
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial
from importlib import import_module
from math import isqrt
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state

from robustpca.datasets import corruptions
from robustpca.engine.linalg import Array
from robustpca.engine.rows import ArrayRows
from robustpca.models import RPCA, all_methods
from robustpca.parts.ranks import rank_of
from robustpca.parts.units import column_units, spreads
from robustpca.tools.files import Table
from robustpca.tools.jobs import RowsFound, as_table, find_rows
from robustpca.tools.report import Grid, Page, rows_page
from robustpca.tools.words import aligned, counted, finite, references

__all__ = [
    "USUAL_METHODS",
    "Comparison",
    "Trial",
    "compare",
    "find_corruption",
    "find_method",
    "plant_cells",
    "plant_rows",
]

USUAL_METHODS = ("PCA", "PCAAN", "EPCA", "AngularEmbedding", "RPCA")
# Shares of rows and cells that are spoiled, and of rows and cells that are held out.
BAD_ROWS, WRONG_CELLS, MISSING_CELLS, HELD_ROWS = 0.1, 0.05, 0.1, 0.25
# How far bad rows are away, in radii of the data, and wrong cells, in spreads of their column.
ROW_DISTANCE, CELL_DISTANCE = 5.0, (5.0, 10.0)
# Data of users have bad rows and cells of their own, which no method should fit: the largest
# errors, at most this share of them, do not count.
TRIMMED = 0.1
# A method is better than PCA if its error is below this share of that of PCA.
BETTER = 0.95

TROUBLES = {
    "bad rows": "a tenth of the rows replaced by a group far away; errors of rows held out",
    "wrong cells": "one cell in twenty replaced by a value far off; errors of these cells",
    "missing cells": "one cell in ten hidden; errors of these cells",
}


@dataclass(frozen=True)
class Trial:
    """One fit.

    Attributes
    ----------
    trouble, method : str
        What was planted, and what was fitted.
    seed : int
        Of the trouble.
    error : float
        Root of the mean square error, without the largest; NaN if the fit failed.
    seconds : float
        Time of the fit.
    failure : str
        Why it failed, or nothing.
    """

    trouble: str
    method: str
    seed: int
    error: float
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Comparison:
    """Errors of methods under planted troubles; printed, it is a text.

    Attributes
    ----------
    table : Table
        The data.
    n_components : int
        Dimension of all subspaces.
    troubles : dict of str to str
        What was planted, and how errors are measured.
    trials : list of Trial
        All fits.
    left_out : dict of str to str
        Methods that cannot be used, and why.
    remarks : list of str
        What was done to the data and the request.
    rows : RowsFound
        What the data are like before anything is planted.
    """

    table: Table
    n_components: int
    troubles: dict[str, str]
    trials: list[Trial]
    left_out: dict[str, str]
    remarks: list[str]
    rows: RowsFound

    @property
    def failed(self) -> bool:
        """Whether no fit succeeded."""
        return all(trial.failure for trial in self.trials)

    @cached_property
    def shares(self) -> dict[str, dict[str, float]]:
        """For each method and trouble its error as a share of PCA's, in the median of the seeds."""
        errors = {(one.trouble, one.method, one.seed): one.error for one in self.trials}
        found: dict[str, dict[str, float]] = {}
        for method in dict.fromkeys(one.method for one in self.trials):
            found[method] = {}
            for trouble in self.troubles:
                seeds = [s for t, m, s in errors if t == trouble and m == method]
                ratios = [
                    errors[trouble, method, seed] / max(errors[trouble, "PCA", seed], 1e-300)
                    for seed in seeds
                ]
                found[method][trouble] = float(np.median(ratios)) if seeds else float("nan")
        return found

    def best(self, trouble: str) -> tuple[str, float]:
        """The method with the least error, and its share of PCA's error."""
        found = {name: shares[trouble] for name, shares in self.shares.items()}
        known = {name: share for name, share in found.items() if np.isfinite(share)}
        name = min(known, key=lambda one: known[one], default="")
        return name, known.get(name, float("nan"))

    @property
    def verdict(self) -> str:
        """Which method is best for which trouble."""
        if self.failed:
            return f"Every fit failed: {self.trials[0].failure}"
        parts: dict[str, list[str]] = {}
        for trouble in self.troubles:
            name, share = self.best(trouble)
            who = f"{name} is best with" if name else "every fit failed with"
            measure = "" if parts else " of PCA's error"
            words = f"{trouble} ({percent(share)}{measure})" if name else trouble
            if name and share > BETTER:
                who, words = "no method is better than PCA with", trouble
            parts.setdefault(who, []).append(words)
        found = [f"{who} {', '.join(words)}" for who, words in parts.items()]
        return f"On your data {'; '.join(found)}."

    def to_dict(self) -> dict[str, Any]:
        """The result in lists, numbers and texts, for JSON."""
        return {
            "verdict": self.verdict,
            "remarks": self.remarks,
            "n_components": self.n_components,
            "troubles": self.troubles,
            "share_of_pca_error": {
                method: {trouble: finite(share) for trouble, share in shares.items()}
                for method, shares in self.shares.items()
            },
            "left_out": self.left_out,
            "as_given": self.rows.verdict,
            "trials": [vars(one) | {"error": finite(one.error)} for one in self.trials],
        }

    def __str__(self) -> str:
        heads = ["method", *self.troubles, "seconds a fit"]
        body = []
        for method, shares in self.shares.items():
            cells = [
                percent(share) + (" *" if self.best(trouble)[0] == method else "")
                for trouble, share in shares.items()
            ]
            seconds = [one.seconds for one in self.trials if one.method == method]
            body.append([method, *cells, f"{np.median(seconds):.2g}"])
        lines = [
            self.verdict,
            f"As the data are: {self.rows.verdict}",
            "",
            "Error as a share of PCA's, * the least:",
            "",
        ]
        lines += [*aligned([heads, *body]), ""]
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])

    @property
    def notes(self) -> list[str]:
        """What was planted, and what else there is to know."""
        n_seeds = len({one.seed for one in self.trials})
        found = [f"{name}: {words}." for name, words in self.troubles.items()]
        found.append(
            f"{self.n_components} components for all; {_draws(n_seeds)}; the largest "
            f"tenth of the errors does not count."
        )
        found += self.remarks
        found += [f"Left out {name}: {why}" for name, why in self.left_out.items()]
        failures = {(one.method, one.failure) for one in self.trials if one.failure}
        return [*found, *(f"{name} failed: {why}" for name, why in sorted(failures))]

    def page(self, command: str) -> Page:
        """The page of the comparison, for `render_report`."""
        page, name = rows_page(self.rows, command), self.table.title
        names = {one.method for one in self.trials} & set(all_methods())
        return replace(
            page,
            title=f"Which method is best on {name}?",
            verdict=f"{self.verdict} As the data are, {self.rows.verdict}",
            remarks=[],
            grid=Grid(
                "Error under planted troubles, as a share of plain PCA's",
                "Known troubles were planted in these data, so that the truth is known. Below "
                "100 % a method comes nearer to it than PCA; the best is framed.",
                list(self.troubles),
                {method: list(shares.values()) for method, shares in self.shares.items()},
                self.notes,
            ),
            code=f"from robustpca.bench.compare import compare\n\nprint(compare({name!r}))",
            papers=[paper for name in sorted(names) for paper in references(all_methods()[name])],
        )


def compare(
    data: Any,
    methods: Sequence[str] = USUAL_METHODS,
    *,
    corrupt: Sequence[str] = (),
    n_components: int | str = "auto",
    image_shape: tuple[int, int] | None = None,
    seeds: int = 3,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Comparison:
    """Compare methods on a table by planting troubles in it.

    Parameters
    ----------
    data : path, data frame, array or Table
        The data; NaN where a cell is missing.
    methods : sequence of str
        Names for `find_method`, or 'all' for PCA and every method of this library. PCA, which
        the others are measured by, is always among them.
    corrupt : sequence of str, default=()
        Corruptions for `find_corruption`, instead of the usual troubles.
    n_components : int or 'auto', default='auto'
        Dimension of the subspaces; found from the data, if 'auto'.
    image_shape : tuple of two int, default=None
        Height and width, if the rows are images and the table does not say so.
    seeds : int, default=3
        How often troubles are drawn.
    progress : callable
        Called after each fit with the number of fits so far and of all fits.

    Returns
    -------
    Comparison
        Errors of all fits; it prints as a table of shares of PCA's error.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.bench.compare import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(100, 8))
    >>> found = compare(X, ["PCAAN", "RPCA"], seeds=1)
    >>> found.best("bad rows")[0], found.best("wrong cells")[0]
    ('PCAAN', 'RPCA')
    """
    table = as_table(data)
    shape = image_shape or table.image_shape
    if shape is not None and shape[0] * shape[1] != table.X.shape[1]:
        raise ValueError(
            f"{table.path.name} has {table.X.shape[1]} columns, but images of {shape[0]} x "
            f"{shape[1]} have {shape[0] * shape[1]} pixels."
        )
    X, seen = table.X, ~np.isnan(table.X)
    remarks = []
    if not seen.all():
        X = np.where(seen, X, _quietly(lambda: RPCA().fit(table.X)).low_rank_)
        remarks.append(
            f"{counted(int((~seen).sum()), 'missing cell was', 'missing cells were')} filled by "
            "RPCA first, and left out of the errors."
        )
    units = column_units(X, "auto", "auto")
    if (units.scale != units.scale[0]).any():
        remarks.append("The columns have different units and were brought to one scale first.")
    X = units.remove(X)
    largest = min(len(X) - round(HELD_ROWS * len(X)), X.shape[1]) - 1
    rank = rank_of(ArrayRows(X)) if n_components == "auto" else int(n_components)
    if rank > largest and n_components != "auto":
        remarks.append(f"{rank} components are more than the data allow: {largest} were used.")
    rank = max(1, min(rank, largest))
    kinds, left_out = _usable(methods, shape)
    troubles = _troubles(corrupt, shape)
    trials: list[Trial] = []
    total = seeds * len(troubles) * len(kinds)
    for seed in range(seeds):
        for trouble, (_, plant) in troubles.items():
            case = plant(X, seen, np.random.default_rng([seed, len(trouble)]))
            for name, kind in kinds.items():
                trials.append(_trial(case, trouble, name, seed, partial(_sized, kind, rank, shape)))
                progress(len(trials), total)
    words = {name: sentence for name, (sentence, _) in troubles.items()}
    rows = _quietly(lambda: find_rows(table))
    return Comparison(table, rank, words, trials, left_out, remarks, rows)


@dataclass(frozen=True)
class Case:
    """What is fitted, and what is asked of the fit.

    ``given`` is shown to a fit, NaN where a cell is hidden; then the model reconstructs ``asked``,
    and entries of ``truth`` that are in ``judged`` count.
    """

    given: Array
    asked: Array
    truth: Array
    judged: Array


def plant_rows(X: Array, rng: np.random.Generator, share: float = BAD_ROWS) -> Array:
    """Replace rows by a group of rows that lies far away from all others.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, without missing entries.
    rng : numpy.random.Generator
        Draws the rows and the place of the group.
    share : float
        Share of the rows.

    Returns
    -------
    spoiled : ndarray of shape (n_samples, n_features)
        A copy with the bad rows.
    """
    n_rows, n_columns = X.shape
    chosen = rng.choice(n_rows, max(1, round(share * n_rows)), replace=False)
    center = np.median(X, axis=0)
    radius = float(np.median(np.linalg.norm(X - center, axis=1)))
    sizes = spreads(X)
    direction = rng.normal(size=n_columns) * sizes
    direction /= max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
    spoiled = X.copy()
    around = 0.1 * sizes * rng.normal(size=(len(chosen), n_columns))
    spoiled[chosen] = center + ROW_DISTANCE * radius * direction + around
    return spoiled


def plant_cells(
    X: Array, seen: Array, rng: np.random.Generator, share: float = WRONG_CELLS
) -> tuple[Array, Array]:
    """Move cells far off.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, without missing entries.
    seen : ndarray of shape (n_samples, n_features), dtype bool
        Cells that may be chosen.
    rng : numpy.random.Generator
        Draws the cells, and how far they are off.
    share : float
        Share of the cells.

    Returns
    -------
    spoiled : ndarray of shape (n_samples, n_features)
        A copy with the wrong cells.
    mask : ndarray of shape (n_samples, n_features), dtype bool
        Which these are.
    """
    mask = (rng.random(X.shape) < share) & seen
    errors = rng.uniform(*CELL_DISTANCE, size=X.shape) * rng.choice([-1, 1], size=X.shape)
    return np.where(mask, X + errors * spreads(X), X), mask


def _bad_rows(X: Array, seen: Array, rng: np.random.Generator) -> Case:
    held = np.zeros(len(X), dtype=bool)
    held[rng.choice(len(X), max(1, round(HELD_ROWS * len(X))), replace=False)] = True
    return Case(plant_rows(X[~held], rng), X[held], X[held], seen[held])


def _wrong_cells(X: Array, seen: Array, rng: np.random.Generator) -> Case:
    spoiled, mask = plant_cells(X, seen, rng)
    return Case(spoiled, spoiled, X, mask)


def _missing_cells(X: Array, seen: Array, rng: np.random.Generator) -> Case:
    mask = (rng.random(X.shape) < MISSING_CELLS) & seen
    mask[mask.all(axis=1)] = False
    hidden = np.where(mask, np.nan, X)
    return Case(hidden, hidden, X, mask)


def _corrupted(function: Any, X: Array, seen: Array, rng: np.random.Generator) -> Case:
    spoiled, mask = function(X, random_state=check_random_state(int(rng.integers(2**31))))
    return Case(spoiled, spoiled, X, mask & seen)


PLANTED = dict(zip(TROUBLES, (_bad_rows, _wrong_cells, _missing_cells), strict=True))


def _troubles(corrupt: Sequence[str], shape: Any) -> dict[str, tuple[str, Callable[..., Case]]]:
    """By name what is said of a trouble, and what plants it."""
    if not corrupt:
        return {name: (words, PLANTED[name]) for name, words in TROUBLES.items()}
    found: dict[str, tuple[str, Callable[..., Case]]] = {}
    for text in corrupt:
        function = find_corruption(text)
        if "image_shape" in inspect.signature(function).parameters:
            if shape is None:
                raise ValueError(f"{text} needs images: say how high and wide with --image-shape.")
            function = partial(function, image_shape=shape)
        found[text] = ("errors of the cells that it changed", partial(_corrupted, function))
    return found


def _usable(methods: Sequence[str], shape: Any) -> tuple[dict[str, type], dict[str, str]]:
    """Classes by name, PCA first, and why others are left out."""
    known = ["PCA", *all_methods()]
    names = [name for given in methods for name in (known if given == "all" else [given])]
    kinds: dict[str, type] = {"PCA": PCA}
    left_out = {}
    for name in names:
        kind = find_method(name)
        if "image_shape" in inspect.signature(kind).parameters and shape is None:
            left_out[name] = "it is for images; say how high and wide with --image-shape."
        else:
            kinds[name] = kind
    return kinds, left_out


def _trial(case: Case, trouble: str, name: str, seed: int, make: Callable[[], Any]) -> Trial:
    """Fit one model to one case."""
    started = time.perf_counter()
    try:
        model = make()
        # Methods that take no missing cells get the median of the column instead.
        takes = bool(getattr(model, "_allow_nan", False))
        given, asked = (case.given, case.asked) if takes else _filled(case)
        _quietly(lambda: model.fit(given))
        seconds = time.perf_counter() - started
        points = _quietly(lambda: _reconstructed(model, asked))
        error = trimmed_error(points - case.truth, case.judged)
    except Exception as failure:  # whatever a method of the user raises
        text = " ".join(str(failure).split()) or type(failure).__name__
        return Trial(trouble, name, seed, float("nan"), time.perf_counter() - started, text)
    return Trial(trouble, name, seed, error, seconds)


def _filled(case: Case) -> tuple[Array, Array]:
    middle = np.nanmedian(case.given, axis=0)
    return tuple(np.where(np.isnan(A), middle, A) for A in (case.given, case.asked))  # type: ignore[return-value]


def _reconstructed(model: Any, X: Array) -> Array:
    if hasattr(model, "reconstruct"):
        return np.asarray(model.reconstruct(X))
    return np.asarray(model.inverse_transform(model.transform(X)))


def trimmed_error(errors: Array, judged: Array) -> float:
    """Root of the mean square of the errors that count, without the largest ones."""
    squares = np.sort(errors[judged] ** 2)
    if not len(squares):
        return float("nan")
    return float(np.sqrt(squares[: max(1, round((1 - TRIMMED) * len(squares)))].mean()))


def _draws(number: int) -> str:
    return "one draw" if number == 1 else f"median of {number} draws"


def _quietly(fit: Callable[[], Any]) -> Any:
    """What a fit returns; its warnings are no concern of a comparison."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit()


def percent(share: float) -> str:
    """A share in percent, with as many digits as it deserves."""
    if not np.isfinite(share):
        return "failed"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def find_method(name: str) -> type:
    """A class by name: one of this library, 'PCA' for scikit-learn's, or 'module:Class'.

    Examples
    --------
    >>> from robustpca.bench.compare import find_method
    >>> find_method("sklearn.decomposition:NMF").__name__
    'NMF'
    """
    known = {"PCA": PCA, **all_methods()}
    if name in known:
        return known[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
        raise ValueError(f"No method is called {name!r}. {hint} Others are given as module:Class.")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name} cannot be imported: {error}.") from error
    lacking = [need for need in ("fit", "get_params", "transform") if not hasattr(found, need)]
    if lacking or not inspect.isclass(found):
        raise ValueError(f"{name} is not a class of transformers: it lacks {', '.join(lacking)}.")
    return found


def find_corruption(text: str) -> Callable[..., Any]:
    """A function of `robustpca.datasets` with arguments.

    Examples
    --------
    >>> from robustpca.bench.compare import find_corruption
    >>> find_corruption("reset_entries:samples=0.5,shared=true").keywords
    {'samples': 0.5, 'shared': True}
    """
    name, _, arguments = text.partition(":")
    if name not in corruptions.__all__:
        raise ValueError(
            f"No corruption is called {name!r}: choose from "
            f"{', '.join(sorted(corruptions.__all__))}."
        )
    function = getattr(corruptions, name)
    keywords = {}
    for part in filter(None, arguments.split(",")):
        keyword, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} in {text!r} should read name=value.")
        keywords[keyword.strip()] = _value(value.strip())
    allowed = [name for name in inspect.signature(function).parameters if name != "X"]
    unknown = [name for name in keywords if name not in allowed]
    if unknown:
        raise ValueError(f"{name} has no {unknown[0]!r}: it takes {', '.join(allowed)}.")
    return partial(function, **keywords)


def _sized(kind: type, n_components: int, shape: Any) -> Any:
    """An estimator of this class with a subspace of this size, if it can be told."""
    model = kind()
    known = model.get_params(deep=False)
    if "image_shape" in known:
        return model.set_params(n_components=_factors(n_components), image_shape=shape)
    return model.set_params(n_components=n_components) if "n_components" in known else model


def _factors(number: int) -> tuple[int, int]:
    """Two factors of a number, the smaller one first, as near to each other as possible."""
    first = next(factor for factor in range(isqrt(number), 0, -1) if number % factor == 0)
    return first, number // first


def _value(text: str) -> Any:
    known = {"true": True, "false": False, "none": None}
    if text.lower() in known:
        return known[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
