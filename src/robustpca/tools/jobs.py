"""What people ask of a spoiled table: which rows are bad, and which entries.

`find_rows` and `clean_entries`, and `robustpca.tools.checks.check`, take a file, a data frame, an
array or a `Table`, choose everything else by themselves, and return a value that prints as a text.
The command line calls them, and so can anybody else.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from robustpca.engine.linalg import Array
from robustpca.engine.rows import ArrayRows
from robustpca.models import RPCA, all_methods
from robustpca.models.advice import FAR_SCORE
from robustpca.models.estimator import refuse_containers
from robustpca.models.precision import SIZES, checked_size
from robustpca.parts.ranks import rank_of
from robustpca.parts.units import Units, column_units, spreads
from robustpca.tools.files import Table, of_frame, read
from robustpca.tools.files.columns import JUDGED
from robustpca.tools.reasons import Columns, Reason, reasons
from robustpca.tools.tails import sparse_remark, tail_remark
from robustpca.tools.words import aligned, counted, finite, number, plural

__all__ = [
    "Cell",
    "EntriesFound",
    "RowsFound",
    "as_table",
    "clean_entries",
    "describe_rows",
    "filled",
    "find_rows",
    "fitted_rows",
]

Callback = Callable[[Any], object]

FEWEST_ROWS, FEWEST_COLUMNS = 10, 2
# Wrong entries are beyond the end of the tails that this share of the entries of their column
# has, extrapolated to one entry of the table, by this factor.
NEAR_SHARE, BEYOND_TAILS = 0.8, 1.2
# Of the rows this share may be left out of a fit, more only if all of them are far off; all others
# count as usual. One wrong cell in a hundred spoils every third row of forty columns.
LEFT_OUT = 0.25
# A row with more than this share of its entries flagged has too few left to restore them from.
WHOLE_ROW = 1 / 3
# If more than this share of all entries is flagged, the table is taken to be too narrow for a fit
# without noise: it is fitted again with noise of this share of the spread of a column.
MANY_FLAGS, LITTLE_NOISE = 0.3, 0.01
# The first component is said to turn if it does so by this many degrees, and by this many times
# as much as without as many rows that are not flagged.
NOTABLE_TURN, BEYOND_CHANCE, TURN_DRAWS = 5.0, 3.0, 5
# Rows in which at most this many columns are off by so many standard deviations have single wrong
# entries, if these are few among the columns.
FEW_COLUMNS, FAR_SIGMAS = 2, 5.0
# So many rows and entries are shown in a text.
SHOWN = 10


@dataclass(frozen=True)
class RowsFound:
    """Rows that do not fit the others; printed, it is a text.

    Attributes
    ----------
    table : Table
        The data.
    data : ndarray of shape (n_rows, n_columns)
        The numbers that were judged: filled, and brought to one scale if need be.
    model : estimator
        The fitted method.
    flags : ndarray of shape (n_rows,), dtype bool
        Rows beyond the cutoff of the method. A few of the good rows always are.
    far : ndarray of shape (n_rows,), dtype bool
        Flagged rows that are so far beyond it that good rows hardly ever are.
    outlyingness : ndarray of shape (n_rows,)
        All distances in one number: 0 for a typical row, 1 at the cutoff.
    score_distance, orthogonal_distance : ndarray of shape (n_rows,)
        Distance from the centre within the subspace, in standard deviations, and distance from
        the subspace.
    score_cutoff, orthogonal_cutoff : float
        Where each of them is unusual by itself.
    weight : ndarray of shape (n_rows,)
        Weight in the fit, 1 on average.
    reasons : dict of int to tuple of Reason
        For each flagged row the columns that make it stand out.
    turn : float
        Angle in degrees between the first principal component of all rows and that of the rows
        which are not far; NaN if there are no far ones.
    turn_by_chance : float
        The same without as many rows that are not far, in the median of a few draws.
    scaled : bool
        Whether columns were brought to one scale first.
    n_filled : int
        Missing cells, which were filled by the low-rank part of RPCA first.
    n_restored : int
        Wrong cells that were restored for the fit; the rows are judged as they are.
    """

    table: Table
    data: Array
    model: BaseEstimator
    flags: Array
    far: Array
    outlyingness: Array
    score_distance: Array
    orthogonal_distance: Array
    score_cutoff: float
    orthogonal_cutoff: float
    weight: Array
    reasons: dict[int, tuple[Reason, ...]]
    turn: float
    turn_by_chance: float
    scaled: bool
    n_filled: int
    n_restored: int = 0

    @cached_property
    def order(self) -> Array:
        """Numbers of the flagged rows, the worst first."""
        flagged = np.flatnonzero(self.flags)
        return flagged[np.argsort(-self.outlyingness[flagged], kind="stable")]

    @property
    def verdict(self) -> str:
        """What was found, in one or two sentences."""
        n_rows, n_far, n_flagged = len(self.flags), int(self.far.sum()), int(self.flags.sum())
        near = n_flagged - n_far
        good = "as 1 to 5 % of good rows are"
        if near > 0.05 * n_rows:
            good = "more than the 1 to 5 % of good rows that are"
        beyond = f"just beyond the cutoff, {good}"
        if not n_far:
            text = f"All {n_rows} rows fit together."
            return text + (f" {counted(near, 'row is', 'rows are')} {beyond}." if near else "")
        verb = "does" if n_far == 1 else "do"
        text = f"{n_far} of {n_rows} rows {verb} not fit the rest"
        if self.turn >= max(NOTABLE_TURN, BEYOND_CHANCE * self.turn_by_chance):
            without = "without it" if n_far == 1 else "without them"
            text += f"; {without} the first component turns by {self.turn:.0f} degrees"
        if near:
            rows = "row is" if near == 1 else f"{near} rows are"
            text += f". Another {rows} {beyond}"
        return text + "."

    @cached_property
    def n_single(self) -> int:
        """Number of far rows in which one or two columns alone stand out."""
        if WHOLE_ROW * len(self.table.names) < FEW_COLUMNS:
            return 0
        broken = self.far & (self.orthogonal_distance > self.orthogonal_cutoff)
        off = [
            sum(abs(reason.sigmas) >= FAR_SIGMAS for reason in self.reasons[int(i)])
            for i in np.flatnonzero(broken)
        ]
        return sum(0 < number <= FEW_COLUMNS for number in off)

    @property
    def remarks(self) -> list[str]:
        """What else to know: rows with single wrong entries, and what was done to the data."""
        found = []
        if self.n_single:
            rows = counted(self.n_single, "row has", "rows have")
            found.append(f"{rows} one or two wrong cells: `robustpca entries` restores these.")
        if self.scaled:
            found.append("The columns have different units and were brought to one scale first.")
        if self.n_filled:
            cells = counted(self.n_filled, "missing cell was", "missing cells were")
            found.append(f"{cells} filled by the low-rank part of RPCA first.")
        if self.n_restored:
            cells = counted(self.n_restored, "wrong cell", "wrong cells")
            found.append(f"The fit is without {cells}, which are in too many rows to leave out.")
        return found + (tail_remark(self.table) if self.flags.any() else [])

    def columns(self) -> dict[str, Any]:
        """What is known of each row, as columns to be put beside those of the table."""
        texts = ["; ".join(map(str, self.reasons.get(i, ()))) for i in range(len(self.flags))]
        distances = self.score_distance, self.orthogonal_distance
        told = np.array(texts, dtype=object)
        found = (self.flags, self.outlyingness, *distances, self.weight, told)
        return dict(zip(JUDGED, found, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The result in lists, numbers and texts, for JSON."""
        return {
            "verdict": self.verdict,
            "remarks": self.remarks,
            "method": type(self.model).__name__,
            "n_rows": len(self.flags),
            "n_components": int(np.prod(self.model.n_components_)),
            "n_flagged": int(self.flags.sum()),
            "n_far": int(self.far.sum()),
            "n_single": self.n_single,
            "turn_degrees": finite(self.turn),
            "score_cutoff": finite(self.score_cutoff),
            "orthogonal_cutoff": finite(self.orthogonal_cutoff),
            "rows": [
                {
                    "row": self.table.labels[i],
                    "far": bool(self.far[i]),
                    "outlyingness": finite(self.outlyingness[i]),
                    "score_distance": finite(self.score_distance[i]),
                    "orthogonal_distance": finite(self.orthogonal_distance[i]),
                    "weight": finite(self.weight[i]),
                    "reasons": [
                        {name: one if name == "column" else finite(one) for name, one in facts}
                        for facts in (vars(reason).items() for reason in self.reasons[int(i)])
                    ],
                }
                for i in self.order
            ],
        }

    def __str__(self) -> str:
        lines = [self.verdict, *self.remarks]
        shown = [int(i) for i in self.order[:SHOWN]]
        if shown:
            heads = ("row", "outlyingness", "score", "orthogonal", "what stands out, in sigmas")
            first = [", ".join([*map(str, r[:1]), *(one.short for one in r[1:])])
                     for r in (self.reasons[i] for i in shown)]  # fmt: skip
            body = [
                (
                    self.table.labels[i],
                    f"{self.outlyingness[i]:.1f}",
                    number(self.score_distance[i], 3),
                    number(self.orthogonal_distance[i], 3),
                    words,
                )
                for i, words in zip(shown, first, strict=True)
            ]
            cutoffs = (number(self.score_cutoff, 3), number(self.orthogonal_cutoff, 3))
            lines += ["", *aligned([heads, *body, ("cutoff", "1.0", *cutoffs, "")])]
            if len(self.order) > SHOWN:
                lines.append(f"... and {len(self.order) - SHOWN} more.")
        return "\n".join(lines)


