"""Rows that Dask computes, here or on the workers of a cluster, and files as Dask arrays."""

import copy
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from itertools import islice, starmap
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

from robustpca.engine.blocks import Block
from robustpca.engine.linalg import Array
from robustpca.engine.rows import (
    Bounds,
    Reduction,
    Rows,
    Task,
    apply,
    c_ordered,
    fold,
    halved,
    join,
    kept,
    total,
)
from robustpca.engine.stored import ON_DISK, StoredRows
from robustpca.engine.threads import one_blas_thread

# Workers that may die in one pass over the data.
LOST_WORKERS = 8
# Seconds without any worker after which a fit says that it waits, and after which it ends.
WAITING, WAITED = 60.0, 600.0
# Blocks that each thread of a cluster gets at a time from `Rows.stream`.
BLOCKS_PER_THREAD = 2
# Tasks that each of several threads gets in a pass over a long file, so that none waits for long at
# its end, but not for fewer blocks than these.
TASKS_PER_THREAD, WORTHWHILE = 4, 8
# What a task costs the scheduler, which does one after the other: about a millisecond, in blocks.
TASK_COST = 0.1
# Most blocks of one task, which are done again if its worker dies.
BLOCKS_PER_TASK = 64
# So many sums, or fewer, are added here; of more a task adds up so many.
SUMS_HERE, SUMS_PER_TASK = 4, 8
# Bytes of copies of what all tasks of a pass need, up to which each has its own.
COPIED_BYTES = 1 << 22

# Name under which the arrays of `as_dask` have their file.
FILE = "_robustpca_file"

