"""All verbs, and the entry point.

A verb is a plain function in a file of its own, with its arguments in the signature and its help as
docstring; `application` alone knows typer, which is an extra.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, get_args

from robustpca.cli.bench import bench
from robustpca.cli.check import run_check
from robustpca.cli.compare import run_compare
from robustpca.cli.data import fetch_data, show_data
from robustpca.cli.demo import show_demo
from robustpca.cli.entries import run_entries
from robustpca.cli.fit import run_fit
from robustpca.cli.info import show_info
from robustpca.cli.methods import run_methods
from robustpca.cli.plot import run_plot
from robustpca.cli.report import report
from robustpca.cli.request import noted, with_request
from robustpca.cli.rows import run_rows
from robustpca.cli.separate import run_separate
from robustpca.cli.transform import run_transform
from robustpca.cli.tune import run_tune

__all__ = ["application", "main"]

# Groups of verbs in the help.
YOURS, LEARN, PAPERS = "Your data", "Try and learn", "The papers"
# Set it to see where an error that nobody thought of comes from.
DEBUG = "ROBUSTPCA_DEBUG"


@dataclass(frozen=True)
class Verb:
    """A function as a verb: its name, its group in the help, and an example.

    One that takes a `Request` gets it from the arguments that all verbs on a file have: ``out``
    says what ``-o`` is for, if there is such an option, and ``report`` whether a page can be had.
    """

    name: str
    run: Callable[..., None]
    group: str
    example: str = ""
    out: str = ""
    needs_out: bool = False
    report: bool = True

    @property
    def help(self) -> str:
        """The docstring, with the example behind its first sentence."""
        first, *others = (inspect.getdoc(self.run) or "").split("\n\n")
        first += f" [cyan]robustpca {self.example}[/cyan]" if self.example else ""
        return "\n\n".join(" ".join(part.split()) for part in [first, *others])

    def function(self) -> Callable[..., None]:
        """What typer is given: it ends with a sentence when something is wrong."""
        run = self.run
        if "request" in inspect.signature(run).parameters:
            run = with_request(run, self.out, self.needs_out, self.report)

        @functools.wraps(run)
        def guarded(**given: Any) -> None:
            with one_sentence(), noted():
                run(**given)

        parameters = [_for_typer(one) for one in inspect.signature(run).parameters.values()]
        guarded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        guarded.__annotations__ = {one.name: one.annotation for one in parameters}
        return guarded


# In the order of the help.
FOLDER = "Folder to write to."
VERBS = [
    Verb("check", run_check, YOURS, "check mine.csv"),
    Verb("rows", run_rows, YOURS, "rows mine.csv -o marked", FOLDER),
    Verb("entries", run_entries, YOURS, "entries mine.csv -o cleaned", FOLDER),
    Verb("tune", run_tune, YOURS, "tune mine.csv"),
    Verb("compare", run_compare, YOURS, "compare mine.csv", FOLDER),
    Verb("fit", run_fit, YOURS, "fit mine.csv -o model.rpca", "The model, as model.rpca.", True),
    Verb(
        "transform",
        run_transform,
        YOURS,
        "transform new.csv --model model.rpca -o scores.csv",
        out="The scores, as scores.csv.",
        needs_out=True,
        report=False,
    ),
    Verb(
        "plot",
        run_plot,
        YOURS,
        "plot mine.csv -o map.png",
        out="A picture (.png, .svg, .pdf), or a folder.",
        needs_out=True,
        report=False,
    ),
    Verb("info", show_info, YOURS, "info mine.csv"),
    Verb("separate", run_separate, YOURS, "separate traffic.mp4 -o out"),
    Verb("report", report, YOURS, "report mine.csv -o page.html"),
    Verb("demo", show_demo, LEARN, "demo"),
    Verb("methods", run_methods, LEARN, "methods RPCA"),
    Verb("bench", bench, PAPERS, "bench epca_table_1 --quick"),
]
DATA_VERBS = [Verb("list", show_data, PAPERS), Verb("fetch", fetch_data, PAPERS)]


def main() -> None:
    """Entry point of the console script."""
    with one_sentence():
        missing = [name for name in ("typer", "rich") if find_spec(name) is None]
        if missing:
            raise ImportError(
                f"The command line needs {' and '.join(missing)}, not installed here. Run "
                "`pip install 'robustpca[cli]'`."
            )
    application()(prog_name="robustpca")


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the program with a sentence instead of a traceback when something is wrong."""
    try:
        yield
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  kept until the end
        raise SystemExit(0) from None
    except (ValueError, OSError, ImportError, LookupError, RuntimeError, MemoryError) as error:
        print(_sentence(error), file=sys.stderr)
        raise SystemExit(2) from None
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        text = " ".join(str(error).split())
        print(
            f"Unexpected {type(error).__name__}: {text.rstrip('.')}. Set {DEBUG}=1 to see where.",
            file=sys.stderr,
        )
        raise SystemExit(2) from None


def _sentence(error: Exception) -> str:
    """The message of an error; of one of the system, without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__


def _for_typer(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter of a verb in the words of typer."""
    kind, how = get_args(parameter.annotation)
    return parameter.replace(annotation=Annotated[kind, how.for_typer()])


def application() -> Any:
    """The command line as a typer application."""
    import typer

    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    data = typer.Typer(
        help="Data sets of the papers. [cyan]robustpca data list[/cyan]", no_args_is_help=True
    )
    app.add_typer(data, name="data", rich_help_panel=PAPERS)

    def show_version(wanted: bool) -> None:
        if wanted:
            from robustpca import __version__

            print(f"robustpca {__version__}")
            raise typer.Exit

    @app.callback()
    def robustpca(
        version: Annotated[
            bool,
            typer.Option(
                "--version", help="Print the version.", callback=show_version, is_eager=True
            ),
        ] = False,
    ) -> None:
        """Robust PCA: from a spoiled table to an answer. Start with `check`."""

    for group, verbs in ((app, VERBS), (data, DATA_VERBS)):
        for verb in verbs:
            group.command(verb.name, help=verb.help, rich_help_panel=verb.group)(verb.function())
    return app
