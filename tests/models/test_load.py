"""The same bits whatever else runs, and nothing left behind: threads, processes, forks, memory."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from every import NAMES, bits, data, fit, make
from sklearn import get_config
from threadpoolctl import threadpool_info, threadpool_limits

from robustpca.engine import rows
from robustpca.engine.threads import one_blas_thread, one_openmp_thread

every_estimator = pytest.mark.parametrize("name", NAMES)
PATIENCE = 600.0  # seconds that a very busy machine may need


def limits():
    """Threads that each library may use now."""
    return [lib["num_threads"] for lib in threadpool_info()]


@every_estimator
def test_the_number_of_threads_changes_no_bit(name, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1 << 12)  # some blocks for the threads to share
    fits = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            model = fit(name)
            answer = getattr(model, "transform", None) or getattr(model, "predict", None)
            answers = [] if answer is None else answer(data(name, seed=1)[0])
            fits.append((bits(model), bits(answers)))
    assert fits[0] == fits[1] == fits[2]


@every_estimator
def test_a_second_fit_has_the_same_bits(name):
    given = data(name)
    assert bits(fit(name, *given)) == bits(fit(name, *given))


def test_fits_in_many_threads_have_the_bits_of_each_alone():
    with threadpool_limits(2):
        before = limits()
        alone = {name: bits(fit(name)) for name in NAMES}
        with ThreadPoolExecutor(8) as pool:
            fits = {name: [pool.submit(fit, name) for _ in range(2)] for name in NAMES}
            for name, both in fits.items():
                for each in both:
                    assert bits(each.result()) == alone[name], name
        assert limits() == before
    assert not one_blas_thread.holders


def test_threads_of_blas_and_openmp_are_not_multiplied_by_those_of_a_fit():
    seen = []
    with threadpool_limits(2):
        fit("EPCA", callback=lambda progress: seen.append(set(limits())))
    assert seen
    assert all(found == {1} for found in seen)


def test_fits_in_several_processes_have_the_bits_of_one():
    names = ["EPCA", "RPCA", "FRPCAG", "L1PCA", "NCut", "Reweighted(KMeans)"]
    context = get_context("forkserver")
    context.set_forkserver_preload(["robustpca", "robustpca.models", "sklearn.cluster"])
    with context.Pool(3) as pool:
        found = [pool.apply_async(bits_of, (name,)) for name in 2 * names]
        for name, each in zip(2 * names, found, strict=True):
            assert each.get(PATIENCE) == bits(fit(name)), name


def bits_of(name):
    return bits(fit(name))


FORKED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from every import bits, fit
before = {name: bits(fit(name)) for name in sys.argv[2:]}
child = os.fork()
if child == 0:
    os._exit(0 if all(bits(fit(name)) == before[name] for name in before) else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("names", [NAMES], ids=["all"])
def test_a_child_of_a_process_that_has_fitted_can_fit(names):
    # The threads of GNU's OpenMP do not come along, and a child that needs them waits forever.
    here = str(Path(__file__).parent)
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-W", "ignore", "-c", FORKED, here, *names]
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        try:
            assert process.wait(PATIENCE) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)


@pytest.mark.slow
# Python swallows an interrupt that comes while an object is finalised, and tells so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@every_estimator
def test_an_interrupt_at_any_moment_leaves_libraries_and_model_as_they_were(name):
    def interrupt(*_):
        raise KeyboardInterrupt

    def fitted():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(*given)

    given, settings, model = data(name), get_config(), make(name)
    fitted()  # compiled
    with threadpool_limits(2):
        before, started = limits(), time.perf_counter()
        first = dict(vars(fitted()))
        duration, outcomes = time.perf_counter() - started, []
        handler = signal.signal(signal.SIGALRM, interrupt)
        try:
            for moment in np.linspace(0.02, 0.98, 25) * duration:
                try:
                    signal.setitimer(signal.ITIMER_REAL, moment)
                    fitted()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    pass
                except RuntimeError as error:
                    # Python's own conditions fail so if it comes as they take their lock again.
                    assert "lock" in str(error)  # noqa: PT017
                    assert isinstance(error.__context__, KeyboardInterrupt)  # noqa: PT017
                now = vars(model)
                outcomes.append(sum(now[key] is value for key, value in first.items()))
                assert limits() == before
                assert get_config() == settings
                # What is not fitted, such as a parameter, is the same object in any case.
                assert outcomes[-1] == len(first) or not any(
                    now[key] is value
                    for key, value in first.items()
                    if isinstance(value, np.ndarray) and key.endswith("_")
                )
                first = dict(now)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
    assert len(first) in outcomes  # some were interrupted


def test_the_limit_on_openmp_is_that_of_the_calling_thread_and_ends():
    with threadpool_limits(2, user_api="openmp"):
        with one_openmp_thread(), one_openmp_thread():
            assert {lib["num_threads"] for lib in openmp()} <= {1}
        assert {lib["num_threads"] for lib in openmp()} <= {2}


def openmp():
    return [lib for lib in threadpool_info() if lib["user_api"] == "openmp"]


def growth(name, n_first, n_fits):
    """Bytes that each of some fits left behind, after others that filled what is kept for later."""
    given = data(name)
    fit(name, *given)
    tracemalloc.start()
    try:
        for _ in range(n_first):
            fit(name, *given)
        gc.collect()
        before, n_threads = tracemalloc.get_traced_memory()[0], threading.active_count()
        for _ in range(n_fits):
            fit(name, *given)
        gc.collect()
        assert threading.active_count() == n_threads
        return (tracemalloc.get_traced_memory()[0] - before) / n_fits
    finally:
        tracemalloc.stop()


# The data have 80 x 30 numbers, 19 kB. Python and NumPy keep small objects to use them again, which
# takes some fits to come to an end. What a fit leaves behind it leaves each time; what another
# thread of the process, such as that of a Dask client, happens to need is not there again.
@every_estimator
def test_memory_does_not_grow_with_the_number_of_fits(name):
    assert any(growth(name, 1, 3) < 8000 for _ in range(4))


@pytest.mark.slow
@every_estimator
def test_memory_does_not_grow_over_many_fits(name):
    assert growth(name, 50, 200) < 400
