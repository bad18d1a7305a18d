"""From rows to entries: means over seeds, choices of `best_of`, published values beside."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from robustpca.bench.declarations import ByLevel, Table, place
from robustpca.bench.store import Row, latest

__all__ = ["Entry", "agreement", "direction", "labels", "summarise"]


@dataclass(frozen=True)
class Entry:
    """One value of a table: a method at one place, over all seeds.

    Numbers that do not exist are NaN. ``values`` are those of the single seeds, and ``spread`` is
    their standard deviation. ``rank`` and ``published_rank`` mark the best method at a place and
    the runner-up, here and in the paper.
    """

    dataset: str
    corruption: str
    settings: Mapping[str, Any]
    method: str
    role: str
    tuned: Mapping[str, Any]
    mean: float
    spread: float
    n_seeds: int
    errors: tuple[str, ...]
    n_unsettled: int
    seconds: float
    memory: float
    published: float = math.nan
    rank: int = 0
    n_candidates: int = 0
    chosen_by: str = ""
    values: Mapping[int, float] = field(default_factory=dict)
    published_rank: int = 0

    @property
    def ratio(self) -> float:
        """Ours over the published value."""
        return self.mean / self.published

    @property
    def place(self) -> tuple[str, ...]:
        """Where it stands, without the method."""
        return place(self.dataset, self.corruption, "", self.settings)


def direction(table: Table, score: str) -> str:
    """Which values of a score are good, if any: what the table says about it, or a claim."""
    if score in table.senses:
        return table.senses[score]
    stated = [claim.better for claim in table.claims if claim.score == score and claim.better]
    return stated[0] if stated else table.better


def summarise(
    table: Table, rows: Iterable[Row], score: str | None = None, better: str | None = None
) -> list[Entry]:
    """Entries of a table, in the order of its declaration.

    Of a `best_of` there are two: the candidate with the best mean of the first score, which
    carries the published value, and the default. Further scores are those of the same candidate:
    they describe one and the same model. Candidates that failed for some seed are chosen only if
    all did.

    Parameters
    ----------
    table : Table
        The declaration.
    rows : iterable of dict
        Its rows.
    score : str, default=None
        Which of its scores; None for the first one.
    better : {'lower', 'higher'}, default=None
        Which values are good; None for what the table and its claims say.

    Returns
    -------
    entries : list of Entry
        With ``rank`` 1 for the best method at a place and 2 for the runner-up; defaults of tuned
        methods have none.
    """
    first = next(iter(table.scores))
    score = score or first
    better = better or direction(table, score)
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in latest(rows):
        here = place(row["dataset"], row["corruption"], row["method"], row["settings"])
        groups[here, row["role"], str(row["tuned"])].append(row)
    found: dict[tuple[Any, ...], list[list[Row]]] = defaultdict(list)
    for (here, role, _), group in groups.items():
        found[here, role].append(group)
    targets = table.targets(score)
    entries = []
    for (here, role), candidates in found.items():
        chosen = min(
            candidates,
            key=lambda group: _badness(_entry(group, first), direction(table, first)),
        )
        entry = _entry(chosen, score)
        entry = replace(entry, n_candidates=len(candidates) if role == "candidate" else 0)
        if role != "default":
            entry = replace(entry, published=targets.get(here, math.nan))
        entries.append(entry)
    entries = _sorted(entries, table)
    return entries if better == "neither" else _ranked(entries, better)


def agreement(entries: Sequence[Entry], within: float = 0.1) -> tuple[int, int]:
    """How many entries lie within a share of the published value, and how many have one."""
    compared = [entry for entry in entries if not math.isnan(entry.published)]
    near = [entry for entry in compared if abs(entry.ratio - 1) <= within]
    return len(near), len(compared)


def _entry(rows: Sequence[Row], score: str) -> Entry:
    first = rows[0]
    good = [row for row in rows if not row["error"]]
    scores = {row["seed"]: row["scores"][score] for row in good}
    values = [math.nan if value is None else value for value in scores.values()]
    extra = [
        row["memory_peak"] - row["memory_start"] for row in good if row["memory_peak"] is not None
    ]
    return Entry(
        dataset=first["dataset"],
        corruption=first["corruption"],
        settings=first["settings"],
        method=first["method"],
        role=first["role"],
        tuned=first["tuned"],
        mean=_mean(values),
        spread=_spread(values),
        n_seeds=len(rows),
        errors=tuple(row["error"] for row in rows if row["error"]),
        n_unsettled=sum(row["converged"] is False for row in good),
        seconds=_mean([row["seconds"] for row in good]),
        memory=max(extra, default=math.nan),
        chosen_by=first["chosen_by"],
        values={seed: value for seed, value in sorted(scores.items()) if value is not None},
    )


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def _spread(values: Sequence[float]) -> float:
    # The statistics module cannot do with numbers that are none.
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.nan
    return statistics.stdev(values)


def _badness(entry: Entry, better: str) -> tuple[int, bool, float]:
    mean = entry.mean if better == "lower" else -entry.mean
    return len(entry.errors), math.isnan(mean), mean


def _sorted(entries: Iterable[Entry], table: Table) -> list[Entry]:
    datasets, methods = list(labels(table.datasets)), list(table.methods)
    corruptions = list(labels(table.corruption))

    def position(entry: Entry) -> tuple[Any, ...]:
        return (
            _index(datasets, entry.dataset),
            _index(corruptions, entry.corruption),
            [_sortable(value) for value in entry.settings.values()],
            _index(methods, entry.method),
            entry.role == "default",
        )

    return sorted(entries, key=position)


def _sortable(value: Any) -> tuple[str, Any]:
    """Numbers by size, all else by its text."""
    return ("", value) if isinstance(value, int | float) else (type(value).__name__, str(value))


def labels(part: Any) -> list[str]:
    """Labels of a part of a declaration, at any level."""
    found: dict[str, None] = {}
    for value in vars(part).values() if isinstance(part, ByLevel) else (part,):
        if isinstance(value, Mapping):
            found |= dict.fromkeys(value)
    return list(found)


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _ranked(entries: Sequence[Entry], better: str) -> list[Entry]:
    """The same entries with the places of the best two methods marked, ours and published."""
    ours = _best_two([entry for entry in entries if entry.role != "default"], better, "mean")
    theirs = _best_two(entries, better, "published")
    return [
        replace(entry, rank=ours.get(id(entry), 0), published_rank=theirs.get(id(entry), 0))
        for entry in entries
    ]


def _best_two(entries: Iterable[Entry], better: str, name: str) -> dict[int, int]:
    rivals: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        if not math.isnan(getattr(entry, name)):
            rivals[entry.place].append(entry)
    ranks: dict[int, int] = {}
    for group in rivals.values():
        ordered = sorted((getattr(entry, name) for entry in group), reverse=better == "higher")
        # Equal values share a rank: two firsts, no second.
        found = {id(entry): 1 + ordered.index(getattr(entry, name)) for entry in group}
        ranks |= {key: rank for key, rank in found.items() if rank <= 2}
    return ranks
