"""``robustpca methods``."""

import inspect
import json
import re
import textwrap
from difflib import get_close_matches
from typing import Annotated, Any

from robustpca.cli.arguments import Json, Quiet, argument, option
from robustpca.tools.words import aligned, references

__all__ = ["FOR", "Method", "method_names", "run_methods", "show_method", "show_methods"]

# What each estimator is for, in plain words, by the trouble that one has.
FOR = {
    "Bad rows": {
        "PCAAN": "leaves rows out that do not fit, alone or in a group: start here",
        "EPCA": "trusts rows the less the worse they fit, on two accounts",
        "PCAOM": "weighs rows by one over their distance; finds the centre too",
        "R1PCA": "the same with the centre held, and a choice of how distances count",
        "AngularEmbedding": "looks at directions of rows only, so that no row is too far away",
        "EMAngularEmbedding": "the same by iteration, with no decomposition of the data",
        "L1PCA": "sums of absolute scores instead of squares",
        "LpPCA": "sums of any power of the scores",
        "GrassmannAverage": "averages of lines through the rows, trimmed entry by entry if wanted",
        "RSPCA": "components that involve few columns",
        "ReweightedPCA": "a method of your own from any loss and any weighting",
        "EMPCA": "plain PCA by iteration, about a robust centre",
    },
    "Wrong or missing entries": {
        "RPCA": "splits a table into a part of low rank and single errors: start here",
        "RPCAG": "the same for rows that form groups or lie on a curve",
        "FRPCAG": "smooths over similar rows and similar columns: quick on large tables",
    },
    "Images": {
        "R2DPCA": "robust, and keeps images as matrices instead of long rows",
        "GLRAM": "the same without robustness: small and quick",
        "ReweightedBilinear": "an image method of your own from any loss and any weighting",
    },
    "Groups and curves": {
        "GLPCA": "PCA whose scores are alike for neighbouring rows",
        "RGLPCA": "the same when some rows are bad",
        "MMF": "the same with orthogonal components",
        "GNMF": "parts of non-negative data, alike for neighbouring rows",
        "LaplacianEigenmaps": "coordinates along a curved surface",
        "NCut": "clusters of any shape",
    },
    "Around PCA": {
        "Reweighted": "makes a regressor or clusterer of scikit-learn robust",
        "AngularTrimmer": "leaves out rows in odd directions before any estimator",
        "RVFLClassifier": "a quick classifier, to judge scores by",
    },
}


def method_names() -> list[str]:
    """Names of all methods, for completion."""
    return [name for group in FOR.values() for name in group]


Method = Annotated[str, option("Any of `robustpca methods`.", completion=method_names)]


def run_methods(
    name: Annotated[str | None, argument("A method; none lists all.", method_names)] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the methods, and say what they are for and need."""
    if name is None:
        show_methods(as_json, quiet)
    else:
        show_method(name, as_json, quiet)


def show_methods(as_json: bool = False, quiet: bool = False) -> None:
    """Print every estimator with what it is for."""
    if as_json or quiet:
        print(json.dumps(FOR, indent=2) if as_json else "\n".join(method_names()))
        return
    width = max(len(name) for group in FOR.values() for name in group)
    for trouble, group in FOR.items():
        print(trouble)
        for name, words in group.items():
            print(f"  {name:<{width}}  {words}")
        print()
    print("`robustpca methods NAME` says what a method needs and which options it has.")
    print("`robustpca check DATA` says which of them your data ask for.")


def show_method(name: str, as_json: bool = False, quiet: bool = False) -> None:
    """Print what one estimator is for, what it needs, its parameters, and its paper."""
    from robustpca.models import all_estimators

    known = {one.lower(): one for one in all_estimators()}
    near = get_close_matches(name.lower(), known, n=1)
    if name.lower() not in known:
        hint = f"Did you mean {known[near[0]]}?" if near else "`robustpca methods` lists them."
        raise ValueError(f"No method is called {name!r}. {hint}")
    name = known[name.lower()]
    kind = all_estimators()[name]
    words = next(group[name] for group in FOR.values() if name in group)
    text = inspect.getdoc(kind) or ""
    told = _first_sentences(text)
    options = {
        parameter: repr(argument.default)
        for parameter, argument in inspect.signature(kind).parameters.items()
        if argument.default is not inspect.Parameter.empty
    }
    papers = references(kind)
    if as_json:
        found: dict[str, Any] = {
            "name": name,
            "for": words,
            "needs": _needs(kind),
            "papers": papers,
        }
        found["options"] = {
            key: {"default": value, "meaning": told.get(key, "")} for key, value in options.items()
        }
        print(json.dumps(found, indent=2))
        return
    print(f"{name}: {words}.")
    if quiet:
        return
    print("\nNeeds")
    for line in _needs(kind):
        print(f"  - {line}")
    print("\nOptions, for --set or as arguments in Python")
    for line in aligned([(f"{key}={value}", told.get(key, "")) for key, value in options.items()]):
        print(textwrap.fill(line, 100, initial_indent="  ", subsequent_indent=" " * 6))
    if papers:
        print("\nCite")
    for paper in papers:
        print(textwrap.fill(paper, 100, initial_indent="  ", subsequent_indent=" " * 6))
    print(f"\nIn Python: from robustpca import {name}; help({name})")


def _needs(kind: Any) -> list[str]:
    """What data and what memory a method needs."""
    parameters = inspect.signature(kind).parameters
    lines = []
    if "image_shape" in parameters:
        lines.append("images, one per row, and their height and width")
    takes_nan = getattr(kind, "_allow_nan", False)
    lines.append(
        "numbers; cells may be missing"
        if takes_nan
        else "numbers in all cells: `robustpca entries` fills in those that are missing"
    )
    lines.append(
        f"no more memory than {kind._holds}: files may be larger than it"
        if getattr(kind, "_by_blocks", False)
        else "memory for the whole table"
    )
    n_scratch = getattr(kind, "_scratch_arrays", 0)
    if n_scratch:
        lines.append(f"for a file, disk space of {n_scratch} times its size in TMPDIR")
    return lines


def _first_sentences(text: str) -> dict[str, str]:
    """First sentence on each parameter in a docstring, without markup."""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    found = {}
    for block in re.split(r"\n(?=\S)", section):
        head, _, body = block.partition("\n")
        words = " ".join(body.replace("`", "").split())
        sentence = re.split(r"(?<=[a-z0-9)])[.;:] ", words, maxsplit=1)[0].rstrip(".")
        for name in head.partition(" : ")[0].split(", "):
            found[name] = re.sub(r":math:\S*|\[\d\]_", "", sentence)
    return found
