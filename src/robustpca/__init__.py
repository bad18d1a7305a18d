"""Robust principal component analysis behind one scikit-learn API."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustpca.models import *

__version__ = "0.1.0"

__all__ = [
    "EMPCA",
    "EPCA",
    "FRPCAG",
    "GLPCA",
    "GLRAM",
    "GNMF",
    "L1PCA",
    "MMF",
    "PCAAN",
    "PCAOM",
    "R1PCA",
    "R2DPCA",
    "RGLPCA",
    "RPCA",
    "RPCAG",
    "RSPCA",
    "AngularEmbedding",
    "GrassmannAverage",
    "LaplacianEigenmaps",
    "LpPCA",
    "NCut",
    "Path",
    "RVFLClassifier",
    "Reweighted",
    "ReweightedBilinear",
    "ReweightedPCA",
    "smoothness_path",
    "sparsity_path",
]

if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> Any:
        # scikit-learn takes a second or more to load, which `robustpca --help` does not need.
        if name in __all__:
            return getattr(import_module("robustpca.models"), name)
        raise AttributeError(f"module 'robustpca' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
