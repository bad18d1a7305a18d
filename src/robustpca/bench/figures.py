"""What a report shows besides numbers: charts of a table along its axis, and what its rows hold.

Both are made of rows alone. What a row holds was made by `robustpca.bench.shown`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from robustpca.bench.charts import Line, draw_lines, draw_points, spans_decades, swatch
from robustpca.bench.declarations import Table, place
from robustpca.bench.formats import label, parameters, position
from robustpca.bench.store import Row
from robustpca.bench.summary import Entry, summarise

__all__ = ["Figure", "chart", "exhibits", "within"]

# A drawing cannot show more.
MOST_POINTS = 3000
MOST_CORNERS = 500


@dataclass(frozen=True)
class Figure:
    """Pictures or charts that belong together.

    Parameters
    ----------
    title : str
        What it shows, and where.
    panels : tuple of (str, str)
        Captions, and what is above them as HTML.
    legend : tuple of (str, str)
        Pieces of lines as HTML, and what they mean.
    """

    title: str
    panels: tuple[tuple[str, str], ...]
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Bytes it takes on a page at most, tags and headings included."""
        texts = [self.title, *(text for pair in self.panels + self.legend for text in pair)]
        return 500 + sum(len(escape(text).encode()) + 80 for text in texts)


def chart(table: Table, entries: Sequence[Entry], score: str) -> Figure | None:
    """The figure of a table that has an axis, a panel for each place beside it.

    Parameters
    ----------
    table : Table
        The declaration.
    entries : sequence of Entry
        Its values of one score, by `summarise`.
    score : str
        Name of the score.

    Returns
    -------
    figure : Figure or None
        Lines with the spread over seeds as bands; defaults of tuned methods are dotted,
        published values dashed with hollow markers. None without an axis or without rows.
    """
    if table.x is None:
        return None
    panels: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        panels[_aside(entry, table.x)].append(entry)
    styles = {name: index for index, name in enumerate(table.methods)}
    drawn = {caption: list(_lines(group, table.x, styles)) for caption, group in panels.items()}
    drawn = {caption: lines for caption, lines in drawn.items() if lines}
    values = [[y for line in lines for y in line.y] for lines in drawn.values()]
    # All panels have the same kind of scale, or they could not be compared.
    is_log = any(map(spans_decades, values)) and min(map(min, values)) > 0
    charts = tuple(
        (caption, draw_lines(lines, table.x, score, f"{score}, {caption}", is_log))
        for caption, lines in drawn.items()
    )
    lines = [line for group in drawn.values() for line in group]
    return Figure(f"{score} by {table.x}", charts, _legend(lines)) if charts else None


def exhibits(table: Table, rows: Iterable[Row]) -> list[Figure]:
    """Pictures, curves and points of the rows of a table.

    Of a `best_of`, the candidate is shown that the first score chooses, and the default. Curves
    of all methods at a place are in one chart.
    """
    rows = list(rows)
    chosen = {_known(vars(entry)): label(entry) for entry in summarise(table, rows)}
    groups: dict[tuple[str, str], list[tuple[str, Row, Any]]] = defaultdict(list)
    for row in rows:
        name = chosen.get(_known(row))
        if name is None or not row.get("shown"):
            continue
        where = position(row["dataset"], row["corruption"], row["settings"])
        caption = f"{name} ({parameters(row['tuned'])})" if row["tuned"] else name
        for show, exhibit in row["shown"].items():
            groups[show, where].append((caption, row, exhibit))
    styles = {name: index for index, name in enumerate(table.methods)}
    return [_figure(show, where, group, styles) for (show, where), group in groups.items()]


def within(
    figures: Mapping[str, Sequence[Figure]], budget: int
) -> tuple[dict[str, list[Figure]], dict[str, int]]:
    """As many figures of each table as a page has room for, and how many are left out.

    Tables share the room alike; what one does not need is for the others.
    """
    kept: dict[str, list[Figure]] = {name: [] for name in figures}
    lost = dict.fromkeys(figures, 0)
    needs = sorted(figures, key=lambda name: sum(figure.size for figure in figures[name]))
    for done, name in enumerate(needs):
        share = budget // (len(needs) - done)
        for figure in figures[name]:
            if figure.size <= share:
                kept[name].append(figure)
                share -= figure.size
                budget -= figure.size
            else:
                lost[name] += 1
    return kept, lost


