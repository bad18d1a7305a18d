"""Settings of the documentation, and the pages that are generated from the code.

The page of the API lists all public names, the page of the parts what is in the registries. A new
method or part therefore needs no edit here.
"""

import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import robustpca
from robustpca import bench, datasets, diagnostics, metrics, papers, parts, plot
from robustpca.models import all_estimators
from robustpca.parts import centers, graphs
from robustpca.tools import files

sys.path.insert(0, str(Path(__file__).parent))  # for `picture`


def api_page() -> str:
    """Public names, in sections, each with a page of its own."""
    others = set(public(robustpca)) - set(all_estimators())
    page = heading("API", "=")
    page += heading("Estimators") + summaries("robustpca", all_estimators())
    page += heading("Around a fit") + summaries("robustpca", others)
    modules = (plot, files, parts, centers, graphs, datasets, metrics, diagnostics, bench, papers)
    for module in modules:
        about = (inspect.getdoc(module) or "").partition("\n\nExamples\n")[0]
        page += heading(module.__name__) + f"{about}\n\n"
        page += summaries(module.__name__, public(module))
    return page


def public(module: ModuleType) -> list[str]:
    """Classes and functions that a module exports, or defines if it has no ``__all__``."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    values = {name: getattr(module, name) for name in names}
    return [name for name, value in values.items() if callable(value)]


def parts_page() -> str:
    """Losses, weightings and centres by the names under which estimators accept them."""
    page = heading("Names of parts", "=")
    page += table("Losses of residuals", "``loss=``", parts.LOSSES)
    page += table("Weightings", "``weighting=``", parts.WEIGHTINGS)
    page += table("Centres", "``center=``", parts.CENTERS)
    page += table("Losses of entries", "``loss=``", parts.ENTRY_LOSSES)
    return page


def table(title: str, argument: str, registry: Mapping[str, Any]) -> str:
    """A table of the entries of a registry: name, object with its parameters, summary."""
    rows = [(argument, "object", "definition")]
    for name, entry in registry.items():
        summary = (inspect.getdoc(entry) or "").partition("\n\n")[0].replace("\n", " ")
        home = parts if hasattr(parts, entry.__name__) else inspect.getmodule(entry)
        call = ", ".join(
            f"{each.name}={each.default!r}"
            for each in inspect.signature(entry).parameters.values()
            if each.default is not each.empty
        )
        link = f":obj:`{entry.__name__}({call}) <{home.__name__}.{entry.__name__}>`"
        rows.append((f'``"{name}"``', link, summary))
    lines = [f"   * - {row[0]}\n     - {row[1]}\n     - {row[2]}\n" for row in rows]
    return heading(title) + ".. list-table::\n   :header-rows: 1\n\n" + "".join(lines) + "\n"


def heading(title: str, underline: str = "-") -> str:
    """A title in reStructuredText."""
    return f"{title}\n{underline * len(title)}\n\n"


def summaries(prefix: str, names: Iterable[str]) -> str:
    """A table of names that link to pages of their own."""
    lines = "".join(f"   {prefix}.{name}\n" for name in sorted(names))
    return f".. autosummary::\n   :toctree: generated\n\n{lines}\n"


for name, page in {"api": api_page(), "parts": parts_page()}.items():
    (Path(__file__).parent / f"{name}.rst").write_text(page, encoding="utf-8")

project = "robustpca"
author = copyright = "the robustpca developers"
release = version = robustpca.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax"]
extensions += ["myst_parser", "numpydoc", "sphinx_design", "sphinx_gallery.gen_gallery", "picture"]
extensions += ["sphinx-mathjax-offline"]  # formulas without a network
exclude_patterns = ["build", "templates"]
templates_path = ["templates"]
# Methods inherited from scikit-learn point to pages of its documentation.
suppress_warnings = ["ref.ref", "ref.term"]

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "picture.place_of_example",
    "image_scrapers": ("matplotlib",),
    "abort_on_example_error": True,
    "thumbnail_size": (600, 300),
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {"text": "robustpca"},
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without others beside them need no list of these.
html_sidebars = {page: [] for page in ("getting_started", "trouble", "command_line", "gallery/*")}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
