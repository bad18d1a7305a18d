"""``robustpca info``."""

import json
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.arguments import Json, Key, Quiet, Sheet, argument

__all__ = ["show_info"]

# So many columns are shown.
SHOWN = 40


def show_info(
    file: Annotated[str, argument("Data of any kind, or a model.")],
    key: Key = None,
    sheet: Sheet = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what is in a file of data or of a model."""
    found = _model(Path(file)) if Path(file).suffix.lower() == ".rpca" else _data(file, key, sheet)
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(found["summary"].splitlines()[0] if quiet else found["summary"])
    columns = [] if quiet else found.get("columns", [])
    if columns:
        width = max(len("column"), *(len(column["name"]) for column in columns[:SHOWN]))
        print(f"\n{'column':<{width}}  {'missing':>7}  {'least':>11}  {'median':>11}  {'most':>11}")
    for column in columns[:SHOWN]:
        numbers = "  ".join(f"{column[name]:>11.5g}" for name in ("least", "median", "most"))
        print(f"{column['name']:<{width}}  {column['missing']:>7}  {numbers}")
    if len(columns) > SHOWN:
        print(f"and {len(columns) - SHOWN} more columns.")


def _model(path: Path) -> dict[str, Any]:
    from robustpca.models import load
    from robustpca.tools.fitting import last_step, model_lines

    model = load(path)
    return {
        "kind": "model",
        "method": type(last_step(model)).__name__,
        "summary": "\n".join([f"{path.name}: {model_lines(model)[0]}", *model_lines(model)[1:]]),
    }


def _data(file: str, key: str | None, sheet: str | None) -> dict[str, Any]:
    import numpy as np

    from robustpca.tools.files import read

    table = read(file, key=key, sheet=sheet)
    found: dict[str, Any] = {
        "kind": "data",
        "summary": table.summary(),
        "rows": table.X.shape[0],
        "left_out": table.left_out,
    }
    if table.image_shape is not None:
        return {**found, "image_shape": list(table.image_shape)}
    measures = (np.nanmin, np.nanmedian, np.nanmax)
    least, median, most = (measure(table.X, axis=0).tolist() for measure in measures)
    missing = np.isnan(table.X).sum(axis=0).tolist()
    columns = zip(table.names, missing, least, median, most, strict=True)
    keys = ("name", "missing", "least", "median", "most")
    return {**found, "columns": [dict(zip(keys, each, strict=True)) for each in columns]}
