"""Three troubles of data, plain PCA beside the method that is made for each, and the truth.

``python -m robustpca.tools.demo --out folder`` needs the core and matplotlib, no other extra.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from robustpca import __version__
from robustpca.tools.demo import digits
from robustpca.tools.demo.page import contact_sheet, render, table, write
from robustpca.tools.demo.troubles import TROUBLES, Trouble

__all__ = ["FOLDER", "Demo", "main", "run", "show"]

FOLDER = "robustpca-demo"


@dataclass(frozen=True)
class Demo:
    """What was found, and the files that show it.

    Attributes
    ----------
    troubles : list of Trouble
        Numbers and pictures of each trouble.
    results : list of Result
        All methods on the digits, best first; empty unless they were asked for.
    picture, page : Path
        The files.
    """

    troubles: list[Trouble]
    results: list[digits.Result]
    picture: Path
    page: Path

    def to_dict(self) -> dict[str, Any]:
        """Numbers and files, for JSON."""
        who = ("plain PCA", "method", "limit")
        return {
            "troubles": {
                trouble.title: {
                    "method": trouble.method,
                    "measures": {
                        one.name: dict(zip(who, map(float, one.values), strict=True))
                        for one in trouble.measures
                    },
                }
                for trouble in self.troubles
            },
            "picture": str(self.picture),
            "page": str(self.page),
        }


def run(
    out: str | Path = FOLDER,
    seed: int = 0,
    *,
    all_methods: bool = False,
    force: bool = False,
    quick: bool = False,
) -> Demo:
    """Meet three troubles, and write a picture and a page.

    Parameters
    ----------
    out : str or Path, default='robustpca-demo'
        Folder for ``demo.png`` and ``demo.html``; made if needed.
    seed : int, default=0
        Draws what is wrong with the data.
    all_methods : bool, default=False
        Also fit all methods to corrupted digits.
    force : bool, default=False
        Write over files that are there already.
    quick : bool, default=False
        Fewer and smaller images, for tests.

    Returns
    -------
    demo : Demo
        Numbers, and the paths of the files.
    """
    folder = Path(out)
    present = [str(folder / name) for name in ("demo.png", "demo.html") if (folder / name).exists()]
    if present and not force:
        raise FileExistsError(
            f"{' and '.join(present)} would be lost: choose another folder with --out, or pass "
            "--force to write over them."
        )
    troubles = [meet(seed, quick) for meet in TROUBLES]
    results = digits.compare(seed=seed) if all_methods else []
    text = render(troubles, results, seed, __version__)
    return Demo(troubles, results, *write(folder, contact_sheet(troubles), text))


def show(
    out: str | Path = FOLDER,
    seed: int = 0,
    *,
    all_methods: bool = False,
    force: bool = False,
    quick: bool = False,
) -> None:
    """Run the demo and print its table.

    Parameters
    ----------
    out, seed, all_methods, force, quick
        As for `run`.
    """
    if find_spec("matplotlib") is None:
        raise ImportError(
            "The demo needs matplotlib, not installed here. Run `pip install 'robustpca[plot]'`."
        )
    started = time.perf_counter()
    demo = run(out, seed, all_methods=all_methods, force=force, quick=quick)
    print(table(demo.troubles))
    if demo.results:
        print(f"\nAll methods on digits with wrong pixels:\n\n{digits.table(demo.results)}")
    print(f"\nAll of it took {time.perf_counter() - started:.0f} s.")
    print(f"Picture: {demo.picture}\nPage:    {demo.page}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo from the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows the name of the program; None for those it was called with.
    """
    parser = argparse.ArgumentParser(
        prog="python -m robustpca.tools.demo",
        description="Three troubles of data: plain PCA beside the method that is made for each, "
        "and the truth, as a table, a picture and a page.",
    )
    parser.add_argument("--out", default=FOLDER, help="folder for the files [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="draws the errors [%(default)s]")
    parser.add_argument(
        "--all-methods", action="store_true", help="also fit all methods to corrupted digits"
    )
    parser.add_argument("--force", action="store_true", help="write over files of an earlier run")
    options = parser.parse_args(arguments)
    try:
        show(options.out, options.seed, all_methods=options.all_methods, force=options.force)
    except (ImportError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
