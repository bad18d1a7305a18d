"""Threads keep order, and leave BLAS as they found it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import OpenBLASController, threadpool_info, threadpool_limits

from robustpca import Reweighted
from robustpca.engine.threads import OneBlasThread, ThreadPool, compiled, in_order, one_blas_thread
from robustpca.solvers.altproj import accept


def blas_threads():
    """Number of threads that each BLAS may use now; some that others bring along have but one."""
    libs = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return [lib["num_threads"] for lib in libs if lib.get("threading_layer") != "disabled"]


@pytest.fixture
def two_blas_threads():
    """Two threads, which whoever uses them must give back."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        yield
        assert blas_threads() == before
    assert not one_blas_thread.holders


@pytest.mark.usefixtures("two_blas_threads")
class TestThreadPool:
    @pytest.mark.parametrize("n_threads", [1, 2, 4])
    def test_is_as_large_as_blas_may_be(self, n_threads):
        with threadpool_limits(n_threads, user_api="blas"), ThreadPool() as pool:
            assert pool.size == n_threads
            assert set(blas_threads()) == {1}

    @pytest.mark.parametrize("n_threads", [1, 2, 4])
    def test_results_come_in_the_order_of_the_jobs(self, n_threads):
        def work(job):
            time.sleep(0.001 * (7 - job % 8))  # earlier jobs take longer
            return job**2

        with threadpool_limits(n_threads, user_api="blas"), ThreadPool() as pool:
            assert pool.map(work, range(40)) == [job**2 for job in range(40)]
            assert pool.map(work, iter([3, 1, 2])) == [9, 1, 4]
            assert pool.map(work, []) == []

    def test_several_threads_work_at_the_same_time(self):
        # Each waits for the other, so one alone would never get done.
        meeting = threading.Barrier(2, timeout=120)
        with ThreadPool() as pool:
            places = pool.map(lambda _: meeting.wait(), range(2))
        assert sorted(places) == [0, 1]

    def test_one_thread_works_in_the_thread_that_asks(self):
        with threadpool_limits(1, user_api="blas"), ThreadPool() as pool:
            assert pool.map(lambda _: threading.get_ident(), range(3)) == 3 * [
                threading.get_ident()
            ]

    def test_jobs_see_a_blas_of_one_thread(self):
        with ThreadPool() as pool:
            assert pool.map(lambda _: set(blas_threads()), range(4)) == 4 * [{1}]

    @pytest.mark.parametrize("n_threads", [1, 2])
    def test_an_exception_of_a_job_comes_through(self, n_threads):
        def work(job):
            if job == 3:
                raise ValueError("third")
            return job

        with threadpool_limits(n_threads, user_api="blas"):
            with pytest.raises(ValueError, match="third"), ThreadPool() as pool:
                pool.map(work, range(8))
            assert set(blas_threads()) == {n_threads}

    def test_goes_on_after_an_exception_of_a_job(self):
        with ThreadPool() as pool:
            with pytest.raises(ZeroDivisionError):
                pool.map(lambda job: 1 // job, [1, 0, 2])
            assert pool.map(lambda job: 6 // job, [1, 2, 3]) == [6, 3, 2]

    def test_limits_are_restored_after_an_exception_between_jobs(self):
        def interrupted():
            with ThreadPool():
                assert set(blas_threads()) == {1}
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert set(blas_threads()) == {2}

    def test_one_within_another_is_as_large_and_restores_nothing(self):
        with ThreadPool() as outer:
            with ThreadPool() as inner:
                assert inner.size == outer.size == 2
                assert inner.map(abs, [-1, -2]) == [1, 2]
            assert set(blas_threads()) == {1}
            assert outer.map(abs, [-3]) == [3]
        assert set(blas_threads()) == {2}

    def test_jobs_may_have_pools_of_their_own(self):
        def work(job):
            with ThreadPool() as pool:
                return sum(pool.map(lambda step: job * step, range(5)))

        with ThreadPool() as pool:
            assert pool.map(work, range(6)) == [10 * job for job in range(6)]
        assert set(blas_threads()) == {2}

    def test_may_be_entered_again(self):
        pool = ThreadPool()
        for _ in range(2):
            with pool:
                assert pool.map(abs, [-1, -2]) == [1, 2]

    def test_leaves_no_thread_behind(self):
        before = threading.active_count()
        with ThreadPool() as pool:
            pool.map(abs, range(50))
        assert threading.active_count() == before


class TestOneBlasThread:
    def test_remembers_what_was_allowed(self):
        limit = OneBlasThread()
        with threadpool_limits(3, user_api="blas"), limit(), limit():
            assert limit.allowed == 3
            assert len(limit.holders) == 1
        assert not limit.holders

    def test_what_an_interrupt_left_open_inside_is_closed_with_the_outermost(
        self, two_blas_threads
    ):
        def suspended():
            with one_blas_thread():
                yield

        with one_blas_thread():
            kept = suspended()  # as the frames of an interrupt are kept by its traceback
            next(kept)
        assert set(blas_threads()) == {2}
        kept.close()
        assert set(blas_threads()) == {2}

    @pytest.mark.parametrize("at", ["acquire", "release"])
    def test_an_interrupt_on_the_way_leaves_no_limit(self, at, two_blas_threads, monkeypatch):
        limit, found = OneBlasThread(), []
        genuine = getattr(limit, at)

        def interrupted(thread):
            monkeypatch.setattr(limit, at, genuine)
            if at == "acquire":
                genuine(thread)
            raise KeyboardInterrupt

        monkeypatch.setattr(limit, at, interrupted)
        with pytest.raises(KeyboardInterrupt), limit():
            found.append(blas_threads())
        assert not limit.holders
        assert set(blas_threads()) == {2}
        assert found == ([] if at == "acquire" else [[1] * len(blas_threads())])

    def test_many_at_once(self, two_blas_threads):
        def work(_):
            for _ in range(20):
                with one_blas_thread():
                    assert set(blas_threads()) == {1}
            return True

        with ThreadPool() as pool:
            assert all(pool.map(work, range(4)))


def nobody_holds_blas():
    """In newer threadpoolctl one thread holds OpenBLAS, and others set limits in vain."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


class TestFitsInSeveralThreads:
    @pytest.fixture(autouse=True)
    def free_blas(self):
        with threadpool_limits(2, user_api="blas"):
            nobody_holds_blas()
            yield
            nobody_holds_blas()
        assert not one_blas_thread.holders

    @pytest.fixture
    def other(self):
        with ThreadPoolExecutor(1) as pool:
            yield pool

    @staticmethod
    def fit():
        with one_blas_thread():
            return set(blas_threads())

    def test_one_in_another_thread(self, other):
        assert other.submit(self.fit).result() == {1}
        assert set(blas_threads()) == {2}

    def test_one_in_another_thread_under_a_limit_of_the_user(self, other):
        with threadpool_limits(2, user_api="blas"):
            assert other.submit(self.fit).result() == {1}
        assert set(blas_threads()) == {2}

    def test_one_after_the_other(self, other):
        assert other.submit(self.fit).result() == {1}
        assert self.fit() == {1}
        assert set(blas_threads()) == {2}

    def test_the_last_to_leave_restores_the_limit(self, other):
        entered, leave = threading.Event(), threading.Event()

        def early():
            with one_blas_thread():
                entered.set()
                leave.wait(120)

        first = other.submit(early)
        entered.wait(120)
        with one_blas_thread():
            leave.set()
            first.result()
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}

    def test_wrapped_estimators_that_limit_blas_themselves(self):
        X = np.random.default_rng(0).normal(size=(60, 4))
        with ThreadPoolExecutor(8) as pool:
            fits = [pool.submit(Reweighted(KMeans(2, n_init=2)).fit, X) for _ in range(16)]
        assert all(fit.result().converged_ for fit in fits)
        assert set(blas_threads()) == {2}


class TestInOrder:
    def test_yields_results_in_order(self):
        def work(job):
            time.sleep(0.001 * (5 - job % 6))
            return -job

        assert list(in_order(work, list(range(30)), 3)) == [-job for job in range(30)]

    def test_holds_few_results_at_a_time(self):
        started = []
        results = in_order(lambda job: started.append(job) or job, list(range(100)), 2)
        assert next(results) == 0
        time.sleep(0.05)
        assert len(started) <= 5
        assert list(results) == list(range(1, 100))

    def test_an_exception_comes_through_and_ends_the_work(self):
        started = []

        def work(job):
            started.append(job)
            return 1 // (job - 3)

        with pytest.raises(ZeroDivisionError):
            list(in_order(work, list(range(100)), 2))
        assert len(started) < 20

    def test_whoever_stops_early_stops_the_work(self):
        started = []
        results = in_order(lambda job: started.append(job), list(range(100)), 2)
        next(results)
        results.close()
        assert len(started) < 20

    def test_without_jobs_there_is_nothing(self):
        assert list(in_order(abs, [], 2)) == []


class TestCompiled:
    def test_is_compiled_once(self):
        assert compiled(accept) is compiled(accept)

    def test_keeps_the_plain_function(self):
        assert compiled(accept).py_func is accept

    def test_runs_on_tiles_in_several_threads(self, rng):
        X, L = rng.normal(size=(2, 400, 30))
        X[rng.random(X.shape) < 0.1] = np.nan
        expected = L.copy()
        total = accept(X, expected, 0.5)
        found = L.copy()
        with ThreadPool() as pool:
            places = [slice(at, at + 50) for at in range(0, 400, 50)]
            parts = pool.map(lambda p: compiled(accept)(X[p], found[p], 0.5), places)
        np.testing.assert_array_equal(found, expected)
        assert sum(parts) == pytest.approx(total, rel=1e-12)

    def test_missing_entries_keep_their_meaning(self):
        # A kernel that took NaN for a number would accept it.
        X, L = np.array([[np.nan, 1.0, np.inf]]), np.zeros((1, 3))
        assert compiled(accept)(X, L, 2.0) == 1.0
        np.testing.assert_array_equal(L, [[0.0, 1.0, 0.0]])

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_takes_arrays_that_are_read_only_or_stored_by_columns(self, order, rng):
        X = np.array(rng.normal(size=(20, 10)), order=order)
        X.flags.writeable = False
        found, expected = np.zeros((2, 20, 10))
        assert compiled(accept)(X, found, 0.5) == pytest.approx(accept(X, expected, 0.5))
        np.testing.assert_array_equal(found, expected)

    def test_functions_of_its_module_that_a_kernel_calls_are_compiled_with_it(self, rng):
        X = rng.normal(size=(20, 10))
        X[3, 4] = np.nan
        assert compiled(total_of_known)(X) == pytest.approx(total_of_known(X))
        # The plain function still calls the plain one.
        assert total_of_known.__globals__["known"] is known
        assert compiled(total_of_known).py_func.__globals__["known"] is compiled(known)


def known(value):
    return value if value == value else 0.0


def total_of_known(X):
    total = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            total += known(X[i, j])
    return total
