"""Coordinates of all rows in a small basis that can be expanded.

Many features make every pass over the data expensive. A `View` stores the coordinates of all
rows in a few dozen directions and their squared distance from the span of these, so distances
from any point of the span are exact and cheap. An expansion takes one pass over the data, which
also measures what is left outside: codes of all rows never travel to where the rows are.
"""

from typing import Self

import numpy as np
from scipy import linalg

from robustpca.engine.blocks import DenseBlock, NearBlock
from robustpca.engine.linalg import Array, finite, square_norms
from robustpca.engine.rows import ArrayRows, Rows

# Sums of squares between which no square of a matrix is lost in single precision.
LEAST_SINGLE, MOST_SINGLE = 1e-20, 1e30


class View:
    """Rows projected on an orthonormal basis, and a point in its span.

    Without a basis the coordinates are the features themselves.

    Parameters
    ----------
    rows : Rows
        The data, centred where the point starts.

    Attributes
    ----------
    rows : Rows
        What passes read: the data, or a copy of them in single precision.
    source : Rows
        The data.
    basis : ndarray of shape (n_features, n_directions) or None
        Orthonormal columns.
    codes : ndarray of shape (n_samples, n_directions)
        Coordinates of the rows in the basis, from their centre.
    coordinates : Rows
        The same, centred at the point.
    outside : ndarray of shape (n_samples,)
        Squared distance of each row from the span of the basis.
    """

    def __init__(self, rows: Rows) -> None:
        self.source = self.rows = self.coordinates = rows
        # Where the rows have their origin, if they are a copy.
        self.origin: Array | float = 0.0
        self.basis: Array | None = None
        self.codes: Array = np.empty((rows.shape[0], 0))
        self._norms: Array | None = None
        self.outside: Array = np.zeros(rows.shape[0])

    @classmethod
    def in_single_precision(cls, rows: Rows) -> Self:
        """A view of a copy of dense rows in single precision, if that holds them and squares."""
        X = np.empty(rows.shape, np.float32)
        norms = [rows.block(*place).copy_to(X[slice(*place)]) for place in rows.bounds]
        view = cls(ArrayRows(X, NearBlock))
        view.source, view.origin, view._norms = rows, rows.center, np.concatenate(norms)
        is_held = view.norms.max() > LEAST_SINGLE and view.norms.sum() < MOST_SINGLE
        return view if is_held else cls(rows)

    def precise(self) -> Self:
        """A view of the data as they are, with the same basis and point."""
        if self.basis is None:
            return type(self)(self.source.centred(self.point))
        view = type(self)(self.source.centred(self.origin + self.rows.center))
        view.rebase(view.rows.center, self.basis)
        view.move(self.coordinates.center)
        return view

    @property
    def is_single(self) -> bool:
        """Whether passes read a copy in single precision."""
        return self.rows.dtype != self.source.dtype

    @property
    def norms(self) -> Array:
        """Squared norms of the rows."""
        if self._norms is None:
            self._norms = finite(self.rows.map("square_norms"))
        return self._norms

    @property
    def point(self) -> Array:
        """The point, in the features of the data."""
        if self.basis is None:
            return self.origin + self.coordinates.center
        return self.origin + self.rows.center + self.directions(self.coordinates.center)

    def move(self, step: Array) -> None:
        """Move the point by a step in the coordinates."""
        self.coordinates = self.coordinates.centred(self.coordinates.center + step)

    def square_lengths(self) -> Array:
        """Squared distance of each row from the point."""
        if self.coordinates is self.rows:
            return self.norms
        lengths: Array = self.coordinates.map("square_norms") + self.outside
        return lengths

    def directions(self, axes: Array) -> Array:
        """Columns given in the coordinates, in the features of the data."""
        return axes if self.basis is None else self.basis @ axes.astype(self.basis.dtype)

    def projection(self, A: Array) -> Array | float:
        """Orthogonal projection of the columns of ``A`` on the span of the basis."""
        return 0.0 if self.basis is None else self.basis @ (self.basis.T @ A)

    def expand(self, added: Array) -> None:
        """Add orthonormal columns to the basis, to which they must be orthogonal."""
        basis = added if self.basis is None else np.hstack([self.basis, added])
        if self._norms is None:
            # The first pass over the data gives the norms as well.
            self.codes, self._norms, self.outside = self.rows.map(_placed, added)
        else:
            before = self._norms if self.basis is None else self.outside
            along = (self._norms, before)
            codes, self.outside = self.rows.map(_placed_further, basis, added, along=along)
            self.codes = np.hstack([self.codes, codes])
        center = np.zeros(self.codes.shape[1])
        if self.basis is not None:
            center[: self.basis.shape[1]] = self.coordinates.center
        self.basis = basis
        self._set_coordinates(center)

    def restrict(self, axes: Array) -> None:
        """Take orthonormal ``axes``, given in the coordinates, as basis; centre at the point."""
        point, norms = self.point, self.square_lengths()
        others = linalg.qr(axes, check_finite=False)[0][:, axes.shape[1] :]
        codes, dropped = self.coordinates.map(_divided, axes, others)
        # BLAS sums by layout, which must not change.
        by_columns = self.codes.flags.f_contiguous
        self.codes = np.asfortranarray(codes) if by_columns else np.ascontiguousarray(codes)
        self.rows, self._norms = self.rows.centred(point - self.origin), norms
        self.outside = self.outside + dropped
        self.basis = self.directions(axes)
        self._set_coordinates(np.zeros(axes.shape[1]))

    def rebase(self, center: Array, basis: Array) -> None:
        """Take another centre, given in the features, and orthonormal columns as basis."""
        before = self.rows
        self.rows, self.basis = before.centred(center), basis
        if self._norms is None:
            found = self.rows.map(_placed, basis)
        else:
            found = before.map(_placed_anew, basis, self.rows.center, along=(self._norms,))
        self.codes, self._norms, self.outside = found[0], finite(found[1]), found[2]
        self._set_coordinates(np.zeros(basis.shape[1]))

    def _set_coordinates(self, center: Array) -> None:
        # Coordinates are near enough to the origin to be multiplied before they are centred.
        self.coordinates = ArrayRows(self.codes, NearBlock).centred(center)


