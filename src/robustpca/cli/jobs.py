"""``robustpca check``, ``rows``, ``entries`` and ``tune``: jobs of `robustpca.tools` on a file."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from robustpca.cli.progress import told
from robustpca.cli.request import Request, scale_of

__all__ = ["draw_map", "run_check", "run_entries", "run_rows", "run_tune"]

# Formats in which a table with columns of text can be written as it was read.
TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".xlsx", ".parquet")


def run_check(request: Request) -> None:
    """Say what is wrong with a table."""
    from robustpca.tools.checks import check

    table = request.read()
    with request.page() as write_page:
        with told("Looking at the data", request.quiet) as callback:
            result = check(table, callback=callback)
        write_page(result)
    request.show(table, result)


def run_tune(request: Request) -> None:
    """Say which method to use, and with how many components."""
    from robustpca.tools.checks import tune

    table = request.read()
    with request.page() as write_page:
        with told("Looking at the data", request.quiet) as callback:
            result = tune(table, callback=callback)
        write_page(result)
    request.show(table, result)


def run_rows(
    request: Request,
    method: str,
    n_components: str | None,
    contamination: str,
    scale: str,
) -> None:
    """Find bad rows; with a folder, write the table with what is known of each row."""
    from robustpca.tools.jobs import find_rows

    options = {
        "method": method,
        "n_components": None if n_components is None else _value(n_components),
        "contamination": _value(contamination),
        "scale": scale_of(scale),
    }
    table = request.read()
    with request.page() as write_page, request.outputs(table, options) as outputs:
        if outputs is not None:
            path = outputs.claim(None if outputs.file else f"rows{_extension(table, TABLES)}")
            picture = outputs.claim("map.png")
        with told(f"Fitting {method}", request.quiet) as callback:
            result = find_rows(table, **options, callback=callback)
        if outputs is not None:
            _write_rows(table, result, path)
            draw_map(result, picture)
        write_page(result)
    request.show(table, result, outputs)


def run_entries(request: Request, flag_rate: str, remove: bool) -> None:
    """Find wrong entries; with a folder, write the cleaned table and the list of entries."""
    from robustpca.tools.files import WRITABLE, with_values, write_folder, write_like
    from robustpca.tools.jobs import clean_entries

    options = {"flag_rate": _value(flag_rate), "remove": remove}
    table = request.read()
    with request.page() as write_page, request.outputs(table, options) as outputs:
        if outputs is not None:
            folder = table.path.is_dir() and table.image_shape is not None and not outputs.file
            names = [f"cleaned/{name}" for name in table.labels]
            if not folder:
                kinds = (*WRITABLE, *TABLES)
                otherwise = ".csv" if table.frame is not None else ".npy"
                names = [f"cleaned{_extension(table, kinds, otherwise)}"]
            cleaned = [outputs.claim(None if outputs.file else name) for name in names]
            listed = outputs.claim(f"entries{_extension(table, TABLES)}")
        with told("Fitting RPCA", request.quiet) as callback:
            result = clean_entries(table, **options, callback=callback)
        if outputs is not None:
            if folder:
                write_folder(
                    table, result.X, dict(zip(table.labels, cleaned, strict=True)).__getitem__
                )
            else:
                write_like(table, with_values(table, result.X), cleaned[0])
            write_like(table, _frame([vars(cell) for cell in result.cells], COLUMNS), listed)
        write_page(result)
    request.show(table, result, outputs)


# Columns of the list of entries.
COLUMNS = ["row", "column", "given", "restored", "sigmas", "kind"]


def _write_rows(table: Any, result: Any, path: Path) -> None:
    """Write a table with what is known of each row behind its own columns."""
    from robustpca.tools.files import write_like

    if table.frame is not None:
        frame = table.frame.copy()
    elif table.image_shape is not None:
        frame = _frame({"image": table.labels})
    else:
        frame = _frame(table.X, table.names)
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


def _frame(values: Any, columns: Any = None) -> Any:
    from robustpca.tools.files.table import extra

    return extra("pandas", "Writing tables").DataFrame(values, columns=columns)


def _extension(table: Any, kinds: tuple[str, ...], otherwise: str = ".csv") -> str:
    """The extension of the file that was read, if files of that kind can be written."""
    suffixes = [suffix.lower() for suffix in table.path.suffixes]
    for found in ("".join(suffixes[-2:]), "".join(suffixes[-1:])):
        if found in kinds:
            return found
    return otherwise


def _value(text: str) -> Any:
    """A number if it is one, otherwise the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
