"""Runs the examples of docs/guide/other_libraries.md for those libraries that are installed."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "other_libraries.md"
SECTIONS = re.findall(
    r"^## (\w+)\n.*?```python\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE
)


def test_the_page_has_an_example_for_each_library():
    assert [name for name, _ in SECTIONS] == ["polars", "xarray", "scanpy", "hyperspy", "skops"]


@pytest.mark.parametrize(("library", "code"), SECTIONS, ids=[name for name, _ in SECTIONS])
def test_examples_run(library, code, tmp_path):
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed: `make test-interop` installs it")
    # In a process of its own: these libraries register things and warn when they are loaded.
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
