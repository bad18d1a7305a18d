"""What a job writes: all of it or nothing, never over other files, with a record of the run."""

import errno
import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

import robustpca
from robustpca.engine.drafts import discard, draft_of, publish

__all__ = ["Outputs", "sha256_of"]

RECORD = "run.json"
OTHERWISE = "choose another place, or replace it with --force."
# What the system says if there is no room.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What NumPy says then, without a number.
SHORT = " written"
PACKAGES = ("numpy", "scipy", "scikit-learn")


class Outputs:
    """Files that a job writes, to be used in a ``with`` statement.

    Each file is claimed before the work starts, written under a hidden name, and gets its own
    name when the block ends. If the block ends with an error, or is interrupted, nothing is left.

    Parameters
    ----------
    path : str or path-like
        A folder, or a file if the name has an extension and is no folder. Missing folders are
        made when the first file is claimed.
    force : bool, default=False
        Replace files that are there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from robustpca.tools.outputs import Outputs
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Outputs(folder / "result") as outputs:
    ...     draft = outputs.claim("rows.csv")
    ...     outputs.record("robustpca rows mine.csv", {"method": "PCAAN"})
    ...     _ = draft.write_text("1,2")
    >>> sorted(file.name for file in (folder / "result").iterdir())
    ['rows.csv', 'run.json']
    """

    def __init__(self, path: Any, force: bool = False) -> None:
        path = Path(path).expanduser()
        # The file that was asked for by name, if it is one.
        self.file = path if path.suffix and not _is_folder(path) else None
        self.folder = path if self.file is None else path.parent
        self.force = force
        self.written: list[Path] = []
        self._drafts: dict[Path, Path] = {}
        self._made: list[Path] = []
        self._run: dict[str, Any] | None = None
        self._data: Path | None = None
        self._started = time.perf_counter()

    def claim(self, name: str | None = None) -> Path:
        """Claim a file, and get the path to write it to meanwhile.

        Parameters
        ----------
        name : str, default=None
            Name of a file in the folder; None for the file that was asked for. Beside a file
            that was asked for by name, other files are called after it:
            ``cleaned.csv`` and ``cleaned-entries.csv``.

        Returns
        -------
        draft : Path
            Where to write. It has the extension of the file, and need not be written at all.
        """
        path = self.place(name)
        if path in self._drafts:
            return self._drafts[path]
        if _is_folder(path):
            raise IsADirectoryError(f"{path} is a folder, and a file is to be written there.")
        if path.exists() and self._is_data(path):
            raise FileExistsError(f"{path} holds the data, which are kept: choose another place.")
        if path.exists() and not self.force:
            raise FileExistsError(f"{path} is there already: {OTHERWISE}")
        self._runs_without([])  # what cannot be added to is refused now
        for folder in [*reversed(path.parent.parents), path.parent]:
            if folder.exists() and not folder.is_dir():
                raise self._unwritable(f"{folder} is no folder")
            if not folder.exists():
                try:
                    folder.mkdir()
                except OSError as error:
                    raise self._unwritable(str(error.strerror)) from error
                self._made.append(folder)
        self._drafts[path] = draft_of(path)
        return self._drafts[path]

    def place(self, name: str | None = None) -> Path:
        """Where a claimed file will be in the end.

        Parameters
        ----------
        name : str, default=None
            As for `claim`.

        Returns
        -------
        path : Path
            The file.
        """
        if name is None:
            if self.file is None:
                raise ValueError(f"{self.folder} is a folder, and the name of a file is needed.")
            return self.file
        if self.file is None or name == RECORD:
            return self.folder / name
        return self.file.with_name(f"{self.file.name.partition('.')[0]}-{name}")

    def record(
        self, command: str, parameters: Mapping[str, Any] | None = None, table: Any = None
    ) -> None:
        """Note how this run can be repeated; it is written to ``run.json`` in the folder.

        Parameters
        ----------
        command : str
            What was typed.
        parameters : dict, default=None
            Parameters by name.
        table : Table, default=None
            The data, as `robustpca.tools.files.read` gives them.
        """
        self._run = {
            "command": command,
            "parameters": dict(parameters or {}),
            "versions": versions(),
        }
        if table is not None:
            self._data = table.path
            self._run["data"] = {
                "path": str(table.path.absolute()),
                "sha256": sha256_of(table.path),
                "rows": int(table.X.shape[0]),
                "columns": int(table.X.shape[1]),
            }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failure = error
        try:
            if kind is None:
                self._publish()
        except OSError as raised:
            failure = raised
        finally:
            for draft in self._drafts.values():
                discard(draft)
            for folder in reversed(self._made):
                if not any(folder.iterdir()):
                    folder.rmdir()
        if isinstance(failure, OSError):
            told = self._in_words(failure)
            if told is not failure:
                raise told from failure
            if kind is None:
                raise failure

    def _is_data(self, path: Path) -> bool:
        """Whether a file is what was read, or a part of it."""
        if self._data is None:
            return False
        return path.samefile(self._data) or self._data.resolve() in path.resolve().parents

    def _in_words(self, error: OSError) -> OSError:
        """The error that the system refused what we wrote, or another one as it is."""
        drafts = [draft.name for draft in self._drafts.values()]
        number = errno.ENOSPC if str(error).endswith(SHORT) else error.errno
        if number not in FULL and not any(name in str(error.filename) for name in drafts):
            return error
        return self._unwritable(os.strerror(number or errno.EIO))

    def _unwritable(self, reason: str) -> OSError:
        place = self.folder if self.file is None else self.file
        return OSError(f"{place} cannot be written: {reason}. Choose another place.")

    def _publish(self) -> None:
        ready = {path: draft for path, draft in self._drafts.items() if draft.exists()}
        taken = [path for path in ready if path.exists()]
        if taken and not self.force:
            raise FileExistsError(f"{taken[0]} was written by somebody else meanwhile.")
        if self._run is not None and ready:
            record = self.folder / RECORD
            self._drafts[record] = ready[record] = draft_of(record)
            runs = self._runs_without([path.name for path in ready])
            text = json.dumps([*runs, self._entry(ready)], indent=1, default=_plain)
            ready[record].write_text(text + "\n", encoding="utf-8")
        for path, draft in ready.items():
            publish(draft, path)
            self.written.append(path)

    def _entry(self, ready: Mapping[Path, Path]) -> dict[str, Any]:
        files = [path.name for path in ready if path.name != RECORD]
        seconds = round(time.perf_counter() - self._started, 3)
        return {**(self._run or {}), "files": files, "seconds": seconds}

    def _runs_without(self, names: list[str]) -> list[Any]:
        """Earlier runs of this folder that have other files than these."""
        record = self.folder / RECORD
        if not record.exists():
            return []
        try:
            runs = json.loads(record.read_text(encoding="utf-8"))
            return [run for run in runs if set(run["files"]) - set(names)]
        except (ValueError, KeyError, TypeError):
            if self.force:
                return []
            raise FileExistsError(f"{record} is no record of runs: {OTHERWISE}") from None


def _is_folder(path: Path) -> bool:
    """Whether there is a folder of that name; an array of zarr counts as a file."""
    return path.is_dir() and path.suffix.lower() != ".zarr"


def versions() -> dict[str, str]:
    """Versions of what results depend on."""
    found = {"python": platform.python_version(), "robustpca": robustpca.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # installed in an unusual way
            continue
    return found


def sha256_of(path: Path) -> str:
    """Hash of a file; of a folder, that of the names and contents of all files in it."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for part in sorted(part for part in path.rglob("*") if part.is_file()):
        whole.update(f"{part.relative_to(path).as_posix()}\0{sha256_of(part)}\n".encode())
    return whole.hexdigest()


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
