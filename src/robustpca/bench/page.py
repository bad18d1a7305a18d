"""A report as one HTML page that needs neither network nor other files."""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any

from robustpca.bench import formats
from robustpca.bench.charts import COLOURS, draw, swatch
from robustpca.bench.figures import Figure, Picture
from robustpca.bench.progress import span
from robustpca.bench.report import Report

__all__ = ["LIMIT", "render_page"]

LIMIT = 10_000_000  # bytes of a page
SHORT = 40  # entries up to which all details of a table are open
FEW = 6  # figures of rows that are open
TOP_PICTURES = 3  # tables of which pictures stand on top
FRAME = 400  # bytes around the figures of a table, at most


def render_page(report: Report) -> str:
    """A report as HTML.

    Parameters
    ----------
    report : Report
        From `build_report`.

    Returns
    -------
    html : str
        At most 10 MB: figures of rows that do not fit are left out, and the page says so.
    """
    if find_spec("jinja2") is None:
        raise ImportError(
            "The page of a report needs jinja2, not installed here. Run "
            "`pip install 'robustpca[report]'`."
        )
    environment = _environment()
    page = environment.get_template("report.html").render(
        report=report, short=SHORT, few=FEW, shown=_pictures(report)
    )
    # The page has a comment for the figures of each table. What room it leaves is theirs.
    macros: Any = environment.get_template("figures.html").module
    drawn = {one.table.name: [macros.exhibit(f) for f in one.figures] for one in report.sections}
    sizes = {name: [len(one.encode()) + 1 for one in found] for name, found in drawn.items()}
    kept = within(sizes, LIMIT - len(page.encode()) - FRAME * len(drawn))

    def figures(comment: re.Match[str]) -> str:
        shown = [drawn[comment[1]][index] for index in kept[comment[1]]]
        return macros.exhibits(shown, len(drawn[comment[1]]) - len(shown), FEW)

    return re.sub(r"<!-- figures of (\w+) -->", figures, page)


def within(sizes: Mapping[str, Sequence[int]], budget: int) -> dict[str, list[int]]:
    """Which figures of each table a page has room for: the first of all tables, then the second.

    Parameters
    ----------
    sizes : mapping of str to sequence of int
        Bytes of the figures of each table.
    budget : int
        Bytes for all of them.

    Returns
    -------
    kept : dict of str to list of int
        Numbers of the figures that fit.
    """
    kept: dict[str, list[int]] = {name: [] for name in sizes}
    turns = sorted((index, name) for name, found in sizes.items() for index in range(len(found)))
    for index, name in turns:
        if sizes[name][index] <= budget:
            kept[name].append(index)
            budget -= sizes[name][index]
    return kept


def _pictures(report: Report) -> list[tuple[str, Figure]]:
    """The first figure of pictures of each table, as many as stand above a page."""
    found = [
        (one.table.name, figure)
        for one in report.sections
        for figure in one.figures[:1]
        if isinstance(figure.panels[0][1], Picture)
    ]
    return found[:TOP_PICTURES]


def _words(name: str) -> str:
    """A name of the code as a person would write it."""
    return name.removeprefix("n_").replace("_", " ")


def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("robustpca.bench"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("count", "number", "time", "value")
    environment.filters |= {name: getattr(formats, name) for name in names}
    environment.filters |= {
        "span": span,
        "words": _words,
        # Backquotes in texts mean code; charts and pictures escape their own texts.
        "prose": lambda text: Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))),
        "draw": lambda panel, title: Markup(draw(panel, title)),
        "swatch": lambda line: Markup(swatch(line)),
    }
    environment.tests["nan"] = math.isnan
    environment.globals["colours"] = range(COLOURS)
    return environment
