"""Keep results of runs in the repository, and write the pages that are made of them.

Usage: ``python scripts/results.py keep FOLDER [NAMES]`` adds the rows of a run at the default
level, ``robustpca bench -o FOLDER``, to ``results/``: those of all its tables, or of some. Times
are CPU seconds, so that other work on the machine matters little. ``python scripts/results.py
pages`` writes the report to ``build/papers`` and the generated half of ``docs/reproduction.md``
from what is kept.
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from robustpca.bench import Table, build_report, collect, render_markdown, write_report
from robustpca.bench.kept import SUFFIX, keep, kept_outcome, read_results
from robustpca.bench.report import Report
from robustpca.bench.text import SUMMARY
from robustpca.papers import all_tables

ROOT = Path(__file__).parents[1]
RESULTS, PAGE, LEVEL = ROOT / "results", ROOT / "docs" / "reproduction.md", "default"
# What stands below this line is generated.
MARK = "<!-- Below is generated: python scripts/results.py pages -->"


def kept_report() -> Report:
    """The report of all tables of which something is kept."""
    tables = [
        table
        for name, table in all_tables().items()
        if (RESULTS / LEVEL / f"{name}{SUFFIX}").exists()
    ]
    commands = {table.name: f"robustpca bench {table.name}" for table in tables}
    return build_report(tables, kept_outcome(tables, RESULTS, LEVEL), commands)


def generated(report: Report) -> str:
    """The generated half of the page on reproduction."""
    run = {section.table.name for section in report.sections}
    lacking = [table for name, table in all_tables().items() if name not in run]
    n_claims = sum(len(table.claims) for table in all_tables().values())
    n_here = sum(report.verdicts.values())
    counts = ", ".join(f"{word}: {count}" for word, count in report.verdicts.items())
    lines = [
        f"Kept are {report.n_rows} fits of {len(run)} tables at the default level, "
        f"{' to '.join(report.dates)}. Machine: {'; '.join(report.machines)}. "
        f"Versions: {'; '.join(report.versions)}.",
        "",
        f"Verdicts on the {n_here} claims of these tables: {counts}. The other "
        f"{n_claims - n_here} claims belong to tables that have not been run at the default level "
        f"yet: {_names(table for table in lacking if table.claims)}. Not run and without claims: "
        f"{_names(table for table in lacking if not table.claims)}.",
        "",
    ]
    for line in render_markdown(report)[SUMMARY].splitlines():
        # Columns of equal width would make long lines longer.
        line = re.sub(r"-{3,}", "---", line) if set(line) <= set("| -") else line
        lines.append(re.sub(r" {2,}", " ", f"#{line}" if line.startswith("#") else line))
    return "\n".join(lines) + "\n"


def _names(tables: Iterable[Table]) -> str:
    return ", ".join(f"`{table.name}`" for table in tables) or "none"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["keep", "pages"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.verb == "keep":
        if arguments.folder is None:
            parser.error("keep needs the folder of a run.")
        run = {row["table"] for row in read_results(arguments.folder)}
        wanted = run & set(arguments.names or run)
        tables = [table for name, table in all_tables().items() if name in wanted]
        outcome = collect(tables, arguments.folder, level=LEVEL)
        for path in keep(outcome.rows, RESULTS, LEVEL):
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
        # The rows of data that cannot be read here cannot be told from those of older code.
        for name, missing in outcome.missing_data.items():
            if missing:
                print(f"{name}: nothing kept of {', '.join(missing)}, whose data are not here.")
        return
    report = kept_report()
    print(write_report(report, ROOT / "build" / "papers"))
    written = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(f"{written}{MARK}\n\n{generated(report)}", encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
