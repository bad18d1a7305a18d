"""The pages are doctests: each runs in an empty folder of its own, and shows no window."""

import pytest

collect_ignore = ["conf.py", "picture.py"]
collect_ignore_glob = ["gallery/*", "generated/*"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Let a page write files, and leave none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
