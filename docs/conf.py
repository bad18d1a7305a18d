"""Settings of the documentation."""

from pathlib import Path

import robustpca
from robustpca import datasets, metrics
from robustpca.models import all_estimators

# The API pages find methods by themselves, so the page that lists them is written here.
names = sorted({*all_estimators(), "sparsity_path", "smoothness_path"})
names += [f"datasets.{name}" for name in datasets.__all__]
names += [f"metrics.{name}" for name in metrics.__all__]
names += ["models.all_estimators", "models.all_methods"]
listing = "".join(f"   robustpca.{name}\n" for name in names)
(Path(__file__).parent / "api.rst").write_text(
    f"API\n===\n\n.. autosummary::\n   :toctree: generated\n\n{listing}", encoding="utf-8"
)

project = "robustpca"
author = copyright = "the robustpca developers"
release = version = robustpca.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax"]
extensions += ["myst_parser", "numpydoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
# Methods inherited from scikit-learn point to pages of its documentation.
suppress_warnings = ["ref.ref"]
numpydoc_show_class_members = False
exclude_patterns = ["build"]
html_theme = "alabaster"
html_theme_options = {"description": "Robust PCA behind one scikit-learn API"}
