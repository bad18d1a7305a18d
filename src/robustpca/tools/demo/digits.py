"""Every method on corrupted digits: which one restores them best."""

import inspect
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from robustpca.datasets import reset_entries
from robustpca.engine.linalg import Array
from robustpca.metrics import outlier_precision_recall, reconstruction_error
from robustpca.models import all_methods

__all__ = ["HEADINGS", "Result", "compare", "table"]

IMAGE_SHAPE = (8, 8)
N_COMPONENTS = 16  # of the vector methods; as many numbers per image as IMAGE_COMPONENTS
IMAGE_COMPONENTS = (4, 4)
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


def compare(n_samples: int = 300, seed: int = 0) -> list[Result]:
    """Fit PCA and every method to digits of which a fifth is corrupted.

    Parameters
    ----------
    n_samples : int, default=300
        How many digits to use.
    seed : int, default=0
        Draws the corruption.

    Returns
    -------
    results : list of Result
        Smallest error first, failures last.
    """
    X_clean = load_digits().data[:n_samples]
    X_corrupt, mask = reset_entries(X_clean, 0.2, 0.2, shared=True, random_state=seed)
    is_corrupt = mask.sum(axis=1) > 0
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


def _text(number: float, style: str) -> str:
    return "-" if math.isnan(number) else format(number, style)


def _line(mark: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *others = cells
    if len(others) == 1:  # a failure runs across the columns
        return f"{mark} {name:<{widths[0]}}  {others[0]}"
    numbers = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
    return "  ".join([f"{mark} {name:<{widths[0]}}", *numbers])
