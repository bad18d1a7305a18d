"""Arrays of numbers in files of MATLAB 5 to 7.2.

SciPy reads these files too, and much more of them, but takes types and sizes as they stand: those
of a damaged file end the whole program.
"""

import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["mat_arrays"]

# Types of elements: numbers, as NumPy calls them, and what holds other elements.
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
NUMBERS |= {12: "i8", 13: "u8"}
TEXTS, MATRIX, COMPRESSED = (16, 17, 18), 14, 15
# Classes of matrices of numbers.
SPARSE, DENSE = 5, range(6, 16)
COMPLEX = 0x0800
LARGEST = 2**31  # bytes of a sparse matrix that is made dense


def mat_arrays(content: bytes) -> dict[str, Array]:
    """Matrices of numbers by name; what is of another class is left out.

    Parameters
    ----------
    content : bytes
        The whole file.

    Returns
    -------
    arrays : dict of str to ndarray
        With the types in which numbers are stored, which may be narrower than those of MATLAB.

    Raises
    ------
    ValueError, zlib.error, struct.error
        If it is damaged.
    """
    order = {b"IM": "<", b"MI": ">"}[content[126:128]]
    arrays = {}
    for kind, data in _elements(content[128:], order):
        if kind == COMPRESSED:
            ((kind, data),) = _elements(zlib.decompress(data), order)
        if kind != MATRIX:
            raise ValueError(f"it has an element of type {kind} in the place of a matrix")
        head = _elements(data, order)
        (_, flags), (_, shape), (_, name) = (next(head) for _ in range(3))
        (flag,) = struct.unpack_from(f"{order}I", flags)
        if flag & 0xFF in (SPARSE, *DENSE):
            sides = tuple(int(side) for side in np.frombuffer(shape, f"{order}i4"))
            arrays[name.decode("latin-1")] = _matrix(flag, sides, list(head), order)
    return arrays


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Types of the elements that follow each other, and what they hold."""
    at = 0
    while at + 8 <= len(content):
        kind, size = struct.unpack_from(f"{order}II", content, at)
        start = at + 8
        if kind >> 16:  # so short that it stands in its tag
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        if start + size > len(content) or kind not in (*NUMBERS, *TEXTS, MATRIX, COMPRESSED):
            raise ValueError(f"it is cut off in an element of type {kind} and {size} bytes")
        yield kind, content[start : start + size]
        # All but compressed ones begin at multiples of eight.
        end = max(start + size, at + 8)
        at = end if kind == COMPRESSED else at + -(-(end - at) // 8) * 8


def _numbers(kind: int, data: bytes, order: str) -> Array:
    if kind not in NUMBERS:
        raise ValueError(f"it has an element of type {kind} in the place of numbers")
    return np.frombuffer(data, order + NUMBERS[kind])


def _matrix(flag: int, sides: tuple[int, ...], parts: list[tuple[int, bytes]], order: str) -> Array:
    """A matrix from its parts: rows and columns of sparse ones, real and imaginary parts."""
    is_sparse, is_complex = flag & 0xFF == SPARSE, bool(flag & COMPLEX)
    if len(parts) != (3 if is_sparse else 1) + is_complex or len(sides) < 2 or min(sides) < 0:
        raise ValueError(f"it has a matrix of shape {sides} with {len(parts)} parts")
    if is_sparse:
        rows, starts = (_numbers(*part, order) for part in parts[:2])
        columns = np.repeat(np.arange(sides[1]), np.diff(starts))
        # There may be room for more entries, and those of masks are bytes, whatever is said.
        parts = [(2, data) if len(data) == len(columns) else (kind, data) for kind, data in parts]
        place, size = (rows[: len(columns)], columns), 8 * math.prod(sides)
        if size > LARGEST:
            raise ValueError(f"its sparse matrix would take {size / 2**30:.0f} GiB as a dense one")
    numbers = [_numbers(*part, order) for part in parts[2 * is_sparse :]]
    values = numbers[0] + 1j * numbers[1] if is_complex else numbers[0]
    if is_sparse:
        dense = np.zeros(sides, values.dtype)
        dense[place] = values[: len(columns)]
        return dense
    if math.prod(sides) != values.size:
        raise ValueError(f"it has a matrix of shape {sides} with {values.size} numbers")
    return values.reshape(sides, order="F")
