"""``robustpca tune``."""

from pathlib import Path

__all__ = ["tune_data"]


def tune_data(data: Path) -> None:
    """Say which troubles the user's data have, and which estimator to use."""
    import numpy as np

    from robustpca.datasets import read
    from robustpca.datasets.tables import read_table
    from robustpca.models.advice import suggest

    if data.is_dir():
        raise IsADirectoryError(f"{data} is a folder: name a file in it.")
    if not data.is_file():
        raise FileNotFoundError(f"There is no file {data}.")
    kind = data.suffix.lower()
    if kind == ".npz":
        X = read(data).X
    elif kind == ".npy":
        X = np.load(data, allow_pickle=False)
        X = X.reshape(len(X), -1)
    else:
        table = read_table(data)
        X = table.X
        if table.dropped:
            print(f"Left out, since they hold text: {', '.join(table.dropped)}.")
    print(f"{data.name}: {X.shape[0]} rows, {X.shape[1]} columns.")
    print(suggest(X))
