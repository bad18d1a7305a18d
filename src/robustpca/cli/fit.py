"""``robustpca fit``."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from robustpca.cli.progress import told
from robustpca.cli.request import Request, scale_of

__all__ = ["run_fit"]


def run_fit(
    request: Request,
    method: str,
    settings: Sequence[str],
    scale: str,
    cluster: str | None = None,
    kept: Path | None = None,
) -> None:
    """Fit a method to a file, and write the model; its state is ``kept`` meanwhile."""
    from robustpca.engine.checkpoint import checkpoint
    from robustpca.tools.fitting import method_named, settings_from

    wanted = scale_of(scale)
    if request.out is None or not request.out.suffix:
        raise ValueError(f"-o {request.out} should be a file, such as {request.out}.rpca.")
    if method != "auto":
        settings_from(method_named(method), settings)  # mistakes are told before anything is read
    following = nullcontext() if kept is None else checkpoint(kept)
    with request.table(cluster=cluster) as table, following:
        _fit(request, table, method, settings, wanted)


def _fit(
    request: Request, table: Any, method: str, settings: Sequence[str], scale: str | None
) -> None:
    import numpy as np

    from robustpca.models import save
    from robustpca.tools.fitting import Fitted, fit_table, method_named, settings_from

    holes = bool(np.isnan(table.sample()).any())
    reason = ""
    if method == "auto":
        method = "RPCA" if holes else "PCAAN"
        reason = "RPCA was chosen since cells are missing." if holes else ""
    kind = method_named(method)
    given = settings_from(kind, settings)
    options = {"method": kind.__name__, **given, "scale": scale}
    with request.page() as write_page, request.outputs(table, options) as outputs:
        draft = outputs.claim()
        with told(f"Fitting {kind.__name__}", request.quiet) as callback:
            model = fit_table(table, kind, given, scale, callback)
        save(model, draft)
        result = Fitted(table, model, reason)
        write_page(result)
    request.show(table, result, outputs)
