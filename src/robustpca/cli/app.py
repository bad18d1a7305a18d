"""The arguments of all verbs, and the entry point.

The verbs are plain functions; `application` alone knows typer, which is an extra.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.bench import run_bench
from robustpca.cli.compare import run_compare
from robustpca.cli.data import fetch_data, show_data
from robustpca.cli.demo import show_demo
from robustpca.cli.fit import run_fit
from robustpca.cli.info import show_info
from robustpca.cli.jobs import run_check, run_entries, run_rows, run_tune
from robustpca.cli.methods import method_names, show_method, show_methods
from robustpca.cli.plot import run_plot
from robustpca.cli.report import make_report
from robustpca.cli.request import Request, noted, with_request
from robustpca.cli.separate import run_separate
from robustpca.cli.transform import run_transform

__all__ = ["application", "main"]

# Groups of verbs in the help.
YOURS, LEARN, PAPERS = "Your data", "Try and learn", "The papers"
# Set it to see where an error that nobody thought of comes from.
DEBUG = "ROBUSTPCA_DEBUG"
# What `plot` can draw, for completion.
PICTURES = [
    *("map", "scores", "scree", "loadings", "convergence", "entries", "values", "images", "all"),
]


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
        print(" ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
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


def _guarded(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that ends with a sentence when something is wrong."""

    @functools.wraps(verb)
    def guarded(*args: Any, **kwargs: Any) -> None:
        with one_sentence(), noted():
            verb(*args, **kwargs)

    return guarded


