"""What a person fits: one file a family."""

from sklearn.base import BaseEstimator

from robustpca.models.angular import AngularEmbedding
from robustpca.models.base import SubspaceModel
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
    "all_estimators",
    "all_methods",
    "smoothness_path",
    "sparsity_path",
]


def all_estimators() -> dict[str, type[BaseEstimator]]:
    """Every public estimator of the library by name, in alphabetical order.

    Returns
    -------
    estimators : dict of str to class
        All public names that are estimators.

    Examples
    --------
    >>> from robustpca.models import all_estimators
    >>> all_estimators()["RVFLClassifier"]
    <class 'robustpca.models.rvfl.RVFLClassifier'>
    """
    found = {name: globals()[name] for name in sorted(__all__)}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type) and issubclass(kind, BaseEstimator)
    }


def all_methods() -> dict[str, type[SubspaceModel]]:
    """Those of the estimators that end with a subspace: the methods of robust PCA.

    Returns
    -------
    methods : dict of str to class
        The subclasses of `SubspaceModel` among `all_estimators`.

    Examples
    --------
    >>> from robustpca.models import all_methods
    >>> "EPCA" in all_methods(), "RVFLClassifier" in all_methods()
    (True, False)
    """
    estimators = all_estimators()
    return {name: kind for name, kind in estimators.items() if issubclass(kind, SubspaceModel)}
