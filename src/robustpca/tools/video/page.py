"""What was found in a video, to be looked at: a sheet of frames, and a page with a timeline."""

import base64
import io
import platform
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

import robustpca
from robustpca.engine.linalg import Array
from robustpca.tools.video.separator import CUT, Layers

if TYPE_CHECKING:
    from robustpca.tools.video.job import VideoSeparated

__all__ = ["contact_sheet", "render_page"]

# Width of a picture on the sheet, and of a frame around it.
WIDTH, GAP = 200, 4
# Points of the timeline, at most.
MOST_POINTS = 1000
# Lines of a picture that is stretched.
THIN = 'vector-effect="non-scaling-stroke"'
RED = np.array([230, 40, 60], np.float32)


def contact_sheet(layers: Sequence[Layers], shown: Callable[[Array], Array]) -> Array:
    """Some frames in columns: as given, with what moves in red, what moves, what stays."""
    columns = []
    for one in layers:
        frame = _coloured(shown(one.frame))
        marked = np.where(one.mask[..., None], 0.45 * frame + 0.55 * RED, frame)
        parts = (
            frame,
            marked.astype(np.uint8),
            _coloured(shown(one.foreground)),
            _coloured(shown(one.background)),
        )
        columns.append(np.vstack([_framed(_small(part)) for part in parts]))
    return np.hstack(columns)


def _coloured(picture: Array) -> Array:
    return np.repeat(picture[..., None], 3, axis=2) if picture.ndim == 2 else picture


def _small(picture: Array) -> Array:
    from PIL import Image

    height, width = picture.shape[:2]
    size = (WIDTH, max(1, round(WIDTH * height / width)))
    return np.asarray(Image.fromarray(picture).resize(size))


def _framed(picture: Array) -> Array:
    return np.pad(picture, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)


def render_page(found: "VideoSeparated", sheet: Array, command: str = "") -> str:
    """One page with everything in it: verdict, timeline, frames, how to repeat it."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(sheet).save(buffer, "jpeg", quality=85)
    separator = found.separator
    facts = [
        ("video", found.frames.name),
        ("frames", str(len(found.shares))),
        ("size", f"{found.frames.shape[1]} x {found.frames.shape[0]}"),
        ("frames per second", f"{float(found.frames.rate):g}"),
        ("method", separator.method),
    ]
    events = [(i, event) for i, event in enumerate(found.events) if event]
    folder = files("robustpca.tools")
    text = (folder / "video" / "page.html").read_text(encoding="utf-8")
    return Template(text).substitute(
        css=(folder / "templates" / "report.css").read_text(encoding="utf-8"),
        title=escape(f"What moves in {found.frames.name}"),
        verdict=escape(found.verdict),
        remarks="\n".join(
            f'<p class="soft">{escape(text)}</p>'
            for text in [*found.frames.remarks, *found.remarks]
        ),
        facts="\n".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts
        ),
        timeline=timeline(found.shares, events, float(found.frames.rate)),
        sheet=base64.b64encode(buffer.getvalue()).decode(),
        numbers=escape(", ".join(str(one.number + 1) for one in found.shown)),
        events=_event_rows(events, float(found.frames.rate)),
        code=escape(_code(found)),
        command=escape(command or "VideoSeparator in Python"),
        versions=escape(f"robustpca {robustpca.__version__}, Python {platform.python_version()}"),
    )


def timeline(shares: Sequence[float], events: Sequence[tuple[int, str]], rate: float) -> str:
    """Share of the pixels that move over time, as an SVG; of many frames the largest counts."""
    values = np.asarray(shares)
    bins = np.array_split(values, min(len(values), MOST_POINTS))
    most = max(float(values.max()), 1e-6)
    x = 100 * (np.arange(len(bins)) + 0.5) / len(bins)
    y = 100 * (1 - np.array([part.max() for part in bins]) / most)
    line = " ".join(f"{a:.2f},{b:.2f}" for a, b in zip(x, y, strict=True))
    marks = []
    for number, event in events[:MOST_POINTS]:
        at = 100 * (number + 0.5) / len(values)
        colour = "#c0392b" if event == CUT else "#d99a00"
        marks.append(
            f'<line x1="{at:.2f}" x2="{at:.2f}" y1="0" y2="100" stroke="{colour}" {THIN}>'
            f"<title>{event}, frame {number + 1}</title></line>"
        )
    # The picture is stretched to the width of the page, and the words beside it are not.
    return (
        f'<p class="soft">{100 * most:.2g} %</p>'
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" '
        'aria-label="Share of the pixels that move, over time" '
        'style="display:block;width:100%;height:9rem;border-bottom:1px solid var(--line)">'
        f'<polygon points="{x[0]:.2f},100 {line} {x[-1]:.2f},100" fill="#3b6ea5" '
        f'fill-opacity="0.25"/><polyline points="{line}" fill="none" stroke="#3b6ea5" {THIN}/>'
        f"{''.join(marks)}</svg>"
        '<p class="soft" style="display:flex;justify-content:space-between;max-width:none">'
        f"<span>0 s</span><span>{len(values) / rate:.1f} s</span></p>"
    )


def _event_rows(events: Sequence[tuple[int, str]], rate: float) -> str:
    if not events:
        return "<p>None: neither scene cuts nor light changes.</p>"
    lines = [
        f"<tr><td>{number + 1}</td><td>{number / rate:.2f} s</td><td>{event}</td></tr>"
        for number, event in events[:200]
    ]
    head = "<thead><tr><th>frame</th><th>time</th><th>what</th></tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{"".join(lines)}</tbody></table></div>'


def _code(found: Any) -> str:
    place = repr(str(found.frames.path)) if found.frames.path is not None else "frames"
    return (
        "from robustpca import VideoSeparator\n\n"
        f"separator = {found.separator!r}\n"
        f"for layers in separator.fit({place}).stream({place}):\n"
        "    layers.mask, layers.background, layers.foreground"
    )
