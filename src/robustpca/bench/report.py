"""Reports: one page for all tables, and each table as Markdown and LaTeX.

A report reads declarations and rows, and nothing else: it can be made again at any time, and the
same rows give the same report.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from robustpca.bench.declarations import Table
from robustpca.bench.latex import render_latex
from robustpca.bench.page import render_page
from robustpca.bench.runner import Outcome
from robustpca.bench.text import render, render_summary

__all__ = ["PAGE", "write_report"]

PAGE = "report.html"
SUMMARY = "summary.md"


def write_report(
    tables: Iterable[Table], outcome: Outcome, out: str | Path, html: str | Path | None = None
) -> Path:
    """Write the report of a run.

    Parameters
    ----------
    tables : iterable of Table
        The declarations.
    outcome : Outcome
        Their rows and what was missing, from `run` or `collect`.
    out : str or Path
        Folder for ``NAME.md`` and ``NAME.tex`` of each table, and ``summary.md``; made if
        needed.
    html : str or Path, default=None
        File of the page; None for ``report.html`` in the folder.

    Returns
    -------
    page : Path
        The page: one file that needs neither network nor other files.

    Notes
    -----
    Files are replaced when they are complete, so there is never half of one. The page needs
    jinja2, an extra of this library, and is written last.
    """
    tables, out = list(tables), Path(out)
    for table in tables:
        rows = outcome.of(table.name)
        _write(out / f"{table.name}.md", render(table, rows, outcome.missing_data.get(table.name)))
        _write(out / f"{table.name}.tex", render_latex(table, rows))
    _write(out / SUMMARY, render_summary(tables, outcome))
    page = out / PAGE if html is None else Path(html)
    _write(page, render_page(tables, outcome))
    return page


def _write(path: Path, text: str) -> None:
    """Replace a file as a whole, or leave it as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(text)
            file.flush()
            Path(file.name).chmod(0o644)  # temporary files are closed to others
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