@dataclass(frozen=True)
class Cell:
    """An entry that was wrong or missing.

    Attributes
    ----------
    row, column : str
        Where it is.
    given, restored : float
        What stood there, NaN if nothing, and what fits the other entries.
    sigmas : float
        By how many standard deviations of the noise of its column it was off; NaN if it was
        missing.
    kind : {'wrong', 'missing'}
        What is the matter with it.
    """

    row: str
    column: str
    given: float
    restored: float
    sigmas: float
    kind: str


@dataclass(frozen=True)
class EntriesFound:
    """Entries that are wrong or missing; printed, it is a text.

    Attributes
    ----------
    table : Table
        The data.
    model : RPCA
        The fitted method.
    X : ndarray of shape (n_rows, n_columns)
        The table with restored entries; all others are the same to the last bit.
    wrong : ndarray of shape (n_rows, n_columns), dtype bool
        Entries that were flagged and replaced.
    sigmas : ndarray of shape (n_rows, n_columns)
        By how many standard deviations of the noise of its column each entry is off.
    whole_rows : ndarray of int
        Rows with so many flagged entries that too few are left to restore them from: these stay
        as they are.
    removed : bool
        Whether wrong entries are left empty in ``X`` and missing ones stay so.
    """

    table: Table
    model: BaseEstimator
    X: Array
    wrong: Array
    sigmas: Array
    whole_rows: Array
    removed: bool

    @cached_property
    def missing(self) -> Array:
        """Which entries of the table are missing."""
        return np.isnan(self.table.X)

    @cached_property
    def cells(self) -> list[Cell]:
        """All entries that were wrong, the worst first, and those that were missing."""
        rows, columns = np.nonzero(self.wrong)
        order = np.argsort(-np.abs(self.sigmas[rows, columns]), kind="stable")
        places = [*zip(rows[order], columns[order], strict=True), *np.argwhere(self.missing)]
        restored = self.model.low_rank_
        return [
            Cell(
                self.table.labels[i],
                self.table.names[j],
                float(self.table.X[i, j]),
                float(restored[i, j]),
                float(self.sigmas[i, j]),
                "wrong" if self.wrong[i, j] else "missing",
            )
            for i, j in places
        ]

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or a few."""
        n_cells, n_wrong = self.wrong.size, int(self.wrong.sum())
        n_missing, n_whole = int(self.missing.sum()), len(self.whole_rows)
        if not n_wrong and not n_missing:
            text = f"No cell of {n_cells} is wrong or missing."
        elif not n_missing:
            text = f"{n_wrong} of {n_cells} cells {plural(n_wrong, 'is', 'are')} wrong."
        elif not n_wrong:
            text = f"No cell of {n_cells} is wrong, and {n_missing} "
            text += f"{plural(n_missing, 'is', 'are')} missing."
        else:
            text = f"{n_wrong} of {n_cells} cells {plural(n_wrong, 'is', 'are')} wrong, and "
            text += f"{n_missing} {plural(n_missing, 'is', 'are')} missing."
        if n_whole:
            rows = counted(n_whole, "row is", "rows are")
            text += f" {rows} wrong in many cells and left as given: see `robustpca rows`."
        return text

    @property
    def remarks(self) -> list[str]:
        """What else to know: columns in which rare or large numbers need not be wrong."""
        if not self.wrong.any():
            return []
        return sparse_remark(self.table, self.wrong) + tail_remark(self.table)

    def to_dict(self) -> dict[str, Any]:
        """The result in lists, numbers and texts, for JSON."""
        return {
            "verdict": self.verdict,
            "remarks": self.remarks,
            "rank": int(self.model.rank_),
            "n_cells": int(self.wrong.size),
            "n_wrong": int(self.wrong.sum()),
            "n_missing": int(self.missing.sum()),
            "whole_rows": [self.table.labels[i] for i in self.whole_rows],
            "cells": [
                vars(cell)
                | {name: finite(vars(cell)[name]) for name in ("given", "restored", "sigmas")}
                for cell in self.cells
            ],
        }

    def __str__(self) -> str:
        lines = [self.verdict, *self.remarks]
        wrong = [cell for cell in self.cells if cell.kind == "wrong"]
        if wrong:
            heads = ("row", "column", "given", "restored", "sigmas")
            body = [
                (c.row, c.column, number(c.given, 6), number(c.restored), f"{c.sigmas:+.0f}")
                for c in wrong[:SHOWN]
            ]
            lines += ["", *aligned([heads, *body])]
            if len(wrong) > SHOWN:
                lines.append(f"... and {len(wrong) - SHOWN} more.")
        return "\n".join(lines)


def find_rows(
    data: Any,
    *,
    method: str = "PCAAN",
    n_components: int | float | str | None = None,
    contamination: float | str = "auto",
    scale: str | None = "auto",
    callback: Callback | None = None,
) -> RowsFound:
    """Find the rows of a table that do not fit the others, and say why.

    Parameters
    ----------
    data : path, data frame, array or Table
        The data; NaN where a cell is missing. Rows are judged as they are, with missing cells
        filled; if wrong cells are in so many that a method could not leave them out, by a fit
        to the table that `clean_entries` gives.
    method : str, default='PCAAN'
        Name of one of `robustpca.all_methods`.
    n_components : int, float, 'auto' or None, default=None
        Dimension of the subspace: a number, a share of the variance, 'auto' to find it by
        predicting held-out entries, or None for what suits the method: that of 'auto', and for
        PCAAN 90 % of the variance, or that of 'auto' if each further component halves the rest.
    contamination : float or 'auto', default='auto'
        Share of the rows to flag, at most 0.5; 'auto' for those beyond a cutoff that is learnt
        from the rows.
    scale : {'auto', 'mad'} or None, default='auto'
        'mad' divides columns by their median absolute deviation; 'auto' does so if they have
        different units.
    callback : callable, default=None
        Called after each pass of a fit.

    Returns
    -------
    RowsFound
        Flags, distances, weights, and the columns that make each flagged row stand out.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.tools.jobs import find_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))
    >>> X[7, 3] += 5
    >>> found = find_rows(X)
    >>> found.far.nonzero()[0], found.reasons[7][0].column
    (array([7]), 'x3')
    """
    table = as_table(data)
    if scale not in ("auto", "mad", None):
        raise ValueError(f"scale={scale!r} is not known: choose 'auto', 'mad' or None.")
    estimator = _method(method, table, n_components, contamination, callback)
    entries = clean_entries(table, callback=callback)
    given = np.where(entries.missing, entries.X, table.X)
    options: dict[str, Any] = {"scale": scale, "widen": n_components is None}
    spoiled = np.asarray(entries.wrong.any(axis=1))
    spoiled[entries.whole_rows] = True
    if spoiled.mean() > LEFT_OUT:
        units, model = fitted_rows(entries.X, estimator, **options)
        far = model.score_samples(units.remove(given)) < FAR_SCORE
        if (spoiled & far).mean() > LEFT_OUT:
            n_restored = int((given != entries.X).sum())
            return replace(describe_rows(table, model, units, given), n_restored=n_restored)
    units, model = fitted_rows(given, estimator, **options)
    return describe_rows(table, model, units, given)


def fitted_rows(
    X: Array, estimator: Any, *, scale: str | None = "auto", widen: bool = True
) -> tuple[Units, Any]:
    """Fit a method to the rows of a table.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        The numbers of the table, without missing ones.
    estimator : estimator
        The method.
    scale : {'auto', 'mad'} or None, default='auto'
        As for `find_rows`.
    widen : bool, default=True
        Whether a share of the variance may become more components.

    Returns
    -------
    units : Units
        What was removed from the numbers before.
    model : estimator
        The fitted method.
    """
    units = _units(X, scale)
    rows = units.remove(X)
    model = _fitted(estimator, rows)
    if widen and isinstance(model.n_components, float):
        model = _with_last_directions(model, rows)
    return units, model


def filled(table: Table, callback: Callback | None = None) -> Array:
    """The numbers of a table, with the low-rank part of RPCA where they are missing."""
    missing = np.isnan(table.X)
    if not missing.any():
        return table.X
    return np.where(missing, _decomposed(table.X, callback).low_rank_, table.X)


def describe_rows(table: Table, model: Any, units: Units, X: Array) -> RowsFound:
    """What a fitted model says of the rows of a table.

    Parameters
    ----------
    table : Table
        The data.
    model : estimator
        A fitted model with distances of rows.
    units : Units
        What was removed from the data before the fit.
    X : ndarray of shape (n_rows, n_columns)
        The numbers of the table, without missing ones.

    Returns
    -------
    RowsFound
        Flags, distances, weights, and the columns that make each flagged row stand out.
    """
    data = units.remove(X)
    score = -np.asarray(model.score_samples(data))
    flags = model.predict(data) == -1
    far = flags & (score > -FAR_SCORE)
    orthogonal, inside = model.orthogonal_distances(data), model.score_distances(data)
    clean = ~flags if flags.mean() < 0.5 else np.ones_like(flags)
    fitted = model.reconstruct(data)
    columns = Columns.of(data[clean], fitted[clean], int(np.prod(model.n_components_)))
    worst = np.flatnonzero(flags)
    within = orthogonal[worst] <= model.orthogonal_cutoff_
    told = reasons(columns, data[worst], within, table.names, units)
    turn, by_chance = _turn(data, far)
    return RowsFound(
        table=table,
        data=data,
        model=model,
        flags=flags,
        far=far,
        outlyingness=score,
        score_distance=inside,
        orthogonal_distance=orthogonal,
        score_cutoff=model.score_cutoff_,
        orthogonal_cutoff=model.orthogonal_cutoff_,
        weight=_weights(model, flags),
        reasons=dict(zip(worst.tolist(), told, strict=True)),
        turn=turn,
        turn_by_chance=by_chance,
        scaled=bool((units.scale != units.scale[0]).any()),
        n_filled=int(np.isnan(table.X).sum()),
    )


def clean_entries(
    data: Any,
    *,
    flag_rate: float | str = "auto",
    remove: bool = False,
    callback: Callback | None = None,
) -> EntriesFound:
    """Find the entries of a table that are wrong, and restore these and the missing ones.

    Parameters
    ----------
    data : path, data frame, array or Table
        The data; NaN where a cell is missing.
    flag_rate : float or 'auto', default='auto'
        Share of the good entries that may be flagged by mistake if the noise is Gaussian. 'auto'
        flags about one of the whole table, and allows for tails as long as those of the entries
        that are near.
    remove : bool, default=False
        Leave wrong and missing entries empty instead of restoring them.
    callback : callable, default=None
        Called after each pass of a fit.

    Returns
    -------
    EntriesFound
        The table with the restored entries, in the units it was given in, and a list of them.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.tools.jobs import clean_entries
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(300, 12))
    >>> X[17, 4] = 999
    >>> found = clean_entries(X)
    >>> [(cell.row, cell.column, cell.given) for cell in found.cells]
    [('17', 'x4', 999.0)]
    """
    table = as_table(data)
    X, missing = table.X, np.isnan(table.X)
    rate = 1e-3 if flag_rate == "auto" else flag_rate
    model = _decomposed(X, callback, flag_rate=rate)
    low_rank, flags = model.low_rank_, model.entry_flags_ & ~missing
    sigmas = _sigmas(X, model, flags)
    counts = np.maximum((~missing).sum(axis=1), 1)
    many = flags.sum(axis=1) > WHOLE_ROW * counts
    if flag_rate == "auto":
        flags &= np.abs(sigmas) > _tails(sigmas)
    # Many entries that are a little off, and none beyond the tails, make no wrong row.
    whole = np.flatnonzero(many & flags.any(axis=1))
    flags[whole] = False
    restored = np.full_like(X, np.nan) if remove else low_rank
    return EntriesFound(
        table=table,
        model=model,
        X=np.where(flags | missing, restored, X),
        wrong=flags,
        sigmas=sigmas,
        whole_rows=whole,
        removed=remove,
    )


def as_table(data: Any) -> Table:
    """A file, a data frame or an array as a `Table`."""
    if isinstance(data, str | Path):
        data = read(data)
    if not isinstance(data, Table):
        data = _from_memory(data)
    n_rows, n_columns = data.X.shape
    if n_rows < FEWEST_ROWS or n_columns < FEWEST_COLUMNS:
        raise ValueError(
            f"{data.path.name} has {counted(n_rows, 'row', 'rows')} and "
            f"{counted(n_columns, 'numeric column', 'numeric columns')}: at least {FEWEST_ROWS} "
            f"rows and {FEWEST_COLUMNS} columns are needed to see what is usual."
        )
    if np.isinf(data.X).any():
        i, j = np.argwhere(np.isinf(data.X))[0]
        raise ValueError(
            f"Row {data.labels[i]} of {data.path.name} has an infinite number in the column "
            f"{data.names[j]!r}: leave the cell empty."
        )
    _refuse_sizes(data)
    return data


def _refuse_sizes(table: Table) -> None:
    """ValueError if numbers have no square; of large ones the cell is told, which may be wrong."""
    sizes = np.abs(np.nan_to_num(table.X))
    i, j = np.unravel_index(sizes.argmax(), sizes.shape)
    if sizes[i, j] >= SIZES["float64"][1]:
        raise ValueError(
            f"Row {table.labels[i]} of {table.path.name} has {table.X[i, j]:.0e} in the column "
            f"{table.names[j]!r}, too large to be squared: correct the cell or leave it empty, or "
            "give the column another unit."
        )
    checked_size(table.X, "float64")


def _from_memory(data: Any) -> Table:
    """A data frame or an array as a `Table`; rows and columns are called as Python calls them."""
    refuse_containers(data)
    if hasattr(data, "columns") and hasattr(data, "to_pandas"):
        data = data.to_pandas()
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return of_frame(data)
    X = np.asarray(data.toarray() if hasattr(data, "toarray") else data)
    if X.ndim != 2:
        raise ValueError(f"A table has rows and columns, but the data have shape {X.shape}.")
    try:
        if X.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        X = X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A table of numbers is needed, but the data are of type {X.dtype}: {error}."
        ) from error
    names = [f"x{j}" for j in range(X.shape[1])]
    return Table(X, names, [str(i) for i in range(len(X))], {}, None, None, Path("data"))


def _fitted(model: Any, X: Array) -> Any:
    """A fitted model; that it could be fitted more exactly is no concern of these jobs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def _with_last_directions(model: Any, X: Array) -> Any:
    """A model with a share of the variance, or with all components where that lacks few large ones.

    What rows differ by along a direction that is left out hides those that do not fit. Components
    that the data are worth are added if each of them halves what is left, as it does where the
    rest is noise; it does not on images, where a share ranks rows better.
    """
    rank = rank_of(ArrayRows(X))
    if rank <= model.n_components_:
        return model
    with warnings.catch_warnings():
        # The first fit has told what there is to tell of the data, and this may be none to keep.
        warnings.simplefilter("ignore")
        wider = clone(model).set_params(n_components=rank).fit(X)
    before, after = (np.median(found.orthogonal_distances(X)) ** 2 for found in (model, wider))
    return wider if after <= 0.5 ** (rank - model.n_components_) * before else model


