"""Picture of entries: how far each is from what the model expects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.tools.plot.spectra import restored
from robustpca.tools.plot.style import (
    AS_WRITTEN,
    SMALL,
    Display,
    axes,
    column_names,
    dense,
    diverging,
    figure_of,
    ink,
    last_step,
    row_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EntriesDisplay"]

# Colours end here; beyond, all entries are equally wrong to the eye.
LIMIT = 8.0
# Of a model without flags of entries, this share of Gaussian residuals would be flagged.
RATE = 0.001


@dataclass
class EntriesDisplay(Display):
    """Residuals of entries in standard deviations of the noise of their column, as a heat map.

    Flagged entries have a dot, missing ones a dash. Make one with `from_estimator`.

    Parameters
    ----------
    sigmas : ndarray of shape (n_rows, n_columns)
        Residuals in standard deviations; NaN where an entry is missing.
    flags : ndarray of bool, of shape (n_rows, n_columns)
        Which entries are flagged.
    rows, columns : sequence of str
        Names of rows and columns.
    n_left_out : tuple of two int, default=(0, 0)
        Numbers of rows and of columns that are not shown.

    Attributes
    ----------
    colorbar_ : Colorbar
        The scale of colours.
    ax_ : Axes
        Where the map was drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from robustpca import RPCA, plot
    >>> from robustpca.datasets import make_low_rank_plus_sparse
    >>> X = make_low_rank_plus_sparse(100, 15, 3, noise=0.1, random_state=0).X
    >>> display = plot.EntriesDisplay.from_estimator(RPCA().fit(X), X)
    """

    sigmas: Array
    flags: Array
    rows: Sequence[str]
    columns: Sequence[str]
    n_left_out: tuple[int, int] = (0, 0)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        labels: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        n_rows: int = 24,
        n_columns: int = 40,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the residuals of the rows with the most and largest wrong entries.

        Parameters
        ----------
        estimator : estimator
            A fitted model, or a pipeline that ends with one. `RPCA`, `RPCAG` and `FRPCAG` flag
            entries themselves; for other models an entry is flagged if its residual from the
            subspace is larger than all but 0.1 % of Gaussian ones.
        X : array or data frame of shape (n_samples, n_features)
            The rows.
        labels, features : sequence, default=None
            Names of rows and columns; None for those of a data frame, or numbers.
        n_rows, n_columns : int, default=24 and 40
            At most so many are drawn: those with the largest residuals, in their own order.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : EntriesDisplay
            The map.
        """
        model, given = last_step(estimator, X)
        check_is_fitted(model)
        sigmas, flags = _residuals(model, given)
        names = row_labels(X, labels, len(sigmas))
        headings = column_names(X, features, sigmas.shape[1])
        strength = np.where(flags, np.minimum(np.abs(np.nan_to_num(sigmas)), 1e6), 0.0)
        strength += 1e-6 * np.minimum(np.abs(np.nan_to_num(sigmas)), 1e6)
        down = np.sort(np.argsort(-strength.sum(axis=1), kind="stable")[:n_rows])
        across = np.sort(np.argsort(-strength[down].sum(axis=0), kind="stable")[:n_columns])
        left_out = (len(sigmas) - len(down), sigmas.shape[1] - len(across))
        return cls(
            sigmas[np.ix_(down, across)],
            flags[np.ix_(down, across)],
            [names[i] for i in down],
            [headings[j] for j in across],
            left_out,
        ).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : EntriesDisplay
            This object.
        """
        n_rows, n_columns = self.sigmas.shape
        size = min(2.6 + 0.3 * n_columns, 12.0), min(1.6 + 0.22 * n_rows, 10.0)
        ax = axes(ax, *size)
        image = ax.imshow(
            np.ma.masked_invalid(self.sigmas),
            cmap=diverging(ax),
            vmin=-LIMIT,
            vmax=LIMIT,
            aspect="auto",
            interpolation="nearest",
        )
        ax.hlines(np.arange(n_rows - 1) + 0.5, -0.5, n_columns - 0.5, color=ink(ax, 0.1), lw=0.5)
        ax.vlines(np.arange(n_columns - 1) + 0.5, -0.5, n_rows - 0.5, color=ink(ax, 0.1), lw=0.5)
        dot = max(3.0, min(16.0, 700 / max(n_rows, n_columns)))
        down, across = np.nonzero(self.flags)
        ax.scatter(across, down, s=dot, c=[ink(ax, 0.0)], edgecolors=[ink(ax)], linewidths=0.8)
        down, across = np.nonzero(np.isnan(self.sigmas))
        ax.scatter(across, down, s=2 * dot, c=[ink(ax, 0.35)], marker="_", linewidths=1.0)
        few = max((len(name) for name in self.columns), default=0) <= 3
        ax.set_xticks(range(n_columns), self.columns, rotation=0 if few else 90, **AS_WRITTEN)
        ax.set_yticks(range(n_rows), self.rows, **AS_WRITTEN)
        ax.tick_params(length=0, labelsize=SMALL)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("row" + _others(self.n_left_out[0]))
        ax.set_xlabel("column" + _others(self.n_left_out[1]))
        self.colorbar_ = figure_of(ax).colorbar(image, ax=ax, extend="both", shrink=0.8, pad=0.02)
        self.colorbar_.set_label("residual in sigmas (dot: flagged)")
        self.colorbar_.outline.set_visible(False)
        return self.drawn_on(ax)


def _residuals(model: Any, X: Any) -> tuple[Array, Array]:
    """Residuals of all entries in standard deviations of their column, and the flags."""
    A = dense(X)
    errors = A - dense(restored(model, X))
    if hasattr(model, "flag_entries"):
        noise = np.asarray(model.column_noise_, dtype=np.float64)
        flags = np.asarray(model.flag_entries(X))
    else:
        noise = np.nanmedian(np.abs(errors), axis=0) / stats.norm.ppf(0.75)
        flags = None
    # Without noise whatever is not exact is wrong.
    floor = 1e-9 * np.nanmax(np.abs(A), axis=0, initial=np.finfo(np.float64).tiny)
    sigmas = errors / np.maximum(noise, floor)
    if flags is None:
        flags = np.abs(np.nan_to_num(sigmas)) > stats.norm.isf(RATE / 2)
    return sigmas, flags


def _others(count: int) -> str:
    return f" ({count} others are not shown)" if count else ""
