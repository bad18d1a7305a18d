"""What is read from a file."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["Layout", "Table", "counted", "extra", "kind_of", "reading", "reason_of"]


@dataclass(frozen=True)
class Layout:
    """How a text file is written, so that others can be written alike."""

    separator: str = ","
    decimal: str = "."
    header: bool = True
    encoding: str = "utf-8"


@dataclass(frozen=True)
class Table:
    """Numbers of a file, and what else stands in it.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Numbers of the columns that are used, NaN where one is missing. Single precision stays;
        everything else is in double precision.
    names : list of str
        Names of the columns that are used.
    labels : list of str
        Name of each row: its cell in the index column, or its number in the data, from 1.
    left_out : dict of str to str
        Why each of the other columns is not used: 'text', 'date', 'row numbers', 'row names',
        'identifier', 'yes or no', 'empty', 'from `rows`', or 'not chosen'.
    frame : pandas.DataFrame or None
        All columns as they were read, with texts untouched; None for arrays and images.
    image_shape : tuple of int or None
        Height and width of images, and their number of channels if they are coloured.
    path : Path
        The file or folder.
    remarks : list of str
        What the user should know of the reading, in sentences.
    layout : Layout
        How the text was written.
    text : Text or None
        The text itself, so that cells can be written to the letter.
    unused : pandas.DataFrame or None
        Rows without any number: not in ``X`` and ``frame``, and written among the others.
    """

    X: Array
    names: list[str]
    labels: list[str]
    left_out: dict[str, str]
    frame: Any | None
    image_shape: tuple[int, ...] | None
    path: Path
    remarks: list[str] = field(default_factory=list)
    layout: Layout = Layout()
    text: Any | None = field(default=None, repr=False)
    unused: Any | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        """What the file is called, also if the path ends with a dot."""
        return self.path.name or self.path.absolute().name

    @property
    def rows(self) -> Any:
        """What models are given."""
        return self.X

    def sample(self) -> Array:
        """Rows by which units and missing cells are judged: all of them.

        Returns
        -------
        X : ndarray of shape (n_rows, n_features)
            The rows.
        """
        return self.X

    def summary(self) -> str:
        """What was read, in sentences.

        Returns
        -------
        text : str
            Numbers of rows and columns, columns left out, share of missing cells, remarks.
        """
        n_rows, n_columns = self.X.shape
        if self.image_shape is None:
            used = f"{counted(n_rows, 'row')}, {counted(n_columns, 'numeric column')} used"
        else:
            height, width, *channels = self.image_shape
            many = f" in {' x '.join(map(str, channels))} channels"
            kind = {(): "", (3,): " in colour"}.get(tuple(channels), many)
            used = f"{counted(n_rows, 'image')} of {height} x {width} pixels{kind}"
        parts = [f"{self.title}: {used}"]
        if self.left_out:
            shown = [f"{name or 'unnamed'} ({why})" for name, why in self.left_out.items()]
            more = [f"{len(shown) - 10} more"] if len(shown) > 10 else []
            parts.append(f"left out: {', '.join(shown[:10] + more)}")
        share = float(np.isnan(self.X).mean())
        parts.append("no cell is missing" if share == 0 else f"{_percent(share)} missing")
        named = {"row names", "row numbers"} & set(self.left_out.values())
        numbered = []
        if self.image_shape is None and not named and self.labels[:1] == ["1"]:
            below = " below the header" if self.frame is not None and self.layout.header else ""
            numbered = [f"Rows have no names: the first{below} is row 1."]
        return " ".join(["; ".join(parts) + ".", *self.remarks, *numbered])


def counted(number: int, noun: str) -> str:
    """A number of things, as in '1 row' and '2 rows'."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def extra(module: str, what: str, name: str = "files") -> Any:
    """A module that only some users have; the others are told how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{what} needs {module.partition('.')[0]}, not installed here. Run "
            f"`pip install 'robustpca[{name}]'`."
        ) from None


def kind_of(path: Path) -> str:
    """The extension of a file in lower case, without that of its compression."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say in one sentence that a file is damaged, whatever a library raises or warns about it.

    Around the calls of other people's libraries only: what they raise on damaged files is part of
    no interface, from OSError to ZeroDivisionError.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ImportError, PermissionError):
        raise
    except MemoryError as error:
        raise ValueError(
            f"{path} is damaged, or too large for the memory: {reason_of(error)}."
        ) from error
    except Exception as error:
        raise ValueError(f"{path} is damaged: {reason_of(error)}.") from error


def reason_of(error: Exception) -> str:
    """The message of an error, to be put into a sentence."""
    reason = " ".join(str(getattr(error, "strerror", None) or error).split())
    if reason[:1] == reason[-1:] and reason[:1] in "\"'":
        reason = reason[1:-1]  # a KeyError has its message in quotes
    reason = reason.rstrip(".") or type(error).__name__
    if "pickle" in reason:
        return "it is cut off, or holds Python objects, which are not loaded"
    return reason


def _percent(share: float) -> str:
    """A positive share of the cells, never rounded to nothing or to all."""
    if share == 1:
        return "all cells are"
    percent = 100 * share
    shown = "less than 0.1" if percent < 0.1 else f"{min(percent, 99.9):.1f}"
    return f"{shown} % of the cells are"
