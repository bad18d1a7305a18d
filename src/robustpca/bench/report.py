"""The report of a run as one value, from which pages and texts are written.

Everything that is computed from rows is computed here, once: the page, Markdown, LaTeX and the
terminal only write it down. The same declarations and rows always give the same report.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from robustpca.bench.claims import JUDGED, VERDICTS, Finding, evaluate
from robustpca.bench.contests import exponents
from robustpca.bench.declarations import Table
from robustpca.bench.figures import Figure, chart, exhibits
from robustpca.bench.formats import position
from robustpca.bench.runner import Outcome
from robustpca.bench.store import Row
from robustpca.bench.summary import Entry, direction, summarise

__all__ = ["Block", "Report", "Section", "build_report"]

OWN = "Experiments of this library"
# Columns from which a table is too wide to find the best, and errors that nobody can read.
CROWDED, LARGE = 7, 1e4


@dataclass(frozen=True)
class Block:
    """One score of a table: its entries, and the same with methods in columns.

    Parameters
    ----------
    score : str
        Name of the score.
    better : {'lower', 'higher', 'neither'}
        Which values are good.
    entries : sequence of Entry
        In the order of the declaration.
    chart : Figure or None, default=None
        The values along the axis of the table, if it has one.
    own : str, default=''
        The method that the paper is about, if it makes claims.
    comparable : sequence of str, default=None
        Data sets that are the published ones; None for all.
    growth : mapping of str to sequence of Entry, default={}
        Exponents with which the values grow, by what they grow with, if a claim asks for them.
    """

    score: str
    better: str
    entries: Sequence[Entry]
    chart: Figure | None = None
    own: str = ""
    comparable: Sequence[str] | None = None
    growth: Mapping[str, Sequence[Entry]] = field(default_factory=dict)

    @cached_property
    def growth_texts(self) -> list[str]:
        """The exponents in a sentence for each place."""
        texts = []
        for along, entries in self.growth.items():
            places: dict[str, list[Entry]] = {}
            for entry in entries:
                places.setdefault(entry.position, []).append(entry)
            for where, group in places.items():
                found = ", ".join(f"{one.label} {one.mean:.2f}" for one in group)
                texts.append(f"{where}: {self.score} grow with {along} to the power of {found}.")
        return texts

    @cached_property
    def agreement(self) -> tuple[int, int]:
        """How many values lie within a tenth of the published one, and how many have one."""
        return self._agreement(is_comparable=True)

    @cached_property
    def agreement_elsewhere(self) -> tuple[int, int]:
        """The same for other versions of the data, which cannot be expected to agree."""
        return self._agreement(is_comparable=False)

    @cached_property
    def is_published(self) -> bool:
        """Whether any value has a published one."""
        return any(not math.isnan(entry.published) for entry in self.entries)

    @cached_property
    def agreement_text(self) -> str:
        """Both in a sentence; empty if nothing was published."""
        parts = []
        near, compared = self.agreement
        if compared:
            parts.append(f"{near} of {compared} values lie within 10 % of the published one")
        near, compared = self.agreement_elsewhere
        if compared:
            parts.append(f"on other versions of the data {near} of {compared} do")
        return f"{'; '.join(parts)}." if parts else ""

    def _agreement(self, is_comparable: bool) -> tuple[int, int]:
        known = [entry for entry in self.entries if not math.isnan(entry.published)]
        near = [
            entry.is_near
            for entry in known
            if is_comparable == (self.comparable is None or entry.dataset in self.comparable)
        ]
        return sum(near), len(near)

    @cached_property
    def place_names(self) -> list[str]:
        """Heads of the columns that say where an entry belongs."""
        corruption = ["corruption"] if any(entry.corruption for entry in self.entries) else []
        return ["data", *corruption, *(self.entries[0].settings if self.entries else ())]

    @cached_property
    def columns(self) -> dict[str, bool]:
        """Names of the columns of methods, and whether they are of default parameters."""
        return {entry.label: entry.is_default for entry in self.entries}

    @cached_property
    def is_crowded(self) -> bool:
        """Whether there are so many columns that some need emphasis."""
        return len(self.columns) > CROWDED

    @cached_property
    def ordered_columns(self) -> dict[str, bool]:
        """The columns, of many those first that a reader looks for: the paper's own, the best."""
        if not self.is_crowded:
            return self.columns
        order = sorted(self.columns, key=lambda name: (not self.is_own(name), name != self.rival))
        return {name: self.columns[name] for name in order}

    @cached_property
    def rival(self) -> str:
        """The column, other than the paper's own, that has the best place in the mean."""
        places: dict[str, list[float]] = {}
        for line in self.lines:
            for name in line:
                places.setdefault(name, []).append(self.heat(line, name))
        means = {
            name: sum(found) / len(found)
            for name, found in places.items()
            if not self.is_own(name) and not any(map(math.isnan, found))
        }
        return min(means, key=lambda name: means[name]) if means else ""

    def is_own(self, name: str) -> bool:
        """Whether a column belongs to the method that the paper is about."""
        return bool(self.own) and name in (self.own, f"{self.own}, default")

    def heat(self, line: Mapping[str, Entry], name: str) -> float:
        """Place of a column among those of its line: 0 for the best, 1 for the worst."""
        if self.better == "neither":
            return math.nan
        sign = 1 if self.better == "lower" else -1
        values = [sign * one.mean for one in line.values() if not math.isnan(one.mean)]
        here = sign * line[name].mean
        if math.isnan(here) or len(values) < 2:
            return math.nan
        return sum(value < here for value in values) / (len(values) - 1)

    def share(self, line: Mapping[str, Entry], name: str) -> float:
        """A large error as a share of that of PCA at the same place; NaN for other values."""
        plain = line.get("PCA")
        if self.better != "lower" or plain is None or not plain.mean >= LARGE:
            return math.nan
        return line[name].mean / plain.mean

    @cached_property
    def lines(self) -> list[dict[str, Entry]]:
        """For each place its entries by column."""
        places: dict[tuple[str, ...], dict[str, Entry]] = {}
        for entry in self.entries:
            places.setdefault(entry.place, {})[entry.label] = entry
        return list(places.values())

    def place_of(self, entry: Entry) -> dict[str, Any]:
        """Where an entry belongs, in the columns of `place_names`."""
        facts = {"data": entry.dataset, "corruption": entry.corruption, **entry.settings}
        return {name: facts[name] for name in self.place_names}