def _level(quick: bool, full: bool) -> str:
    if quick and full:
        raise ValueError("Choose one of --quick and --full.")
    return "quick" if quick else "full" if full else "default"


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

    def verb(panel: str, example: str = "", name: str | None = None, to: Any = app) -> Any:
        """Add a function as a verb of a group, with an example in its help."""

        def add(function: Callable[..., None]) -> None:
            first, *others = (inspect.getdoc(function) or "").split("\n\n")
            first += f" [cyan]robustpca {example}[/cyan]" if example else ""
            text = "\n\n".join(" ".join(part.split()) for part in [first, *others])
            to.command(name, help=text, rich_help_panel=panel)(_guarded(function))

        return add

    def job(
        example: str, out: str = "", needs_out: bool = False, report: bool = True
    ) -> Callable[[Callable[..., None]], None]:
        """Add a function that takes a `Request` as a verb on a file of the user."""
        add = verb(YOURS, example)
        return lambda function: add(with_request(function, out, needs_out, report))

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

    # What verbs that read no file of the user have in common with those that do.
    Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
    Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
    Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
    Method = Annotated[
        str, typer.Option(help="Any of `robustpca methods`.", autocompletion=method_names)
    ]
    Scale = Annotated[
        str, typer.Option(help="Bring columns to one scale: auto if units differ, mad, none.")
    ]

    Cluster = Annotated[
        str | None, typer.Option(help="Dask scheduler that does the work, as tcp://host:8786.")
    ]

    @job("check mine.csv")
    def check(request: Request) -> None:
        """Say what is wrong with my data.

        Missing, constant and repeated things, units, wrong cells, bad rows, groups; and what to
        do about them. Nothing is written but the page, if one is wanted.
        """
        run_check(request)

    @job("rows mine.csv -o marked", out="Folder to write to.")
    def rows(
        request: Request,
        method: Method = "PCAAN",
        components: Annotated[
            str | None,
            typer.Option(help="Dimension, as 3; share of the variance, as 0.9; or auto."),
        ] = None,
        contamination: Annotated[
            str, typer.Option(help="Share of the rows to flag, as 0.05; auto for a cutoff.")
        ] = "auto",
        scale: Scale = "auto",
    ) -> None:
        """Find the rows that do not fit, and say why.

        Writes the table with what is known of each row beside it, and a map of the rows. Without
        -o nothing is written.
        """
        run_rows(request, method, components, contamination, scale)

    @job("entries mine.csv -o cleaned", out="Folder to write to.")
    def entries(
        request: Request,
        flag_rate: Annotated[
            str, typer.Option(help="Share of good cells that may be flagged, as 0.001; or auto.")
        ] = "auto",
        remove: Annotated[
            bool,
            typer.Option("--remove/--fill", help="Leave wrong cells empty, or fill in values."),
        ] = False,
    ) -> None:
        """Find wrong cells, and what belongs there.

        Writes the cleaned table, in which only wrong and missing cells differ, and a list of
        these cells. Without -o nothing is written.
        """
        run_entries(request, flag_rate, remove)

    @job("tune mine.csv")
    def tune(request: Request) -> None:
        """Say which method to use, and with how many components."""
        run_tune(request)

    @job("compare mine.csv", out="Folder to write to.")
    def compare(
        request: Request,
        methods: Annotated[
            str | None, typer.Option(help="Names from `methods`, PCA, module:Class, or all.")
        ] = None,
        corrupt: Annotated[
            list[str] | None,
            typer.Option(help="Plant this instead, as reset_entries:samples=0.2; may be repeated."),
        ] = None,
        components: Annotated[str, typer.Option(help="Dimension of the subspaces.")] = "auto",
        image_shape: Annotated[str | None, typer.Option(help="Height x width, as 32x32.")] = None,
        seeds: Annotated[int, typer.Option(min=1, help="How often troubles are drawn.")] = 3,
    ) -> None:
        """Find the method that is best on my data.

        Bad rows, wrong cells and missing cells are planted in the data, so that the truth is
        known; each method is measured by how near it comes to it, beside PCA.
        """
        run_compare(request, methods, corrupt or [], components, image_shape, seeds)

    @job("fit mine.csv -o model.rpca", out="The model, as model.rpca.", needs_out=True)
    def fit(
        request: Request,
        method: Annotated[
            str,
            typer.Option(
                help="Any of `robustpca methods`; auto is PCAAN, or RPCA if cells are missing.",
                autocompletion=method_names,
            ),
        ] = "auto",
        set_: Annotated[
            list[str] | None,
            typer.Option("--set", help="A parameter, as n_components=3; may be repeated."),
        ] = None,
        scale: Scale = "auto",
        cluster: Cluster = None,
        checkpoint: Annotated[
            Path | None,
            typer.Option(
                help="Keep the state of a long fit here; after a crash, the same command goes on."
            ),
        ] = None,
    ) -> None:
        """Fit any method, and write the model to a file."""
        run_fit(request, method, set_ or [], scale, cluster, checkpoint)

    @job(
        "transform new.csv --model model.rpca -o scores.csv",
        out="The scores, as scores.csv.",
        needs_out=True,
        report=False,
    )
    def transform(
        request: Request,
        model: Annotated[Path, typer.Option("--model", "-m", help="A file that `fit` wrote.")],
        rebuild: Annotated[
            bool, typer.Option("--rebuild", help="Write the rows as the model sees them instead.")
        ] = False,
        cluster: Cluster = None,
    ) -> None:
        """Write the scores of rows under a model from `fit`."""
        run_transform(request, model, rebuild, cluster)

    @job(
        "plot mine.csv -o map.png",
        out="A picture (.png, .svg, .pdf), or a folder.",
        needs_out=True,
        report=False,
    )
    def plot(
        request: Request,
        kind: Annotated[
            str,
            typer.Option(
                help="map, scores, scree, loadings, convergence, entries, values, images; several "
                "with commas; or all.",
                autocompletion=lambda: PICTURES,
            ),
        ] = "map",
        method: Method = "PCAAN",
        model: Annotated[
            Path | None, typer.Option(help="A file that `fit` wrote, instead of a method.")
        ] = None,
    ) -> None:
        """Draw the outlier map and other pictures."""
        run_plot(request, kind, method, model)

    @verb(YOURS, "info mine.csv")
    def info(
        file: Annotated[str, typer.Argument(help="Data of any kind, or a model.")],
        key: Annotated[str | None, typer.Option(help="Name of the array in the file.")] = None,
        sheet: Annotated[
            str | None, typer.Option(help="Name of the sheet in the workbook.")
        ] = None,
        json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        """Say what is in a file of data or of a model."""
        show_info(file, key, sheet, json, quiet)

    @verb(YOURS, "separate traffic.mp4 -o out")
    def separate(
        video: Annotated[
            str,
            typer.Argument(
                help="Film (.mp4 ...), .tif stack, folder of images, .npy; - for stdin."
            ),
        ],
        out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder to write to.")] = None,
        method: Annotated[
            str,
            typer.Option(
                help="masked, median, pca, rpca, frpcag, tae, grassmann or pcaan: see the guide."
            ),
        ] = "masked",
        components: Annotated[
            str, typer.Option(help="Number of components of the light, or auto.")
        ] = "auto",
        horizon: Annotated[
            int, typer.Option(min=4, help="Frames over which the background is learned.")
        ] = 3000,
        shadows: Annotated[
            bool, typer.Option("--shadows/--no-shadows", help="Whether shadows count as moving.")
        ] = True,
        min_size: Annotated[int, typer.Option(min=1, help="Pixels that move together.")] = 12,
        memory: Annotated[
            str, typer.Option(help="Memory for frames and background, as 500MB.")
        ] = "2GB",
        cutout: Annotated[
            bool, typer.Option("--cutout", help="Also write what moves on transparent ground.")
        ] = False,
        rate: Annotated[float | None, typer.Option(help="Frames per second.")] = None,
        key: Annotated[str | None, typer.Option(help="Name of the array in the file.")] = None,
        force: Force = False,
        json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        """Separate what moves in a video from what stays.

        Writes background, foreground and mask as videos of the same size and rate, a list of the
        frames, a sheet of pictures and a page.
        """
        run_separate(
            video, out, method, components, horizon, shadows, min_size, memory, cutout, rate,
            key, force, json, quiet,
        )  # fmt: skip

    @verb(LEARN, "demo")
    def demo(
        out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the files.")] = Path(
            "robustpca-demo"
        ),
        seed: Annotated[int, typer.Option(help="Draws what is wrong with the data.")] = 0,
        all_methods: Annotated[
            bool, typer.Option("--all-methods", help="Also fit all methods to corrupted digits.")
        ] = False,
        force: Force = False,
        json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        """See three troubles: plain PCA, the right method, the truth.

        Writes a page and a picture.
        """
        show_demo(out, seed, all_methods, force, json, quiet)

    @verb(LEARN, "methods RPCA")
    def methods(
        name: Annotated[
            str | None,
            typer.Argument(help="A method; none lists all.", autocompletion=method_names),
        ] = None,
        json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        """List the methods, and say what they are for and need."""
        if name is None:
            show_methods(json, quiet)
        else:
            show_method(name, json, quiet)

    Quick = Annotated[bool, typer.Option("--quick", help="Small grids, few seeds: no verdicts.")]
    Full = Annotated[bool, typer.Option("--full", help="The grids of the papers.")]
    Seeds = Annotated[
        int | None, typer.Option(min=1, help="Repetitions, instead of those of the level.")
    ]
    Bench = Annotated[Path, typer.Option("-o", "--out", help="Folder of rows and report.")]
    Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; one per core.")]

    Labels = Annotated[str | None, typer.Option(help="Run these alone, as A,B.")]

    @verb(PAPERS, "bench epca_table_1 --quick")
    def bench(
        names: Annotated[
            list[str] | None,
            typer.Argument(help="Tables, or `all`; none lists them; `diff A B` compares two runs."),
        ] = None,
        quick: Quick = False,
        full: Full = False,
        seeds: Seeds = None,
        out: Bench = Path("robustpca-bench"),
        jobs: Jobs = None,
        retry: Annotated[bool, typer.Option("--retry", help="Try failed cells again.")] = False,
        datasets: Labels = None,
        methods: Labels = None,
        corruptions: Labels = None,
        json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        """Run the tables of the papers, whole or in pieces.

        What is done already is not done again.
        """
        piece = {"datasets": datasets, "methods": methods, "corruptions": corruptions}
        level = _level(quick, full)
        run_bench(names or [], level, seeds, out, jobs, retry, piece, json, quiet)

    @verb(YOURS, "report mine.csv -o page.html")
    def report(
        names: Annotated[
            list[str] | None,
            typer.Argument(help="A file of data; or tables that `bench` ran, none for all."),
        ] = None,
        out: Annotated[
            Path | None, typer.Option("-o", "--out", help="The page; for `bench`, its folder.")
        ] = None,
        quick: Quick = False,
        full: Full = False,
        seeds: Seeds = None,
        html: Annotated[Path | None, typer.Option(help="File of the page for `bench`.")] = None,
        force: Force = False,
        json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        """Write a page on my data to forward; or the report of what `bench` ran.

        The page has what `check`, `rows` and `entries` find, with pictures.
        """
        named = names or []
        if len(named) == 1 and (Path(named[0]).exists() or Path(named[0]).suffix):
            if out is None:
                raise ValueError(f"Say where to write it: robustpca report {named[0]} -o page.html")
            run_check(Request(named[0], report=out, force=force, as_json=json, quiet=quiet))
        else:
            folder = out or Path("robustpca-bench")
            make_report(named, _level(quick, full), seeds, folder, html, json)

    app.add_typer(data, name="data", rich_help_panel=PAPERS)

    @verb(PAPERS, name="list", to=data)
    def list_(json: Json = False, quiet: Quiet = False) -> None:
        """List the data sets, and say where each is or what file is needed."""
        show_data(json, quiet)

    @verb(PAPERS, to=data)
    def fetch(
        name: Annotated[str, typer.Argument(help="Name from `data list`.")], json: Json = False
    ) -> None:
        """Download a data set."""
        fetch_data(name, json)

    return app
