"""The arguments of all verbs, and the entry point.

The verbs are plain functions; `application` alone knows typer, which is an extra.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.bench import run_bench
from robustpca.cli.compare import run_compare
from robustpca.cli.data import fetch_data, show_data
from robustpca.cli.demo import show_demo
from robustpca.cli.methods import show_methods
from robustpca.cli.report import make_report
from robustpca.cli.tune import tune_data

__all__ = ["application", "main"]


def main() -> None:
    """Entry point of the console script."""
    with one_sentence():
        missing = [name for name in ("typer", "rich") if find_spec(name) is None]
        if missing:
            raise ImportError(
                f"The command line needs {' and '.join(missing)}, not installed here. Run "
                "`pip install 'robustpca[cli]'`."
            )
    application()()


@contextmanager
def one_sentence() -> Iterator[None]:
    """End the program with a sentence instead of a traceback when something is wrong."""
    try:
        yield
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        raise SystemExit(130) from None
    except (ValueError, OSError, ImportError, LookupError, RuntimeError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        raise SystemExit(2) from None


def _level(quick: bool, full: bool) -> str:
    if quick and full:
        raise ValueError("Choose one of --quick and --full.")
    return "quick" if quick else "full" if full else "default"


def application() -> Any:
    """The command line as a typer application."""
    import typer

    app = typer.Typer(
        help="Robust principal component analysis: try it, measure it, compare it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    data = typer.Typer(help="Data sets of the papers.", no_args_is_help=True)
    app.add_typer(data, name="data")
    Quick = Annotated[bool, typer.Option("--quick", help="Small grids, few seeds.")]
    Full = Annotated[bool, typer.Option("--full", help="The grids of the papers.")]
    Seeds = Annotated[
        int | None, typer.Option(min=1, help="Repetitions, instead of those of the level.")
    ]
    Out = Annotated[Path, typer.Option(help="Folder of rows and report.")]
    Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; one per core.")]

    @app.command()
    def demo(
        out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("build/demo"),
        n_samples: Annotated[int | None, typer.Option(help="How many digits to use.")] = None,
        seed: Annotated[int, typer.Option(help="Draws the corruption.")] = 0,
        scattered: Annotated[
            bool, typer.Option("--scattered", help="Other pixels in each corrupted digit.")
        ] = False,
    ) -> None:
        """Fit every method to digits of which a fifth is corrupted."""
        with one_sentence():
            show_demo(out, n_samples, seed, scattered)

    @app.command()
    def methods() -> None:
        """List the methods of the library."""
        with one_sentence():
            show_methods()

    @data.command("list")
    def list_() -> None:
        """List the data sets, and say where each is or what file is needed."""
        with one_sentence():
            show_data()

    @data.command()
    def fetch(name: Annotated[str, typer.Argument(help="Name from `data list`.")]) -> None:
        """Download a data set."""
        with one_sentence():
            fetch_data(name)

    @app.command()
    def bench(
        names: Annotated[
            list[str] | None, typer.Argument(help="Tables, or `all`; none lists them.")
        ] = None,
        quick: Quick = False,
        full: Full = False,
        seeds: Seeds = None,
        out: Out = Path("build/bench"),
        jobs: Jobs = None,
        retry: Annotated[bool, typer.Option("--retry", help="Try failed cells again.")] = False,
    ) -> None:
        """Run the tables of the papers; what is done already is not done again."""
        with one_sentence():
            run_bench(names or [], _level(quick, full), seeds, out, jobs, retry)

    @app.command()
    def report(
        names: Annotated[
            list[str] | None, typer.Argument(help="Tables; none for all that have rows.")
        ] = None,
        quick: Quick = False,
        full: Full = False,
        seeds: Seeds = None,
        out: Out = Path("build/bench"),
        html: Annotated[Path | None, typer.Option(help="File of the page.")] = None,
    ) -> None:
        """Write the report of what was run before: a page, and each table as Markdown and LaTeX."""
        with one_sentence():
            make_report(names or [], _level(quick, full), seeds, out, html)

    @app.command()
    def compare(
        data: Annotated[Path, typer.Argument(help="A .npz, .npy or .csv file.")],
        methods: Annotated[
            str, typer.Option(help="Names from `methods`, PCA, module:Class, or all.")
        ] = "all",
        corrupt: Annotated[
            list[str] | None,
            typer.Option(help="As reset_entries:samples=0.2,shared=true; may be repeated."),
        ] = None,
        components: Annotated[str, typer.Option(help="Sizes of the subspace, as 5,10.")] = "10",
        image_shape: Annotated[str | None, typer.Option(help="Height x width, as 32x32.")] = None,
        seeds: Annotated[int, typer.Option(min=1, help="Repetitions.")] = 3,
        out: Annotated[Path, typer.Option(help="Folder of rows and text.")] = Path("build/compare"),
        jobs: Jobs = None,
    ) -> None:
        """Compare methods on your own data."""
        with one_sentence():
            run_compare(data, methods, corrupt or [], components, image_shape, seeds, out, jobs)

    @app.command()
    def tune(
        data: Annotated[Path, typer.Argument(help="A .csv, .tsv, .npy or .npz file.")],
    ) -> None:
        """Say which troubles your data have, and which method to use for them."""
        with one_sentence():
            tune_data(data)

    return app
