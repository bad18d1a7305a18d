"""The bilinear model: images approximated by ``left @ core @ right.T``, one core per image.

It is a subspace like any other, with the Kronecker product of its two sides as basis, but it
has far fewer parameters and is fitted by two small eigenproblems in turn.
"""

from typing import Any

import numpy as np

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.linalg import Array, finite, flip_signs, principal_axes, square_norms
from robustpca.engine.rows import ArrayRows, Rows


class BilinearModel:
    """Two orthonormal sides and a centre, fitted to weighted images.

    Parameters
    ----------
    rows : Rows
        The images, one per row in C order.
    image_shape : tuple of int
        Height and width.
    n_components : tuple of int
        Columns of the left and of the right side.
    center : ndarray of shape (n_features,), default=None
        A centre to hold fixed; by default it is the weighted mean image.
    n_sweeps : int, default=0
        Sweeps with equal weights to begin with, after the leading axes of each side.
    identity : bool, default=False
        Begin with the first coordinate axes of each side instead. Where the outer rows or
        columns of the images are constant this start is poor.
    """

    # Every fit uses all of the data, and takes one step from the last one.
    exact = True
    momentum = 0.0
    scores = None

    def __init__(
        self,
        rows: Rows,
        image_shape: tuple[int, int],
        n_components: tuple[int, int],
        *,
        center: Array | None = None,
        n_sweeps: int = 0,
        identity: bool = False,
    ) -> None:
        self.shape, self.fixed = image_shape, center is not None
        self.rows = rows.median_centred() if center is None else rows.centred(center)
        n_left, n_right = n_components
        uniform = np.ones(rows.shape[0])
        self.weights = uniform
        # With the whole of the other side, the two sides are found independently.
        whole_left, whole_right = np.eye(image_shape[0]), np.eye(image_shape[1])
        left = self._left_axes(uniform, whole_right)
        right = self._right_axes(uniform, whole_left)
        self.scale = np.sqrt(float(np.trace(self._gram)) / len(uniform))
        self.floor = rows.floor * self.scale
        self.left, self.right = left[:, :n_left], right[:, :n_right]
        if identity:
            self.left, self.right = whole_left[:, :n_left], whole_right[:, :n_right]
        for _ in range(n_sweeps):
            self.fit(uniform)

    @property
    def given(self) -> tuple[Any, ...]:
        """The images."""
        return (self.rows,)

    @property
    def n_components(self) -> int:
        """Dimension of the subspace: the number of entries of a core."""
        return self.left.shape[1] * self.right.shape[1]

    def fit(self, weights: Array) -> None:
        """Weighted mean image, then the best left and the best right side in turn."""
        self.weights = weights
        self.left = self._left_axes(weights, self.right)[:, : self.left.shape[1]]
        self.right = self._right_axes(weights, self.left)[:, : self.right.shape[1]]

    def _left_axes(self, weights: Array, right: Array) -> Array:
        total, gram = self.rows.sum(_left_gram, right, self.shape, along=(weights,))
        if not self.fixed:
            weight = float(weights.sum())
            shift = total / weight
            moved = shift.reshape(self.shape) @ right
            gram -= weight * moved @ moved.T
            self.rows = self.rows.centred(self.rows.center + shift)
        return principal_axes(finite(gram))[1]

    def _right_axes(self, weights: Array, left: Array) -> Array:
        self._gram = finite(self.rows.sum(_right_gram, left, self.shape, along=(weights,)))
        return principal_axes(self._gram)[1]

    def residuals(self) -> Array:
        """Squared distance of every image to its approximation."""
        residuals = self.rows.map(_residuals, self.left, self.right, self.shape)
        return np.where(residuals > self.floor**2, residuals, 0.0)

    def refine(self, weights: Array) -> None:
        """Do nothing: every fit uses all of the data."""

    def expand(self, weights: Array, enough: float) -> bool:
        """Do nothing: every fit uses all of the data."""
        return False

    def coordinates(self) -> tuple[Rows, Array]:
        """The cores as rows, and the squared residuals."""
        cores = self.rows.map(_cores, self.left, self.right, self.shape)
        return ArrayRows(cores), self.residuals()

    def sides(self) -> tuple[Array, Array]:
        """Left and right side with their signs fixed."""
        return flip_signs(self.left.T).T, flip_signs(self.right.T).T

    def subspace(self) -> tuple[Array, Array]:
        """Centre, and the Kronecker products of the columns of the sides as rows."""
        left, right = self.sides()
        return self.rows.center, np.kron(left, right).T

    def seen(self) -> tuple[Rows, Array, Array, None]:
        """The rows, centre and components; nothing is outside of the rows."""
        return self.rows, *self.subspace(), None

    def variances(self) -> tuple[Array, float]:
        """Weighted mean square of each entry of the cores, and of the whole images."""
        left, right = self.sides()
        squares, total = self.rows.sum(_moments, left, right, self.shape, along=(self.weights,))
        weight = float(self.weights.sum())
        return squares / weight, float(total[0]) / weight


