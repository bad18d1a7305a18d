"""``robustpca demo``."""

import json
from pathlib import Path
from typing import Annotated

from robustpca.cli.arguments import Force, Json, Quiet, option

__all__ = ["show_demo"]


def show_demo(
    out: Annotated[Path, option("Folder for the files.", "-o", "--out")] = Path("robustpca-demo"),
    seed: Annotated[int, option("Draws what is wrong with the data.")] = 0,
    all_methods: Annotated[
        bool, option("Also fit all methods to corrupted digits.", "--all-methods")
    ] = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See three troubles: plain PCA, the right method, the truth.

    Writes a page and a picture.
    """
    from robustpca.tools import demo

    if not as_json and not quiet:
        demo.show(out, seed, all_methods=all_methods, force=force)
        return
    found = demo.run(out, seed, all_methods=all_methods, force=force)
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        print(found.page)
