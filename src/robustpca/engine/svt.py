"""Singular value thresholding inside a loop: never a full decomposition of the data.

A loop asks for the part of its matrix above a threshold at every iteration, and the matrix
changes little between two calls. A block of trial directions is therefore carried from call to
call and given one step of subspace iteration in each; its products with the matrix are formed
tile by tile, in the pass in which the loop changes the matrix. When the part above the threshold
is not small, the Gram matrix of the short side is decomposed instead. A loop that does not correct
itself asks for a ``careful`` threshold, which does so too where the spectrum has no gap, and takes
singular values where squares would lose them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from robustpca.engine.blocks import even_slices, slices
from robustpca.engine.linalg import Array
from robustpca.engine.scratch import (
    cast,
    contiguous,
    each,
    empty_beside,
    of_rows,
    summed,
    summed_parts,
)
from robustpca.engine.threads import ThreadPool

# Rows of a tile: high enough for BLAS, low enough for the second-level cache. More if the tile has
# fewer than so many entries.
TILE_ROWS, TILE_ENTRIES = 128, 32_768
# Rows of a product that is one call of BLAS, where it need not find them in the cache again.
PRODUCT_ROWS = 4096
# Rows are dealt to this many lanes, whatever the number of threads: sums come out the same.
N_LANES = 4
# Share of the short side above which its Gram matrix is the cheaper way, and below which the
# block of directions is used again.
TO_GRAM, TO_BLOCK = 0.3, 0.2
# Directions beyond the rank: a few, and a tenth of the rank.
SPARE = 8
# A short side of so few rows or columns is decomposed whole.
SMALL = 40
# Careful thresholds. There is a gap if the first singular value below the threshold is at most this
# share of the last one above it; directions may be wrong in so many calls without one, as in the
# first; and squares of singular values below this share of the largest are not accurate.
GAP, FEW_CALLS, SQUARES_UNTIL = 0.5, 3, 1e-6


@dataclass(frozen=True)
class LowRank:
    """A matrix as the product of two thin ones.

    ``left`` has orthogonal columns, longest first, ``right`` orthonormal rows; ``values`` are
    the singular values.
    """

    left: Array
    right: Array
    values: Array

    @classmethod
    def zeros(cls, shape: tuple[int, int], dtype: Any) -> "LowRank":
        """The zero matrix."""
        return cls(np.zeros((shape[0], 0), dtype), np.zeros((0, shape[1]), dtype), np.zeros(0))

    @property
    def rank(self) -> int:
        """Number of singular values that are not zero."""
        return len(self.values)

    def astype(self, dtype: Any) -> "LowRank":
        """The same factors in another precision."""
        return LowRank(cast(self.left, dtype), cast(self.right, dtype), self.values)

    def chosen(self, directions: Array) -> "LowRank":
        """The part along some of the directions, given by flags."""
        count = int(np.count_nonzero(directions))
        left = of_rows(lambda rows: rows[:, directions], self.left, n_columns=count)
        return LowRank(left, self.right[directions], self.values[directions])

    def dense(self, place: slice | Array = slice(None), out: Array | None = None) -> Array:
        """The rows at ``place`` as an ordinary array."""
        product: Array = np.matmul(self.left[place], self.right, out=out)
        return product

    def distance(self, other: "LowRank") -> float:
        """Frobenius norm of the difference, from the factors alone."""
        # Within the row space of this matrix, and at right angles to it: in both, differences
        # are formed before anything is squared, so a small one loses no digits.
        mine, others = self.right.astype(np.float64), other.right.astype(np.float64)
        turn = others @ mine.T
        outside, inside = others - turn @ mine, 0.0
        gram = np.zeros((other.rank, other.rank))
        for place in each(slices(len(self.left), PRODUCT_ROWS), self.left, other.left):
            left = other.left[place].astype(np.float64)
            gram += left.T @ left
            inside += float(np.sum((self.left[place] - left @ turn) ** 2))
        squares = gram * (outside @ outside.T)
        return float(np.sqrt(inside + max(float(squares.sum()), 0.0)))


def tile_rows(n_features: int) -> int:
    """Largest number of rows of a tile."""
    return max(TILE_ROWS, TILE_ENTRIES // max(n_features, 1))


def lanes(shape: tuple[int, ...]) -> list[list[slice]]:
    """The tiles of each lane of a matrix of this shape."""
    n_rows, size = shape[0], tile_rows(shape[1])
    return [slices(lane.stop, size, lane.start) for lane in even_slices(n_rows, N_LANES)]


def products(
    A: Array,
    work: Callable[[slice], Array],
    pool: ThreadPool,
    *,
    add: bool = False,
    out: Array | None = None,
) -> Array:
    """Products of the rows of a matrix, a part of each lane at a time.

    They are joined, added up, or written to ``out``, where they need no memory twice.
    """

    def lane_work(lane: slice) -> Array:
        places = slices(lane.stop, PRODUCT_ROWS, lane.start)
        if out is not None:
            for place in each(places, A, out):
                out[place] = work(place)
            return out
        parts = (work(place) for place in each(places, A))
        return np.asarray(sum(parts)) if add else np.concatenate(list(parts))

    found = pool.map(lane_work, even_slices(len(A), N_LANES))
    if out is not None:
        return out
    return np.sum(found, axis=0) if add else np.concatenate(found)


def row_tiles(shape: tuple[int, ...]) -> list[slice]:
    """The tiles of all rows of a matrix of this shape."""
    return [place for lane in lanes(shape) for place in lane]


class SingularThreshold:
    """The part of a slowly changing matrix above a threshold.

    Before each `solve`, the matrix is multiplied by the directions: either as a whole by
    `multiply`, or by `start_pass` and then `multiply_tile` for each of its tiles.
    """

    def __init__(
        self, shape: tuple[int, int], pool: ThreadPool, seed: int = 0, careful: bool = False
    ) -> None:
        self.shape, self.pool, self.careful, self.calls_without_gap = shape, pool, careful, 0
        self.rng = np.random.default_rng(seed)
        self.short = min(shape)
        self.lanes = lanes(shape)
        self.block: Array | None = None
        self.images = np.empty((0, 0))
        if self.short > SMALL:
            self.block = self._completed(np.empty((0, shape[1])), SPARE + 2)

    def start_pass(self, A: Array) -> None:
        """Prepare for the products with all tiles of a matrix, which are put where ``A`` is."""
        if self.block is not None:
            # The products with columns are the faster ones.
            self.columns = np.ascontiguousarray(self.block.T, A.dtype)
            shape = (self.shape[0], len(self.block))
            if self.images.shape != shape or self.images.dtype != A.dtype:
                self.images = empty_beside(A, shape)
            self.sums = np.zeros((len(self.lanes), len(self.block), self.shape[1]), A.dtype)

    def multiply_tile(self, lane: int, place: slice, tile: Array) -> None:
        """Multiply a tile of the matrix, while it is in the cache, by the directions."""
        if self.block is not None:
            image = np.matmul(tile, self.columns, out=self.images[place])
            self.sums[lane] += image.T @ tile

    def multiply(self, A: Array) -> None:
        """Multiply all tiles of a matrix by the directions."""
        self.start_pass(A)

        def work(lane: int) -> None:
            for place in each(self.lanes[lane], A, self.images):
                self.multiply_tile(lane, place, A[place])

        self.pool.map(work, range(len(self.lanes)))

    def solve(self, A: Array, threshold: float) -> LowRank:
        """Lower the singular values of the matrix that was multiplied last by ``threshold``."""
        while self.block is not None:
            values, turn, right = self._ritz(A)
            rank = int(np.count_nonzero(values > threshold))
            # Fewer values than directions: the matrix has no more than that many.
            if len(values) < len(self.block) or rank < len(values) or rank == self.short:
                if self.careful and not self._is_accurate(values, rank, threshold):
                    self.block = None
                    break
                lowered = values[:rank] - threshold
                left = self._turned(turn[:, :rank] * lowered)
                self._set_block(right, rank + max(SPARE, rank // 10))
                return LowRank(left, right[:rank], lowered).astype(A.dtype)
            # All directions are needed, so there may be more: repeat with a larger block.
            size = len(values) + len(values) // 2 + SPARE
            self.block = self._completed(right, size) if size < TO_GRAM * self.short else None
            self.multiply(A)
        return self._by_short_side(A, threshold)

    def _turned(self, turn: Array) -> Array:
        """Combinations of the images."""
        turn = turn.astype(self.images.dtype)
        return of_rows(lambda rows: rows @ turn, self.images, n_columns=turn.shape[1])

    def _is_accurate(self, values: Array, rank: int, threshold: float) -> bool:
        """Whether a step of subspace iteration is enough, given the singular values it found."""
        self.calls_without_gap += 1
        if _has_gap(values, rank, threshold):
            self.calls_without_gap = 0
        resolved = threshold >= SQUARES_UNTIL * values[:1].sum()
        return bool(resolved and self.calls_without_gap <= FEW_CALLS)

    def top(self, A: Array, rank: int, n_steps: int = 5) -> LowRank:
        """The best approximation of that rank, by a few steps of subspace iteration."""
        size = min(rank + max(SPARE, rank // 2), self.short)
        self.block = self._completed(np.empty((0, self.shape[1])), size)
        for _ in range(n_steps):
            self.multiply(A)
            values, turn, right = self._ritz(A)
            self._set_block(right, size)
        # A matrix of a lower rank is completed by directions of length zero.
        lacking = (0, max(rank - len(values), 0))
        left = self._turned(np.pad(turn[:, :rank] * values[:rank], ((0, 0), lacking)))
        values = np.pad(values[:rank], lacking)
        right = self._completed(right[:rank], rank)
        return LowRank(left, right.astype(A.dtype), values)

    def begin(self, directions: Array) -> None:
        """Start from the row space of a matrix that is nearly the part above the threshold."""
        if self.block is not None:
            size = len(directions) + max(SPARE, len(directions) // 10)
            few = size < TO_GRAM * self.short
            self.block = self._completed(directions.astype(np.float64), size) if few else None

    def _set_block(self, right: Array, size: int) -> None:
        """Take the first directions as the next block; those without an image are replaced."""
        self.block = self._completed(right[:size], min(size, self.short))

    def _ritz(self, A: Array) -> tuple[Array, Array, Array]:
        """Singular values of the matrix restricted to the span of the images of the block.

        Returns the values, what the images must be multiplied with to become left singular
        vectors, and the right singular vectors as rows.
        """
        images = self.images
        gram = summed(lambda rows: (rows.T @ rows).astype(np.float64), images)
        # The images differ in length by orders of magnitude; scaled to length one, Cholesky is
        # accurate. One that is only rounding error beside the longest is left out.
        squares, eps = np.diag(gram), np.finfo(images.dtype).eps
        genuine = squares > eps**2 * squares.max()
        scale = np.where(genuine, 1 / np.sqrt(np.where(genuine, squares, 1.0)), 0.0)
        gram = gram * scale[:, None] * scale
        try:
            factor = linalg.cholesky(gram, check_finite=False)
            # A pivot of the size of rounding error means dependence, even if it is positive.
            if np.diag(factor).min() ** 2 <= len(gram) * eps:
                raise linalg.LinAlgError
            root = scale[:, None] * linalg.lapack.dtrtri(factor)[0]
        except linalg.LinAlgError:
            # Dependent images: leave out the directions in which there is only rounding error.
            found, vectors = linalg.eigh(gram, check_finite=False)
            good = found > len(gram) * eps * found[-1]
            root = scale[:, None] * vectors[:, good] / np.sqrt(found[good])
        projected = root.T @ self.sums.sum(axis=0)
        squares, vectors = linalg.eigh(projected @ projected.T, driver="evd", check_finite=False)
        # Squares lose half of the digits; what is below them is no direction of the matrix.
        order = np.flatnonzero(squares > 1e-15 * len(squares) * squares.max(initial=0.0))[::-1]
        values, vectors = np.sqrt(squares[order]), vectors[:, order]
        return values, root @ vectors, (vectors.T @ projected) / values[:, None]

    def _completed(self, known: Array, size: int) -> Array:
        """Orthonormal directions: ``known``, and random ones orthogonal to them up to ``size``."""
        if len(known) >= size:
            return known
        more = self.rng.normal(size=(size - len(known), self.shape[1]))
        more -= (more @ known.T) @ known
        return np.vstack([known, linalg.qr(more.T, mode="economic", check_finite=False)[0].T])

    def _by_short_side(self, A: Array, threshold: float) -> LowRank:
        tall = A.shape[0] >= A.shape[1]
        values, vectors = self._decomposed(A, threshold)
        rank = int(np.count_nonzero(values > threshold))
        near = vectors[:, :rank].astype(A.dtype)
        lowered = values[:rank] - threshold
        if tall:
            shares = (lowered / values[:rank]).astype(A.dtype)
            left = empty_beside(A, (len(A), rank))
            products(A, lambda place: A[place] @ near * shares, self.pool, out=left)
            low_rank = LowRank(left, np.ascontiguousarray(near.T), lowered)
        else:
            scaled = (near / values[:rank].astype(A.dtype)).T
            parts = even_slices(A.shape[1], N_LANES)
            far = np.concatenate(self.pool.map(lambda p: scaled @ A[:, p], parts), axis=1)
            low_rank = LowRank(near * lowered.astype(A.dtype), far, lowered)
        steady = not self.careful or _has_gap(values, rank, threshold)
        if rank < TO_BLOCK * self.short and self.short > SMALL and steady:
            spare = max(SPARE, rank // 10)
            if tall:
                self.block = vectors[:, : rank + spare].T
            else:
                self.block = self._completed(low_rank.right.astype(np.float64), rank + spare)
        return low_rank

    def _decomposed(self, A: Array, threshold: float) -> tuple[Array, Array]:
        """All singular values, largest first, and their vectors (columns) on the short side."""
        if self.careful:
            A = contiguous(A, np.float64)
            square = products(
                A, lambda place: np.asarray(np.vdot(A[place], A[place])), self.pool, add=True
            )
            if threshold < SQUARES_UNTIL * np.sqrt(square):
                # The triangle of the QR factorisation has the singular values of a tall matrix.
                short = _triangle(A).T if A.shape[0] >= A.shape[1] else A
                near, values, _ = linalg.svd(short, full_matrices=False, check_finite=False)
                return values, near
        gram = _short_gram(A, self.pool)
        squares, vectors = linalg.eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
        return np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1]


def _triangle(A: Array) -> Array:
    """Triangular matrix of the QR factorisation, from one part of the rows after the other."""
    found = np.zeros((0, A.shape[1]), A.dtype)
    for place in each(slices(len(A), PRODUCT_ROWS), A):
        parts = np.vstack([found, A[place]])
        found = linalg.qr(parts, mode="r", check_finite=False)[0][: A.shape[1]]
    return found


def tall_qr(A: Array) -> tuple[Array, Array]:
    """QR factors of a tall matrix, from those of its parts: orthonormal columns, where ``A`` is.

    They are completed where ``A`` lacks rank.
    """
    basis, triangles, parts = empty_beside(A), [], summed_parts(A)
    for place in each(parts, A, basis):
        columns, triangle = linalg.qr(A[place], mode="economic", check_finite=False)
        # A part may have fewer rows than columns.
        basis[place, : len(triangle)] = columns
        triangles.append(triangle)
    if len(parts) == 1:
        return basis, triangles[0]
    turn, triangle = linalg.qr(np.vstack(triangles), mode="economic", check_finite=False)
    start = 0
    for place, own in zip(each(parts, basis), triangles, strict=True):
        basis[place] = basis[place, : len(own)] @ turn[start : start + len(own)]
        start += len(own)
    return basis, triangle


def _has_gap(values: Array, rank: int, threshold: float) -> bool:
    """Whether singular values above a threshold are well apart from those below."""
    above = values[rank - 1] if rank > 0 else threshold
    return bool(values[rank : rank + 1].sum() <= GAP * above)


def spectral_norm(A: Array, pool: ThreadPool, n_steps: int = 12, seed: int = 0) -> float:
    """Largest singular value by a few Lanczos steps from a random start; missing entries are 0.

    Each step lowers the error; twelve give three digits or more on all but contrived spectra.
    """
    places, whole = lanes(A.shape), row_tiles(A.shape)
    if not np.isfinite(sum(float(A[place].sum()) for place in each(whole, A))):
        A = of_rows(lambda rows: np.nan_to_num(rows, nan=0.0), A)
    v = np.asarray(np.random.default_rng(seed).normal(size=A.shape[1]))
    basis, longest = np.zeros((0, A.shape[1])), 0.0
    for _ in range(min(n_steps, *A.shape)):
        for _ in range(2):
            v = v - (basis @ v) @ basis
        # By BLAS, which does not square entries that are squares of large ones.
        length = float(linalg.norm(v, check_finite=False))
        longest = max(longest, length) if len(basis) else 0.0
        if length <= 1e-12 * longest:
            break
        basis = np.vstack([basis, v / length])
        v = np.asarray(np.sum(pool.map(_gram_times(A, basis[-1]), places), axis=0, dtype=float))
    triangles = [triangle for triangle, _, _ in _image_factors(A, basis.astype(A.dtype), pool)]
    return float(linalg.svdvals(np.vstack(triangles), check_finite=False)[0])


def restricted_norm(A: Array, directions: Array, pool: ThreadPool) -> float:
    """Largest singular value near a span of directions, by a step of subspace iteration."""
    if len(directions) == 0:
        return 0.0
    triangles, backs = [], []
    for triangle, basis, part in _image_factors(A, directions, pool):
        triangles.append(triangle)
        backs.append(_inner_products(basis, part, pool))
    # The bases of all parts, turned by that of their triangles, are one of all images.
    turn = linalg.qr(np.vstack(triangles), mode="economic", check_finite=False)[0]
    back = turn.T @ np.vstack(backs)
    gram = np.asarray(back @ back.T, dtype=np.float64)
    last = len(gram) - 1
    largest = linalg.eigvalsh(gram, subset_by_index=(last, last), check_finite=False)
    return float(np.sqrt(max(largest[0], 0.0)))


def _image_factors(
    A: Array, directions: Array, pool: ThreadPool
) -> Iterator[tuple[Array, Array, Array]]:
    """QR factors of the products with some directions of parts of a matrix: R, Q, and the part."""
    for place in summed_parts(A):
        part = A[place]
        # In the order of LAPACK, which works in place then.
        images = np.empty((len(part), len(directions)), A.dtype, order="F")
        _multiply_rows(part, directions, images, pool)
        basis, triangle = linalg.qr(images, mode="economic", overwrite_a=True, check_finite=False)
        yield triangle, basis, part


def _multiply_rows(A: Array, directions: Array, images: Array, pool: ThreadPool) -> None:
    products(A, lambda place: A[place] @ directions.T, pool, out=images)


def _inner_products(basis: Array, A: Array, pool: ThreadPool) -> Array:
    return products(A, lambda place: basis[place].T @ A[place], pool, add=True)


def short_side_norm(A: Array, pool: ThreadPool) -> float:
    """Largest singular value, from the Gram matrix of the short side."""
    last = min(A.shape) - 1
    largest = linalg.eigvalsh(
        _short_gram(A, pool), subset_by_index=(last, last), overwrite_a=True, check_finite=False
    )
    return float(np.sqrt(max(largest[0], 0.0)))


def _short_gram(A: Array, pool: ThreadPool) -> Array:
    """Inner products of the rows or columns, whichever are fewer, in double precision."""
    if A.shape[0] >= A.shape[1]:
        found = products(A, lambda place: _gram(A[place].T), pool, add=True)
        return np.asarray(found, dtype=np.float64)
    grams = pool.map(lambda place: _gram(A[:, place]), even_slices(A.shape[1], N_LANES))
    return np.asarray(sum(grams), dtype=np.float64)


def _gram(part: Array) -> Array:
    """Inner products of rows."""
    # OpenBLAS fills its registers with what lies beside a small block and does not use what
    # comes of it, but NumPy reports it (numpy/numpy#24067).
    with np.errstate(invalid="ignore"):
        return np.asarray(part @ part.T)


def _gram_times(A: Array, direction: Array) -> Callable[[list[slice]], Array]:
    direction = direction.astype(A.dtype)

    def work(tiles: list[slice]) -> Array:
        # The second product finds the tile in the cache.
        places = each(tiles, A)
        return np.sum([(A[place] @ direction) @ A[place] for place in places], axis=0, dtype=float)

    return work
