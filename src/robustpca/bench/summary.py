"""From rows to entries: means over seeds, choices of `best_of`, published values beside them."""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from robustpca.bench import formats
from robustpca.bench.declarations import AS_PRINTED, ByLevel, Table, place
from robustpca.bench.store import Row, latest

__all__ = ["Entry", "Summary", "direction", "labels", "summarise"]


@dataclass(frozen=True)
class Entry:
    """One value of a table: a method at one place, over all seeds.

    Numbers that do not exist are NaN. ``values`` holds the score of each seed, ``mean`` and
    ``std`` are their mean and standard deviation. ``rank`` and ``published_rank`` are 1 for the
    best method of a place and 2 for the runner-up, here and in the paper, and 0 otherwise.
    ``figures`` holds the pictures, curves and points of the first seed.
    """

    dataset: str
    corruption: str
    settings: Mapping[str, Any]
    method: str
    role: str
    tuned: Mapping[str, Any]
    chosen_by: str
    n_candidates: int
    values: Mapping[int, float]
    mean: float
    std: float
    n_seeds: int
    n_failed: int
    n_unconverged: int
    seconds: float
    memory: float
    published: float = math.nan
    rank: int = 0
    published_rank: int = 0
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Ours over the published value."""
        return self.mean / self.published

    @property
    def is_near(self) -> bool:
        """Whether ours lies within a tenth of the published value."""
        return abs(self.ratio - 1) <= 0.1

    @property
    def is_default(self) -> bool:
        """Whether the parameters are the defaults of a method that is also tuned."""
        return self.role == "default"

    @property
    def label(self) -> str:
        """The method, and whether its parameters are the defaults where others were chosen."""
        return f"{self.method}, default" if self.is_default else self.method

    @property
    def place(self) -> tuple[str, ...]:
        """Data set, corruption and settings, to be compared with those of other entries."""
        return place(self.dataset, self.corruption, "", self.settings)

    @property
    def position(self) -> str:
        """The same in words."""
        return formats.position(self.dataset, self.corruption, self.settings)

    @property
    def remark(self) -> str:
        """What was chosen and by what, what failed, what did not converge."""
        tuned = formats.parameters(self.tuned)
        remarks = [
            (self.n_candidates, f"{tuned}: best of {self.n_candidates} by {self.chosen_by}"),
            (self.n_failed, f"{self.n_failed} of {self.n_seeds} failed"),
            (self.n_unconverged, f"{self.n_unconverged} not converged"),
        ]
        return "; ".join(text for number, text in remarks if number)


Summary = Mapping[str, Sequence[Entry]]  # of each score


def direction(table: Table, score: str) -> str:
    """Which values of a score are good, if any: what the table says about it, or a claim."""
    if score == AS_PRINTED:
        return table.better
    if score in table.senses:
        return table.senses[score]
    stated = [claim.better for claim in table.claims if claim.score == score and claim.better]
    return stated[0] if stated else table.better


def summarise(table: Table, rows: Iterable[Row]) -> dict[str, tuple[Entry, ...]]:
    """Entries of a table for each of its scores, in the order of its declaration.

    Of a `best_of` there are two: the candidate with the best mean of the first score, which
    carries the published value, and the default. Further scores are those of the same candidate:
    they describe one and the same model. Candidates that failed for some seed, or were not run for
    it, are chosen only if all were.

    Parameters
    ----------
    table : Table
        The declaration.
    rows : iterable of dict
        Its rows.

    Returns
    -------
    summary : dict of str to tuple of Entry
        With ``rank`` 1 for the best method at a place and 2 for the runner-up; defaults of tuned
        methods have none.
    """
    fits: dict[tuple[Any, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in latest(rows):
        here = place(row["dataset"], row["corruption"], row["method"], row["settings"])
        fits[here, row["role"]][str(row["tuned"])].append(row)
    main = next(iter(table.scores))
    sense = direction(table, main)
    sign = 1 if (table.better if sense == "neither" else sense) == "lower" else -1

    def badness(group: Sequence[Row]) -> tuple[int, bool, float]:
        # A mean over few seeds may be small by luck: only those over equally many are compared.
        values = _values(group, main)
        mean = sign * _mean(values.values())
        return -len(values), math.isnan(mean), mean

    chosen = {key: min(groups.values(), key=badness) for key, groups in fits.items()}
    datasets, corruptions = labels(table.datasets), labels(table.corruption)

    def order(entry: Entry) -> tuple[Any, ...]:
        # Names that are not declared come last.
        dataset = [*datasets, entry.dataset].index(entry.dataset)
        corruption = [*corruptions, entry.corruption].index(entry.corruption)
        settings = [_sortable(value) for value in entry.settings.values()]
        method = [*table.methods, entry.method].index(entry.method)
        return dataset, corruption, settings, method, entry.is_default

    def entries_of(score: str, targets: Mapping[tuple[str, ...], float]) -> tuple[Entry, ...]:
        entries = [
            _entry(
                group,
                table.printed.get(here[2], main) if score == AS_PRINTED else score,
                len(fits[here, role]) if role == "candidate" else 0,
                math.nan if role == "default" else targets.get(here, math.nan),
            )
            for (here, role), group in chosen.items()
        ]
        return _ranked(sorted(entries, key=order), direction(table, score))

    targets = {score: table.targets(score) for score in table.scores}
    if table.printed:  # the published values stand beside what was printed, and there alone
        targets = {AS_PRINTED: targets[main], **targets, main: {}}
    return {score: entries_of(score, found) for score, found in targets.items()}


def labels(part: Any) -> list[str]:
    """Labels of a part of a declaration, at any level."""
    parts = vars(part).values() if isinstance(part, ByLevel) else (part,)
    return list(dict.fromkeys(name for one in parts if isinstance(one, Mapping) for name in one))


def _entry(rows: Sequence[Row], score: str, n_candidates: int, published: float) -> Entry:
    first, good = rows[0], [row for row in rows if not row["error"]]
    values = _values(rows, score)
    names = ("dataset", "corruption", "settings", "method", "role", "tuned", "chosen_by")
    memory = [
        row["memory_peak"] - row["memory_start"] for row in good if row["memory_peak"] is not None
    ]
    is_finite = len(values) > 1 and all(map(math.isfinite, values.values()))
    return Entry(
        **{name: first[name] for name in names},
        n_candidates=n_candidates,
        values={seed: values[seed] for seed in sorted(values) if not math.isnan(values[seed])},
        mean=_mean(values.values()),
        std=statistics.stdev(values.values()) if is_finite else math.nan,
        n_seeds=len(rows),
        n_failed=len(rows) - len(good),
        n_unconverged=sum(row["converged"] is False for row in good),
        seconds=_mean([row.get("cpu_seconds") or row["seconds"] for row in good]),
        memory=max(memory, default=math.nan),
        published=published,
        figures={k: shown for row in rows for k, shown in (row.get("shown") or {}).items()},
    )


def _values(rows: Iterable[Row], score: str) -> dict[int, float]:
    """The score of each seed that did not fail; NaN where the model has no such score."""
    good = {row["seed"]: row["scores"][score] for row in rows if not row["error"]}
    return {seed: math.nan if value is None else value for seed, value in good.items()}


def _mean(values: Collection[float]) -> float:
    return statistics.fmean(values) if values else math.nan


def _sortable(value: Any) -> tuple[str, Any]:
    """Numbers by size, all else by its text."""
    return ("", value) if isinstance(value, int | float) else (type(value).__name__, str(value))


def _ranked(entries: Sequence[Entry], better: str) -> tuple[Entry, ...]:
    """The same entries with the best two of each place marked, ours and published."""
    if better == "neither":
        return tuple(entries)
    places: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        places[entry.place].append(entry)
    ranked = []
    for entry in entries:
        rivals = places[entry.place]
        ours = [rival.mean for rival in rivals if not rival.is_default]
        rank = 0 if entry.is_default else _rank(entry.mean, ours, better)
        theirs = _rank(entry.published, [rival.published for rival in rivals], better)
        ranked.append(replace(entry, rank=rank, published_rank=theirs))
    return tuple(ranked)


def _rank(value: float, rivals: Iterable[float], better: str) -> int:
    """Rank of a value if it is 1 or 2; equal values share theirs, so there may be no second."""
    rank = 1 + sum(rival < value if better == "lower" else rival > value for rival in rivals)
    return 0 if math.isnan(value) or rank > 2 else rank