def _decomposed(X: Array, callback: Callback | None, **parameters: Any) -> Any:
    """RPCA of a table."""
    with warnings.catch_warnings():
        # Advice on parameters of RPCA, which nobody gave here.
        warnings.simplefilter("ignore", UserWarning)
        model = RPCA(callback=callback, **parameters).fit(X)
        if model.entry_flags_.mean() > MANY_FLAGS:
            parameters |= {"center": "median", "scale": "mad", "noise": LITTLE_NOISE}
            model = RPCA(callback=callback, **parameters).fit(X)
    return model


def _sigmas(X: Array, model: Any, flags: Array) -> Array:
    """By how many standard deviations each entry is off.

    Flagged entries took no part in the fit of their row: what they differ by is the error of a
    prediction, of which the variance is that of the noise over the share of it that a fit of the
    entry would leave.
    """
    low_rank = model.low_rank_
    inside = column_units(X, "auto", "auto").remove(low_rank)
    axes = np.linalg.svd(inside, full_matrices=False)[2][: model.rank_]
    left = np.maximum(1 - np.einsum("ij,ij->j", axes, axes), 0.01)
    noise = np.maximum(model.column_noise_, 1e-6 * spreads(X))
    varies = noise > 0  # what a constant column differs by is the tolerance of the fit
    errors = np.where(varies, X - low_rank, 0.0) / np.where(varies, noise, 1.0)
    return np.asarray(errors * np.where(flags, np.sqrt(left), 1.0))


