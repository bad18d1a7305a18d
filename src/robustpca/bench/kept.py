"""Results that are kept: the rows of a run as small files, one for each table.

A file has what a report needs, and no more: no pictures, no code, scores with six digits. Equal
things stand in columns, and machines and versions once, so that compression makes a cell some
twenty bytes. Rows are known by their cell and not by their key: they are what was measured, with
the code of that day.
"""

import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from robustpca.bench.declarations import Table
from robustpca.bench.fields import whole_rows
from robustpca.bench.identity import describe
from robustpca.bench.runner import ROWS, Outcome
from robustpca.bench.store import Row, latest, read_rows

__all__ = ["SUFFIX", "cell_of", "keep", "kept_outcome", "read_results"]

SUFFIX = ".json.xz"
DIGITS = 6  # of scores
FEW_DIGITS = 4  # of what depends on the machine
KEY_LENGTH = 12
COLUMNS = (
    "dataset",
    "corruption",
    "settings",
    "method",
    "role",
    "tuned",
    "chosen_by",
    "seed",
    "iterations",
    "converged",
    "error",
)
SHARED = ("versions", "machine")  # the same for many rows: stored once, and referred to


def cell_of(row: Row) -> tuple[Any, ...]:
    """Where a row stands, whatever code made it."""
    places = [json.dumps(row[name], sort_keys=True) for name in ("settings", "tuned")]
    names = ("table", "dataset", "corruption", "method", "role", "seed")
    return (*(row[name] for name in names), *places)


def keep(rows: Iterable[Row], folder: str | Path, level: str = "default") -> list[Path]:
    """Add rows to the kept results, in place of older ones of the same cells.

    Parameters
    ----------
    rows : iterable of dict
        From a run at this level.
    folder : str or Path
        Where results are kept; those of a level are in a folder of its name.
    level : {'quick', 'default', 'full'}, default='default'
        Level of the run.

    Returns
    -------
    paths : list of Path
        One file for each table.
    """
    tables: dict[str, dict[tuple[Any, ...], Row]] = {}
    for row in latest(rows):
        tables.setdefault(row["table"], {})[cell_of(row)] = row
    paths = []
    for name, found in sorted(tables.items()):
        path = Path(folder) / level / f"{name}{SUFFIX}"
        older = {cell_of(row): row for row in _read(path)} if path.exists() else {}
        cells = {**older, **found}
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_packed(name, level, [cells[key] for key in sorted(cells, key=str)]))
        draft = path.with_suffix(".draft")
        draft.write_bytes(lzma.compress(text.encode(), preset=9))
        draft.replace(path)
        paths.append(path)
    return paths


def read_results(path: str | Path) -> list[Row]:
    """Rows of a run or of kept results.

    Parameters
    ----------
    path : str or Path
        A folder with ``rows.jsonl`` or with kept files, or one such file.

    Returns
    -------
    rows : list of dict
        The last row of each key.
    """
    path = Path(path)
    files = [path] if path.is_file() else sorted(path.glob(f"*{SUFFIX}"))
    if path.is_dir() and (path / ROWS).exists():
        files = [path / ROWS]
    if not files:
        raise FileNotFoundError(
            f"{path} has no results: neither {ROWS} of a run nor files *{SUFFIX} of kept results."
        )
    return [row for file in files for row in _read(file)]


def kept_outcome(tables: Iterable[Table], folder: str | Path, level: str = "default") -> Outcome:
    """What was kept of some tables, to make a report of.

    Parameters
    ----------
    tables : iterable of Table
        The declarations.
    folder : str or Path
        Where results are kept.
    level : {'quick', 'default', 'full'}, default='default'
        Of which level.

    Returns
    -------
    outcome : Outcome
        With the rows of cells that the tables still have, and the data sets without any.
    """
    outcome = Outcome(level=level)
    for table in tables:
        path = Path(folder) / level / f"{table.name}{SUFFIX}"
        rows = _read(path) if path.exists() else []
        scores = set(table.scores)
        known = {cell_of(_declared(cell)) for cell in table.cells(level)}
        good = [
            row
            for row in rows
            if cell_of(row) in known and (row["error"] or scores <= set(row["scores"]))
        ]
        outcome.rows += good
        outcome.n_other += len(rows) - len(good)
        run = {row["dataset"] for row in good}
        lacking = [name for name in table.sources(level) if name not in run]
        outcome.missing_data[table.name] = dict.fromkeys(lacking, "No results were kept.")
    return outcome


def _declared(cell: Any) -> Row:
    """A cell as the part of its row that says where it stands."""
    names = ("table", "dataset", "corruption", "method", "role", "settings", "tuned", "seed")
    parts = {**vars(cell), **vars(cell.variant)}
    return {name: describe(parts[name]) for name in names}


def _read(path: Path) -> list[Row]:
    if not path.name.endswith(SUFFIX):
        return whole_rows(latest(read_rows(path)), path)
    try:
        rows = _unpacked(json.loads(lzma.decompress(path.read_bytes())))
    except (
        lzma.LZMAError,
        EOFError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ValueError(f"{path} is damaged: it holds no kept results.") from error
    return whole_rows(rows, path)


def _packed(name: str, level: str, rows: Sequence[Row]) -> dict[str, Any]:
    shared: dict[str, list[Any]] = {part: [] for part in SHARED}
    columns: dict[str, list[Any]] = {part: [row.get(part) for row in rows] for part in COLUMNS}
    for part, known in shared.items():
        for row in rows:
            given = row.get(part) or {}
            if given not in known:
                known.append(given)
        columns[part] = [known.index(row.get(part) or {}) for row in rows]
    columns["key"] = [row["key"][:KEY_LENGTH] for row in rows]
    columns["data"] = [(row.get("data") or {}).get("digest", "")[:KEY_LENGTH] for row in rows]
    columns["finished"] = [(row.get("finished") or "")[:10] for row in rows]
    # CPU seconds, which hardly depend on what else ran; a row that was kept has no others.
    seconds = [row.get("cpu_seconds", row.get("seconds")) for row in rows]
    columns["seconds"] = [_short(second, FEW_DIGITS) for second in seconds]
    columns["memory"] = [_short(_memory(row), FEW_DIGITS) for row in rows]
    names = list(dict.fromkeys(score for row in rows for score in row["scores"] or ()))
    scores = {
        score: [_short((row["scores"] or {}).get(score), DIGITS) for row in rows] for score in names
    }
    return {"table": name, "level": level, **shared, "columns": columns, "scores": scores}


def _unpacked(packed: Mapping[str, Any]) -> list[Row]:
    columns, rows = packed["columns"], []
    for index in range(len(columns["key"])):
        row = {name: values[index] for name, values in columns.items()}
        row |= {part: packed[part][row[part]] for part in SHARED}
        memory = row.pop("memory")
        scores = {score: values[index] for score, values in packed["scores"].items()}
        rows.append(
            {
                **row,
                "table": packed["table"],
                "data": {"digest": row["data"]},
                "scores": None if row["error"] else scores,
                "memory_start": None if memory is None else 0,
                "memory_peak": memory,
            }
        )
    return rows


def _memory(row: Row) -> float | None:
    if row.get("memory_peak") is None:
        return None
    return float(row["memory_peak"] - row["memory_start"])


def _short(value: float | None, digits: int) -> float | None:
    """A number with as many digits as are kept; whole numbers stay as they are."""
    return None if value is None else float(f"{value:.{digits}g}")
