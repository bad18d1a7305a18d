"""``robustpca data list`` and ``robustpca data fetch``."""

__all__ = ["fetch_data", "show_data"]


def show_data() -> None:
    """Print the data sets of the catalogue, and what to do to have those that lack."""
    from robustpca.datasets import catalog, data_folders

    entries = catalog()
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        print(f"{entry.name:<{width}}  {'there  ' if entry.is_there else 'missing'}  {entry.title}")
        if entry.to_do:
            print(f"{'':<{width}}           {entry.to_do}")
    print(f"\nLooked for in {', '.join(map(str, data_folders()))}.")


def fetch_data(name: str) -> None:
    """Download a data set and print the file it is in."""
    from robustpca.datasets import fetch

    print(fetch(name))
