"""A table of your own: any data file, any transformer, without writing a declaration."""

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from robustpca.bench.declarations import Table
from robustpca.datasets import Dataset, corruptions, read
from robustpca.datasets.files import checked
from robustpca.datasets.tables import read_table
from robustpca.metrics import reconstruction_error
from robustpca.models import all_methods

__all__ = ["File", "comparison", "find_corruption", "find_method"]


@dataclass(frozen=True)
class File:
    """Data in a file of the user; calling it reads them.

    Parameters
    ----------
    path : Path
        A ``.npz`` file with ``X`` and perhaps ``y`` and ``shape``, a ``.npy`` file with samples
        in rows or images, or a ``.csv`` file of numbers, with or without a line of names.
    image_shape : tuple of two int, default=None
        Height and width, if the rows are images and the file does not say so.
    """

    path: Path = field(compare=False)
    image_shape: tuple[int, int] | None = None

    def __call__(self) -> Dataset:
        if not self.path.is_file():
            raise FileNotFoundError(f"There is no file {self.path}.")
        kind = self.path.suffix.lower()
        if kind == ".npz":
            return read(self.path, image_shape=self.image_shape)
        if kind not in (".npy", ".csv"):
            raise ValueError(f"{self.path} is none of .npz, .npy, .csv: convert it first.")
        try:
            X = (
                np.load(self.path, allow_pickle=False)
                if kind == ".npy"
                else read_table(self.path).X
            )
            arrays = checked({"X": X}, self.image_shape)
        except ValueError as error:
            reason = str(error).partition(";")[0].rstrip(".")  # without advice on NumPy
            raise ValueError(f"{reason}: {self.path} cannot be used.") from error
        shape = arrays.get("shape")
        image_shape = None if shape is None else (int(shape[0]), int(shape[1]))
        return Dataset(self.path.stem, arrays["X"], None, image_shape, "a file of the user")


def comparison(
    data: File,
    methods: Sequence[str],
    corrupt: Sequence[str] = (),
    components: Sequence[int] = (10,),
    seeds: int = 3,
) -> Table:
    """Declare a table of reconstruction errors on a file.

    Parameters
    ----------
    data : File
        The data.
    methods : sequence of str
        Names for `find_method`, or 'all' for PCA and every method of this library.
    corrupt : sequence of str, default=()
        Corruptions for `find_corruption`; none by default.
    components : sequence of int, default=(10,)
        Sizes of the subspace. Methods for images get as many numbers per image, in two factors
        as near to each other as possible.
    seeds : int, default=3
        Number of repetitions.

    Returns
    -------
    table : Table
        Called ``compare``.
    """
    known = ["PCA", *all_methods()]
    names = [name for given in methods for name in (known if given == "all" else [given])]
    spoilers = {text: find_corruption(text) for text in corrupt} or {"": None}
    shape = data().image_shape
    for text, spoiler in spoilers.items():
        if spoiler and "image_shape" in inspect.signature(spoiler).parameters and shape is None:
            raise ValueError(f"{text} needs images: say how high and wide with --image-shape.")
    return Table(
        name="compare",
        title=f"Reconstruction error on {data.path.stem}",
        datasets={data.path.stem: data},
        corruption=spoilers,
        methods={name: partial(_sized, find_method(name)) for name in names},
        vary={"n_components": list(components)},
        score=reconstruction_error,
        seeds=seeds,
    )


def find_method(name: str) -> type:
    """A class by name: one of this library, 'PCA' for scikit-learn's, or 'module:Class'.

    Examples
    --------
    >>> from robustpca.bench.compare import find_method
    >>> find_method("sklearn.decomposition:NMF").__name__
    'NMF'
    """
    known = {"PCA": PCA, **all_methods()}
    if name in known:
        return known[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
        raise ValueError(f"No method is called {name!r}. {hint} Others are given as module:Class.")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name} cannot be imported: {error}.") from error
    lacking = [need for need in ("fit", "get_params", "transform") if not hasattr(found, need)]
    if lacking or not inspect.isclass(found):
        raise ValueError(f"{name} is not a class of transformers: it lacks {', '.join(lacking)}.")
    return found


def find_corruption(text: str) -> Callable[..., Any] | None:
    """A function of `robustpca.datasets` with arguments, or None for 'none'.

    Examples
    --------
    >>> from robustpca.bench.compare import find_corruption
    >>> find_corruption("reset_entries:samples=0.5,shared=true").keywords
    {'samples': 0.5, 'shared': True}
    """
    name, _, arguments = text.partition(":")
    if name == "none":
        return None
    if name not in corruptions.__all__:
        raise ValueError(
            f"No corruption is called {name!r}: choose from none, "
            f"{', '.join(sorted(corruptions.__all__))}."
        )
    function = getattr(corruptions, name)
    keywords = {}
    for part in filter(None, arguments.split(",")):
        keyword, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} in {text!r} should read name=value.")
        keywords[keyword.strip()] = _value(value.strip())
    allowed = [name for name in inspect.signature(function).parameters if name != "X"]
    unknown = [name for name in keywords if name not in allowed]
    if unknown:
        raise ValueError(f"{name} has no {unknown[0]!r}: it takes {', '.join(allowed)}.")
    return partial(function, **keywords)


def _sized(kind: type, n_components: int) -> Any:
    """An estimator of this class with a subspace of this size, if it can be told."""
    model = kind()
    known = model.get_params(deep=False)
    if "image_shape" in known:
        return model.set_params(n_components=_factors(n_components))
    return model.set_params(n_components=n_components) if "n_components" in known else model


def _factors(number: int) -> tuple[int, int]:
    """Two factors of a number, the smaller one first, as near to each other as possible."""
    first = next(factor for factor in range(isqrt(number), 0, -1) if number % factor == 0)
    return first, number // first


def _value(text: str) -> Any:
    known = {"true": True, "false": False, "none": None}
    if text.lower() in known:
        return known[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
