"""``robustpca data list`` and ``robustpca data fetch``."""

import json

__all__ = ["fetch_data", "show_data"]


def show_data(as_json: bool = False, quiet: bool = False) -> None:
    """Print the data sets of the catalogue, and what to do to have those that lack."""
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


def fetch_data(name: str, as_json: bool = False) -> None:
    """Download a data set and print the file it is in."""
    from robustpca.datasets import fetch

    path = str(fetch(name))
    print(json.dumps({"name": name, "path": path}) if as_json else path)
