"""All measurements of the defaults: what a person gets without setting a parameter.

Runs the scripts of this folder whose names begin with ``defaults_``, one after the other. Peers
that are not installed are left out, and each script says so.
"""

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Run all parts, or those that are named."""
    folder = Path(__file__).parent
    parts = {path.stem.removeprefix("defaults_"): path for path in folder.glob("defaults_*.py")}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(sorted(parts))}; all if none")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and sizes")
    given = parser.parse_args()
    unknown = set(given.parts) - set(parts)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(parts)}")
    for name in sorted(given.parts or parts):
        print(f"\n== {name}", flush=True)
        options = ["--quick"] if given.quick else []
        subprocess.run([sys.executable, str(parts[name]), *options], check=True)


if __name__ == "__main__":
    main()