@dataclass(frozen=True)
class Section:
    """All that a report says about a table.

    Parameters
    ----------
    table : Table
        The declaration.
    blocks : sequence of Block
        One for each score.
    findings : sequence of Finding
        Verdicts on the claims.
    figures : sequence of Figure
        Pictures, curves and points of the rows.
    failures : mapping of (str, str) to Counter
        For each method and error, how many seeds failed where.
    missing_data : mapping of str to str
        What could not be run, and why.
    n_cells, n_rows, n_seeds : int
        How many cells the table has at this level, and how many cells and seeds were run.
    seconds : float
        Time spent in fits.
    versions : sequence of str
        Of the libraries.
    command : str
        What repeats the table; empty for tables that the command line does not know.
    """

    table: Table
    blocks: Sequence[Block]
    findings: Sequence[Finding]
    figures: Sequence[Figure]
    failures: Mapping[tuple[str, str], Counter[str]]
    missing_data: Mapping[str, str]
    n_cells: int
    n_rows: int
    n_seeds: int
    seconds: float
    versions: Sequence[str]
    command: str

    @property
    def n_failed(self) -> int:
        """How many cells failed."""
        return sum(places.total() for places in self.failures.values())

    @property
    def agreement(self) -> tuple[int, int]:
        """As for a block, over all scores."""
        near, compared = zip(*(block.agreement for block in self.blocks), strict=True)
        return sum(near), sum(compared)


