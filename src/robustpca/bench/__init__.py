"""Experiments: declare a table, run it, resume it, and read it beside the published numbers."""

from robustpca.bench.claims import Finding, evaluate
from robustpca.bench.declarations import (
    LEVELS,
    Cell,
    Claim,
    Source,
    Table,
    best_of,
    by_level,
)
from robustpca.bench.latex import render_latex
from robustpca.bench.page import render_page
from robustpca.bench.report import Report, build_report
from robustpca.bench.runner import Outcome, collect, run
from robustpca.bench.store import Store, latest, read_rows
from robustpca.bench.summary import Entry, summarise
from robustpca.bench.text import render_markdown, render_terminal
from robustpca.bench.write import write_report

__all__ = [
    "LEVELS",
    "Cell",
    "Claim",
    "Entry",
    "Finding",
    "Outcome",
    "Report",
    "Source",
    "Store",
    "Table",
    "best_of",
    "build_report",
    "by_level",
    "collect",
    "evaluate",
    "latest",
    "read_rows",
    "render_latex",
    "render_markdown",
    "render_page",
    "render_terminal",
    "run",
    "summarise",
    "write_report",
]
