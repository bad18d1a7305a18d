"""What a result depends on, as text that can be stored, compared and hashed.

Two results are the same experiment if and only if their keys are equal. A key knows the
declaration of the cell, its data, the code that it reaches and the versions of what that calls. It
knows no files: a data set is what it holds and code is what it does, wherever they are.
"""

import dataclasses
import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from functools import cache, partial, singledispatch
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import robustpca
from robustpca.bench.reached import Sources
from robustpca.datasets.dataset import checksum_of

__all__ = ["data_digest", "describe", "digest", "key_of", "machine", "versions"]

# What it returns counts by the hash of the data, so a change of the catalogue does not.
LOADING = "robustpca.datasets:load"


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
    return {"array": list(value.shape), "sha256": checksum_of(value)}


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


def data_digest(data: Any) -> str:
    """Hash of a data set: entries, labels, the shape of its images, and its extras."""
    labels = None if data.y is None else np.asarray(data.y)
    extras = dict(getattr(data, "extras", {}))
    return digest(describe([np.asarray(data.X), labels, data.image_shape, extras]))


def key_of(description: Any) -> tuple[str, dict[str, str]]:
    """Key of an experiment, and hash or version of each class and function behind it.

    The names of classes and functions and the modules in which they are do not count.
    """
    code: dict[str, str] = {}
    used = {name: version for name, version in versions().items() if name != "robustpca"}
    return digest([_with_code(description, code), used]), code


def _with_code(description: Any, code: dict[str, str]) -> Any:
    """Replace each class and function by its code, of which ``code`` gets a list."""
    if isinstance(description, list):
        return [_with_code(item, code) for item in description]
    if not isinstance(description, dict):
        return description
    for kind in {"class", "function"} & description.keys():
        code[description[kind]] = _code_of(description[kind])
    return {
        name: code[item] if name in ("class", "function") else _with_code(item, code)
        for name, item in description.items()
    }


@cache
def _code_of(address: str) -> str:
    """Hash of the code that ``module:name`` reaches; of installed packages their version."""
    root = address.partition(":")[0].partition(".")[0]
    version = getattr(sys.modules.get(root), "__version__", None)
    return _sources().digest(address) or f"{address} {version}"


@cache
def _sources() -> Sources:
    return Sources(leaves=[LOADING])


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
