"""What all tests have in common: those below tests, the doctests of src and the pages."""

import sys

import pytest


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test drew: pyplot keeps its figures, and warns when there are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
