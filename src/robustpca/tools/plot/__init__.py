"""Pictures of data and of fits, as scikit-learn makes them. Needs matplotlib.

Each ``Display`` holds what it shows as attributes. ``from_estimator`` computes that from a fitted
model, or from a pipeline that ends with one, and draws it; ``plot`` draws it again. Both take the
``ax`` to draw on, and neither shows a window.
"""

from robustpca.tools.plot.course import ConvergenceDisplay, PathDisplay
from robustpca.tools.plot.entries import EntriesDisplay
from robustpca.tools.plot.images import ImagesDisplay, image_rows
from robustpca.tools.plot.rows import OutlierMapDisplay, ScoresDisplay
from robustpca.tools.plot.spectra import LoadingsDisplay, ScreeDisplay, SingularValuesDisplay

__all__ = [
    "ConvergenceDisplay",
    "EntriesDisplay",
    "ImagesDisplay",
    "LoadingsDisplay",
    "OutlierMapDisplay",
    "PathDisplay",
    "ScoresDisplay",
    "ScreeDisplay",
    "SingularValuesDisplay",
    "image_rows",
]
