"""RPCA and RPCAG as the papers have them: the convex problem alone, in the units of the data."""

from typing import Any

__all__ = ["ADMM", "PLAIN"]

PLAIN: dict[str, Any] = {"noise": 0.0, "center": None, "scale": None}
ADMM: dict[str, Any] = {**PLAIN, "solver": "admm"}
