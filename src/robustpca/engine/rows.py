"""The row engine: maps and sums over blocks of rows, wherever these are stored.

Block bounds follow from the shape of the data alone, `map` returns results in block order and
`sum` adds in a fixed tree, so a fit that reads its data through them gives the same result
whether the blocks lie in memory, in a file or on the workers of a cluster, and however many of
them are worked on at a time.

Not every method can do with blocks. One that calls `Rows.whole` holds all of its data in memory,
and so does one that maps every block to itself; ``robustpca methods`` says which ones do.
"""

import copy
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

from robustpca.engine.blocks import Block, DenseBlock, NearBlock, SparseBlock, even_slices
from robustpca.engine.linalg import Array, square_norms
from robustpca.engine.scratch import empty_scratch, let_go
from robustpca.engine.threads import in_order, one_blas_thread

BLOCK_BYTES = 1 << 24
# Workers that may die in one pass over the data.
LOST_WORKERS = 8
# Blocks that each thread of a cluster gets at a time from `Rows.stream`.
BLOCKS_PER_THREAD = 2
# Relative error that subtracting the centre after a product, and not before, may cause.
NEAR = 1e-6

Bounds = tuple[int, int]
T = TypeVar("T")
Task = str | Callable[..., Any]


def fold(parts: Iterable[T], add: Callable[[T, T], T]) -> T:
    """Add ``parts`` in a binary tree whose shape depends on their number alone."""
    pending: list[tuple[int, T]] = []
    for part in parts:
        height = 0
        while pending and pending[-1][0] == height:
            part = add(pending.pop()[1], part)
            height += 1
        pending.append((height, part))
    total = pending.pop()[1]
    while pending:
        total = add(pending.pop()[1], total)
    return total


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        return tuple(_add(a, b) for a, b in zip(left, right, strict=True))
    return left + right


def _add_in_place(left: Any, right: Any) -> Any:
    """Add to ``left``, which is not used elsewhere, without a third array."""
    if isinstance(left, tuple):
        return tuple(_add_in_place(a, b) for a, b in zip(left, right, strict=True))
    left += right
    return left


def _join(parts: list[Any]) -> Any:
    if isinstance(parts[0], tuple):
        return tuple(_join(list(pieces)) for pieces in zip(*parts, strict=True))
    # One that owns its entries is not part of the data, and need not be copied.
    alone = len(parts) == 1 and parts[0].flags.owndata
    return parts[0] if alone else np.concatenate(parts)


