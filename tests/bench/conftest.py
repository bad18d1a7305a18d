import pytest
from processes import Processes


@pytest.fixture
def start():
    """Start a function in a process group, all of which has ended when the test has."""
    with Processes() as processes:
        yield processes.start
