"""Download data sets by means of scikit-learn, and store them in the file format of the library."""

import http.client
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

from robustpca.datasets.catalogue import Download
from robustpca.datasets.dataset import checksum_of
from robustpca.datasets.files import data_folders, write
from robustpca.datasets.loading import entry_of, find, missing
from robustpca.engine.linalg import Array

__all__ = ["fetch"]


def fetch(name: str, data_home: Any = None) -> Path:
    """Download a data set, unless it is there already.

    scikit-learn does the download and keeps its own copy; what it has is not asked for again.
    The file appears in one step when all of it has arrived and was checked.

    Parameters
    ----------
    name : str
        A name of the `catalog`.
    data_home : str, path-like or None, default=None
        Folder to search first, and to write to; None for the one that the environment variable
        ``ROBUSTPCA_DATA`` names, or else the cache of the user.

    Returns
    -------
    path : Path
        The file.

    Raises
    ------
    ConnectionError
        If the download fails; nothing is written.
    FileNotFoundError
        If the set is missing and cannot be downloaded; it says where to get it.
    ValueError
        If something else arrived than expected, or the set needs no file.
    """
    entry, folders = entry_of(name), data_folders(data_home)
    if entry.make is not None:
        raise ValueError(f"{entry.name} needs no file: load({entry.name!r}) makes it.")
    found = find(entry, folders)
    if found:
        return found[0].path
    if entry.download is None:
        raise missing(entry, folders)
    path = folders[0] / f"{entry.download.file}.npz"
    arrays = _downloaded(entry.name, entry.download, path)
    try:
        write(path, arrays)
    except FileExistsError:
        # Another process has fetched it meanwhile.
        return path
    except PermissionError as error:
        raise PermissionError(
            f"{entry.name} cannot be written to {path.parent}: {error}. Pass data_home= with a "
            "folder of yours."
        ) from error
    return path


def _downloaded(name: str, download: Download, path: Path) -> dict[str, Any]:
    fetcher = getattr(sklearn.datasets, download.fetcher)
    openml = {"as_frame": False, "parser": "pandas" if find_spec("pandas") else "liac-arff"}
    common = openml if download.fetcher == "fetch_openml" else {}
    try:
        parts = [fetcher(**options, **common) for options in download.options]
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"{name} could not be downloaded from {download.host}: {error}. Nothing was written. "
            f"Try again when online, or put {path.name} into {path.parent}."
        ) from error
    except ValueError as error:
        raise ValueError(
            f"What {download.host} sent for {name} cannot be read: {error}. Nothing was written; "
            "try again later."
        ) from error
    try:
        return _converted(download, parts)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"What {download.host} sent for {name} is not what was expected: {error}. Nothing was "
            "written."
        ) from error


def _converted(download: Download, parts: list[Any]) -> dict[str, Any]:
    """Arrays of the file, from what the fetchers have returned."""
    labels, label_names = _numbered(parts[0].target)
    for part in parts[1:]:
        if not np.array_equal(_numbered(part.target)[0], labels):
            raise ValueError("the samples of its parts have different labels")
    X = parts[0].data if len(parts) == 1 else np.hstack([part.data for part in parts])
    X = np.delete(X, download.dropped, axis=1) if download.dropped else np.asarray(X)
    if (X.shape, labels.shape) != (download.shape, download.shape[:1]):
        raise ValueError(f"it has shape {X.shape} and not {download.shape}")
    X = X.astype(np.float64, copy=False)
    if not np.isfinite(X).all():
        raise ValueError("it has entries that are not finite")
    if download.levels is not None:
        black, white = download.levels
        if not black <= X.min() < (black + white) / 2 < X.max() <= white:
            raise ValueError(f"pixels run from {X.min()} to {X.max()}, not {black} to {white}")
        X = np.rint((X - black) * (255 / (white - black)))
    if download.image_shape is not None:
        X = _upright(X, download.image_shape)
    X = X.astype(download.dtype)
    found = checksum_of(X, labels)
    if download.checksum not in (None, found):
        raise ValueError(f"it has the SHA-256 {found} and not {download.checksum}")
    options = [
        ", ".join(f"{key}={value!r}" for key, value in one.items()) for one in download.options
    ]
    arrays = {
        "X": X,
        "y": labels,
        "origin": f"scikit-learn, {download.fetcher}({'; '.join(options)})",
        **download.extras,
    }
    if label_names is not None:
        arrays["label_names"] = label_names
    if download.image_shape is not None:
        arrays["shape"] = download.image_shape
    return arrays


def _numbered(target: Any) -> tuple[Array, Array | None]:
    """Labels as whole numbers from 0, in numeric order if they are numbers, and their names if not.

    Sorted as texts, class 10 would come before class 2.
    """
    target = np.asarray(target)
    try:
        names, labels = np.unique(target.astype(np.float64), return_inverse=True)
        return labels.astype(np.int64), None
    except ValueError:
        texts = [one.decode() if isinstance(one, bytes) else str(one) for one in target]
        names, labels = np.unique([text.rstrip(".") for text in texts], return_inverse=True)
        return labels.astype(np.int64), names


def _upright(X: Array, image_shape: tuple[int, int]) -> Array:
    """Rows in C order, also if they were stored column by column.

    Pixels above each other are alike. In a row they are ``width`` apart in C order, and next to
    each other when columns were stored first, where ``height`` apart are those side by side.
    Images with sides of equal length do not tell, and are left alone.
    """
    height, width = image_shape
    apart = [np.abs(X[:99, step:] - X[:99, :-step]).mean() for step in (width, height)]
    if apart[0] <= apart[1]:
        return X
    return X.reshape(-1, width, height).transpose(0, 2, 1).reshape(len(X), -1)
