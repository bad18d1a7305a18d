"""Docstrings: complete, true, and in one voice where estimators share a parameter."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import robustpca
from robustpca.models import all_estimators

ESTIMATORS = all_estimators()
SOURCE = Path(robustpca.__file__).parent
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def section(kind, title):
    """Entries of a section of a docstring: the type and the description of each name."""
    lines = inspect.getdoc(kind).splitlines()
    at = next((i for i, line in enumerate(lines) if line == title), len(lines))
    entries, names = {}, ()
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


def test_docstrings_are_literal():
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            assert "%(" not in (text or ""), f"{path}: {getattr(node, 'name', 'module')}"
