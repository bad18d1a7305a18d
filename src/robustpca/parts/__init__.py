"""What methods are put together from: losses, weightings, centres, graphs.

Everything here may be passed to the estimators that take it, and serves as a pattern for your
own: a loss is an object with `values` and `weights`, a weighting one with `solve`, a graph a
SciPy sparse matrix. `LOSSES`, `WEIGHTINGS`, `CENTERS` and `ENTRY_LOSSES` are the registries of
names.
"""

from robustpca.parts.centers import CENTERS
from robustpca.parts.entry_losses import ENTRY_LOSSES, EntryLoss, HuberNorm, L1Norm, SquaredNorm
from robustpca.parts.graphs import grid_graph, knn_graph, laplacian
from robustpca.parts.losses import (
    LOSSES,
    CappedLoss,
    CauchyLoss,
    HuberLoss,
    L21Loss,
    Loss,
    SigmaLoss,
    SquaredLoss,
)
from robustpca.parts.units import Differences, Units, column_units, unit_differences
from robustpca.parts.weightings import (
    WEIGHTINGS,
    AdaptiveNeighbors,
    CoRobust,
    Uniform,
    Weighted,
    Weighting,
)

__all__ = [
    "CENTERS",
    "ENTRY_LOSSES",
    "LOSSES",
    "WEIGHTINGS",
    "AdaptiveNeighbors",
    "CappedLoss",
    "CauchyLoss",
    "CoRobust",
    "Differences",
    "EntryLoss",
    "HuberLoss",
    "HuberNorm",
    "L1Norm",
    "L21Loss",
    "Loss",
    "SigmaLoss",
    "SquaredLoss",
    "SquaredNorm",
    "Uniform",
    "Units",
    "Weighted",
    "Weighting",
    "column_units",
    "grid_graph",
    "knn_graph",
    "laplacian",
    "unit_differences",
]