@dataclass(frozen=True)
class Report:
    """What became of a run, table by table.

    Parameters
    ----------
    sections : sequence of Section
        One for each table.
    level : {'quick', 'default', 'full'}
        The level of the run.
    interrupted : bool
        Whether it was stopped before the end.
    n_rows, n_other : int
        How many rows there are, and how many further ones are of other levels or older code.
    dates, machines, versions : sequence of str
        First and last day, and what it was run on.
    """

    sections: Sequence[Section]
    level: str
    interrupted: bool
    n_rows: int
    n_other: int
    dates: Sequence[str]
    machines: Sequence[str]
    versions: Sequence[str]

    @property
    def papers(self) -> dict[str, list[Section]]:
        """Sections by paper; experiments of this library come last."""
        found: dict[str, list[Section]] = {}
        for section in sorted(self.sections, key=lambda section: not section.table.paper):
            found.setdefault(section.table.paper or OWN, []).append(section)
        return found

    @property
    def verdicts(self) -> dict[str, int]:
        """How often each verdict was given."""
        found = Counter(one.verdict for section in self.sections for one in section.findings)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    @property
    def judged(self) -> bool:
        """Whether level and seeds were enough for any verdict."""
        return bool(self.verdicts.keys() & set(JUDGED))


def build_report(
    tables: Iterable[Table], outcome: Outcome, commands: Mapping[str, str] | None = None
) -> Report:
    """Summarise a run: means, published values, verdicts and figures of all its tables.

    Parameters
    ----------
    tables : iterable of Table
        The declarations, in the order of the report.
    outcome : Outcome
        Their rows and what was missing, from `run` or `collect`.
    commands : mapping of str to str, default=None
        By the name of a table what to type to run it again, for those that have a command.

    Returns
    -------
    report : Report
        A value that `write_report`, `render_terminal` and the other renderers take.
    """
    rows = outcome.rows
    dates = sorted(row["finished"][:10] for row in rows if row.get("finished"))
    return Report(
        sections=tuple(
            _section(table, outcome, (commands or {}).get(table.name, "")) for table in tables
        ),
        level=outcome.level,
        interrupted=outcome.interrupted,
        n_rows=len(rows),
        n_other=outcome.n_other,
        dates=_distinct(dates[:1] + dates[-1:]),
        machines=_distinct(_machine(row.get("machine") or {}) for row in rows),
        versions=_versions(rows),
    )


def _section(table: Table, outcome: Outcome, command: str) -> Section:
    rows = outcome.of(table.name)
    summary = summarise(table, rows)
    failures: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        if row["error"]:
            where = position(row["dataset"], row["corruption"], row["settings"])
            failures.setdefault((row["method"], row["error"]), Counter())[where] += 1
    own = table.claims[0].method if table.claims else ""
    return Section(
        table=table,
        blocks=tuple(
            Block(
                score,
                direction(table, score),
                entries,
                chart(table, entries, score),
                own,
                table.comparable,
                _growth(table, score, entries),
            )
            for score, entries in summary.items()
        ),
        findings=evaluate(table, summary, outcome.level),
        figures=exhibits(table, next(iter(summary.values()))),
        failures=failures,
        missing_data=outcome.missing_data.get(table.name, {}),
        n_cells=len(table.cells(outcome.level)),
        n_rows=len(rows),
        n_seeds=len({row["seed"] for row in rows}),
        seconds=sum(row["seconds"] or 0.0 for row in rows),
        versions=_versions(rows),
        command=command,
    )


def _growth(table: Table, score: str, entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    main = next(iter(table.scores))
    names = {one.along for one in table.claims if one.along and (one.score or main) == score}
    return {along: exponents(entries, along) for along in sorted(names)}


def _machine(facts: Mapping[str, Any]) -> str:
    parts = [facts.get("system"), facts.get("processor")]
    parts += [f"{facts['cores']} cores"] if facts.get("cores") else []
    parts += [f"{facts['memory_gib']} GiB"] if facts.get("memory_gib") else []
    return ", ".join(str(part) for part in [*parts, *facts.get("blas", [])] if part)


def _versions(rows: Iterable[Row]) -> tuple[str, ...]:
    return _distinct(
        ", ".join(f"{name} {version}" for name, version in row["versions"].items()) for row in rows
    )


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text for text in dict.fromkeys(texts) if text)
