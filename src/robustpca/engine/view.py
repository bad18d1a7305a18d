"""Coordinates of all rows in a small basis that can be expanded.

Many features make every pass over the data expensive. A `View` stores the coordinates of all
rows in a few dozen directions and their squared distance from the span of these, so distances
from any point of the span are exact and cheap. An expansion takes one pass over the data.
"""

import numpy as np

from robustpca.engine.blocks import NearBlock
from robustpca.engine.linalg import Array, finite, square_norms
from robustpca.engine.rows import ArrayRows, Rows


class View:
    """Rows projected on an orthonormal basis, and a point in its span.

    Without a basis the coordinates are the features themselves.

    Parameters
    ----------
    rows : Rows
        The data, centred where the point starts.

    Attributes
    ----------
    basis : ndarray of shape (n_features, n_directions) or None
        Orthonormal columns.
    codes : ndarray of shape (n_samples, n_directions)
        Coordinates of the rows in the basis, from their centre.
    coordinates : Rows
        The same, centred at the point.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = self.coordinates = rows
        self.basis: Array | None = None
        self.codes: Array = np.empty((rows.shape[0], 0))
        self._norms: Array | None = None
        self._outside: Array | None = np.zeros(rows.shape[0])

    @property
    def norms(self) -> Array:
        """Squared norms of the rows."""
        if self._norms is None:
            self._norms = finite(self.rows.map("square_norms"))
        return self._norms

    @property
    def outside(self) -> Array:
        """Squared distance of each row from the span of the basis."""
        if self._outside is None:
            assert self.basis is not None
            self._outside = square_distances(self.rows, self.codes, self.norms, self.basis)
        return self._outside

    @property
    def point(self) -> Array:
        """The point, in the features of the data."""
        if self.basis is None:
            return self.coordinates.center
        return self.rows.center + self.directions(self.coordinates.center)

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
        if self._norms is None:
            # The first pass over the data gives the norms as well.
            self.codes, self._norms = self.rows.map("coordinates", added)
        else:
            self.codes = np.hstack([self.codes, self.rows.map("project", added)])
        center = np.zeros(self.codes.shape[1])
        if self.basis is not None:
            center[: self.basis.shape[1]] = self.coordinates.center
        self.basis = added if self.basis is None else np.hstack([self.basis, added])
        self._set_coordinates(center)

    def restrict(self, axes: Array) -> None:
        """Take orthonormal ``axes``, given in the coordinates, as basis; centre at the point."""
        point, norms = self.point, self.square_lengths()
        codes = self.coordinates.map("project", axes)
        # BLAS sums by layout, which must not change.
        by_columns = self.codes.flags.f_contiguous
        self.codes = np.asfortranarray(codes) if by_columns else np.ascontiguousarray(codes)
        self.rows, self._norms = self.rows.centred(point), norms
        self.basis = self.directions(axes)
        self._set_coordinates(np.zeros(axes.shape[1]))

    def rebase(self, center: Array, basis: Array) -> None:
        """Take another centre, given in the features, and orthonormal columns as basis."""
        before, norms = self.rows, self._norms
        self.rows, self.basis = before.centred(center), basis
        if norms is None:
            self.codes, self._norms = self.rows.map("coordinates", basis)
        else:
            # Norms follow from those about the centre before, and from where the new one is.
            step = self.rows.center - before.center
            codes = before.map("project", np.column_stack([basis, step]))
            square = float(step @ step)
            self._norms = norms - 2.0 * codes[:, -1] + square
            if (self._norms < before.cancels * (norms + square)).any():
                self._norms = finite(self.rows.map("square_norms"))
            self.codes = codes[:, :-1]
            self.codes -= (step @ basis).astype(codes.dtype)
        self._set_coordinates(np.zeros(basis.shape[1]))

    def _set_coordinates(self, center: Array) -> None:
        # Coordinates are near enough to the origin to be multiplied before they are centred.
        self.coordinates = ArrayRows(self.codes, NearBlock).centred(center)
        self._outside = None


def square_distances(rows: Rows, codes: Array, norms: Array, basis: Array) -> Array:
    """Squared distance of each row from the span of ``basis``, given its coordinates there."""
    distances = norms - square_norms(codes)
    # Blocks know when so much cancels that the differences themselves are to be measured.
    if (distances < rows.cancels * norms).any():
        distances = rows.map("square_distances", basis, along=(codes, norms))
    return np.maximum(distances, 0.0)
