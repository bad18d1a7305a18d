"""Which changes of code change the keys of results: on a small package, and on this library."""

import ast
import inspect
import re
import shutil
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import robustpca
from robustpca import EPCA, RPCA
from robustpca.bench.reached import Sources

LIBRARY = Path(robustpca.__file__).parent
HERE = Sources()
SMALL = {
    "__init__": "from small.models import Robust\n",
    "models": '''
"""Models."""
from dataclasses import dataclass
from small import solvers
from small.base import *
from small.losses import LOSSES

@dataclass(frozen=True)
class Robust(Model):
    """Fits robustly."""

    loss: str = "huber"
    verbose: int = 0

    def fit(self, X: list[float]) -> "Robust":
        """Fit."""
        loss: type = LOSSES[self.loss]()  # by name
        if not X:
            raise ValueError(f"X has {len(X)} samples: " + "more are needed")
        solved = solvers.solve(X, loss)
        if self.verbose:
            print("done after", solved)
        return solved


class Plain(Model):
    def fit(self, X):
        return solvers.descend(X)
''',
    "base": """
class Model:
    tolerance = 1e-6

    def score(self, X):
        from small.scores import error as wrong

        return wrong(X)
""",
    "losses": """
from functools import partial
from small.registry import Registry

class Huber:
    cutoff = 1.345

class Square:
    pass

class Late:
    width = 2

LOSSES = Registry({"huber": Huber, "square": partial(Square)})

LOSSES["late"] = Late

@LOSSES.add
class Decorated:
    share = 0.5
""",
    "registry": """
class Registry(dict):
    def add(self, kind):
        self[kind.__name__] = kind
        return kind
""",
    "solvers": """
from warnings import warn
from small.kernels import compiled, kernel

STEPS, RATE = 100, 0.5
SIZE = 7
LOW, HIGH = sorted([SIZE - 7, 2])

def solve(X, loss, rate=RATE):
    step = lambda x: rate * x
    for count in range(STEPS):
        X = [step(descend) for descend in compiled(kernel)(X, loss) if LOW < loss.error("mean")]
    if count == STEPS:
        warn("It has not converged.", RuntimeWarning, stacklevel=2)
    return X

def descend(X):
    return X[:SIZE]
""",
    "kernels": """
import numpy as np

try:
    from small.fast import total
except ImportError:
    total = sum

def kernel(X, loss):
    return total(np.linalg.norm(X))

def compiled(function):
    return function
""",
    "fast": "def total(x):\n    return x + 0.25\n",
    "scores": "def error(X):\n    return 3 * len(X)\n",
}
# Edits of files: module, text and new text.
WITHOUT_EFFECT = {
    "docstring": [("models", "Fits robustly", "Is fitted robustly")],
    "no docstring": [("models", '        """Fit."""\n', "")],
    "comment": [("models", "# by name", "# its name")],
    "layout": [("solvers", "rate * x", "(rate\n        * x)")],
    "error": [("models", 'samples: " + "more are needed"', 'rows of {X}, which are too few"')],
    "warning": [("solvers", '"It has not converged."', 'f"{X} is bad"')],
    "stack level": [("solvers", "stacklevel=2", "stacklevel=3")],
    "output": [("models", '"done after"', '"ended after"')],
    "annotation": [("models", "X: list[float]", "X: set[int]")],
    "local annotation": [("models", "loss: type =", "loss =")],
    "type of a field": [("models", "loss: str =", "loss: object =")],
    "function by another name": [("kernels", "def kernel", "def norms"),
                                 ("solvers", ", kernel", ", norms"),
                                 ("solvers", "(kernel)", "(norms)")],
    "class by another name": [("losses", "Huber", "HuberLoss")],
    "import by another name": [("kernels", "import numpy as np", "from numpy import linalg"),
                               ("kernels", "np.linalg", "linalg")],
    "another solver": [("solvers", "X[:SIZE]", "X[1:SIZE]")],
    "another model": [("models", "solvers.descend(X)", "X")],
    "one more model": [("models", "class Plain", "class New(Plain):\n    pass\n\nclass Plain")],
    "one more module": [("new", "", "from small.models import *\n\nSTEPS = 7\n")],
    "module by another name": [("loops", "", SMALL["solvers"]),
                               ("models", "import solvers", "import loops"),
                               ("models", "solvers.", "loops.")],
    "function in another module": [
        ("kernels", "def kernel(X, loss):\n    return total(np.linalg.norm(X))\n", ""),
        ("solvers", ", kernel", "\nfrom small.moved import kernel"),
        ("moved", "", "import numpy.linalg as la\nfrom small import kernels\n\n"
                      "def kernel(X, loss):\n    return kernels.total(la.norm(X))\n"),
    ],
}  # fmt: skip
WITH_EFFECT = {
    "constant": [("solvers", "STEPS, RATE = 100", "STEPS, RATE = 101")],
    "default": [("solvers", "0.5", "0.6")],
    "place in a sequence": [("solvers", "LOW, HIGH", "HIGH, LOW")],
    "text": [("solvers", '"mean"', '"median"')],
    "lambda": [("solvers", "rate * x", "rate + x")],
    "kernel": [("kernels", "total(", "-total(")],
    "fallback": [("kernels", "total = sum", "total = max")],
    "optional import": [("fast", "0.25", "0.75")],
    "base class": [("base", "1e-6", "1e-7")],
    "local import": [("scores", "3", "4")],
    "entry of a registry": [("losses", "1.345", "1.5")],
    "partial in a registry": [("losses", "    pass", "    power = 2")],
    "entry that is added": [("losses", "width = 2", "width = 3")],
    "entry that is decorated": [("losses", "0.5", "0.6")],
    "names in a registry": [("losses", '"huber": Huber', '"huber": Late')],
    "field": [("models", "    verbose: int = 0\n", "")],
    "function of another package": [("kernels", "norm(X)", "det(X)")],
    "module of another package": [("kernels", "import numpy", "import dask.array")],
    "kind of an error": [("models", "ValueError", "TypeError")],
}


