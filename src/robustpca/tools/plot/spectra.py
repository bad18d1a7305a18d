"""Pictures of components: variances, loadings, singular values before and after."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import svdvals
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.tools.plot.style import (
    AS_WRITTEN,
    BLUE,
    GREY,
    SMALL,
    Display,
    axes,
    column_names,
    dense,
    diverging,
    filled,
    ink,
    last_step,
    plain_numbers,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LoadingsDisplay", "ScreeDisplay", "SingularValuesDisplay"]


@dataclass
class ScreeDisplay(Display):
    """Variance along each component, robust beside classical.

    Where the two differ, few rows or entries make the variance that plain PCA sees. Make one with
    `from_estimator`.

    Parameters
    ----------
    robust : ndarray of shape (n_components,)
        Variances along the components of the model.
    classical : ndarray of shape (n_directions,)
        Variances along those of plain PCA.
    name : str
        Name of the model.

    Attributes
    ----------
    ax_ : Axes
        Where the variances were drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from robustpca import PCAAN, plot
    >>> from robustpca.datasets import make_subspace_with_outliers
    >>> X = make_subspace_with_outliers(random_state=0).X
    >>> display = plot.ScreeDisplay.from_estimator(PCAAN(4).fit(X), X)
    """

    robust: Array
    classical: Array
    name: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_components: int = 12, ax: "Axes | None" = None
    ) -> Self:
        """Draw the variances along the components of a fitted model and of plain PCA.

        Parameters
        ----------
        estimator : estimator
            A fitted model, or a pipeline that ends with one.
        X : array or data frame of shape (n_samples, n_features)
            The rows it was fitted to. For plain PCA, missing entries are filled with the median
            of their column.
        n_components : int, default=12
            At most so many components are drawn.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ScreeDisplay
            The picture.
        """
        model, rows = last_step(estimator, X)
        check_is_fitted(model)
        A = filled(dense(rows))
        variances = svdvals(A - A.mean(axis=0)) ** 2 / max(len(A) - 1, 1)
        return cls(
            np.asarray(model.explained_variance_)[:n_components],
            variances[:n_components],
            type(model).__name__,
        ).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the variances.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ScreeDisplay
            This object.
        """
        ax = axes(ax, 5.6, 3.8)
        tidy(ax)
        high = max(self.robust.max(initial=0.0), self.classical.max(initial=0.0))
        shown = np.concatenate([self.robust, self.classical])
        shown = shown[shown > 1e-12 * high]
        if len(shown) and shown.max() > 50 * shown.min():
            ax.set_yscale("log")
            ax.set_ylim(shown.min() / 1.6, shown.max() * 1.6)
            plain_numbers(ax, "y")
        else:
            ax.set_ylim(0, 1.08 * high if high > 0 else 1.0)
        for values, color, marker, name in (
            (self.classical, GREY, "s", "plain PCA"),
            (self.robust, BLUE, "o", self.name),
        ):
            places = np.arange(1, len(values) + 1)
            values = np.where(values > 1e-12 * high, values, np.nan)
            ax.plot(places, values, marker=marker, ms=5, lw=1.6, color=color, label=name)
        _whole_numbers(ax)
        ax.set_xlabel("component")
        ax.set_ylabel("variance along it")
        ax.legend(frameon=False, fontsize=SMALL)
        return self.drawn_on(ax)


