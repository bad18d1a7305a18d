"""Whether the numbers of the data can be squared, and whether they hold what varies."""

import numpy as np
from sklearn.utils.sparsefuncs import mean_variance_axis

from robustpca.engine.linalg import Array
from robustpca.engine.rows import Rows, SparseRows

# Sizes of entries whose squares, and what is made of many, neither overflow nor vanish.
SIZES = {"float32": (1e-18, 1e18), "float64": (1e-101, 1e101)}
# Rounding errors of the data that are harmless, as a share of the deviation of a column.
HARMLESS = 0.05
# Share of the squares of sparse rows that may be lost.
LOST = 1e-3
# Share of the variance that columns must have for their rounding errors to matter.
MATTERS = 0.01


def precision_warnings(rows: Rows) -> tuple[Warning, ...]:
    """What is lost of the data, judged by some rows of the beginning, the middle and the end.

    Raises ValueError if the entries are so large or so small that squares are not to be had, or
    if sparse rows, which are never centred themselves, lie too far from zero.
    """
    sample = rows.sampled()
    largest = checked_size(sample, rows.dtype.name)
    if isinstance(rows, SparseRows):
        _refuse_far(rows)
        return ()
    return _lost_columns(sample, largest, rows.dtype.name) if np.isfinite(largest) else ()


def checked_size(X: Array, name: str, *, to_learn: bool = True) -> float:
    """Size of the largest entry; ValueError if it has no square in the precision of that name.

    New rows, from which nothing is learnt, may be as small as they like.
    """
    if not X.size:
        return 0.0
    low, high = float(np.fmin.reduce(X, axis=None)), float(np.fmax.reduce(X, axis=None))
    largest, (least, most) = max(abs(low), abs(high)), SIZES[name]
    if largest > 0 and np.isfinite(largest) and not least * to_learn < largest < most:
        raise ValueError(
            f"Entries of X are of the size {largest:.0e}, whose squares overflow or vanish in "
            f"{name}: divide X by {largest:.0e}" + (", or use float64." if most < 1e100 else ".")
        )
    return largest


def _refuse_far(rows: SparseRows) -> None:
    """ValueError if squares of sparse rows, centred by algebra, lose what varies."""
    means, variances = np.asarray(mean_variance_axis(rows.X, axis=0), np.float64)
    size, spread = float(np.linalg.norm(means)), float(np.sqrt(np.sum(variances)))
    if 0 < spread < np.sqrt(np.finfo(rows.dtype.name).eps / LOST) * size:
        worst = int(np.argmax(np.abs(means)))
        raise ValueError(
            f"The sparse rows of X lie {size:.1e} from zero and vary by {spread:.1e}, too little "
            "for rows that are not centred one by one: subtract an offset from columns such as "
            f"{worst}, whose mean is {means[worst]:.1e}, or pass X.toarray()."
        )


def _lost_columns(sample: Array, largest: float, name: str) -> tuple[Warning, ...]:
    """The warning that columns far from zero hold little but rounding errors."""
    # In units in which squares are safe, about one of the values of each column: the deviation of
    # a constant one is exactly zero.
    scaled = sample.astype(np.float64) / (largest or 1.0)
    highest = np.nan_to_num(np.fmax.reduce(scaled, axis=0))
    below, known = scaled - highest, ~np.isnan(scaled)
    counts = np.maximum(np.count_nonzero(known, axis=0), 1)
    mean = np.sum(below, axis=0, where=known) / counts
    deviation = np.sqrt(np.sum((below - mean) ** 2, axis=0, where=known) / counts)
    rounding = float(np.finfo(name).eps) * np.abs(highest)
    lost = (rounding > HARMLESS * deviation) & (deviation > 0)
    if np.sum(deviation[lost] ** 2) <= MATTERS * np.sum(deviation**2):
        return ()
    worst = int(np.argmax(np.where(lost, rounding / np.maximum(deviation, 1e-300), 0.0)))
    other = "Use float64, or s" if name == "float32" else "S"
    return (
        UserWarning(
            f"{np.count_nonzero(lost)} columns of X lie so far from zero that {name} holds little "
            f"of what varies: column {worst} is {largest * highest[worst]:.1e} and varies by "
            f"{largest * deviation[worst]:.1e}. {other}ubtract an offset from each column before "
            "the data are rounded."
        ),
    )
