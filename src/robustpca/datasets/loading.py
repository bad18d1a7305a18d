"""Find data sets among the folders, load them, store them, and say what is missing."""

import math
import textwrap
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.datasets.catalogue import ENTRIES, Entry
from robustpca.datasets.dataset import Dataset
from robustpca.datasets.files import checked, data_folders, read, write

__all__ = ["Status", "catalog", "describe", "load", "save"]


@dataclass(frozen=True)
class Found:
    """A file that holds a set, and the size of its images, if its name gives one."""

    path: Path
    size: tuple[int, int] | None


@dataclass(frozen=True)
class Status:
    """What there is of one data set, and what to do to have it.

    Parameters
    ----------
    name, title, used_by : str
        From the catalogue: what `load` is given, what it is, which experiments use it.
    is_there : bool
        Whether `load` works now.
    files : tuple of Path
        Files that hold it; none if it is missing, or is made without a file.
    needed : str
        Name of the file it needs; empty if it is made without one.
    can_fetch : bool
        Whether `fetch` can download it.
    to_do : str
        One sentence: what to do to have it; empty if it is there.
    """

    name: str
    title: str
    used_by: str
    is_there: bool
    files: tuple[Path, ...]
    needed: str
    can_fetch: bool
    to_do: str


def load(name: str, *, size: tuple[int, int] | None = None, data_home: Any = None) -> Dataset:
    """Load a data set.

    Files are searched in ``data_home``, then in the folder that the environment variable
    ``ROBUSTPCA_DATA`` names, then in the cache of the user. Nothing is downloaded: that is for
    `fetch`.

    Parameters
    ----------
    name : str
        A name of the `catalog`, or of a set that was stored with `save`.
    size : tuple of two int or None, default=None
        Height and width of the images; None for the smallest that are stored. Without a file of
        this size, another one is resized by averaging over areas: if possible a larger one with
        the same proportions.
    data_home : str, path-like or None, default=None
        Folder to search first.

    Returns
    -------
    dataset : Dataset
        ``X``, ``y``, ``image_shape``, ``origin`` and ``extras``.

    Raises
    ------
    FileNotFoundError
        If the set needs a file that is nowhere; it says which, what folders were searched, and what
        to do.
    ValueError
        If the file is damaged or is no data set, or nothing is known by this name.

    Examples
    --------
    >>> from robustpca.datasets import load
    >>> digits = load("digits", size=(4, 4))
    >>> digits.X.shape, digits.image_shape
    ((1797, 16), (4, 4))
    """
    entry, folders = entry_of(name), data_folders(data_home)
    if entry.make is not None:
        dataset = entry.make()
    else:
        found = find(entry, folders)
        if not found:
            raise missing(entry, folders)
        best = min(found, key=lambda one: _unfitness(one.size, size)) if size else found[0]
        dataset = read(best.path, entry.name, best.size, entry.origins)
    return dataset if size is None else dataset.resized(size)


def save(
    name: str,
    X: Any,
    y: Any = None,
    *,
    image_shape: tuple[int, int] | None = None,
    origin: str | None = None,
    data_home: Any = None,
    overwrite: bool = False,
    **extras: Any,
) -> Path:
    """Store a data set where `load` finds it: one of the catalogue, or one of your own.

    Parameters
    ----------
    name : str
        What to load it by.
    X : array of shape (n_samples, n_features) or (n_samples, height, width)
        Samples in rows, or images. Pixels should run from 0 to 255.
    y : array of shape (n_samples,) or None, default=None
        Classes: whole numbers from 0, or names, which are numbered in sorted order and kept as
        ``label_names``.
    image_shape : tuple of two int or None, default=None
        Height and width, if the rows are images in C order.
    origin : str or None, default=None
        Where the data came from.
    data_home : str, path-like or None, default=None
        Folder to write to; None for the one of ``ROBUSTPCA_DATA``, or else the cache of the user.
    overwrite : bool, default=False
        Replace a file that is there.
    **extras : arrays
        Further arrays, as described for `Dataset`.

    Returns
    -------
    path : Path
        The file.
    """
    entry, y = entry_of(name), None if y is None else np.asarray(y)
    if entry.make is not None:
        raise ValueError(f"{entry.name} is made without a file: choose another name.")
    if y is not None and y.dtype.kind not in "iu":
        extras["label_names"], y = np.unique(y.astype(str), return_inverse=True)
    given = {"X": X, "y": y, "origin": origin, **extras}
    arrays = {key: np.asarray(value) for key, value in given.items() if value is not None}
    arrays = checked(arrays, image_shape)
    shape = arrays.get("shape")
    file = min(entry.files, key=lambda one: ("{size}" in one) != (shape is not None))
    if "{size}" in file and shape is None:
        raise ValueError(f"{entry.name} holds images: pass image_shape=(height, width).")
    file = file.format(size="" if shape is None else "x".join(map(str, shape)))
    path = data_folders(data_home)[0] / f"{file}.npz"
    write(path, arrays, overwrite=overwrite)
    return path


