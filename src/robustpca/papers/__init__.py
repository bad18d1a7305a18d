"""The published tables, one file each: a declaration called ``table``, and its numbers as CSV."""

from importlib import import_module
from pkgutil import iter_modules

from robustpca.bench.declarations import Table

__all__ = ["all_tables"]


def all_tables() -> dict[str, Table]:
    """Every declaration of this folder by name, found without a list to keep.

    Examples
    --------
    >>> from robustpca.bench.tables import all_tables
    >>> all_tables()["epca_table_1"].title
    'EPCA, Table I: reconstruction error'
    """
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").table for name in names}
