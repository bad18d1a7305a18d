"""Two runs cell by cell: what has moved by more than chance, and what only one of them has."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustpca.bench.formats import count, number, parameters, position
from robustpca.bench.kept import cell_of
from robustpca.bench.store import Row

__all__ = ["Difference", "Move", "compare_runs"]

MOVED = 3.0  # standard errors from which a difference is not chance
EXACT = 1e-5  # share by which values may differ that do not vary at all: kept scores are rounded
LISTED = 30


@dataclass(frozen=True)
class Move:
    """A score of a method at one place of a table, in two runs.

    Parameters
    ----------
    where : str
        Table, place, method and score.
    first, second : float
        Means over the seeds of either run.
    errors : float
        Their difference in standard errors; infinite if neither run varies and they differ.
    """

    where: str
    first: float
    second: float
    errors: float

    @property
    def has_moved(self) -> bool:
        """Whether chance does not explain the difference."""
        return abs(self.errors) > MOVED


@dataclass(frozen=True)
class Difference:
    """What two runs have in common, and where they differ.

    Parameters
    ----------
    moves : sequence of Move
        All scores that both have, those that moved most first. Times are not among them.
    times : sequence of float
        Times of the second run over those of the first, for each place and method.
    failures : sequence of str
        Where only one of the runs failed.
    other_data : int
        Cells of the same name that were run on other data, and are not compared.
    only_first, only_second : int
        Places and methods that only one of them has.
    """

    moves: Sequence[Move]
    times: Sequence[float]
    failures: Sequence[str]
    other_data: int
    only_first: int
    only_second: int

    @property
    def moved(self) -> list[Move]:
        """The scores that moved."""
        return [move for move in self.moves if move.has_moved]

    def text(self) -> str:
        """The same for a terminal."""
        moved = self.moved
        lines = [
            f"{move.where}: {number(move.first)} and {number(move.second)}, "
            f"{_signed(move.errors)} standard errors"
            for move in moved[:LISTED]
        ]
        lines += [f"... and {len(moved) - LISTED} more"] if len(moved) > LISTED else []
        lines += [f"Failed in one run only: {where}" for where in self.failures[:LISTED]]
        lines += [f"{len(moved)} of {count(len(self.moves), 'score')} moved."]
        if self.times:
            median = number(statistics.median(self.times), 2)
            lines.append(f"The second run took {median} times as long as the first, in the median.")
        lacking = [
            (self.other_data, "of other data, not compared"),
            (self.only_first, "only in the first"),
            (self.only_second, "only in the second"),
        ]
        lines += [f"{count(n, 'group')} of cells {what}." for n, what in lacking if n]
        return "\n".join(lines)


def compare_runs(first: Iterable[Row], second: Iterable[Row]) -> Difference:
    """Compare the rows of two runs, whatever code, machine or number of seeds they have.

    Parameters
    ----------
    first, second : iterable of dict
        Rows of runs, or kept ones, from `robustpca.bench.kept.read_results`.

    Returns
    -------
    difference : Difference
        Of each method at each place and each score the difference of the means over seeds.
    """
    ours, theirs = _grouped(first), _grouped(second)
    moves: list[Move] = []
    times, failures, other_data = [], [], 0
    for key in [key for key in ours if key in theirs]:
        mine, yours = ours[key], theirs[key]
        if _data(mine) and _data(yours) and _data(mine).isdisjoint(_data(yours)):
            other_data += 1
            continue
        good, well = _good(mine), _good(yours)
        if bool(good) != bool(well):
            failures.append(_where(mine[0]))
        if not good or not well:
            continue
        times.append(_mean(well, "seconds") / _mean(good, "seconds"))
        shared = [name for name in good[0]["scores"] if name in well[0]["scores"]]
        found = [_move(name, good, well) for name in shared if "second" not in name.lower()]
        moves += [move for move in found if move is not None]
    return Difference(
        moves=sorted(moves, key=lambda move: -abs(move.errors)),
        times=[ratio for ratio in times if math.isfinite(ratio)],
        failures=failures,
        other_data=other_data,
        only_first=len(ours.keys() - theirs.keys()),
        only_second=len(theirs.keys() - ours.keys()),
    )


def _grouped(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows of all seeds of a method at one place."""
    groups: dict[tuple[Any, ...], dict[int, Row]] = {}
    for row in rows:
        cell = cell_of({**row, "seed": 0})
        groups.setdefault(cell, {})[row["seed"]] = row
    return {cell: list(seeds.values()) for cell, seeds in groups.items()}


def _move(score: str, first: Sequence[Row], second: Sequence[Row]) -> Move | None:
    mine, yours = _values(first, score), _values(second, score)
    if not mine or not yours:
        return None
    means = statistics.fmean(mine), statistics.fmean(yours)
    difference = means[1] - means[0]
    error = math.hypot(_standard_error(mine), _standard_error(yours))
    is_equal = abs(difference) <= EXACT * max(map(abs, means))
    if is_equal:
        errors = 0.0
    elif error:
        errors = difference / error
    else:
        errors = math.copysign(math.inf, difference)
    return Move(f"{_where(first[0])}, {score}", *means, errors)


def _where(row: Row) -> str:
    place = position(row["dataset"], row["corruption"], row["settings"])
    tuned = f" ({parameters(row['tuned'])})" if row["tuned"] else ""
    return f"{row['table']}, {place}, {row['method']}{tuned}"


def _good(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if not row["error"]]


def _data(rows: Iterable[Row]) -> set[str]:
    found = {(row.get("data") or {}).get("digest", "")[:12] for row in rows}
    return found - {""}


def _values(rows: Iterable[Mapping[str, Any]], score: str) -> list[float]:
    found = [row["scores"].get(score) for row in rows]
    return [value for value in found if value is not None]


def _mean(rows: Iterable[Row], name: str) -> float:
    return statistics.fmean(row[name] or math.nan for row in rows)


def _standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _signed(errors: float) -> str:
    return f"{errors:+.1f}" if math.isfinite(errors) else "infinitely many"
