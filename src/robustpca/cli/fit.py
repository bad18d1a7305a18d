"""``robustpca fit``."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.arguments import Cluster, Scale, option, scale_of
from robustpca.cli.methods import method_names
from robustpca.cli.progress import told
from robustpca.cli.request import Request

__all__ = ["run_fit"]


def run_fit(
    request: Request,
    method: Annotated[
        str,
        option(
            "Any of `robustpca methods`; auto is PCAAN, or RPCA if cells are missing.",
            completion=method_names,
        ),
    ] = "auto",
    set_: Annotated[
        list[str] | None, option("A parameter, as n_components=3; may be repeated.", "--set")
    ] = None,
    scale: Scale = "auto",
    cluster: Cluster = None,
    checkpoint: Annotated[
        Path | None,
        option("Keep the state of a long fit here; after a crash, the same command goes on."),
    ] = None,
) -> None:
    """Fit any method, and write the model to a file."""
    from robustpca.engine.checkpoint import checkpoint as kept_in
    from robustpca.tools.fitting import method_named, settings_from

    wanted, settings = scale_of(scale), set_ or []
    if request.out is None or not request.out.suffix:
        raise ValueError(f"-o {request.out} should be a file, such as {request.out}.rpca.")
    if method != "auto":
        settings_from(method_named(method), settings)  # mistakes are told before anything is read
    following = nullcontext() if checkpoint is None else kept_in(checkpoint)
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
