"""The runner: cells go to worker processes, what comes back goes to the row store.

Workers are single processes, each with a pipe of its own, rather than a pool: when one hangs or
dies, it is known which cell it had, that cell is recorded as failed, and a new worker takes its
place. The parent alone writes rows. So a row is on disk or its cell is still to be done, whenever
and however the program ends.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustpca.bench.declarations import Cell, Table, asked_for
from robustpca.bench.fields import whole_rows
from robustpca.bench.identity import data_digest, describe, digest, key_of, machine, versions
from robustpca.bench.store import Row, Store, latest, read_rows
from robustpca.bench.trial import Task, explain, measure, serve, spoil

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["ROWS", "Outcome", "collect", "run"]

ROWS = "rows.jsonl"
CONTEXT = get_context("spawn")  # a fresh process inherits neither locks nor threads
# What a row says about the fit; empty if it failed.
TIMES = ("seconds", "cpu_seconds", "iterations", "converged")
MEMORY = ("memory_start", "memory_peak", "memory_exact")
MEASURED = ("scores", "shown", *TIMES, *MEMORY, "warnings", "error")


@dataclass
class Outcome:
    """What became of a run.

    Attributes
    ----------
    rows : list of dict
        Rows of all cells that are done, whether now or in an earlier run.
    n_new : int
        How many of them were done now.
    missing_data : dict
        For each table, which data sets could not be loaded and why.
    interrupted : bool
        Whether Ctrl-C ended the run before all was done.
    level : str
        The level of the run.
    n_other : int
        How many rows of these tables in the file belong to none of these cells: those of other
        levels, and of older code, data or declarations.
    """

    rows: list[Row] = field(default_factory=list)
    n_new: int = 0
    missing_data: dict[str, dict[str, str]] = field(default_factory=dict)
    interrupted: bool = False
    level: str = "default"
    n_other: int = 0

    def of(self, table: str) -> list[Row]:
        """The rows of one table."""
        return [row for row in self.rows if row["table"] == table]

    @property
    def failures(self) -> list[Row]:
        """Rows of cells that failed."""
        return [row for row in self.rows if row["error"]]


@dataclass(frozen=True)
class Job:
    """A cell that is ready to be run: its row without the measurements, and its time limit."""

    task: Task
    row: Row
    limit: float


def run(
    tables: Iterable[Table],
    out: str | Path,
    *,
    level: str = "default",
    jobs: int | None = None,
    progress: "Progress | None" = None,
    retry: bool = False,
) -> Outcome:
    """Run all cells of some tables that are not in the row store yet.

    Parameters
    ----------
    tables : iterable of Table
        What to run.
    out : str or Path
        Folder of the row store, ``rows.jsonl``.
    level : {'quick', 'default', 'full'}, default='default'
        Which grids, seeds and data sizes of the declarations to take.
    jobs : int, default=None
        Number of worker processes, each with one BLAS thread; None for one per core.
    progress : rich.progress.Progress, default=None
        Shows how the run goes, as `robustpca.bench.progress.new_progress`; None for nothing.
    retry : bool, default=False
        Run cells again that have failed before. Their new rows count instead of the old ones,
        which stay in the file.

    Returns
    -------
    outcome : Outcome
        Rows of all these cells, and what was missing.
    """
    jobs = max(1, os.cpu_count() or 1) if jobs is None else jobs
    if jobs < 1:
        raise ValueError(f"jobs={jobs} is not a number of processes: choose 1 or more.")
    outcome = Outcome(level=level)
    with Store(Path(out) / ROWS) as store:
        wanted = list(_prepare(tables, level, outcome))
        # Cells whose rows are of no use are run again.
        store.rows = {row["key"]: row for row in whole_rows(store.rows.values(), store.path)}
        done = {key for key, row in store.rows.items() if not (retry and row["error"])}
        try:
            Pool([job for job in wanted if job.row["key"] not in done], store, progress).run(jobs)
        except KeyboardInterrupt:
            outcome.interrupted = True
        _gather(wanted, store.rows, outcome)
        outcome.n_new = store.n_new
    return outcome


def collect(tables: Iterable[Table], out: str | Path, *, level: str = "default") -> Outcome:
    """What earlier runs have done of some tables; nothing is run.

    A row is taken if it has the key that its cell would get now, as by `run`: rows of other
    levels, and of other code or data, are counted in ``n_other`` and left out.

    Parameters
    ----------
    tables : iterable of Table
        What was run.
    out : str or Path
        Folder of the row store.
    level : {'quick', 'default', 'full'}, default='default'
        Level of the run.

    Returns
    -------
    outcome : Outcome
        Rows of the cells that are done, and what is missing.
    """
    outcome = Outcome(level=level)
    path = Path(out) / ROWS
    rows = {row["key"]: row for row in whole_rows(latest(read_rows(path)), path)}
    _gather(list(_prepare(tables, level, outcome)), rows, outcome)
    return outcome


def _gather(wanted: Iterable[Job], rows: Mapping[str, Row], outcome: Outcome) -> None:
    """Put the rows of some jobs into the outcome."""
    keys = dict.fromkeys(job.row["key"] for job in wanted)
    outcome.rows = [rows[key] for key in keys if key in rows]
    names = set(outcome.missing_data)
    outcome.n_other = sum(row["table"] in names for row in rows.values()) - len(outcome.rows)


def _prepare(tables: Iterable[Table], level: str, outcome: Outcome) -> Iterator[Job]:
    """Jobs for all cells whose data are there; the rest is noted in the outcome."""
    for table in tables:
        facts: dict[str, dict[str, Any]] = {}
        missing = outcome.missing_data[table.name] = {}
        for name, source in table.sources(level).items():
            try:
                # The key of a row must not hang on chance: what is drawn is drawn from seed 0.
                facts[name] = _facts(source(**asked_for(source, random_state=0)))
            except Exception as error:  # a data set that is not there must not stop the others
                text = str(error) if isinstance(error, FileNotFoundError) else explain(error)
                missing[name] = " ".join(text.split())
        for cell in table.cells(level):
            if cell.dataset in facts:
                yield _job(cell, facts[cell.dataset], table.limit(level))


def _facts(data: Any) -> dict[str, Any]:
    X = np.asarray(data.X)
    return {
        "digest": data_digest(data),
        "n_samples": X.shape[0],
        "n_features": X.shape[1],
        "image_shape": describe(data.image_shape),
    }


def _job(cell: Cell, facts: dict[str, Any], limit: float) -> Job:
    identity = cell.identity()
    key, code = key_of([identity, facts["digest"], describe([spoil, measure])])
    spoiled = [identity[name] for name in ("prepare", "corrupt", "seed")]
    row = {
        "key": key,
        "table": cell.table,
        "dataset": cell.dataset,
        "corruption": cell.corruption,
        "method": cell.method,
        "role": cell.variant.role,
        "chosen_by": cell.variant.chosen_by,
        "settings": identity["settings"],
        "tuned": identity["tuned"],
        "seed": cell.seed,
        "estimator": identity["estimator"],
        "data": facts,
        "code": code,
    }
    return Job(Task(cell, digest([facts["digest"], *spoiled])), row, limit)


class Worker:
    """A process and the job it has at the moment."""

    def __init__(self) -> None:
        self.link, other = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.is_ready = False
        self.job: Job | None = None
        self.deadline = 0.0

    def send(self, job: Job) -> None:
        """Start a job; the time it may take begins now."""
        self.link.send(job.task)
        self.job, self.deadline = job, time.monotonic() + job.limit

    def stop(self, patience: float = 0.0) -> int:
        """End the process, at once or if it has not ended by itself, and return its exit code."""
        self.link.close()
        self.process.join(patience)
        self.process.kill()
        self.process.join()
        return self.process.exitcode or 0


class Pool:
    """Gives jobs to workers until every one of them has ended as a row.

    Parameters
    ----------
    jobs : list of Job
        What to do.
    store : Store
        Where rows go.
    progress : rich.progress.Progress or None
        Is told of each row.
    """

    def __init__(self, jobs: list[Job], store: Store, progress: "Progress | None") -> None:
        self.waiting = jobs[::-1]
        self.store = store
        self.progress = progress
        self.n_failed = 0
        self.workers: dict[Connection, Worker] = {}

    def run(self, n_workers: int) -> None:
        """Do all jobs; whatever ends this ends the workers, too."""
        with self.progress or nullcontext():
            if self.progress:
                self.progress.add_task("cells", total=len(self.waiting), failed=0)
            try:
                for _ in range(min(n_workers, len(self.waiting))):
                    self._start_worker()
                while self.waiting or any(worker.job for worker in self.workers.values()):
                    # Half a second is how late a time-out may be noticed.
                    for link in wait(list(self.workers), timeout=0.5):
                        self._receive(self.workers[link])  # type: ignore[index]
                    for worker in list(self.workers.values()):
                        self._check_time(worker)
                        self._assign(worker)
            finally:
                for worker in self.workers.values():
                    worker.stop()

    def _start_worker(self) -> None:
        worker = Worker()
        self.workers[worker.link] = worker

    def _replace(self, worker: Worker, patience: float = 0.0) -> int:
        worker.is_ready = False
        del self.workers[worker.link]
        code = worker.stop(patience)
        if self.waiting:
            self._start_worker()
        return code

    def _receive(self, worker: Worker) -> None:
        """A worker is ready, has a result, or has died."""
        try:
            result = worker.link.recv()
        except (EOFError, OSError):
            was_ready = worker.is_ready
            code = self._replace(worker, patience=5.0)
            if not was_ready:
                raise RuntimeError(
                    f"A worker process ended with exit code {code} before it took any work. "
                    'Scripts must start runs under `if __name__ == "__main__":`.'
                ) from None
            self._finish(worker, {"error": f"WorkerDied: {_reason(code)}"})
        else:
            worker.is_ready = True
            self._finish(worker, result)

    def _check_time(self, worker: Worker) -> None:
        if worker.job is not None and time.monotonic() > worker.deadline:
            self._replace(worker)
            self._finish(worker, {"error": f"TimeoutError: more than {worker.job.limit:g} s"})

    def _assign(self, worker: Worker) -> None:
        while worker.is_ready and worker.job is None and self.waiting:
            job = self.waiting.pop()
            try:
                worker.send(job)
            except (EOFError, BrokenPipeError, ConnectionError):  # died, which is noticed next
                self.waiting.append(job)
                return
            except Exception as error:  # the cell cannot be sent to another process
                self._store(job, {"error": explain(error)})

    def _finish(self, worker: Worker, result: dict[str, Any]) -> None:
        """Store the row of the job of a worker, if it has one."""
        job, worker.job = worker.job, None
        if job is not None:
            self._store(job, result)

    def _store(self, job: Job, result: dict[str, Any]) -> None:
        """Write a row: what was asked for, what came out, and where."""
        about = {
            "versions": versions(),
            "machine": machine(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self.store.append({**job.row, **dict.fromkeys(MEASURED), **result, **about})
        self.n_failed += "error" in result
        if self.progress:
            task = self.progress.task_ids[-1]
            self.progress.update(task, advance=1, failed=self.n_failed)


def _reason(code: int) -> str:
    """Why a process ended, as far as its exit code tells."""
    if code < 0:
        name = signal.Signals(-code).name
        hint = "; the memory may have run out" if name == "SIGKILL" else ""
        return f"the process was ended by {name}{hint}"
    return f"the process ended with exit code {code}"
