"""``robustpca bench``, and what other verbs share with it: tables by name, and running them."""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.arguments import Json, Quiet, argument, option
from robustpca.tools.words import aligned

__all__ = ["Full", "Quick", "Seeds", "bench", "chosen", "commands", "level_of", "run_bench"]
__all__ += ["run_tables"]

Quick = Annotated[bool, option("Small grids, few seeds: no verdicts.", "--quick")]
Full = Annotated[bool, option("The grids of the papers.", "--full")]
Seeds = Annotated[int | None, option("Repetitions, instead of those of the level.", least=1)]
Labels = Annotated[str | None, option("Run these alone, as A,B.")]


def level_of(quick: bool, full: bool) -> str:
    """The level that options ask for."""
    if quick and full:
        raise ValueError("Choose one of --quick and --full.")
    return "quick" if quick else "full" if full else "default"


def bench(
    names: Annotated[
        list[str] | None,
        argument("Tables, or `all`; none lists them; `diff A B` compares two runs."),
    ] = None,
    quick: Quick = False,
    full: Full = False,
    seeds: Seeds = None,
    out: Annotated[Path, option("Folder of rows and report.", "-o", "--out")] = Path(
        "robustpca-bench"
    ),
    jobs: Annotated[int | None, option("Worker processes; one per core.", least=1)] = None,
    retry: Annotated[bool, option("Try failed cells again.", "--retry")] = False,
    datasets: Labels = None,
    methods: Labels = None,
    corruptions: Labels = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the tables of the papers, whole or in pieces.

    What is done already is not done again.
    """
    piece = {"datasets": datasets, "methods": methods, "corruptions": corruptions}
    level = level_of(quick, full)
    run_bench(names or [], level, seeds, out, jobs, retry, piece, as_json, quiet)


def run_bench(
    names: Sequence[str],
    level: str,
    seeds: int | None,
    out: Path,
    jobs: int | None,
    retry: bool,
    piece: Mapping[str, str | None] | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Run tables by name, print each beside its published numbers, and write the report.

    ``diff`` and two folders instead of names compare two runs.
    """
    from robustpca.papers import all_tables

    if names and names[0] == "diff":
        show_difference(names[1:])
        return
    if names:
        tables = chosen(names, seeds)
        pieces = [part_of(table, level, piece or {}) for table in tables]
        again = commands(tables, level, seeds)
        run_tables(tables, level, out, jobs, retry, again, pieces, as_json, quiet)
        return
    known = all_tables()
    if as_json or quiet:
        titles = {name: table.title for name, table in known.items()}
        print(json.dumps(titles, indent=2) if as_json else "\n".join(titles))
        return
    width = max(map(len, known))
    for name, table in known.items():
        print(f"{name:<{width}}  {len(table.cells(level)):>6} cells  {table.title}")
    print("\nRun them with `robustpca bench NAME...`, or all with `robustpca bench all`.")


def part_of(table: Any, level: str, piece: Mapping[str, str | None]) -> Any:
    """The piece of a table that options name, each as labels with commas between."""
    known = table.parts(level)
    only = {part: split_labels(text, known[part]) for part, text in piece.items() if text}
    return table.piece(level, **only) if only else table


def split_labels(text: str, known: Collection[str]) -> list[str]:
    """Labels from one text; those that have commas themselves are known."""
    found, rest = [], [part.strip() for part in text.split(",")]
    while rest:
        sizes = range(len(rest), 0, -1)
        size = next((n for n in sizes if ", ".join(rest[:n]) in known), 1)
        found.append(", ".join(rest[:size]))
        rest = rest[size:]
    return found


def show_difference(paths: Sequence[str]) -> None:
    """Say where two runs differ by more than chance; code 1 if they do."""
    from robustpca.bench.difference import compare_runs
    from robustpca.bench.kept import read_results

    if len(paths) != 2:
        raise ValueError(
            f"Two runs are compared, {len(paths)} given: `robustpca bench diff MINE OURS`, each a "
            "folder of a run or of kept results."
        )
    difference = compare_runs(*map(read_results, paths))
    print(difference.text())
    if difference.moved or difference.failures:
        raise SystemExit(1)


def chosen(names: Sequence[str], seeds: int | None) -> list[Any]:
    """Tables by name, with another number of seeds if it is given."""
    from robustpca.papers import all_tables

    known = all_tables()
    unknown = [name for name in names if name != "all" and name not in known]
    if unknown:
        raise ValueError(f"No table is called {unknown[0]!r}: choose from all, {', '.join(known)}.")
    found = known if "all" in names else {name: known[name] for name in names}
    return [table if seeds is None else table.repeated(seeds) for table in found.values()]


def commands(tables: Sequence[Any], level: str, seeds: int | None) -> dict[str, str]:
    """What to type to run each table again."""
    flags = "" if level == "default" else f" --{level}"
    flags += "" if seeds is None else f" --seeds {seeds}"
    return {table.name: f"robustpca bench {table.name}{flags}" for table in tables}


def run_tables(
    tables: Sequence[Any],
    level: str,
    out: Path,
    jobs: int | None,
    retry: bool,
    commands: Mapping[str, str] | None = None,
    pieces: Sequence[Any] | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Run tables, print one of them or a line for each of many, and write the report.

    Of pieces, the report has all of their tables that was run so far.
    """
    from robustpca.bench import build_report, collect, render_terminal, run, write_report
    from robustpca.bench.progress import new_progress

    silent = as_json or quiet
    if len(tables) > 1 and not silent:
        print(f"{len(tables)} tables at the {level} level.", end="\n\n", flush=True)
    wanted = tables if pieces is None else pieces
    outcome = run(wanted, out, level=level, jobs=jobs, progress=new_progress(), retry=retry)
    if list(wanted) != list(tables):
        done = collect(tables, out, level=level)
        outcome = replace(done, n_new=outcome.n_new, interrupted=outcome.interrupted)
    report = build_report(tables, outcome, commands)
    try:
        page = f"Report: {write_report(report, out)}"
    except ImportError as error:  # the page alone needs an extra; the texts are written
        page = str(error)
    if not silent:
        print(render_terminal(report) if len(tables) == 1 else _lines(report))
    n_missing = sum(map(len, outcome.missing_data.values()))
    if as_json:
        counts = {"cells": len(outcome.rows), "new": outcome.n_new}
        counts |= {"failed": len(outcome.failures), "missing_data": n_missing}
        verdicts = dict(report.verdicts) if report.judged else {}
        print(json.dumps({**counts, "verdicts": verdicts, "folder": str(out)}, indent=2))
    else:
        print(
            f"{len(outcome.rows)} cells, {outcome.n_new} of them new, {len(outcome.failures)} "
            f"failed; {n_missing} data sets missing. {_verdicts(report)}\n"
            f"Rows: {out / 'rows.jsonl'}\n{page}"
        )
    if outcome.interrupted:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        raise SystemExit(130)


def _lines(report: Any) -> str:
    """One line for each table of a report; its text is in the folder."""
    lines = [("table", "cells", "failed", "", "missing data")]
    lines += [
        (
            section.table.name,
            f"{section.n_rows} of {section.n_cells}",
            str(section.n_failed),
            section.table.title,
            ", ".join(section.missing_data),
        )
        for section in report.sections
    ]
    return "\n".join([*aligned(lines), ""])


def _verdicts(report: Any) -> str:
    """How many claims have which verdict, if there were seeds enough for any."""
    if not report.verdicts:
        return ""
    if not report.judged:
        return f"Claims: {report.level} level, no verdicts."
    counts = [f"{count} {word}" for word, count in report.verdicts.items()]
    return f"Claims: {', '.join(counts)}."
