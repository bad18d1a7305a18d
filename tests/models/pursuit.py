"""The convex problems of RPCA and RPCAG alone, in the units of the data, and planted data."""

from typing import Any

import numpy as np
import pytest

from robustpca import FRPCAG, RPCA, RPCAG

PLAIN: dict[str, Any] = {"noise": 0.0, "center": None, "scale": None, "debias": False}


def rpca(*args, **settings):
    """Principal component pursuit, without an estimate of noise, new units or a refit."""
    return RPCA(*args, **{**PLAIN, **settings})


def rpcag(*args, **settings):
    """The same on a graph."""
    return RPCAG(*args, **{**PLAIN, **settings})


# On random data nothing is smooth, and it does not matter here.
full_rank_is_fine = pytest.mark.filterwarnings("ignore:FRPCAG. low_rank_ has full rank")
SOLVERS = {
    "auto": rpca(),
    "admm": rpca(solver="admm"),
    "ialm": rpca(solver="ialm"),
    "altproj": rpca(3, solver="altproj"),
    "sampled": rpca(3, solver="sampled"),
}
METHODS = {
    **SOLVERS,
    "noise": rpca(noise=0.05),
    "RPCAG": rpcag(smoothness=0.3, tol=1e-7),
    "FRPCAG": FRPCAG(tol=1e-8),
}


def planted(seed, n=120, d=60, rank=3, *, corrupted=0.05, noise=0.0, missing=0.0):
    """Data, and the low-rank and the sparse part that they were made of."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    S = np.where(rng.random((n, d)) < corrupted, rng.uniform(-10, 10, (n, d)), 0.0)
    X = L + S + noise * rng.normal(size=(n, d))
    X[rng.random((n, d)) < missing] = np.nan
    return X, L, S


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)
