"""Random cases for estimators, as the lines of code that make them.

A case is text: what is run is what is printed when it fails. `draw` makes the case of a seed.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from robustpca.models import all_estimators
from robustpca.models.params import Interval, StrOptions

ESTIMATORS = all_estimators()
# Matrices, given the numbers of rows n and columns d, and a rank r.
CONTENTS = {
    "planted": "rng.normal(size=({n}, {r})) @ rng.normal(size=({r}, {d})) "
    "+ 0.01 * rng.normal(size=({n}, {d}))",
    "noise": "rng.normal(size=({n}, {d}))",
    "low rank": "1.0 * rng.integers(-3, 4, ({n}, {r})) @ rng.integers(-3, 4, ({r}, {d}))",
    "heavy tails": "rng.standard_cauchy(size=({n}, {d}))",
    "zeros": "np.zeros(({n}, {d}))",
    "ones": "np.ones(({n}, {d}))",
    "identity": "np.eye({n}, {d})",
    "one-hot": "np.eye({d})[rng.integers({d}, size={n})]",
    "simplex": "rng.dirichlet(np.ones({d}), size={n})",
    "counts": "1.0 * rng.poisson(0.5, size=({n}, {d}))",
}
# What may be wrong with them.
EDITS = (
    "X[:, 0] = 5.0",
    "X[:, -1] = X[:, 0]",
    "X[1::2] = X[0]",
    "X = np.repeat(X, 3, axis=0)",
    "X[::5] *= 1e6",
    "X[0, 0] = 1e8",
    "X[0] = 0.0",
    "X = np.abs(X)",
)
LAYOUTS = (
    "X = np.asfortranarray(X)",
    "X = np.repeat(X, 2, axis=1)[:, ::2]",
    "X = X[::-1]",
    "X.flags.writeable = False",
    "X = X.tolist()",
)
# Data that no method takes.
REFUSED = (
    "X = X.astype(complex)",
    "X = np.full(X.shape, 'word')",
    "X = X[0]",
    "X = X[:0]",
    "X = X[:, :0]",
    "X = X[:, :, None]",
    "X[-1, -1] = np.inf",
    "X = None",
    "X = X.astype(object); X[0, 0] = 'word'",
)
WHOLE = ("int8", "int64", "uint16", "bool")
# How an object of each class is made.
MADE = {
    "Loss": ("L21Loss()", "CappedLoss()", "HuberLoss()", "SigmaLoss()"),
    "Weighting": ("Uniform()", "AdaptiveNeighbors(n_active=0.5)", "CoRobust(max_weight=0.3)"),
    "EntryLoss": ("L1Norm()", "HuberNorm(0.1)", "SquaredNorm()"),
}


@dataclass(frozen=True)
class Case:
    """A fit as code.

    Parameters
    ----------
    name : str
        Name of the estimator.
    lines : tuple of str
        Code that makes ``X``, and ``y`` if the estimator takes one.
    model : str
        Code that makes the estimator.
    refused : bool
        Whether an error is the only right answer.
    planted : bool
        Whether the data have a subspace that is well defined, of the rank that is asked for, and
        no parameter has the unit of the data or ends the fit early.
    """

    name: str
    lines: tuple[str, ...]
    model: str
    refused: bool
    planted: bool

    def __str__(self) -> str:
        return "\n".join((*self.lines, f"{self.model}.fit(X{', y' * self.needs_y})"))

    @property
    def needs_y(self) -> bool:
        """Whether the estimator is told more than the data."""
        return self.name in ("RVFLClassifier", "Reweighted")


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(list(ESTIMATORS)))
    content = str(rng.choice(list(CONTENTS), p=[0.28] + [0.08] * 9))
    n, d = shape(rng)
    r = int(rng.integers(1, max(2, min(n, d) // 2 + 1)))
    lines = [f"rng = np.random.default_rng({seed})", f"X = {CONTENTS[content].format(**locals())}"]
    clean = content == "planted" and n >= 12 and d >= 4 and rng.random() < 0.6
    refused = not clean and rng.random() < 0.05
    if refused:
        lines.append(str(rng.choice(REFUSED)))
    else:
        lines += spoilt(rng, name, clean)
    if name in ("RVFLClassifier", "Reweighted"):
        # Before the rows can no longer be counted.
        lines.insert(len(lines) - (refused or "sparse" in lines[-1]), "y = np.arange(len(X)) % 2")
    model, bad, units = _model(rng, name, n, d, r, clean)
    code = "\n".join(lines)
    lost = "float32" in code and any(loss in code for loss in LOSSES)
    return Case(name, tuple(lines), model, refused or bad, clean and not (units or lost))


def shape(rng: Any) -> tuple[int, int]:
    """Numbers of rows and columns, small ones mostly."""
    n, d = (int(rng.choice([1, 2, 3, 5, 8, 14, 25, 40])) for _ in range(2))
    return (n, d) if rng.random() < 0.6 else (max(n, 25), max(d, 5))


def spoilt(rng: Any, name: str, clean: bool) -> list[str]:
    """Lines that change a matrix in place, its units, its type and how it is stored."""
    lines = []
    if not clean:
        lines += [str(edit) for edit in rng.choice(EDITS, size=rng.integers(3), replace=False)]
    nonnegative = name == "GNMF" and rng.random() < 0.9
    if nonnegative:
        lines.append("X = np.abs(X)")
    chance = rng.random()
    if chance < 0.15:
        lines.append(f"X = X + 1e{rng.integers(-3, 9)}")
    elif chance < 0.3:
        lines.append(f"X = 1e{rng.integers(-12, 13)} * X")
    elif chance < 0.45:
        lines.append(f"X = 1e{rng.integers(-300, 300)} * X")
    chance = rng.random()
    if chance < 0.25:
        lines.append("X = np.clip(X, -1e36, 1e36).astype('float32')")
    elif chance < 0.3 and not clean:
        lines.append("X = np.clip(X, -500, 500).astype('float16')")
    elif chance < 0.4 and not clean:
        lines.append(f"X = np.clip(X, 0, 100).astype('{rng.choice(WHOLE)}')")
    elif chance < 0.43:
        lines.append("X = X.astype(object)")
    elif chance < 0.5 and not clean:
        lines.append("X[rng.random(X.shape) < 0.1] = np.nan")
    chance = rng.random()
    if chance < 0.15:
        lines.append(str(rng.choice(LAYOUTS)))
    elif chance < 0.3 and not any("object" in line or "float16" in line for line in lines):
        lines.append("X = sparse.csr_matrix(X)")
    return lines


# Parameters with the unit of the data, or whose meaning changes with it; a tolerance, with which a
# fit may end anywhere; and those that may leave a single row.
UNITS = ("sigma", "cutoff", "threshold", "noise", "gamma", "loss", "weighting", "tol")
UNITS += ("max_angle", "n_active")
# Offsets beside which single precision holds nothing of the noise of planted data.
LOSSES = tuple(f"X + 1e{size}" for size in range(4, 9))


def _model(rng: Any, name: str, n: int, d: int, r: int, clean: bool) -> tuple[str, bool, bool]:
    """The estimator as code; whether a parameter is not allowed; whether one has a unit."""
    kind: Any = ESTIMATORS[name]
    signature = inspect.signature(kind.__init__).parameters
    names = [one for one in signature if one not in ("self", "callback", "verbose")]
    given: dict[str, str] = {}
    if name == "Reweighted":
        given["estimator"] = str(rng.choice(["Ridge()", "KMeans(2, n_init=1, random_state=0)"]))
    if "image_shape" in names:
        height = int(rng.choice([side for side in range(1, d + 1) if d % side == 0]))
        given["image_shape"] = f"({height}, {d // height})"
    bad = ""
    if rng.random() < 0.07:
        bad = str(rng.choice([one for one in names if one not in ("image_shape", "n_components")]))
        values = _refused_values(kind._parameter_constraints[bad])
        if values:
            given[bad] = str(rng.choice(values))
        else:
            bad = ""
    count = 0 if clean and rng.random() < 0.5 else int(rng.integers(0, 4))
    for one in rng.choice(names, size=min(count, len(names)), replace=False):
        if one not in given and one != "n_components":
            options = kind._parameter_constraints[str(one)]
            value = _allowed_value(rng, str(one), options[rng.integers(len(options))], n, d)
            if value is not None:
                given[str(one)] = value
    if clean and "n_components" in names:
        given["n_components"] = str(r)
    elif "n_components" in names and rng.random() < 0.8:
        given["n_components"] = _rank(rng, kind, n, d, given.get("image_shape"))
    if given.get("tol") == "0.0" and "max_iter" in names and "max_iter" not in given:
        given["max_iter"] = "50"
    order = [one for one in names if one in given]
    text = ", ".join(f"{one}={given[one]}" for one in order)
    return f"{name}({text})", bool(bad), any(one in UNITS for one in order)


def _rank(rng: Any, kind: Any, n: int, d: int, image_shape: str | None) -> str:
    if image_shape is not None and rng.random() < 0.7:
        height, width = (int(side) for side in image_shape.strip("()").split(","))
        return f"({rng.integers(1, height + 1)}, {rng.integers(1, width + 1)})"
    chance = rng.random()
    if chance < 0.15:
        return "'auto'"
    if chance < 0.25:
        return str(rng.choice(["0.5", "0.99", "None", str(min(n, d) + 1), "2.5", "True"]))
    return str(rng.integers(1, min(n, d) + 1))


def _allowed_value(rng: Any, name: str, constraint: Any, n: int, d: int) -> str | None:
    """A value that satisfies a constraint, as code; None to leave the parameter alone."""
    if isinstance(constraint, Interval):
        draws: Callable[..., str] = _whole if constraint.type is Integral else _real
        return draws(rng, constraint)
    if isinstance(constraint, StrOptions):
        return repr(str(rng.choice(sorted(constraint.options))))
    if isinstance(constraint, type):
        made = MADE.get(constraint.__name__)
        return None if made is None else str(rng.choice(made))
    named = {None: ["None"], "boolean": ["True", "False"], "random_state": ["0", "7"]}
    if name.endswith("graph"):
        named |= {"array-like": [f"np.ones(({n}, {n}))", f"np.eye({n})"]}
        named |= {"sparse matrix": [f"sparse.csr_matrix(({n}, {n}))"]}
    if name == "center":
        named["array-like"] = [f"np.zeros({d})", f"np.ones({d + 1})"]
    values = named.get(constraint)
    return None if values is None else str(rng.choice(values))


def _whole(rng: Any, interval: Any) -> str:
    low = int(interval.left)
    return str(rng.choice([low, low + 1, low + 2, low + 4, low + 49]))


def _real(rng: Any, interval: Any) -> str:
    low, high = float(interval.left), interval.right
    edges = [low] * (interval.closed in ("left", "both"))
    if high is not None and interval.closed in ("right", "both"):
        edges.append(float(high))
    if edges and rng.random() < 0.25:
        return repr(float(rng.choice(edges)))
    if high is None:
        return f"{low + 10.0 ** rng.uniform(-4, 3):.4g}"
    return f"{low + (high - low) * rng.uniform(1e-4, 0.999):.4g}"


def _refused_values(constraints: list[Any]) -> list[str]:
    """Values that no constraint of a parameter allows, as code."""
    if any(isinstance(one, type) or one in ("array-like", callable) for one in constraints):
        return []
    values = ["'no such word'", "{}", "np.nan"] + ["None"] * (None not in constraints)
    intervals = [one for one in constraints if isinstance(one, Interval)]
    if intervals:
        values.append(str(min(float(one.left) for one in intervals) - 1))
    return values if "random_state" not in constraints else values[:2]
