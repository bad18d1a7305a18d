"""What the repository says about itself in several places is the same in all of them."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import robustpca
from robustpca.models.estimator import DOCUMENTATION

ROOT = Path(__file__).parents[2]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_and_the_changelog_know_the_version():
    version = re.escape(robustpca.__version__)
    assert re.search(rf"^version: {version}$", read("CITATION.cff"), re.MULTILINE)
    newest = re.search(r"^## (.*)$", read("CHANGELOG.md"), re.MULTILINE)
    assert re.match(rf"{version} \(", newest[1])


def test_the_licence_is_the_same_everywhere():
    licence = tomllib.loads(read("pyproject.toml"))["project"]["license"]
    assert f"license: {licence}\n" in read("CITATION.cff")
    assert licence in read("README.md")


def test_every_dependency_has_a_lowest_version():
    script = ROOT / "scripts" / "lowest_versions.py"
    out = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    project = tomllib.loads(read("pyproject.toml"))["project"]
    bounds = {line.partition("==")[0] for line in out.stdout.splitlines() if "==" in line}
    named = {re.match(r"[\w-]+", each)[0] for each in project["dependencies"]}
    for extra in project["optional-dependencies"].values():
        named |= {re.match(r"[\w-]+", each)[0] for each in extra}
    assert bounds == named - {"robustpca"}


def test_links_of_readme_lead_somewhere_on_pypi():
    text = read("README.md")
    settings = tomllib.loads(read("pyproject.toml"))
    hook = settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for change in hook["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    links = re.findall(r"\]\(([^)]*)\)", text) + re.findall(r'(?:src|href)="([^"]*)"', text)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_the_address_of_the_documentation_is_one():
    urls = tomllib.loads(read("pyproject.toml"))["project"]["urls"]
    assert urls["Documentation"].rstrip("/") == DOCUMENTATION
