"""The convex problems of RPCA and RPCAG alone, in the units of the data."""

from typing import Any

from robustpca import RPCA, RPCAG

PLAIN: dict[str, Any] = {"noise": 0.0, "center": None, "scale": None, "debias": False}


def rpca(*args, **settings):
    """Principal component pursuit, without an estimate of noise, new units or a refit."""
    return RPCA(*args, **{**PLAIN, **settings})


def rpcag(*args, **settings):
    """The same on a graph."""
    return RPCAG(*args, **{**PLAIN, **settings})
