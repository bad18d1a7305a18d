"""Random tables for what people ask of them: `check`, `tune`, `rows`, `entries` and `suggest`.

As in `drawn`, a case is the code that makes the data; as in `checks`, the answer must be right or
one clear error. Nothing that an estimator inside says of the data counts as clear: they are not
those of the user.
"""

import json
import traceback
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from checks import NAMES, OURS, TOO_LONG, HangsError, WrongError, answer, finite, limited
from drawn import CONTENTS, REFUSED, shape, spoilt

from robustpca import suggest
from robustpca.tools.checks import check, tune
from robustpca.tools.jobs import clean_entries, find_rows

JOBS = {job.__name__: job for job in (check, tune, find_rows, clean_entries, suggest)}
# Attributes of results that are numbers of all rows or entries.
NUMBERS = ("outlyingness", "score_distance", "orthogonal_distance", "weight", "X")


@dataclass(frozen=True)
class Question:
    """A job, and code that makes the table ``X``."""

    job: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((*self.lines, f"{self.job}(X)"))


def question(seed: int) -> Question:
    """The question of a seed; most tables have enough rows to be answered."""
    rng = np.random.default_rng(seed)
    job, content = str(rng.choice(list(JOBS))), str(rng.choice(list(CONTENTS)))
    n, d = shape(rng)
    if rng.random() < 0.8:
        n, d = max(n, int(rng.choice([10, 12, 25, 40, 90]))), max(d, 2)
    r = int(rng.integers(1, max(2, min(n, d) // 2 + 1)))
    lines = [f"rng = np.random.default_rng({seed})", f"X = {CONTENTS[content].format(**locals())}"]
    if rng.random() < 0.03:
        return Question(job, (*lines, str(rng.choice(REFUSED))))
    lines += spoilt(rng, "EPCA", clean=False)
    if rng.random() < 0.15 and "sparse" not in lines[-1]:
        lines.append("X = np.array(X, float); X[rng.random(X.shape) < 0.3] = np.nan")
    return Question(job, tuple(lines))


def question_fault(asked: Question) -> str:
    """What is wrong with the answer to a question; empty if nothing is."""
    names = dict(NAMES)
    with np.errstate(all="ignore"):
        exec("\n".join(asked.lines), names)
    try:
        with limited(TOO_LONG), warnings.catch_warnings():
            _check(JOBS[asked.job], names["X"])
    except (WrongError, HangsError) as error:
        return str(error)
    return ""


def _check(job: Any, X: Any) -> None:
    found: list[Any] = []
    refused = answer(lambda: found.append(job(X)))
    if refused is not None:
        frames = traceback.extract_tb(refused.__traceback__)
        n_ours = sum(frame.filename.startswith(OURS) for frame in frames)
        if not frames[-1].filename.startswith(OURS) and n_ours > 1:
            raise WrongError(f"{type(refused).__name__} of an inner fit: {refused}")
        return
    (result,) = found
    text = str(result)
    if " nan" in text.lower():
        raise WrongError(f"says NaN: {text}")
    for name in NUMBERS:
        finite(name, getattr(result, name, 0.0))
    if hasattr(result, "to_dict"):
        try:
            json.dumps(result.to_dict(), allow_nan=False)
        except ValueError as error:
            raise WrongError(f"to_dict: {error}") from error