def _left_gram(
    block: DenseBlock, weights: Array, right: Array, shape: tuple[int, int]
) -> tuple[Array, Array]:
    right = right.astype(block.dtype)
    total, gram = np.zeros(shape[0] * shape[1]), np.zeros((shape[0], shape[0]))
    for place, tile in block.tiles():
        roots = np.sqrt(weights[place]).astype(block.dtype)
        tile *= roots[:, None]
        total += roots @ tile
        halves = tile.reshape(-1, *shape) @ right
        gram += np.tensordot(halves, halves, axes=([0, 2], [0, 2]))
    return total, gram


def _right_gram(block: DenseBlock, weights: Array, left: Array, shape: tuple[int, int]) -> Array:
    turned = left.T.astype(block.dtype)
    gram = np.zeros((shape[1], shape[1]))
    for place, tile in block.tiles():
        tile *= np.sqrt(weights[place, None]).astype(block.dtype)
        halves = turned @ tile.reshape(-1, *shape)
        flat = halves.reshape(-1, shape[1])
        gram += flat.T @ flat
    return gram


def _cores_of(images: Array, left: Array, right: Array) -> Array:
    return left.T @ images @ right


def _cores(block: DenseBlock, left: Array, right: Array, shape: tuple[int, int]) -> Array:
    left, right = left.astype(block.dtype), right.astype(block.dtype)
    cores = np.empty((len(block), left.shape[1] * right.shape[1]), block.dtype)
    for place, tile in block.tiles():
        cores[place] = _cores_of(tile.reshape(-1, *shape), left, right).reshape(len(tile), -1)
    return cores


def _residuals(block: DenseBlock, left: Array, right: Array, shape: tuple[int, int]) -> Array:
    left, right = left.astype(block.dtype), right.astype(block.dtype)
    out = np.empty(len(block))
    unsafe = 1e-6 if block.dtype == np.float64 else 1e-3
    for place, tile in block.tiles():
        images = tile.reshape(-1, *shape)
        cores = _cores_of(images, left, right)
        norms = square_norms(tile)
        squares = norms - square_norms(cores.reshape(len(tile), -1))
        # Where almost everything cancels, the difference itself is measured.
        close = np.flatnonzero(squares <= unsafe * norms)
        if len(close):
            rest = images[close] - left @ cores[close] @ right.T
            squares[close] = square_norms(rest.reshape(len(close), -1))
        out[place] = squares
    return out


def _moments(
    block: DenseBlock, weights: Array, left: Array, right: Array, shape: tuple[int, int]
) -> tuple[Array, Array]:
    cores = _cores(block, left, right, shape)
    return weights @ np.square(cores, dtype=np.float64), np.array([weights @ block.square_norms()])