def catalog(data_home: Any = None) -> list[Status]:
    """All data sets of the papers and of this library, whether they are there or not.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        Folder to search first.

    Returns
    -------
    entries : list of Status
        In the order of the catalogue.

    Examples
    --------
    >>> from robustpca.datasets import catalog
    >>> [entry.name for entry in catalog() if not entry.needed][:2]
    ['digits', 'synthetic_lowrank']
    """
    folders = data_folders(data_home)
    return [_status(entry, folders) for entry in ENTRIES.values()]


def describe(name: str, data_home: Any = None) -> str:
    """What a data set is, who uses it, where it is, or what to do to have it.

    Parameters
    ----------
    name : str
        A name of the `catalog`.
    data_home : str, path-like or None, default=None
        Folder to search first.

    Returns
    -------
    text : str
        A few lines.

    Examples
    --------
    >>> from robustpca.datasets import describe
    >>> print(describe("digits"))
    digits: Digits of scikit-learn, 1797 images of 8x8, grey levels from 0 to 16
        used by: none; quick checks
        file: none needed
    """
    status = _status(entry_of(name), data_folders(data_home))
    files = ", ".join(map(str, status.files)) or ("missing" if status.needed else "none needed")
    lines = [f"used by: {status.used_by}", f"file: {files}"]
    lines += [f"to do: {status.to_do}"] if status.to_do else []
    return f"{status.name}: {status.title}\n" + textwrap.indent("\n".join(lines), "    ")


def entry_of(name: str) -> Entry:
    """The entry of a name, or one for a set of the user's own."""
    key = str(name).lower()
    # The name becomes that of a file, which must not lead out of its folder.
    if not key.replace("-", "").replace("_", "").isalnum():
        raise ValueError(
            f"{name!r} cannot be the name of a data set: use letters, numbers, - and _."
        )
    own = Entry(key, "a set of your own", "you", files=(key, f"{key}_{{size}}"))
    return ENTRIES.get(key, own)


def find(entry: Entry, folders: list[Path]) -> list[Found]:
    """Files that hold a set, the preferred ones first; of several sizes, the smallest first."""
    found = []
    for file in entry.files:
        pattern = entry.pattern(file)
        for folder in folders:
            matches = [
                (match, path)
                for path in (folder.iterdir() if folder.is_dir() else ())
                if (match := pattern.fullmatch(path.name)) and path.is_file()
            ]
            here = [
                Found(path, (int(match[1]), int(match[2])) if match.groups() else None)
                for match, path in matches
            ]
            found += sorted(here, key=lambda one: math.prod(one.size or ()))
    return found


def missing(entry: Entry, folders: list[Path]) -> Exception:
    """The error that says which file is needed, which folders were searched, and what to do."""
    if entry.name not in ENTRIES:
        close = get_close_matches(entry.name, ENTRIES)
        hint = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
        return ValueError(
            f"No data set is called {entry.name!r}, and there is no {entry.name}.npz in "
            f"{_listed(folders)}. {hint}`robustpca data list` lists all names."
        )
    return FileNotFoundError(
        f"No file {_needed(entry)} ({entry.title}) in {_listed(folders)}. {_to_do(entry)}"
    )


def _status(entry: Entry, folders: list[Path]) -> Status:
    files = tuple(one.path for one in find(entry, folders))
    if entry.name not in ENTRIES and not files:
        raise missing(entry, folders)
    is_there = bool(files) or entry.make is not None
    return Status(
        name=entry.name,
        title=entry.title,
        used_by=entry.used_by,
        is_there=is_there,
        files=files,
        needed=_needed(entry),
        can_fetch=entry.download is not None,
        to_do="" if is_there else _to_do(entry),
    )


def _needed(entry: Entry) -> str:
    return f"{entry.files[0]}.npz".format(size="HEIGHTxWIDTH") if entry.files else ""


def _to_do(entry: Entry) -> str:
    if entry.download is not None:
        return (
            f"Run `robustpca data fetch {entry.name}`, or name the folder that has it by "
            "data_home= or ROBUSTPCA_DATA."
        )
    return (
        f"Get it from {entry.source}, and store it with robustpca.datasets.save({entry.name!r}, "
        "...), or name the folder that has it by data_home= or ROBUSTPCA_DATA."
    )


def _listed(folders: list[Path]) -> str:
    return ", ".join(map(str, folders))


def _unfitness(stored: tuple[int, int] | None, size: tuple[int, int]) -> tuple[float, ...]:
    """How bad a start a file is for images of a size; the least is the best.

    The size itself is best. Then come images that are larger on both sides, before others that
    would have to be enlarged; then those with the most similar proportions; then the nearest
    area.
    """
    if stored is None:
        return (3.0,)
    if stored == tuple(size):
        return (0.0,)
    is_smaller = stored[0] < size[0] or stored[1] < size[1]
    distortion = abs(math.log(stored[0] * size[1] / (stored[1] * size[0])))
    area = abs(math.log(math.prod(stored) / math.prod(size)))
    return (1.0 + is_smaller, round(distortion, 9), area)
