"""``robustpca transform``."""

from pathlib import Path
from typing import Any

from robustpca.cli.progress import counting
from robustpca.cli.request import Request

__all__ = ["run_transform"]


def run_transform(
    request: Request, model_file: Path, rebuild: bool, cluster: str | None = None
) -> None:
    """Write the scores of the rows of a file under a saved model, or the rows rebuilt from them."""
    from robustpca.models import load
    from robustpca.tools.files import LargeTable
    from robustpca.tools.files.writing import check_writable
    from robustpca.tools.fitting import Transformed, names_of

    assert request.out is not None
    check_writable(request.out)
    model = load(model_file)
    # Columns of arrays have no names, and those of tables are found by theirs.
    with request.table(names_of(model), cluster) as table:
        options = {"model": str(model_file), "rebuild": rebuild}
        with request.outputs(table, options) as outputs:
            write = _write_large if isinstance(table, LargeTable) else _write
            write(request, table, model, rebuild, outputs.claim())
        request.show(table, Transformed(table, model, rebuild), outputs)


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
