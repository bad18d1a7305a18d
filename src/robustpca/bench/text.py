"""A report as Markdown and for the terminal: ours beside the published value, verdicts, remarks."""

import math
import textwrap
from collections.abc import Sequence
from itertools import groupby

from robustpca.bench.formats import number, time, value
from robustpca.bench.progress import span
from robustpca.bench.report import Report, Section
from robustpca.bench.summary import Entry

__all__ = ["SUMMARY", "render_markdown", "render_terminal"]

SUMMARY = "summary.md"


def render_markdown(report: Report) -> dict[str, str]:
    """A report as Markdown that also reads well as it is.

    Parameters
    ----------
    report : Report
        From `build_report`.

    Returns
    -------
    files : dict of str to str
        ``NAME.md`` for each table: the best method of a place is in bold and the runner-up
        underlined with underscores; **time** and **MiB** are of one fit: mean seconds, and the
        most memory it took beyond what was there before. And ``summary.md``, with a line for each
        table and for each claim.
    """
    tables = {f"{section.table.name}.md": _table(section) for section in report.sections}
    return tables | {SUMMARY: _summary(report)}


def render_terminal(report: Report, width: int = 100) -> str:
    """The tables of a report as text for the terminal, without lines of prose that are too long.

    Parameters
    ----------
    report : Report
        From `build_report`.
    width : int, default=100
        Where to break lines of prose; tables are as wide as they are.

    Returns
    -------
    text : str
        One table after the other.
    """
    lines = [line for section in report.sections for line in [*_table(section).splitlines(), ""]]
    prose = textwrap.TextWrapper(
        width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(line if line.startswith("|") else prose.fill(line) for line in lines)


def _table(section: Section) -> str:
    table = section.table
    lines = [f"# {table.title}", ""]
    lines += [table.paper, ""] if table.paper else []
    mark = "##" if len(section.blocks) == 1 else "###"
    for block in section.blocks:
        lines += [f"## {block.score}", ""] if mark == "###" else []
        for names, group in groupby(block.entries, key=lambda e: (e.dataset, e.corruption)):
            lines += [f"{mark} {' / '.join(filter(None, names))}", "", *_grid(list(group)), ""]
        for sentence in filter(None, [block.agreement_text, *block.growth_texts]):
            lines += [sentence, ""]
    for one in section.findings:
        if one.verdict == "not judged":
            lines.append(f"- Claim: {one.claim.text} ({one.basis})")
            continue
        lines.append(f"- Claim: {one.claim.text} ({one.basis}) **{one.verdict}**. {one.evidence}")
        lines[-1] += f" Judged on {one.judged_on}." if one.judged_on else ""
        if plain := one.by_default:
            lines[-1] += f" With default parameters: **{plain.verdict}**. {plain.evidence}"
    lines += [f"- No claims: {table.unclaimed}"] if table.unclaimed else []
    lines += [f"- {note}" for note in table.notes]
    lines += [f"- Missing data set {name}: {why}" for name, why in section.missing_data.items()]
    for (name, why), places in section.failures.items():
        lines.append(f"- {places.total()} cells of {name} failed: {why}")
    if section.n_rows:
        versions = "; ".join(sorted(section.versions))
        lines.append(f"- {section.n_rows} cells, {span(section.seconds)} in fits; {versions}.")
    return "\n".join(lines).rstrip() + "\n"


def _summary(report: Report) -> str:
    counts, claims = [], []
    for section in report.sections:
        name, (near, compared) = f"`{section.table.name}`", section.agreement
        line = [name, section.table.title, f"{section.n_rows} of {section.n_cells}"]
        line += [str(section.n_seeds), str(section.n_failed)]
        line += [f"{near} of {compared}" if compared else "-"]
        counts.append([*line, ", ".join(section.missing_data) or "-"])
        for one in section.findings if report.level != "quick" else ():
            plain = one.by_default.verdict if one.by_default else "-"
            verdict = [f"**{one.verdict}**", plain, one.judged_on or "-"]
            claims.append([name, one.claim.text, one.basis, *verdict, one.evidence])
    heads = ["table", "", "cells", "seeds", "failed", "within 10 %", "missing data"]
    lines = ["## Tables", "", *_columns(heads, counts), ""]
    if claims:
        heads = ["table", "claim", "judged by", "verdict", "by defaults", "judged on", "evidence"]
        lines += ["## Claims", "", *_columns(heads, claims), ""]
    if report.level == "quick" and report.verdicts:
        lines += ["No verdicts on claims: they come from the default level or above.", ""]
    return "\n".join(lines)


def _grid(entries: Sequence[Entry]) -> list[str]:
    """Lines of one data set and corruption."""
    is_published = any(not math.isnan(entry.published) for entry in entries)
    compare = ["published", "ratio"] if is_published else []
    heads = [*entries[0].settings, "method", "ours", "±", *compare, "seeds", "time", "MiB"]
    body = []
    for entry in entries:
        mark = {1: "**", 2: "_"}.get(entry.rank, "")
        cells = [*map(value, entry.settings.values()), entry.label]
        cells += [f"{mark}{number(entry.mean)}{mark}", number(entry.std, 2)]
        cells += [number(entry.published), number(entry.ratio, 3)] if is_published else []
        cells += [str(entry.n_seeds), time(entry.seconds), number(entry.memory / 2**20, 3)]
        body.append([*cells, entry.remark])
    return _columns([*heads, "remarks"], body)


def _columns(heads: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table, in columns of equal width."""
    widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
    rule = ["-" * width for width in widths]
    return [
        "| " + " | ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)) + " |"
        for line in (heads, rule, *body)
    ]
