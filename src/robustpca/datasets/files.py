"""The file format of data sets, and the folders that are searched for them.

A data set is one compressed ``.npz`` file that `numpy.load` reads without pickle: ``X`` holds
samples in rows, or the frames of a video as (frames, height, width); ``y`` classes from 0, if
there are any; ``shape`` height and width of images; further arrays go into ``extras``. Files
written by this library also hold a ``checksum`` of X and y, and their ``origin``.
"""

import os
import sys
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO

import numpy as np

from robustpca.datasets.dataset import PER_PIXEL, PER_SAMPLE, Dataset, checksum_of
from robustpca.engine.drafts import writing
from robustpca.engine.linalg import Array

__all__ = ["cache_folder", "checked", "data_folders", "read", "write"]

# What numpy.load raises for files that are cut off, altered, or something else altogether.
_UNREADABLE: tuple[type[Exception], ...]
_UNREADABLE = (ValueError, EOFError, KeyError, UnpicklingError, NotImplementedError, RuntimeError)
_UNREADABLE += (OSError, zipfile.BadZipFile, zlib.error)


def data_folders(data_home: Any = None) -> list[Path]:
    """Folders that are searched for data sets, the first to be preferred.

    These are ``data_home``, the folder that the environment variable ``ROBUSTPCA_DATA`` names,
    and the cache of the user. Files are written to the first of them.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        A folder of your own.

    Returns
    -------
    folders : list of Path
        They need not exist.
    """
    given = [data_home, os.environ.get("ROBUSTPCA_DATA")]
    return [Path(folder).expanduser() for folder in given if folder] + [cache_folder()]


def cache_folder() -> Path:
    """Where this platform keeps files that programs can get again, for this library."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "robustpca"


def read(
    path: Any,
    name: str | None = None,
    image_shape: tuple[int, int] | None = None,
    origins: Mapping[str, str] | None = None,
) -> Dataset:
    """Read a data set from a file.

    Parameters
    ----------
    path : str or path-like
        The ``.npz`` file.
    name : str or None, default=None
        Name of the set; None for that of the file.
    image_shape : tuple of two int or None, default=None
        Height and width that the images must have; None for those the file gives, if any.
    origins : dict or None, default=None
        Origin of known data by their checksum. The origin of others is what the file says, or
        its path.

    Returns
    -------
    dataset : Dataset
        Whole numbers have become double precision: 8-bit pixels would wrap around in the
        first subtraction.

    Raises
    ------
    ValueError
        If the file is damaged, or is no data set.
    """
    path = Path(path)
    # A file that cannot be opened at all is not a damaged one.
    with path.open("rb") as file:
        try:
            arrays = _arrays(file)
            checksum = checksum_of(arrays["X"], arrays.get("y"))
            if arrays.pop("checksum", checksum) != checksum:
                raise ValueError("X and y do not have the checksum recorded with them")
            origin = str(arrays.pop("origin", path))
            arrays = checked(arrays, image_shape)
        except _UNREADABLE as error:
            reason = str(error).strip().rstrip(".") or type(error).__name__
            raise ValueError(
                f"{path} is damaged or is no data set: {reason}. Move it away, then fetch or "
                "save the set again."
            ) from error
    X, y, shape = arrays.pop("X"), arrays.pop("y", None), arrays.pop("shape", None)
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return Dataset(
        name=name or path.stem,
        X=np.ascontiguousarray(X, dtype=dtype),
        y=y,
        image_shape=None if shape is None else (int(shape[0]), int(shape[1])),
        origin=(origins or {}).get(checksum, origin),
        extras=arrays,
    )


def write(path: Path, arrays: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write a file in one step: it is complete or not there, whatever happens meanwhile.

    Parameters
    ----------
    path : Path
        The ``.npz`` file; missing folders are made.
    arrays : dict
        Arrays by name, at least ``X``; a checksum is added.
    overwrite : bool, default=False
        Replace a file that is there. Otherwise it is left alone, with a FileExistsError.
    """
    arrays = {key: np.asarray(value) for key, value in arrays.items() if value is not None}
    pickled = [key for key, array in arrays.items() if array.dtype.hasobject]
    if pickled:
        raise ValueError(f"{', '.join(pickled)} would need pickle: pass numbers, or texts as str.")
    arrays["checksum"] = np.asarray(checksum_of(arrays["X"], arrays.get("y")))
    with writing(path, overwrite=overwrite) as draft, draft.open("xb") as file:
        np.savez_compressed(file, **arrays)


def checked(arrays: Mapping[str, Array], image_shape: Any = None) -> dict[str, Array]:
    """The arrays of a data set with samples and pixels in one axis each, if they fit together.

    Parameters
    ----------
    arrays : dict
        Arrays by name, at least ``X``.
    image_shape : tuple of two int or None, default=None
        Height and width that the images must have, if this is known.

    Returns
    -------
    arrays : dict
        Those that were changed are new.
    """
    arrays = dict(arrays)
    X, y = arrays["X"], arrays.get("y")
    if X.ndim == 3:
        arrays["shape"] = np.array(X.shape[1:])
        X = arrays["X"] = X.reshape(len(X), -1)
    if X.ndim != 2 or X.size == 0 or X.dtype.kind not in "biuf":
        raise ValueError(f"X has shape {X.shape} and type {X.dtype}, not samples in rows")
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise ValueError("X has entries that are not finite")
    if image_shape is not None:
        shape = arrays.setdefault("shape", np.array(image_shape))
        if not np.array_equal(shape, image_shape):
            raise ValueError(f"its images are {_times(shape)} and not {_times(image_shape)}")
    if "shape" in arrays:
        shape = arrays["shape"]
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.prod() != X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features, but its images are {_times(shape)}")
    if y is not None:
        if y.shape != (len(X),) or y.dtype.kind not in "iu" or y.min() < 0:
            raise ValueError(
                f"y has shape {y.shape} and type {y.dtype}, and each of the {len(X)} samples "
                "needs a whole number from 0"
            )
        arrays["y"] = y.astype(np.int64)
    for key in PER_SAMPLE:
        if key in arrays and (arrays[key].ndim == 0 or len(arrays[key]) != len(X)):
            raise ValueError(f"{key} has shape {arrays[key].shape}, but there are {len(X)} samples")
    for key in PER_PIXEL:
        if key in arrays:
            arrays[key] = _flat(key, arrays[key], X.shape[1])
    return arrays


def _arrays(file: BinaryIO) -> dict[str, Array]:
    content = np.load(file, allow_pickle=False)
    if not isinstance(content, np.lib.npyio.NpzFile):
        raise ValueError("it holds a single array instead of X, y and others by name")
    with content:
        arrays = {key: content[key] for key in content.files}
    if "X" not in arrays:
        raise ValueError(f"it has no array X, but {', '.join(arrays) or 'nothing'}")
    return arrays


def _flat(key: str, array: Array, n_features: int) -> Array:
    """An array over the pixels with these in one axis, the last."""
    axes = array.ndim - (key == "masks")
    if axes not in (1, 2) or np.prod(array.shape[-axes:]) != n_features:
        raise ValueError(f"{key} has shape {array.shape}, but there are {n_features} pixels")
    return array.reshape(*array.shape[: array.ndim - axes], n_features)


def _times(shape: Any) -> str:
    return "x".join(str(length) for length in np.ravel(shape))
