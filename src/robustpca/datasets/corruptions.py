"""Corruptions of known extent: occluded blocks, missing pixels, entries anew, shifted samples.

Every function returns a corrupted copy and the mask of the entries it has overwritten, and a
share always means the nearest whole number of things. An overwritten entry may keep its value by
chance, as a black pixel does under a black block; it still belongs to the mask.
"""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import FLOAT_DTYPES

from robustpca.engine.linalg import Array

__all__ = ["drop_pixels", "occlude_blocks", "occlude_randomly", "reset_entries", "shift_samples"]


def occlude_blocks(
    X: Any,
    image_shape: tuple[int, int],
    area: float = 0.25,
    samples: float = 1.0,
    fill: float | str = 0,
    of: str = "area",
    random_state: Any = None,
) -> tuple[Array, Array]:
    """Cover images by a block of fixed size, each at a place of its own.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Images, one per row, in C order. Not modified.
    image_shape : tuple of two int
        Height and width of the images.
    area : float, default=0.25
        Size of the block, from 0 to 1. It has the proportions of the image, its sides are
        rounded to whole pixels, and above 0 it has at least one pixel.
    samples : float, default=1.0
        Share of the images to cover.
    fill : float, 'noise' or 'mean', default=0
        What to put there: a number, uniform noise on the range of ``X``, or the mean of all
        entries of ``X``.
    of : {'area', 'side'}, default='area'
        Whether ``area`` is a share of the area of the image or of each of its sides.
    random_state : int, RandomState instance or None, default=None
        Draws the images, the places and the noise.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        Copy of ``X`` with the blocks.
    mask : ndarray of bool, of shape (n_samples, n_features)
        Where the blocks are.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.datasets import occlude_blocks
    >>> corrupted, mask = occlude_blocks(np.ones((10, 64)), (8, 8), samples=0.3, random_state=0)
    >>> np.unique(mask.sum(axis=1), return_counts=True)
    (array([ 0, 16]), array([7, 3]))
    """
    corrupted, rng = _copied(X), check_random_state(random_state)
    _check_image_shape(corrupted, image_shape)
    _check_share("area", area)
    if of not in ("area", "side"):
        raise ValueError(f"of={of!r} is not known: choose 'area' or 'side'.")
    chosen = _draw_rows(corrupted, samples, rng)
    side = area if of == "side" else area**0.5
    sides = [max(round(side * length), int(area > 0)) for length in image_shape]
    heights, widths = (np.full(len(chosen), length) for length in sides)
    mask = _block_mask(corrupted, chosen, image_shape, heights, widths, rng)
    return _filled(corrupted, mask, fill, rng), mask


def occlude_randomly(
    X: Any,
    image_shape: tuple[int, int],
    samples: float = 0.2,
    min_area: float = 0.25,
    max_area: float = 0.5,
    fill: float | str = "noise",
    random_state: Any = None,
) -> tuple[Array, Array]:
    """Cover some images by blocks of random size, proportions and place.

    The share of the area is uniform between its bounds; height over width, both in pixels, is
    log-uniform between 1/2 and 2, or as near to that as the image allows.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Images, one per row, in C order. Not modified.
    image_shape : tuple of two int
        Height and width of the images.
    samples : float, default=0.2
        Share of the images to cover.
    min_area, max_area : float, default=0.25 and 0.5
        Bounds of the share of the area that a block covers, before its sides are rounded to
        whole pixels.
    fill : float, 'noise' or 'mean', default='noise'
        What to put there: a number, uniform noise on the range of ``X``, or the mean of all
        entries of ``X``.
    random_state : int, RandomState instance or None, default=None
        Draws the images, the blocks and the noise.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        Copy of ``X`` with the blocks.
    mask : ndarray of bool, of shape (n_samples, n_features)
        Where the blocks are.
    """
    corrupted, rng = _copied(X), check_random_state(random_state)
    _check_image_shape(corrupted, image_shape)
    _check_share("min_area", min_area)
    _check_share("max_area", max_area)
    if not 0 < min_area <= max_area:
        raise ValueError(
            f"min_area={min_area} and max_area={max_area} are no bounds of an area: choose "
            "0 < min_area <= max_area <= 1."
        )
    chosen = _draw_rows(corrupted, samples, rng)
    height, width = image_shape
    areas = height * width * rng.uniform(min_area, max_area, size=len(chosen))
    ratios = np.exp2(rng.uniform(-1, 1, size=len(chosen)))
    # A block wider than the image is made higher: cutting it off would lose area.
    ratios = np.maximum(ratios, areas / width**2)
    heights = np.clip(np.rint(np.sqrt(areas * ratios)), 1, height).astype(int)
    widths = np.clip(np.rint(areas / heights), 1, width).astype(int)
    mask = _block_mask(corrupted, chosen, image_shape, heights, widths, rng)
    return _filled(corrupted, mask, fill, rng), mask