def _method(
    name: str, table: Table, n_components: Any, contamination: Any, callback: Callback | None
) -> BaseEstimator:
    """An estimator by name, with what it needs to know of the table."""
    known = all_methods()
    if name not in known:
        raise ValueError(f"No method is called {name!r}: choose from {', '.join(known)}.")
    parameters = signature(known[name]).parameters
    given: dict[str, Any] = {"contamination": contamination}
    if "callback" in parameters:  # methods without a loop have none
        given["callback"] = callback
    if "image_shape" in parameters:
        if table.image_shape is None:
            raise ValueError(f"{name} is for images, and {table.path.name} holds none.")
        given["image_shape"] = table.image_shape
    if n_components is not None:
        given["n_components"] = n_components
    elif name not in KEEP_RANK and parameters["n_components"].default is None:
        given["n_components"] = "auto"
    return known[name](**given)


KEEP_RANK = ("RPCA", "RPCAG", "FRPCAG")


def _units(X: Array, scale: str | None) -> Units:
    if scale is None:
        return Units(np.zeros(X.shape[1]), np.ones(X.shape[1]))
    return column_units(X, "auto" if scale == "auto" else "median", scale)


def _weights(model: Any, flags: Array) -> Array:
    """Weight of each row in the fit, 1 on average; 0 for flagged ones if the method has none."""
    weights = getattr(model, "sample_weights_", None)
    weights = np.where(flags, 0.0, 1.0) if weights is None else np.asarray(weights, float)
    return weights / max(float(weights.mean()), np.finfo(float).tiny)


