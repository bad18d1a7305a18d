"""Arguments of verbs: plain data beside their types in a signature, which `app` gives to typer.

So a verb and its arguments stand in one file, and can be called without typer, which is an extra.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

__all__ = ["Argument", "Cluster", "Force", "Json", "Key", "Quiet", "Scale", "Sheet", "argument"]
__all__ += ["components_of", "option", "scale_of", "value_of"]


@dataclass(frozen=True)
class Argument:
    """What the help says of an argument, and how it is given.

    Attributes
    ----------
    help : str
        A sentence for the help.
    names : tuple of str
        Names of an option; by default that of the parameter.
    in_place : bool
        Whether it is given by its place instead of by a name.
    least : int or None
        The least number that is allowed.
    completion : callable or None
        Gives what the shell can complete.
    """

    help: str
    names: tuple[str, ...] = ()
    in_place: bool = False
    least: int | None = None
    completion: Callable[[], list[str]] | None = None

    def for_typer(self) -> Any:
        """The same for typer."""
        import typer

        facts: dict[str, Any] = {
            "help": self.help,
            "min": self.least,
            "autocompletion": self.completion,
        }
        return typer.Argument(**facts) if self.in_place else typer.Option(*self.names, **facts)


def option(
    help_: str,
    *names: str,
    least: int | None = None,
    completion: Callable[[], list[str]] | None = None,
) -> Argument:
    """An argument that is given by its name."""
    return Argument(help_, names, least=least, completion=completion)


def argument(help_: str, completion: Callable[[], list[str]] | None = None) -> Argument:
    """An argument that is given by its place."""
    return Argument(help_, in_place=True, completion=completion)


# Arguments that several verbs have.
Force = Annotated[bool, option("Replace files that are there.", "--force")]
Json = Annotated[bool, option("Print the result as JSON.", "--json")]
Quiet = Annotated[bool, option("Print the result only.", "--quiet", "-q")]
Key = Annotated[str | None, option("Name of the array in the file.")]
Sheet = Annotated[str | None, option("Name of the sheet in the workbook.")]
Scale = Annotated[str, option("Bring columns to one scale: auto if units differ, mad, none.")]
Cluster = Annotated[str | None, option("Dask scheduler that does the work, as tcp://host:8786.")]


def scale_of(text: str) -> str | None:
    """What ``--scale`` asks for, as jobs take it."""
    if text not in ("auto", "mad", "none"):
        raise ValueError(f"--scale {text} should be auto, mad or none.")
    return None if text == "none" else text


def components_of(text: str) -> int | str:
    """What ``--components`` asks for: a number, or auto."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--components {text} should be a number such as 10, or auto.") from None


def value_of(text: str) -> Any:
    """A number if it is one, otherwise the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
