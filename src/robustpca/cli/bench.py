"""``robustpca bench``, and what other verbs share with it: tables by name, and running them."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["chosen", "commands", "run_bench", "run_tables"]


def run_bench(
    names: Sequence[str],
    level: str,
    seeds: int | None,
    out: Path,
    jobs: int | None,
    retry: bool,
) -> None:
    """Run tables by name, print each beside its published numbers, and write the report."""
    from robustpca.papers import all_tables

    if names:
        tables = chosen(names, seeds)
        run_tables(tables, level, out, jobs, retry, commands(tables, level, seeds))
        return
    known = all_tables()
    width = max(map(len, known))
    for name, table in known.items():
        print(f"{name:<{width}}  {len(table.cells(level)):>6} cells  {table.title}")
    print("\nRun them with `robustpca bench NAME...`, or all with `robustpca bench all`.")


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
) -> None:
    """Run tables, print each and write the report."""
    from robustpca.bench import build_report, render_terminal, run, write_report
    from robustpca.bench.progress import new_progress

    outcome = run(tables, out, level=level, jobs=jobs, progress=new_progress(), retry=retry)
    report = build_report(tables, outcome, commands)
    try:
        page = f"Report: {write_report(report, out)}"
    except ImportError as error:  # the page alone needs an extra; the texts are written
        page = str(error)
    print(render_terminal(report))
    n_missing = sum(map(len, outcome.missing_data.values()))
    print(
        f"{len(outcome.rows)} cells, {outcome.n_new} of them new, {len(outcome.failures)} failed; "
        f"{n_missing} data sets missing. Rows: {out / 'rows.jsonl'}\n{page}"
    )
    if outcome.interrupted:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        raise SystemExit(130)