@dataclass
class SingularValuesDisplay(Display):
    """Singular values of the data and of what a model makes of them.

    Errors of entries lift all singular values; those of the low-rank part end at its rank. Make
    one with `from_estimator`.

    Parameters
    ----------
    before, after : ndarray
        Singular values of the data and of the model's version of them, largest first.
    name : str
        Name of the model.

    Attributes
    ----------
    ax_ : Axes
        Where they were drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from robustpca import RPCA, plot
    >>> from robustpca.datasets import make_low_rank_plus_sparse
    >>> X = make_low_rank_plus_sparse(100, 40, 3, noise=0.1, random_state=0).X
    >>> display = plot.SingularValuesDisplay.from_estimator(RPCA().fit(X), X)
    """

    before: Array
    after: Array
    name: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_values: int = 60, ax: "Axes | None" = None
    ) -> Self:
        """Draw the singular values of data before and after a model.

        Parameters
        ----------
        estimator : estimator
            A fitted model, or a pipeline that ends with one.
        X : array or data frame of shape (n_samples, n_features)
            The rows; missing entries count as the median of their column.
        n_values : int, default=60
            At most so many values are drawn.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : SingularValuesDisplay
            The picture.
        """
        model, rows = last_step(estimator, X)
        check_is_fitted(model)
        after = restored(model, rows)
        return cls(
            svdvals(filled(dense(rows)))[:n_values],
            svdvals(dense(after))[:n_values],
            type(model).__name__,
        ).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the singular values.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : SingularValuesDisplay
            This object.
        """
        ax = axes(ax, 5.6, 3.8)
        tidy(ax)
        high = max(self.before.max(initial=0.0), self.after.max(initial=0.0))
        # Beyond the rank there is rounding error, which is no news.
        shown = [np.where(values > 1e-6 * high, values, np.nan) for values in self._both]
        rank = int(np.count_nonzero(np.isfinite(shown[1])))
        for values, color, marker, name in (
            (shown[0], GREY, "s", "data as given"),
            (shown[1], BLUE, "o", f"{self.name}: rank {rank}"),
        ):
            places = np.arange(1, len(values) + 1)
            ax.plot(places, values, marker=marker, ms=3.5, lw=1.4, color=color, label=name)
        ax.set_yscale("log")
        positive = np.concatenate(shown)
        positive = positive[np.isfinite(positive)]
        if len(positive):
            ax.set_ylim(positive.min() / 1.6, positive.max() * 1.6)
            plain_numbers(ax, "y")
        _whole_numbers(ax)
        ax.set_xlabel("number")
        ax.set_ylabel("singular value")
        ax.legend(frameon=False, fontsize=SMALL)
        return self.drawn_on(ax)

    @property
    def _both(self) -> tuple[Array, Array]:
        return self.before, self.after


@dataclass
class LoadingsDisplay(Display):
    """How much each feature counts for each component, as a heat map.

    Make one with `from_estimator`.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_components)
        Entries of the components, which are unit vectors.
    features : sequence of str
        Names of the features.
    shares : ndarray of shape (n_components,) or None
        Share of the variance along each component.
    n_left_out : int, default=0
        Number of features that are not shown.

    Attributes
    ----------
    ax_ : Axes
        Where they were drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from robustpca import PCAAN, plot
    >>> X = load_wine().data
    >>> display = plot.LoadingsDisplay.from_estimator(PCAAN(3).fit(X), X)
    """

    loadings: Array
    features: Sequence[str]
    shares: Array | None = None
    n_left_out: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        features: Sequence[Any] | None = None,
        n_components: int = 6,
        n_features: int = 20,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the loadings of a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted model, or a pipeline that ends with one and keeps the columns.
        X : data frame, default=None
            Its columns are the names of the features, unless these are given.
        features : sequence, default=None
            Names of the features; None for those the model was fitted with, or numbers.
        n_components : int, default=6
            At most so many components are drawn.
        n_features : int, default=20
            At most so many features are drawn, those that count most.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : LoadingsDisplay
            The picture.
        """
        model = last_step(estimator, X)[0] if X is not None else _model(estimator)
        check_is_fitted(model)
        components = np.asarray(model.components_, dtype=np.float64)[:n_components]
        if features is None:
            features = getattr(estimator, "feature_names_in_", None)
        names = column_names(X, features, components.shape[1])
        shares = getattr(model, "explained_variance_ratio_", None)
        shares = None if shares is None else np.asarray(shares)[: len(components)]
        sizes = np.ones(len(components)) if shares is None else np.maximum(shares, 1e-12)
        importance = sizes @ components**2
        most = np.argsort(-importance, kind="stable")[:n_features]
        most.sort()
        left_out = components.shape[1] - len(most)
        return cls(components[:, most].T, [names[i] for i in most], shares, left_out).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the loadings.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : LoadingsDisplay
            This object.
        """
        n_features, n_components = self.loadings.shape
        ax = axes(ax, 2.4 + 0.75 * n_components, 0.9 + 0.27 * n_features)
        limit = max(float(np.abs(self.loadings).max(initial=0.0)), 1e-12)
        colors = diverging(ax)
        ax.imshow(self.loadings, cmap=colors, vmin=-limit, vmax=limit, aspect="auto")
        for (i, j), value in np.ndenumerate(self.loadings):
            red, green, blue, _ = colors(0.5 + value / limit / 2)
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            ax.text(
                j, i, f"{value:+.2f}", ha="center", va="center", fontsize=SMALL - 0.5,
                color="white" if dark else "black", alpha=1.0 if abs(value) > limit / 4 else 0.55,
            )  # fmt: skip
        shares = [""] * n_components
        if self.shares is not None:
            shares = [f"\n{share:.0%}" for share in self.shares]
        ax.set_xticks(range(n_components), [f"{i + 1}{shares[i]}" for i in range(n_components)])
        ax.set_yticks(range(n_features), self.features, **AS_WRITTEN)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        # On two lines, because two components are narrower than one.
        ax.set_xlabel("component, and its\nshare of the variance" if any(shares) else "component")
        if self.n_left_out:
            ax.annotate(
                f"and {self.n_left_out} features that count less",
                (0, 0), xytext=(0, -6), xycoords="axes fraction", textcoords="offset points",
                va="top", fontsize=SMALL, color=ink(ax, 0.6),
            )  # fmt: skip
        return self.drawn_on(ax)


def restored(model: Any, X: Any) -> Array:
    """What a model makes of rows: their low-rank part, or their projection on the subspace."""
    if hasattr(model, "decompose"):
        return np.asarray(model.decompose(X)[0])
    return np.asarray(model.inverse_transform(model.transform(X)))


def _model(estimator: Any) -> Any:
    return estimator[-1] if hasattr(estimator, "named_steps") else estimator


def _whole_numbers(ax: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
