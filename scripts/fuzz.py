"""Give every estimator and every reader of files what nobody should, and see what they say.

Usage: ``python scripts/fuzz.py --cases 100000 --minutes 30 --seed 0``, or ``make fuzz``. A case is
right if it ends with finite numbers that stand the checks of ``tests/fuzz/checks.py``, or with one
clear ValueError or TypeError. Each failure is printed as the lines of code that repeat it; damaged
files that are not refused are left in ``build/fuzz``. One case in five is a file, one in twenty a
question such as `check` about a table. What is found becomes a line of ``tests/fuzz/test_fuzz.py``.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))

from checks import fault  # noqa: E402
from damaged import damaged, file_fault, write_all  # noqa: E402
from drawn import draw  # noqa: E402
from tables import question, question_fault  # noqa: E402

FOLDER = ROOT / "build" / "fuzz"
# One case in so many is a file, and one in so many a question about a table, which takes longer.
FILES, QUESTIONS = 5, 20


def fuzz(n_cases: int, minutes: float, seed: int) -> int:
    """Run cases until their number or the time is reached, or Ctrl-C; return how many failed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    healthy = write_all(Path(tempfile.mkdtemp()))
    n_run: Counter[str] = Counter()
    n_failed: Counter[str] = Counter()
    end = time.monotonic() + 60 * minutes
    with suppress(KeyboardInterrupt):
        for number in range(seed, seed + n_cases):
            if time.monotonic() > end:
                break
            name, words, snippet = run(number, healthy)
            n_run[name] += 1
            if words:
                n_failed[name] += 1
                print(f"# Case {number}, {name}: {words}\n{snippet}\n", flush=True)
    for name in sorted(n_run):
        print(f"{name:20} {n_run[name]:6} cases {n_failed[name]:6} failed")
    print(f"{'all':20} {n_run.total():6} cases {n_failed.total():6} failed")
    return n_failed.total()


def run(number: int, healthy: list[Path]) -> tuple[str, str, str]:
    """What a case is about, what is wrong with its answer, and code that repeats it."""
    if number % FILES == 0:
        path = damaged(healthy, number, FOLDER)
        words = file_fault(path)
        if not words:
            (shutil.rmtree if path.is_dir() else Path.unlink)(path)
        return path.suffix or "folder", words, f"opened({path!r})"
    if number % QUESTIONS == 1:
        asked = question(number)
        return asked.job, question_fault(asked), str(asked)
    case = draw(number)
    return case.name, fault(case), str(case)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100_000, help="how many cases")
    parser.add_argument("--minutes", type=float, default=120, help="when to stop in any case")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    given = parser.parse_args()
    sys.exit(1 if fuzz(given.cases, given.minutes, given.seed) else 0)


if __name__ == "__main__":
    main()
