"""Arrays in files of all kinds, for fits that have to work in pieces."""

import weakref

import numpy as np
import pytest

from robustpca.engine import rows, scratch


def use_small_pieces(monkeypatch):
    """Cut everything into many blocks and groups, so that what is between them is seen."""
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1 << 15)
    monkeypatch.setattr(scratch, "GROUP_BYTES", 1 << 15)
    monkeypatch.setattr(scratch, "GATHERED_ROWS", 64)
    monkeypatch.setattr(scratch, "SUMMED_ROWS", 150)


def dense(A):
    return A.toarray() if hasattr(A, "toarray") else A


def saved(X, kind, folder):
    """The array in a file of some kind."""
    if kind == "memmap":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r")
    if kind == "hdf5":
        return pytest.importorskip("h5py").File(folder / "X.h5", "w").create_dataset("X", data=X)
    if kind == "dask":
        return pytest.importorskip("dask.array").from_array(X, chunks=(97, -1))
    return pytest.importorskip("zarr").create_array(folder / "X.zarr", data=X)


class ScratchSpace:
    """Counts the bytes of all scratch files: those that are live, and the most at any time.

    Both also of those alone that have at least ``large`` bytes.
    """

    def __init__(self, monkeypatch, large=0):
        self.live = self.most = self.live_large = self.most_large = 0
        self.large, space = large, self

        class Counted(scratch._Pages):
            def __init__(self, *_):
                space.change(len(self))
                weakref.finalize(self, space.change, len(self), -1)

        monkeypatch.setattr(scratch, "_Pages", Counted)

    def change(self, size, sign=1):
        self.live += sign * size
        self.live_large += sign * size * (size >= self.large)
        self.most = max(self.most, self.live)
        self.most_large = max(self.most_large, self.live_large)
