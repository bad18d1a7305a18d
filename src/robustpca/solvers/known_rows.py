"""Rows of the training data, known again by their values.

What a fit makes of a row may depend on more than the row: on where a loop ended, or on the edges of
a graph. So a row that was there gets what the fit made of it, and others solve their own problem.
"""

from dataclasses import dataclass

import numpy as np

from robustpca.engine.blocks import slices
from robustpca.engine.linalg import Array
from robustpca.engine.scratch import each, empty_beside, let_go, summed_parts
from robustpca.engine.svt import tile_rows
from robustpca.engine.threads import compiled

# Numbers of Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014: each entry
# becomes 64 bits, of which every one depends on all bits of the entry and on its column.
STRIDE = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
MISSING, ZERO = np.uint64(0x7FF8000000000000), np.uint64(0)
# The highest byte of a key.
FIRST_BITS = 56


@dataclass(frozen=True)
class KnownRows:
    """Keys of some rows, by which a row that is equal to one of them is found.

    A key is a hash of 64 bits: one of a billion new rows has that of one of a million others with a
    chance of 5e-5.

    Attributes
    ----------
    keys : ndarray of shape (n_samples,), dtype uint64
        Keys of the rows, ascending.
    places : ndarray of shape (n_samples,)
        The rows that have them; of equal rows the first one comes first.
    """

    keys: Array
    places: Array

    @classmethod
    def of(cls, X: Array) -> "KnownRows":
        """The rows of ``X``."""
        keys, places = row_keys(X), empty_beside(X, (len(X),), np.int64)
        for part in each(summed_parts(keys), places):
            places[part] = np.arange(part.start, part.stop)
        _sort(keys, places, FIRST_BITS)
        let_go(keys, places)
        return cls(keys, places)

    def find(self, X: Array) -> Array:
        """For each row of ``X`` the first one that is equal to it, or -1."""
        keys = row_keys(X)
        # Most rows are new. Keys in order are looked up in up to a fifth of the time, since each
        # search goes on where the one before it ended.
        if not self._search(np.sort(keys))[1].any():
            return np.full(len(keys), -1)
        near, known = self._search(keys)
        return np.where(known, self.places[near], -1)

    def _search(self, keys: Array) -> tuple[Array, Array]:
        """Where to look for keys among those of the rows, and whether they are there."""
        near = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return near, self.keys[near] == keys


def row_keys(X: Array) -> Array:
    """Keys of rows: equal for equal values, missing ones included, in whatever precision."""
    keys = empty_beside(X, (len(X),), np.uint64)
    salts = np.arange(1, X.shape[1] + 1, dtype=np.uint64) * STRIDE
    for place in each(slices(len(X), tile_rows(X.shape[1])), X, keys):
        values = np.ascontiguousarray(X[place], np.float64)
        compiled(hash_rows)(values, values.view(np.uint64), salts, keys[place])
    return keys


def _sort(keys: Array, places: Array, bits: int) -> None:
    """Bring keys into ascending order and their places with them, equal keys as they come.

    Keys that are too many at once are dealt out by a byte, that of the lowest of ``bits``, and
    those of each value are sorted by themselves; higher bytes are equal.
    """
    if len(summed_parts(keys)) <= 1:
        order = np.argsort(keys, kind="stable")
        keys[...], places[...] = keys[order], places[order]
        return
    if bits < 0:  # all of them are equal
        return
    parts, shift = summed_parts(keys), np.uint64(bits)

    def bytes_of(part: Array) -> Array:
        return (part >> shift).astype(np.uint8)

    found = [np.bincount(bytes_of(keys[part]), minlength=256) for part in each(parts, keys)]
    counts = np.sum(found, axis=0)
    ends = np.cumsum(counts)
    following, arrays = ends - counts, (keys, places)
    dealt = tuple(empty_beside(array) for array in arrays)
    for part in each(parts, *arrays, *dealt):
        values = bytes_of(keys[part])
        order = np.argsort(values, kind="stable")
        values, own = values[order], np.bincount(values, minlength=256)
        # Each goes behind those of its value that came before.
        targets = np.arange(len(values)) + (following - np.cumsum(own) + own)[values]
        for array, out in zip(arrays, dealt, strict=True):
            out[targets] = array[part][order]
        following += own
    for part in each(parts, *arrays, *dealt):
        keys[part], places[part] = dealt[0][part], dealt[1][part]
    del dealt
    bounds = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    for bucket in each([bound for bound in bounds if bound.stop - bound.start > 1], *arrays):
        _sort(keys[bucket], places[bucket], bits - 8)


def hash_rows(X: Array, bits: Array, salts: Array, keys: Array) -> None:
    """Kernel: hashes of rows, given as numbers and as ``bits``."""
    for i in range(len(X)):
        key = ZERO
        for j in range(X.shape[1]):
            # Zero has two signs, and NaN has many forms.
            word = bits[i, j] if X[i, j] != 0.0 else ZERO
            word = (word if X[i, j] == X[i, j] else MISSING) + salts[j]
            word = (word ^ (word >> SHIFTS[0])) * FIRST
            word = (word ^ (word >> SHIFTS[1])) * SECOND
            key += word ^ (word >> SHIFTS[2])
        keys[i] = key
