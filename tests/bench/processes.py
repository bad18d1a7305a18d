"""Processes of tests: they may start slowly, and none outlives its test."""

import os
import signal
import time
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

from robustpca.bench import runner

PATIENCE = 900.0  # seconds that a very busy machine may need to start or end a process
# Processes are forked from one that imports the library once.
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["pytest", "makeshift"])


def wait_until(condition):
    """Wait for a condition, whatever the load of the machine, and return its value."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "nothing has happened"
        time.sleep(0.005)
    return found


def is_running(pid):
    """Whether there is a process that has not ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def members(group):
    """Running processes of a group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            found += [int(folder.name)] if int(its_group) == group and state not in "ZX" else []
    return found


def lead(target, arguments):
    os.setpgrp()
    # Tests that run in the background of a script inherit that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    target(*arguments)


class Processes:
    """Starts functions in process groups, and ends all that is left of these."""

    def __init__(self):
        self.started = []

    def start(self, target, *arguments):
        process = CONTEXT.Process(target=lead, args=(target, arguments))
        process.start()
        self.started.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.join(PATIENCE)
            wait_until(lambda group=process.pid: not members(group))


@pytest.fixture(name="start")
def start_processes():
    """Start a function in a process group, all of which has ended when the test has."""
    with Processes() as processes:
        yield processes.start


@pytest.fixture(name="forked")
def fork_workers(monkeypatch):
    """Workers of a run take no time to start."""
    monkeypatch.setattr(runner, "CONTEXT", CONTEXT)