class Package:
    """A folder of source files that can be edited, and the hashes of what is in them."""

    def __init__(self, folder):
        self.folder = folder

    def edit(self, module, old, new):
        path = self.folder / f"{module}.py"
        text = path.read_text() if path.exists() else ""
        assert old in text
        path.write_text(text.replace(old, new) if old else new)

    def sources(self):
        return Sources({self.folder.name: self.folder / "__init__.py"})

    def digest(self, address):
        return self.sources().digest(address)


@pytest.fixture
def small(tmp_path):
    package = Package(tmp_path / "small")
    package.folder.mkdir()
    for name, text in SMALL.items():
        package.edit(name, "", text)
    return package


@pytest.mark.parametrize("change", WITHOUT_EFFECT)
def test_what_cannot_change_a_number_changes_no_key(small, change):
    before = small.digest("small.models:Robust")
    for edit in WITHOUT_EFFECT[change]:
        small.edit(*edit)
    assert small.digest("small.models:Robust") == before


@pytest.mark.parametrize("change", WITH_EFFECT)
def test_what_can_change_a_number_changes_the_key(small, change):
    before = small.digest("small.models:Robust")
    for edit in WITH_EFFECT[change]:
        small.edit(*edit)
    assert small.digest("small.models:Robust") != before


def test_the_order_of_definitions_does_not_count(small):
    before = small.digest("small.models:Robust")
    for path in small.folder.glob("*.py"):
        body = ast.parse(path.read_text()).body
        defined = [part for part in body if isinstance(part, ast.FunctionDef | ast.ClassDef)]
        rest = [part for part in body if part not in defined]
        path.write_text("\n".join(map(ast.unparse, rest + defined[::-1])))
    assert small.digest("small.models:Robust") == before


def test_where_a_class_is_imported_from_does_not_count(small):
    before = small.digest("small.models:Robust")
    assert small.digest("small:Robust") == before
    small.edit("elsewhere", "", SMALL["models"])
    assert small.digest("small.elsewhere:Robust") == before
    assert small.digest("small.models:Robust.fit") != before


