"""What a job found, as one page that needs neither network nor other files."""

import hashlib
import json
import math
import platform
import re
import warnings
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.stats import norm
from sklearn.decomposition import PCA

import robustpca
from robustpca.engine.linalg import Array
from robustpca.parts.units import Units, column_units
from robustpca.tools.checks import Check, Tuning
from robustpca.tools.fitting import Fitted, last_step
from robustpca.tools.jobs import EntriesFound, RowsFound, describe_rows, filled, find_rows
from robustpca.tools.words import counted, finite, number, plural, references

__all__ = ["Grid", "Page", "render_report", "rows_page"]

# Points of the map and rows of a table that a page holds, at most.
MOST_POINTS, MOST_ROWS, MOST_CELLS = 4000, 200, 500
# Bars of the spectra and of the loadings, and rows and columns of the map of cells.
MOST_VALUES, MOST_LOADINGS, MAP_ROWS, MAP_COLUMNS = 12, 12, 60, 40
# Fits to see how much the number of components matters are made for tables of so many cells.
MANY_CELLS = 2_000_000
FLAG_RATES = (1e-4, 1e-3, 1e-2)


@dataclass(frozen=True)
class Grid:
    """A table of shares, shown by colour: one line for each name, the best of a column marked.

    Attributes
    ----------
    title, text : str
        What it shows.
    heads : list of str
        Names of the columns.
    lines : dict of str to list of float
        Shares by name; 1 is what the others are measured by.
    notes : list of str
        What to know about it, in sentences.
    """

    title: str
    text: str
    heads: list[str]
    lines: dict[str, list[float]]
    notes: list[str]

    def cells(self, name: str) -> list[dict[str, str]]:
        """Text and style of the cells of a line."""
        columns = zip(*self.lines.values(), strict=True)
        best = [min((v for v in column if v == v), default=0.0) for column in columns]
        found = []
        for value, least in zip(self.lines[name], best, strict=True):
            strength = min(abs(math.log2(max(value, 1e-3))) / 4, 1.0) if value == value else 0.0
            colour = "low" if value < 1 else "high"
            found.append(
                {
                    "text": f"{100 * value:.{0 if value >= 0.1 else 1}f} %"
                    if value == value
                    else "failed",
                    "style": f"background: rgba(var(--{colour}), {0.5 * strength:.2f})",
                    "kind": "best" if value == least else "",
                }
            )
        return found


@dataclass(frozen=True)
class Page:
    """What stands on a page; the template writes it down."""

    title: str
    verdict: str
    remarks: list[str]
    facts: list[tuple[str, str]]
    code: str
    command: str
    versions: str
    data: dict[str, Any] = field(default_factory=dict)
    turn: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    n_rows: int = 0
    cells: list[dict[str, Any]] = field(default_factory=list)
    n_cells: int = 0
    troubles: dict[str, str] = field(default_factory=dict)
    sensitivity: list[tuple[str, ...]] = field(default_factory=list)
    sensitivity_heads: tuple[str, ...] = ()
    sensitivity_text: str = ""
    grid: Grid | None = None
    papers: list[str] = field(default_factory=list)

    @property
    def headline(self) -> str:
        """The first sentence of the verdict."""
        return re.split(r"(?<=[.?]) (?=[A-Z0-9])", self.verdict, maxsplit=1)[0]

    @property
    def lead(self) -> str:
        """What the verdict says after that."""
        return self.verdict.removeprefix(self.headline).strip()

    @property
    def sources(self) -> list[str]:
        """What to cite, each paper once."""
        software = f"The robustpca developers, robustpca {robustpca.__version__} (software)."
        return [software, *dict.fromkeys(self.papers)]


