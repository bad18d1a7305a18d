"""The row engine: maps and sums over blocks of rows, wherever these are stored.

Block bounds follow from the shape of the data alone, `map` returns results in block order and
`sum` adds in a fixed tree, so a fit that reads its data through them gives the same result
whether the blocks lie in memory, in a file or on the workers of a cluster, and however many of
them are worked on at a time.

Not every method can do with blocks. One that calls `Rows.whole` holds all of its data in memory,
and so does one that maps every block to itself; ``robustpca methods`` says which ones do.
"""

import copy
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

from robustpca.engine.blocks import Block, DenseBlock, NearBlock, SparseBlock, even_slices
from robustpca.engine.linalg import Array, square_norms
from robustpca.engine.scratch import empty_scratch, let_go
from robustpca.engine.threads import in_order, one_blas_thread

BLOCK_BYTES = 1 << 24
# Relative error that subtracting the centre after a product, and not before, may cause.
NEAR = 1e-6

Bounds = tuple[int, int]
T = TypeVar("T")
Task = str | Callable[..., Any]
# Makes one result of those of so many blocks; and one of such results.
Reduction = Callable[[Iterable[Any], int], Any]


def fold(parts: Iterable[T], add: Callable[[T, T], T], n_parts: int) -> T:
    """Add so many parts in a binary tree whose shape depends on their number alone.

    Each sum is that of a first half, which is longer by one if need be, and of a second half. The
    parts that `halved` gives are trees within that tree: each may be folded for itself, and then
    the results, without another order of summation.
    """
    following = iter(parts)

    def branch(length: int) -> T:
        if length == 1:
            return next(following)
        left = branch((length + 1) // 2)
        return add(left, branch(length // 2))

    return branch(n_parts)


def halved(length: int, n_parts: int) -> list[slice]:
    """Cut a length into so many branches of the tree of `fold`.

    Their number is a power of two, at most the length, or the length itself.
    """
    edges = [0, length]
    while len(edges) <= n_parts:
        middles = ((start + stop + 1) // 2 for start, stop in pairwise(edges))
        edges = sorted({*edges, *middles})
    return [slice(*place) for place in pairwise(edges)]


def _add_in_place(left: Any, right: Any) -> Any:
    """Add to ``left``, which is not used elsewhere, without a third array."""
    if isinstance(left, tuple):
        return tuple(_add_in_place(a, b) for a, b in zip(left, right, strict=True))
    left += right
    return left


def total(parts: Iterable[Any], n_parts: int) -> Any:
    """Sum of results of blocks, arrays that are not used elsewhere."""
    return fold(parts, _add_in_place, n_parts)


def join(parts: Iterable[Any], n_parts: int) -> Any:
    """Results of blocks one behind the other."""
    parts = list(parts)
    if isinstance(parts[0], tuple):
        return tuple(join(pieces, n_parts) for pieces in zip(*parts, strict=True))
    # One that owns its entries is not part of the data, and need not be copied. Nor is one that was
    # turned: rows and what goes along with them are in C order.
    alone = len(parts) == 1 and (parts[0].flags.owndata or parts[0].flags.fnc)
    return parts[0] if alone else np.concatenate(parts)


def kept(result: Any, rows: Any) -> Any:
    """A result that remains when others are read in the place of its rows."""
    if isinstance(result, tuple):
        return tuple(kept(part, rows) for part in result)
    return result.copy() if np.may_share_memory(result, rows) else result


def c_ordered(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Lay arrays out in C order, as a trip to another process would: BLAS sums by layout."""
    return tuple(np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in arguments)


def apply(function: Task, block: Block, pieces: tuple[Array, ...], state: tuple[Any, ...]) -> Any:
    """Result of one block."""
    if isinstance(function, str):
        return getattr(block, function)(*pieces, *state)
    return function(block, *pieces, *state)


class Rows:
    """A matrix of shape (n_samples, n_features) that is read in blocks of centred rows.

    A subclass says how to ``read`` rows; everything else is common. The ``function`` of `map`
    and `sum` receives a `Block`, the matching rows of each array in ``along`` and the
    ``state``, which should be small: it is sent to the workers of a cluster. A string names a
    method of the block.
    """

    # What blocks are by default: of a kind that is centred before it is multiplied, if any is.
    block_kind: type[Block] = DenseBlock
    is_dense = True
    # Whether it is known how many rows there are.
    is_counted = True

    def __init__(self, shape: tuple[int, ...], dtype: Any, row_bytes: int | None = None) -> None:
        self.shape = (int(shape[0]), int(shape[1]))
        # float32 stays float32; everything else is worked on in double precision.
        self.dtype = np.dtype(np.float32 if dtype == np.float32 else np.float64)
        self.stored = np.dtype(dtype)
        self.row_bytes = row_bytes or self.shape[1] * self.dtype.itemsize
        self.center = np.zeros(self.shape[1])
        # The middle of some rows, and how far these are from it: the same for any centre.
        self._middles: dict[int, tuple[Array, float]] = {}

    def read(self, start: int, stop: int) -> Any:
        """Rows ``start`` to ``stop`` as an array that nothing else writes to."""
        raise NotImplementedError

    def reader(self) -> Callable[[int, int], Any]:
        """What a pass reads with: in each thread, rows may be written over by the next ones.

        New memory for every block would cost more than reading it, where it is given back to the
        system at once, as by the workers of Dask.
        """
        return self.read

    def read_places(self, places: list[Bounds]) -> list[Any]:
        """What `read` gives for several places with few rows, which a cluster reads at once."""
        return [self.read(*place) for place in places]

    @property
    def bounds(self) -> list[Bounds]:
        """First row of each block, and the one after its last."""
        n_blocks = -(-self.shape[0] * self.row_bytes // BLOCK_BYTES)
        if n_blocks <= 1:
            return [(0, self.shape[0])]
        places = even_slices(self.shape[0], n_blocks)
        return [(place.start, place.stop) for place in places]

    def block(self, start: int, stop: int) -> Any:
        """Rows ``start`` to ``stop`` as a block."""
        return self.block_kind(self.read(start, stop), self.center, self.dtype)

    def blocks(self, places: list[Bounds]) -> Iterator[Any]:
        """Several places with few rows, each as a block."""
        for rows in self.read_places(places):
            yield self.block_kind(rows, self.center, self.dtype)

    def row(self, index: int) -> Array:
        """One centred row, in double precision."""
        taken: Array = self.block(index, index + 1).take(slice(None))
        return taken[0]

    def centred(self, center: Array) -> Self:
        """The same rows with another centre."""
        other = copy.copy(self)
        # Blocks subtract the centre in their own precision, so it is rounded before anyone
        # reads it: what is subtracted is what `center` says.
        other.center = np.asarray(center).astype(self.dtype).astype(np.float64)
        return other

    def coarser(self, n_rows: int) -> Self:
        """The same rows in blocks of ``n_rows`` or more, if larger blocks cost no memory."""
        return self

    def finer(self, row_bytes: int) -> Self:
        """The same rows in blocks for results of ``row_bytes`` bytes a row, if these are larger."""
        other = copy.copy(self)
        other.row_bytes = max(self.row_bytes, row_bytes)
        return other

    def counted(self) -> "Rows":
        """The same rows, of which it is known how many there are."""
        return self

    def header(self) -> Any:
        """No rows, with as many columns, and with their names if they have any."""
        return np.empty((0, self.shape[1]))

    def whole(self) -> Array:
        """All rows as one array, for methods that cannot do with blocks."""
        blocks = [self.read(*place) for place in self.bounds]
        return np.ascontiguousarray(np.concatenate(blocks), self.dtype)

    def paged(self) -> Array:
        """All rows as one array, which is in a scratch file if they are not in memory."""
        X = empty_scratch(self.shape, self.dtype)
        for place in self.bounds:
            X[slice(*place)] = self.read(*place)
            let_go(X)
        return X

    def precise(self) -> Self:
        """The same rows in double precision, centred before they are multiplied if dense."""
        other = copy.copy(self)
        other.dtype, other.block_kind = np.dtype(np.float64), type(self).block_kind
        return other

    @property
    def floor(self) -> float:
        """Share of a row's norm below which its distance to a subspace is rounding error."""
        return self.block_kind.floors[self.dtype.name]

    @property
    def cancels(self) -> float:
        """Share of a row's squared norm below which a squared distance is measured anew."""
        return self.block_kind.cancels[self.dtype.name]

    def cosine_errors(self, inverse_lengths: Array) -> Array:
        """Bound on the rounding error of a cosine with each row, in any order of summation."""
        unit = 2.0 ** (-24 if self.dtype == np.float32 else -53)
        center = 2 * float(np.linalg.norm(self.center)) * inverse_lengths
        return unit * self.block_kind.rounding(self.shape[1], center)

    @property
    def operand_center(self) -> Array:
        """What has not been subtracted from the `Block.operand` of these rows."""
        return self.center * self.block_kind.raw_operand

    def adjoint(self, A: Array) -> Array:
        """Sum over all rows of each row times the same row of ``A``."""
        return self.block_kind.total_adjoint(self, A)

    def median_centred(self, n_read: int = 33, near: type[NearBlock] = NearBlock) -> Self:
        """The same rows, centred at a point among them, so that sums lose few digits.

        The point is the median of some rows of the beginning, the middle and the end, at most
        ``n_read`` of each: exact where a column is constant, and not moved far by
        outliers. Blocks are of the kind ``near`` if that costs no digits that matter.
        """
        if n_read not in self._middles:
            sample = np.concatenate(self._sample(n_read)).astype(np.float64)
            middle = np.median(sample, axis=0)
            self._middles[n_read] = middle, float(np.median(square_norms(sample - middle)))
        middle, spread = self._middles[n_read]
        other = self.centred(middle)
        rounding = 2.0 ** (-23 if self.dtype == np.float32 else -52)
        rounding *= float(np.linalg.norm(other.center))
        if self.stored == self.dtype and rounding <= NEAR * np.sqrt(spread):
            other.block_kind = near
        return other

    def constant_columns(self) -> Array:
        """Mask of the columns that hold one and the same value in all rows."""
        parts = self._sample(33)
        first = parts[0][0]
        candidates = np.flatnonzero(np.all([(part == first).all(axis=0) for part in parts], axis=0))
        constant = np.zeros(self.shape[1], dtype=bool)
        if len(candidates):
            constant[candidates] = self.sum(_differ, candidates, first[candidates]) == 0
        return constant

    def sampled(self, n_read: int = 33) -> Array:
        """Some rows of the beginning, the middle and the end; of sparse rows what is stored."""
        parts = self._sample(n_read)
        return np.concatenate(parts if self.is_dense else [part.data for part in parts])

    def _sample(self, n_read: int) -> list[Array]:
        """Some rows of the beginning, the middle and the end."""
        n = self.shape[0]
        starts = sorted({0, max(0, n // 2 - n_read // 2), max(0, n - n_read)})
        return self.read_places([(at, min(at + n_read, n)) for at in starts])

    def map(
        self, function: Task, *state: Any, along: tuple[Array, ...] = (), first: int = 0
    ) -> Any:
        """Apply ``function`` to every block from ``first`` on; join the results in row order."""
        return self._reduced(join, function, state, along, first)

    def sum(self, function: Task, *state: Any, along: tuple[Array, ...] = ()) -> Any:
        """Apply ``function`` to every block and add up what it returns, arrays of its own."""
        return self._reduced(total, function, state, along)

    def rowwise(self, function: Task, *state: Any) -> Any:
        """What `map` gives; of a Dask array, Dask arrays of which nothing is computed yet."""
        return self.map(function, *state)

    def stream(self, function: Task, *state: Any) -> Iterator[Any]:
        """Apply ``function`` to every block; yield the results in row order, few at a time."""
        with closing(self._each(function, c_ordered(state), (), self.bounds)) as parts:
            yield from parts

    def _reduced(
        self,
        reduce: Reduction,
        function: Task,
        state: tuple[Any, ...],
        along: tuple[Array, ...],
        first: int = 0,
    ) -> Any:
        # Closed at once where an interrupt ends the work: what it holds must not wait for it.
        bounds = self.bounds[first:]
        with closing(self._each(function, c_ordered(state), c_ordered(along), bounds)) as parts:
            return reduce(parts, len(bounds))

    def _each(
        self,
        function: Task,
        state: tuple[Any, ...],
        along: tuple[Array, ...],
        bounds: list[Bounds],
    ) -> Generator[Any, None, None]:
        def work(place: Bounds) -> Any:
            pieces, rows = tuple(a[slice(*place)] for a in along), read(*place)
            block = self.block_kind(rows, self.center, self.dtype)
            return kept(apply(function, block, pieces, state), rows)

        read = self.reader()
        # As many workers as BLAS may have threads, each with a BLAS of one thread: a limit on
        # BLAS limits this too, and one block is always worked on by one thread.
        with one_blas_thread():
            workers = min(one_blas_thread.allowed, len(bounds))
            if workers == 1:
                yield from map(work, bounds)
            else:
                yield from in_order(work, bounds, workers)


def _differ(block: DenseBlock, columns: Array, values: Array) -> Array:
    return np.count_nonzero(block.block[:, columns] != values, axis=0)


class ArrayRows(Rows):
    """Rows of an array in memory."""

    def __init__(self, X: Array, block_kind: type[Block] = DenseBlock) -> None:
        super().__init__(X.shape, X.dtype)
        self.X, self.block_kind = X, block_kind

    def read(self, start: int, stop: int) -> Array:
        let_go(self.X)
        return self.X[start:stop]

    def coarser(self, n_rows: int) -> Self:
        other = copy.copy(self)
        other.row_bytes = max(1, min(self.row_bytes, BLOCK_BYTES // n_rows))
        return other

    def whole(self) -> Array:
        return self.paged()

    def paged(self) -> Array:
        return np.ascontiguousarray(self.X, self.dtype)


# Numbers of eight bytes, and their columns of four, take more memory than a dense array beyond.
MOSTLY_STORED = 2 / 3


class SparseRows(Rows):
    """Rows of a SciPy CSR matrix."""

    block_kind = SparseBlock
    is_dense = False

    def __init__(self, X: Any) -> None:
        X = sparse.csr_matrix(X)
        super().__init__(X.shape, X.dtype, row_bytes=12 * max(1, X.nnz // X.shape[0]))
        self.X = X

    def read(self, start: int, stop: int) -> Any:
        return self.X[start:stop]

    def median_centred(self, n_read: int = 33, near: type[NearBlock] = NearBlock) -> Self:
        return self

    def constant_columns(self) -> Array:
        # A column is constant if it holds nothing, or its largest and least entries agree.
        largest, least = self.X.max(axis=0).toarray(), self.X.min(axis=0).toarray()
        return np.asarray(largest == least).ravel()


def rows_in_memory(X: Any) -> Rows:
    """Rows of an array or of a sparse matrix.

    A sparse matrix that takes more memory than a dense array becomes one: it can be centred without
    a loss of digits, and is faster.
    """
    if not sparse.issparse(X):
        return ArrayRows(X)
    return SparseRows(X) if X.nnz <= MOSTLY_STORED * np.prod(X.shape) else ArrayRows(X.toarray())
