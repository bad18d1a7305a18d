"""Long fits that go on after a crash: the state of their loops in a file.

A loop names the objects that its passes change, and says when it is between two passes::

    with followed(state, model, given=(X,)) as between_passes:
        while not state.converged:
            ...
            between_passes()

Without a `checkpoint` around the fit this does nothing. With one, the objects are written to its
file from time to time. A fit always takes the same steps, so when it is run again, everything
before the loop comes out as it did, `followed` puts the objects into the state of the file, and the
loop goes on to the same bits. A loop that had ended is put into its last state.
"""

import io
import pickle
import shutil
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any, Self

import numpy as np

from robustpca.engine.drafts import writing
from robustpca.engine.linalg import Array
from robustpca.engine.rows import Rows

__all__ = ["checkpoint", "followed", "one_fit"]

# Seconds between two states that are written.
EVERY = 60.0
# Files hold arrays, plain data, and objects of these classes: nothing that could be run.
PACKAGES = ("engine", "parts", "solvers", "models")
OURS = tuple(f"robustpca.{package}." for package in PACKAGES)
OTHERS = {
    ("builtins", "slice"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("scipy.sparse._csr", "csr_array"),
}
# Cache lines begin at multiples of it.
LINE = 64

_active: ContextVar["checkpoint | None"] = ContextVar("checkpoint", default=None)


class checkpoint:  # noqa: N801 - used as a function: with checkpoint(path)
    """Let a long fit go on from where it was when its process was killed.

    Used as ``with checkpoint("fit.ckpt"): model.fit(X)``. The file is written while loops run,
    under another name first, so it is complete or as it was before. Run again after a crash, the
    same lines continue from it, and the result is the same to the last bit. The file is deleted
    when the fit is done. A file of another fit, by data, parameters or version, is refused.

    Parameters
    ----------
    path : str or path-like
        The file. One file serves one fit.
    every : float, default=60.0
        Seconds between two writes, at the least.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from robustpca import PCAAN, checkpoint
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> path = Path(tempfile.mkdtemp()) / "fit.ckpt"
    >>> with checkpoint(path):
    ...     model = PCAAN(n_components=1).fit(X)
    >>> path.exists()
    False
    """

    def __init__(self, path: Any, *, every: float = EVERY) -> None:
        self.path, self.every = Path(path).expanduser().absolute(), every
        self._fit: _Fit | None = None
        self._tokens: list[Token[checkpoint | None]] = []

    def __enter__(self) -> Self:
        self._fit = None
        self._tokens.append(_active.set(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _active.reset(self._tokens.pop())


@contextmanager
def one_fit(name: str, identity: Callable[[], str]) -> Iterator[None]:
    """Let the loops of a fit be followed, if a `checkpoint` is around it.

    Parameters
    ----------
    name : str
        Class of the estimator.
    identity : callable
        Gives a text that is another one for any other fit.
    """
    around = _active.get()
    if around is None or (around._fit is not None and around._fit.runs):
        # A fit inside of another one is a part of its passes.
        yield
        return
    if around._fit is not None:
        raise RuntimeError(
            f"checkpoint({around.path.name!r}) is for one fit, and this is the second one inside "
            "of it: give each fit a file of its own."
        )
    fit = around._fit = _Fit(around.path, around.every, name, identity())
    try:
        yield
    finally:
        fit.runs = False
    if not fit.n_loops:
        warnings.warn(
            f"{name} has no loop whose state could be kept, so {around.path.name} was not written.",
            stacklevel=2,
        )
    around.path.unlink(missing_ok=True)


@contextmanager
def followed(*objects: Any, given: tuple[Any, ...] = ()) -> Iterator[Callable[[], None]]:
    """Let a checkpoint follow a loop, and put it into the state of the file if there is one.

    Parameters
    ----------
    *objects : object
        What the passes change: all else follows from the data and the parameters.
    given : tuple
        What these objects refer to and no pass changes, such as the data. It is not written.

    Yields
    ------
    between_passes : callable
        To be called between two passes.
    """
    around = _active.get()
    fit = None if around is None else around._fit
    if fit is None or not fit.runs or fit.in_loop:
        del objects, given  # a loop may let go of some of it
        yield _nothing
        return
    fit.begin(objects, given)
    try:
        yield fit.between_passes
    finally:
        fit.in_loop = False
    fit.end()


def _nothing() -> None:
    """What loops call that nobody follows."""


class _Fit:
    """One fit with its file: an archive with the last states of its loops by number.

    The state of a loop that has not ended is named by its number and ``passes``.
    """

    def __init__(self, path: Path, every: float, name: str, identity: str) -> None:
        self.path, self.every = path, every
        self.header = f"{name}\n{identity}".encode()
        # States that the file holds, and those of loops that ended since it was written.
        self.stored: set[str] = set()
        self.ended: dict[str, bytes] = {}
        self.runs, self.in_loop, self.has_warned = True, False, False
        self.n_loops, self.written = 0, time.monotonic()
        if path.exists():
            self.stored = self._names()

    def _names(self) -> set[str]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                header, names = archive.read("fit"), set(archive.namelist())
        except (zipfile.BadZipFile, KeyError):
            raise ValueError(
                f"{self.path} is damaged or no checkpoint: give another path, or delete it to "
                "begin anew."
            ) from None
        if header != self.header:
            name = header.decode().partition("\n")[0]
            raise ValueError(
                f"{self.path} is the checkpoint of another fit, of {name} with other data, "
                "parameters or version: give another path, or delete it to begin anew."
            )
        return names

    def begin(self, objects: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        """Begin the next loop, from its state in the file if it is there."""
        self.n_loops += 1
        self.in_loop, self.objects, self.known = True, objects, _known(given)
        name = next((name for name in self._named() if name in self.stored), None)
        if name is None:
            return
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(name) as file:
                states = _Unpickler(file, self.known).load()
        except MemoryError:
            raise
        except Exception as error:  # what is damaged may look like anything
            raise ValueError(
                f"{self.path} is damaged: delete it to begin anew. ({error})"
            ) from error
        for each, state in zip(objects, states, strict=True):
            if state is not None:
                _set_state(each, state)

    def _named(self) -> tuple[str, str]:
        """Names of the present loop's state, if it has ended and if it has not."""
        return f"{self.n_loops}", f"{self.n_loops}.passes"

    def between_passes(self) -> None:
        """Write the state if it is time."""
        if time.monotonic() - self.written >= self.every:
            self._write(self._named()[1])

    def end(self) -> None:
        """Keep the last state of the loop."""
        name, _ = self._named()
        if name in self.stored:
            return
        if time.monotonic() - self.written >= self.every:
            self._write(name)
            return
        content = io.BytesIO()
        with self._told():
            self._dump(content)
            self.ended[name] = content.getvalue()

    def _write(self, name: str) -> None:
        """Write a file with the states of all loops that ended and that of the present one."""
        kept = {each for each in self.stored if each.isdigit()} - {name}
        with self._told(), writing(self.path, overwrite=True) as draft:
            with zipfile.ZipFile(draft, "x") as archive:
                archive.writestr("fit", self.header)
                if kept:
                    with zipfile.ZipFile(self.path) as old:
                        for each in sorted(kept):
                            with old.open(each) as source, _member(archive, each) as target:
                                shutil.copyfileobj(source, target)
                for each, content in self.ended.items():
                    archive.writestr(each, content)
                with _member(archive, name) as target:
                    self._dump(target)
            kept |= self.ended.keys()
        self.stored, self.ended = {*kept, name}, {}
        # From the end of it: where writing takes long, passes take turns with it all the same.
        self.written = time.monotonic()

    def _dump(self, file: Any) -> None:
        _Pickler(file, self.known).dump([_state(each) for each in self.objects])

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Let a fit go on if its state cannot be written, but say so once."""
        try:
            yield
        except (OSError, pickle.PicklingError) as error:
            self.written = time.monotonic()
            if not self.has_warned:
                self.has_warned = True
                warnings.warn(
                    f"{self.path.name} could not be written, and the fit goes on without: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    return archive.open(name, "w", force_zip64=True)


def _state(value: Any) -> Any:
    return value.__getstate__()


def _set_state(value: Any, state: Any) -> None:
    """Put an object into a state, which the names that others have for it then show."""
    if hasattr(value, "__setstate__"):
        value.__setstate__(state)
    else:
        vars(value).update(state)


def _known(given: tuple[Any, ...]) -> list[Any]:
    """What a file only refers to: what was given, where rows come from, and classes of users."""
    sources = [
        vars(each)[name]
        for each in given
        if isinstance(each, Rows)
        for name in ("X", "blocks", "frame", "columns")
        if name in vars(each)
    ]
    return [*given, *sources, *map(type, given)]


class _Pickler(pickle.Pickler):
    """Writes arrays with their layout, and refers to what is known by its number."""

    def __init__(self, file: Any, known: list[Any]) -> None:
        super().__init__(file, protocol=5)
        self.numbers = {id(each): number for number, each in enumerate(known)}

    def persistent_id(self, value: Any) -> Any:
        return self.numbers.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if type(value) is np.ndarray and value.dtype != object:
            # BLAS sums by layout, which must not change.
            return _array, (value.tobytes(), value.dtype.str, value.shape, value.strides)
        if isinstance(value, np.random.RandomState):
            return _random_state, (value.get_state(legacy=False),)
        if isinstance(value, np.random.Generator):
            state = value.bit_generator.state
            return _generator, (state["bit_generator"], state)
        if isinstance(value, Rows):
            # With where they come from, which is known, or a matrix of the loop itself.
            return _blank, (type(value),), dict(vars(value))
        if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
            _found(value.__module__ or "builtins", value.__qualname__, pickle.PicklingError)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, known: list[Any]) -> None:
        super().__init__(file)
        self.known = known

    def persistent_load(self, number: Any) -> Any:
        return self.known[number]

    def find_class(self, module: str, name: str) -> Any:
        return _found(module, name, pickle.UnpicklingError)


def _found(module: str, name: str, error: type[Exception]) -> Any:
    """Something that a file may name: a class of this library, or what plain data are made of."""
    if (module, name) in OTHERS:
        return getattr(import_module(module), name)
    if module == __name__ and name in {each.__name__ for each in BUILDERS}:
        return globals()[name]
    value = getattr(import_module(module), name, None) if module.startswith(OURS) else None
    if not isinstance(value, type):
        raise error(f"{name} of {module} is neither plain data nor a class of robustpca")
    return value


def _array(content: bytes, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    packed = np.frombuffer(content, dtype).reshape(shape)
    spans = [stride * (length - 1) for stride, length in zip(strides, shape, strict=True)]
    if packed.size == 0:
        return packed.copy()
    before = -sum(span for span in spans if span < 0)
    size = before + sum(span for span in spans if span > 0) + packed.itemsize
    memory = np.zeros(size + LINE, np.uint8)
    memory = memory[-memory.ctypes.data % LINE :]
    array: Array = np.ndarray(shape, dtype, memory, before, strides)
    array[...] = packed
    return array


def _random_state(state: Any) -> np.random.RandomState:
    made = np.random.RandomState()
    made.set_state(state)
    return made


def _generator(kind: str, state: Any) -> np.random.Generator:
    bits = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937}[kind]()
    bits.state = state
    return np.random.Generator(bits)


def _blank(kind: type) -> Any:
    return object.__new__(kind)


BUILDERS = (_array, _random_state, _generator, _blank)
