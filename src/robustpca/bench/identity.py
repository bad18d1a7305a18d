"""What a result depends on, as text that can be stored, compared and hashed.

Two results are the same experiment if and only if their identities are equal: the declaration of
the cell, the data, the code and the versions of what it calls. Files are never named in it: a
data set is what it holds, not where it lies.
"""

import ast
import dataclasses
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial, singledispatch
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import robustpca
from robustpca.engine.linalg import Array

__all__ = ["code_behind", "data_digest", "describe", "digest", "machine", "versions"]

# Parts of the library that cannot change a result: they start, store and show.
ASIDE = ("__main__.py", "bench/", "cli/", "papers/", "tools/")
COUNTS = ("bench/trial.py",)
# Scores of papers count one by one: a new one must not make all rows old.
SCORES = "robustpca.papers"


def digest(description: Any) -> str:
    """Hash of what `describe` gives."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@singledispatch
def describe(value: Any) -> Any:
    """Text, numbers, lists and dictionaries that tell a value from all others of its kind.

    Parameters
    ----------
    value : object
        Number, text, array, list, mapping, function, class, `functools.partial`, estimator, or
        dataclass; of the latter, fields with ``compare=False`` are left out.

    Returns
    -------
    description : object
        What `json.dumps` takes.

    Examples
    --------
    >>> from functools import partial
    >>> from robustpca.bench.identity import describe
    >>> describe({"rate": 0.5, "spoil": partial(sorted, reverse=True)})
    {'rate': 0.5, 'spoil': {'function': 'builtins:sorted', 'args': [], 'reverse': True}}
    """
    if hasattr(value, "get_params"):
        return {"class": _address(type(value)), **describe(value.get_params(deep=False))}
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.compare]
        return {
            "class": _address(type(value)),
            **{name: describe(getattr(value, name)) for name in fields},
        }
    if isinstance(value, np.generic):
        return describe(value.item())
    raise TypeError(
        f"{value!r} of type {type(value).__name__} cannot be written down as part of a "
        "declaration: use numbers, text, arrays, named functions, dataclasses or estimators."
    )


@describe.register(type(None))
@describe.register(str)
@describe.register(int)
def _(value: Any) -> Any:
    return value


@describe.register
def _(value: float) -> Any:
    return value if np.isfinite(value) else repr(value)


@describe.register
def _(value: Mapping) -> Any:  # type: ignore[type-arg]
    return {str(name): describe(item) for name, item in value.items()}


@describe.register(list)
@describe.register(tuple)
@describe.register(range)
def _(value: Any) -> Any:
    return [describe(item) for item in value]


@describe.register
def _(value: np.ndarray) -> Any:
    return {"array": list(value.shape), "dtype": str(value.dtype), "sha256": _array_digest(value)}


@describe.register
def _(value: partial) -> Any:  # type: ignore[type-arg]
    return {**_named(value.func), "args": describe(value.args), **describe(value.keywords)}


@describe.register(FunctionType)
@describe.register(BuiltinFunctionType)
@describe.register(type)
def _named(value: Any) -> dict[str, str]:
    if "<" in value.__qualname__:
        raise TypeError(
            f"{value.__module__}:{value.__qualname__} has no name by which another process could "
            "find it: define it with `def` at the top of a module."
        )
    return {"function": _address(value)}


def data_digest(X: Array, y: Any = None, image_shape: Any = None) -> str:
    """Hash of a data set: entries, labels, and the shape of its images."""
    labels = None if y is None else describe(np.asarray(y))
    return digest([describe(np.asarray(X)), labels, describe(image_shape)])


def code_behind(description: Any) -> dict[str, str]:
    """What code the classes and functions of a description run: versions or hashes.

    This library counts by the hash of its code, without comments and docstrings, so that results
    are never taken over from code that has changed; of the scores of its tables, those that are
    used. Other packages count by their version, and modules without one by their hash.
    """
    found = {"robustpca": library_digest()}
    for address in _addresses(description):
        module = sys.modules.get(address.partition(":")[0])
        root = address.partition(":")[0].partition(".")[0]
        is_score = address.startswith(SCORES)
        if module is None or (root in (*found, "builtins") and not is_score):
            continue
        version = getattr(sys.modules[root], "__version__", None)
        file = getattr(module, "__file__", None)
        if is_score:
            found[module.__name__] = _score_digest(module.__name__)
        elif version is None and file:
            found[module.__name__] = _source_digest(Path(file))
        else:
            found[root] = str(version)
    return found


@cache
def library_digest() -> str:
    """Hash of those parts of this library that can change a result."""
    folder = Path(robustpca.__file__).parent
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    counted = {
        name: _source_digest(path)
        for name, path in files.items()
        if name in COUNTS or not name.startswith(ASIDE)
    }
    return digest(counted)


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that compute."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "robustpca": robustpca.__version__,
    }


@cache
def machine() -> dict[str, Any]:
    """Facts about the machine that bear on time and memory; neither names nor paths."""
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "blas": sorted({f"{pool['internal_api']} {pool['version']}" for pool in blas}),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> float | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return round(size / 2**30, 1)


def _address(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


def _addresses(description: Any) -> Iterator[str]:
    if isinstance(description, dict):
        yield from (description[kind] for kind in ("class", "function") if kind in description)
        for item in description.values():
            yield from _addresses(item)
    elif isinstance(description, list):
        for item in description:
            yield from _addresses(item)


def _array_digest(array: Array) -> str:
    if array.dtype.hasobject:
        return digest([str(item) for item in array.ravel()])
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


@cache
def _score_digest(name: str) -> str:
    """Hash of a module of scores, and of those that it takes something from."""
    path = Path(sys.modules[name].__file__ or "")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    sources = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    others = sorted(source for source in sources if source.startswith(f"{SCORES}."))
    own = _source_digest(path)
    return digest([own, *map(_score_digest, others)]) if others else own


@cache
def _source_digest(path: Path) -> str:
    """Hash of the code of a file without comments, docstrings and layout."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # A text that stands alone does nothing: a docstring.
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
