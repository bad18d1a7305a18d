"""The page of a report: from tables and rows to one HTML file that stands alone."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib.util import find_spec
from typing import Any

from robustpca.bench import formats
from robustpca.bench.charts import COLOURS
from robustpca.bench.claims import VERDICTS, Finding, evaluate
from robustpca.bench.declarations import Table
from robustpca.bench.figures import Figure, chart, exhibits, within
from robustpca.bench.progress import span
from robustpca.bench.runner import Outcome
from robustpca.bench.store import Row
from robustpca.bench.summary import Entry, agreement, direction, summarise
from robustpca.bench.tables import all_tables

__all__ = ["LIMIT", "render_page"]

LIMIT = 10_000_000  # bytes of a page
SHORT = 40  # entries up to which all details of a table are open
FEW = 6  # figures of rows that are open
TITLE = "tables and figures of the papers, run again"
OWN = "Experiments of this library"


@dataclass(frozen=True)
class Block:
    """One score of a table: its entries, and the same with methods in columns."""

    score: str
    better: str
    entries: Sequence[Entry]
    chart: Figure | None

    @cached_property
    def is_published(self) -> bool:
        """Whether there is something to compare with."""
        return self.agreement[1] > 0

    @cached_property
    def agreement(self) -> tuple[int, int]:
        """How many values lie within a tenth of the published one, and how many have one."""
        return agreement(self.entries)

    @cached_property
    def is_corrupted(self) -> bool:
        """Whether corruptions have names."""
        return any(entry.corruption for entry in self.entries)

    @cached_property
    def varied(self) -> list[str]:
        """Names of what is varied."""
        return list(self.entries[0].settings) if self.entries else []

    @cached_property
    def columns(self) -> dict[str, bool]:
        """Names of the columns, and whether they are of default parameters."""
        return {formats.label(entry): entry.role == "default" for entry in self.entries}

    @cached_property
    def lines(self) -> list[tuple[Entry, dict[str, Entry]]]:
        """For each place one of its entries, and all of them by column."""
        places: dict[tuple[str, ...], dict[str, Entry]] = {}
        for entry in self.entries:
            places.setdefault(entry.place, {})[formats.label(entry)] = entry
        return [(next(iter(group.values())), group) for group in places.values()]


@dataclass(frozen=True)
class Section:
    """All that a page says about a table."""

    table: Table
    blocks: Sequence[Block]
    findings: Sequence[Finding]
    errors: dict[tuple[str, str], Counter[str]]
    missing_data: dict[str, str]
    n_cells: int
    n_rows: int
    n_seeds: int
    n_failed: int
    n_near: int
    n_compared: int
    seconds: float
    command: str
    figures: Sequence[Figure]


def render_page(tables: Sequence[Table], outcome: Outcome) -> str:
    """The page of a report.

    Parameters
    ----------
    tables : sequence of Table
        The declarations, in the order of the page; those of a paper are put together.
    outcome : Outcome
        Their rows, and what was missing.

    Returns
    -------
    html : str
        At most 10 MB: pictures that do not fit are left out, and the page says so.
    """
    if find_spec("jinja2") is None:
        raise ImportError(
            "The page of a report needs jinja2, not installed here. Run "
            "`pip install 'robustpca[report]'`."
        )
    sections = [_section(table, outcome) for table in tables]
    figures = {section.table.name: section.figures for section in sections}
    facts = _facts(sections, outcome)
    # Without exhibits first: what room is left is theirs.
    plain = _rendered(sections, facts, *within(figures, 0))
    return _rendered(sections, facts, *within(figures, LIMIT - len(plain.encode())))


def _rendered(
    sections: Sequence[Section],
    facts: dict[str, Any],
    kept: dict[str, list[Figure]],
    lost: dict[str, int],
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("robustpca.bench"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("label", "number", "parameters", "remark", "time", "value")
    environment.filters |= {name: getattr(formats, name) for name in names}
    environment.filters["span"] = span
    environment.filters["prose"] = lambda text: Markup(_with_code(text))
    environment.filters["drawn"] = Markup  # charts and pictures, which escape their own texts
    environment.tests["nan"] = math.isnan
    template = environment.get_template("report.html")
    return template.render(sections=sections, kept=kept, lost=lost, short=SHORT, few=FEW, **facts)


def _section(table: Table, outcome: Outcome) -> Section:
    rows = outcome.of(table.name)
    blocks = [_block(table, rows, score) for score in table.scores]
    agreements = [block.agreement for block in blocks]
    failures = [row for row in rows if row["error"]]
    errors: dict[tuple[str, str], Counter[str]] = {}
    for row in failures:
        where = formats.position(row["dataset"], row["corruption"], row["settings"])
        errors.setdefault((row["method"], row["error"]), Counter())[where] += 1
    return Section(
        table=table,
        blocks=blocks,
        findings=evaluate(table, rows),
        errors=errors,
        missing_data=outcome.missing_data.get(table.name, {}),
        n_cells=len(table.cells(outcome.level)),
        n_rows=len(rows),
        n_seeds=len({row["seed"] for row in rows}),
        n_failed=len(failures),
        n_near=sum(near for near, _ in agreements),
        n_compared=sum(compared for _, compared in agreements),
        seconds=sum(row["seconds"] or 0.0 for row in rows),
        command=_command(table, outcome.level),
        figures=exhibits(table, rows),
    )


def _command(table: Table, level: str) -> str:
    """What repeats the table; nothing for tables that the command line does not know."""
    known = all_tables().get(table.name)
    if known is None or replace(table, seeds=known.seeds) != known:
        return ""
    flags = {"quick": " --quick", "full": " --full"}.get(level, "")
    flags += "" if table.seeds == known.seeds else f" --seeds {table.seeds}"
    return f"robustpca bench {table.name}{flags}"


def _block(table: Table, rows: Iterable[Row], score: str) -> Block:
    entries = summarise(table, rows, score)
    return Block(score, direction(table, score), entries, chart(table, entries, score))


def _facts(sections: Sequence[Section], outcome: Outcome) -> dict[str, Any]:
    """What a page says about the run as a whole."""
    papers: dict[str, list[Section]] = {}
    for section in sorted(sections, key=lambda section: not section.table.paper):
        papers.setdefault(section.table.paper or OWN, []).append(section)
    verdicts = Counter(finding.verdict for section in sections for finding in section.findings)
    dates = sorted(row["finished"][:10] for row in outcome.rows if row.get("finished"))
    is_of_papers = any(section.table.paper for section in sections)
    return {
        "title": f"Robust PCA: {TITLE if is_of_papers else 'a comparison'}",
        "papers": papers,
        "verdicts": {verdict: verdicts[verdict] for verdict in VERDICTS if verdicts[verdict]},
        "level": outcome.level,
        "interrupted": outcome.interrupted,
        "n_other": outcome.n_other,
        "n_rows": len(outcome.rows),
        "dates": list(dict.fromkeys((dates[0], dates[-1]))) if dates else [],
        "machines": _distinct(_machine(row.get("machine") or {}) for row in outcome.rows),
        "versions": _distinct(
            ", ".join(f"{name} {version}" for name, version in row["versions"].items())
            for row in outcome.rows
        ),
        "colours": range(COLOURS),
    }


def _with_code(text: str) -> str:
    """Text as HTML; what stands between backquotes is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _machine(facts: dict[str, Any]) -> str:
    parts = [facts.get("system"), facts.get("processor")]
    parts += [f"{facts['cores']} cores"] if facts.get("cores") else []
    parts += [f"{facts['memory_gib']} GiB"] if facts.get("memory_gib") else []
    return ", ".join(str(part) for part in [*parts, *facts.get("blas", [])] if part)


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
