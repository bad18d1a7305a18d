"""Pictures of data and of fits: the public name of `robustpca.tools.plot`."""

from robustpca.tools.plot import *  # noqa: F403
from robustpca.tools.plot import __all__ as __all__
