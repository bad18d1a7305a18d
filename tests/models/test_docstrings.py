"""Docstrings: complete, true, and in one voice where estimators share a parameter."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import robustpca
from robustpca import datasets, diagnostics, metrics, parts, plot
from robustpca.models import all_estimators

ESTIMATORS = all_estimators()
SOURCE = Path(robustpca.__file__).parent
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
MODULES = [robustpca, plot, parts, datasets, metrics, diagnostics]


def section(kind, title):
    """Entries of a section of a docstring: the type and the description of each name."""
    lines = inspect.getdoc(kind).splitlines()
    if title not in lines:
        return {}
    at, entries, names = lines.index(title), {}, ()
    for line, below in zip(lines[at + 2 :], [*lines[at + 3 :], ""], strict=True):
        if below and set(below) == {"-"}:
            break
        if line and not line.startswith(" "):
            head, _, what = line.partition(" : ")
            names = head.split(", ")
            entries |= dict.fromkeys(names, (what, ""))
        elif line:
            for one in names:
                what, text = entries[one]
                entries[one] = what, f"{text} {line.strip()}".strip()
    return entries


def defaults(kind):
    """Parameters of a constructor and their defaults."""
    return {name: p.default for name, p in inspect.signature(kind).parameters.items()}


@every_estimator
def test_every_parameter_is_documented_with_its_true_default(name):
    documented, true = section(ESTIMATORS[name], "Parameters"), defaults(ESTIMATORS[name])
    assert list(documented) == list(true)
    for parameter, (what, text) in documented.items():
        assert text, parameter
        _, found, default = what.partition("default=")
        if true[parameter] is inspect.Parameter.empty:
            assert not found, parameter
        else:
            assert ast.literal_eval(default) == true[parameter], parameter


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_functions_and_methods_document_their_parameters(module):
    public = [getattr(module, name) for name in module.__all__]
    functions = [value for value in public if inspect.isfunction(value)]
    for kind in filter(inspect.isclass, public):
        for name, value in inspect.getmembers(kind):
            if not name.startswith("_") and (inspect.isfunction(value) or inspect.ismethod(value)):
                functions.append(value)
    ours = [each for each in functions if each.__module__.startswith("robustpca")]
    assert ours
    for function in ours:
        true = [name for name in defaults(function) if name != "self"]
        documented = [name.lstrip("*") for name in section(function, "Parameters")]
        assert documented == true, function.__qualname__


@every_estimator
def test_every_attribute_has_a_type_and_a_description(name):
    attributes = section(ESTIMATORS[name], "Attributes")
    assert attributes
    assert all(what and text for what, text in attributes.values())
    assert all(attribute.endswith("_") for attribute in attributes)


@every_estimator
def test_documentation_cites_the_paper_and_has_a_row_in_the_table(name):
    text = inspect.getdoc(ESTIMATORS[name])
    assert re.search(r"^References\n-+\n\.\. \[1\] ", text, re.MULTILINE)
    assert re.search(r"^Examples\n-+\n>>> ", text, re.MULTILINE)
    table = Path(__file__).parents[2] / "docs" / "methods.md"
    assert f"| `{name}` |" in table.read_text(encoding="utf-8")


DIRECTIONS = "EMPCA GrassmannAverage L1PCA LpPCA RSPCA"
GREEDY = "GrassmannAverage L1PCA LpPCA RSPCA"
ENTRIES = "FRPCAG RPCA RPCAG"
IMAGES = "GLRAM R2DPCA ReweightedBilinear"

VARIANCES = {
    "AngularEmbedding EMAngularEmbedding": "is robust by itself",
    DIRECTIONS: "is about a centre that is held",
    ENTRIES: "belongs to the low-rank part",
    "GLPCA MMF RGLPCA": "has no weights",
}
# What a parameter or an attribute is for some estimators and not for the others that have it,
# and why. Estimators in one line share one description.
OWN_DESCRIPTIONS = {
    "beta": {"RGLPCA": "scales the rows first"},
    "callback": {
        f"EMAngularEmbedding {DIRECTIONS}": "tells which component is at work",
        f"GNMF {ENTRIES}": "has no weights of samples",
        "RGLPCA": "tells which phase is at work",
        "Reweighted": "is called after fits, not passes",
    },
    "center": {
        "AngularEmbedding AngularTrimmer EMAngularEmbedding": "may be a point, and matters more",
        "GLRAM": "knows the two of its paper only",
        "GrassmannAverage": "may follow the trimming",
        "RPCA RPCAG": "is optional",
        "ReweightedBilinear ReweightedPCA": "may be fitted along",
    },
    "estimator": {"AngularTrimmer": "may be anything, or nothing"},
    "estimator_": {"AngularTrimmer": "knows no weights"},
    "gamma": {"EPCA": "is an exponent", "PCAAN": "is a regulariser"},
    "init": {
        "GLRAM": "is a start of two sides",
        "GNMF": "is a start that is not negative",
        "GrassmannAverage": "has no automatic choice",
        "L1PCA LpPCA RSPCA": "is a start of directions",
        "Reweighted": "is a set of samples, whatever the estimator",
    },
    "loss": {"FRPCAG": "is that of entries", "R1PCA": "is the rho of the paper"},
    "max_angle": {"AngularTrimmer": "always trims"},
    "max_iter": {GREEDY: "holds for each component", "Reweighted": "counts fits"},
    "n_components": {
        "EPCA PCAAN PCAOM R1PCA ReweightedPCA": "may be a share of the variance",
        ENTRIES: "is found after the decomposition, and may be a share",
        IMAGES: "has two sides",
        "GNMF": "is no dimension of a subspace",
        "LaplacianEigenmaps": "is no dimension of a subspace",
    },
    "n_init": {"NCut": "counts starts of k-means"},
    "random_state": {
        "AngularEmbedding": "draws a subspace and anchors",
        "AngularTrimmer": "draws anchors alone",
        "EMAngularEmbedding": "draws directions and anchors",
        "EMPCA": "draws directions",
        "GNMF": "draws a basis and codes",
        "L1PCA LpPCA RSPCA": "draws samples",
        "NCut": "draws centres",
        "RVFLClassifier": "draws nodes",
        "Reweighted": "draws the robust start alone",
    },
    "scale": {"GNMF": "is a choice", "RVFLClassifier": "is a number"},
    "smoothness": {
        "GNMF": "is about codes",
        "MMF": "has PCA at one end",
        "RPCAG": "has a unit",
    },
    "solver": {
        "AngularEmbedding": "solves one eigenproblem",
        "RPCA": "chooses between three problems",
    },
    "standardize": {"FRPCAG": "is undone", "RVFLClassifier": "is not undone"},
    "tol": {
        "EMAngularEmbedding EMPCA": "is an angle of the subspace",
        GREEDY: "is an angle of directions",
        "FRPCAG": "is a length of steps",
        "RPCA": "is about constraints and the gap, and of one solver about constraints alone",
        "RPCAG": "is about constraints and the gap",
        "RGLPCA": "has two phases",
        "Reweighted": "is about weights if these are adaptive",
    },
    "verbose": {"AngularEmbedding": "makes no passes", "Reweighted": "makes fits"},
    "components_": {
        "AngularEmbedding EMAngularEmbedding": "are ordered by cosines",
        "EMPCA": "have no weights",
        ENTRIES: "belong to the low-rank part",
        "GLPCA RGLPCA": "belong to the loadings",
        "GNMF": "are not orthonormal",
        "GrassmannAverage": "are found one by one",
        "L1PCA LpPCA": "may be found one by one",
        "MMF": "are ordered by smooth variance",
        "RSPCA": "are not orthonormal",
    },
    "converged_": {
        "AngularEmbedding": "says nothing of the centre",
        "GLPCA MMF": "have a closed form",
        GREEDY: "holds for all components",
    },
    "dual_gap_": {"RPCA": "is not there for every solver"},
    "embedding_": {
        ENTRIES: "belongs to the low-rank part",
        "GLPCA RGLPCA": "is orthonormal",
        "GNMF": "is not negative",
        "LaplacianEigenmaps": "has no subspace",
        "MMF": "is smooth",
        "NCut": "is clustered",
    },
    "explained_variance_": VARIANCES,
    "explained_variance_ratio_": VARIANCES,
    "labels_": {"Reweighted": "is there for clusterers only"},
    "loadings_": {"RSPCA": "are the components"},
    "loss_": {ENTRIES: "is that of entries"},
    "mean_": {ENTRIES: "belongs to the low-rank part"},
    "n_components_": {
        "GNMF": "is no dimension of a subspace",
        "LaplacianEigenmaps": "is no dimension of a subspace",
    },
    "n_iter_": {
        "AngularEmbedding": "has no passes",
        DIRECTIONS: "is a sum over components",
        "GLPCA MMF": "have a closed form",
        "Reweighted": "counts fits",
    },
    "objective_": {
        "AngularEmbedding": "is one number",
        "EMAngularEmbedding": "rises",
        "EMPCA": "rises",
        "GLPCA MMF": "is one number",
        "GNMF": "depends on the scale",
        "GrassmannAverage": "rises, mostly",
        "L1PCA LpPCA RSPCA": "rises",
        "RGLPCA": "is the least so far",
        "Reweighted": "is that of fits",
    },
}


def described():
    """Description of each parameter and attribute by estimator, where several have it."""
    texts = {}
    for title in ("Parameters", "Attributes"):
        for name, kind in ESTIMATORS.items():
            for entry, (_, text) in section(kind, title).items():
                texts.setdefault(entry, {})[name] = text
    return {entry: by_estimator for entry, by_estimator in texts.items() if len(by_estimator) > 1}


DESCRIBED = described()


@pytest.mark.parametrize("entry", DESCRIBED)
def test_what_estimators_share_is_described_alike(entry):
    texts, groups = DESCRIBED[entry], OWN_DESCRIPTIONS.get(entry, {})
    own = {estimator for group in groups for estimator in group.split()}
    assert own <= texts.keys()
    usual = {text for estimator, text in texts.items() if estimator not in own}
    assert len(usual) <= 1
    for group in groups:
        given = {texts[estimator] for estimator in group.split()}
        assert len(given) == 1, group
        assert not given & usual, f"{group} need no exception"


def test_there_is_no_exception_for_what_is_not_shared():
    assert OWN_DESCRIPTIONS.keys() <= DESCRIBED.keys()


def test_docstrings_are_literal():
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            assert "%(" not in (text or ""), f"{path}: {getattr(node, 'name', 'module')}"


@every_estimator
def test_type_checkers_know_every_documented_attribute(name):
    kind = ESTIMATORS[name]
    known = {one for each in kind.__mro__ for one in getattr(each, "__annotations__", {})}
    assert set(section(kind, "Attributes")) <= known | set(dir(kind))
