"""What is wrong with a table, and which method to use."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from robustpca.engine.linalg import Array
from robustpca.engine.rows import ArrayRows
from robustpca.models import PCAAN, suggest
from robustpca.models.advice import Suggestion, for_entries
from robustpca.parts.ranks import rank_of
from robustpca.parts.units import column_units, unit_differences
from robustpca.tools.files import Table
from robustpca.tools.jobs import (
    Callback,
    EntriesFound,
    RowsFound,
    as_table,
    clean_entries,
    describe_rows,
    fitted_rows,
)
from robustpca.tools.words import aligned, counted, listed, number

__all__ = ["Check", "Tuning", "check", "tune"]

# This many rows are judged, at most; others are like them.
CHECKED_ROWS = 5000


@dataclass(frozen=True)
class Check:
    """What is wrong with a table; printed, it is a text.

    Attributes
    ----------
    table : Table
        The data.
    n_rows : int
        How many of its rows were looked at.
    constant : list of str
        Columns with one value.
    twins : dict of str to str
        Columns that equal an earlier one, and that one.
    repeated : dict of str to str
        Rows that equal an earlier one, and that one.
    differing_units : bool
        Whether the columns have different units.
    entries : EntriesFound
        Wrong and missing entries.
    rows : RowsFound
        Rows that do not fit, once wrong entries are restored.
    suggestion : Suggestion
        Troubles and a ready estimator.
    """

    table: Table
    n_rows: int
    constant: list[str]
    twins: dict[str, str]
    repeated: dict[str, str]
    differing_units: bool
    entries: EntriesFound
    rows: RowsFound
    suggestion: Suggestion

    @cached_property
    def missing_shares(self) -> dict[str, float]:
        """Share of missing cells of each column that lacks any, the worst first."""
        shares = np.isnan(self.table.X).mean(axis=0)
        order = np.argsort(-shares, kind="stable")
        return {self.table.names[j]: float(shares[j]) for j in order if shares[j] > 0}

    @cached_property
    def bad(self) -> Array:
        """Which rows do not fit: those that are far, or beyond the cutoff and wrong in many cells.

        The cutoff of few rows is uncertain, so that hardly any is far beyond it.
        """
        many = np.zeros_like(self.rows.far)
        many[self.entries.whole_rows] = True
        return np.asarray(self.rows.far | (self.rows.flags & many))

    @property
    def verdict(self) -> str:
        """What is wrong, in a sentence."""
        n_missing = int(self.entries.missing.sum())
        n_wrong, n_bad = int(self.entries.wrong.sum()), int(self.bad.sum())
        found = [
            (n_missing, counted(n_missing, "missing cell", "missing cells")),
            (n_wrong, counted(n_wrong, "wrong cell", "wrong cells")),
            (n_bad, counted(n_bad, "bad row", "bad rows")),
        ]
        troubles = [text for number, text in found if number]
        if not troubles:
            return f"Nothing is wrong{self._among} that PCA would mind."
        words = " and ".join(filter(None, [", ".join(troubles[:-1]), troubles[-1]]))
        return f"Found {words}{self._among}."

    @property
    def _among(self) -> str:
        """Among how many rows something was looked for, if not among all."""
        if self.n_rows == len(self.table.X):
            return ""
        return f" in a sample of {self.n_rows} of the {len(self.table.X)} rows"

    @property
    def lines(self) -> dict[str, str]:
        """One finding a line, by name."""
        X, entries, rows = self.table.X, self.entries, self.rows
        worst = [f"{name} ({share:.1%})" for name, share in self.missing_shares.items()]
        n_missing = int(np.isnan(X).sum())
        cells = [cell for cell in entries.cells if cell.kind == "wrong"]
        bad = [rows.table.labels[i] for i in rows.order if self.bad[i]]
        close = ", close together" if "a group of bad rows" in self.suggestion.troubles else ""
        groups = self.suggestion.troubles.get("groups", "")
        return {
            "missing cells": f"{n_missing} of {X.size}, most in {listed(worst, 3)}"
            if n_missing
            else "none",
            "constant columns": listed(self.constant) or "none",
            "repeated columns": listed([f"{a} = {b}" for a, b in self.twins.items()]) or "none",
            "repeated rows": listed([f"{a} = {b}" for a, b in self.repeated.items()]) or "none",
            "units": "differ between columns: `rows` and `entries` allow for it"
            if self.differing_units
            else "much the same in all columns",
            "wrong cells": listed(
                [
                    f"row {c.row}, {c.column}: {number(c.given, 6)} instead of "
                    f"{number(c.restored, 4)}"
                    for c in cells
                ],
                3,
                "; ",
            )
            or "none",
            "bad rows": f"{len(bad)} of {self.n_rows}{close}: {listed(bad, 5)}" if bad else "none",
            "groups": groups.removeprefix("the rows form ").rstrip(".") or "none",
        }

    @property
    def commands(self) -> dict[str, str]:
        """What to run next, and what it does."""
        path, found = self.table.path, {}
        n_wrong, n_missing = int(self.entries.wrong.sum()), int(np.isnan(self.table.X).sum())
        if n_wrong or n_missing:
            found[f"robustpca entries {path} -o cleaned"] = "restore wrong and missing cells"
        if self.bad.any():
            found[f"robustpca rows {path} -o marked"] = "mark the bad rows, and say why"
        return found or {f"robustpca rows {path}": "see the rows that are nearest to the edge"}

    @property
    def code(self) -> str:
        """The suggested method as Python that runs as it is."""
        return python_for(self.suggestion.estimator, self.table)

    def to_dict(self) -> dict[str, Any]:
        """The result in lists, numbers and texts, for JSON."""
        return {
            "verdict": self.verdict,
            "n_rows": len(self.table.X),
            "n_rows_looked_at": self.n_rows,
            "n_columns": len(self.table.names),
            "left_out": dict(self.table.left_out),
            "missing": self.missing_shares,
            "constant_columns": self.constant,
            "repeated_columns": self.twins,
            "repeated_rows": self.repeated,
            "differing_units": self.differing_units,
            "entries": self.entries.to_dict(),
            "rows": self.rows.to_dict(),
            "troubles": self.suggestion.troubles,
            "method": " ".join(repr(self.suggestion.estimator).split()),
            "reason": self.suggestion.reason,
            "commands": list(self.commands),
            "code": self.code,
        }

    def __str__(self) -> str:
        lines = [self.verdict, "", *aligned([*self.lines.items()])]
        lines += ["", "Next"]
        lines += ["  " + line for line in aligned(list(self.commands.items()))]
        lines += ["", f"In Python. {self.suggestion.reason}"]
        return "\n".join([*lines, *(f"  {line}".rstrip() for line in self.code.splitlines())])


@dataclass(frozen=True)
class Tuning:
    """Which method to use; printed, it is a text.

    Attributes
    ----------
    table : Table
        The data.
    suggestion : Suggestion
        Troubles and a ready estimator.
    n_components : int
        Number of components that the data have, in spite of bad rows and entries.
    check : Check
        What is wrong with the data.
    """

    table: Table
    suggestion: Suggestion
    n_components: int
    check: Check

    @property
    def verdict(self) -> str:
        """What to use."""
        model = " ".join(repr(self.suggestion.estimator).split())
        return (
            f"Use {model}; the data have {counted(self.n_components, 'component', 'components')}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The result in lists, numbers and texts, for JSON."""
        return {
            "verdict": self.verdict,
            "n_components": self.n_components,
            "troubles": self.suggestion.troubles,
            "method": " ".join(repr(self.suggestion.estimator).split()),
            "reason": self.suggestion.reason,
            "code": python_for(self.suggestion.estimator, self.table),
        }

    def __str__(self) -> str:
        troubles = [f"- {name}: {words}" for name, words in self.suggestion.troubles.items()]
        code = python_for(self.suggestion.estimator, self.table)
        lines = [self.verdict, self.suggestion.reason, "", "What the data have:"]
        lines += [*(troubles or ["- no trouble that plain PCA would mind"]), "", "In Python"]
        return "\n".join([*lines, *(f"  {line}".rstrip() for line in code.splitlines())])