def _c_ordered(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Lay arrays out in C order, as a trip to another process would: BLAS sums by layout."""
    return tuple(np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in arguments)


def _apply(function: Task, block: Block, pieces: tuple[Array, ...], state: tuple[Any, ...]) -> Any:
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
            sample = np.concatenate(list(self._sample(n_read))).astype(np.float64)
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
        first = self.read(0, 1)[0]
        candidates = np.flatnonzero(
            np.all([(part == first).all(axis=0) for part in self._sample(33)], axis=0)
        )
        constant = np.zeros(self.shape[1], dtype=bool)
        if len(candidates):
            constant[candidates] = self.sum(_differ, candidates, first[candidates]) == 0
        return constant

    def sampled(self, n_read: int = 33) -> Array:
        """Some rows of the beginning, the middle and the end; of sparse rows what is stored."""
        parts = list(self._sample(n_read))
        return np.concatenate(parts if self.is_dense else [part.data for part in parts])

    def _sample(self, n_read: int) -> Iterator[Array]:
        """Some rows of the beginning, the middle and the end."""
        n = self.shape[0]
        for at in sorted({0, max(0, n // 2 - n_read // 2), max(0, n - n_read)}):
            yield self.read(at, min(at + n_read, n))

    def map(
        self, function: Task, *state: Any, along: tuple[Array, ...] = (), first: int = 0
    ) -> Any:
        """Apply ``function`` to every block from ``first`` on; join the results in row order."""
        # Closed at once where an interrupt ends the work: what it holds must not wait for it.
        with closing(
            self._each(function, _c_ordered(state), _c_ordered(along), self.bounds[first:])
        ) as parts:
            return _join(self._gather(list(parts)))

    def sum(self, function: Task, *state: Any, along: tuple[Array, ...] = ()) -> Any:
        """Apply ``function`` to every block and add up what it returns, arrays of its own."""
        with closing(
            self._each(function, _c_ordered(state), _c_ordered(along), self.bounds)
        ) as parts:
            return self._gather([fold(parts, self._add)])[0]

    def rowwise(self, function: Task, *state: Any) -> Any:
        """What `map` gives; of a Dask array, Dask arrays of which nothing is computed yet."""
        return self.map(function, *state)

    def stream(self, function: Task, *state: Any) -> Iterator[Any]:
        """Apply ``function`` to every block; yield the results in row order, few at a time."""
        with closing(self._each(function, _c_ordered(state), (), self.bounds)) as parts:
            while batch := list(islice(parts, self._batch_size())):
                yield from self._gather(batch)

    def _each(
        self,
        function: Task,
        state: tuple[Any, ...],
        along: tuple[Array, ...],
        bounds: list[Bounds],
    ) -> Generator[Any, None, None]:
        def work(place: Bounds) -> Any:
            pieces = tuple(a[slice(*place)] for a in along)
            return _apply(function, self.block(*place), pieces, state)

        # As many workers as BLAS may have threads, each with a BLAS of one thread: a limit on
        # BLAS limits this too, and one block is always worked on by one thread.
        with one_blas_thread():
            workers = min(one_blas_thread.allowed, len(bounds))
            if workers == 1:
                yield from map(work, bounds)
            else:
                yield from in_order(work, bounds, workers)

    _add = staticmethod(_add_in_place)

    def _gather(self, parts: list[Any]) -> list[Any]:
        return parts

    def _batch_size(self) -> int:
        """How many results are gathered at a time while they are streamed."""
        return 1


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


class StoredRows(Rows):
    """Rows on a disk, where reading may fail."""

    place: str

    def read(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop``, and not fewer."""
        try:
            found = self._read(start, stop)
        except MemoryError:
            raise
        except Exception as error:
            raise OSError(
                f"Rows {start} to {stop - 1} of {self.place} cannot be read: {error}"
            ) from error
        if len(found) < stop - start:
            raise OSError(
                f"{self.place} ends before row {stop - 1} of {self.shape[0]}: it was cut off."
            )
        return found

    def _read(self, start: int, stop: int) -> Array:
        raise NotImplementedError


class FileRows(StoredRows):
    """Rows of a `numpy.memmap`, read by path: nothing stays mapped, and only a path is sent."""

    def __init__(self, X: "np.memmap[Any, Any]") -> None:
        super().__init__(X.shape, X.dtype)
        root = X
        while isinstance(root.base, np.memmap):
            root = root.base
        # A view inherits the offset of the array it was cut from, so it is worked out anew.
        self.offset = root.offset + X.ctypes.data - root.ctypes.data
        self.path = self.place = str(X.filename)
        # Of a map that is written to, the time of the last change may come late.
        self.changed = self._changed() if X.mode == "r" else None

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether the bytes of ``X`` are rows that stand in a file as they are."""
        return (
            isinstance(X, np.memmap)
            and X.ndim == 2
            and X.filename is not None
            and X.mode != "c"
            and X.flags.c_contiguous
        )

    def __getstate__(self) -> dict[str, Any]:
        # On another machine the time of the last change may be rounded in another way.
        return {**self.__dict__, "changed": None}

    def _changed(self) -> int:
        return Path(self.path).stat().st_mtime_ns

    def _read(self, start: int, stop: int) -> Array:
        if self.changed not in (None, self._changed()):
            raise RuntimeError("the file was changed meanwhile.")
        width = self.shape[1]
        at = self.offset + start * width * self.stored.itemsize
        count = (stop - start) * width
        found = np.fromfile(self.path, self.stored, count, offset=at)
        return found[: len(found) // width * width].reshape(-1, width)


class HDF5Rows(StoredRows):
    """Rows of an h5py dataset; on another process the file is opened by its path."""

    def __init__(self, X: Any) -> None:
        super().__init__(X.shape, X.dtype)
        self.X, self.path, self.name = X, str(Path(X.file.filename).absolute()), X.name
        self.place = f"{self.path}:{self.name}"

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether ``X`` is an h5py dataset."""
        return type(X).__module__.startswith("h5py.") and hasattr(X, "chunks")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "X": None}

    def _read(self, start: int, stop: int) -> Array:
        if self.X is not None:
            return np.ascontiguousarray(self.X[start:stop])
        import h5py

        with h5py.File(self.path, "r") as file:
            return np.ascontiguousarray(file[self.name][start:stop])


