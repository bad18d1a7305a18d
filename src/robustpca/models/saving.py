"""Fitted models in files: arrays and plain data, nothing that could be run.

A file is a zip archive. ``model.json`` holds the attributes as a tree of plain values, ``arrays/``
the arrays as NumPy writes them, and ``sha256`` the hash of ``model.json``, which has the hashes of
all arrays. JSON has few types; all others are objects with a ``kind``, and `_DECODERS` has every
kind that is understood.
"""

import hashlib
import io
import json
import math
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import singledispatchmethod
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.drafts import writing
from robustpca.engine.linalg import Array

__all__ = ["load", "save"]

RELEASE = import_module("robustpca").__version__
FORMAT = "robustpca model"
# Raised when files of the new kind cannot be read by older versions of this library.
VERSION = 1
# Estimators come from these packages, and the values they hold from these of our own.
ESTIMATORS = ("robustpca.models.", "sklearn.")
VALUES = ("robustpca.models.", "robustpca.parts.", "robustpca.solvers.", "robustpca.engine.")
SPARSE = {
    kind.__name__: kind
    for kind in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix)
}


# What archives raise that are cut off, altered, or something else altogether.
_DAMAGED: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, EOFError, OSError)
_DAMAGED += (ValueError, LookupError, TypeError, RuntimeError, NotImplementedError)


class Saved:
    """An estimator that can be saved."""

    def save(self, path: Any, *, overwrite: bool = False) -> None:
        """Write the fitted model to a file, for `robustpca.load` here or elsewhere.

        The file holds arrays and plain data and no code. A ``callback`` is not saved.

        Parameters
        ----------
        path : str or path-like
            The file; its extension should be ``.rpca``.
        overwrite : bool, default=False
            Replace a file that is there.
        """
        save(self, path, overwrite=overwrite)


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write a fitted estimator to a file, for `load` here or elsewhere.

    All estimators of this library have a method of this name. This function also takes pipelines
    of them with preprocessors of scikit-learn.

    Parameters
    ----------
    model : estimator
        Of this library or of scikit-learn, fitted. A ``callback`` is not saved.
    path : str or path-like
        The file; its extension should be ``.rpca``.
    overwrite : bool, default=False
        Replace a file that is there.

    Raises
    ------
    TypeError
        If the estimator holds something that is neither plain data nor of these libraries.
    """
    check_is_fitted(model)
    encoder = _Encoder(type(model).__name__)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "versions": {
            "robustpca": RELEASE,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
        },
        "model": encoder.encode(model),
        "arrays": [hashlib.sha256(content).hexdigest() for content in encoder.arrays],
    }
    text = json.dumps(header, allow_nan=False).encode()
    members = {"model.json": text, "sha256": hashlib.sha256(text).hexdigest().encode()}
    members |= {_member(i): content for i, content in enumerate(encoder.arrays)}
    with (
        writing(Path(path).expanduser(), overwrite=overwrite) as draft,
        zipfile.ZipFile(draft, "x") as archive,
    ):
        for name, content in members.items():
            # Without a date, so that the same model gives the same file at any time.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, compresslevel=1)


def load(path: Any) -> Any:
    """Read a model that was written by `save`, or by its method of this name.

    Nothing in a file is run, so files of others can be loaded: it has arrays and plain data, and
    classes are those of this library and estimators of scikit-learn.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : object
        The fitted estimator, with the same attributes to the last bit.

    Raises
    ------
    ValueError
        If the file is damaged, is no model, or needs a newer version of this library.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from robustpca import PCAAN, load
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> path = Path(tempfile.mkdtemp()) / "model.rpca"
    >>> PCAAN(n_components=1).fit(X).save(path)
    >>> load(path).transform([[6, 6]]).shape
    (1, 1)
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with path.open("rb") as file:  # a file that cannot be opened is not a damaged one
        try:
            archive = zipfile.ZipFile(file)
            header = _header(archive)
            arrays = [_array(archive, i, sha256) for i, sha256 in enumerate(header["arrays"])]
            release, then = (header["versions"][name] for name in ("robustpca", "scikit-learn"))
        except _UnreadableError as error:
            raise ValueError(f"{path} {error}.") from None
        except _DAMAGED as error:
            raise ValueError(f"{path} is damaged or is no model.") from error
    decoder = _Decoder(arrays)
    try:
        model = decoder.decode(header["model"])
        if not isinstance(model, BaseEstimator):
            raise _UnreadableError("holds no estimator")
    except _UnreadableError as error:
        raise ValueError(
            f"{path} {error}: it was written by robustpca {release}, and this is {RELEASE}."
        ) from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is no model that can be understood.") from error
    for kind in decoder.foreign:
        if then != sklearn.__version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=kind,
                    current_sklearn_version=sklearn.__version__,
                    original_sklearn_version=then,
                ),
                stacklevel=2,
            )
    return model