def check(data: Any, *, callback: Callback | None = None) -> Check:
    """Say what is wrong with a table, and what to do about it.

    Parameters
    ----------
    data : path, data frame, array or Table
        The data; NaN where a cell is missing.
    callback : callable, default=None
        Called after each pass of a fit.

    Returns
    -------
    Check
        Missing, constant and repeated things, units, wrong cells, bad rows, groups, and which
        method to use. Of long tables a sample of the rows is judged.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.tools.checks import check
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(300, 12))
    >>> X[17, 4], X[20, 1] = 999, np.nan
    >>> print(check(X).verdict)
    Found 1 missing cell and 1 wrong cell.
    """
    table = as_table(data)
    sample = _sampled(table)
    X = table.X
    entries = clean_entries(sample, callback=callback)
    repaired = np.where(entries.wrong, entries.X, sample.X)
    rows = _rows_of(sample, entries, repaired, callback)
    spoiled = entries.wrong & rows.far[:, None]
    if spoiled.any():
        # Restored cells may break what holds exactly, such as a sum: a row that does not fit with
        # them is bad only if it does not fit as given either, as `find_rows` would tell.
        repaired = np.where(spoiled, sample.X, repaired)
        rows = _rows_of(sample, entries, repaired, callback)
    suggestion = suggest(repaired)
    differ = unit_differences(X)
    twins = _repeated(X.T, table.names)
    constant = [name for name, size in zip(table.names, _ranges(X), strict=True) if size == 0]
    twins = {name: other for name, other in twins.items() if name not in constant}
    return Check(
        table=table,
        n_rows=len(sample.X),
        constant=constant,
        twins=twins,
        repeated=_repeated(X, table.labels),
        differing_units=differ.medians or differ.spreads,
        entries=entries,
        rows=rows,
        suggestion=_completed(suggestion, entries, rows),
    )


