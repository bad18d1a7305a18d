"""From a video to files: background, foreground and mask, a list of frames, a page."""

import csv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.tools.outputs import Outputs
from robustpca.tools.video.page import contact_sheet, render_page
from robustpca.tools.video.reading import Frames, open_frames
from robustpca.tools.video.separator import CHANGE, CUT, Layers, VideoSeparator
from robustpca.tools.video.writing import Writer, film_extension, writer
from robustpca.tools.words import counted, listed

__all__ = ["VideoSeparated", "separate_video"]

COLUMNS = ("frame", "seconds", "moving", "score", "event")
# Frames that the sheet shows, about.
N_SHOWN = 8


@dataclass
class VideoSeparated:
    """What was found in a video.

    Attributes
    ----------
    frames : Frames
        The video.
    separator : VideoSeparator
        As it was after the last frame.
    shares, scores : list of float
        Share of the pixels that move in each frame, and the mean evidence for it.
    events : list of str
        'scene cut', 'light change', or nothing, for each frame.
    shown : list of Layers
        A few frames, taken apart: one of each ``step``.
    """

    frames: Frames
    separator: VideoSeparator
    shares: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    shown: list[Layers] = field(default_factory=list)
    step: int = 0

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or two."""
        n = len(self.shares)
        mean, most = float(np.mean(self.shares)), int(np.argmax(self.shares))
        text = (
            f"{percent(mean)} of the pixels move, at most {percent(self.shares[most])} "
            f"(frame {most + 1})"
        )
        for event in (CUT, CHANGE):
            places = [i + 1 for i, found in enumerate(self.events) if found == event]
            if event == CHANGE and places:
                verb = "shows" if len(places) == 1 else "show"
                text += f"; {len(places)} of {n} frames {verb} a light change"
                text += f" (the first is frame {places[0]})"
            elif places:
                numbers = listed([str(place) for place in places])
                text += f"; {counted(len(places), 'scene cut', 'scene cuts')} at frame {numbers}"
        return text + "."

    @property
    def remarks(self) -> list[str]:
        """What else one should know."""
        model = self.separator
        k = len(model.background_.components)
        light = counted(k, "component of the light", "components of the light")
        rate = model.false_positive_rate_
        wrong = f"{rate:.1g}" if rate > 0 else "less than 1e-05"
        return [
            f"The background has {light if k else 'no components of the light'}, and was learned "
            f"last from {counted(model.n_samples_, 'frame', 'frames')}.",
            f"In frames of nothing but its noise, a share of {wrong} of the pixels is marked.",
        ]

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as plain data."""
        return {
            "verdict": self.verdict,
            "remarks": self.remarks,
            "n_frames": len(self.shares),
            "moving": float(np.mean(self.shares)),
            "events": {str(i + 1): event for i, event in enumerate(self.events) if event},
        }

    def __str__(self) -> str:
        return "\n".join([self.verdict, *self.remarks])


