"""``robustpca plot``."""

from pathlib import Path
from typing import Annotated

from robustpca.cli.arguments import option
from robustpca.cli.methods import Method
from robustpca.cli.progress import told
from robustpca.cli.request import Request

__all__ = ["run_plot"]


# What can be drawn, for completion.
PICTURES = [
    *("map", "scores", "scree", "loadings", "convergence", "entries", "values", "images", "all"),
]


def run_plot(
    request: Request,
    kind: Annotated[
        str,
        option(
            "map, scores, scree, loadings, convergence, entries, values, images; several with "
            "commas; or all.",
            completion=lambda: PICTURES,
        ),
    ] = "map",
    method: Method = "PCAAN",
    model: Annotated[Path | None, option("A file that `fit` wrote, instead of a method.")] = None,
) -> None:
    """Draw the outlier map and other pictures."""
    from robustpca.models import load
    from robustpca.tools.fitting import names_of
    from robustpca.tools.pictures import KINDS, check_kinds, draw

    assert request.out is not None
    kinds = list(KINDS) if kind == "all" else [name.strip() for name in kind.split(",")]
    check_kinds(kinds, request.out)
    fitted = None if model is None else load(model)
    table = request.read(columns=None if fitted is None else names_of(fitted))
    options = {"kind": kind, "method": method, "model": model and str(model)}
    with request.outputs(table, options) as outputs:
        single = outputs.file is not None
        if single and len(kinds) > 1:
            raise ValueError(f"-o {request.out} is one file, and {len(kinds)} pictures are asked.")
        places = {one: outputs.claim(None if single else f"{one}.png") for one in kinds}
        with told(f"Fitting {method}", request.quiet) as callback:
            result = draw(table, kinds, places.__getitem__, fitted, method, callback)
    request.show(table, result, outputs)
