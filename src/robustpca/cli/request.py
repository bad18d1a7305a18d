"""What all verbs on a file have in common: how to read it, where to write to, what to print."""

import functools
import inspect
import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from robustpca.cli.arguments import Force, Json, Key, Sheet, argument, option

__all__ = ["Request", "command_line", "noted", "with_request"]

# Warnings about code, of which a person at the command line has none.
FOR_AUTHORS = (DeprecationWarning, FutureWarning, ResourceWarning)


@dataclass(frozen=True)
class Request:
    """The file, how to read it, and where to write to: arguments that all verbs on files have."""

    data: Annotated[
        str, argument("Table, array or folder of images: .csv, .xlsx, .npy, .h5:name ...")
    ]
    columns: Annotated[str | None, option("Columns to use, as height,weight.")] = None
    drop: Annotated[str | None, option("Columns not to use.")] = None
    index: Annotated[str | None, option("Column that names the rows.")] = None
    missing: Annotated[
        str | None, option("Numbers that mean a missing cell, as -999; or none.")
    ] = None
    key: Key = None
    sheet: Sheet = None
    out: Path | None = None
    report: Annotated[Path | None, option("Write a page to forward, as report.html.")] = None
    force: Force = False
    as_json: Json = False
    quiet: Annotated[bool, option("Print the verdict only.", "--quiet", "-q")] = False

    def read(self, columns: Any = None) -> Any:
        """Read the table, and say what was read."""
        from robustpca.tools.files import read

        table = read(
            self.data,
            columns=columns or _names(self.columns),
            drop=_names(self.drop) or (),
            index=self.index,
            missing=_codes(self.missing),
            key=self.key,
            sheet=self.sheet,
        )
        if not self.quiet and not self.as_json:
            print(table.summary(), end="\n\n", flush=True)
        return table

    @contextmanager
    def table(self, columns: Any = None, cluster: str | None = None) -> Iterator[Any]:
        """The table: in memory, or to be read in blocks if it is a large array of numbers.

        On a cluster it is always read in blocks, by the workers.
        """
        from robustpca.tools.files import open_large

        chosen = any((self.columns, self.drop, self.missing))
        if cluster is not None and chosen:
            raise ValueError("--cluster reads all columns as they are: leave other options out.")
        if cluster is None and (columns or chosen):
            yield self.read(columns)
            return
        size = {} if cluster is None else {"least": 0}
        with open_large(self.data, self.key, **size) as large:
            if large is None and cluster is not None:
                raise ValueError(
                    f"{self.data} cannot be read by a cluster: --cluster takes tables of numbers "
                    "in .npy, .h5 and .zarr files, which all workers find under the same path."
                )
            if large is None:
                yield self.read()
                return
            if self.report is not None:
                raise ValueError(f"{self.data} is read in blocks, and --report needs all rows.")
            if not self.quiet and not self.as_json:
                print(large.summary(), end="\n\n", flush=True)
            with on_cluster(cluster):
                yield replace(large, on_cluster=cluster is not None)

    @contextmanager
    def outputs(self, table: Any, parameters: Mapping[str, Any]) -> Iterator[Any]:
        """What the job writes to, or None if nothing is to be written."""
        if self.out is None:
            yield None
            return
        from robustpca.tools.outputs import Outputs

        with Outputs(self.out, self.force) as outputs:
            outputs.record(command_line(), parameters, table)
            yield outputs

    @contextmanager
    def page(self) -> Iterator[Callable[[Any], None]]:
        """What writes the page of a result, if one is wanted; its file is claimed at once."""
        if self.report is None:
            yield lambda result: None
            return
        from robustpca.tools.outputs import Outputs
        from robustpca.tools.report import render_report

        if self.report.suffix not in (".html", ".htm"):
            raise ValueError(f"--report {self.report} should name a page, as report.html.")
        with Outputs(self.report, self.force) as outputs:
            draft = outputs.claim()

            def write(result: Any) -> None:
                draft.write_text(render_report(result, command_line()), encoding="utf-8")

            yield write

    def show(self, table: Any, result: Any, outputs: Any = None) -> None:
        """Print a result, as text or as JSON, and what was written."""
        written = [str(path) for path in outputs.written] if outputs is not None else []
        written += [str(self.report)] if self.report is not None else []
        if self.as_json:
            found = {"read": table.summary(), **result.to_dict()}
            print(json.dumps(found | ({"written": written} if written else {}), indent=2))
            return
        from robustpca.tools.words import listed

        print(result.verdict if self.quiet else result)
        if written and not self.quiet:
            print(f"\nWrote {listed(written, 12)}.")


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let the workers of a Dask scheduler do the work, if there is an address of one."""
    if address is None:
        yield
        return
    from robustpca.tools.files.table import extra

    with extra("distributed", "--cluster", "dask").Client(address):
        yield


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _codes(text: str | None) -> list[float] | None:
    """Numbers that stand for missing ones; an empty list for none."""
    if text is None or text.lower() == "none":
        return None if text is None else []
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--missing {text} should be numbers such as -999,-99, or none.") from None


def with_request(
    verb: Callable[..., None], out: str = "", needs_out: bool = False, report: bool = True
) -> Callable[..., None]:
    """A verb that gets its `Request` from the arguments that all verbs on a file have.

    Parameters
    ----------
    verb : callable
        Takes a `Request`, and arguments of its own by name.
    out : str
        What ``-o`` is for; nothing if the verb has no such option.
    needs_out : bool
        Whether it must be given.
    report : bool
        Whether a page can be written.

    Returns
    -------
    verb : callable
        Its signature has all arguments.
    """
    own = dict(inspect.signature(verb).parameters)
    own.pop("request")
    fields = dict(inspect.signature(Request).parameters)
    if out:
        how = option(out, "-o", "--out")
        fields["out"] = fields["out"].replace(annotation=Annotated[Path | None, how])
        if needs_out:
            fields["out"] = fields["out"].replace(
                annotation=Annotated[Path, how], default=inspect.Parameter.empty
            )
    unused = ([] if out else ["out"]) + ([] if report else ["report"])
    for name in [*unused, "force"] if len(unused) == 2 else unused:
        del fields[name]
    first = [fields.pop(name) for name in ("data", "out") if name in fields]
    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for one in (*first, *own.values(), *fields.values())
    ]

    @functools.wraps(verb)
    def asked(**given: Any) -> None:
        mine = {name: given.pop(name) for name in own}
        verb(Request(**given), **mine)

    asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return asked


def command_line() -> str:
    """What was typed."""
    return shlex.join(["robustpca", *sys.argv[1:]])


@contextmanager
def noted() -> Iterator[None]:
    """Print warnings as sentences, without a place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            # Not by filters, which packages change when they are imported.
            told = [one.message for one in caught if not issubclass(one.category, FOR_AUTHORS)]
            for text in dict.fromkeys(" ".join(str(message).split()) for message in told):
                print(f"Note: {text}", file=sys.stderr)
