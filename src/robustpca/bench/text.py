"""A table as Markdown: ours beside the published value, means and spreads, what failed or lacks.

It reads only the declaration and its rows.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from robustpca.bench.claims import evaluate
from robustpca.bench.declarations import Table
from robustpca.bench.formats import label, number, remark, time
from robustpca.bench.progress import span
from robustpca.bench.runner import Outcome
from robustpca.bench.store import Row
from robustpca.bench.summary import Entry, agreement, summarise

__all__ = ["render", "render_summary"]


def render(
    table: Table,
    rows: Iterable[Row],
    missing_data: Mapping[str, str] | None = None,
) -> str:
    """A table as text that reads well as it is, and as Markdown.

    Parameters
    ----------
    table : Table
        The declaration.
    rows : iterable of dict
        Its rows.
    missing_data : mapping of str to str, default=None
        Data sets that could not be loaded, and why.

    Returns
    -------
    text : str
        The best method of a place is in bold and the runner-up underlined with underscores;
        **time** and **MiB** are of one fit: mean seconds, and the most memory it took beyond
        what was there before.
    """
    rows = list(rows)
    lines = [f"# {table.title}", ""]
    if table.paper:
        lines += [table.paper, ""]
    for score in table.scores:
        entries = summarise(table, rows, score)
        if len(table.scores) > 1:
            lines += [f"## {score}", ""]
        for (dataset, corruption), group in groupby(
            entries, key=lambda e: (e.dataset, e.corruption)
        ):
            heading = " / ".join(part for part in (dataset, corruption) if part)
            lines += [f"### {heading}" if len(table.scores) > 1 else f"## {heading}", ""]
            lines += [*_grid(list(group)), ""]
        near, compared = agreement(entries)
        if compared:
            lines += [f"{near} of {compared} values lie within 10 % of the published one.", ""]
    lines += _remarks(table, rows, missing_data or {})
    return "\n".join(lines).rstrip() + "\n"


def render_summary(tables: Iterable[Table], outcome: Outcome) -> str:
    """What came out of all tables, as Markdown: how much was run, how near, and all verdicts.

    Parameters
    ----------
    tables : iterable of Table
        The declarations.
    outcome : Outcome
        Their rows, and what was missing.

    Returns
    -------
    text : str
        Two tables: one line for each table, and one for each claim.
    """
    counts, claims = [], []
    for table in tables:
        rows = outcome.of(table.name)
        agreements = [agreement(summarise(table, rows, score)) for score in table.scores]
        near, compared = (sum(column) for column in zip(*agreements, strict=True))
        counts.append(
            [
                f"`{table.name}`",
                table.title,
                f"{len(rows)} of {len(table.cells(outcome.level))}",
                str(len({row["seed"] for row in rows})),
                str(sum(bool(row["error"]) for row in rows)),
                f"{near} of {compared}" if compared else "-",
                ", ".join(outcome.missing_data.get(table.name, {})) or "-",
            ]
        )
        for finding in evaluate(table, rows):
            plain = finding.by_default.verdict if finding.by_default else "-"
            verdict = f"**{finding.verdict}**"
            claims.append([f"`{table.name}`", finding.claim.text, verdict, plain, finding.evidence])
    heads = ["table", "", "cells", "seeds", "failed", "within 10 %", "missing data"]
    lines = ["## Tables", "", *_columns(heads, counts), ""]
    if claims:
        heads = ["table", "claim", "verdict", "by defaults", "evidence"]
        lines += ["## Claims", "", *_columns(heads, claims), ""]
    return "\n".join(lines)


def _grid(entries: Sequence[Entry]) -> list[str]:
    """Lines of one block, in columns of equal width."""
    varied = list(entries[0].settings)
    is_published = any(not math.isnan(entry.published) for entry in entries)
    compare = ["published", "ratio"] if is_published else []
    heads = [*varied, "method", "ours", "±", *compare, "seeds", "time", "MiB", "remarks"]
    body = []
    for entry in entries:
        mark = {1: "**", 2: "_"}.get(entry.rank, "")
        cells = [*(str(value) for value in entry.settings.values()), label(entry)]
        cells += [f"{mark}{number(entry.mean)}{mark}", number(entry.spread, 2)]
        cells += [number(entry.published), number(entry.ratio, 3)] if is_published else []
        cells += [str(entry.n_seeds), time(entry.seconds), number(entry.memory / 2**20, 3)]
        body.append([*cells, remark(entry)])
    return _columns(heads, body)


def _columns(heads: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table, in columns of equal width."""
    widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
    rule = ["-" * width for width in widths]
    return [
        "| " + " | ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True)) + " |"
        for line in (heads, rule, *body)
    ]


def _remarks(table: Table, rows: Sequence[Row], missing_data: Mapping[str, str]) -> list[str]:
    lines = [
        f"- Claim: {finding.claim.text} **{finding.verdict}**. {finding.evidence}"
        + (
            f" With default parameters: **{finding.by_default.verdict}**. "
            f"{finding.by_default.evidence}"
            if finding.by_default
            else ""
        )
        for finding in evaluate(table, rows)
    ]
    lines += [f"- {note}" for note in table.notes]
    lines += [f"- Missing data set {name}: {why}" for name, why in missing_data.items()]
    errors = Counter((row["method"], row["error"]) for row in rows if row["error"])
    lines += [f"- {count} cells of {name} failed: {why}" for (name, why), count in errors.items()]
    spent = sum(row["seconds"] or 0 for row in rows)
    versions = sorted({", ".join(f"{k} {v}" for k, v in row["versions"].items()) for row in rows})
    if rows:
        lines.append(f"- {len(rows)} cells, {span(spent)} in fits; {'; '.join(versions)}.")
    return lines