class ZarrRows(StoredRows):
    """Rows of a zarr array, which pickles as the path of its store."""

    def __init__(self, X: Any) -> None:
        super().__init__(X.shape, X.dtype)
        self.X, self.place = X, str(X.store_path)

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether ``X`` is a zarr array."""
        return type(X).__module__.startswith("zarr.") and hasattr(X, "chunks")

    def _read(self, start: int, stop: int) -> Array:
        # The array may be stored column by column, and BLAS sums by layout.
        return np.ascontiguousarray(self.X[start:stop])


class DaskRows(Rows):
    """Rows of a Dask array chunked by rows; the active Dask scheduler does the work."""

    def __init__(self, X: Any) -> None:
        if len(X.chunks[1]) > 1:
            raise ValueError(
                f"The Dask array has {len(X.chunks[1])} chunks along its columns, but rows must "
                "be whole: call X.rechunk({0: 'auto', 1: -1}) first."
            )
        refuse_sparse(X._meta)
        # Filters leave behind how many rows there are, which `rowwise` need not know.
        self.is_counted = not np.isnan(X.shape[0])
        super().__init__((X.shape[0] if self.is_counted else 0, X.shape[1]), X.dtype)
        self.X = X
        # Where the blocks are when they are cut, once for all copies with other centres.
        self._cut: list[Any] = []

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether ``X`` is a Dask array."""
        return type(X).__module__.startswith("dask.") and hasattr(X, "rechunk")

    def counted(self) -> Rows:
        if not self.is_counted:
            raise ValueError(
                f"The Dask array has unknown chunk sizes {self.X.chunks}: call "
                "X.compute_chunk_sizes() first."
            )
        return self

    @property
    def blocks(self) -> Any:
        """The blocks as delayed values."""
        if not self._cut:
            self._cut.append(self._in_blocks().to_delayed().ravel())
        return self._cut[0]

    def finer(self, row_bytes: int) -> Self:
        other = super().finer(row_bytes)
        other._cut = []
        return other

    def _in_blocks(self) -> Any:
        """The array in chunks that are blocks."""
        if not self.is_counted:
            return self.X
        return self.X.rechunk({0: tuple(stop - start for start, stop in self.bounds)})

    def read(self, start: int, stop: int) -> Array:
        return np.ascontiguousarray(_again(self.X[start:stop].compute))

    def map(
        self, function: Task, *state: Any, along: tuple[Array, ...] = (), first: int = 0
    ) -> Any:
        return _again(lambda: Rows.map(self, function, *state, along=along, first=first))

    def sum(self, function: Task, *state: Any, along: tuple[Array, ...] = ()) -> Any:
        return _again(lambda: Rows.sum(self, function, *state, along=along))

    def rowwise(self, function: Task, *state: Any) -> Any:
        import dask.array as da
        from dask.delayed import delayed

        state = _c_ordered(state)
        # A row at the centre tells the types and widths of the results.
        row = self.block_kind(self.center[None].astype(self.stored), self.center, self.dtype)
        with one_blas_thread():
            found = _apply(function, row, (), state)
        empty = tuple(part[:0] for part in (found if isinstance(found, tuple) else (found,)))
        shared = (self.block_kind, self.center, self.dtype, function, state)
        # One node for what every task needs, which is not taken apart.
        node = delayed((shared, empty), pure=False, traverse=False)
        array = self._in_blocks()
        tuples = da.blockwise(
            _lazy_work, "i", array, "ij", node, None,
            dtype=object, meta=np.empty(0, object), concatenate=False,
        )  # fmt: skip
        parts = []
        for place, part in enumerate(empty):
            chunks = (array.chunks[0], *((width,) for width in part.shape[1:]))
            axes = {"new_axis": list(range(1, part.ndim))} if part.ndim > 1 else {}
            taken = tuples.map_blocks(
                _part, place, dtype=part.dtype, meta=part, chunks=chunks, **axes
            )
            parts.append(taken.rechunk({0: self.X.chunks[0]}) if self.is_counted else taken)
        return tuple(parts) if isinstance(found, tuple) else parts[0]

    def _each(
        self,
        function: Task,
        state: tuple[Any, ...],
        along: tuple[Array, ...],
        bounds: list[Bounds],
    ) -> Generator[Any, None, None]:
        from dask.delayed import delayed

        # One node for what every task needs; a task adds only its own rows of ``along``.
        shared = delayed((self.block_kind, self.center, self.dtype, function, state), pure=False)
        work = delayed(_work_shared, pure=False)
        pieces = [tuple(a[start:stop] for a in along) for start, stop in bounds]
        for block, piece in zip(self.blocks[-len(bounds) :], _scattered(pieces), strict=True):
            yield work(block, shared, piece)

    @staticmethod
    def _add(left: Any, right: Any) -> Any:
        from dask.delayed import delayed

        return delayed(_add, pure=False)(left, right)

    def _batch_size(self) -> int:
        threads: Iterable[int] = getattr(_client(), "nthreads", dict)().values()
        return BLOCKS_PER_THREAD * max(sum(threads), os.cpu_count() or 1)

    def _gather(self, parts: list[Any]) -> list[Any]:
        from dask.base import compute

        with one_blas_thread():
            return list(compute(*parts))