def test_where_it_is_unknown_what_is_taken_from_a_module_all_of_it_counts(small):
    small.edit(
        "chosen", "", "from small import losses\n\ndef f(name):\n    return getattr(losses, name)\n"
    )
    before = small.digest("small.chosen:f")
    small.edit("losses", "1.345", "1.5")
    assert small.digest("small.chosen:f") != before


def test_leaves_are_not_followed(small):
    sources = Sources({"small": small.folder / "__init__.py"}, leaves=["small.solvers:solve"])
    names = sources.reached("small:Robust")
    assert ("small.solvers", "solve") in names
    assert ("small.kernels", "kernel") not in names


def test_installed_packages_have_no_source():
    assert HERE.digest("sklearn.decomposition:PCA") is None
    assert HERE.digest("builtins:sorted") is None
    assert HERE.digest("json:dumps") is None
    assert HERE.digest("nowhere_to_be_found:f") is None


def address(kind):
    return f"{kind.__module__}:{kind.__qualname__}"


@pytest.fixture
def copied(tmp_path):
    """A copy of this library without comments, blank lines and layout."""
    shutil.copytree(LIBRARY, tmp_path / "robustpca", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (tmp_path / "robustpca").rglob("*.py"):
        path.write_text(ast.unparse(ast.parse(path.read_text(encoding="utf-8"))))
    return Package(tmp_path / "robustpca")


def number_in(sources, keys):
    """A definition among these in a solver that is nothing but a number."""
    for module, name in keys:
        for part in sources.module(module).statements.get(name, ()):
            value = getattr(part, "value", None)
            if ".solvers." in module and isinstance(getattr(value, "value", None), int | float):
                return module, name
    raise LookupError


def test_a_number_in_a_solver_counts_for_those_who_reach_it_alone(copied):
    sources = copied.sources()
    before = {kind: sources.digest(address(kind)) for kind in (EPCA, RPCA)}
    assert before == {kind: HERE.digest(address(kind)) for kind in (EPCA, RPCA)}
    epca, rpca = (sources.reached(address(kind)) for kind in (EPCA, RPCA))
    for changed, kept, keys in ((EPCA, RPCA, {*epca} - {*rpca}), (RPCA, EPCA, {*rpca} - {*epca})):
        module, name = number_in(sources, sorted(keys))
        path = copied.folder.joinpath(*module.split(".")[1:]).with_suffix(".py")
        text = path.read_text()
        path.write_text(text + f"\n{name} = 123456\n")
        edited = copied.sources()
        assert edited.digest(address(changed)) != before[changed]
        assert edited.digest(address(kept)) == before[kept]
        path.write_text(text)


def test_a_reweighted_method_does_not_reach_the_solvers_of_low_rank_methods():
    epca, rpca = (
        {module for module, _ in HERE.reached(address(kind)) if ".solvers." in module}
        for kind in (EPCA, RPCA)
    )
    assert epca
    assert rpca
    assert not epca & rpca


ESTIMATORS = [
    kind
    for kind in (getattr(robustpca, name) for name in robustpca.__all__)
    if inspect.isclass(kind)
    and issubclass(kind, BaseEstimator)
    and kind.__module__.startswith("robustpca.models")  # a video is no table
]


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_all_code_that_a_fit_runs_is_reached(kind, rng):
    X, y = np.abs(rng.normal(size=(30, 12))), np.arange(30) % 3
    names = inspect.signature(kind).parameters
    given = {"image_shape": (3, 4)} if "image_shape" in names else {}
    model = kind(LinearRegression()) if "estimator" in names else kind(**given)
    ran = set()

    def note(frame, event, argument):
        if event == "call":
            ran.add(frame.f_code)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            model.fit(X, y)
            if hasattr(model, "transform"):
                model.transform(X[:5])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    paths = {code: Path(code.co_filename) for code in ran}
    found = {
        (".".join(path.relative_to(LIBRARY.parent).with_suffix("").parts), name)
        for code, path in paths.items()
        if path.is_relative_to(LIBRARY) and (name := re.split(r"\W", code.co_qualname)[0])
    }
    assert found
    assert found <= {*HERE.reached(address(kind))}
