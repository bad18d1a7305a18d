"""Robust principal component analysis behind one scikit-learn API."""

from robustpca.angular import *
from robustpca.bilinear import *
from robustpca.directions import *
from robustpca.eigenmaps import *
from robustpca.lowrank import *
from robustpca.meta import *
from robustpca.nonnegative import *
from robustpca.paths import *
from robustpca.reweighted import *
from robustpca.rvfl import *
from robustpca.spectral import *

__version__ = "0.1.0"
