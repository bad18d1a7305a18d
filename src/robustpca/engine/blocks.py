"""Blocks of centred rows, dense or sparse, and how rows are cut into tiles.

A block answers for the way in which its rows are stored: products, norms and distances, and how
well rounding leaves them known. No other module asks what kind of block it is.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array, square_norms

if TYPE_CHECKING:
    from robustpca.engine.rows import Rows

# A tile this large is centred and multiplied while it is still in the cache.
TILE_BYTES = 1 << 21
# Products with few vectors are fast on so few rows already, if these fit the cache.
PART_ROWS = 16
# Products of this many features at a time are left to the BLAS kernels for small matrices.
FEATURES = 1024
# Largest term of a sum over blocks.
TERM_BYTES = 1 << 21


def slices(stop: int, size: int, start: int = 0) -> list[slice]:
    """Cut ``start`` to ``stop`` into slices of ``size``; the last one may be shorter."""
    return [slice(at, min(at + size, stop)) for at in range(start, stop, size)]


def even_slices(length: int, n_slices: int) -> list[slice]:
    """Cut ``length`` into that many slices, or fewer, whose sizes differ by one at most."""
    if n_slices == 1 <= length:
        return [slice(0, length)]
    edges = np.linspace(0, length, min(n_slices, length) + 1).round().astype(int).tolist()
    return [slice(*edges) for edges in pairwise(edges)]


def cached_rows(row_bytes: int, at_least: int = 128) -> int:
    """Number of rows of ``row_bytes`` bytes in a tile that fits the cache."""
    return max(at_least, TILE_BYTES // max(row_bytes, 1))


class Block:
    """Rows ``block - center`` that are worked on in one precision.

    Attributes
    ----------
    floors : dict
        Share of a row's norm below which its distance to a subspace is rounding error.
    cancels : dict
        Share of a row's squared norm below which a squared distance is measured anew.
    center_power : int
        Power of the length of the centre that enters rounding errors: 0 if rows are centred
        before they are multiplied.
    raw_operand : bool
        Whether `operand` gives rows without the centre subtracted.
    """

    floors: ClassVar[dict[str, float]]
    cancels: ClassVar[dict[str, float]] = {"float64": 0.0, "float32": 0.0}
    center_power: ClassVar[int] = 2
    raw_operand: ClassVar[bool] = False

    def __init__(self, block: Any, center: Array, dtype: np.dtype[Any]) -> None:
        self.block, self.center, self.dtype = block, center, dtype

    def __len__(self) -> int:
        return int(self.block.shape[0])

    def select(self, chosen: Array) -> Self:
        """The block of the chosen rows."""
        return type(self)(self.block[chosen], self.center, self.dtype)

    def dense(self, columns: slice = slice(None)) -> Array:
        """The centred rows, or some columns of them, as one array."""
        raise NotImplementedError

    def operand(self) -> Array:
        """The rows as another block is to be multiplied with them."""
        return self.dense()

    @classmethod
    def rounding(cls, n_features: int, center: Array) -> Array:
        """Bound on the rounding error of a product of each row with a unit vector.

        It is a multiple of the unit of rounding and the length of the row, for any order of
        summation. ``center`` is twice the length of the centre over that of each row: where the
        centre is subtracted after a product, the error grows with its length.
        """
        return (n_features + 8) * (1 + center) ** cls.center_power

    @classmethod
    def total_adjoint(cls, rows: "Rows", A: Array) -> Array:
        """Sum over all rows of each row times the same row of ``A``."""
        total: Array = rows.sum("adjoint", along=(A,))
        return total


class DenseBlock(Block):
    """Rows of a dense array, centred one cache-sized tile at a time."""

    floors: ClassVar = {"float64": 1e-10, "float32": 1e-6}
    cancels: ClassVar = {"float64": 1e-6, "float32": 1e-3}
    center_power = 0

    def __init__(self, block: Array, center: Array, dtype: np.dtype[Any]) -> None:
        super().__init__(block, center.astype(dtype), dtype)

    def tiles(self, at_least: int = 128) -> Iterator[tuple[slice, Array]]:
        """Yield each tile with its place; the array is reused by the next one."""
        width = self.block.shape[1]
        scratch: Array | None = None
        size = cached_rows(width * self.dtype.itemsize, at_least)
        for place in slices(len(self), size):
            rows = self.block[place]
            if scratch is None:
                scratch = np.empty_like(rows, self.dtype)
            tile = scratch[: len(rows)]
            yield place, np.subtract(rows, self.center, out=tile, casting="unsafe")

    def parts(self) -> Iterator["NearBlock"]:
        """Yield blocks that fit the cache, for work that goes over the same rows twice."""
        origin = np.zeros(self.block.shape[1])
        for _, tile in self.tiles(at_least=PART_ROWS):
            yield NearBlock(tile, origin, self.dtype)

    def dense(self, columns: slice = slice(None)) -> Array:
        chosen, center = self.block[:, columns], self.center[columns]
        return np.subtract(chosen, center, dtype=self.dtype, casting="unsafe")

    def take(self, chosen: Array) -> Array:
        """The chosen rows, in double precision."""
        return self.block[chosen].astype(np.float64) - self.center

    def copy_to(self, out: Array) -> Array:
        """Write the centred rows to an array, and give their squared norms.

        Numbers that the array cannot hold are not finite there.
        """
        norms = np.empty(len(self))
        with np.errstate(over="ignore"):
            for place, tile in self.tiles():
                out[place] = tile
                norms[place] = square_norms(tile)
        return norms

    def project(self, basis: Array) -> Array:
        """Coordinates of the rows along the columns of ``basis``."""
        return self.coordinates(basis)[0]

    def coordinates(self, basis: Array) -> tuple[Array, Array]:
        """Coordinates of the rows along the columns of ``basis``, and their squared norms."""
        # BLAS is a good deal faster on these shapes when it works on the transposes.
        turned = basis.T.astype(self.dtype, copy=False)
        codes = np.empty((len(turned), len(self)), self.dtype)
        norms = np.empty(len(self))
        for place, tile in self.tiles():
            codes[:, place] = turned @ tile.T
            norms[place] = square_norms(tile)
        return codes.T, norms

    def adjoint(self, A: Array) -> Array:
        """Sum over the rows of each row times the same row of ``A``."""
        turned = A.T.astype(self.dtype, copy=False)
        out = np.zeros((len(turned), self.block.shape[1]))
        for place, tile in self.tiles():
            out += turned[:, place] @ tile
        return out.T

    def rough_adjoint(self, A: Array) -> Array:
        """What `adjoint` gives, to single precision."""
        return self._rough().adjoint(A)

    def weighted_gram(self, weights: Array | None = None) -> tuple[Array, Array]:
        """Weighted sum of the rows and of their outer products; equal weights by default."""
        roots = np.ones(len(self)) if weights is None else np.sqrt(weights)
        roots = roots.astype(self.dtype)
        total = np.zeros(self.block.shape[1])
        gram = np.zeros((len(total), len(total)))
        # Tiles as tall as four grams are wide: adding up the grams must not cost much.
        for place, tile in self.tiles(at_least=4 * len(total)):
            if weights is not None:
                tile *= roots[place, None]
            total += roots[place] @ tile
            gram += tile.T @ tile
        return total, gram

    def rough_gram(self, weights: Array) -> tuple[Array, Array]:
        """What `weighted_gram` gives, with outer products in single precision.

        That takes little more than half as long. Sums that single precision cannot hold are not
        finite.
        """
        rough, roots = self._rough(), np.sqrt(weights).astype(np.float32)
        total = -weights.sum() * self.center
        gram = np.zeros((len(total), len(total)))
        with np.errstate(over="ignore", invalid="ignore"):
            for place, tile in rough.tiles(at_least=4 * len(total)):
                total += weights[place] @ self.block[place]
                tile *= roots[place, None]
                gram += tile.T @ tile
        return total, gram

    def _rough(self) -> "DenseBlock":
        """The rows as tiles in single precision."""
        rough = DenseBlock(self.block, np.zeros_like(self.center), np.dtype(np.float32))
        # A centre far away must not lose its digits, nor overflow.
        rough.center = self.center
        return rough

    def square_norms(self) -> Array:
        """Squared norm of each row."""
        out = np.empty(len(self))
        for place, tile in self.tiles():
            out[place] = square_norms(tile)
        return out

    def square_distances(self, codes: Array, norms: Array, basis: Array) -> Array:
        """Squared distance of each row to its projection ``codes`` on ``basis``.

        It is ``norms`` minus the squared norm of the codes; where so much cancels that only
        rounding error is left, the difference vector itself is measured.
        """
        distances = norms - square_norms(codes)
        close = np.flatnonzero(distances < self.cancels[self.dtype.name] * norms)
        basis = basis.astype(self.dtype, copy=False)
        size = cached_rows(self.block.shape[1] * self.dtype.itemsize)
        for place in slices(len(close), size):
            chosen = close[place]
            rows = self.block[chosen].astype(self.dtype) - self.center
            distances[chosen] = square_norms(rows - codes[chosen] @ basis.T)
        return distances


class NearBlock(DenseBlock):
    """Dense rows so near to the origin that the centre may be subtracted from products.

    That saves a pass over the block. It costs the digits by which the centre is longer than
    the rows are apart, so `Rows` uses it only where this is harmless.
    """

    center_power = 2

    def parts(self) -> Iterator["NearBlock"]:
        size = cached_rows(self.block.shape[1] * self.dtype.itemsize, PART_ROWS)
        for place in slices(len(self), size):
            yield NearBlock(self.block[place], self.center, self.dtype)

    def project(self, basis: Array) -> Array:
        turned = basis.T.astype(self.dtype, copy=False)
        # Unlike matmul, dot lets other threads work also while results are small.
        codes: Array = np.dot(turned, self.block.T)
        codes -= (turned @ self.center)[:, None]
        return codes.T

    def coordinates(self, basis: Array) -> tuple[Array, Array]:
        return self.project(basis), self.square_norms()

    def adjoint(self, A: Array) -> Array:
        turned = A.T.astype(self.dtype, copy=False)
        sums = turned.sum(axis=1, dtype=np.float64)
        out: Array = np.dot(turned, self.block).astype(np.float64)
        out -= np.outer(sums, self.center)
        return out.T


class WideBlock(NearBlock):
    """Wide rows near the origin, multiplied some features at a time.

    For large matrices BLAS first copies the rows, which costs more than a product with a few
    directions; its kernels for small matrices read them where they are.
    """

    # Others subtract the product with the centre afterwards, which saves a copy of the rows.
    raw_operand = True

    def _features(self, n_columns: int, first: int, last: int) -> list[slice]:
        # The kernels are for products of about a million multiplications; with many columns the
        # copy costs little, and what counts is that sums are short.
        step = min(FEATURES, max(256, 600_000 // (len(self) * n_columns)))
        return slices(last, step if n_columns <= 32 else 4 * FEATURES, first)

    def operand(self) -> Array:
        return np.asarray(self.block)

    def project(self, basis: Array) -> Array:
        basis = np.asarray(basis, self.dtype)
        codes = np.zeros((len(self), basis.shape[1]), self.dtype)
        for part in self._features(basis.shape[1], 0, len(basis)):
            codes += self.block[:, part] @ basis[part]
        codes -= self.center @ basis
        return codes

    def adjoint(self, A: Array) -> Array:
        out = self.uncentred_adjoint(A, 0, self.block.shape[1])
        return out - np.outer(self.center, A.sum(axis=0)).astype(self.dtype)

    def uncentred_adjoint(self, A: Array, first: int, last: int) -> Array:
        """What `adjoint` would be at a centre of zero, for some of the features."""
        turned = np.ascontiguousarray(A.T, self.dtype)
        out = np.empty((len(turned), last - first), self.dtype)
        for part in self._features(len(turned), first, last):
            place = slice(part.start - first, part.stop - first)
            np.matmul(turned, self.block[:, part], out=out[:, place])
        return out.T

    def square_norms(self) -> Array:
        out, step = np.zeros(len(self)), min(4 * FEATURES, self.block.shape[1])
        scratch = np.empty((len(self), step), self.dtype)
        for place in slices(self.block.shape[1], step):
            part = self.block[:, place]
            tile = scratch[:, : part.shape[1]]
            np.subtract(part, self.center[place], out=tile)
            out += np.einsum("ij,ij->i", tile, tile)
        return out

    @classmethod
    def rounding(cls, n_features: int, center: Array) -> Array:
        n_terms = min(n_features, 4 * FEATURES)
        return (n_terms + n_features / 256 + 8) * (1 + center) + n_terms / 2

    @classmethod
    def total_adjoint(cls, rows: "Rows", A: Array) -> Array:
        # A sum has several terms at a time in memory; wide ones are added up part by part.
        n_features, n_columns = rows.shape[1], A.shape[1]
        step = max(FEATURES, TERM_BYTES // (n_columns * rows.dtype.itemsize * FEATURES) * FEATURES)
        out = np.empty((n_columns, n_features), rows.dtype)
        for place in slices(n_features, step):
            bounds = (place.start, place.stop)
            out[:, place] = rows.sum("uncentred_adjoint", *bounds, along=(A,)).T
        # The centre is the same for all rows, so one correction does.
        for column, weight in zip(out, A.sum(axis=0, dtype=np.float64), strict=True):
            column -= (weight * rows.center).astype(out.dtype)
        return out.T


class SparseBlock(Block):
    """Rows of a CSR matrix, never formed: the centre enters by algebra."""

    # A norm is here the root of a difference of squares, good to the root of the precision.
    floors: ClassVar = {"float64": 1e-7, "float32": 1e-3}

    def __init__(self, block: sparse.csr_matrix, center: Array, dtype: np.dtype[Any]) -> None:
        super().__init__(block.astype(dtype, copy=False), center, dtype)

    def parts(self) -> Iterator["SparseBlock"]:
        """The block itself: its rows are few numbers each."""
        yield self

    def dense(self, columns: slice = slice(None)) -> Array:
        chosen = self.block[:, columns].toarray() - self.center[columns]
        return np.asarray(chosen, dtype=self.dtype)

    def take(self, chosen: Array) -> Array:
        """The chosen rows, in double precision and dense."""
        return np.asarray(self.block[chosen].toarray() - self.center)

    def project(self, basis: Array) -> Array:
        """Coordinates of the rows along the columns of ``basis``."""
        codes: Array = self.block @ basis - self.center @ basis
        return codes.astype(self.dtype, copy=False)

    def coordinates(self, basis: Array) -> tuple[Array, Array]:
        """What `project` and `square_norms` give, in one go."""
        return self.project(basis), self.square_norms()

    def adjoint(self, A: Array) -> Array:
        """Sum over the rows of each row times the same row of ``A``."""
        A = A.astype(np.float64, copy=False)
        out: Array = self.block.T @ A - np.outer(self.center, A.sum(axis=0))
        return out

    def weighted_gram(self, weights: Array | None = None) -> tuple[Array, Array]:
        """Weighted sum of the rows and of their outer products; equal weights by default."""
        if weights is None:
            weights = np.ones(len(self))
        plain = self.block.T @ weights
        total = plain - self.center * weights.sum()
        scaled = self.block.multiply(weights[:, None]).tocsr()
        gram = (self.block.T @ scaled).toarray().astype(np.float64)
        gram -= np.outer(plain, self.center) + np.outer(self.center, total)
        return total, gram

    def square_norms(self) -> Array:
        """Squared norm of each row."""
        squares = np.asarray(self.block.multiply(self.block).sum(axis=1, dtype=np.float64))
        norms = squares.ravel() - 2 * (self.block @ self.center) + self.center @ self.center
        return np.maximum(norms, 0.0)

    def square_distances(self, codes: Array, norms: Array, basis: Array) -> Array:
        """Squared distance of each row to its projection ``codes`` on ``basis``."""
        return np.maximum(norms - square_norms(codes), 0.0)
