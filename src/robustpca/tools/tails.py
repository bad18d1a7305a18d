"""Columns in which right numbers look wrong: with long upper tails, or nearly all zeros."""

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.tools.files import Table
from robustpca.tools.words import listed, plural

# Fewer numbers do not tell what the tail of a column is like.
FEWEST = 30
# Skewness of the tenths below and above the median: 0 if they are alike, 0.46 for an exponential
# distribution. A tail is long beyond the first, and logarithms mend it up to the second.
LONG, MENDED = 0.4, 0.2
# What differs from the number that most rows have may be right if so many rows differ.
SELDOM = 0.05
TINY = float(np.finfo(np.float64).tiny)


def long_tails(table: Table) -> list[str]:
    """Names of the columns of positive numbers, or of counts, whose logarithms are far less skewed.

    Quantiles decide, so that a few wrong cells do not.

    Parameters
    ----------
    table : Table
        The data; images have no such columns.

    Returns
    -------
    names : list of str
        In the order of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.tools.jobs import as_table
    >>> from robustpca.tools.tails import long_tails
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> long_tails(as_table(np.exp(X)))
    ['x0', 'x1', 'x2']
    """
    if table.image_shape is not None:
        return []
    columns = [column[np.isfinite(column)] for column in table.X.T]
    return [
        name
        for name, values in zip(table.names, columns, strict=True)
        if len(values) >= FEWEST
        and (values.min() > 0 or _with_zeros(values))
        and skewness(values) > LONG
        and abs(skewness(np.log1p(values) if _with_zeros(values) else np.log(values))) < MENDED
    ]


def _with_zeros(values: Array) -> bool:
    """Whether numbers are counts some of which are zero, and have no logarithm."""
    return bool(values.min() == 0 and (values == np.floor(values)).all())


def skewness(values: Array) -> float:
    """How much wider the upper tenths are than the lower ones, from -1 to 1."""
    low, middle, high = np.quantile(values.astype(np.float64), (0.1, 0.5, 0.9))
    return float((high - middle) - (middle - low)) / max(float(high - low), TINY)


def tail_remark(table: Table) -> list[str]:
    """What to do about columns with long tails, as a list of no sentence or one."""
    names = long_tails(table)
    if not names:
        return []
    has, its = plural(len(names), "has", "have"), plural(len(names), "its", "their")
    zeros = bool((table.X[:, [table.names.index(name) for name in names]] == 0).any())
    return [
        f"{listed(names)} {has} a long upper tail, in which right numbers may look wrong: take "
        f"{its} logarithms first{', of 1 + x where there are zeros' if zeros else ''}."
    ]


def sparse_remark(table: Table, wrong: Array) -> list[str]:
    """What to do about columns with one number in most rows, as a list of no sentence or one.

    Parameters
    ----------
    table : Table
        The data; images have no such columns.
    wrong : ndarray of shape (n_rows, n_columns), dtype bool
        Entries that were flagged.

    Returns
    -------
    remarks : list of str
        A sentence that names the columns in which many entries that differ were flagged.
    """
    if table.image_shape is not None:
        return []
    names = [
        name
        for name, values, flags in zip(table.names, table.X.T, wrong.T, strict=True)
        if flags.mean() >= SELDOM and 2 * (values == np.nanmedian(values)).sum() > len(values)
    ]
    if not names:
        return []
    has, columns = plural(len(names), "has", "have"), plural(len(names), "column", "columns")
    return [
        f"{listed(names)} {has} one number in most rows, beside which rare ones look wrong: if "
        f"these are right, leave the {columns} out."
    ]
