"""Settings and fixtures that all tests share."""

import os
import shutil
import subprocess

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


@pytest.fixture(scope="session")
def open_page(tmp_path_factory):
    """Open a page in Debian's chromium; skips if that is not there.

    The function returns the page as it is after its scripts, and what went wrong in them.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("No chromium here: `make browser` installs it and runs this test.")

    def opened(text, width=1400):
        folder = tmp_path_factory.mktemp("page")
        path = folder / "page.html"
        path.write_text(text, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options += ["--no-first-run", f"--user-data-dir={folder / 'profile'}"]
        options += [f"--window-size={width},1000", "--enable-logging=stderr"]
        done = subprocess.run(
            [chromium, *options, "--virtual-time-budget=10000", "--dump-dom", path.as_uri()],
            capture_output=True,
            timeout=600,
            check=True,
        )
        complaints = [line for line in done.stderr.decode().splitlines() if "CONSOLE" in line]
        return done.stdout.decode(), complaints

    return opened
