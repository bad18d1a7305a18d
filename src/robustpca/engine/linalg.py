"""Small linear algebra shared by every loop, and the two kinds of centred row block."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

Array = NDArray[Any]

# A tile this large is centred and multiplied while it is still in the cache.
TILE_BYTES = 1 << 21
# Products with few vectors are fast on so few rows already, if these fit the cache.
PART_ROWS = 16


def tile_slices(n_rows: int, row_bytes: int, at_least: int = 128) -> Iterator[slice]:
    """Cut ``n_rows`` rows of ``row_bytes`` bytes into tiles that fit the cache."""
    step = max(at_least, TILE_BYTES // max(row_bytes, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def square_norms(A: Array) -> Array:
    """Squared Euclidean norm of each row, accumulated in double precision."""
    return np.einsum("ij,ij->i", A, A, dtype=np.float64)


def finite(sums: Array) -> Array:
    """Return ``sums`` if they are finite: any bad entry of the data shows up in them."""
    if not np.isfinite(sums).all():
        raise ValueError("Input X contains NaN, infinity or a value too large to be squared.")
    return sums


def orthonormal(A: Array, against: Array | None = None) -> Array:
    """Orthonormal columns spanning those of ``A``, completed where ``A`` lacks rank.

    With ``against`` (orthonormal columns), the result is also orthogonal to it, and columns
    of ``A`` that already lie in its span are replaced by other directions.
    """
    Q = linalg.qr(A, mode="economic", check_finite=False)[0]
    if against is None or against.shape[1] == 0:
        return Q
    # A column almost inside span(against) is mostly rounding error once projected, so the
    # projection is repeated on unit columns until nothing is left to remove.
    for _ in range(3):
        overlap = against.T @ Q
        if np.abs(overlap).max() < 1e-14:
            return Q
        Q = linalg.qr(Q - against @ overlap, mode="economic", check_finite=False)[0]
    # A column that vanishes altogether is replaced by QR with an axis that may lie in
    # span(against) again; one factorisation of both together leaves no such choice.
    both = linalg.qr(np.hstack([against, Q]), mode="economic", check_finite=False)[0]
    return both[:, against.shape[1] :]


def principal_axes(gram: Array) -> tuple[Array, Array]:
    """Eigenvalues, largest first and never negative, and eigenvectors of a psd matrix.

    Coordinates without any variance stay out of the others' way: they come last, in order, as
    axes of their own, and all other eigenvectors are exactly zero there.
    """
    used = gram.any(axis=0)
    n_used = int(np.count_nonzero(used))
    values, axes = np.zeros(len(gram)), np.zeros(gram.shape)
    axes[~used, n_used:] = np.eye(len(gram) - n_used)
    if n_used:
        inner = gram if n_used == len(gram) else gram[np.ix_(used, used)]
        found, vectors = linalg.eigh(inner, driver="evd", check_finite=False)
        values[:n_used] = np.maximum(found[::-1], 0.0)
        axes[used, :n_used] = vectors[:, ::-1]
    return values, axes


def flip_signs(components: Array) -> Array:
    """Make the entry of largest magnitude of each row positive (the first one of a tie)."""
    # Entries equal but for rounding must not decide the sign by luck.
    magnitude = np.abs(components)
    largest = np.argmax(magnitude >= magnitude.max(axis=1, keepdims=True) * (1 - 1e-9), axis=1)
    signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
    # Adding zero leaves no negative zeros.
    return components * signs[:, None] + 0.0


class DenseBlock:
    """Rows ``block - center`` of a dense array, formed one cache-sized tile at a time."""

    floors: ClassVar = {"float64": 1e-10, "float32": 1e-6}

    def __init__(self, block: Array, center: Array, dtype: np.dtype[Any]) -> None:
        self.block, self.dtype = block, dtype
        self.center = center.astype(dtype)

    def __len__(self) -> int:
        return len(self.block)

    def tiles(self, at_least: int = 128) -> Iterator[tuple[slice, Array]]:
        """Yield each tile with its place; the array is reused by the next one."""
        width = self.block.shape[1]
        scratch: Array | None = None
        for place in tile_slices(len(self), width * self.dtype.itemsize, at_least):
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

    def dense(self) -> Array:
        """All centred rows at once."""
        return np.subtract(self.block, self.center, dtype=self.dtype, casting="unsafe")

    def columns(self, place: slice) -> Array:
        """Some columns of the centred rows."""
        chosen, center = self.block[:, place], self.center[place]
        return np.subtract(chosen, center, dtype=self.dtype, casting="unsafe")

    def take(self, chosen: Array) -> Array:
        """The chosen rows, in double precision."""
        return self.block[chosen].astype(np.float64) - self.center

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
        unsafe = 1e-6 if self.dtype == np.float64 else 1e-3
        close = np.flatnonzero(distances < unsafe * norms)
        basis = basis.astype(self.dtype, copy=False)
        for place in tile_slices(len(close), self.block.shape[1] * self.dtype.itemsize):
            chosen = close[place]
            rows = self.block[chosen].astype(self.dtype) - self.center
            distances[chosen] = square_norms(rows - codes[chosen] @ basis.T)
        return distances


class NearBlock(DenseBlock):
    """Dense rows so near to the origin that the centre may be subtracted from products.

    That saves a pass over the block. It costs the digits by which the centre is longer than
    the rows are apart, so `Rows` uses it only where this is harmless.
    """

    def parts(self) -> Iterator["NearBlock"]:
        row_bytes = self.block.shape[1] * self.dtype.itemsize
        for place in tile_slices(len(self), row_bytes, PART_ROWS):
            yield NearBlock(self.block[place], self.center, self.dtype)

    def project(self, basis: Array) -> Array:
        turned = basis.T.astype(self.dtype, copy=False)
        # Unlike matmul, dot lets other threads work also while results are small.
        codes: Array = np.dot(turned, self.block.T)
        codes -= (turned @ self.center)[:, None]
        return codes.T

    def adjoint(self, A: Array) -> Array:
        turned = A.T.astype(self.dtype, copy=False)
        sums = turned.sum(axis=1, dtype=np.float64)
        out: Array = np.dot(turned, self.block).astype(np.float64)
        out -= np.outer(sums, self.center)
        return out.T


class SparseBlock:
    """Rows ``block - center`` of a CSR matrix, never formed: the centre enters by algebra."""

    # A norm is here the root of a difference of squares, good to the root of the precision.
    floors: ClassVar = {"float64": 1e-7, "float32": 1e-3}

    def __init__(self, block: sparse.csr_matrix, center: Array, dtype: np.dtype[Any]) -> None:
        self.block, self.dtype = block.astype(dtype, copy=False), dtype
        self.center = center

    def __len__(self) -> int:
        return int(self.block.shape[0])

    def parts(self) -> Iterator["SparseBlock"]:
        """The block itself: its rows are few numbers each."""
        yield self

    def columns(self, place: slice) -> Array:
        """Some columns of the centred rows, dense."""
        chosen = self.block[:, place].toarray() - self.center[place]
        return np.asarray(chosen, dtype=self.dtype)

    def take(self, chosen: Array) -> Array:
        """The chosen rows, in double precision and dense."""
        return np.asarray(self.block[chosen].toarray() - self.center)

    def dense(self) -> Array:
        """All centred rows at once."""
        return self.take(np.arange(len(self))).astype(self.dtype, copy=False)

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
