"""Settings and fixtures that all tests share."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Read when scikit-learn loads OpenMP. The threads of its k-means wait for each other actively:
# beside other processes, two of them take more than ten times the time of one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

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
