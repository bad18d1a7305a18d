"""Threads over tiles of the data, each with a BLAS of one thread, and kernels for them.

As many threads work as BLAS may use when a fit begins, so a limit on BLAS limits them too.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, lru_cache
from typing import Any, Self, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")


@lru_cache(maxsize=1)
def _controller() -> Any:
    return ThreadpoolController().select(user_api="blas")


def _release_blas() -> None:
    """Let any thread set a limit: newer threadpoolctl heeds only the one that set it first.

    `OneBlasThread` has a lock of its own.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class OneBlasThread:
    """Hold BLAS to one thread; the last of several fits to leave restores the old limit.

    A fit runs inside: its threads work on blocks, and its small factorisations are faster
    without the help of a second thread.
    """

    def __init__(self) -> None:
        self.lock, self.depth, self.allowed = threading.Lock(), 0, 1

    def __enter__(self) -> None:
        with self.lock:
            if self.depth == 0:
                libraries = _controller().lib_controllers
                self.allowed = max((lib.num_threads for lib in libraries), default=1)
                _release_blas()
                self.limiter = _controller().limit(limits=1)
            self.depth += 1

    def __exit__(self, *exc: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                _release_blas()
                self.limiter.restore_original_limits()
                _release_blas()


one_blas_thread = OneBlasThread()


class ThreadPool:
    """The threads of one fit, for loops that give them work at every iteration.

    Used as ``with ThreadPool() as pool: pool.map(work, jobs)``. Results come in the order of
    the jobs, so what is made of them does not depend on the number of threads. With one thread,
    the calling one does the work.
    """

    def __enter__(self) -> Self:
        one_blas_thread.__enter__()
        self.size = one_blas_thread.allowed
        self.executor = ThreadPoolExecutor(self.size) if self.size > 1 else None
        return self

    def __exit__(self, *exc: object) -> None:
        if self.executor is not None:
            self.executor.shutdown(cancel_futures=True)
        one_blas_thread.__exit__(*exc)

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
    releases the interpreter lock, so several threads can run it on tiles of their own.
    """
    import numba

    # Sums may be reordered to use vector registers; NaN retains its meaning.
    return numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"})(
        function
    )
