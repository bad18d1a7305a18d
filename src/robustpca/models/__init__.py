"""What a person fits: one file a family."""

from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator

from robustpca.models import (
    advice,
    angular,
    bilinear,
    directions,
    eigenmaps,
    graph,
    lowrank,
    lowrank_graph,
    nonnegative,
    paths,
    reweighted,
    rvfl,
    saving,
    wrapped,
)
from robustpca.models.advice import *
from robustpca.models.angular import *
from robustpca.models.base import SubspaceModel
from robustpca.models.bilinear import *
from robustpca.models.directions import *
from robustpca.models.eigenmaps import *
from robustpca.models.graph import *
from robustpca.models.lowrank import *
from robustpca.models.lowrank_graph import *
from robustpca.models.nonnegative import *
from robustpca.models.paths import *
from robustpca.models.reweighted import *
from robustpca.models.rvfl import *
from robustpca.models.saving import *
from robustpca.models.wrapped import *

# Each family lists its public names; a new method is listed there and nowhere else.
FAMILIES = (
    advice,
    angular,
    bilinear,
    directions,
    eigenmaps,
    graph,
    lowrank,
    lowrank_graph,
    nonnegative,
    paths,
    reweighted,
    rvfl,
    saving,
    wrapped,
)
if not TYPE_CHECKING:  # a type checker reads the star imports, and not this sum
    __all__ = ["all_estimators", "all_methods"]
    __all__ += [name for family in FAMILIES for name in family.__all__]


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
    found = {name: getattr(family, name) for family in FAMILIES for name in family.__all__}
    return {
        name: kind
        for name, kind in sorted(found.items())
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