def tune(data: Any, *, callback: Callback | None = None) -> Tuning:
    """Say which method to use for a table, and with how many components.

    Parameters
    ----------
    data : path, data frame, array or Table
        The data; NaN where a cell is missing.
    callback : callable, default=None
        Called after each pass of a fit.

    Returns
    -------
    Tuning
        A ready estimator, and why.
    """
    table = as_table(data)
    found = check(table, callback=callback)
    X = found.entries.model.low_rank_ if found.entries.missing.any() else found.entries.X
    X = np.where(found.entries.missing, X, found.entries.X)
    n_components = rank_of(ArrayRows(column_units(X, "auto", "auto").remove(X)))
    return Tuning(table, found.suggestion, n_components, found)


def python_for(model: BaseEstimator, table: Table) -> str:
    """Code that fits a model to a table, and runs as it is."""
    steps = [step for _, step in getattr(model, "steps", [])]
    parts = steps or [model]
    imports = [f"from {_home(part)} import {type(part).__name__}" for part in parts]
    call = ", ".join(" ".join(repr(part).split()) for part in parts)
    if steps:
        imports.append("from sklearn.pipeline import make_pipeline")
        call = f"make_pipeline({call})"
    lines = [*imports, "", f"model = {call}.fit(X)"]
    if table.path.exists():
        lines.insert(0, "from robustpca.tools.files import read")
        lines.insert(-1, f"X = read({str(table.path)!r}).X")
    return "\n".join(lines)


def _sampled(table: Table) -> Table:
    """At most `CHECKED_ROWS` rows of a table."""
    n_rows = len(table.X)
    if n_rows <= CHECKED_ROWS:
        return table
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(n_rows, CHECKED_ROWS, replace=False))
    return replace(table, X=table.X[chosen], labels=[table.labels[i] for i in chosen])


def _rows_of(table: Table, entries: EntriesFound, X: Array, callback: Callback | None) -> RowsFound:
    """What is said of rows with these cells; missing ones are filled."""
    full = np.where(np.isnan(X), entries.X, X)
    units, model = fitted_rows(full, PCAAN(callback=callback))
    return describe_rows(replace(table, X=X), model, units, full)


def _completed(suggestion: Suggestion, entries: EntriesFound, rows: RowsFound) -> Suggestion:
    """A suggestion that knows of the few rows and entries that a share of all does not show."""
    troubles, n_far = suggestion.troubles, int(rows.far.sum())
    if not entries.wrong.any() and n_far and not {"bad rows", "missing entries"} & set(troubles):
        far = f"{counted(n_far, 'row is', 'rows are')} far from all others."
        reason = (
            "PCAAN gives rows no weight that lie far from the others: see predict and weights_."
        )
        model = PCAAN(int(rows.model.n_components_))
        if rows.scaled:
            model = make_pipeline(RobustScaler(), model)
            reason += " The columns are brought to one scale first."
        return Suggestion(model, {**troubles, "bad rows": far}, reason)
    if not entries.wrong.any() or "bad entries" in troubles:
        return suggestion
    cells = counted(int(entries.wrong.sum()), "entry is", "entries are")
    troubles = {**suggestion.troubles, "bad entries": f"{cells} far off."}
    model, reason = for_entries("bad rows" in troubles)
    return Suggestion(model, troubles, reason)


def _ranges(X: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
        return np.nan_to_num(np.nanmax(X, axis=0) - np.nanmin(X, axis=0))


def _repeated(lines: Array, names: list[str]) -> dict[str, str]:
    """Lines that equal an earlier one, and which."""
    firsts: dict[bytes, str] = {}
    found = {}
    for line, name in zip(np.ascontiguousarray(lines + 0.0), names, strict=True):
        first = firsts.setdefault(line.tobytes(), name)
        if first is not name:
            found[name] = first
    return found


def _home(step: Any) -> str:
    module = type(step).__module__
    return "robustpca" if module.startswith("robustpca.") else ".".join(module.split(".")[:2])