class _UnreadableError(Exception):
    """What is wrong with a file, to follow its name in a sentence."""


def _member(number: int) -> str:
    return f"arrays/{number}.npy"


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    """The tree of a file, if it is one of ours, complete, and not of a later kind."""
    if not {"model.json", "sha256"} <= set(archive.namelist()):
        raise _UnreadableError("is no model of this library")
    text = archive.read("model.json")
    if hashlib.sha256(text).hexdigest().encode() != archive.read("sha256"):
        raise _UnreadableError("is damaged: its content does not have the checksum recorded in it")
    header: dict[str, Any] = json.loads(text)
    if header.get("format") != FORMAT:
        raise _UnreadableError("is no model of this library")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise _UnreadableError(
            f"is of version {header.get('version')}, and this library knows files up to version "
            f"{VERSION}: install a newer robustpca"
        )
    return header


def _array(archive: zipfile.ZipFile, number: int, sha256: str) -> Array:
    try:
        content = archive.read(_member(number))
    except KeyError:
        raise _UnreadableError("is damaged: an array of it lacks") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise _UnreadableError("is damaged: an array does not have the checksum recorded in it")
    try:
        array: Array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # what NumPy raises on headers that are none is not documented
        raise _UnreadableError("is damaged: an array cannot be read") from error
    return array


def _place(value: Any) -> str:
    """Module and name of the class of a value."""
    return f"{type(value).__module__}:{type(value).__qualname__}"


class _Encoder:
    """Turns values into what JSON can hold, and collects arrays."""

    def __init__(self, name: str) -> None:
        self.arrays: list[bytes] = []
        self._seen: dict[int, tuple[int, Any]] = {}
        self._path = [name]

    @singledispatchmethod
    def encode(self, value: Any) -> Any:
        """Encode a value of a class that is known."""
        if is_dataclass(value) and type(value).__module__.startswith(VALUES):
            held = {field.name: getattr(value, field.name) for field in fields(value)}
            return {"kind": "value", "class": _place(value), "fields": self._named(held)}
        raise self._refusal(value)

    @encode.register(type(None))
    @encode.register(bool)
    @encode.register(int)
    def _plain(self, value: Any) -> Any:
        return value

    @encode.register(str)
    def _text(self, value: str) -> str:
        return str(value)

    @encode.register(float)
    def _float(self, value: float) -> Any:
        return value if math.isfinite(value) else {"kind": "float", "text": repr(value)}

    @encode.register(list)
    def _list(self, value: list[Any]) -> Any:
        return [self.encode(each) for each in value]

    @encode.register(tuple)
    def _tuple(self, value: tuple[Any, ...]) -> Any:
        return {"kind": "tuple", "items": [self.encode(each) for each in value]}

    @encode.register(dict)
    def _dict(self, value: dict[Any, Any]) -> Any:
        items = [[self.encode(key), self.encode(held)] for key, held in value.items()]
        return {"kind": "dict", "items": items}

    @encode.register(np.generic)
    def _scalar(self, value: np.generic) -> Any:
        return {"kind": "scalar", "array": self._stored(np.asarray(value))}

    @encode.register(np.ndarray)
    def _ndarray(self, value: Array) -> Any:
        if value.dtype == object:  # names of columns
            items = [self.encode(each) for each in value.ravel().tolist()]
            return {"kind": "objects", "shape": list(value.shape), "items": items}
        return {"kind": "array", "array": self._stored(np.asarray(value))}

    @encode.register(sparse.sparray)
    @encode.register(sparse.spmatrix)
    def _sparse(self, value: Any) -> Any:
        if type(value).__name__ not in SPARSE:
            raise self._refusal(value)
        parts = [self._stored(part) for part in (value.data, value.indices, value.indptr)]
        kind, shape = type(value).__name__, [int(length) for length in value.shape]
        return {"kind": "sparse", "class": kind, "shape": shape, "parts": parts}

    @encode.register(np.random.RandomState)
    def _random_state(self, value: np.random.RandomState) -> Any:
        return {"kind": "random_state", "state": self.encode(dict(value.get_state(legacy=False)))}

    @encode.register(BaseEstimator)
    def _estimator(self, value: BaseEstimator) -> Any:
        if not type(value).__module__.startswith(ESTIMATORS):
            raise self._refusal(value)
        held = {key: None if key == "callback" else each for key, each in vars(value).items()}
        return {"kind": "estimator", "class": _place(value), "attributes": self._named(held)}

    def _refusal(self, value: Any) -> TypeError:
        kind = type(value)
        what = f"a {kind.__qualname__} of {kind.__module__}"
        return TypeError(
            f"{'.'.join(self._path)} is {what}, which is not saved: files of models hold arrays, "
            "plain data, and objects of robustpca and scikit-learn. Use joblib.dump, which saves "
            "everything, for people who trust you."
        )

    def _named(self, held: Mapping[str, Any]) -> dict[str, Any]:
        encoded = {}
        for name, value in held.items():
            self._path.append(name)
            encoded[name] = self.encode(value)
            self._path.pop()
        return encoded

    def _stored(self, array: Array) -> int:
        """Number of an array in the file; one that is used twice is stored once."""
        if id(array) not in self._seen:
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            self._seen[id(array)] = len(self.arrays), array
            self.arrays.append(content.getvalue())
        return self._seen[id(array)][0]