class FrameRows(DaskRows):
    """Rows of a Dask data frame, whose partitions do not know how long they are."""

    def __init__(self, frame: Any, lengths: bool | None = None) -> None:
        others = {
            str(name): str(kind)
            for name, kind in frame.dtypes.items()
            if not isinstance(kind, np.dtype) or kind.kind not in "biuf"
        }
        if others:
            shown = ", ".join(f"{name} ({kind})" for name, kind in list(others.items())[:5])
            raise ValueError(
                f"X must hold real numbers, but {len(others)} of its columns do not: {shown}. "
                "Choose columns of numbers, or convert them, as with X.astype('float64')."
            )
        self.frame, self.columns = frame, frame.columns
        numbers = frame.astype(np.result_type(*frame.dtypes))
        super().__init__(numbers.to_dask_array(lengths=lengths))

    @staticmethod
    def accepts(X: Any) -> bool:
        """Whether ``X`` is a Dask data frame."""
        homes = ("dask.dataframe.", "dask_expr.")  # the latter before 2025
        return type(X).__module__.startswith(homes) and hasattr(X, "columns")

    def header(self) -> Any:
        import pandas

        return pandas.DataFrame(columns=self.columns)

    def counted(self) -> Rows:
        """The same rows; their partitions are counted now, which may read all of them once."""
        if self.is_counted:
            return super().counted()
        return FrameRows(self.frame, lengths=True).counted()


def refuse_sparse(chunk: Any) -> None:
    """Say what to do about a Dask array of sparse chunks."""
    if sparse.issparse(chunk):
        raise TypeError(
            f"The chunks of the Dask array are sparse ({type(chunk).__name__}), and dense ones are "
            "needed: pass X.map_blocks(lambda block: block.toarray(), dtype=X.dtype), or the CSR "
            "matrix X.compute() if memory can hold it."
        )