def square_distances(rows: Rows, codes: Array, norms: Array, basis: Array) -> Array:
    """Squared distance of each row from the span of ``basis``, given its coordinates there."""
    distances = norms - square_norms(codes)
    # Blocks know when so much cancels that the differences themselves are to be measured.
    if (distances < rows.cancels * norms).any():
        return np.asarray(rows.map(_measured, basis, along=(distances, norms)))
    return np.maximum(distances, 0.0)


def _measured(block: DenseBlock, distances: Array, norms: Array, basis: Array) -> Array:
    """Squared distances from a span, measured anew where little but rounding error is left."""
    distances = np.maximum(distances, 0.0)
    close = np.flatnonzero(distances <= block.cancels[block.dtype.name] * norms)
    if len(close):
        rows = block.select(close)
        measured = rows.square_distances(rows.project(basis), norms[close], basis)
        distances[close] = np.maximum(measured, 0.0)
    return distances


def _placed(block: DenseBlock, basis: Array) -> tuple[Array, Array, Array]:
    """Coordinates in a basis, squared norms, and squared distances from the span."""
    codes, norms = block.coordinates(basis)
    return codes, norms, np.maximum(block.square_distances(codes, norms, basis), 0.0)


def _placed_further(
    block: DenseBlock, norms: Array, outside: Array, basis: Array, added: Array
) -> tuple[Array, Array]:
    """Coordinates in columns that were added to a basis, and what is left outside of all."""
    codes = block.project(added)
    return codes, _measured(block, outside - square_norms(codes), norms, basis)


def _placed_anew(
    block: DenseBlock, norms: Array, basis: Array, center: Array
) -> tuple[Array, Array, Array]:
    """What `_placed` gives about another centre; norms follow from those about the present one."""
    moved, step = type(block)(block.block, center, block.dtype), center - block.center
    codes, square = block.project(np.column_stack([basis, step])), float(step @ step)
    found = norms - 2.0 * codes[:, -1] + square
    lost = np.flatnonzero(found < block.cancels[block.dtype.name] * (norms + square))
    if len(lost):
        found[lost] = moved.select(lost).square_norms()
    codes = codes[:, :-1]
    codes -= (step @ basis).astype(codes.dtype)
    return codes, found, np.maximum(moved.square_distances(codes, found, basis), 0.0)


def _divided(block: NearBlock, axes: Array, others: Array) -> tuple[Array, Array]:
    """Coordinates along some axes, and the sum of squares along all others."""
    return block.project(axes), square_norms(block.project(others))
