"""``robustpca entries``."""

from typing import Annotated

from robustpca.cli.arguments import option, value_of
from robustpca.cli.progress import told
from robustpca.cli.request import Request
from robustpca.cli.tables import TABLES, extension_of, new_frame

__all__ = ["run_entries"]

# Columns of the list of entries.
COLUMNS = ["row", "column", "given", "restored", "sigmas", "kind"]


def run_entries(
    request: Request,
    flag_rate: Annotated[
        str, option("Share of good cells that may be flagged, as 0.001; or auto.")
    ] = "auto",
    remove: Annotated[
        bool, option("Leave wrong cells empty, or fill in values.", "--remove/--fill")
    ] = False,
) -> None:
    """Find wrong cells, and what belongs there.

    Writes the cleaned table, in which only wrong and missing cells differ, and a list of these
    cells. Without -o nothing is written.
    """
    from robustpca.tools.files import WRITABLE, with_values, write_folder, write_like
    from robustpca.tools.jobs import clean_entries

    options = {"flag_rate": value_of(flag_rate), "remove": remove}
    table = request.read()
    with request.page() as write_page, request.outputs(table, options) as outputs:
        if outputs is not None:
            folder = table.path.is_dir() and table.image_shape is not None and not outputs.file
            names = [f"cleaned/{name}" for name in table.labels]
            if not folder:
                kinds = (*WRITABLE, *TABLES)
                otherwise = ".csv" if table.frame is not None else ".npy"
                names = [f"cleaned{extension_of(table, kinds, otherwise)}"]
            cleaned = [outputs.claim(None if outputs.file else name) for name in names]
            listed = outputs.claim(f"entries{extension_of(table, TABLES)}")
        with told("Fitting RPCA", request.quiet) as callback:
            result = clean_entries(table, **options, callback=callback)
        if outputs is not None:
            if folder:
                write_folder(
                    table, result.X, dict(zip(table.labels, cleaned, strict=True)).__getitem__
                )
            else:
                write_like(table, with_values(table, result.X), cleaned[0])
            write_like(table, new_frame([vars(cell) for cell in result.cells], COLUMNS), listed)
        write_page(result)
    request.show(table, result, outputs)
