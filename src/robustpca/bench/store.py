"""The row store: a file that only grows, one JSON object a line, one line a cell.

A line is complete or it does not count: it ends with a newline that is written last, together
with the rest, and synced to disk before the row is reported as stored. What a killed program has
left behind after the last newline is dropped when the file is opened for writing.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Row", "Store", "latest", "read_rows"]

Row = dict[str, Any]


class Store:
    """A file of rows, opened for writing by one program at a time.

    Parameters
    ----------
    path : str or Path
        The file; made if needed, with its folder.

    Attributes
    ----------
    rows : dict
        The last row of each key, in the order in which the keys came.
    n_new : int
        How many rows were appended since the file was opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from robustpca.bench.store import Store, read_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.jsonl"
    ...     with Store(path) as store:
    ...         store.append({"key": "a", "score": 1.5})
    ...     read_rows(path)
    [{'key': 'a', 'score': 1.5}]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.rows: dict[str, Row] = {}
        self.n_new = 0
        self._file = -1

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._lock()
            self._repair()
            self.rows = {row["key"]: row for row in read_rows(self.path)}
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)  # which also gives up the lock

    def append(self, row: Row) -> None:
        """Write a row and come back when it is safe on disk."""
        line = (json.dumps(row, allow_nan=False) + "\n").encode()
        written = os.write(self._file, line)
        if written != len(line):  # a full disk
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            raise OSError(
                f"Only {written} of {len(line)} bytes of a row could be written to {self.path}: "
                "is the disk full?"
            )
        os.fsync(self._file)
        self.rows[row["key"]] = row
        self.n_new += 1

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows, where two runs on one file must be avoided by the user
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(
                f"Another run is writing to {self.path}. Wait for it, or choose another folder."
            ) from error

    def _repair(self) -> None:
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)
            os.fsync(self._file)


def read_rows(path: str | Path) -> list[Row]:
    """All rows of a file in the order of writing, without a line that is still being written."""
    content = Path(path).read_bytes()
    lines = content[: content.rfind(b"\n") + 1].splitlines()
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            hash(row["key"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"Line {number} of {path} is not a row: {error}. Correct or delete the line."
            ) from error
        rows.append(row)
    return rows


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last row of each key: a failed cell may have been tried again."""
    return list({row["key"]: row for row in rows}.values())
