"""Declarations: a published table or figure is one `Table`, and a table is data.

Nothing is loaded or fitted here. A table can be listed, hashed, and taken apart into its cells,
each of which is one fit: a data set, a corruption, a method with all its parameters, a seed.
"""

import csv
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from robustpca.bench.identity import describe

__all__ = [
    "AS_PRINTED",
    "KINDS",
    "LEVELS",
    "Cell",
    "Claim",
    "Source",
    "Table",
    "asked_for",
    "best_of",
    "by_level",
]

LEVELS = ("quick", "default", "full")
KINDS = ("better", "not worse", "similar", "mostly best", "always")  # of claims
AS_PRINTED = "as printed"  # the score that was printed, which may be another for each method
GROUNDS = ("the clean data", "the labels")


@dataclass(frozen=True, kw_only=True)
class ByLevel:
    """A grid, a number of seeds or a data set that grows with the level.

    Examples
    --------
    >>> from robustpca.bench import by_level
    >>> by_level(quick=2, default=10, full=50).full
    50
    """

    quick: Any
    default: Any
    full: Any


by_level = ByLevel


@dataclass(frozen=True)
class Source:
    """A data set of the catalogue, by name; calling it loads it.

    Parameters
    ----------
    name : str
        Name in `robustpca.datasets.catalog`.
    size : tuple of two int, default=None
        Height and width of the images; None for those of the stored file.
    n_samples : int, default=None
        Take this many rows, evenly spaced so that all classes stay; None for all.
    """

    name: str
    size: tuple[int, int] | None = None
    n_samples: int | None = None

    def __call__(self) -> Any:
        # The only place where tables meet the catalogue of data sets.
        from robustpca.datasets import load

        data = load(self.name, size=self.size)
        if self.n_samples is None or self.n_samples >= len(data.X):
            return data
        rows = np.linspace(0, len(data.X) - 1, self.n_samples).round().astype(int)
        return data.taken(rows)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of a paper that the rows of a table can support or contradict.

    At each place of the table (a data set, a corruption, a setting) a method meets its rivals:
    other methods, itself with other settings, or a number. Parameters that a table chooses are
    chosen for all methods alike. What each kind needs is in `robustpca.bench.claims`.

    Parameters
    ----------
    text : str
        What the paper says, in our words. No other claim has the same.
    method : str
        Label of the method that the claim is about.
    section : str, default=''
        Where in the paper the sentence stands.
    kind : {'better', 'not worse', 'similar', 'mostly best', 'always'}, default='better'
        Better than every rival everywhere; worse by no more than ``margin``; different by no more
        than that; best at more than ``share`` of the places; never beyond a bound, in any draw.
    against : sequence of str, default=()
        Labels of the rivals; all other methods by default.
    versus : mapping of str to sequence, default={}
        Instead of other methods, the same one where ``corruption`` or something varied has
        these values.
    bound : float, default=None
        Instead of other methods, a number.
    where : mapping of str to sequence, default={}
        Where it should be: ``dataset``, ``corruption`` or something varied, and the values to
        which the claim is limited. Everywhere by default.
    score : str, default=None
        Which score of the table; None for the first.
    better : {'lower', 'higher'}, default=None
        Which scores are good; None for what the table says.
    factor : float, default=1.0
        How many times better it should be at least, if the kind is 'better'.
    margin : float, default=0.1
        Share of the rival's score that counts as no difference, if the kind is 'not worse' or
        'similar'.
    share : float, default=0.5
        Share of the places that counts as most of them, if the kind is 'mostly best'.
    along : str, default=None
        Something varied: compared is the exponent with which the score grows along it.
    level : {'default', 'full'}, default='default'
        From which level on it is judged: 'full' if it is about sizes that lower levels lack.
    caveat : str, default=''
        What the verdict does not say, in a sentence that stands beside it.
    """

    text: str
    method: str
    section: str = ""
    kind: str = "better"
    against: Sequence[str] = ()
    versus: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    bound: float | None = None
    where: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    score: str | None = None
    better: str | None = None
    factor: float = 1.0
    margin: float = 0.1
    share: float = 0.5
    along: str | None = None
    level: str = "default"
    caveat: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is not known: choose from {', '.join(KINDS)}.")
        if self.level not in LEVELS[1:]:
            raise ValueError(
                f"level={self.level!r}, but claims are judged from the default or full level on."
            )
        rivals = [bool(self.against), bool(self.versus), self.bound is not None]
        if sum(rivals) > 1 or (self.kind == "always" and self.bound is None):
            raise ValueError(
                f"The claim {self.text!r} needs one kind of rivals: against methods, versus "
                "settings, or a bound, which a claim of the kind 'always' must have."
            )
        if self.factor != 1.0 and self.kind != "better":
            raise ValueError(f"factor={self.factor} needs the kind 'better', not {self.kind!r}.")


@dataclass(frozen=True)
class Variant:
    """An estimator of a method: the only one, its default, or a candidate to choose from."""

    estimator: Any
    role: str = "only"
    tuned: Mapping[str, Any] = field(default_factory=dict)
    chosen_by: str = ""


@dataclass(frozen=True)
class BestOf:
    """A method with a grid; see `best_of`."""

    method: Any
    grid: Mapping[str, Any]
    chosen_by: str


def best_of(estimator: Any, chosen_by: str = "the clean data", **grid: Any) -> BestOf:
    """A method that is run with several values of its parameters, the best of which counts.

    The choice is made by the score itself, which a user cannot do: it says what the method could
    reach. It is therefore reported together with the basis of the choice, and the result of the
    parameters as they are in ``estimator`` stands beside it.

    Parameters
    ----------
    estimator : estimator or function
        What is tuned.
    chosen_by : {'the clean data', 'the labels'}, default='the clean data'
        What the score knows that the method does not.
    **grid : list, or `by_level` of lists
        Values to try for each parameter; all combinations are.

    Examples
    --------
    >>> from robustpca import EPCA
    >>> from robustpca.bench import best_of
    >>> best_of(EPCA(), sigma=[1.0, 2.0]).grid
    {'sigma': [1.0, 2.0]}
    """
    if chosen_by not in GROUNDS:
        raise ValueError(f"chosen_by={chosen_by!r} is not known: choose from {GROUNDS}.")
    if not grid:
        raise ValueError("best_of needs at least one parameter with values to choose from.")
    return BestOf(estimator, grid, chosen_by)


def variants(method: Any, settings: Mapping[str, Any], level: str) -> list[Variant]:
    """The estimators to fit of a method, for these values of what the table varies."""
    method = _at(method, level)
    if isinstance(method, BestOf):
        (plain,) = variants(method.method, settings, level)
        default = replace(plain, role="default", chosen_by=method.chosen_by)
        return [default] + [
            Variant(
                clone(plain.estimator).set_params(**tuned), "candidate", tuned, method.chosen_by
            )
            for tuned in _product(method.grid, level)
        ]
    if hasattr(method, "get_params") and not inspect.isclass(method):
        return [Variant(clone(method).set_params(**settings))]
    if callable(method):
        return [Variant(method(**settings))]
    raise TypeError(
        f"{method!r} is not a method: give an estimator, best_of(...), or a function that returns "
        "an estimator."
    )


@dataclass(frozen=True)
class Cell:
    """One fit and its scores: the smallest thing that is run, stored and resumed."""

    table: str
    dataset: str
    source: Callable[[], Any]
    prepare: Callable[..., Any] | None
    corruption: str
    corrupt: Callable[..., Any] | None
    settings: Mapping[str, Any]
    method: str
    variant: Variant
    scores: Mapping[str, Callable[..., Any]]
    shows: Mapping[str, Callable[..., Any]]
    repeats: int
    seed: int

    def identity(self) -> dict[str, Any]:
        """All that determines the result, except for data, code and versions.

        Data that are the same for all seeds are known by what they hold, and not by their source.
        """
        parts = {**vars(self), **vars(self.variant)}
        del parts["variant"]
        if not asked_for(self.source, random_state=0):
            del parts["source"]
        return describe(parts)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table or a figure of a paper, or of your own.

    Any part may be given `by_level`.

    Parameters
    ----------
    name : str
        Short name, by which it is run; that of the file it stands in.
    title : str
        Heading.
    datasets : mapping of str to callable
        For each label a `Source`, or anything that returns a data set when called: an object
        with ``X``, ``y`` and ``image_shape``. If it takes ``random_state``, it is called with
        the seed of the cell, else the data are the same for all seeds.
    methods : mapping of str to method
        For each label an estimator, `best_of`, or a function that takes what the table varies by
        name and returns an estimator.
    score : callable, or mapping of str to callable
        Called with the fitted model, the clean and the corrupted data, and with what else it
        asks for by name: ``y``, ``mask``, ``image_shape``, ``random_state``, ``extras`` (what
        else the data set holds) and ``seconds`` (CPU seconds of the fit). The first one is what was
        published.
    shows : mapping of str to callable, default={}
        Pictures and curves: functions like scores that return what `robustpca.bench.shown`
        makes, or None. They are called for the first seed alone, and go into its rows.
    corruption : callable, or mapping of str to callable, default=None
        Takes data, and ``image_shape`` and ``random_state`` if it asks for them; returns the
        corrupted data and a mask, as `robustpca.datasets.reset_entries`. None for none.
    vary : mapping of str to list, default={}
        Parameters of the methods, and the values they take in turn.
    prepare : callable, default=None
        Applied to the clean data before anything else.
    published : str or Path, default=None
        A file of published values; ``Path(__file__).with_suffix(".csv")`` for one beside the
        module of the table. It is CSV with columns ``dataset``, ``corruption`` (if there are
        several), everything varied, ``method`` and ``value``; and ``score``, if values of other
        scores than the first were published.
    seeds : int, default=10
        Number of repetitions; seed 0, 1, ... draws the corruption, which is the same for all
        methods, and whatever else is random.
    better : {'lower', 'higher'}, default='lower'
        Which scores are good.
    senses : mapping of str to {'lower', 'higher', 'neither'}, default={}
        The same for single scores that differ; 'neither' for those that only describe.
    x : str, default=None
        For a figure: what runs along its axis, one of the varied parameters, 'corruption' or
        'dataset'.
    paper : str, default=''
        Citation.
    notes : sequence of str, default=()
        Where the experiment departs from the published one, and why.
    time_limit : float, default=600
        Seconds after which a cell is stopped and recorded as a failure.
    repeats : int, default=1
        How often each cell is fitted; the shortest time counts. A table of times needs 2, since
        the first fit of a process also loads libraries and compiled code. A fit that takes 20 CPU
        seconds or more is not repeated.
    claims : sequence of Claim, default=()
        What the paper concludes from the table.
    unclaimed : str, default=''
        Why there is no claim, in a sentence, if there is none.
    printed : mapping of str to str, default={}
        For methods of which another score than the first was printed, which one. The table then
        has one more score, 'as printed', beside which the published values stand.
    comparable : sequence of str, default=None
        Data sets that are the published ones; None for all. Agreement with published values is
        counted apart for the others.
    deterministic : bool, default=False
        Whether nothing is random, so that one seed says all.
    only : mapping of str to sequence of str, default={}
        A piece of the table: which ``datasets``, ``corruptions`` and ``methods`` to run.

    Examples
    --------
    >>> from functools import partial
    >>> from sklearn.decomposition import PCA
    >>> from robustpca import PCAOM
    >>> from robustpca.bench import Source, Table
    >>> from robustpca.datasets import reset_entries
    >>> from robustpca.metrics import reconstruction_error
    >>> table = Table(
    ...     name="mine",
    ...     title="Digits with wrong pixels",
    ...     datasets={"digits": Source("digits")},
    ...     corruption=partial(reset_entries, samples=0.2, features=0.2),
    ...     methods={"PCA": PCA(), "PCA-OM": PCAOM()},
    ...     vary={"n_components": [5, 10]},
    ...     score=reconstruction_error,
    ...     seeds=3,
    ... )
    >>> len(table.cells())
    12
    """

    name: str
    title: str
    datasets: Any
    methods: Mapping[str, Any]
    score: Any
    corruption: Any = None
    vary: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[..., Any] | None = None
    published: str | Path | None = None
    seeds: Any = 10
    better: str = "lower"
    x: str | None = None
    paper: str = ""
    notes: Sequence[str] = ()
    time_limit: Any = 600.0
    shows: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    repeats: int = 1
    claims: Sequence[Claim] = ()
    unclaimed: str = ""
    senses: Mapping[str, str] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict)
    comparable: Sequence[str] | None = None
    deterministic: bool = False
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"name={self.name!r} must do as the name of a file: letters, _.")
        if self.better not in ("lower", "higher"):
            raise ValueError(f"better={self.better!r} is not known: choose 'lower' or 'higher'.")
        for name, sense in self.senses.items():
            if name not in self.scores or sense not in ("lower", "higher", "neither"):
                raise ValueError(
                    f"senses has {name!r}: {sense!r}, but scores are {', '.join(self.scores)}, and "
                    "'lower', 'higher' or 'neither' may be good."
                )
        axes = [*self.vary, "corruption", "dataset"]
        if self.x is not None and self.x not in axes:
            raise ValueError(f"x={self.x!r} is not varied: choose from {axes}.")
        named = {name for claim in self.claims for name in (claim.method, *claim.against)}
        named |= set(self.printed)
        if not named <= set(self.methods):
            raise ValueError(
                f"A claim is about {', '.join(sorted(named - set(self.methods)))}, but the table "
                f"has {', '.join(self.methods)}."
            )
        if self.claims and self.unclaimed:
            raise ValueError(f"{self.name} has claims, and says why it has none: leave one out.")
        for claim in self.claims:
            self._check_score(claim)

    def _check_score(self, claim: Claim) -> None:
        """A score must exist; and one by which methods cannot be compared settles nothing."""
        score = claim.score or next(iter(self.scores))
        known = [*self.scores, *([AS_PRINTED] if self.printed else [])]
        if score not in known:
            raise ValueError(
                f"The claim {claim.text!r} has the score {score!r}, but the table has "
                f"{', '.join(known)}."
            )
        between_methods = not claim.versus and claim.bound is None
        if between_methods and self.senses.get(score) == "neither" and claim.kind != "similar":
            raise ValueError(
                f"The claim {claim.text!r} compares methods by {score!r}, of which the table says "
                "that neither low nor high values are good: choose another score."
            )

    @property
    def scores(self) -> dict[str, Callable[..., Any]]:
        """The scores by name, the published one first."""
        return _labelled(self.score, getattr(self.score, "__name__", "score"))

    def corruptions(self, level: str = "default") -> dict[str, Callable[..., Any] | None]:
        """The corruptions by name; the name is empty if there is only one."""
        return self._wanted("corruptions", _labelled(_at(self.corruption, level), ""))

    def sources(self, level: str = "default") -> dict[str, Callable[[], Any]]:
        """The data sets by label."""
        found = {name: _at(source, level) for name, source in _at(self.datasets, level).items()}
        return self._wanted("datasets", found)

    def piece(self, level: str = "default", **only: Sequence[str]) -> "Table":
        """The same table, of which only some data sets, corruptions and methods are run.

        Parameters
        ----------
        level : {'quick', 'default', 'full'}, default='default'
            Where the names must occur.
        **only : sequence of str
            ``datasets``, ``corruptions`` or ``methods``, by their labels.

        Returns
        -------
        table : Table
            Its cells are those of the whole table that are asked for, with the same keys.
        """
        known = self.parts(level)
        for part, names in only.items():
            unknown = [name for name in names if name not in known[part]]
            if unknown:
                choice = ", ".join(filter(None, known[part])) or "none: leave the option out"
                raise ValueError(
                    f"{self.name} has no {part.removesuffix('s')} {unknown[0]!r} at the {level} "
                    f"level: choose from {choice}."
                )
        return replace(self, only={**self.only, **only})

    def parts(self, level: str = "default") -> dict[str, list[str]]:
        """Labels of the ``datasets``, ``corruptions`` and ``methods``."""
        return {
            "datasets": list(self.sources(level)),
            "corruptions": list(self.corruptions(level)),
            "methods": list(self._wanted("methods", self.methods)),
        }

    def draws(self, dataset: str, corruption: str) -> bool:
        """Whether the data or the corruption of a place depend on the seed, at any level."""
        parts = [
            part
            for level in LEVELS
            for part in (self.sources(level).get(dataset), self.corruptions(level).get(corruption))
        ]
        return any(part is not None and asked_for(part, random_state=0) for part in parts)

    def repeated(self, seeds: int) -> "Table":
        """The same table with another number of seeds at all levels, if anything is drawn."""
        return self if self.deterministic else replace(self, seeds=seeds)

    def _wanted(self, part: str, found: Mapping[str, Any]) -> dict[str, Any]:
        names = self.only.get(part, found)
        return {name: value for name, value in found.items() if name in names}

    def limit(self, level: str = "default") -> float:
        """Seconds that a cell may take."""
        return float(_at(self.time_limit, level))

    def points(self, level: str = "default") -> list[dict[str, Any]]:
        """All combinations of what the table varies."""
        return list(_product(self.vary, level))

    def cells(self, level: str = "default") -> list[Cell]:
        """All fits of the table, those on the same corrupted data side by side."""
        return list(self._cells(_known(level)))

    def targets(self, score: str | None = None) -> dict[tuple[str, ...], float]:
        """Published values of a score, the first by default, by `place`; there may be none."""
        if self.published is None:
            return {}
        main = next(iter(self.scores))
        text = Path(self.published).read_text(encoding="utf-8")
        rows = csv.DictReader(text.splitlines())
        return {
            place(
                row["dataset"], row.get("corruption", ""), row["method"], self._varied(row)
            ): float(row["value"])
            for row in rows
            if row.get("score", main) == (score or main)
        }

    def _varied(self, row: Mapping[str, str]) -> dict[str, str]:
        return {name: row[name] for name in self.vary}

    def _cells(self, level: str) -> Iterator[Cell]:
        fits = [
            (settings, label, variant)
            for settings, (label, given) in product(
                self.points(level), self._wanted("methods", self.methods).items()
            )
            for variant in variants(given, settings, level)
        ]
        spoiled = product(
            self.sources(level).items(),
            self.corruptions(level).items(),
            range(int(_at(self.seeds, level))),
        )
        for (dataset, source), (corruption, corrupt), seed in spoiled:
            for settings, label, variant in fits:
                yield Cell(
                    table=self.name,
                    dataset=dataset,
                    source=source,
                    prepare=self.prepare,
                    corruption=corruption,
                    corrupt=corrupt,
                    settings=settings,
                    method=label,
                    variant=variant,
                    scores=self.scores,
                    shows=self.shows,
                    repeats=self.repeats,
                    seed=seed,
                )


def place(
    dataset: str, corruption: str, method: str, settings: Mapping[str, Any]
) -> tuple[str, ...]:
    """Where a value stands in its table; text only, so that files and declarations agree."""
    return (dataset, corruption, method, *(str(settings[name]) for name in sorted(settings)))


def asked_for(function: Callable[..., Any], **offers: Any) -> dict[str, Any]:
    """Those of the offered arguments that a function has and that are not yet given to it."""
    given = function.keywords if isinstance(function, partial) else {}
    names = inspect.signature(function).parameters
    return {name: value for name, value in offers.items() if name in names and name not in given}


def _at(value: Any, level: str) -> Any:
    return getattr(value, _known(level)) if isinstance(value, ByLevel) else value


def _known(level: str) -> str:
    if level not in LEVELS:
        raise ValueError(f"level={level!r} is not known: choose from {', '.join(LEVELS)}.")
    return level


def _product(grid: Mapping[str, Any], level: str) -> Iterator[dict[str, Any]]:
    values = [_at(given, level) for given in grid.values()]
    for combination in product(*values):
        yield dict(zip(grid, combination, strict=True))


def _labelled(value: Any, name: str) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {name: value}