def drop_pixels(X: Any, share: float, random_state: Any = None) -> tuple[Array, Array]:
    """Set the same number of entries to 0 in every row, each row at places of its own.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Samples. Not modified.
    share : float
        Share of the entries of a row to lose, from 0 to 1.
    random_state : int, RandomState instance or None, default=None
        Draws the places.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        Copy of ``X`` with zeros.
    mask : ndarray of bool, of shape (n_samples, n_features)
        Where the zeros were put.

    Examples
    --------
    >>> from robustpca.datasets import drop_pixels
    >>> corrupted, mask = drop_pixels([[1, 2, 3, 4], [5, 6, 7, 8]], 0.5, random_state=0)
    >>> mask.sum(axis=1)
    array([2, 2])
    """
    corrupted, rng = _copied(X), check_random_state(random_state)
    mask = np.zeros(corrupted.shape, dtype=bool)
    places = _draw_places(corrupted.shape, _count("share", share, corrupted.shape[1]), rng)
    np.put_along_axis(mask, places, True, axis=1)
    corrupted[mask] = 0
    return corrupted, mask


def reset_entries(
    X: Any,
    samples: float = 0.2,
    features: float = 0.2,
    shared: bool = False,
    random_state: Any = None,
) -> tuple[Array, Array]:
    """Draw some features of some samples anew, uniformly on the range of the data.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Samples. Not modified.
    samples : float, default=0.2
        Share of the samples to corrupt.
    features : float, default=0.2
        Share of the features to draw anew in each of them.
    shared : bool, default=False
        Take the same features in all corrupted samples, instead of others in each. The figures
        of EPCA's Table I come out this way, and are lower with other features in each.
    random_state : int, RandomState instance or None, default=None
        Draws the samples, the features and the values.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        Copy of ``X`` with the new entries, between the least and the largest entry of ``X``.
    mask : ndarray of bool, of shape (n_samples, n_features)
        Which entries were drawn anew; its non-zero rows are the corrupted samples.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.datasets import reset_entries
    >>> corrupted, mask = reset_entries(np.eye(20), random_state=0)
    >>> int(mask.any(axis=1).sum()), int(mask.sum())
    (4, 16)
    """
    corrupted, rng = _copied(X), check_random_state(random_state)
    chosen = _draw_rows(corrupted, samples, rng)
    n_features = corrupted.shape[1]
    n_reset = _count("features", features, n_features)
    places = _draw_places((1 if shared else len(chosen), n_features), n_reset, rng)
    mask = np.zeros(corrupted.shape, dtype=bool)
    mask[chosen[:, None], places] = True
    return _filled(corrupted, mask, "noise", rng), mask