def percent(share: float) -> str:
    """A share as text that never rounds something to nothing."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100 * share:.{0 if share >= 0.095 or share == 0 else 1}f} %"


def separate_video(
    source: Any,
    out: Any = None,
    *,
    separator: VideoSeparator | None = None,
    cutout: bool = False,
    rate: Any = None,
    key: str | None = None,
    force: bool = False,
    command: str = "",
    callback: Callable[[int, int | None], object] | None = None,
) -> VideoSeparated:
    """Separate a video, and write what moves and what stays to files.

    Parameters
    ----------
    source : str, path-like, array, Frames or iterable
        As `open_frames` takes it.
    out : path-like, default=None
        Folder to write to; None writes nothing.
    separator : VideoSeparator, default=None
        How to separate.
    cutout : bool, default=False
        Write what moves on a transparent ground, too.
    rate : number, default=None
        Frames per second, if the source does not know or is wrong.
    key : str, default=None
        Name of the array in an ``.npz`` file.
    force : bool, default=False
        Replace files that are there.
    command : str, default=''
        What was typed, for the record.
    callback : callable, default=None
        Called with the number of frames done, and that of all if it is known.

    Returns
    -------
    found : VideoSeparated
        Verdict, numbers of each frame, the separator.
    """
    frames = open_frames(source, rate, key)
    separator = VideoSeparator() if separator is None else separator
    if out is None:
        found = VideoSeparated(frames, separator)
        for layers in _stream(frames, separator, callback):
            _note(found, layers)
        return found
    with Outputs(out, force) as outputs:
        if outputs.file is not None:
            raise ValueError(f"{out} names a file, and several are written: give a folder.")
        return _written(frames, separator, outputs, cutout, command, callback)


def _stream(
    frames: Frames, separator: VideoSeparator, callback: Callable[[int, int | None], object] | None
) -> Iterator[Layers]:
    """Learn first what can be read twice; then take all frames apart."""
    known = separator.fit(frames).n_frames_seen_ if frames.repeatable else 0
    for layers in separator.stream(frames, known):
        yield layers
        if callback is not None:
            callback(layers.number + 1, frames.n_frames)


def _note(found: VideoSeparated, layers: Layers) -> None:
    found.shares.append(layers.share)
    found.scores.append(layers.score)
    found.events.append(layers.event)
    if found.step == 0:
        found.step = max(1, (found.frames.n_frames or 0) // N_SHOWN)
    if layers.number % found.step == found.step // 2:
        found.shown.append(layers)
    if len(found.shown) > 2 * N_SHOWN:  # it is longer than was known
        found.shown, found.step = found.shown[::2], 2 * found.step


def _written(
    frames: Frames,
    separator: VideoSeparator,
    outputs: Outputs,
    cutout: bool,
    command: str,
    callback: Callable[[int, int | None], object] | None,
) -> VideoSeparated:
    found = VideoSeparated(frames, separator)
    kind = film_extension(frames.path)
    names = {name: f"{name}{kind}" for name in ("background", "foreground", "mask")}
    if cutout:
        names["cutout"] = f"cutout{film_extension(frames.path, transparent=True)}"
    drafts = {name: outputs.claim(file) for name, file in names.items()}
    still, sheet, table, page = (
        outputs.claim(name)
        for name in ("background.png", "contact-sheet.png", "frames.csv", "report.html")
    )
    outputs.record(command, separator.get_params(), None)
    shown = partial(as_bytes, span=None)
    with ExitStack() as stack, table.open("w", newline="", encoding="utf-8") as file:
        films: dict[str, Writer] = {}
        for name, draft in drafts.items():
            films[name] = stack.enter_context(writer(draft, frames.rate))
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for layers in _stream(frames, separator, callback):
            shown = partial(as_bytes, span=separator.background_.span)
            _note(found, layers)
            seconds = f"{float(layers.number / frames.rate):.3f}"
            numbers = (f"{layers.share:.6f}", f"{layers.score:.4f}")
            rows.writerow((layers.number + 1, seconds, *numbers, layers.event))
            films["background"].write(shown(layers.background))
            films["foreground"].write(shown(layers.foreground))
            films["mask"].write(np.uint8(255) * layers.mask)
            if cutout:
                films["cutout"].write(_transparent(shown(layers.frame), layers.mask))
    center = separator.background_.center
    picture = shown(center[..., 0] if center.shape[2] == 1 else center)
    if find_spec("PIL") is not None:
        from PIL import Image

        Image.fromarray(picture).save(still)
        pictures = contact_sheet(found.shown, shown)
        Image.fromarray(pictures).save(sheet, optimize=True)
        page.write_text(render_page(found, pictures, command), encoding="utf-8")
    return found


def as_bytes(picture: Array, span: float | None) -> Array:
    """A picture in 8 bits; other types are scaled from black to white."""
    if picture.dtype == np.uint8:
        return picture
    scale = 255.0 / (span or 255.0)
    return np.clip(np.rint(picture.astype(np.float32) * scale), 0, 255).astype(np.uint8)


def _transparent(picture: Array, mask: Array) -> Array:
    colours = np.repeat(picture[..., None], 3, axis=2) if picture.ndim == 2 else picture
    return np.dstack([colours * mask[..., None], np.uint8(255) * mask])
