"""The files of a report: one page for all tables, and each table as Markdown and LaTeX."""

import os
from pathlib import Path

from robustpca.bench.latex import render_latex
from robustpca.bench.page import render_page
from robustpca.bench.report import Report
from robustpca.bench.text import render_markdown

__all__ = ["PAGE", "write_report"]

PAGE = "report.html"


def write_report(report: Report, out: str | Path, html: str | Path | None = None) -> Path:
    """Write the files of a report.

    Parameters
    ----------
    report : Report
        From `build_report`.
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
    for name, text in (render_markdown(report) | render_latex(report)).items():
        _write(Path(out) / name, text)
    page = Path(out) / PAGE if html is None else Path(html)
    _write(page, render_page(report))
    return page


def _write(path: Path, text: str) -> None:
    """Replace a file as a whole, or leave it as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