def _turn(data: Array, far: Array) -> tuple[float, float]:
    """By how many degrees the first component turns without the far rows, and by chance."""
    if not far.any() or far.all():
        return float("nan"), float("nan")
    rng, usual = np.random.default_rng(0), np.flatnonzero(~far)
    before, without = _first(data), _first(data[usual])
    n_left = len(usual) - min(int(far.sum()), len(usual) // 2)
    draws = [_first(data[rng.permutation(usual)[:n_left]]) for _ in range(TURN_DRAWS)]
    return _angle(before, without), float(np.median([_angle(without, one) for one in draws]))


def _first(X: Array) -> Array:
    if not np.ptp(X, axis=0).any():
        return np.full(X.shape[1], np.nan)  # equal rows have no direction
    # Moments of rows far from zero, from which PCA may start, have no digits.
    return PCA(1, random_state=0).fit(X - X.mean(axis=0)).components_[0]


def _angle(a: Array, b: Array) -> float:
    return float(np.degrees(np.arccos(min(abs(float(a @ b)), 1.0))))


def _tails(sigmas: Array) -> Array:
    """Where the tails of each column end, if they go on as they begin.

    Logarithms of the quantiles of exponential, Gaussian and similar tails are linear in the
    logarithm of minus the logarithm of the probability.
    """
    middle, near = np.nanquantile(np.abs(sigmas), (0.5, NEAR_SHARE), axis=0)
    here, end = -np.log(1 - NEAR_SHARE), np.log(sigmas.size)
    tiny = np.finfo(np.float64).tiny
    ratio = np.log(np.maximum(near, tiny)) - np.log(np.maximum(middle, tiny))
    slope = ratio / np.log(here / np.log(2))
    ends = BEYOND_TAILS * near * (end / here) ** np.clip(slope, 0.5, 2.0)
    # Short tails of one column may be chance, those of most are not.
    return np.asarray(np.maximum(ends, np.median(ends)))
