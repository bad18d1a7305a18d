import io
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from robustpca import EPCA, L1PCA, RPCA, progress_bar
from robustpca.engine.progress import Progress
from robustpca.tools import progress as module

X = np.random.default_rng(0).normal(size=(60, 8)) * np.arange(1, 9)
MODELS = [EPCA(2), L1PCA(2), RPCA(noise=0)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "model", [EPCA(2), L1PCA(2), RPCA(noise=0)], ids=lambda m: type(m).__name__
)
def test_the_line_names_the_method_and_its_last_change(model):
    stream = io.StringIO()
    model.set_params(callback=progress_bar(stream)).fit(X)
    lines = stream.getvalue().split("\r")
    assert lines[0].startswith(f"{type(model).__name__}: pass 1")
    assert f"(ends at {model.tol:.0e})" in lines[-1]
    assert "\n" not in stream.getvalue()


def test_a_second_fit_begins_a_line_of_its_own():
    stream = io.StringIO()
    bar = progress_bar(stream)
    EPCA(2, callback=bar).fit(X)
    EPCA(2, callback=bar).fit(X)
    assert len(stream.getvalue().split("\n")) == 2


def test_on_a_terminal_every_line_is_ended_and_written_over():
    stream = Terminal()
    EPCA(2, callback=progress_bar(stream)).fit(X)
    first, *others = stream.getvalue().split("\n")
    assert not first.startswith(module.UP)
    assert others.pop() == ""
    assert all(line.startswith(module.UP) for line in others)


def test_time_left_follows_from_the_rate_of_convergence(monkeypatch):
    clock = iter(np.arange(0.0, 100.0, 2.0))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    bar = progress_bar(stream)
    for iteration in range(1, 5):  # a digit a pass, and a pass takes two seconds
        bar(Progress(iteration, 1.0, 10.0**-iteration, method="EPCA", tol=1e-9, max_iter=100))
    assert stream.getvalue().endswith("about 10 s left")
    bar(Progress(5, 1.0, 1e-5, method="EPCA", tol=1e-9, max_iter=7))
    assert stream.getvalue().rstrip().endswith("about 4 s left")


def test_it_can_be_cloned_and_pickled():
    model = EPCA(2, callback=progress_bar(io.StringIO()))
    assert clone(model).callback.stream is model.callback.stream
    assert pickle.loads(pickle.dumps(model)).callback.stream is None