def _aside(entry: Entry, x: str) -> str:
    """Where an entry stands, apart from the axis."""
    settings = {name: value for name, value in entry.settings.items() if name != x}
    dataset = "" if x == "dataset" else entry.dataset
    return position(dataset, "" if x == "corruption" else entry.corruption, settings)


def _along(entry: Entry, x: str) -> Any:
    """Where an entry stands on the axis."""
    return {"dataset": entry.dataset, "corruption": entry.corruption, **entry.settings}[x]


def _lines(entries: Sequence[Entry], x: str, styles: Mapping[str, int]) -> Iterable[Line]:
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[label(entry)].append(entry)
    for name, group in groups.items():
        style = styles.get(group[0].method, len(styles))
        ours = [entry for entry in group if not math.isnan(entry.mean)]
        if ours:
            yield Line(
                name,
                style,
                [_along(entry, x) for entry in ours],
                [entry.mean for entry in ours],
                [entry.spread for entry in ours] if group[0].role != "default" else (),
                "default" if group[0].role == "default" else "ours",
            )
        theirs = [entry for entry in group if not math.isnan(entry.published)]
        if theirs:
            yield Line(
                f"{name}, published",
                style,
                [_along(entry, x) for entry in theirs],
                [entry.published for entry in theirs],
                kind="published",
            )


def _legend(lines: Iterable[Line]) -> tuple[tuple[str, str], ...]:
    """What the lines mean: methods in their order, ours first, then default and published."""
    order = ("curve", "ours", "default", "published")
    known = {(line.style, order.index(line.kind), line.label) for line in lines}
    return tuple((swatch(style, order[kind]), name) for style, kind, name in sorted(known))


def _known(facts: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells an entry from others, and also the row of one seed."""
    names = ("dataset", "corruption", "method", "settings")
    return place(*(facts[name] for name in names)), facts["role"], str(facts["tuned"])


def _figure(
    show: str, where: str, group: Sequence[tuple[str, Row, Any]], styles: Mapping[str, int]
) -> Figure:
    title = f"{show}: {where}"
    curves = []
    panels = []
    # What was chosen comes before the default.
    for caption, row, exhibit in sorted(
        group, key=lambda one: (styles.get(one[1]["method"], 0), one[1]["role"] == "default")
    ):
        style = styles.get(row["method"], len(styles))
        if exhibit["kind"] == "curve":
            step = math.ceil(len(exhibit["x"]) / MOST_CORNERS)
            kind = "default" if row["role"] == "default" else "curve"
            x, y = exhibit["x"][::step], exhibit["y"][::step]
            curves.append(Line(caption, style, x, y, kind=kind))
        elif exhibit["kind"] == "points":
            step = math.ceil(len(exhibit["x"]) / MOST_POINTS)
            x, y, classes = (exhibit[name][::step] for name in ("x", "y", "label"))
            panels.append((caption, draw_points(x, y, classes, f"{title}, {caption}")))
        else:
            panels.append((caption, _image(exhibit, f"{title}, {caption}")))
    if curves:
        panels.append(("", draw_lines(curves, "", show, title)))
    return Figure(title, tuple(panels), _legend(curves))


def _image(exhibit: Mapping[str, Any], title: str) -> str:
    """A picture; small ones are enlarged by whole numbers, so that pixels stay squares."""
    zoom = max(1, min(220 // exhibit["width"], 160 // exhibit["height"]))
    return (
        f'<img width="{zoom * exhibit["width"]}" height="{zoom * exhibit["height"]}" '
        f'alt="{escape(title)}" src="data:image/png;base64,{exhibit["png"]}">'
    )