T = TypeVar("T")
# Result of a block of rows and of the matching rows of other arrays.
Job = Callable[[Any, tuple[Array, ...]], Any]


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
        # The file behind the array: tasks read blocks of it, one after the other.
        self.file: StoredRows | None = getattr(X, FILE, None)
        if self.file is not None:
            # It may have been changed since the array was made, but not from now on.
            self.file = copy.copy(self.file).watch(self.file.watched)
        # So many chunks, cut once for all copies with other centres.
        self._chunks: dict[int, list[Any]] = {}

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

    def finer(self, row_bytes: int) -> Self:
        other = super().finer(row_bytes)
        other._chunks = {}
        return other

    def _in_blocks(self, n_chunks: int | None = None) -> Any:
        """The array in so many chunks of whole blocks, by default of one each."""
        if not self.is_counted:
            return self.X
        bounds = self.bounds
        groups = [bounds[place] for place in halved(len(bounds), n_chunks or len(bounds))]
        return self.X.rechunk({0: tuple(group[-1][1] - group[0][0] for group in groups)})

    def read(self, start: int, stop: int) -> Array:
        return self.read_places([(start, stop)])[0]

    def read_places(self, places: list[Bounds]) -> list[Array]:
        if self.file is not None:
            # This process has opened the file, and reads few rows sooner than it can ask for them.
            return self.file.read_places(places)
        found = _again(lambda: _gathered([self.X[slice(*place)] for place in places]))
        return [np.ascontiguousarray(rows) for rows in found]

    def _reduced(
        self,
        reduce: Reduction,
        function: Task,
        state: tuple[Any, ...],
        along: tuple[Array, ...],
        first: int = 0,
    ) -> Any:
        state, along = c_ordered(state), c_ordered(along)

        def work() -> Any:
            if self.file is not None:
                self.file.refuse_changed()  # its workers may have other clocks
            parts = self._tasks(reduce, function, state, along, first)
            # Sums are as large as each of their terms, so that workers add many of them up.
            found = _gathered(_summed(parts) if reduce is total else parts)
            return reduce(found, len(found))

        return _again(work)

    def stream(self, function: Task, *state: Any) -> Iterator[Any]:
        n_blocks = len(self.bounds)
        parts = iter(self._tasks(join, function, c_ordered(state), (), n_tasks=n_blocks))
        while batch := list(islice(parts, BLOCKS_PER_THREAD * _n_threads())):
            yield from _gathered(batch)

    def _tasks(
        self,
        reduce: Reduction,
        function: Task,
        state: tuple[Any, ...],
        along: tuple[Array, ...],
        first: int = 0,
        n_tasks: int | None = None,
    ) -> list[Any]:
        """Tasks with the reduced results of groups of blocks, from block ``first`` on."""
        from dask.delayed import delayed

        bounds, n_tasks = self.bounds, n_tasks or self._n_tasks()
        # Of the groups in which `first` and all others are.
        places = [place for place in halved(len(bounds), n_tasks) if place.stop > first]
        groups = [bounds[max(place.start, first) : place.stop] for place in places]
        job: Any = self._job(function, state)
        if len(groups) * _n_bytes((self.center, *state)) > COPIED_BYTES:
            # One node for what all of them need, which workers get from each other.
            job = delayed(job, pure=False, traverse=False)
        pieces = [tuple(a[group[0][0] : group[-1][1]] for a in along) for group in groups]
        held = self._holders(n_tasks)[-len(groups) :]
        work = delayed(_work_in_turn, pure=False, traverse=False)
        return [
            work(*each, reduce, job) for each in zip(held, groups, _scattered(pieces), strict=True)
        ]

    def _job(self, function: Task, state: tuple[Any, ...]) -> Job:
        """What all tasks of a pass need, as one object.

        Dask before 2025.4 takes a tuple that begins with a callable, as a kind of blocks is, for a
        task of its own.
        """
        return partial(
            _work,
            kind=self.block_kind,
            center=self.center,
            dtype=self.dtype,
            function=function,
            state=state,
        )

    def _n_tasks(self) -> int:
        """How many branches of the tree of sums are tasks; the bits do not depend on it."""
        n_blocks = len(self.bounds)
        # A power of two, or one task for each block.
        numbers = [*(1 << power for power in range(n_blocks.bit_length())), n_blocks]
        if self.file is None:
            # Chunks are in memory as they are, so a task may as well have all rows of one.
            wanted = min(n_blocks, len(self.X.chunks[0]))
            return next(number for number in numbers if number >= wanted)
        n_threads = max(1, _n_threads())
        few = -(-n_blocks // BLOCKS_PER_TASK)
        if n_threads > 1:
            wanted = min(TASKS_PER_THREAD * n_threads, n_blocks // WORTHWHILE)
            few = max(few, min(n_threads, n_blocks), 1 << wanted.bit_length() >> 1)

        def cost(number: int) -> float:
            """Blocks of the thread that has most to do, and what all tasks cost."""
            longest = -(-number // n_threads) * -(-n_blocks // number)
            return longest + TASK_COST * number

        return min((number for number in numbers if number >= few), key=cost)

    def _holders(self, n_tasks: int) -> list[Any]:
        """For each task what its rows are read from: the file, or a chunk with them."""
        if self.file is not None:
            return [self.file] * n_tasks
        if n_tasks not in self._chunks:
            self._chunks[n_tasks] = self._in_blocks(n_tasks).to_delayed().ravel().tolist()
        return self._chunks[n_tasks]

    def rowwise(self, function: Task, *state: Any) -> Any:
        import dask.array as da
        from dask.delayed import delayed

        state = c_ordered(state)
        # A row at the centre tells the types and widths of the results.
        row = self.block_kind(self.center[None].astype(self.stored), self.center, self.dtype)
        with one_blas_thread():
            found = apply(function, row, (), state)
        empty = tuple(part[:0] for part in (found if isinstance(found, tuple) else (found,)))
        # One node for what every task needs, which is not taken apart.
        node = delayed((empty, self._job(function, state)), pure=False, traverse=False)
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
            _await_workers()
            return work()
        except (CancelledError, OSError) as error:
            client = _client()
            if client is not None and _is_lost(client):
                raise ConnectionError(
                    "The connection to the Dask scheduler was lost. Start the cluster, connect to "
                    "it, and fit again; inside of robustpca.checkpoint(path) a fit would go on."
                ) from error
            # Dask closes a connection where a worker dies while it is sent something.
            of_data = isinstance(error, OSError) and not _is_of_dask(error)
            if not n_left or of_data:
                raise
    raise AssertionError


def _await_workers() -> None:
    """Wait for a cluster that has no workers, and not for ever."""
    client = _client()
    if client is None or client.nthreads():
        return
    # A cluster that adapts to its work starts workers for a task, and for nothing less.
    task = client.submit(int, pure=False)
    try:
        task.result(timeout=WAITING)
        return
    except TimeoutError:
        warnings.warn(
            "The Dask cluster has no workers, and the fit waits for some. Start them with `dask "
            f"worker {client.scheduler.address}`.",
            stacklevel=2,
        )
    try:
        task.result(timeout=WAITED - WAITING)
    except TimeoutError:
        raise ConnectionError(
            f"The Dask cluster has had no workers for {WAITED:.0f} seconds. Start some with `dask "
            f"worker {client.scheduler.address}`, and fit again; inside of "
            "robustpca.checkpoint(path) a fit would go on."
        ) from None


def _is_of_dask(error: Exception) -> bool:
    # No worker was there for a while; files that answer too late are told by `StoredRows`.
    return isinstance(error, TimeoutError) or type(error).__module__.startswith("distributed.")


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


def _n_threads() -> int:
    """How many tasks may be worked on at a time."""
    from dask import config

    client = _client()
    if client is not None:
        return sum(client.nthreads().values())
    return config.get("num_workers", None) or os.cpu_count() or 1


def _gathered(tasks: list[Any]) -> list[Any]:
    """Results of tasks."""
    from dask.base import compute

    with one_blas_thread():
        return list(compute(*tasks))


def _summed(tasks: list[Any]) -> list[Any]:
    """Few sums, or tasks with one sum of many, in the order of `fold`."""
    from dask.delayed import delayed

    if len(tasks) <= SUMS_HERE:
        return tasks
    work = delayed(fold, pure=False)
    while len(tasks) > 1:
        # A power of two, so that few that are left are branches as well.
        n_sums = 1 << max(0, (len(tasks) // SUMS_PER_TASK).bit_length() - 1)
        groups = [tasks[place] for place in halved(len(tasks), n_sums)]
        tasks = [work(group, _add, len(group)) for group in groups]
    return tasks


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        return tuple(_add(a, b) for a, b in zip(left, right, strict=True))
    return left + right


def _n_bytes(arguments: tuple[Any, ...]) -> int:
    return sum(a.nbytes for a in arguments if isinstance(a, np.ndarray))


def _scattered(pieces: list[Any]) -> list[Any]:
    """Send the pieces to the workers of a cluster directly, and not within a task graph."""
    client = _client() if pieces[0] else None
    if client is None:
        return pieces
    try:
        return list(client.scatter(pieces, hash=False))
    except Exception as error:
        # If a worker dies meanwhile, the moment decides what Dask raises: that a connection closed,
        # was refused until there was no time left, or that a key is missing from a dict.
        raise CancelledError("Rows could not be sent to the workers of the cluster.") from error


def _lazy_work(blocks: list[Any], given: tuple[Any, ...]) -> tuple[Array, ...]:
    """Results of the one chunk of some rows, as a tuple in any case."""
    empty, job = given
    (block,) = blocks
    if not block.shape[0]:  # what a filter left of a chunk
        return empty
    # Whoever computes it may have any number of threads, here and in BLAS.
    with one_blas_thread():
        found = job(block, ())
    return found if isinstance(found, tuple) else (found,)


def _part(results: tuple[Array, ...], place: int) -> Array:
    return results[place]


def _work_in_turn(
    held: Any,
    places: list[Bounds],
    pieces: tuple[Array, ...],
    reduce: Reduction,
    job: Job,
) -> Any:
    """Reduced results of some blocks; what holds them is a file, or a chunk that ends with them."""
    begin, end = places[0][0], places[-1][1]
    read = held.reader() if isinstance(held, Rows) else partial(_cut, held, end - held.shape[0])

    def work(start: int, stop: int) -> Any:
        rows = read(start, stop)
        result = job(rows, tuple(a[start - begin : stop - begin] for a in pieces))
        return kept(result, rows)

    # Whoever computes it may have any number of threads, here and in BLAS.
    with one_blas_thread():
        return reduce(starmap(work, places), len(places))


def _cut(chunk: Any, begin: int, start: int, stop: int) -> Any:
    return chunk[start - begin : stop - begin]


def _work(
    block: Any,
    pieces: tuple[Array, ...],
    *,
    kind: type[Block],
    center: Array,
    dtype: Any,
    function: Task,
    state: tuple[Any, ...],
) -> Any:
    """Result of one block of rows."""
    refuse_sparse(block)
    # What came over a wire may begin anywhere in memory, and then NumPy leaves BLAS aside.
    block = np.require(block, requirements=["A", "C"])
    return apply(function, kind(block, center, dtype), _aligned(pieces), _aligned(state))


def _aligned(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        np.require(a, requirements="A") if isinstance(a, np.ndarray) else a for a in arguments
    )


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
    array = da.concatenate(
        [
            da.from_delayed(read(shared, *bounds), (bounds[1] - bounds[0], rows.shape[1]), X.dtype)
            for bounds in rows.bounds
        ]
    )
    # Whatever is made from the array does not have it.
    setattr(array, FILE, rows)
    return array


def _read(rows: Rows, start: int, stop: int) -> Array:
    block: Array = rows.read(start, stop)
    return block
