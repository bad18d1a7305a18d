"""Charts as SVG text: lines with bands, and points. They take their colours from the page.

A line has the colour ``var(--c0)`` to ``var(--c9)`` and a marker by its number, so that charts
follow the light or dark colours of the page, and can be told apart without colours.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from robustpca.bench.formats import number

__all__ = ["COLOURS", "Line", "draw_lines", "draw_points", "spans_decades", "swatch"]

COLOURS = 10
WIDTH, HEIGHT = 360.0, 250.0
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
DECADES = 50.0  # a ratio of largest and smallest value from which a scale is logarithmic


@dataclass(frozen=True)
class Line:
    """Values of one method along the axis.

    Parameters
    ----------
    label : str
        For the tips of the mouse.
    style : int
        Number of colour and marker.
    x : sequence
        Positions: numbers, or anything else, which is then spaced evenly.
    y : sequence of float
        Values.
    spread : sequence of float, default=()
        Half the height of the band; none by default.
    kind : {'ours', 'default', 'published', 'curve'}, default='ours'
        Solid with markers; dotted; dashed with hollow markers; solid without markers.
    """

    label: str
    style: int
    x: Sequence[Any]
    y: Sequence[float]
    spread: Sequence[float] = ()
    kind: str = "ours"


@dataclass(frozen=True)
class Axis:
    """A scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False
    names: Sequence[str] = field(default_factory=tuple)

    def at(self, value: float) -> float:
        """Pixel of a value; what is off the scale lands on its end."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        share = (self._scaled(min(max(value, self.low), self.high)) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Values to be marked, and their names."""
        if self.names:
            every = math.ceil(len(self.names) / 8)
            return [(float(i), name) for i, name in enumerate(self.names) if i % every == 0]
        if self.is_log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            every = max(1, math.ceil((last - first) / 5))
            powers = [(10.0**power, _power(power)) for power in range(first, last + 1, every)]
            return powers if len(powers) > 2 else self._between(first, last)
        step = _step((self.high - self.low) / 5)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(i * step, number(i * step)) for i in range(first, last + 1)]

    def _between(self, first: int, last: int) -> list[tuple[float, str]]:
        """Ticks of a scale of few powers of ten, also at 2 and 5 times these."""
        found = [
            factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)
        ]
        return [(value, number(value)) for value in found if self.low <= value <= self.high]

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.is_log else value


def draw_lines(
    lines: Sequence[Line], x_name: str, y_name: str, title: str, is_log: bool | None = None
) -> str:
    """A chart of lines.

    A scale is logarithmic if its values are positive and span decades, unless ``is_log`` says so
    or not for the values; positions that are not numbers are spaced evenly in the order in which
    they come.

    Examples
    --------
    >>> from robustpca.bench.charts import Line, draw_lines
    >>> svg = draw_lines([Line("PCA", 0, [1, 2, 3], [3.0, 2.0, 1.0])], "size", "error", "Digits")
    >>> svg[:4], "<title>PCA: 2 at 2</title>" in svg
    ('<svg', True)
    """
    places, names = _places([x for line in lines for x in line.x])
    values = [y for line in lines for y in line.y]
    is_log = spans_decades(values) if is_log is None else is_log
    if not is_log:  # bands may reach below zero, where a logarithm cannot follow
        values += [end for line in lines for end in _ends(line)]
    up = _axis(values, HEIGHT - BOTTOM, TOP, is_log)
    # Room for the name of the axis and the longest number beside it.
    left = 26 + 6.5 * max((len(text) for _, text in up.ticks()), default=0)
    positions = list(places.values())
    across = (
        Axis(-0.3, len(names) - 0.7, left, WIDTH - RIGHT, names=names)
        if names
        else _axis(positions, left, WIDTH - RIGHT, spans_decades(positions))
    )
    parts = [_frame(across, up, x_name, y_name)]
    parts += [_band(line, places, across, up) for line in lines if line.spread]
    parts += [_line(line, places, across, up) for line in lines]
    return _svg(parts, title)


def spans_decades(values: Sequence[float]) -> bool:
    """Whether values are positive and so far apart that only a logarithmic scale shows them all.

    Examples
    --------
    >>> from robustpca.bench.charts import spans_decades
    >>> spans_decades([1, 10, 100]), spans_decades([0, 10, 100]), spans_decades([1, 2])
    (True, False, False)
    """
    return bool(values) and min(values) > 0 and max(values) / min(values) >= DECADES


def draw_points(x: Sequence[float], y: Sequence[float], labels: Sequence[int], title: str) -> str:
    """Points in the plane, coloured by class; both axes have the same unit.

    Examples
    --------
    >>> from robustpca.bench.charts import draw_points
    >>> draw_points([0.0, 1.0], [0.0, 1.0], [3, 5], "Two").count("<path")
    2
    """
    side, edge = 220.0, 8.0
    width = max(max(x) - min(x), max(y) - min(y)) or 1.0
    left, low = (max(x) + min(x) - width) / 2, (max(y) + min(y) - width) / 2
    across = Axis(left, left + width, edge, side - edge)
    up = Axis(low, low + width, side - edge, edge)
    parts = [f'<rect class="box" x=".5" y=".5" width="{side - 1:g}" height="{side - 1:g}"/>']
    for index, label in enumerate(sorted(set(labels))):
        # Lines of no length with round ends: the shortest way to write many dots.
        dots = "".join(
            f"M{across.at(a):.1f} {up.at(b):.1f}h0"
            for a, b, one in zip(x, y, labels, strict=True)
            if one == label
        )
        colour = f"var(--c{index % COLOURS})"
        parts.append(f'<path class="dots" stroke="{colour}" d="{dots}"/>')
    return _svg(parts, title, side, side)


