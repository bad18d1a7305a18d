"""``robustpca data list`` and ``robustpca data fetch``."""

import json
from typing import Annotated

from robustpca.cli.arguments import Json, Quiet, argument

__all__ = ["fetch_data", "show_data"]


def show_data(as_json: Json = False, quiet: Quiet = False) -> None:
    """List the data sets, and say where each is or what file is needed."""
    from robustpca.datasets import catalog, data_folders

    entries = catalog()
    if as_json:
        found = [
            {"name": e.name, "title": e.title, "is_there": e.is_there, "to_do": e.to_do}
            for e in entries
        ]
        print(json.dumps(found, indent=2))
        return
    if quiet:
        print("\n".join(entry.name for entry in entries if entry.is_there))
        return
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        print(f"{entry.name:<{width}}  {'there  ' if entry.is_there else 'missing'}  {entry.title}")
        if entry.to_do:
            print(f"{'':<{width}}           {entry.to_do}")
    print(f"\nLooked for in {', '.join(map(str, data_folders()))}.")


def fetch_data(
    name: Annotated[str, argument("Name from `data list`.")], as_json: Json = False
) -> None:
    """Download a data set."""
    from robustpca.datasets import fetch

    path = str(fetch(name))
    print(json.dumps({"name": name, "path": path}) if as_json else path)
