"""Videos frame by frame into files: films where PyAV is there, stacks of images otherwise."""

from abc import ABC, abstractmethod
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.tools.files.table import extra

__all__ = ["Film", "Stack", "Writer", "film_extension", "writer"]

CONTAINERS = (".mp4", ".mkv", ".avi", ".mov")


def film_extension(path: Path | None, transparent: bool = False) -> str:
    """Kind of file that is written for a video: that of the input if it is a film."""
    kind = "" if path is None else path.suffix.lower()
    if find_spec("av") is None or kind in (".tif", ".tiff"):
        return ".tif"
    if transparent:
        return ".webm"
    return kind if kind in CONTAINERS else ".mp4"


class Writer(ABC):
    """Writes frames to a file, in a ``with`` statement."""

    @abstractmethod
    def write(self, frame: Array) -> None:
        """Append a frame: uint8, (height, width) or with three or four channels."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Film(Writer):
    """A film.

    Parameters
    ----------
    path : Path
        ``.mp4``, ``.mkv``, ``.avi``, ``.mov`` for H.264; ``.webm`` for VP9, which can be
        transparent.
    rate : Fraction
        Frames per second.
    quality : int, default=18
        Constant rate factor: the less the better.
    """

    def __init__(self, path: Path, rate: Fraction, quality: int = 18) -> None:
        self.av = extra("av", "Writing films", "video")
        self.container = self.av.open(str(path), "w", format=_FORMATS[path.suffix.lower()])
        self.is_web = path.suffix.lower() == ".webm"
        self.rate, self.quality = rate, quality
        self.stream: Any = None

    def write(self, frame: Array) -> None:
        kind = {2: "gray", 3: "rgb24", 4: "rgba"}[2 if frame.ndim == 2 else frame.shape[2]]
        if self.stream is None:
            self.stream = self._stream(frame.shape[0], frame.shape[1], kind)
        image = self.av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format=kind)
        for packet in self.stream.encode(image):
            self.container.mux(packet)

    def _stream(self, height: int, width: int, kind: str) -> Any:
        codec = "libvpx-vp9" if self.is_web else "libx264"
        options = {"crf": str(self.quality), "preset": "veryfast", "bf": "0"}
        if self.is_web:
            options = {"crf": "24", "b": "0", "deadline": "realtime", "cpu-used": "6"}
        stream = self.container.add_stream(codec, rate=self.rate, options=options)
        stream.height, stream.width = height, width
        # Colours at half the resolution are for even sizes only.
        halved = "420" if height % 2 == 0 and width % 2 == 0 else "444"
        stream.pix_fmt = f"yuv{'a' if kind == 'rgba' else ''}{halved}p"
        return stream

    def close(self) -> None:
        if self.stream is not None:
            for packet in self.stream.encode():
                self.container.mux(packet)
        self.container.close()


_FORMATS = {".mp4": "mp4", ".mkv": "matroska", ".avi": "avi", ".mov": "mov", ".webm": "webm"}


class Stack(Writer):
    """A stack of images in one ``.tif`` file, written one by one."""

    def __init__(self, path: Path) -> None:
        self.images = extra("PIL.Image", "Writing images", "plot")
        tiff = extra("PIL.TiffImagePlugin", "Writing images", "plot")
        self.file = path.open("w+b")
        self.pages: Any = tiff.AppendingTiffWriter(self.file)

    def write(self, frame: Array) -> None:
        image = self.images.fromarray(np.ascontiguousarray(frame))
        image.save(self.pages, format="TIFF", compression="tiff_lzw")
        self.pages.newFrame()

    def close(self) -> None:
        # Pages look at the file once more when they go, and it must be open then.
        self.pages = None
        self.file.close()


def writer(path: Path, rate: Fraction, quality: int = 18) -> Writer:
    """What writes frames to a file, by its extension."""
    if path.suffix.lower() in (".tif", ".tiff"):
        return Stack(path)
    return Film(path, rate, quality)
