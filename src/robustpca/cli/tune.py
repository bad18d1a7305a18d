"""``robustpca tune``."""

from robustpca.cli.progress import told
from robustpca.cli.request import Request

__all__ = ["run_tune"]


def run_tune(request: Request) -> None:
    """Say which method to use, and with how many components."""
    from robustpca.tools.checks import tune

    table = request.read()
    with request.page() as write_page:
        with told("Looking at the data", request.quiet) as callback:
            result = tune(table, callback=callback)
        write_page(result)
    request.show(table, result)
