"""Scores of rows that memory cannot hold, from file to file."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from robustpca.engine.blocks import DenseBlock
from robustpca.engine.dask_rows import DaskRows, as_dask, lazy_rows
from robustpca.engine.drafts import writing
from robustpca.engine.linalg import Array
from robustpca.models.estimator import Estimator, answer
from robustpca.tools.files.large import WRITERS, row_writer
from robustpca.tools.files.table import extra, kind_of

__all__ = ["asked", "score_blocks", "write_blocks", "write_scores"]

Report = Callable[[int, int], object]


def write_scores(
    model: Any,
    X: Any,
    path: Any,
    *,
    rebuild: bool = False,
    overwrite: bool = False,
    callback: Report | None = None,
) -> None:
    """Write the scores of rows to a file, with a few blocks of rows in memory at a time.

    Parameters
    ----------
    model : estimator
        A fitted model, or a pipeline that ends with one.
    X : numpy.memmap, h5py.Dataset, zarr.Array or dask.array.Array
        The rows. Those of a Dask array are worked on by the active scheduler.
    path : str or path-like
        A ``.npy``, ``.h5`` (data set ``X``) or ``.zarr`` file. It has its name when all of it is
        written, and is not there otherwise.
    rebuild : bool, default=False
        Write the rows as the model sees them, and not their scores.
    overwrite : bool, default=False
        Replace a file that is there.
    callback : callable, default=None
        Called after each block with the number of rows done and of all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from robustpca import EPCA, write_scores
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", np.random.default_rng(0).normal(size=(500, 8)))
    >>> X = np.load(folder / "X.npy", mmap_mode="r")
    >>> write_scores(EPCA(2).fit(X), X, folder / "codes.npy")
    >>> np.load(folder / "codes.npy").shape
    (500, 2)
    """
    path = Path(path).expanduser()
    if kind_of(path) not in WRITERS:
        raise ValueError(f"{path} cannot be written in blocks: use {', '.join(WRITERS)}.")
    if lazy_rows(X) is None or hasattr(X, "columns"):
        raise TypeError(
            "write_scores takes a C-ordered numpy.memmap, an h5py dataset, a zarr array or a Dask "
            f"array, not {type(X).__name__}; of data in memory use model.transform."
        )
    with writing(path, overwrite=overwrite) as draft:
        write_blocks(draft, score_blocks(model, X, rebuild, callback), X.shape[0])


def score_blocks(
    model: Any, X: Any, rebuild: bool = False, callback: Report | None = None
) -> Iterator[Array]:
    """Scores of the rows of an array on disk or of Dask, a block at a time.

    Parameters
    ----------
    model, X, rebuild, callback
        As for `write_scores`.

    Yields
    ------
    scores : ndarray of shape (n_rows, n_components) or (n_rows, n_features)
        Those of the next rows.
    """
    rows = lazy_rows(X)
    assert rows is not None
    rows = rows.counted()
    methods = ("transform", "inverse_transform") if rebuild else ("transform",)
    if isinstance(rows, DaskRows):
        # Only what the problem of a row needs is sent to the workers.
        blocks = DaskRows(asked(model, X, *methods)).finer(rows.row_bytes).stream(_as_it_is)
    else:
        blocks = rows.stream(_answers, model, methods)
    done, total = 0, rows.shape[0]
    for block in blocks:
        done += len(block)
        yield block
        if callback is not None:
            callback(done, total)


def write_blocks(path: Path, blocks: Iterator[Array], n_rows: int) -> None:
    """Write blocks of rows, one behind the other, to a file that can be written so."""
    with ExitStack() as stack:
        write = None
        for block in blocks:
            if write is None:
                shape = (n_rows, *block.shape[1:])
                write = stack.enter_context(row_writer(path, shape, block.dtype))
            write(block)


def asked(model: Any, X: Any, *methods: str) -> Any:
    """What methods of a fitted model, one after the other, make of rows that are not in memory.

    Parameters
    ----------
    model : estimator
        Of this library or of scikit-learn, or a pipeline of such.
    X : numpy.memmap, h5py.Dataset, zarr.Array or dask.array.Array
        The rows.
    *methods : str
        ``transform`` and ``inverse_transform``.

    Returns
    -------
    X : dask.array.Array
        Nothing of it is computed yet.
    """
    if not DaskRows.accepts(X):
        extra("dask.array", "Working on a file step by step", "dask")
        X = as_dask(X)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    for method in methods:
        for step in steps if method == "transform" else steps[::-1]:
            if isinstance(step, Estimator):
                X = getattr(step, method)(X)
            else:
                X = DaskRows(X).rowwise(answer, step, method)
    return X


def _as_it_is(block: DenseBlock) -> Array:
    return np.asarray(block.block)


def _answers(block: DenseBlock, model: Any, methods: tuple[str, ...]) -> Array:
    rows = block.block
    for method in methods:
        rows = np.asarray(getattr(model, method)(rows))
    return rows
