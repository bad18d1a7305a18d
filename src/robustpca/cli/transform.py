"""``robustpca transform``."""

from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.arguments import Cluster, option
from robustpca.cli.progress import counting
from robustpca.cli.request import Request

__all__ = ["run_transform"]


def run_transform(
    request: Request,
    model: Annotated[Path, option("A file that `fit` wrote.", "--model", "-m")],
    rebuild: Annotated[
        bool, option("Write the rows as the model sees them instead.", "--rebuild")
    ] = False,
    cluster: Cluster = None,
) -> None:
    """Write the scores of rows under a model from `fit`."""
    from robustpca.models import load
    from robustpca.tools.files import LargeTable
    from robustpca.tools.files.writing import check_writable
    from robustpca.tools.fitting import Transformed, names_of

    assert request.out is not None
    check_writable(request.out)
    fitted = load(model)
    # Columns of arrays have no names, and those of tables are found by theirs.
    with request.table(names_of(fitted), cluster) as table:
        options = {"model": str(model), "rebuild": rebuild}
        with request.outputs(table, options) as outputs:
            write = _write_large if isinstance(table, LargeTable) else _write
            write(request, table, fitted, rebuild, outputs.claim())
        request.show(table, Transformed(table, fitted, rebuild), outputs)


def _write(request: Request, table: Any, model: Any, rebuild: bool, draft: Path) -> None:
    from robustpca.tools.files import write_like
    from robustpca.tools.fitting import rebuilt_table, scores_table

    write_like(table, (rebuilt_table if rebuild else scores_table)(model, table), draft)


def _write_large(request: Request, table: Any, model: Any, rebuild: bool, draft: Path) -> None:
    """Write blocks as they come; of files that cannot be written so the scores are held."""
    import numpy as np

    from robustpca.tools.files import write_like
    from robustpca.tools.files.large import WRITERS
    from robustpca.tools.files.table import kind_of
    from robustpca.tools.fitting import checked
    from robustpca.tools.streaming import score_blocks, write_blocks

    rows = checked(model, table)
    with counting("Computing the scores of rows", request.quiet) as report:
        blocks = score_blocks(model, rows, rebuild, report)
        if kind_of(draft) in WRITERS:
            write_blocks(draft, blocks, table.X.shape[0])
        else:
            write_like(table, np.concatenate(list(blocks)), draft)
