"""Threads over tiles of the data, each with a BLAS of one thread, and kernels for them.

As many threads work as BLAS may use when a fit begins: whoever limits BLAS limits this too.
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


def _let_go() -> None:
    """Newer threadpoolctl heeds only the thread that set a limit first; here a lock decides."""
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
                self.allowed = self._now()
                _let_go()
                self.limiter = _controller().limit(limits=1)
            self.depth += 1

    def __exit__(self, *exc: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                _let_go()
                self.limiter.restore_original_limits()
                _let_go()

    @staticmethod
    def _now() -> int:
        return max((lib.num_threads for lib in _controller().lib_controllers), default=1)


one_blas_thread = OneBlasThread()


class Crew:
    """The threads of one fit, for loops that hand them work at every iteration.

    Used as ``with Crew() as crew: crew.each(work, jobs)``. Results come in the order of the
    jobs, so what is made of them does not depend on the number of threads.
    """

    def __enter__(self) -> Self:
        one_blas_thread.__enter__()
        self.size = one_blas_thread.allowed
        self.pool = ThreadPoolExecutor(self.size) if self.size > 1 else None
        return self

    def __exit__(self, *exc: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
        one_blas_thread.__exit__(*exc)

    def each(self, work: Callable[[T], R], jobs: Iterable[T]) -> list[R]:
        """Do all jobs and return their results in order."""
        return list((self.pool.map if self.pool is not None else map)(work, jobs))


def in_order(work: Callable[[T], R], jobs: list[T], workers: int) -> Iterator[R]:
    """Yield results in order while a few later ones are under way, so that few are held."""
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
    """Compile a kernel when it is first needed; the machine code is kept on disk.

    A kernel is a plain function of arrays and numbers that loops over entries. Compiled, it
    releases the interpreter lock, so several threads can run it on tiles of their own.
    """
    import numba

    # Sums may be reordered to use vector registers; NaN keeps its meaning.
    return numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz", "arcp"})(
        function
    )
