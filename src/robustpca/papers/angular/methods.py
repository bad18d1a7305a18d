"""The methods that the angular paper compares on videos and faces."""

from typing import Any

from sklearn.decomposition import PCA

from robustpca import EMPCA, RPCA, AngularEmbedding, GrassmannAverage
from robustpca.papers.pursuit import PLAIN

__all__ = ["compared_methods"]


def compared_methods(n_components: int) -> dict[str, Any]:
    """PCA, three robust methods and AE, with so many components where they have a number.

    The paper takes centred data, that is AE from the mean; the geometric median is ours.
    """
    return {
        "PCA": PCA(n_components),
        "EM PCA": EMPCA(n_components, tol=1e-4),
        "Inexact ALM": RPCA(**PLAIN, solver="ialm"),
        "TGA": GrassmannAverage(n_components, trim=0.5, tol=1e-4),
        "AE": AngularEmbedding(n_components),
        "AE from the mean": AngularEmbedding(n_components, center="mean"),
    }
