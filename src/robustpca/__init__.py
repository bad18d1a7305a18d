"""Robust principal component analysis behind one scikit-learn API.

The public names are those of `robustpca.models`, and `as_dask`. They are loaded when first used:
scikit-learn takes a second to import, which `robustpca --help` need not wait for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from robustpca.engine.rows import as_dask as as_dask
    from robustpca.models import *
else:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name == "as_dask":
            return import_module("robustpca.engine.rows").as_dask
        # `import robustpca.models` asks for names such as __path__ that must stay unknown.
        if name == "__all__" or not name.startswith("__"):
            models = import_module("robustpca.models")
            if name == "__all__":
                return sorted([*models.__all__, "as_dask"])
            if name in models.__all__:
                return getattr(models, name)
        raise AttributeError(f"module 'robustpca' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
