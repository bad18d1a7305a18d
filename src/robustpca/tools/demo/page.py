"""How the demo is shown: a picture of everything, a page, and a table of text."""

import base64
import io
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from robustpca.tools.demo.digits import HEADINGS, Result
from robustpca.tools.demo.troubles import COLUMNS, Trouble

__all__ = ["contact_sheet", "render", "table", "write"]

WIDTH = 12.0  # inches
TITLE = 0.42  # what a title takes of the height


def strip(trouble: Trouble) -> bytes:
    """The picture of one trouble, as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, trouble.height), layout="constrained")
    _draw(figure, trouble)
    return _png(figure, 130)


def contact_sheet(troubles: Sequence[Trouble]) -> bytes:
    """All pictures below each other, as a PNG file of 1200 pixels width."""
    from matplotlib.figure import Figure

    heights = [trouble.height + TITLE for trouble in troubles]
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(troubles), 1, height_ratios=heights, squeeze=False)
    for i, (part, trouble) in enumerate(zip(parts.flat, troubles, strict=True)):
        _draw(part, trouble)
        title = f"{i + 1}  {trouble.title}"
        part.suptitle(title, x=0.008, ha="left", fontsize=13, fontweight="bold")
    return _small(_png(figure, 100))


def _draw(figure: Any, trouble: Trouble) -> None:
    axes = figure.subplots(trouble.n_rows, 4, squeeze=False)
    trouble.draw(axes)
    for ax, heading in zip(axes[0], COLUMNS, strict=True):
        name = trouble.method if heading == "robustpca" else heading
        ax.set_title(name, fontsize=10.5, fontweight="bold", pad=17)


def _png(figure: Any, dpi: int) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def _small(picture: bytes) -> bytes:
    """The same picture with a palette, which takes a third of the space."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    buffer = io.BytesIO()
    palette = image.quantize(256, method=Image.Quantize.FASTOCTREE)  # keeps rare colours
    palette.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def table(troubles: Sequence[Trouble]) -> str:
    """All numbers as lines of text, in words."""
    lines: list[tuple[str, ...]] = [("", "plain PCA", "robustpca", "at best")]
    for i, trouble in enumerate(troubles):
        lines.append((f"{i + 1} {trouble.title} ({trouble.method})", "", "", ""))
        lines += [(f"    {measure.name}", *measure.texts) for measure in trouble.measures]
    numbers = [line for line in lines if line[1]]
    widths = [max(len(line[column]) for line in numbers) for column in range(4)]
    return "\n".join(
        (
            f"{line[0]:<{widths[0]}}" + "".join(f"  {line[i]:>{widths[i]}}" for i in (1, 2, 3))
        ).rstrip()
        for line in lines
    )


def render(troubles: Sequence[Trouble], results: Sequence[Result], seed: int, version: str) -> str:
    """One page that needs no other file."""
    template = Template(files("robustpca.tools.demo").joinpath("page.html").read_text("utf-8"))
    return template.substitute(
        verdict=escape(_verdict(troubles)),
        numbers=_numbers(troubles),
        troubles="\n".join(_section(i + 1, trouble) for i, trouble in enumerate(troubles)),
        methods=_methods(results),
        seed=seed,
        version=escape(version),
    )


def _verdict(troubles: Sequence[Trouble]) -> str:
    parts = []
    for trouble in troubles:
        first = trouble.measures[0]
        plain, ours, _ = first.texts
        name = first.name.partition(",")[0]
        parts.append(f"{name}: {ours} instead of {plain}")
    text = "; ".join(parts) + "."
    return text[0].upper() + text[1:]


def _numbers(troubles: Sequence[Trouble]) -> str:
    rows = []
    for i, trouble in enumerate(troubles):
        link = f'<a href="#trouble-{i + 1}">{escape(trouble.title)}</a>'
        rows.append(f'<tr><th colspan="4">{link}</th></tr>')
        for measure in trouble.measures:
            plain, ours, best = map(escape, measure.texts)
            rows.append(
                f"<tr><td>{escape(measure.name)}</td><td>{plain}</td><td><b>{ours}</b></td>"
                f"<td>{best}</td></tr>"
            )
    return "\n".join(rows)


def _section(number: int, trouble: Trouble) -> str:
    picture = base64.b64encode(strip(trouble)).decode("ascii")
    return (
        f'<section id="trouble-{number}">\n<h2>{number}. {escape(trouble.title)}</h2>\n'
        f"<p>{escape(trouble.story)}</p>\n"
        f'<div class="wide"><img alt="{escape(trouble.title)}: as given, by plain PCA, by '
        f'{trouble.method}, and the truth" src="data:image/png;base64,{picture}"></div>\n'
        f"<pre><code>{escape(trouble.code)}</code></pre>\n"
        f'<p class="note">The fit took {trouble.seconds:.1f} s. &ldquo;At best&rdquo; is '
        f"{escape(trouble.best)}.</p>\n</section>"
    )


def _methods(results: Sequence[Result]) -> str:
    if not results:
        return (
            '<p class="note">All methods on corrupted digits: '
            "<code>robustpca demo --all-methods</code></p>"
        )
    rows = []
    for result in results:
        name, *cells = map(escape, result.cells)
        wide = f' colspan="{len(HEADINGS) - 1}"' if result.failure else ""
        rows.append(
            f"<tr><th>{name}</th>" + "".join(f"<td{wide}>{c}</td>" for c in cells) + "</tr>"
        )
        rows += [
            f'<tr><td colspan="{len(HEADINGS)}" class="note">{escape(remark)}</td></tr>'
            for remark in result.remarks
        ]
    heads = "".join(f"<th>{escape(heading)}</th>" for heading in HEADINGS)
    return (
        "<details>\n<summary>All methods on corrupted digits</summary>\n"
        "<p>A fifth of the pixels of a fifth of the digits (8 x 8 pixels) is set to random values, "
        "the same pixels in each. The error is that of the clean digits, restored from the "
        "corrupted ones. Not every method is made for this trouble.</p>\n"
        f'<div class="wide"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>\n</details>"
    )


def write(folder: Path, picture: bytes, text: str) -> tuple[Path, Path]:
    """Write the picture and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "demo.png", folder / "demo.html"
    paths[0].write_bytes(picture)
    paths[1].write_text(text, encoding="utf-8")
    return paths
