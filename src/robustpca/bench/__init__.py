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
from robustpca.bench.report import write_report
from robustpca.bench.runner import Outcome, collect, run
from robustpca.bench.store import Store, latest, read_rows
from robustpca.bench.summary import Entry, agreement, summarise
from robustpca.bench.text import render

__all__ = [
    "LEVELS",
    "Cell",
    "Claim",
    "Entry",
    "Finding",
    "Outcome",
    "Source",
    "Store",
    "Table",
    "agreement",
    "best_of",
    "by_level",
    "collect",
    "evaluate",
    "latest",
    "read_rows",
    "render",
    "run",
    "summarise",
    "write_report",
]
