"""``robustpca check``."""

from robustpca.cli.progress import told
from robustpca.cli.request import Request

__all__ = ["run_check"]


def run_check(request: Request) -> None:
    """Say what is wrong with my data.

    Missing, constant and repeated things, units, wrong cells, bad rows, groups; and what to do
    about them. Nothing is written but the page, if one is wanted.
    """
    from robustpca.tools.checks import check

    table = request.read()
    with request.page() as write_page:
        with told("Looking at the data", request.quiet) as callback:
            result = check(table, callback=callback)
        write_page(result)
    request.show(table, result)