def swatch(style: int, kind: str = "ours") -> str:
    """A piece of a line with its marker, for a legend."""
    line = Line("", style, "abc", [0.0, 0.0, 0.0], kind=kind)
    across, up = Axis(0.0, 2.0, 2.0, 32.0), Axis(-1.0, 1.0, 12.0, 0.0)
    drawn = _line(line, {"a": 0.0, "b": 1.0, "c": 2.0}, across, up, marked="b")
    size = 'viewBox="0 0 34 12" width="34" height="12"'
    return f'<svg class="swatch" {size} aria-hidden="true">{drawn}</svg>'


def _svg(parts: Iterable[str], title: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    name = f'role="img" aria-label="{escape(title)}"'
    return f'<svg class="chart" {size} {name}>{"".join(parts)}</svg>'


def _places(values: Iterable[Any]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Where positions lie on the axis, and their names if they are not numbers."""
    texts = list(dict.fromkeys(str(value) for value in values))
    try:
        numbers = {text: float(text) for text in texts}
    except ValueError:
        return {text: float(index) for index, text in enumerate(texts)}, tuple(texts)
    if not all(map(math.isfinite, numbers.values())):
        return {text: float(index) for index, text in enumerate(texts)}, tuple(texts)
    return numbers, ()


def _axis(values: Sequence[float], start: float, end: float, is_log: bool) -> Axis:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if is_log:
        room = max(high / low, 1.1) ** 0.04
        return Axis(low / room, high * room, start, end, is_log=True)
    room = (0.05 * (high - low)) or 0.1 * abs(high) or 1.0
    return Axis(low - room, high + room, start, end)


def _step(rough: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"1e{power}"


def _frame(across: Axis, up: Axis, x_name: str, y_name: str) -> str:
    """Grid, ticks and names of the axes."""
    parts = []
    for value, text in up.ticks():
        y = up.at(value)
        parts.append(f'<path class="grid" d="M{across.start:g} {y:.1f}H{across.end:g}"/>')
        parts.append(
            f'<text x="{across.start - 6:g}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    for value, text in across.ticks():
        x = across.at(value)
        parts.append(f'<path class="tick" d="M{x:.1f} {up.start:g}v4"/>')
        label = escape(_cut(text, 14))
        parts.append(f'<text x="{x:.1f}" y="{up.start + 16:g}" text-anchor="middle">{label}</text>')
    middle_x, middle_y = (across.start + across.end) / 2, (up.start + up.end) / 2
    parts.append(f'<path class="axis" d="M{across.start:g} {up.start:g}H{across.end:g}"/>')
    parts.append(
        f'<text class="name" x="{middle_x:g}" y="{HEIGHT - 6:g}" text-anchor="middle">'
        f"{escape(x_name)}</text>"
        f'<text class="name" transform="translate(11 {middle_y:g}) rotate(-90)" '
        f'text-anchor="middle">{escape(_cut(y_name, 30))}</text>'
    )
    return "".join(parts)


def _cut(text: str, length: int) -> str:
    """A name that has room beside an axis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _ends(line: Line) -> list[float]:
    """Lower and upper ends of the band of a line."""
    pairs = zip(line.y, line.spread, strict=False)  # a line may have no band
    return [y + end for y, spread in pairs if not math.isnan(spread) for end in (-spread, spread)]


def _band(line: Line, places: dict[str, float], across: Axis, up: Axis) -> str:
    found = [
        (across.at(places[str(x)]), up.at(y - spread), up.at(y + spread))
        for x, y, spread in zip(line.x, line.y, line.spread, strict=True)
        if not math.isnan(spread)
    ]
    if len(found) < 2:
        return ""
    lower = [f"{x:.1f} {low:.1f}" for x, low, _ in found]
    upper = [f"{x:.1f} {high:.1f}" for x, _, high in reversed(found)]
    path = "M" + "L".join([*lower, *upper]) + "z"
    return f'<path class="band" fill="var(--c{line.style % COLOURS})" d="{path}"/>'


def _line(
    line: Line,
    places: dict[str, float],
    across: Axis,
    up: Axis,
    marked: str | None = None,
) -> str:
    """A line, with markers at all positions or at one alone."""
    colour = f"var(--c{line.style % COLOURS})"
    spots = [(across.at(places[str(x)]), up.at(y)) for x, y in zip(line.x, line.y, strict=True)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    drawn = f'<path class="{line.kind}" stroke="{colour}" d="{path}"/>' if spots else ""
    if line.kind in ("default", "curve"):
        return drawn
    shape = MARKERS[line.style % len(MARKERS)]
    fill = "var(--page)" if line.kind == "published" else colour
    for (x, y), where, value in zip(spots, line.x, line.y, strict=True):
        if marked in (None, where):
            tip = f"{line.label}: {number(value)} at {where}"
            drawn += (
                f'<path class="marker" stroke="{colour}" fill="{fill}" d="{shape}" '
                f'transform="translate({x:.1f} {y:.1f})"><title>{escape(tip)}</title></path>'
            )
    return drawn
