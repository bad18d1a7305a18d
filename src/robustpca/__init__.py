"""Robust principal component analysis behind one scikit-learn API.

The public names are those of `robustpca.models` and the functions listed here. They are loaded when
first used: scikit-learn takes a second to import, which `robustpca --help` need not wait for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Modules that need not be imported before they are used.
MODULES = ("datasets", "diagnostics", "metrics", "plot")
# What is defined above the models, and where.
FUNCTIONS = {
    "as_dask": "robustpca.engine.dask_rows",
    "check": "robustpca.tools.checks",
    "checkpoint": "robustpca.engine.checkpoint",
    "clean_entries": "robustpca.tools.jobs",
    "find_rows": "robustpca.tools.jobs",
    "progress_bar": "robustpca.tools.progress",
    "tune": "robustpca.tools.checks",
    "VideoSeparator": "robustpca.tools.video.separator",
    "write_scores": "robustpca.tools.streaming",
}

if TYPE_CHECKING:
    from robustpca import datasets as datasets
    from robustpca import diagnostics as diagnostics
    from robustpca import metrics as metrics
    from robustpca import plot as plot
    from robustpca.engine.checkpoint import checkpoint as checkpoint
    from robustpca.engine.dask_rows import as_dask as as_dask
    from robustpca.models import *
    from robustpca.tools.checks import check as check
    from robustpca.tools.checks import tune as tune
    from robustpca.tools.jobs import clean_entries as clean_entries
    from robustpca.tools.jobs import find_rows as find_rows
    from robustpca.tools.progress import progress_bar as progress_bar
    from robustpca.tools.streaming import write_scores as write_scores
    from robustpca.tools.video.separator import VideoSeparator as VideoSeparator
else:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name in FUNCTIONS:
            return getattr(import_module(FUNCTIONS[name]), name)
        if name in MODULES:
            return import_module(f"robustpca.{name}")
        # `import robustpca.models` asks for names such as __path__ that must stay unknown.
        if name == "__all__" or not name.startswith("__"):
            models = import_module("robustpca.models")
            if name == "__all__":
                return sorted([*models.__all__, *FUNCTIONS])
            if name in models.__all__:
                return getattr(models, name)
        raise AttributeError(f"module 'robustpca' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *MODULES, *__getattr__("__all__")})
