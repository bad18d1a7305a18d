"""``robustpca demo``."""

import json
from pathlib import Path

__all__ = ["show_demo"]


def show_demo(
    out: Path,
    seed: int,
    all_methods: bool,
    force: bool,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Three troubles, plain PCA beside the method that is made for each, and the truth."""
    from robustpca.tools import demo

    if not as_json and not quiet:
        demo.show(out, seed, all_methods=all_methods, force=force)
        return
    found = demo.run(out, seed, all_methods=all_methods, force=force)
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        print(found.page)
