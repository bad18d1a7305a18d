"""``robustpca plot``."""

from pathlib import Path

from robustpca.cli.progress import told
from robustpca.cli.request import Request

__all__ = ["run_plot"]


def run_plot(request: Request, kind: str, method: str, model_file: Path | None) -> None:
    """Draw pictures of a file, by a model that is fitted now or was saved before."""
    from robustpca.models import load
    from robustpca.tools.fitting import names_of
    from robustpca.tools.pictures import KINDS, check_kinds, draw

    assert request.out is not None
    kinds = list(KINDS) if kind == "all" else [name.strip() for name in kind.split(",")]
    check_kinds(kinds, request.out)
    model = None if model_file is None else load(model_file)
    table = request.read(columns=None if model is None else names_of(model))
    options = {"kind": kind, "method": method, "model": model_file and str(model_file)}
    with request.outputs(table, options) as outputs:
        single = outputs.file is not None
        if single and len(kinds) > 1:
            raise ValueError(f"-o {request.out} is one file, and {len(kinds)} pictures are asked.")
        places = {one: outputs.claim(None if single else f"{one}.png") for one in kinds}
        with told(f"Fitting {method}", request.quiet) as callback:
            result = draw(table, kinds, places.__getitem__, model, method, callback)
    request.show(table, result, outputs)
