"""Robust principal component analysis behind one scikit-learn API."""

from robustpca.engine.rows import as_dask
from robustpca.models.angular import AngularEmbedding
from robustpca.models.bilinear import GLRAM, R2DPCA, ReweightedBilinear
from robustpca.models.directions import EMPCA, L1PCA, RSPCA, GrassmannAverage, LpPCA
from robustpca.models.eigenmaps import LaplacianEigenmaps, NCut
from robustpca.models.graph import GLPCA, MMF, RGLPCA
from robustpca.models.lowrank import FRPCAG, RPCA, RPCAG
from robustpca.models.nonnegative import GNMF
from robustpca.models.paths import Path, smoothness_path, sparsity_path
from robustpca.models.reweighted import EPCA, PCAAN, PCAOM, R1PCA, ReweightedPCA
from robustpca.models.rvfl import RVFLClassifier
from robustpca.models.wrapped import Reweighted

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
    "as_dask",
    "smoothness_path",
    "sparsity_path",
]
