"""Pictures of a table by name, for those who do not write Python. Needs matplotlib."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robustpca import plot
from robustpca.tools.files import Table
from robustpca.tools.files.table import extra
from robustpca.tools.fitting import checked, last_step
from robustpca.tools.jobs import clean_entries, find_rows
from robustpca.tools.words import listed

__all__ = ["KINDS", "Pictures", "check_kinds", "draw"]

# Formats that matplotlib writes without further programs.
FORMATS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Shown:
    """A fitted model, the rows to show by it, and their names."""

    model: Any
    X: Any
    table: Table

    @property
    def labels(self) -> list[str]:
        """Names of the rows."""
        return self.table.labels


@dataclass(frozen=True)
class Pictures:
    """Pictures that were drawn; printed, it is a text.

    Attributes
    ----------
    table : Table
        The data.
    method : str
        What was fitted.
    drawn : list of str
        The kinds that were drawn.
    left_out : dict of str to str
        Kinds that do not apply, and why.
    """

    table: Table
    method: str
    drawn: list[str]
    left_out: dict[str, str]

    @property
    def verdict(self) -> str:
        """What was drawn."""
        return f"Drew {listed(self.drawn, 9)} by {self.method}."

    def to_dict(self) -> dict[str, Any]:
        """The result in lists and texts, for JSON."""
        return {"verdict": self.verdict, "drawn": self.drawn, "left_out": self.left_out}

    def __str__(self) -> str:
        lines = [f"Left out {kind}: {why}" for kind, why in self.left_out.items()]
        return "\n".join([self.verdict, *lines])


def _map(shown: Shown, ax: Any) -> Any:
    return plot.OutlierMapDisplay.from_estimator(shown.model, shown.X, labels=shown.labels, ax=ax)


def _scores(shown: Shown, ax: Any) -> Any:
    return plot.ScoresDisplay.from_estimator(shown.model, shown.X, labels=shown.labels, ax=ax)


def _scree(shown: Shown, ax: Any) -> Any:
    return plot.ScreeDisplay.from_estimator(shown.model, shown.X, ax=ax)


def _loadings(shown: Shown, ax: Any) -> Any:
    return plot.LoadingsDisplay.from_estimator(shown.model, features=shown.table.names, ax=ax)


def _entries(shown: Shown, ax: Any) -> Any:
    return plot.EntriesDisplay.from_estimator(
        shown.model, shown.X, labels=shown.labels, features=shown.table.names, ax=ax
    )


def _values(shown: Shown, ax: Any) -> Any:
    return plot.SingularValuesDisplay.from_estimator(shown.model, shown.X, ax=ax)


def _convergence(shown: Shown, ax: Any) -> Any:
    return plot.ConvergenceDisplay.from_estimator(shown.model, ax=ax)


def _images(shown: Shown, ax: Any) -> Any:
    shape = shown.table.image_shape
    if shape is None or len(shape) != 2:
        raise ValueError(f"{shown.table.title} holds no grey images.")
    return plot.ImagesDisplay.from_estimator(
        shown.model, np.asarray(shown.X), image_shape=shape, labels=shown.labels, ax=ax
    )


# What draws each kind, and whether it is drawn by RPCA, which splits a table in two parts.
KINDS: dict[str, tuple[Callable[[Shown, Any], Any], bool]] = {
    "map": (_map, False),
    "scores": (_scores, False),
    "scree": (_scree, False),
    "loadings": (_loadings, False),
    "convergence": (_convergence, False),
    "entries": (_entries, True),
    "values": (_values, True),
    "images": (_images, True),
}


def check_kinds(kinds: Sequence[str], path: Path) -> None:
    """Refuse pictures that nobody knows, and files of a kind that cannot be written."""
    extra("matplotlib", "Drawing pictures", "plot")
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"No picture is called {kind!r}: choose from {', '.join(KINDS)}.")
    if path.suffix and path.suffix.lower() not in FORMATS and not path.is_dir():
        raise ValueError(f"-o {path} should be a folder, or end with {', '.join(FORMATS)}.")


def draw(
    table: Table,
    kinds: Sequence[str],
    place: Callable[[str], Path],
    model: Any = None,
    method: str = "PCAAN",
    callback: Any = None,
) -> Pictures:
    """Draw pictures of a table.

    Parameters
    ----------
    table : Table
        The data.
    kinds : sequence of str
        Some of `KINDS`; if several are given, those that do not apply are left out.
    place : callable
        Gives the file to write a kind to.
    model : estimator, default=None
        A fitted model; None to fit one.
    method : str, default='PCAAN'
        What to fit then; wrong and missing entries are shown by RPCA.
    callback : callable, default=None
        Called after each pass of a fit.

    Returns
    -------
    Pictures
        What was drawn.
    """
    from matplotlib.figure import Figure

    fits: dict[bool, Shown] = {}
    drawn, left_out = [], {}
    for kind in kinds:
        function, by_parts = KINDS[kind]
        figure = Figure(figsize=(7, 5), dpi=150, layout="constrained")
        try:
            if kind == "images" and table.image_shape is None:
                raise ValueError(f"{table.title} holds no images.")
            if model is not None:
                shown = Shown(model, checked(model, table), table)
            else:
                if by_parts not in fits:
                    fits[by_parts] = _fitted(table, by_parts, method, callback)
                shown = fits[by_parts]
            display = function(shown, None if kind == "images" else figure.add_subplot())
        except (ValueError, AttributeError, TypeError) as error:
            if len(kinds) == 1:
                raise ValueError(f"The picture {kind!r} cannot be drawn: {error}") from error
            left_out[kind] = str(error)
            continue
        display.figure_.savefig(place(kind))
        drawn.append(kind)
    names = {type(last_step(one.model)).__name__ for one in fits.values()}
    name = type(last_step(model)).__name__ if model is not None else " and ".join(sorted(names))
    return Pictures(table, name, drawn, left_out)


def _fitted(table: Table, by_parts: bool, method: str, callback: Any) -> Shown:
    if by_parts:
        found = clean_entries(table, callback=callback)
        return Shown(found.model, table.X, table)
    rows = find_rows(table, method=method, callback=callback)
    return Shown(rows.model, rows.data, table)
