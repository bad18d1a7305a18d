"""Another way to occlude faces: blocks of which either side is drawn by itself."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from robustpca.engine.linalg import Array

__all__ = ["occlude_sides"]


def occlude_sides(
    X: Array,
    image_shape: tuple[int, int],
    samples: float = 0.2,
    least: float = 0.5,
    random_state: Any = None,
) -> tuple[Array, Array]:
    """Cover some images by blocks of noise whose sides are uniform shares of those of the image.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Images, one per row. Not modified.
    image_shape : tuple of two int
        Height and width of the images.
    samples : float, default=0.2
        Share of the images to cover.
    least : float, default=0.5
        Least share of a side; with 1/2, a block has at least a quarter of the area.
    random_state : int, RandomState instance or None, default=None
        Draws images, blocks and noise.

    Returns
    -------
    corrupted : ndarray of shape (n_samples, n_features)
        Copy of ``X`` with the blocks.
    mask : ndarray of bool, of shape (n_samples, n_features)
        Where the blocks are.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.papers.pcaan.occlusions import occlude_sides
    >>> _, mask = occlude_sides(np.eye(4), (2, 2), samples=0.5, random_state=0)
    >>> mask.any(axis=1).sum()
    np.int64(2)
    """
    rng = check_random_state(random_state)
    blocks = np.zeros((len(X), *image_shape), bool)
    for row in rng.permutation(len(X))[: round(samples * len(X))]:
        sizes = [int(np.ceil(rng.uniform(least, 1) * side)) for side in image_shape]
        top, left = (
            rng.randint(side - size + 1) for side, size in zip(image_shape, sizes, strict=True)
        )
        blocks[row, top : top + sizes[0], left : left + sizes[1]] = True
    mask = blocks.reshape(X.shape)
    corrupted = np.array(X)
    corrupted[mask] = rng.uniform(X.min(), X.max(), size=int(mask.sum()))
    return corrupted, mask
