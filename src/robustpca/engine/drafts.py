"""Files that are complete or not there, whatever happens meanwhile."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["discard", "draft_of", "publish", "writing"]


def draft_of(path: Path) -> Path:
    """A hidden name beside a file, with the same extensions, under which it is written first."""
    return path.with_name(f".{uuid.uuid4().hex[:12]}-{path.name}")


def publish(draft: Path, path: Path) -> None:
    """Give a file, or a folder of files, its name once it is on the disk."""
    for part in draft.rglob("*") if draft.is_dir() else [draft]:
        if part.is_file():
            with part.open("rb+") as file:
                os.fsync(file.fileno())
    if not (draft.is_dir() and path.exists()):
        draft.replace(path)
        return
    # A folder cannot take the place of another one in a single step.
    old = draft_of(path)
    path.replace(old)
    try:
        draft.replace(path)
    except OSError:
        old.replace(path)
        raise
    discard(old)


def discard(draft: Path) -> None:
    """Remove what was written under another name, if anything was."""
    if draft.is_dir():
        shutil.rmtree(draft)
    else:
        draft.unlink(missing_ok=True)


@contextmanager
def writing(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Write a file under another name, which becomes its own if nothing goes wrong.

    Parameters
    ----------
    path : Path
        The file; missing folders are made.
    overwrite : bool, default=False
        Replace a file that is there. Otherwise it is left alone, with a FileExistsError.

    Yields
    ------
    draft : Path
        Where to write.
    """
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} is there already; pass overwrite=True to replace it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    try:
        yield draft
        publish(draft, path)
    finally:
        discard(draft)
