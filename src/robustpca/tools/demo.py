"""Every method on corrupted digits: ``python -m robustpca.tools.demo --out build/demo``."""

import argparse
import base64
import inspect
import math
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from robustpca.datasets import reset_entries
from robustpca.engine.linalg import Array
from robustpca.metrics import outlier_precision_recall, reconstruction_error
from robustpca.models import all_methods

__all__ = ["main", "run", "show"]

IMAGE_SHAPE = (8, 8)
N_COMPONENTS = 16  # of the vector methods; as many numbers per image as IMAGE_COMPONENTS
IMAGE_COMPONENTS = (4, 4)
N_SHOWN = 6
HEADINGS = ("method", "error", "of PCA's", "precision", "recall", "seconds")


@dataclass(frozen=True)
class Result:
    """What became of one method; numbers that do not exist are NaN."""

    name: str
    model: Any = None
    error: float = math.nan
    relative: float = math.nan
    precision: float = math.nan
    recall: float = math.nan
    seconds: float = math.nan
    failure: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table, as text."""
        if self.failure:
            return (self.name, f"failed: {self.failure}")
        return (
            self.name,
            f"{self.error:.0f}",
            _text(self.relative, ".1%"),
            _text(self.precision, ".2f"),
            _text(self.recall, ".2f"),
            f"{self.seconds:.2f}",
        )


@dataclass(frozen=True)
class Demo:
    """Results, best first, and the files that show them."""

    results: list[Result]
    best: Result | None
    picture: Path
    page: Path


def run(out: str | Path, n_samples: int | None = None, seed: int = 0, shared: bool = True) -> Demo:
    """Corrupt digits, fit every method, and write a picture and a page.

    Parameters
    ----------
    out : str or Path
        Folder for the files; made if needed.
    n_samples : int, default=None
        How many digits to use; None for all.
    seed : int, default=0
        Draws the corruption.
    shared : bool, default=True
        Corrupt the same pixels in all corrupted digits, as the tables of the EPCA paper turn
        out to do, instead of others in each. Then the corruption has directions of its own,
        which a subspace can mistake for structure.

    Returns
    -------
    demo : Demo
        The results, sorted by error, and the paths of the files.
    """
    X_clean = load_digits().data
    n_samples = len(X_clean) if n_samples is None else n_samples
    if not 5 * N_SHOWN <= n_samples <= len(X_clean):
        raise ValueError(
            f"n_samples={n_samples} does not do: choose from {5 * N_SHOWN}, to have {N_SHOWN} "
            f"corrupted digits to show, to {len(X_clean)}, which is all there are."
        )
    X_clean = X_clean[:n_samples]
    X_corrupt, mask = reset_entries(X_clean, 0.2, 0.2, shared=shared, random_state=seed)
    is_corrupt = mask.sum(axis=1) > 0
    results = compare(X_clean, X_corrupt, is_corrupt)
    robust = [result for result in results if result.name != "PCA" and not result.failure]
    best = robust[0] if robust else None

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    picture, page = folder / "demo.png", folder / "demo.html"
    shown = np.flatnonzero(is_corrupt)[:N_SHOWN]
    models = [result.model for result in results if result.name == "PCA"]
    models += [] if best is None else [best.model]
    draw(picture, X_clean[shown], X_corrupt[shown], models)
    facts = {
        "n_samples": n_samples,
        "n_corrupt": int(is_corrupt.sum()),
        "n_reset": int(mask[shown[0]].sum()),
        "shared": shared,
        "seed": seed,
    }
    page.write_text(render(results, best, picture, facts), encoding="utf-8")
    return Demo(results, best, picture, page)


def compare(X_clean: Array, X_corrupt: Array, is_corrupt: Array) -> list[Result]:
    """Fit PCA and every method to the corrupted data.

    Parameters
    ----------
    X_clean, X_corrupt : ndarray of shape (n_samples, 64)
        Digits before and after corruption.
    is_corrupt : ndarray of bool, of shape (n_samples,)
        Which of them were corrupted.

    Returns
    -------
    results : list of Result
        Smallest error first, failures last.
    """
    baseline = PCA(N_COMPONENTS).fit(X_corrupt)
    error = reconstruction_error(baseline, X_clean, X_corrupt)
    candidates = {"PCA": PCA, **all_methods()}
    results = [
        measure(name, method, X_clean, X_corrupt, is_corrupt, error)
        for name, method in candidates.items()
    ]
    return sorted(results, key=lambda result: (bool(result.failure), result.error))


def measure(
    name: str,
    method: type,
    X_clean: Array,
    X_corrupt: Array,
    is_corrupt: Array,
    baseline: float,
) -> Result:
    """Fit one method and score it; whatever goes wrong is part of the result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = method(**settings(method))
            if "contamination" in model.get_params():
                # As many flags as there are corrupted digits, which is known here.
                model.set_params(contamination=float(is_corrupt.mean()))
            started = time.perf_counter()
            model.fit(X_corrupt)
            seconds = time.perf_counter() - started
            error = reconstruction_error(model, X_clean, X_corrupt)
            if not math.isfinite(error):
                raise ArithmeticError(f"the reconstruction error is {error}")
            precision, recall = math.nan, math.nan
            if hasattr(model, "predict"):
                precision, recall = outlier_precision_recall(is_corrupt, model.predict(X_corrupt))
        except Exception as failure:  # a broken method must not hide the others
            return Result(name, failure=f"{type(failure).__name__}: {failure}")
    return Result(
        name,
        model,
        error,
        error / baseline,
        precision,
        recall,
        seconds,
        remarks=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def settings(method: type) -> dict[str, Any]:
    """Size of the subspace, in the form the method takes it; all else stays at its default."""
    if "image_shape" in inspect.signature(method).parameters:
        return {"image_shape": IMAGE_SHAPE, "n_components": IMAGE_COMPONENTS}
    return {"n_components": N_COMPONENTS}


def draw(path: Path, X_clean: Array, X_corrupt: Array, models: Sequence[Any]) -> None:
    """Write a picture of some digits: original, corrupted, and as each model restores them."""
    from matplotlib.figure import Figure

    from robustpca.tools.plot import image_rows

    images, titles = [X_clean, X_corrupt], ["original", "corrupted"]
    for model in models:
        images.append(model.inverse_transform(model.transform(X_corrupt)))
        titles.append(type(model).__name__)
    # A figure of its own, without pyplot, needs no display and stays out of the user's figures.
    figure = Figure(figsize=(1.5 * len(images), 1.4 * len(X_clean)), layout="constrained")
    image_rows(images, IMAGE_SHAPE, titles, ax=figure.subplots())
    figure.savefig(path, dpi=110)


def render(
    results: Sequence[Result], best: Result | None, picture: Path, facts: dict[str, Any]
) -> str:
    """The page: table and picture in one file that refers to no other."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("robustpca.tools"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("demo.html").render(
        headings=HEADINGS,
        results=results,
        best=best,
        picture=base64.b64encode(picture.read_bytes()).decode("ascii"),
        **facts,
        n_features=math.prod(IMAGE_SHAPE),
        n_components=N_COMPONENTS,
        image_components=IMAGE_COMPONENTS,
    )


def table(results: Sequence[Result]) -> str:
    """The results as lines of text; a star marks the smallest error."""
    widths = [len(heading) for heading in HEADINGS]
    for result in results:
        if not result.failure:
            widths = [max(pair) for pair in zip(widths, map(len, result.cells), strict=True)]
    widths[0] = max(len(result.name) for result in results)
    lines = [_line(" ", HEADINGS, widths), "-" * (sum(widths) + 2 * len(widths))]
    for place, result in enumerate(results):
        lines.append(_line("*" if place == 0 and not result.failure else " ", result.cells, widths))
    for result in results:
        lines += [f"  {result.name}: {remark}" for remark in result.remarks]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo from the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What follows the name of the program; None for those it was called with.
    """
    parser = argparse.ArgumentParser(
        prog="python -m robustpca.tools.demo",
        description="Fit every method to digits of which a fifth is corrupted, print how well "
        "each restores the clean digits, and write a picture and a page.",
    )
    parser.add_argument("--out", default="build/demo", help="folder for the files [%(default)s]")
    parser.add_argument("--n-samples", type=int, help="how many digits to use [all 1797]")
    parser.add_argument("--seed", type=int, default=0, help="draws the corruption [%(default)s]")
    parser.add_argument(
        "--scattered",
        action="store_true",
        help="corrupt other pixels in each corrupted digit instead of the same in all",
    )
    options = parser.parse_args(arguments)
    try:
        show(options.out, options.n_samples, options.seed, not options.scattered)
    except ImportError as error:
        sys.exit(str(error))
    except ValueError as error:
        parser.error(str(error))


def show(out: str | Path, n_samples: int | None = None, seed: int = 0, shared: bool = True) -> None:
    """Run the demo and print its table.

    Parameters
    ----------
    out, n_samples, seed, shared
        As for `run`.
    """
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"The demo needs {' and '.join(missing)}, not installed here. Run "
            "`pip install 'robustpca[plot,report]'`."
        )
    started = time.perf_counter()
    demo = run(out, n_samples, seed, shared)
    print("Error of the clean digits, restored from corrupted ones; outliers found among them.\n")
    print(table(demo.results))
    print(f"\n* smallest error. Everything took {time.perf_counter() - started:.1f} s.")
    print(f"Picture: {demo.picture}\nPage:    {demo.page}")


def _text(number: float, style: str) -> str:
    return "-" if math.isnan(number) else format(number, style)


def _line(mark: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *others = cells
    if len(others) == 1:  # a failure runs across the columns
        return f"{mark} {name:<{widths[0]}}  {others[0]}"
    numbers = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
    return "  ".join([f"{mark} {name:<{widths[0]}}", *numbers])


if __name__ == "__main__":
    main()
