"""Threads over tiles of the data, each with a BLAS of one thread, and kernels for them.

As many threads work as BLAS may use when a fit begins, so a limit on BLAS limits them too.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from types import FunctionType
from typing import Any, Self, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


@cache
def _controller(user_api: str = "blas") -> Any:
    return ThreadpoolController().select(user_api=user_api)


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Hold OpenMP to one thread in the calling one, for the length of a ``with``.

    Scikit-learn's k-means and neighbour searches use it. The threads of GNU's OpenMP do not come
    along when a process forks, and its child would wait for them forever; and sums in several
    threads come in any order, so that results would differ in their last digits.
    """
    before = openmp_threads()
    try:
        set_openmp_threads([1] * len(before))
        yield
    finally:
        set_openmp_threads(before)


def openmp_threads() -> list[int]:
    """How many threads each OpenMP library may use in the calling thread."""
    return [library.num_threads for library in _controller("openmp").lib_controllers]


def set_openmp_threads(numbers: list[int]) -> None:
    """Let each OpenMP library use so many threads in the calling thread."""
    for library, number in zip(_controller("openmp").lib_controllers, numbers, strict=True):
        library.set_num_threads(number)


def _release_blas() -> None:
    """Let any thread set a limit: newer threadpoolctl heeds only the one that set it first.

    `OneBlasThread` has a lock of its own.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class OneBlasThread:
    """Hold BLAS to one thread while any fit runs; the last to leave restores the old limit.

    Used as ``with one_blas_thread():``. A fit runs inside: its threads work on blocks, and its
    small factorisations are faster without the help of a second thread.
    """

    def __init__(self) -> None:
        self.lock, self.holders, self.allowed = threading.RLock(), set[int](), 1
        self.limiter: Any = None

    def __call__(self) -> "Hold":
        return Hold(self)

    def acquire(self, thread: int) -> None:
        """Count a thread in; the first one limits BLAS."""
        with self.lock:
            self.holders.add(thread)
            if self.limiter is None:
                libraries = _controller().lib_controllers
                self.allowed = max((lib.num_threads for lib in libraries), default=1)
                _release_blas()
                self.limiter = _controller().limit(limits=1)

    def release(self, thread: int) -> None:
        """Count a thread out, which may be done twice; the last one restores the limit."""
        with self.lock:
            self.holders.discard(thread)
            if not self.holders and self.limiter is not None:
                _release_blas()
                self.limiter.restore_original_limits()
                _release_blas()
                self.limiter = None


class Hold:
    """The limit for the length of a ``with``; within another one of its thread it does nothing.

    So the outermost one alone decides, and an interrupt in the midst of inner ones, or a generator
    that stays where it was interrupted, cannot leave the limit behind.
    """

    def __init__(self, limit: OneBlasThread) -> None:
        self.limit, self.thread, self.is_outermost = limit, threading.get_ident(), False

    def __enter__(self) -> None:
        if self.thread in self.limit.holders:
            return
        self.is_outermost = True
        try:
            self.limit.acquire(self.thread)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        if not self.is_outermost:
            return
        try:
            self.limit.release(self.thread)
        except KeyboardInterrupt:  # in the midst of it
            self.limit.release(self.thread)
            raise


one_blas_thread = OneBlasThread()


class ThreadPool:
    """The threads of one fit, for loops that give them work at every iteration.

    Used as ``with ThreadPool() as pool: pool.map(work, jobs)``. Results come in the order of
    the jobs, so what is made of them does not depend on the number of threads. With one thread,
    the calling one does the work.
    """

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(one_blas_thread())
            self.size = one_blas_thread.allowed
            self.executor = None
            if self.size > 1:
                self.executor = stack.enter_context(ThreadPoolExecutor(self.size))
                stack.callback(self.executor.shutdown, cancel_futures=True)
            self.leave = stack.pop_all().close
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave()

    def map(self, work: Callable[[T], R], jobs: Iterable[T]) -> list[R]:
        """Do all jobs and return their results in order."""
        return list((self.executor.map if self.executor is not None else map)(work, jobs))


def in_order(work: Callable[[T], R], jobs: list[T], workers: int) -> Iterator[R]:
    """Yield results in order, computing only a few ahead, so that few are in memory."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(work, job))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel when it is first needed; the machine code is cached on disk.

    A kernel is a plain function of arrays and numbers that loops over entries. Compiled, it
    releases the interpreter lock, so several threads can run it on tiles of their own. Functions
    of its own module that it calls are compiled with it; what is cached is made anew if that file
    changes, so they have to be there.
    """
    import numba

    module = function.__globals__
    called = {name: module.get(name) for name in function.__code__.co_names}
    parts = {
        name: compiled(part)
        for name, part in called.items()
        if isinstance(part, FunctionType) and part.__module__ == function.__module__
    }
    if parts:
        function = FunctionType(function.__code__, {**module, **parts}, function.__name__)
    # Sums may be reordered to use vector registers; NaN retains its meaning. A call that is not
    # inlined passes some seventy numbers for nine arrays, which takes as long as a short loop.
    options: dict[str, Any] = {
        "nogil": True,
        "forceinline": True,
        "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    }
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the package nor a home is writable, as in a container: compiled in each process.
        return numba.njit(**options)(function)
