"""Settings and fixtures that all tests share."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run. No limit on time: a loaded machine is not a failure.
settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# New examples in every run, with the code that repeats a failure: `make test-all`.
settings.register_profile(
    "random", settings.get_profile("same"), derandomize=False, print_blob=True
)
settings.load_profile("same")


@pytest.fixture
def rng():
    return np.random.default_rng(0)
