"""One data set in memory: samples in rows, labels, image shape, where it came from."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from robustpca.engine.linalg import Array

__all__ = ["Dataset", "checksum_of", "resize_images"]

# CDnet's label of pixels that are not scored: it is unknown what moves there.
UNKNOWN = 170
# Extras with one entry or row for each sample.
PER_SAMPLE = ("frame", "is_outlier", "low_rank", "mask", "masks")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples in rows, and what is known about them.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    X : ndarray of shape (n_samples, n_features)
        Samples, one per row, as floating point numbers; pixels run from 0 to 255, frames of a
        video are rows.
    y : ndarray of shape (n_samples,) or None
        Classes, whole numbers from 0.
    image_shape : tuple of two int or None
        Height and width, if the rows are images: ``X.reshape(-1, *image_shape)`` shows them
        upright.
    origin : str
        Where the data came from.
    extras : dict, default={}
        What else there is, by name. Of images and videos: ``is_outlier`` (n_samples,), ``masks``
        (n_samples, n_features), ``background`` and ``background_valid`` (n_features,), ``frame``
        (n_samples,); of tables: ``columns``, ``label_names``, ``view_names``, ``view_sizes``;
        of synthetic sets: the planted truth.

    Examples
    --------
    >>> from robustpca.datasets import load
    >>> load("digits")
    Dataset 'digits': 1797 x 64, 10 classes, images 8x8
    """

    name: str
    X: Array
    y: Array | None
    image_shape: tuple[int, int] | None
    origin: str
    extras: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        parts = [f"Dataset {self.name!r}: {self.X.shape[0]} x {self.X.shape[1]}"]
        if self.y is not None:
            parts.append(f"{len(np.unique(self.y))} classes")
        if self.image_shape is not None:
            parts.append("images {}x{}".format(*self.image_shape))
        return ", ".join(parts)

    @property
    def images(self) -> Array:
        """The rows as images, of shape (n_samples, height, width); a view of ``X``."""
        if self.image_shape is None:
            raise ValueError(f"The rows of {self.name} are not images, so they have no shape.")
        return self.X.reshape(-1, *self.image_shape)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of ``X`` and ``y``, to tell whether two results are of the same data."""
        return checksum_of(self.X, self.y)

    def taken(self, rows: Any) -> "Dataset":
        """Some of the samples, with what is known about them.

        Parameters
        ----------
        rows : array of int or bool
            Which samples, and in which order.

        Returns
        -------
        dataset : Dataset
            A copy of these samples.

        Examples
        --------
        >>> from robustpca.datasets import load
        >>> digits = load("digits")
        >>> digits.taken(digits.y < 2)
        Dataset 'digits': 360 x 64, 2 classes, images 8x8
        """
        extras = {
            key: value[rows] if key in PER_SAMPLE else value for key, value in self.extras.items()
        }
        labels = None if self.y is None else self.y[rows]
        return replace(self, X=self.X[rows], y=labels, extras=extras)

    def resized(self, size: tuple[int, int]) -> "Dataset":
        """The same images at another size, each new pixel the average over the area it covers.

        Masks are not averaged: a pixel keeps its label where all that it covers has it, and is
        labelled unknown (170) elsewhere. A pixel of the background is valid where all it covers
        is.

        Parameters
        ----------
        size : tuple of two int
            Height and width. Enlarging is possible and adds no detail.

        Returns
        -------
        dataset : Dataset
            This one, if it has that size already.
        """
        height, width = (int(length) for length in size)
        if min(height, width) < 1:
            raise ValueError(f"size={size} is not the height and width of an image in pixels.")
        if self.image_shape is None:
            raise ValueError(f"The rows of {self.name} are not images: leave out size={size}.")
        if (height, width) == self.image_shape:
            return self
        extras = {
            key: PER_PIXEL[key](value, self.image_shape, (height, width))
            if key in PER_PIXEL
            else value
            for key, value in self.extras.items()
        }
        return replace(
            self,
            X=resize_images(self.X, self.image_shape, (height, width)),
            image_shape=(height, width),
            origin=f"{self.origin}; resized from {self.image_shape[0]}x{self.image_shape[1]}",
            extras=extras,
        )


def checksum_of(*arrays: Array | None) -> str:
    """SHA-256 of the types, shapes and entries of arrays, whatever their memory order."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            continue
        # Objects are told apart by what they look like, since their addresses mean nothing.
        array = array.astype(str) if array.dtype.hasobject else array
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{little.dtype.str}{little.shape}".encode())
        digest.update(np.ascontiguousarray(little).data)
    return digest.hexdigest()


def resize_images(X: Any, image_shape: tuple[int, int], size: tuple[int, int]) -> Array:
    """Images at another size, each new pixel the average over the area it covers.

    Averaging keeps the mean of every image and lets no fine pattern turn into a coarse one, as
    picking pixels would.

    Parameters
    ----------
    X : array of shape (..., n_features)
        Images, one per row, in C order. Not modified.
    image_shape, size : tuple of two int
        Height and width now and then.

    Returns
    -------
    resized : ndarray of shape (..., size[0] * size[1])
        Single precision if ``X`` is, double precision otherwise.

    Examples
    --------
    >>> from robustpca.datasets import resize_images
    >>> resize_images([[0, 2, 4, 6, 1, 1, 1, 1]], (2, 4), (1, 2))
    array([[1., 3.]])
    """
    X = np.asarray(X)
    dtype = X.dtype if X.dtype == np.float32 else np.dtype(np.float64)
    height, width = (_shares(*lengths) for lengths in zip(image_shape, size, strict=True))
    # A new pixel covers few old ones: a sparse product touches no others.
    weights = sparse.kron(height, width, format="csr").astype(dtype)
    rows = X.reshape(-1, X.shape[-1]).astype(dtype, copy=False)
    return np.ascontiguousarray((weights @ rows.T).T).reshape(*X.shape[:-1], -1)


def _shares(old: int, new: int) -> Any:
    """How much each of ``old`` pixels along a side contributes to each of ``new`` ones."""
    ends = np.arange(new + 1) * old / new
    pixels = np.arange(old)
    overlap = np.minimum(ends[1:, None], pixels + 1) - np.maximum(ends[:-1, None], pixels)
    return sparse.csr_array(np.maximum(overlap, 0) * new / old)


def _where_all(X: Array, image_shape: tuple[int, int], size: tuple[int, int]) -> Array:
    """Whether all that a new pixel covers is true."""
    # Shares sum to one up to rounding only.
    return resize_images(X.astype(np.float64), image_shape, size) > 1 - 1e-9


def _resize_masks(X: Array, image_shape: tuple[int, int], size: tuple[int, int]) -> Array:
    resized = np.full((*X.shape[:-1], size[0] * size[1]), UNKNOWN, dtype=X.dtype)
    for label in np.unique(X):
        resized[_where_all(label == X, image_shape, size)] = label
    return resized


# Extras with one entry for each pixel, and how they are resized.
PER_PIXEL: dict[str, Callable[[Array, tuple[int, int], tuple[int, int]], Array]] = {
    "masks": _resize_masks,
    "background": resize_images,
    "background_valid": _where_all,
}
