"""The experiments of the papers: one folder a paper, with its tables, printed numbers and scores.

A table is a module with a declaration called ``table``; the numbers that the paper prints stand
beside it in a CSV file of the same name. What several papers share is in this folder.
"""

from importlib import import_module
from pkgutil import walk_packages

from robustpca.bench.declarations import Table

__all__ = ["all_tables"]


def all_tables() -> dict[str, Table]:
    """Every table of the papers by name, in alphabetical order.

    Returns
    -------
    tables : dict of str to Table
        Found by their modules, so that a new table needs no registration.

    Examples
    --------
    >>> from robustpca.papers import all_tables
    >>> all_tables()["epca_table_1"].title
    'EPCA, Table I: reconstruction error'
    """
    modules = [import_module(found.name) for found in walk_packages(__path__, f"{__name__}.")]
    tables = {module.table.name: module.table for module in modules if hasattr(module, "table")}
    return dict(sorted(tables.items()))
