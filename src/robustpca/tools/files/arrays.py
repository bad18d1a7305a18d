"""Files of arrays: NumPy, MATLAB, HDF5, zarr."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array
from robustpca.tools.files.matlab import mat_arrays
from robustpca.tools.files.table import Table, extra, reading

__all__ = [
    "column_names",
    "find_h5",
    "find_zarr",
    "of_array",
    "open_h5",
    "open_mat",
    "open_npy",
    "open_npz",
    "open_zarr",
]


def of_array(path: Path, X: Any, image_shape: Any = None, labels: list[str] | None = None) -> Table:
    """A table from an array of rows, of images, or of coloured images.

    Parameters
    ----------
    path : Path
        Where it comes from.
    X : array
        Numbers of shape (rows, columns), (images, height, width) or with channels as a last axis.
    image_shape : tuple of int, default=None
        Height and width, if the rows are images and the shape of ``X`` does not say so.
    labels : list of str, default=None
        Names of the rows; by default their numbers.

    Returns
    -------
    table : Table
        With columns that are called by their number.
    """
    X = np.asarray(X)
    if X.dtype.kind not in "biuf" or X.ndim not in (2, 3, 4) or X.size == 0:
        raise ValueError(
            f"{path} holds an array of shape {X.shape} and type {X.dtype}: numbers are needed, "
            "with samples in rows, or images along the first axis."
        )
    if X.ndim > 2:
        image_shape = X.shape[1:]
    X = np.ascontiguousarray(X.reshape(len(X), -1), X.dtype if X.dtype == np.float32 else float)
    return Table(
        X=X,
        names=column_names(X.shape[1], image_shape),
        labels=labels or [str(i + 1) for i in range(len(X))],
        left_out={},
        frame=None,
        image_shape=None if image_shape is None else tuple(int(side) for side in image_shape),
        path=path,
    )


def column_names(n_columns: int, image_shape: Any) -> list[str]:
    """Names of columns that have none: their numbers, or where in an image they are."""
    if image_shape is None or len(image_shape) != 2:
        return [f"column {i + 1}" for i in range(n_columns)]
    width = int(image_shape[1])
    return [f"pixel {i // width + 1},{i % width + 1}" for i in range(n_columns)]


def open_npy(path: Path, key: str | None, sheet: Any) -> Table:
    """Open a file of one array."""
    arrays = _loaded(path)
    if "" not in arrays:  # an archive of several, whatever its name says
        return open_npz(path, key, sheet)
    return of_array(path, arrays[""])


def open_npz(path: Path, key: str | None, sheet: Any) -> Table:
    """Open a file of arrays by name."""
    arrays = _loaded(path)
    sides = arrays.get("shape")
    name = _key(path, {name: array.shape for name, array in arrays.items()}, key)
    X = arrays[name]
    # The data sets of this library say in this way that their rows are images.
    images = (
        sides is not None and sides.shape == (2,) and X.ndim == 2 and X.shape[1] == sides.prod()
    )
    return of_array(path, X, sides if images else None)


def open_mat(path: Path, key: str | None, sheet: Any) -> Table:
    """Open a file of MATLAB."""
    with path.open("rb") as file:
        header = file.read(128)
    if header[124:128] in (b"\x00\x02IM", b"\x02\x00MI"):
        # Version 7.3 is HDF5, with the axes in reverse order.
        return open_h5(path, key, sheet, transposed=True)
    with reading(path):
        if header[126:] in (b"IM", b"MI") and 0 not in header[:4]:
            arrays = mat_arrays(path.read_bytes())
        else:
            from scipy.io import loadmat

            with warnings.catch_warnings():
                # Whether sparse ones are arrays or matrices is the same here.
                warnings.simplefilter("ignore", DeprecationWarning)
                content = loadmat(path)
            content = {name: array for name, array in content.items() if name[:2] != "__"}
            arrays = {name: _dense(array) for name, array in content.items()}
    return of_array(path, arrays[_key(path, {k: np.shape(a) for k, a in arrays.items()}, key)])


def open_h5(path: Path, key: str | None, sheet: Any, transposed: bool = False) -> Table:
    """Open a file of HDF5."""
    h5py = extra("h5py", "Reading HDF5 files", "hdf5")
    with reading(path):
        file = h5py.File(path, "r")
    with file:
        found = find_h5(file, path, key)
        with reading(path):
            X = found[()]
    return of_array(path, X.T if transposed else X)


def find_h5(file: Any, path: Path, key: str | None) -> Any:
    """The data set of an open file of HDF5 that is meant."""
    h5py = extra("h5py", "Reading HDF5 files", "hdf5")
    shapes: dict[str, tuple[int, ...]] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("#"):
            shapes[name] = item.shape

    with reading(path):
        file.visititems(visit)
    name = _key(path, shapes, key)
    with reading(path):
        return file[name]


def open_zarr(path: Path, key: str | None, sheet: Any) -> Table:
    """Open a zarr array, or a group of such."""
    found = find_zarr(path, key)
    with reading(path):
        X = found[...]
    return of_array(path, X)


def find_zarr(path: Path, key: str | None) -> Any:
    """The array in a folder of zarr that is meant."""
    zarr = extra("zarr", "Reading zarr files", "zarr")
    with reading(path):
        content = zarr.open(path, mode="r")
        arrays = dict(content.arrays()) if isinstance(content, zarr.Group) else {"": content}
        shapes = {name: array.shape for name, array in arrays.items()}
    return arrays["" if "" in arrays else _key(path, shapes, key)]


def _loaded(path: Path) -> dict[str, Array]:
    """The arrays of a file of NumPy by name; a single one has none."""
    with reading(path), path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return {"": content}
        members = {name: content[name] for name in content.files}
        return {name: one for name, one in members.items() if isinstance(one, np.ndarray)}


def _dense(array: Any) -> Array:
    """An array from one that may be sparse, whose indices are checked first."""
    if not sparse.issparse(array):
        return np.asarray(array)
    checked = sparse.csc_array(array)
    checked.check_format(full_check=True)
    return checked.toarray()


def _key(path: Path, shapes: Mapping[str, tuple[int, ...]], key: str | None) -> str:
    """Name of the array to read: the one asked for, ``X``, or the only one that has rows."""
    there = ", ".join(
        f"{name} ({' x '.join(map(str, shape)) or 'a number'})" for name, shape in shapes.items()
    )
    if key is not None:
        found = {key, key.strip("/")} & set(shapes)
        if not found:
            raise ValueError(f"{path} has no array {key!r}: it has {there or 'none'}.")
        return found.pop()
    if "X" in shapes:
        return "X"
    matrices = [
        name for name, shape in shapes.items() if len(shape) in (2, 3, 4) and min(shape) > 1
    ]
    if not shapes:
        raise ValueError(f"{path} holds no array: it should hold a matrix.")
    if len(matrices) != 1:
        need = f"choose one, as --key {matrices[0]}" if matrices else "none has rows and columns"
        raise ValueError(f"{path} has the arrays {there}: {need}.")
    return matrices[0]
