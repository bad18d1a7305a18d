"""The figures of a report as data: charts of a table along its axis, and what its rows hold.

Rows hold what `robustpca.bench.shown` has made. Nothing is drawn here, but in
`robustpca.bench.charts`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustpca.bench.declarations import Table
from robustpca.bench.formats import parameters, position
from robustpca.bench.summary import Entry, direction

__all__ = [
    "Chart",
    "Figure",
    "Line",
    "Panel",
    "Picture",
    "Points",
    "chart",
    "exhibits",
    "spans_decades",
]

# A drawing cannot show more.
MOST_POINTS = 3000
MOST_CORNERS = 500
MOST_LINES = 7  # more cannot be told apart
DECADES = 50.0  # a ratio of largest and smallest value from which a scale is logarithmic


@dataclass(frozen=True)
class Line:
    """Values of one method along the axis.

    Parameters
    ----------
    label : str
        For the legend, and for the tips of the mouse.
    style : int
        Number of colour and marker.
    x : sequence
        Positions: numbers, or anything else, which is then spaced evenly.
    y : sequence of float
        Values.
    std : sequence of float, default=()
        Half the height of the band; no band by default.
    kind : {'ours', 'default', 'published', 'curve'}, default='ours'
        Solid with markers; dotted; dashed with hollow markers; solid without markers.
    """

    label: str
    style: int
    x: Sequence[Any]
    y: Sequence[float]
    std: Sequence[float] = ()
    kind: str = "ours"


@dataclass(frozen=True)
class Chart:
    """Lines with common axes; the scale of the values is logarithmic, or not, or as they ask.

    If it is about ``growth``, both scales are logarithmic, so that exponents are slopes.
    """

    lines: Sequence[Line]
    x_name: str
    y_name: str
    is_log: bool | None = None
    growth: bool = False


@dataclass(frozen=True)
class Points:
    """Points in the plane and their classes."""

    x: Sequence[float]
    y: Sequence[float]
    labels: Sequence[int]


@dataclass(frozen=True)
class Picture:
    """A PNG file as base64, and its size in pixels."""

    png: str
    width: int
    height: int


Panel = Chart | Points | Picture


@dataclass(frozen=True)
class Figure:
    """Pictures or charts that belong together.

    Parameters
    ----------
    title : str
        What it shows, and where.
    panels : sequence of (str, Chart or Points or Picture)
        Captions, and what is above them.
    note : str, default=''
        What is not shown.
    """

    title: str
    panels: Sequence[tuple[str, Panel]]
    note: str = ""

    @property
    def legend(self) -> list[Line]:
        """A line of each label: methods in their order, ours first, then default and published."""
        order = ("curve", "ours", "default", "published")
        charts = [panel for _, panel in self.panels if isinstance(panel, Chart)]
        lines = {line.label: line for one in charts for line in one.lines}.values()
        return sorted(lines, key=lambda line: (line.style, order.index(line.kind), line.label))


def chart(table: Table, entries: Iterable[Entry], score: str) -> Figure | None:
    """The figure of a table that has an axis, a panel for each place beside it.

    Parameters
    ----------
    table : Table
        The declaration.
    entries : iterable of Entry
        Its values of one score, by `summarise`.
    score : str
        Name of the score.

    Returns
    -------
    figure : Figure or None
        Lines with the standard deviation over seeds as bands; defaults of tuned methods are
        dotted, published values dashed with hollow markers. None without an axis or without rows.
    """
    if table.x is None:
        return None
    panels: dict[str, dict[str, list[tuple[Any, Entry]]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        facts = {"dataset": entry.dataset, "corruption": entry.corruption, **entry.settings}
        x = facts.pop(table.x)
        beside = position(facts.pop("dataset", ""), facts.pop("corruption", ""), facts)
        panels[beside][entry.label].append((x, entry))
    drawn = {
        caption: [line for group in groups.values() for line in _lines(table, group)]
        for caption, groups in panels.items()
    }
    drawn, note = _fewer(table, drawn, direction(table, score) != "higher")
    values = [[y for line in lines for y in line.y] for lines in drawn.values() if lines]
    # All panels have the same kind of scale, or they could not be compared.
    growth = any(claim.along == table.x for claim in table.claims)
    growth &= all(min(found) > 0 for found in values)
    is_log = growth or (any(map(spans_decades, values)) and min(map(min, values)) > 0)
    charts = tuple(
        (caption, Chart(lines, table.x, score, is_log, growth))
        for caption, lines in drawn.items()
        if lines
    )
    return Figure(score, charts, note) if charts else None


def exhibits(table: Table, entries: Iterable[Entry]) -> tuple[Figure, ...]:
    """Pictures, curves and points of the entries of a table.

    Of a `best_of`, the candidate is shown that the first score chooses, and the default. Curves
    of all methods at a place are in one chart.
    """
    groups: dict[tuple[str, str], list[tuple[Entry, Any]]] = defaultdict(list)
    for entry in entries:
        for name, exhibit in entry.figures.items():
            groups[name, entry.position].append((entry, exhibit))
    return tuple(_figure(table, *key, group) for key, group in groups.items())


def spans_decades(values: Sequence[float]) -> bool:
    """Whether values are positive and so far apart that only a logarithmic scale shows them all.

    Examples
    --------
    >>> from robustpca.bench.figures import spans_decades
    >>> spans_decades([1, 10, 100]), spans_decades([0, 10, 100]), spans_decades([1, 2])
    (True, False, False)
    """
    return bool(values) and min(values) > 0 and max(values) / min(values) >= DECADES


def _lines(table: Table, group: Sequence[tuple[Any, Entry]]) -> Iterator[Line]:
    """Our values of one method along the axis, and the published ones."""
    one = group[0][1]
    style = _style(table, one)
    ours = [(x, entry.mean, entry.std) for x, entry in group if not math.isnan(entry.mean)]
    if ours:
        x, y, std = zip(*ours, strict=True)
        band, kind = ((), "default") if one.is_default else (std, "ours")
        yield Line(one.label, style, x, y, band, kind)
    theirs = [(x, entry.published) for x, entry in group if not math.isnan(entry.published)]
    if theirs:
        x, y = zip(*theirs, strict=True)
        yield Line(f"{one.label}, published", style, x, y, kind="published")


def _fewer(
    table: Table, drawn: Mapping[str, list[Line]], lower: bool
) -> tuple[dict[str, list[Line]], str]:
    """Lines of at most so many methods as can be told apart, and a sentence if some are missing.

    The methods of the claims and PCA come first, then those that are best in the mean over all
    places. Lines of default parameters and of published values follow those of their method.
    """
    places: dict[str, list[float]] = defaultdict(list)
    for lines in drawn.values():
        ours = [line for line in lines if line.kind == "ours"]
        means = {line.label: sum(line.y) / len(line.y) for line in ours}
        order = sorted(means, key=lambda name: means[name] if lower else -means[name])
        for place, name in enumerate(order):
            places[name].append(place)
    if len(places) <= MOST_LINES:
        return dict(drawn), ""
    named = [*dict.fromkeys(claim.method for claim in table.claims), "PCA"]
    best = sorted(places, key=lambda name: sum(places[name]) / len(places[name]))
    chosen = [name for name in dict.fromkeys([*named, *best]) if name in places][:MOST_LINES]
    styles = {line.style for lines in drawn.values() for line in lines if line.label in chosen}
    fewer = {
        caption: [line for line in lines if line.style in styles]
        for caption, lines in drawn.items()
    }
    note = f"{len(chosen)} of {len(places)} methods: those of the claims, PCA, and the best others."
    return fewer, f"{note} All are in the numbers."


def _style(table: Table, entry: Entry) -> int:
    """Number of the colour and marker of a method."""
    return [*table.methods, entry.method].index(entry.method)


def _figure(table: Table, name: str, where: str, group: Iterable[tuple[Entry, Any]]) -> Figure:
    curves: list[Line] = []
    panels: list[tuple[str, Panel]] = []
    for entry, exhibit in group:
        caption = f"{entry.label} ({parameters(entry.tuned)})" if entry.tuned else entry.label
        if exhibit["kind"] == "picture":
            panels.append((caption, Picture(*(exhibit[key] for key in ("png", "width", "height")))))
        elif exhibit["kind"] == "points":
            panels.append((caption, Points(*_thinned(exhibit, ("x", "y", "label"), MOST_POINTS))))
        else:
            x, y = _thinned(exhibit, ("x", "y"), MOST_CORNERS)
            kind = "default" if entry.is_default else "curve"
            curves.append(Line(caption, _style(table, entry), x, y, kind=kind))
    panels += [("", Chart(curves, "", name))] if curves else []
    return Figure(f"{name}: {where}", panels)


def _thinned(exhibit: Mapping[str, Any], names: Iterable[str], most: int) -> Iterator[Any]:
    step = max(1, math.ceil(len(exhibit["x"]) / most))
    return (exhibit[name][::step] for name in names)
