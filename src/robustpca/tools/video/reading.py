"""Frames one after the other, from whatever holds them."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.tools.files.images import IMAGES
from robustpca.tools.files.table import counted, extra, reading, reason_of

__all__ = ["Frames", "open_frames"]

RATE = Fraction(25)
# If the length and the number of frames of a film give a rate that differs by such a share from
# what the film says, the rate is that of a part of it.
UNEVEN = 0.1
# Files of the other verbs.
TABLES = (".csv", ".tsv", ".txt", ".dat", ".xlsx", ".parquet")


@dataclass(frozen=True)
class Frames:
    """Frames of a video, to be looped over; each is (height, width) or (height, width, 3).

    Attributes
    ----------
    name : str
        What the video is called.
    start : callable
        Gives an iterator over the frames, from the first one.
    shape : tuple of int
        Shape of a frame.
    dtype : dtype
        Type of the values; in most videos ``uint8``.
    n_frames : int or None
        How many there are, as far as that is known before they are read.
    rate : Fraction
        Frames per second.
    path : Path or None
        The file or folder, if there is one.
    repeatable : bool
        Whether one can start again.
    remarks : list of str
        What the user should know of the reading, in sentences.
    """

    name: str
    start: Callable[[], Iterator[Array]]
    shape: tuple[int, ...]
    dtype: Any
    n_frames: int | None = None
    rate: Fraction = RATE
    path: Path | None = None
    repeatable: bool = True
    remarks: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Array]:
        return self.start()

    def summary(self) -> str:
        """What was opened, in a sentence, and what was remarked."""
        height, width, *channels = self.shape
        number = "frames" if self.n_frames is None else counted(self.n_frames, "frame")
        colour = "in colour" if channels else "grey"
        rate = f"{float(self.rate):g} per second"
        first = f"{self.name}: {number} of {width} x {height} pixels, {colour}, {rate}."
        return " ".join([first, *self.remarks])


def open_frames(source: Any, rate: Any = None, key: str | None = None) -> Frames:
    """Open a video of any kind.

    Parameters
    ----------
    source : str, path-like, ndarray, Frames or iterable
        A film (``.mp4``, ``.avi``, ``.mkv`` ...; needs PyAV), a stack (``.tif``), a folder of
        images in the order of their names, an array (``.npy``, ``.npz``, or in memory) of shape
        (n_frames, height, width) or (n_frames, height, width, 3), ``-`` for a film on the
        standard input, or any iterable of frames, such as one that reads a camera.
    rate : number, default=None
        Frames per second; by default that of the film, and 25 where none is known.
    key : str, default=None
        Name of the array in an ``.npz`` file of several.

    Returns
    -------
    frames : Frames
        To be looped over.
    """
    wanted = None if rate is None else Fraction(rate).limit_denominator(1001)
    if wanted is not None and wanted <= 0:
        raise ValueError(f"rate={rate} should be a positive number of frames per second.")
    if isinstance(source, Frames):
        return source
    if isinstance(source, str | Path):
        found = _open_path(str(source), key)
    elif hasattr(source, "shape"):
        found = _of_array(np.asarray(source), "array", None)
    elif isinstance(source, Iterable):
        found = _of_iterable(source)
    else:
        raise TypeError(f"A video is a path, an array or an iterable, not {type(source).__name__}.")
    return found if wanted is None else Frames(**{**vars(found), "rate": wanted})


def _open_path(text: str, key: str | None) -> Frames:
    if text == "-":
        return _open_film(sys.stdin.buffer, None)
    path = Path(text).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    kind = path.suffix.lower()
    if path.is_dir():
        return _open_folder(path)
    if path.stat().st_size == 0 and path.is_file():
        raise ValueError(f"{path} is empty: it should hold a video.")
    if kind in (".npy", ".npz"):
        with reading(path):
            found = np.load(path, mmap_mode="r")
        # What the file holds counts, and not its name.
        frames = found if isinstance(found, np.ndarray) else _from_archive(found, path, key)
        return _of_array(frames, path.name, path)
    if kind in (".tif", ".tiff", ".gif", ".webp"):
        return _open_stack(path)
    if kind in IMAGES:
        raise ValueError(f"{path} is one image: give the folder of all of them.")
    if kind in TABLES:
        raise ValueError(f"{path} is a table: `robustpca check {path}` looks at it.")
    return _open_film(str(path), path)


def _from_archive(found: Any, path: Path, key: str | None) -> Array:
    with found as arrays:
        names = [name for name in arrays.files if arrays[name].ndim in (3, 4)]
        if key is not None and key not in arrays.files:
            raise ValueError(f"{path} has no array {key!r}: it has {', '.join(arrays.files)}.")
        if key is None and not names:
            raise ValueError(
                f"{path} holds no frames: an array of shape (n_frames, height, width) is needed."
            )
        return np.asarray(arrays[key or ("X" if "X" in names else names[0])])


def _of_array(X: Array, name: str, path: Path | None) -> Frames:
    if X.ndim == 4 and X.shape[3] == 1:
        X = X[..., 0]
    if X.ndim not in (3, 4) or (X.ndim == 4 and X.shape[3] != 3) or 0 in X.shape:
        raise ValueError(
            f"{name} has shape {X.shape}: frames have shape (n_frames, height, width), or "
            "(n_frames, height, width, 3) in colour."
        )
    _check_values(X[0], name)
    return Frames(
        name, lambda: (np.asarray(frame) for frame in X), X.shape[1:], X.dtype, len(X), path=path
    )


def _of_iterable(source: Iterable[Any]) -> Frames:
    pending = iter(source)
    first = next(pending, None)
    if first is None:
        raise ValueError("There are no frames.")
    first = np.asarray(first)
    if first.ndim == 3 and first.shape[2] == 1:
        raise ValueError(f"Grey frames have shape (height, width), not {first.shape}.")
    if first.ndim not in (2, 3) or (first.ndim == 3 and first.shape[2] != 3):
        raise ValueError(
            f"A frame has shape {first.shape}: (height, width) or (height, width, 3) is needed."
        )
    _check_values(first, "The first frame")
    again = not isinstance(source, Iterator)

    def start() -> Iterator[Array]:
        each = iter(source) if again else chain([first], pending)
        return (_checked(np.asarray(one), first, i) for i, one in enumerate(each))

    return Frames("frames", start, first.shape, first.dtype, repeatable=again)


def _check_values(frame: Array, name: str) -> None:
    if frame.dtype.kind not in "buif":
        raise ValueError(f"{name} holds {frame.dtype}: numbers are needed.")
    if frame.dtype.kind == "f" and not np.isfinite(frame).all():
        raise ValueError(f"{name} holds NaN or infinite values: every pixel needs a value.")


def _checked(frame: Array, first: Array, number: int) -> Array:
    if frame.shape != first.shape:
        raise ValueError(
            f"Frame {number + 1} has shape {frame.shape} and the first has {first.shape}: all "
            "should have one size."
        )
    return frame


def _in_order(file: Path) -> list[Any]:
    """Names with numbers in them, in the order of the numbers: 2 before 10."""
    parts = re.split(r"(\d+)", file.name.lower())
    return [int(part) if part.isdigit() else part for part in parts]


def _open_folder(path: Path) -> Frames:
    images = extra("PIL.Image", "Reading images", "plot")
    files = sorted(
        (
            file
            for file in path.iterdir()
            if file.suffix.lower() in IMAGES and not file.name.startswith(".")
        ),
        key=_in_order,
    )
    if not files:
        raise ValueError(f"The folder {path} holds no images: give the folder of the frames.")

    def read(file: Path) -> Array:
        with reading(file), images.open(file) as image:
            return _plain(image)

    first = read(files[0])

    def start() -> Iterator[Array]:
        for i, file in enumerate(files):
            frame = read(file)
            if first.ndim > frame.ndim:
                frame = np.repeat(frame[..., None], 3, axis=2)
            yield _checked(frame, first, i)

    return Frames(path.name, start, first.shape, first.dtype, len(files), path=path)


def _open_stack(path: Path) -> Frames:
    images = extra("PIL.Image", "Reading images", "plot")

    def start() -> Iterator[Array]:
        with images.open(path) as stack:
            first = None
            for number in range(getattr(stack, "n_frames", 1)):
                with reading(path):
                    stack.seek(number)
                    frame = _plain(stack)
                first = frame if first is None else first
                yield _checked(frame, first, number)

    with reading(path), images.open(path) as stack:
        n_frames, first = getattr(stack, "n_frames", 1), _plain(stack)
    if n_frames == 1:
        raise ValueError(f"{path} holds one image: give a stack, or the folder of all images.")
    return Frames(path.name, start, first.shape, first.dtype, n_frames, path=path)


def _plain(image: Any) -> Array:
    """Grey if it is, otherwise three colours; transparency is no measurement."""
    grey = image.mode in ("1", "L", "F", "LA") or image.mode.startswith("I")
    if image.mode in ("1", "LA"):
        image = image.convert("L")
    return np.array(image if grey else image.convert("RGB"))


def _open_film(place: Any, path: Path | None) -> Frames:
    av = extra("av", "Reading films", "video")
    name = "standard input" if path is None else path.name

    def opened() -> Any:
        try:
            container = av.open(place)
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise ValueError(f"{name} cannot be read as a video: {reason_of(error)}.") from error
        if not container.streams.video:
            container.close()
            raise ValueError(f"{name} holds no video.")
        return container

    def frames_of(container: Any) -> Iterator[Array]:
        with container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            wanted = "gray" if is_grey else "rgb24"
            try:
                for frame in container.decode(stream):
                    yield frame.to_ndarray(format=wanted)
            except av.error.FFmpegError as error:
                raise ValueError(f"{name} is damaged: {reason_of(error)}.") from error

    container = opened()
    stream = container.streams.video[0]
    remarks = ["The sound is left out."] if container.streams.audio else []
    rate = Fraction(stream.guessed_rate or stream.average_rate or RATE)
    seconds = (container.duration or 0) / av.time_base
    n_frames = stream.frames or None
    if n_frames is None and path is not None:  # the header need not say it; a pipe is read once
        with opened() as counted_through:
            packets = counted_through.demux(counted_through.streams.video[0])
            n_frames = sum(packet.size > 0 for packet in packets)
    if n_frames and seconds and abs(n_frames / (seconds * rate) - 1) > UNEVEN:
        rate = Fraction(n_frames / seconds).limit_denominator(1001)
        remarks.append("They come at uneven times, and are written at even ones.")
    is_grey = str(stream.codec_context.pix_fmt).startswith("gray")
    if path is not None and not is_grey:
        with opened() as looked_at:
            is_grey = _is_colourless(looked_at, av)
        remarks += ["It has no colours, and is read as grey."] if is_grey else []
    pending = frames_of(container)
    first = next(islice(pending, 1), None)
    if first is None:
        raise ValueError(f"{name} holds no frames.")
    if path is None:  # a pipe is read once
        start: Callable[[], Iterator[Array]] = lambda: chain([first], pending)  # noqa: E731
    else:
        pending.close()  # type: ignore[attr-defined]

        def start() -> Iterator[Array]:
            return frames_of(opened())

    return Frames(
        name, start, first.shape, first.dtype, n_frames, rate, path, path is not None, remarks
    )


def _is_colourless(container: Any, av: Any) -> bool:
    """Whether a film that could have colours shows none, here and there."""
    stream = container.streams.video[0]
    if not str(stream.codec_context.pix_fmt).startswith("yuv"):
        return False
    for part in range(5):
        try:
            if part and container.duration:
                container.seek(part * container.duration // 5)
            frame = next(container.decode(stream), None)
        except av.error.FFmpegError:  # no place to jump to
            return False
        if frame is None or (frame.to_ndarray(format="yuv444p")[1:] != 128).any():
            return False
    return True