def render_report(found: Any, command: str = "") -> str:
    """A page for somebody who was not there: what was found, shown, and how to repeat it.

    Parameters
    ----------
    found : Check, RowsFound, EntriesFound, Tuning, Fitted or Comparison
        What `check`, `find_rows`, `clean_entries`, `tune`, `fit` or `compare` gave.
    command : str, default=''
        The command that led here, if there was one.

    Returns
    -------
    html : str
        One file with everything in it.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError(
            "A report needs jinja2, not installed here. Run `pip install 'robustpca[report]'`."
        ) from None
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("robustpca.tools"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A text such as a name of a row must not end the script that holds it.
    environment.filters["embedded"] = lambda value: Markup(
        json.dumps(value, allow_nan=False).replace("<", "\\u003c")
    )
    # Backquotes in texts mean code; a number and its sign of percent stay in one line.
    environment.filters["prose"] = lambda text: Markup(
        re.sub("`([^`]+)`", r"<code>\1</code>", escape(text)).replace(" %", "\N{NO-BREAK SPACE}%")
    )
    page = found.page(command) if hasattr(found, "page") else PAGES[type(found)](found, command)
    return str(environment.get_template("report.html").render(page=page))


def rows_page(found: RowsFound, command: str) -> Page:
    """The page of rows that do not fit."""
    model, table = found.model, found.table
    k = int(np.prod(model.n_components_))
    worst = found.order[:MOST_ROWS]
    heads, lines, text = _number_of_components(found, k)
    return Page(
        title=f"Rows of {table.title} that do not fit",
        verdict=found.verdict,
        remarks=found.remarks,
        facts=[
            *_facts(table),
            ("method", f"{type(model).__name__} with {counted(k, 'component', 'components')}"),
            ("flagged", counted(int(found.flags.sum()), "row", "rows")),
        ],
        code=_code("find_rows", table.path, "flags = found.flags", "model = found.model"),
        command=command,
        versions=_versions(table.path),
        data={"map": _map(found), **_compared(found)},
        turn=_turned(found),
        rows=[
            {
                "label": table.labels[i],
                "far": bool(found.far[i]),
                "outlyingness": f"{found.outlyingness[i]:.2f}",
                "score": number(found.score_distance[i], 3),
                "orthogonal": number(found.orthogonal_distance[i], 3),
                "weight": f"{found.weight[i]:.2g}",
                "reasons": [str(one) for one in found.reasons[int(i)]],
            }
            for i in worst
        ],
        n_rows=int(found.flags.sum()),
        papers=references(type(model)),
        sensitivity=lines,
        sensitivity_heads=heads,
        sensitivity_text=text,
    )


def _entries_page(found: EntriesFound, command: str) -> Page:
    table, model = found.table, found.model
    rate = model.flag_rate
    restored = np.where(found.wrong | found.missing, model.low_rank_, table.X)
    units = column_units(restored, "median", "auto")
    before = _variances(units.remove(np.where(found.missing, restored, table.X)))
    after = _variances(units.remove(restored))
    wrong, missing = found.wrong.sum(axis=0), found.missing.sum(axis=0)
    worst = np.argsort(-(wrong + missing), kind="stable")[:MOST_VALUES]
    worst = worst[(wrong + missing)[worst] > 0]
    lines: list[tuple[str, ...]] = []
    for one in FLAG_RATES:
        n_beyond = int((np.abs(found.sigmas) > norm.isf(one / 2)).sum())
        lines.append((f"{one:g}", str(n_beyond), f"{n_beyond / found.sigmas.size:.3%}"))
    return Page(
        title=f"Cells of {table.title} that are wrong or missing",
        verdict=found.verdict,
        remarks=[],
        facts=[
            *_facts(table),
            ("method", f"RPCA, which found rank {model.rank_}"),
            ("wrong", counted(int(found.wrong.sum()), "cell", "cells")),
            ("missing", counted(int(found.missing.sum()), "cell", "cells")),
        ],
        code=_code("clean_entries", table.path, "X = found.X  # restored", "cells = found.cells"),
        command=command,
        versions=_versions(table.path),
        data={
            "cells": _cell_map(found),
            "columns": _bars(
                [table.names[j] for j in worst], {"wrong": wrong[worst], "missing": missing[worst]}
            ),
            "values": _bars(
                [str(i + 1) for i in range(MOST_VALUES)],
                {"as given": before, "restored": after},
            ),
        },
        cells=[
            {
                "row": cell.row,
                "column": cell.column,
                "given": "" if math.isnan(cell.given) else number(cell.given, 6),
                "restored": number(cell.restored, 6),
                "sigmas": "" if math.isnan(cell.sigmas) else f"{cell.sigmas:+.0f}",
                "kind": cell.kind,
            }
            for cell in found.cells[:MOST_CELLS]
        ],
        n_cells=len(found.cells),
        papers=references(type(model)),
        sensitivity=lines,
        sensitivity_heads=("share of good cells flagged by mistake", "cells beyond", "of all"),
        sensitivity_text=(
            "Cells that lie farther from the fit than so rare an error of Gaussian noise would. "
            f"The fit set cells aside at a rate of {rate:g}; where tails are longer than "
            "Gaussian, cells have to lie farther out to be called wrong."
        ),
    )


def _check_page(found: Check, command: str) -> Page:
    rows = rows_page(found.rows, command) if found.bad.any() else None
    wrong = bool(found.entries.wrong.any() or found.entries.missing.any())
    entries = _entries_page(found.entries, command) if wrong else None
    return Page(
        title=f"What is wrong with {found.table.title}?",
        verdict=found.verdict,
        remarks=[f"Next: `{command}`: {what}." for command, what in found.commands.items()],
        facts=_facts(found.table),
        code=found.code,
        command=command,
        versions=_versions(found.table.path),
        data=(rows.data if rows else {}) | (entries.data if entries else {}),
        turn=rows.turn if rows else "",
        rows=rows.rows if rows else [],
        n_rows=rows.n_rows if rows else 0,
        cells=entries.cells if entries else [],
        n_cells=entries.n_cells if entries else 0,
        troubles=found.lines,
        papers=references(type(found.rows.model)) + references(type(found.entries.model)),
        sensitivity=rows.sensitivity if rows else [],
        sensitivity_heads=rows.sensitivity_heads if rows else (),
        sensitivity_text=rows.sensitivity_text if rows else "",
    )


def _tune_page(found: Tuning, command: str) -> Page:
    page, k = _check_page(found.check, command), found.n_components
    return replace(
        page,
        title=f"Which method for {found.table.title}?",
        verdict=found.verdict,
        facts=[*page.facts, ("components", str(k))],
        data=(_compared(found.check.rows) if not page.data else {}) | page.data,
        turn=page.turn or _turned(found.check.rows),
    )


def _fit_page(found: Fitted, command: str) -> Page:
    """The page of the rows by this model, if it has distances; otherwise what it is."""
    table, method = found.table, last_step(found.model)
    facts = [("method", found.verdict.rstrip("."))]
    code = "from robustpca import load\n\nmodel = load(...)  # the file that was written"
    if not hasattr(method, "score_distances"):
        return Page(
            title=f"{type(method).__name__} of {table.title}",
            verdict=found.verdict,
            remarks=[found.reason] if found.reason else [],
            facts=_facts(table) + facts,
            code=code,
            command=command,
            versions=_versions(table.path),
            papers=references(type(method)),
        )
    units = Units(np.zeros(table.X.shape[1]), np.ones(table.X.shape[1]))
    if method is not found.model:
        scaler = found.model[0]
        units = Units(scaler.center_, scaler.scale_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on arrays without the names of the columns
        rows = describe_rows(table, method, units, filled(table))
    page = rows_page(rows, command)
    return replace(
        page,
        title=f"{type(method).__name__} of {table.title}",
        remarks=[*page.remarks, *filter(None, [found.reason])],
        facts=_facts(table) + facts,
        code=code,
    )


PAGES: dict[type, Any] = {
    RowsFound: rows_page,
    EntriesFound: _entries_page,
    Check: _check_page,
    Tuning: _tune_page,
    Fitted: _fit_page,
}


def _compared(found: RowsFound) -> dict[str, Any]:
    """Variances and first components of the robust fit, beside those of plain PCA."""
    model, data = found.model, found.data
    classical = PCA(min(MOST_VALUES, *data.shape), random_state=0).fit(data)
    if not hasattr(model, "explained_variance_"):
        return {}
    return {
        "spectrum": _bars(
            [str(i + 1) for i in range(MOST_VALUES)],
            {
                "plain PCA": classical.explained_variance_,
                "robust": np.asarray(model.explained_variance_[:MOST_VALUES]),
            },
        ),
        "loadings": _loadings(model.components_[0], classical.components_[0], found.table.names),
    }


def _facts(table: Any) -> list[tuple[str, str]]:
    n_rows, n_columns = table.X.shape
    share = float(np.isnan(table.X).mean())
    facts = [
        ("file", table.title),
        ("rows", f"{n_rows}"),
        ("numeric columns", f"{n_columns}"),
        ("missing cells", f"{share:.2%}" if share else "none"),
    ]
    if table.left_out:
        texts = [f"{name or 'unnamed'} ({why})" for name, why in table.left_out.items()]
        facts.append(("left out", ", ".join(texts[:20]) + (" and more" if texts[20:] else "")))
    return facts


def _map(found: RowsFound) -> dict[str, Any]:
    """Points of the outlier map: all flagged rows, and some of the others."""
    rng = np.random.default_rng(0)
    flagged, others = found.order[:MOST_POINTS], np.flatnonzero(~found.flags)
    room = max(MOST_POINTS - len(flagged), MOST_POINTS // 4)
    if len(others) > room:
        others = np.sort(rng.choice(others, room, replace=False))
    points = [
        [
            found.table.labels[i],
            finite(found.score_distance[i]),
            finite(found.orthogonal_distance[i]),
            int(found.flags[i]) + int(found.far[i]),
            "; ".join(map(str, found.reasons.get(int(i), ()))),
        ]
        for i in [*flagged, *others]
    ]
    return {
        "points": [point for point in points if None not in point[1:3]],
        "score_cutoff": finite(found.score_cutoff),
        "orthogonal_cutoff": finite(found.orthogonal_cutoff),
        "n_left_out": len(found.flags) - len(points),
    }


def _bars(names: list[str], groups: dict[str, Array]) -> dict[str, Any]:
    """Bars in groups, one for each name."""
    n = max((len(group) for group in groups.values()), default=0)
    return {
        "names": names[:n],
        "groups": {
            name: [finite(value) for value in group[:n]] + [None] * (n - len(group[:n]))
            for name, group in groups.items()
        },
    }


def _variances(X: Array) -> Array:
    """Variances along the first components."""
    return PCA(min(MOST_VALUES, *X.shape), random_state=0).fit(X).explained_variance_


def _loadings(robust: Array, classical: Array, names: list[str]) -> dict[str, Any]:
    """First components of both, those features first that have most to do with them."""
    classical = classical * (1.0 if classical @ robust >= 0 else -1.0)
    order = np.argsort(-np.maximum(np.abs(robust), np.abs(classical)), kind="stable")
    chosen = order[:MOST_LOADINGS]
    return _bars(
        [names[j] for j in chosen], {"plain PCA": classical[chosen], "robust": robust[chosen]}
    )


def _cell_map(found: EntriesFound) -> dict[str, Any]:
    """The rows with most wrong cells, and how far off each of their cells is."""
    trouble = found.wrong | found.missing
    # Wrong cells first: those that are missing are no news.
    score = found.wrong.shape[1] * found.wrong.sum(axis=1) + found.missing.sum(axis=1)
    rows = np.argsort(-score, kind="stable")[:MAP_ROWS]
    rows = np.sort(rows[trouble[rows].any(axis=1)])
    columns = np.arange(found.wrong.shape[1])
    if len(columns) > MAP_COLUMNS:
        columns = np.sort(np.argsort(-trouble.sum(axis=0), kind="stable")[:MAP_COLUMNS])
    chosen = np.ix_(rows, columns)
    return {
        "rows": [found.table.labels[i] for i in rows],
        "columns": [found.table.names[j] for j in columns],
        "sigmas": [[finite(value) for value in line] for line in found.sigmas[chosen]],
        "wrong": found.wrong[chosen].astype(int).tolist(),
    }


def _number_of_components(
    found: RowsFound, k: int
) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
    """How many rows are far with other numbers of components, and how many of them are the same."""
    plain = np.ndim(found.model.n_components_) == 0 and "n_components" in found.model.get_params()
    if found.table.X.size > MANY_CELLS or not found.far.any() or not plain:
        return (), [], ""
    table = replace(found.table, X=found.data)  # filled and scaled once
    lines: list[tuple[str, ...]] = []
    far = set(np.flatnonzero(found.far))
    largest = min(found.table.X.shape) - 1
    for k_other in range(max(1, k - 2), min(largest, k + 2) + 1):
        other = far
        if k_other != k:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                again = find_rows(
                    table, method=type(found.model).__name__, n_components=k_other, scale=None
                )
            other = set(np.flatnonzero(again.far))
        lines.append((str(k_other), str(len(other)), f"{len(far & other)} of {len(far)}"))
    same = min(int(line[2].split()[0]) for line in lines)
    text = f"With {lines[0][0]} to {lines[-1][0]} components, at least {same} of the {len(far)} "
    text += f"{plural(len(far), 'row is', 'rows are')} found."
    return ("components", "rows that do not fit", "the same rows"), lines, text


def _turned(found: RowsFound) -> str:
    if math.isnan(found.turn):
        return "No row is so far from the others that it would turn the components."
    return (
        f"Without these rows the first component of plain PCA turns by {found.turn:.0f} degrees; "
        f"without as many others it turns by {found.turn_by_chance:.1f}."
    )


def _code(job: str, path: Path, *lines: str) -> str:
    """Python that does a job, and some lines that say what to do with the result."""
    head = [f"from robustpca import {job}", "", f"found = {job}({json.dumps(path.name)})"]
    return "\n".join([*head, "print(found)", *lines])


def _versions(path: Path) -> str:
    text = f"robustpca {robustpca.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
    text += f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}."
    if path.is_file():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        text += f" SHA-256 of {path.name}: {digest}."
    return text
