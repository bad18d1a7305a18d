"""``robustpca report``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from robustpca.cli.arguments import Force, Json, Quiet, argument, option
from robustpca.cli.bench import Full, Quick, Seeds, chosen, commands, level_of
from robustpca.cli.check import run_check
from robustpca.cli.request import Request

__all__ = ["make_report", "report"]


def report(
    names: Annotated[
        list[str] | None,
        argument("A file of data; or tables that `bench` ran, none for all."),
    ] = None,
    out: Annotated[Path | None, option("The page; for `bench`, its folder.", "-o", "--out")] = None,
    quick: Quick = False,
    full: Full = False,
    seeds: Seeds = None,
    html: Annotated[Path | None, option("File of the page for `bench`.")] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page on my data to forward; or the report of what `bench` ran.

    The page has what `check`, `rows` and `entries` find, with pictures.
    """
    named = names or []
    if len(named) == 1 and (Path(named[0]).exists() or Path(named[0]).suffix):
        if out is None:
            raise ValueError(f"Say where to write it: robustpca report {named[0]} -o page.html")
        run_check(Request(named[0], report=out, force=force, as_json=as_json, quiet=quiet))
    else:
        folder = out or Path("robustpca-bench")
        make_report(named, level_of(quick, full), seeds, folder, html, as_json)


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
