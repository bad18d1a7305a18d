"""The command line, ``robustpca``: parses arguments and calls the library, nothing more.

The verbs are plain functions; `application` alone knows typer, which is an extra.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

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


def show_demo(out: Path, n_samples: int | None, seed: int, scattered: bool) -> None:
    """Fit every method to corrupted digits."""
    from robustpca.tools import demo

    demo.show(out, n_samples, seed, not scattered)


def show_methods() -> None:
    """Print every estimator with the first line of its documentation."""
    from robustpca.testing import all_estimators

    found = all_estimators()
    width = max(map(len, found))
    for name, kind in found.items():
        summary = (kind.__doc__ or "").strip().splitlines()[0]
        print(f"{name:<{width}}  {kind.__module__.rpartition('.')[2]:<12}  {summary}")


def show_data() -> None:
    """Print the data sets of the catalogue, and what to do to have those that lack."""
    from robustpca.datasets import catalog, data_folders

    entries = catalog()
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        print(f"{entry.name:<{width}}  {'there  ' if entry.is_there else 'missing'}  {entry.title}")
        if entry.to_do:
            print(f"{'':<{width}}           {entry.to_do}")
    print(f"\nLooked for in {', '.join(map(str, data_folders()))}.")


def fetch_data(name: str) -> None:
    """Download a data set and print the file it is in."""
    from robustpca.datasets import fetch

    print(fetch(name))


def run_bench(
    names: Sequence[str],
    level: str,
    seeds: int | None,
    out: Path,
    jobs: int | None,
    retry: bool,
) -> None:
    """Run tables by name, print each beside its published numbers, and write the report."""
    from robustpca.bench.tables import all_tables

    if names:
        _run(_chosen(names, seeds), level, out, jobs, retry)
        return
    known = all_tables()
    width = max(map(len, known))
    for name, table in known.items():
        print(f"{name:<{width}}  {len(table.cells(level)):>6} cells  {table.title}")
    print("\nRun them with `robustpca bench NAME...`, or all with `robustpca bench all`.")


def make_report(
    names: Sequence[str], level: str, seeds: int | None, out: Path, html: Path | None
) -> None:
    """Write the report of what was run before; by default of all tables that have rows."""
    from robustpca.bench import build_report, collect, read_rows, write_report
    from robustpca.bench.runner import ROWS
    from robustpca.bench.tables import all_tables

    path = out / ROWS
    found = {row["table"] for row in read_rows(path)} if path.exists() else set()
    tables = [table for table in _chosen(names or ["all"], seeds) if table.name in found or names]
    outcome = collect(tables, out, level=level) if found else None
    if outcome is None or not outcome.rows:
        other = f" It has {outcome.n_other} of other levels or older code." if outcome else ""
        raise ValueError(
            f"No rows of these tables at level {level} in {path}.{other} Run `robustpca bench` "
            "first, with the same level and folder."
        )
    page = write_report(build_report(tables, outcome, all_tables()), out, html)
    print(f"Report of {len(outcome.rows)} rows: {page}")
    if outcome.n_other:
        print(f"{outcome.n_other} rows of other levels or older code are not in it.")


def _chosen(names: Sequence[str], seeds: int | None) -> list[Any]:
    """Tables by name, with another number of seeds if it is given."""
    from robustpca.bench.tables import all_tables

    known = all_tables()
    unknown = [name for name in names if name != "all" and name not in known]
    if unknown:
        raise ValueError(f"No table is called {unknown[0]!r}: choose from all, {', '.join(known)}.")
    chosen = known if "all" in names else {name: known[name] for name in names}
    return [table if seeds is None else table.repeated(seeds) for table in chosen.values()]


def run_compare(
    data: Path,
    methods: str,
    corrupt: Sequence[str],
    components: str,
    image_shape: str | None,
    seeds: int,
    out: Path,
    jobs: int | None,
) -> None:
    """Compare methods on the user's own data."""
    from robustpca.bench.compare import File, comparison

    # Classes of the user lie where the command is given; a console script looks elsewhere.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    shape = None if image_shape is None else _sides(image_shape)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    table = comparison(File(data, shape), names, corrupt, _numbers(components), seeds)
    _run([table], "default", out, jobs, retry=True)


def _run(tables: Sequence[Any], level: str, out: Path, jobs: int | None, retry: bool) -> None:
    from robustpca.bench import build_report, render_terminal, run, write_report
    from robustpca.bench.progress import new_progress
    from robustpca.bench.tables import all_tables

    outcome = run(tables, out, level=level, jobs=jobs, progress=new_progress(), retry=retry)
    report = build_report(tables, outcome, all_tables())
    try:
        page = f"Report: {write_report(report, out)}"
    except ImportError as error:  # the page alone needs an extra; the texts are written
        page = str(error)
    print(render_terminal(report))
    n_missing = sum(map(len, outcome.missing_data.values()))
    print(
        f"{len(outcome.rows)} cells, {outcome.n_new} of them new, {len(outcome.failures)} failed; "
        f"{n_missing} data sets missing. Rows: {out / 'rows.jsonl'}\n{page}"
    )
    if outcome.interrupted:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        raise SystemExit(130)


def _level(quick: bool, full: bool) -> str:
    if quick and full:
        raise ValueError("Choose one of --quick and --full.")
    return "quick" if quick else "full" if full else "default"


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--components {text} should be numbers such as 10,30,50.") from None


def _sides(text: str) -> tuple[int, int]:
    try:
        height, width = (int(part) for part in text.split("x"))
    except ValueError:
        raise ValueError(f"--image-shape {text} should be height and width as in 32x32.") from None
    return height, width


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

    return app


if __name__ == "__main__":
    main()