def _again(work: Callable[[], T]) -> T:
    """Do some work, and anew where a worker died with what had been sent to it."""
    for n_left in reversed(range(LOST_WORKERS + 1)):
        try:
            return work()
        except (CancelledError, OSError) as error:
            client = _client()
            if client is not None and _is_lost(client):
                raise ConnectionError(
                    "The connection to the Dask scheduler was lost. Start the cluster, connect to "
                    "it, and fit again; inside of robustpca.checkpoint(path) a fit would go on."
                ) from error
            if not n_left or isinstance(error, OSError):
                raise
    raise AssertionError


def _client() -> Any:
    """The client of a cluster that Dask gives its graphs to, or None."""
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "scatter") else None


def _is_lost(client: Any) -> bool:
    """Whether a client has no connection; it may take a moment to notice."""
    for _ in range(20):
        if client.status != "running":
            return True
        time.sleep(0.05)
    return False


def _scattered(pieces: list[Any]) -> list[Any]:
    """Send the pieces to the workers of a cluster directly, and not within a task graph."""
    client = _client() if pieces[0] else None
    if client is None:
        return pieces
    return list(client.scatter(pieces, hash=False))


def _lazy_work(blocks: list[Any], given: tuple[Any, ...]) -> tuple[Array, ...]:
    """Results of the one chunk of some rows, as a tuple in any case."""
    shared, empty = given
    (block,) = blocks
    if not block.shape[0]:  # what a filter left of a chunk
        return empty
    # Whoever computes it may have any number of threads, here and in BLAS.
    with one_blas_thread():
        found = _work_shared(block, shared, ())
    return found if isinstance(found, tuple) else (found,)


def _part(results: tuple[Array, ...], place: int) -> Array:
    return results[place]


def _work_shared(block: Any, shared: tuple[Any, ...], pieces: tuple[Array, ...]) -> Any:
    kind, center, dtype, function, state = shared
    refuse_sparse(block)
    # What came over a wire may begin anywhere in memory, and then NumPy leaves BLAS aside.
    block, pieces = np.require(block, requirements=["A", "C"]), _aligned(pieces)
    return _apply(function, kind(block, center, dtype), pieces, _aligned(state))


def _aligned(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        np.require(a, requirements="A") if isinstance(a, np.ndarray) else a for a in arguments
    )


ON_DISK: tuple[Any, ...] = (FileRows, HDF5Rows, ZarrRows)


def lazy_rows(X: Any) -> Rows | None:
    """The source of an array that is not held in memory, or None if ``X`` is no such array."""
    for source in (*ON_DISK, FrameRows, DaskRows):
        if source.accepts(X):
            if X.ndim != 2:
                raise ValueError(f"Expected 2D array, got {X.ndim}D {type(X).__name__} instead.")
            rows: Rows = source(X)
            return rows
    return None


def as_dask(X: Any) -> Any:
    """Turn an array on disk into a Dask array whose tasks hold a path and a slice.

    ``dask.array.from_array(memmap)`` puts the data themselves into the task graph; this does
    not. Every worker must find the file under the same path.

    Parameters
    ----------
    X : numpy.memmap, h5py.Dataset or zarr.Array of shape (n_samples, n_features)
        Rows on disk.

    Returns
    -------
    dask.array.Array
        The same rows, in the blocks that a fit will ask for.
    """
    source = next((kind for kind in ON_DISK if kind.accepts(X)), None)
    if source is None:
        raise TypeError(
            f"as_dask takes a C-ordered numpy.memmap, an h5py dataset or a zarr array, not "
            f"{type(X).__name__}; use dask.array.from_array for data in memory."
        )
    import dask.array as da
    from dask.delayed import delayed

    rows = source(X)
    shared = delayed(rows, pure=True)
    read = delayed(_read, pure=True)
    return da.concatenate(
        [
            da.from_delayed(read(shared, *bounds), (bounds[1] - bounds[0], rows.shape[1]), X.dtype)
            for bounds in rows.bounds
        ]
    )


def _read(rows: Rows, start: int, stop: int) -> Array:
    block: Array = rows.read(start, stop)
    return block
