"""Data sets and methods for tests of the runner; workers import them by name."""

import os
import signal
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from robustpca.bench import Store, Table, runner
from robustpca.datasets import reset_entries
from robustpca.metrics import reconstruction_error

N_CELLS = 6  # of the table that is run and killed


@dataclass(frozen=True)
class Made:
    X: Any
    y: Any = None
    image_shape: Any = None
    extras: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Cloud:
    """A data set drawn anew each time, always the same for the same parameters."""

    n_samples: int = 40
    n_features: int = 6
    seed: int = 0

    def __call__(self):
        rng = np.random.default_rng(self.seed)
        X = rng.normal(size=(self.n_samples, self.n_features)) * np.arange(1, self.n_features + 1)
        return Made(X, y=np.arange(self.n_samples) % 3)


def drawn(random_state=7):
    """A data set that is another one for each seed, and says so."""
    X = np.random.default_rng(random_state).normal(size=(20, 4))
    return Made(X, extras={"seed": random_state})


def absent():
    raise FileNotFoundError("No file of this set. Fetch it.")


class Gated(PCA):
    """Stops at a cell of which the environment tells, and leaves the number of its process."""

    def fit(self, X, y=None):
        if os.environ.get("GATE_AT") == str(self.n_components):
            draft = Path(os.environ["GATE"]).with_suffix(".draft")
            draft.write_text(str(os.getpid()))
            draft.rename(os.environ["GATE"])
            time.sleep(3600)
        return super().fit(X)


class Timed(PCA):
    """Takes 3, 1 and 2 seconds on a clock that it moves itself."""

    now, left = 0.0, []

    def fit(self, X, y=None):
        Timed.now += self.left.pop()
        return super().fit(X)


class Failing(PCA):
    def fit(self, X, y=None):
        raise ValueError("no luck today")


class Killed(PCA):
    def fit(self, X, y=None):
        os.kill(os.getpid(), signal.SIGKILL)


class Leaving(PCA):
    def fit(self, X, y=None):
        os._exit(3)


class Hanging(PCA):
    """Never comes back."""

    def fit(self, X, y=None):
        time.sleep(3600)


class Unsendable(PCA):
    def __getstate__(self):
        raise RuntimeError("stays at home")


class Empty(PCA):
    """Fits, but gives no number."""

    def inverse_transform(self, X):
        return super().inverse_transform(X) * np.inf


class Greedy(PCA):
    """Takes 64 MiB for a moment."""

    def fit(self, X, y=None):
        np.ones(2**23).sum()
        return super().fit(X)


def small_table(methods=None, **parts):
    parts = {
        "name": "small",
        "title": "Small",
        "datasets": {"cloud": Cloud()},
        "corruption": partial(reset_entries, samples=0.2, features=0.5),
        "methods": methods or {"PCA": PCA()},
        "vary": {"n_components": [1, 2]},
        "score": reconstruction_error,
        "seeds": 2,
        **parts,
    }
    return Table(**parts)


def run_gated(out, gate="", at=0, method="fork"):
    """Run cells with 1, 2, ... components, and stop at one of them for good."""
    os.environ.update(GATE=str(gate), GATE_AT=str(at))
    runner.CONTEXT = get_context(method)  # a fork takes no time, since all is imported
    table = small_table(
        {"gated": Gated()},
        datasets={"cloud": Cloud(n_features=N_CELLS)},
        vary={"n_components": list(range(1, N_CELLS + 1))},
        seeds=1,
    )
    runner.run([table], out, jobs=1)


def write_rows(path):
    """Write rows until the end of the process."""
    with Store(path) as store:
        for number in count():
            store.append({"key": str(number), "filling": "x" * 2000})
