"""Folders of images, and stacks of them in one file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.tools.files.arrays import of_array
from robustpca.tools.files.table import Table, extra, reading

__all__ = ["IMAGES", "open_folder", "open_stack", "write_folder", "write_stack"]

# Files that `robustpca separate` takes.
FILMS = frozenset(
    {".mp4", ".avi", ".mkv", ".mov", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv", ".flv", ".ts"}
)
IMAGES = frozenset(
    {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".pgm", ".ppm", ".webp"}
)


def open_folder(path: Path, key: str | None, sheet: Any) -> Table:
    """Open a folder of images of one size: a row for each, in the order of their names."""
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in IMAGES and not file.name.startswith(".")
    )
    if not files:
        raise ValueError(
            f"The folder {path} holds no images: it should hold {', '.join(sorted(IMAGES))} "
            "files, or name a file in it."
        )
    images = [_frames(file)[0] for file in files]
    return of_array(path, _stacked(images, files), labels=[file.name for file in files])


def open_stack(path: Path, key: str | None, sheet: Any) -> Table:
    """Open a file of many images."""
    images = _frames(path)
    if len(images) == 1:
        raise ValueError(f"{path} holds one image: give a stack, or the folder of all images.")
    names = [f"Image {i + 1} of {path}" for i in range(len(images))]
    return of_array(path, _stacked(images, names))


def write_stack(table: Table, X: Array, path: Path) -> None:
    """Write images to one file, in the type that they had."""
    module = extra("PIL.Image", "Writing images", "plot")
    first, *others = [module.fromarray(image) for image in _like(table, X)]
    first.save(path, save_all=True, append_images=others)


def write_folder(table: Table, X: Array, place: Callable[[str], Path]) -> None:
    """Write each image to the file that ``place`` gives for its name."""
    module = extra("PIL.Image", "Writing images", "plot")
    for image, name in zip(_like(table, X), table.labels, strict=True):
        module.fromarray(image).save(place(name))


def _like(table: Table, X: Array) -> Array:
    """Numbers as images of the type that those of the table seem to have had."""
    images = np.asarray(X).reshape(len(X), *(table.image_shape or ()))
    given = table.X[np.isfinite(table.X)]
    whole = len(given) > 0 and given.min() >= 0 and bool((given == np.floor(given)).all())
    if not whole or given.max() > np.iinfo(np.uint16).max:
        return images.astype(np.float32)
    kind = np.uint8 if given.max() <= np.iinfo(np.uint8).max else np.uint16
    limits = np.iinfo(kind)
    return np.clip(np.rint(np.nan_to_num(images)), limits.min, limits.max).astype(kind)


def _frames(path: Path) -> list[Array]:
    """The images of a file: grey if they are, otherwise in three colours."""
    module = extra("PIL.Image", "Reading images", "plot")
    with reading(path), module.open(path) as file:
        frames = []
        for number in range(getattr(file, "n_frames", 1)):
            file.seek(number)
            grey = file.mode in ("1", "L", "F") or file.mode.startswith("I")
            # Transparency is no measurement.
            image = file if grey else file.convert("L" if file.mode == "LA" else "RGB")
            frames.append(np.array(image))
        return frames


def _stacked(images: list[Array], names: list[Any]) -> Array:
    """Images of one size as an array; grey ones get colours if others have them."""
    if len({image.ndim for image in images}) > 1:
        images = [
            np.repeat(image[..., None], 3, axis=2) if image.ndim == 2 else image
            for image in images
        ]  # fmt: skip
    for image, name in zip(images, names, strict=True):
        if image.shape != images[0].shape:
            raise ValueError(
                f"{name} has {image.shape[0]} x {image.shape[1]} pixels, and {names[0]} has "
                f"{images[0].shape[0]} x {images[0].shape[1]}: all should have one size."
            )
    return np.stack(images)