def shift_samples(
    X: Any, shift: Any, samples: float = 0.1, random_state: Any = None
) -> tuple[Array, Array]:
    """Move some samples as a whole, all by the same vector.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Samples. Not modified.
    shift : float or array of shape (n_features,)
        What to add to them.
    samples : float, default=0.1
        Share of the samples to move.
    random_state : int, RandomState instance or None, default=None
        Draws the samples.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        Copy of ``X`` with moved samples.
    mask : ndarray of bool, of shape (n_samples, n_features)
        Rows of moved samples are true throughout, also where ``shift`` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.datasets import shift_samples
    >>> corrupted, mask = shift_samples(np.zeros((10, 3)), [0, 0, 50], 0.2, random_state=0)
    >>> corrupted.sum(axis=0), int(mask.any(axis=1).sum())
    (array([  0.,   0., 100.]), 2)
    """
    corrupted, rng = _copied(X), check_random_state(random_state)
    shift = np.asarray(shift, dtype=corrupted.dtype)
    if shift.shape not in ((), corrupted.shape[1:]):
        raise ValueError(
            f"shift has shape {shift.shape}: pass one number, or one for each of the "
            f"{corrupted.shape[1]} features."
        )
    if not np.isfinite(shift).all():
        raise ValueError("shift has entries that are not finite: pass finite numbers.")
    chosen = _draw_rows(corrupted, samples, rng)
    mask = np.zeros(corrupted.shape, dtype=bool)
    mask[chosen] = True
    corrupted[chosen] += shift
    return corrupted, mask


def _copied(X: Any) -> Array:
    return check_array(X, dtype=FLOAT_DTYPES, copy=True)


def _check_image_shape(X: Array, image_shape: tuple[int, int]) -> None:
    height, width = image_shape
    if min(height, width) < 1 or height * width != X.shape[1]:
        raise ValueError(
            f"image_shape={tuple(image_shape)} needs {height * width} features, but X has "
            f"{X.shape[1]}."
        )


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"{name}={share} is not a share: choose a number from 0 to 1.")


def _count(name: str, share: float, total: int) -> int:
    if not 0 <= share <= 1:
        raise ValueError(
            f"{name}={share} is not a share of the {total} there are: choose a number from 0 to 1."
        )
    return round(share * total)


def _draw_rows(X: Array, samples: float, rng: np.random.RandomState) -> Array:
    return rng.choice(len(X), _count("samples", samples, len(X)), replace=False)


def _draw_places(shape: tuple[int, int], count: int, rng: np.random.RandomState) -> Array:
    """For each row, ``count`` different columns."""
    return np.argsort(rng.uniform(size=shape), axis=1)[:, :count]


def _block_mask(
    X: Array,
    chosen: Array,
    image_shape: tuple[int, int],
    heights: Array,
    widths: Array,
    rng: np.random.RandomState,
) -> Array:
    """Mask of one block in each chosen image, at a uniform place inside the image."""
    inside = []
    for length, block in zip(image_shape, (heights, widths), strict=True):
        first = rng.randint(length - block + 1)[:, None]
        pixels = np.arange(length)
        inside.append((first <= pixels) & (pixels < first + block[:, None]))
    rows, columns = inside
    mask = np.zeros(X.shape, dtype=bool)
    mask[chosen] = (rows[:, :, None] & columns[:, None, :]).reshape(len(chosen), X.shape[1])
    return mask


def _filled(X: Array, mask: Array, fill: float | str, rng: np.random.RandomState) -> Array:
    """Overwrite the masked entries of ``X`` and return it."""
    values: Any
    if isinstance(fill, str):
        if fill not in ("noise", "mean"):
            raise ValueError(f"fill={fill!r} is not known: choose a number, 'noise' or 'mean'.")
        if fill == "noise":
            values = rng.uniform(float(X.min()), float(X.max()), size=np.count_nonzero(mask))
        else:
            values = X.mean(dtype=np.float64)
    elif isinstance(fill, Real) and np.isfinite(fill):
        values = fill
    else:
        raise ValueError(f"fill={fill!r} is not a finite number: choose one, 'noise' or 'mean'.")
    X[mask] = values
    return X
