"""Pictures of images: several versions side by side, and both parts of a decomposition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.tools.plot.spectra import restored
from robustpca.tools.plot.style import (
    AS_WRITTEN,
    SMALL,
    Display,
    axes,
    dense,
    diverging,
    last_step,
    row_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ImagesDisplay", "image_rows"]

# Missing pixels, which are neither black nor white.
MISSING = (0.45, 0.33, 0.62)


@dataclass
class ImagesDisplay(Display):
    """Images as given, their low-rank part and their sparse part, one image per row.

    Given and low-rank images share one grey scale; missing pixels are violet. Sparse parts have
    the colour of the background where nothing is wrong, orange where a pixel is too bright and
    blue where it is too dark. Make one with `from_estimator`.

    Parameters
    ----------
    given, low_rank, sparse : ndarray of shape (n_images, n_features)
        The three versions.
    image_shape : tuple of two int
        Height and width of an image.
    labels : sequence of str
        Names of the images.
    limits : tuple of two float
        Values shown in black and white.

    Attributes
    ----------
    ax_ : Axes
        Where the images were drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from robustpca import RPCA, plot
    >>> from robustpca.datasets import make_video
    >>> X = make_video(30, (24, 32), random_state=0).X
    >>> model = RPCA().fit(X)
    >>> display = plot.ImagesDisplay.from_estimator(model, X, image_shape=(24, 32))
    """

    TITLES = ("given", "low rank", "sparse")

    given: Array
    low_rank: Array
    sparse: Array
    image_shape: tuple[int, int]
    labels: Sequence[str]
    limits: tuple[float, float]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        image_shape: tuple[int, int],
        images: Sequence[int] | None = None,
        labels: Sequence[Any] | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw some images and what a fitted model makes of them.

        Parameters
        ----------
        estimator : estimator
            A fitted model. For those that do not decompose data, the parts are the projection on
            the subspace and what is left.
        X : array of shape (n_samples, n_features)
            Images in rows.
        image_shape : tuple of two int
            Height and width of an image.
        images : sequence of int, default=None
            Which rows to show; None for four that are spread evenly.
        labels : sequence, default=None
            Names of all rows; None for their numbers.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ImagesDisplay
            The picture.
        """
        model, rows = last_step(estimator, X)
        check_is_fitted(model)
        names = row_labels(X, labels, np.shape(rows)[0])
        if images is None:
            images = np.unique(np.linspace(0, len(names) - 1, 4).astype(int)).tolist()
        given = dense(rows[np.asarray(images)] if not hasattr(rows, "iloc") else rows.iloc[images])
        low_rank = dense(restored(model, given.astype(model.components_.dtype)))
        sparse = np.nan_to_num(given - low_rank)
        if hasattr(model, "decompose"):
            sparse = dense(model.decompose(given.astype(model.components_.dtype))[1])
        limits = float(np.nanmin(given)), float(np.nanmax(given))
        chosen = [names[i] for i in images]
        return cls(given, low_rank, sparse, image_shape, chosen, limits).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the images.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ImagesDisplay
            This object.
        """
        import matplotlib as mpl

        _check([self.given, self.low_rank, self.sparse], self.image_shape, self.TITLES)
        height, width = self.image_shape
        tall = 1.5 * len(self.given)
        ax = axes(ax, 0.4 + tall / len(self.given) * 3.2 * width / height, 0.4 + tall)
        low, high = self.limits
        size = max(float(np.quantile(np.abs(self.sparse), 0.999)), 1e-12)
        grey, signed = mpl.colormaps["gray"].with_extremes(bad=MISSING), diverging(ax)
        versions = [
            grey(np.ma.masked_invalid((self.given - low) / max(high - low, 1e-300))),
            grey((self.low_rank - low) / max(high - low, 1e-300)),
            signed(0.5 + self.sparse / size / 2),
        ]
        gap = _gap(self.image_shape)
        channels = [
            _mosaic([version[..., channel] for version in versions], self.image_shape, gap)
            for channel in range(3)
        ]
        opaque = np.where(np.isnan(channels[0]), 0.0, 1.0)
        ax.imshow(np.dstack([*np.nan_to_num(channels), opaque]), interpolation="nearest")
        _frame(ax, self.TITLES, self.image_shape)
        centres = np.arange(len(self.labels)) * (height + gap) + (height - 1) / 2
        ax.set_yticks(centres, self.labels, fontsize=SMALL, **AS_WRITTEN)
        return self.drawn_on(ax)


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
    ax = axes(ax, 1.2 * len(versions) * width / height, 1.2 * len(versions[0]) + 0.3)
    low, high = limits or (float(versions[0].min()), float(versions[0].max()))
    mosaic = _mosaic(versions, image_shape, _gap(image_shape))
    # An invalid (NaN) pixel is left transparent, so the gaps take the colour of the paper.
    ax.imshow(mosaic, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    _frame(ax, titles, image_shape)
    ax.set_yticks([])
    return ax


def _gap(image_shape: tuple[int, int]) -> int:
    return max(1, round(max(image_shape) / 16))


def _frame(ax: "Axes", titles: Sequence[str], image_shape: tuple[int, int]) -> None:
    """Titles above the columns of a mosaic, and nothing else around it."""
    width = image_shape[1]
    centres = np.arange(len(titles)) * (width + _gap(image_shape)) + (width - 1) / 2
    ax.set_xticks(centres, titles)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


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