class _Decoder:
    """Turns what JSON holds back into values; what it does not know it refuses."""

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays = arrays
        self.foreign: set[str] = set()

    def decode(self, tree: Any) -> Any:
        """Decode a tree."""
        if isinstance(tree, list):
            return [self.decode(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree.get("kind")
        if kind not in _DECODERS:
            raise _UnreadableError(f"has values of an unknown kind, {kind!r}")
        return _DECODERS[kind](self, tree)

    def _objects(self, tree: dict[str, Any]) -> Any:
        array = np.empty(tree["shape"], dtype=object)
        array.ravel()[:] = self.decode(tree["items"])
        return array

    def _sparse(self, tree: dict[str, Any]) -> Any:
        kind = SPARSE.get(tree["class"])
        if kind is None:
            raise _UnreadableError(f"has a sparse matrix of an unknown class, {tree['class']!r}")
        matrix = kind(tuple(self.arrays[i] for i in tree["parts"]), shape=tuple(tree["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def _random_state(self, tree: dict[str, Any]) -> Any:
        state = np.random.RandomState()
        state.set_state(self.decode(tree["state"]))
        return state

    def _value(self, tree: dict[str, Any]) -> Any:
        kind = _class(tree["class"], VALUES)
        if not is_dataclass(kind):
            raise _UnreadableError(f"has a value of an unknown class, {tree['class']!r}")
        known = {field.name for field in fields(kind)}
        if tree["fields"].keys() != known:
            raise _UnreadableError(f"has a {kind.__name__} with other fields than this version")
        return self._made(kind, tree["fields"])

    def _estimator(self, tree: dict[str, Any]) -> Any:
        kind = _class(tree["class"], ESTIMATORS)
        if not issubclass(kind, BaseEstimator):
            raise _UnreadableError(f"has an estimator of an unknown class, {tree['class']!r}")
        if not issubclass(kind, Saved):
            self.foreign.add(kind.__name__)
        return self._made(kind, tree["attributes"])

    def _made(self, kind: type, held: dict[str, Any]) -> Any:
        """An object with these attributes, without a call of its constructor."""
        made: Any = object.__new__(kind)
        vars(made).update({name: self.decode(each) for name, each in held.items()})
        return made


def _class(place: str, packages: tuple[str, ...]) -> type:
    """A class by module and name, if it is one of these packages."""
    module, _, name = place.partition(":")
    if module.startswith(packages) and "tests" not in module:
        try:
            kind = getattr(import_module(module), name, None)
        except ImportError:
            kind = None
        if isinstance(kind, type) and kind.__module__ == module:
            return kind
    raise _UnreadableError(f"has an object of an unknown class, {place!r}")


_DECODERS: dict[str, Callable[[_Decoder, dict[str, Any]], Any]] = {
    "float": lambda decoder, tree: float(tree["text"]),
    "tuple": lambda decoder, tree: tuple(decoder.decode(tree["items"])),
    "dict": lambda decoder, tree: {
        decoder.decode(key): decoder.decode(each) for key, each in tree["items"]
    },
    "scalar": lambda decoder, tree: decoder.arrays[tree["array"]][()],
    "array": lambda decoder, tree: decoder.arrays[tree["array"]],
    "objects": _Decoder._objects,
    "sparse": _Decoder._sparse,
    "random_state": _Decoder._random_state,
    "value": _Decoder._value,
    "estimator": _Decoder._estimator,
}
