"""What all tests have in common: those below tests, the doctests of src and the pages."""

import gc
import sys

import pytest


def pytest_collection_finish():
    """Hide thousands of cases from the garbage collector, which looks through all that it sees."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test drew: pyplot keeps its figures, and warns when there are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
