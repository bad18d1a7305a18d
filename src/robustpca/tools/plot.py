"""Pictures of samples. Needs matplotlib; nothing here shows a window."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robustpca.engine.linalg import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["image_rows"]


def image_rows(
    images: Sequence[Any],
    image_shape: tuple[int, int],
    titles: Sequence[str],
    ax: "Axes | None" = None,
    *,
    limits: tuple[float, float] | None = None,
) -> "Axes":
    """Draw several versions of the same images side by side, one image per row.

    Parameters
    ----------
    images : sequence of arrays of shape (n_samples, n_features)
        The versions, such as original, corrupted and reconstructed; one column of the picture
        each.
    image_shape : tuple of two int
        Height and width of an image.
    titles : sequence of str
        What to write above the columns.
    ax : Axes, default=None
        Where to draw; None for a new figure.
    limits : tuple of two float, default=None
        Values shown in black and white; None for the range of the first version. All images
        share them, so equal grey is an equal value.

    Returns
    -------
    ax : Axes
        Where the picture was drawn.
    """
    versions = [np.asarray(version, dtype=np.float64) for version in images]
    _check(versions, image_shape, titles)
    height, width = image_shape
    gap = max(1, round(max(image_shape) / 8))
    if ax is None:
        import matplotlib.pyplot as plt

        size = (1.2 * len(versions) * width / height, 1.2 * len(versions[0]) + 0.3)
        _, ax = plt.subplots(figsize=size, layout="constrained")
    low, high = limits or (float(versions[0].min()), float(versions[0].max()))
    mosaic = _mosaic(versions, image_shape, gap)
    # An invalid (NaN) pixel is left transparent, so the gaps take the colour of the paper.
    ax.imshow(mosaic, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    centres = np.arange(len(versions)) * (width + gap) + (width - 1) / 2
    ax.set_xticks(centres, titles)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    return ax


def _check(versions: list[Array], image_shape: tuple[int, int], titles: Sequence[str]) -> None:
    if not versions or len(versions) != len(titles):
        raise ValueError(
            f"There are {len(versions)} versions of the images and {len(titles)} titles: pass at "
            "least one version, and one title for each."
        )
    height, width = image_shape
    needed = (len(versions[0]), height * width)
    for title, version in zip(titles, versions, strict=True):
        if version.shape != needed or len(version) == 0:
            raise ValueError(
                f"image_shape={tuple(image_shape)} needs arrays of shape (n_samples, "
                f"{height * width}) with as many samples in each, but {title!r} has shape "
                f"{version.shape} and the first has {len(versions[0])} samples."
            )


def _mosaic(versions: list[Array], image_shape: tuple[int, int], gap: int) -> Array:
    """One large image: a row per sample, a column per version, NaN in between."""
    tiles = np.stack([version.reshape(-1, *image_shape) for version in versions], axis=1)
    framed = np.pad(tiles, ((0, 0), (0, 0), (0, gap), (0, gap)), constant_values=np.nan)
    n_rows, n_columns, height, width = framed.shape
    mosaic = framed.swapaxes(1, 2).reshape(n_rows * height, n_columns * width)
    return mosaic[:-gap, :-gap]
