"""``robustpca report``."""

import json
from collections.abc import Sequence
from pathlib import Path

from robustpca.cli.bench import chosen, commands

__all__ = ["make_report"]


def make_report(
    names: Sequence[str],
    level: str,
    seeds: int | None,
    out: Path,
    html: Path | None,
    as_json: bool = False,
) -> None:
    """Write the report of what was run before; by default of all tables that have rows."""
    from robustpca.bench import build_report, collect, read_rows, write_report
    from robustpca.bench.runner import ROWS

    path = out / ROWS
    found = {row.get("table") for row in read_rows(path)} if path.exists() else set()
    tables = [table for table in chosen(names or ["all"], seeds) if table.name in found or names]
    outcome = collect(tables, out, level=level) if found else None
    if outcome is None or not outcome.rows:
        other = f" It has {outcome.n_other} of other levels or older code." if outcome else ""
        raise ValueError(
            f"No rows of these tables at level {level} in {path}.{other} Run `robustpca bench` "
            "first, with the same level and folder."
        )
    report = build_report(tables, outcome, commands(tables, level, seeds))
    page = write_report(report, out, html)
    if as_json:
        print(json.dumps({"rows": len(outcome.rows), "page": str(page)}))
        return
    print(f"Report of {len(outcome.rows)} rows: {page}")
    if outcome.n_other:
        print(f"{outcome.n_other} rows of other levels or older code are not in it.")
