"""Rows of arrays in files: NumPy's own, HDF5 and zarr."""

import copy
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.rows import Bounds, Rows


def last_change(path: Path) -> tuple[int, int, int]:
    """How many files there are at a path, their bytes, and the sum of their times of change."""
    files = [path]
    if path.is_dir():
        files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    found = [file.stat() for file in files]
    times = sum(each.st_mtime_ns for each in found)
    return len(found), sum(each.st_size for each in found), times


class StoredRows(Rows):
    """Rows on a disk, where reading may fail, and which others may change.

    Attributes
    ----------
    place : str
        What messages call it.
    watched : Path or None
        File or folder that must stay as it is; None if its times would not tell.
    is_one_file : bool
        Whether it is looked at before each block, and not only before each pass.
    """

    place: str
    watched: Path | None = None
    is_one_file = True
    _known: tuple[int, int, int] | None = None

    def watch(self, path: Path | None) -> Self:
        """From now on, refuse to read if a file or folder is not as it is now."""
        self.watched = path if path is not None and path.exists() else None
        self._known = None if self.watched is None else last_change(self.watched)
        return self

    def refuse_changed(self) -> None:
        """Say so if what is read was changed meanwhile."""
        if self.watched is not None and last_change(self.watched) != self._known:
            raise OSError(
                f"{self.place} was changed while it was read: start again when it stays as it is."
            )

    def reader(self) -> Callable[[int, int], Any]:
        self.refuse_changed()
        return super().reader()

    def read_places(self, places: list[Bounds]) -> list[Any]:
        self.refuse_changed()
        return super().read_places(places)

    def __getstate__(self) -> dict[str, Any]:
        # On another machine the time of the last change may be rounded in another way.
        return {**self.__dict__, "watched": None, "_known": None}

    def __copy__(self) -> Self:
        # Not by what is sent to other processes, which leaves out what they cannot use.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop``, and not fewer."""
        if self.is_one_file:
            self.refuse_changed()
        try:
            found = self._read(start, stop)
        except MemoryError:
            raise
        except Exception as error:
            raise OSError(
                f"Rows {start} to {stop - 1} of {self.place} cannot be read: {error}"
            ) from error
        if len(found) < stop - start:
            raise OSError(
                f"{self.place} ends before row {stop - 1} of {self.shape[0]}: it was cut off."
            )
        return found

    def _read(self, start: int, stop: int) -> Array:
        raise NotImplementedError


class FileRows(StoredRows):
    """Rows of a `numpy.memmap`, read by path: nothing stays mapped, and only a path is sent."""

    def __init__(self, X: "np.memmap[Any, Any]") -> None:
        super().__init__(X.shape, X.dtype)
        root = X
        while isinstance(root.base, np.memmap):
            root = root.base
        # A view inherits the offset of the array it was cut from, so it is worked out anew.
        self.offset = root.offset + X.ctypes.data - root.ctypes.data
        self.path = self.place = str(X.filename)
        # Where each thread of a pass reads to.
        self._room: threading.local | None = None
        # Of a map that is written to, the time of the last change may come late.
        self.watch(Path(self.path) if X.mode == "r" else None)

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether the bytes of ``X`` are rows that stand in a file as they are."""
        return (
            isinstance(X, np.memmap)
            and X.ndim == 2
            and X.filename is not None
            and X.mode != "c"
            and X.flags.c_contiguous
        )

    def _read(self, start: int, stop: int) -> Array:
        width = self.shape[1]
        row_bytes = width * self.stored.itemsize
        room = self._bytes((stop - start) * row_bytes)
        n_read = 0
        with Path(self.path).open("rb", buffering=0) as file:
            file.seek(self.offset + start * row_bytes)
            while n_new := file.readinto(room[n_read:].data):
                n_read += n_new
        return room[: n_read // row_bytes * row_bytes].view(self.stored).reshape(-1, width)

    def _bytes(self, n_bytes: int) -> Array:
        """Room for some rows, which is new outside of passes."""
        room = getattr(self._room, "bytes", np.empty(0, np.uint8))
        if len(room) < n_bytes:
            room = np.empty(n_bytes, np.uint8)
            if self._room is not None:
                self._room.bytes = room
        return room[:n_bytes]

    def reader(self) -> Callable[[int, int], Array]:
        other = copy.copy(self)
        # Each thread has its own.
        other._room = threading.local()
        return other.read


class HDF5Rows(StoredRows):
    """Rows of an h5py dataset; on another process the file is opened by its path."""

    def __init__(self, X: Any) -> None:
        super().__init__(X.shape, X.dtype)
        self.X, self.path, self.name = X, str(Path(X.file.filename).absolute()), X.name
        self.place = f"{self.path}:{self.name}"
        is_still = X.file.mode == "r" and not X.file.swmr_mode
        self.watch(Path(self.path) if is_still else None)

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether ``X`` is an h5py dataset."""
        return type(X).__module__.startswith("h5py.") and hasattr(X, "chunks")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "X": None}

    def _read(self, start: int, stop: int) -> Array:
        if self.X is not None:
            return np.ascontiguousarray(self.X[start:stop])
        import h5py

        with h5py.File(self.path, "r") as file:
            return np.ascontiguousarray(file[self.name][start:stop])


class ZarrRows(StoredRows):
    """Rows of a zarr array, which pickles as the path of its store."""

    is_one_file = False  # but one for each chunk

    def __init__(self, X: Any) -> None:
        super().__init__(X.shape, X.dtype)
        self.X, self.place = X, str(X.store_path)
        root = getattr(X.store_path.store, "root", None)
        self.watch(Path(root, X.store_path.path) if root is not None else None)

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether ``X`` is a zarr array."""
        return type(X).__module__.startswith("zarr.") and hasattr(X, "chunks")

    def _read(self, start: int, stop: int) -> Array:
        # The array may be stored column by column, and BLAS sums by layout.
        return np.ascontiguousarray(self.X[start:stop])


ON_DISK: tuple[Any, ...] = (FileRows, HDF5Rows, ZarrRows)
