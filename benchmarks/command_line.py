"""Seconds of the processor for each job of the command line, on a table as people have it.

2000 rows and 20 columns of numbers with a header, names of rows, a column of text, missing cells,
wrong cells and bad rows. Each job is one command in a process of its own, with all imports; the bar
is ten seconds, and 0.3 for the help.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

BAR, HELP_BAR = 10.0, 0.3
JOBS = {
    "help": "--help",
    "check": "check mine.csv",
    "rows": "rows mine.csv -o marked",
    "entries": "entries mine.csv -o cleaned",
    "tune": "tune mine.csv",
    "fit": "fit mine.csv -o model.rpca",
    "transform": "transform mine.csv --model model.rpca -o scores.csv",
    "plot": "plot mine.csv -o map.svg",
    "compare": "compare mine.csv --report compare.html",
    "report": "report mine.csv -o report.html",
}


def write_table(path: Path) -> None:
    """Write the table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 20)) + 0.2 * rng.normal(size=(2000, 20))
    X[rng.choice(2000, 80, replace=False)] += 4 * rng.normal(size=20)
    X = X * np.logspace(-1, 3, 20) + np.logspace(0, 3, 20)
    X[rng.random(X.shape) < 0.004] *= 10
    X[rng.random(X.shape) < 0.01] = np.nan
    frame = pd.DataFrame(X, columns=[f"m{j}" for j in range(20)])
    frame.insert(0, "name", [f"r{i}" for i in range(2000)])
    frame["kind"] = rng.choice(["a", "b"], 2000)
    frame.to_csv(path, index=False)


def seconds_of(arguments: str, folder: str) -> float:
    """Seconds of the processor that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "robustpca", *arguments.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the seconds of each job; the program ends with 1 if one is beyond its bar."""
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "mine.csv")
        for name, arguments in JOBS.items():
            seconds = seconds_of(arguments, folder)
            print(f"{name:<10} {seconds:6.2f} s", flush=True)
            if seconds > (HELP_BAR if name == "help" else BAR):
                slow.append(name)
    if slow:
        sys.exit(f"Beyond the bar: {', '.join(slow)}.")


if __name__ == "__main__":
    main()
