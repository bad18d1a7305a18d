"""Figures as SVG and HTML text: lines with bands, points, pictures.

A line has the colour ``var(--c0)`` to ``var(--c9)`` and a marker by its number, so that charts
follow the light or dark colours of the page, and can be told apart without colours.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from robustpca.bench.figures import Chart, Line, Panel, Picture, Points, spans_decades
from robustpca.bench.formats import number, power

__all__ = ["COLOURS", "draw", "swatch"]

COLOURS = 10
WIDTH, HEIGHT = 360.0, 250.0  # of a chart
SIDE = 220.0  # of points
RIGHT, TOP, BOTTOM = 10.0, 10.0, 40.0
# Around the origin, to be moved where a value is; a circle is drawn by two arcs.
MARKERS = (
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0z",
    "M-3 -3h6v6h-6z",
    "M0 -3.9L3.6 2.6H-3.6z",
    "M0 -4.2L3.6 0L0 4.2L-3.6 0z",
    "M0 3.9L3.6 -2.6H-3.6z",
    "M-1.2 -3.6h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z",
    "M-3.9 0L2.6 -3.6V3.6z",
    "M3.9 0L-2.6 -3.6V3.6z",
)
Spot = tuple[float, float]  # in pixels


@dataclass(frozen=True)
class Axis:
    """A scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False
    names: Sequence[str] = ()

    def at(self, value: float) -> float:
        """Pixel of a value; what is off the scale lands on its end."""
        ends = (self.low, min(max(value, self.low), self.high), self.high)
        low, here, high = map(math.log10, ends) if self.is_log else ends
        return self.start + (here - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Values to be marked, and their names."""
        if self.names:
            every = math.ceil(len(self.names) / 8)
            return [(float(i), self.names[i]) for i in range(0, len(self.names), every)]
        if not self.is_log:
            rough = (self.high - self.low) / 5
            unit = 10.0 ** math.floor(math.log10(rough))
            step = next(f * unit for f in (1, 2, 5, 10) if f * unit >= rough * (1 - 1e-9))
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [(i * step, number(i * step)) for i in range(first, last + 1)]
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        powers = range(first, last + 1, max(1, math.ceil((last - first) / 5)))
        if len(powers) > 2:
            return [(10.0**p, power(p)) for p in powers]
        # So few powers of ten need 2 and 5 times these, too.
        ticks = [factor * 10.0**p for p in range(first - 1, last + 1) for factor in (1, 2, 5)]
        return [(value, number(value)) for value in ticks if self.low <= value <= self.high]


def draw(panel: Panel, title: str) -> str:
    """A chart, points or a picture as HTML.

    A scale is logarithmic if its values are positive and span decades; positions that are not
    numbers are spaced evenly in the order in which they come.

    Parameters
    ----------
    panel : Chart, Points or Picture
        What to draw.
    title : str
        Read out to those who cannot see it.

    Examples
    --------
    >>> from robustpca.bench.charts import draw
    >>> from robustpca.bench.figures import Chart, Line
    >>> svg = draw(Chart([Line("PCA", 0, [1, 2, 3], [3.0, 2.0, 1.0])], "size", "error"), "Digits")
    >>> svg[:4], "<title>PCA: 2 at 2</title>" in svg
    ('<svg', True)
    """
    if isinstance(panel, Picture):
        # Enlarged by whole numbers, so that pixels stay squares.
        zoom = max(1, min(220 // panel.width, 160 // panel.height))
        size = f'width="{zoom * panel.width}" height="{zoom * panel.height}"'
        return f'<img {size} alt="{escape(title)}" src="data:image/png;base64,{escape(panel.png)}">'
    width, height = (SIDE, SIDE) if isinstance(panel, Points) else (WIDTH, HEIGHT)
    parts = _points(panel) if isinstance(panel, Points) else _chart(panel)
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    name = f'role="img" aria-label="{escape(title)}"'
    return f'<svg class="chart" {size} {name}>{"".join(parts)}</svg>'


def swatch(line: Line) -> str:
    """A piece of a line with its marker, for a legend."""
    drawn = _line(line, [(2.0, 6.0), (32.0, 6.0)]) + _marker(line, (17.0, 6.0))
    size = 'viewBox="0 0 34 12" width="34" height="12"'
    return f'<svg class="swatch" {size} aria-hidden="true">{drawn}</svg>'


def _chart(chart: Chart) -> list[str]:
    lines = chart.lines
    places, names = _places([x for line in lines for x in line.x])
    values = [y for line in lines for y in line.y]
    is_log = spans_decades(values) if chart.is_log is None else chart.is_log
    if not is_log:  # bands may reach below zero, where a logarithm cannot follow
        values += [end for line in lines for _, *ends in _band(line) for end in ends]
    up = _axis(values, HEIGHT - BOTTOM, TOP, is_log)
    # Room for the name of the axis and the longest number beside it.
    left = 26 + 6.5 * max((len(text) for _, text in up.ticks()), default=0)
    positions = list(places.values())
    across = (
        Axis(-0.3, len(names) - 0.7, left, WIDTH - RIGHT, names=names)
        if names
        else _axis(positions, left, WIDTH - RIGHT, chart.growth or spans_decades(positions))
    )

    bands, drawn = [], []
    for line in lines:
        band = [(across.at(places[str(x)]), up.at(a), up.at(b)) for x, a, b in _band(line)]
        if len(band) > 1:
            edge = [(x, low) for x, low, _ in band] + [(x, high) for x, _, high in band[::-1]]
            bands.append(f'<path class="band" fill="{_colour(line.style)}" d="{_path(edge)}z"/>')
        found = list(zip(line.x, line.y, strict=True))
        spots = [(across.at(places[str(x)]), up.at(y)) for x, y in found]
        drawn.append(_line(line, spots))
        for (x, y), spot in zip(found, spots, strict=True):
            tip = escape(f"{line.label}: {number(y)} at {x}")
            drawn.append(_marker(line, spot, f"<title>{tip}</title>"))
    return [_frame(across, up, chart), *bands, *drawn]


def _points(points: Points) -> list[str]:
    """Dots, coloured by class; both axes have the same unit."""
    x, y, edge = points.x, points.y, 8.0
    width = max(max(x) - min(x), max(y) - min(y)) or 1.0
    left, low = (max(x) + min(x) - width) / 2, (max(y) + min(y) - width) / 2
    across = Axis(left, left + width, edge, SIDE - edge)
    up = Axis(low, low + width, SIDE - edge, edge)
    parts = [f'<rect class="box" x=".5" y=".5" width="{SIDE - 1:g}" height="{SIDE - 1:g}"/>']
    for index, label in enumerate(sorted(set(points.labels))):
        # Lines of no length with round ends: the shortest way to write many dots.
        dots = "".join(
            f"M{across.at(a):.1f} {up.at(b):.1f}h0"
            for a, b, one in zip(x, y, points.labels, strict=True)
            if one == label
        )
        parts.append(f'<path class="dots" stroke="{_colour(index)}" d="{dots}"/>')
    return parts


def _places(values: Iterable[Any]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Where positions lie on the axis, and their names if they are not numbers."""
    texts = list(dict.fromkeys(map(str, values)))
    try:
        numbers = {text: float(text) for text in texts}
    except ValueError:
        numbers = {"": math.nan}
    if all(map(math.isfinite, numbers.values())):
        return numbers, ()
    return {text: float(index) for index, text in enumerate(texts)}, tuple(texts)


def _axis(values: Sequence[float], start: float, end: float, is_log: bool) -> Axis:
    """An axis with some room beyond the values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if is_log:
        room = max(high / low, 1.1) ** 0.04
        return Axis(low / room, high * room, start, end, is_log=True)
    room = (0.05 * (high - low)) or 0.1 * abs(high) or 1.0
    return Axis(low - room, high + room, start, end)


def _frame(across: Axis, up: Axis, chart: Chart) -> str:
    """Grid, ticks and names of the axes."""
    left, right, bottom = across.start, across.end, up.start
    parts = []
    for value, text in up.ticks():
        y = up.at(value)
        parts.append(f'<path class="grid" d="M{left:g} {y:.1f}H{right:g}"/>')
        parts.append(_text(text, f'x="{left - 6:g}" y="{y + 4:.1f}"', "end"))
    for value, text in across.ticks():
        x = across.at(value)
        parts.append(f'<path class="tick" d="M{x:.1f} {bottom:g}v4"/>')
        parts.append(_text(_cut(text, 14), f'x="{x:.1f}" y="{bottom + 16:g}"'))
    middle = f'class="name" x="{(left + right) / 2:g}" y="{HEIGHT - 6:g}"'
    turned = f'class="name" transform="translate(11 {(bottom + up.end) / 2:g}) rotate(-90)"'
    parts.append(f'<path class="axis" d="M{left:g} {bottom:g}H{right:g}"/>')
    parts += [_text(chart.x_name, middle), _text(_cut(chart.y_name, 30), turned)]
    return "".join(parts)


def _text(text: str, place: str, anchor: str = "middle") -> str:
    return f'<text {place} text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text: str, length: int) -> str:
    """A name that has room beside an axis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _band(line: Line) -> list[tuple[Any, float, float]]:
    """Positions, lower and upper ends of the band of a line, which may have none."""
    found = zip(line.x, line.y, line.std, strict=False)
    return [(x, y - std, y + std) for x, y, std in found if not math.isnan(std)]


def _line(line: Line, spots: Sequence[Spot]) -> str:
    path = _path(spots)
    return f'<path class="{line.kind}" stroke="{_colour(line.style)}" d="{path}"/>' if spots else ""


def _marker(line: Line, spot: Spot, tip: str = "") -> str:
    """A marker of a line of a kind that has some."""
    if line.kind in ("default", "curve"):
        return ""
    colour, shape = _colour(line.style), MARKERS[line.style % len(MARKERS)]
    fill = "var(--page)" if line.kind == "published" else colour
    return (
        f'<path class="marker" stroke="{colour}" fill="{fill}" d="{shape}" '
        f'transform="translate({spot[0]:.1f} {spot[1]:.1f})">{tip}</path>'
    )


def _path(spots: Iterable[Spot]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)


def _colour(style: int) -> str:
    return f"var(--c{style % COLOURS})"
