"""The shape of the package: imports point downwards, extras are lazy, loading is quick."""

import ast
import json
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import robustpca
from robustpca import models

ROOT = Path(robustpca.__file__).parent
EXTRAS = {"matplotlib", "jinja2", "dask", "distributed", "zarr", "h5py", "pandas", "typer", "rich"}
EXTRAS |= {"openpyxl", "pyarrow", "PIL", "av", "tifffile", "faiss", "numba", "psutil", "cvxpy"}
# From the ground up: a module may import from its own level and from those below.
LEVELS = [
    {"engine"},
    {"parts"},
    {"solvers"},
    {"metrics", "diagnostics", "datasets"},
    {"models"},
    {"__init__"},
    {"tools", "plot"},
    {"bench"},
    {"papers"},
    {"cli"},
    {"__main__"},
]


def module_of(path):
    """Name of the module that a file holds."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in ROOT.rglob("*.py")}


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


@cache
def imports_of(path):
    """Names that a file imports when it runs, and whether it does so on top.

    A name imported from a package is either a module of it or something that the package itself
    holds; both are given as ``package.name``.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found, left = [], [(node, True) for node in tree.body]
    while left:
        node, on_top = left.pop()
        if isinstance(node, ast.Import):
            found += [(alias.name, on_top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(f"{node.module}.{alias.name}", on_top) for alias in node.names]
        elif not is_for_type_checkers(node):
            left += [(child, False) for child in ast.iter_child_nodes(node)]
    return found


def imported_modules(path):
    """Those modules of this package that a file imports."""
    for name, _ in imports_of(path):
        if name.partition(".")[0] == "robustpca":
            while name not in MODULES:
                name = name.rpartition(".")[0]
            yield name


def level(module):
    part = module.split(".")[1] if "." in module else "__init__"
    return next(i for i, names in enumerate(LEVELS) if part in names)


def graph():
    """For each module those that it imports."""
    return {module: set(imported_modules(path)) for module, path in MODULES.items()}


def test_imports_point_downwards():
    pairs = [(module, other) for module, others in graph().items() for other in others]
    assert [f"{a} imports {b}" for a, b in pairs if level(b) > level(a)] == []


def test_no_module_imports_itself_through_others():
    try:
        list(TopologicalSorter(graph()).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("folder", ["engine", "parts", "solvers"])
def test_the_mathematics_knows_neither_estimators_nor_scikit_learn(folder):
    for path in (ROOT / folder).glob("*.py"):
        assert not any(name.startswith("sklearn") for name, _ in imports_of(path)), path


def test_only_one_file_touches_private_names_of_scikit_learn():
    for path in MODULES.values():
        private = [
            name
            for name, _ in imports_of(path)
            if name.startswith("sklearn.") and any(p.startswith("_") for p in name.split("."))
        ]
        assert not private or path.name == "params.py", path


def test_extras_are_never_imported_on_top():
    for path in MODULES.values():
        for name, on_top in imports_of(path):
            assert not (on_top and name.split(".")[0] in EXTRAS), f"{path} imports {name}"


def loaded_by(code, after="pass"):
    """Modules that some code loads in a new process, after other code has run."""
    code = f"import sys, json; {after}; before = set(sys.modules); {code}"
    code += "; print(json.dumps(sorted(set(sys.modules) - before)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(out.stdout.splitlines()[-1]))


def test_importing_the_package_loads_no_extra():
    loaded = loaded_by("import robustpca.models", after="import sklearn.decomposition")
    assert "robustpca.models.lowrank" in loaded
    assert not EXTRAS & {name.split(".")[0] for name in loaded}


def test_help_loads_no_estimators():
    pytest.importorskip("typer")
    help_ = "from robustpca.cli.app import application as a; a()(['--help'], standalone_mode=False)"
    loaded = loaded_by(help_)
    assert "robustpca.cli.app" in loaded
    assert not loaded & {"numpy", "sklearn", "robustpca.models", "robustpca.bench"}


def test_public_names_are_those_of_the_models_and_the_jobs():
    assert set(robustpca.__all__) == {*models.__all__, *robustpca.FUNCTIONS}
    assert all(callable(getattr(robustpca, name)) for name in robustpca.FUNCTIONS)
    assert all(getattr(robustpca, name) is getattr(models, name) for name in models.__all__)
    assert set(robustpca.__all__) <= set(dir(robustpca))
    with pytest.raises(AttributeError, match="no attribute 'NoPCA'"):
        robustpca.NoPCA  # noqa: B018


def test_files_can_be_read_in_one_sitting():
    # Half of a file of models is documentation of its parameters.
    for path in MODULES.values():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 800, path
