"""``robustpca rows``."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.arguments import Scale, option, scale_of, value_of
from robustpca.cli.methods import Method
from robustpca.cli.progress import told
from robustpca.cli.request import Request
from robustpca.cli.tables import TABLES, extension_of, new_frame

__all__ = ["draw_map", "run_rows"]


def run_rows(
    request: Request,
    method: Method = "PCAAN",
    components: Annotated[
        str | None, option("Dimension, as 3; share of the variance, as 0.9; or auto.")
    ] = None,
    contamination: Annotated[
        str, option("Share of the rows to flag, as 0.05; auto for a cutoff.")
    ] = "auto",
    scale: Scale = "auto",
) -> None:
    """Find the rows that do not fit, and say why.

    Writes the table with what is known of each row beside it, and a map of the rows. Without -o
    nothing is written.
    """
    from robustpca.tools.jobs import find_rows

    options = {
        "method": method,
        "n_components": None if components is None else value_of(components),
        "contamination": value_of(contamination),
        "scale": scale_of(scale),
    }
    table = request.read()
    with request.page() as write_page, request.outputs(table, options) as outputs:
        if outputs is not None:
            path = outputs.claim(None if outputs.file else f"rows{extension_of(table, TABLES)}")
            picture = outputs.claim("map.png")
        with told(f"Fitting {method}", request.quiet) as callback:
            result = find_rows(table, **options, callback=callback)
        if outputs is not None:
            _write_rows(table, result, path)
            draw_map(result, picture)
        write_page(result)
    request.show(table, result, outputs)


def _write_rows(table: Any, result: Any, path: Path) -> None:
    """Write a table with what is known of each row behind its own columns."""
    from robustpca.tools.files import write_like

    if table.frame is not None:
        frame = table.frame.copy()
    elif table.image_shape is not None:
        frame = new_frame({"image": table.labels})
    else:
        frame = new_frame(table.X, table.names)
    for name, values in result.columns().items():
        while name in frame:
            name += "_"
        frame[name] = values
    write_like(table, frame, path)


def draw_map(result: Any, path: Path) -> None:
    """Draw the rows by their two distances, where matplotlib is there."""
    if find_spec("matplotlib") is None:
        return
    from matplotlib.figure import Figure

    from robustpca.plot import OutlierMapDisplay

    figure = Figure(figsize=(7, 5), dpi=150, layout="constrained")
    OutlierMapDisplay(
        score_distances=result.score_distance,
        orthogonal_distances=result.orthogonal_distance,
        score_cutoff=result.score_cutoff,
        orthogonal_cutoff=result.orthogonal_cutoff,
        is_outlier=result.flags,
        badness=result.outlyingness,
        labels=result.table.labels,
    ).plot(figure.add_subplot())
    figure.savefig(path)
