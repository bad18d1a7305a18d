"""Settings of the documentation."""

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sklearn.base import BaseEstimator

import robustpca
from robustpca import bench, datasets, diagnostics, metrics, parts


def public(module: ModuleType) -> dict[str, object]:
    """Classes and functions that a module exports, or defines if it has no ``__all__``."""
    found = vars(module)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in found.items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    values = {name: found[name] for name in sorted(names)}
    return {
        name: value
        for name, value in values.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }


def section(title: str, text: str | None, prefix: str, names: list[str]) -> str:
    """A heading, a text, and a table of names that link to pages of their own."""
    table = "".join(f"   {prefix}.{name}\n" for name in names)
    heading = f"{title}\n{'-' * len(title)}\n\n{text}\n\n"
    return f"{heading}.. autosummary::\n   :toctree: generated\n\n{table}\n"


def api_page() -> str:
    """All public names; a new method or part is found without an edit here."""
    top = public(robustpca)
    estimators = [
        name
        for name, value in top.items()
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    ]
    others = [name for name in top if name not in estimators]
    page = "API\n===\n\n"
    page += section("Estimators", "What is fitted to data.", "robustpca", estimators)
    page += section("Around a fit", "Parameter paths, and data on a cluster.", "robustpca", others)
    modules = [
        import_module(f"{parts.__name__}.{found.name}")
        for found in pkgutil.iter_modules(parts.__path__)
    ]
    for module in [*modules, datasets, metrics, diagnostics, bench]:
        page += section(module.__name__, inspect.getdoc(module), module.__name__, [*public(module)])
    return page


(Path(__file__).parent / "api.rst").write_text(api_page(), encoding="utf-8")

project = "robustpca"
author = copyright = "the robustpca developers"
release = version = robustpca.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax"]
extensions += ["myst_parser", "numpydoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
templates_path = ["templates"]
# Methods inherited from scikit-learn point to pages of its documentation.
suppress_warnings = ["ref.ref", "ref.term"]
numpydoc_show_class_members = False
exclude_patterns = ["build", "templates"]
html_theme = "alabaster"
html_theme_options = {"description": "Robust PCA behind one scikit-learn API"}
