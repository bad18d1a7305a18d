"""The shape of the package: imports point downwards, extras are lazy, loading is quick."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import robustpca

ROOT = Path(robustpca.__file__).parent
EXTRAS = {"matplotlib", "jinja2", "dask", "distributed", "zarr", "h5py", "pandas", "typer", "rich"}
EXTRAS |= {"av", "tifffile", "faiss", "numba", "psutil", "cvxpy"}
# From the ground up: a module may import from its own level and from those below.
LEVELS = [
    {"engine"},
    {"parts"},
    {"solvers"},
    {"metrics", "diagnostics", "datasets"},
    {"models"},
    {"testing"},
    {"tools"},
    {"bench"},
    {"cli"},
]


def imports_of(path):
    """Names of the modules that a file imports, and whether it does so on top."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in tree.body) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node in tree.body


def level(name):
    return next(i for i, names in enumerate(LEVELS) if name in names)


def test_imports_point_downwards():
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).with_suffix("").parts[0]
        if part == "__init__":
            continue
        for module, _ in imports_of(path):
            names = module.split(".")
            if names[0] == "robustpca" and len(names) > 1:
                assert level(names[1]) <= level(part), f"{path.name} imports {module}"


@pytest.mark.parametrize("folder", ["engine", "parts", "solvers"])
def test_the_mathematics_knows_neither_estimators_nor_scikit_learn(folder):
    for path in (ROOT / folder).glob("*.py"):
        assert not any(module.startswith("sklearn") for module, _ in imports_of(path)), path


def test_only_one_file_touches_private_names_of_scikit_learn():
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        private = [line for line in text.splitlines() if "sklearn" in line and "import _" in line]
        private += [line for line in text.splitlines() if "from sklearn" in line and "._" in line]
        assert not private or path.name == "params.py", path


def test_extras_are_never_imported_on_top():
    for path in ROOT.rglob("*.py"):
        for module, on_top in imports_of(path):
            assert not (on_top and module.split(".")[0] in EXTRAS), f"{path} imports {module}"


def test_importing_the_package_loads_no_extra():
    code = (
        "import sys, json, sklearn.decomposition; before = set(sys.modules); import robustpca;"
        "print(json.dumps(sorted({m.split('.')[0] for m in set(sys.modules) - before})))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not EXTRAS & set(json.loads(out.stdout))


def test_files_can_be_read_in_one_sitting():
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 700, path
