"""Pictures of rows: the outlier map, and scores along two components."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array, square_norms
from robustpca.models.flags import robust_scatter
from robustpca.tools.plot.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SMALL,
    Display,
    axes,
    dense,
    figure_of,
    ink,
    last_step,
    log_if_needed,
    place_labels,
    row_labels,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OutlierMapDisplay", "ScoresDisplay"]

# Plain PCA calls a row an outlier beyond this quantile of Gaussian distances.
CLASSICAL = 0.975
# Share of Gaussian rows inside of the ellipse.
INSIDE = 0.975


@dataclass
class OutlierMapDisplay(Display):
    """Outlier map: the two distances of each row, and where they become unusual [1]_.

    A row far from the centre *within* the subspace has a large score distance; one that the
    subspace does not describe has a large orthogonal distance. The two cutoffs make four fields:
    regular rows; good leverage, far out but described; orthogonal outliers; and bad leverage,
    which turns the components of plain PCA towards itself.

    Make one with `from_estimator`.

    Parameters
    ----------
    score_distances, orthogonal_distances : ndarray of shape (n_samples,)
        The distances of each row.
    score_cutoff, orthogonal_cutoff : float
        Where the lines are drawn.
    is_outlier : ndarray of bool, of shape (n_samples,)
        Which rows are flagged; they are drawn in the colour of their field.
    badness : ndarray of shape (n_samples,)
        Which rows to label first: those with the largest value.
    labels : sequence of str
        Names of the rows.

    Attributes
    ----------
    kinds_ : ndarray of int, of shape (n_samples,)
        Field of each row as a place in ``FIELDS``; rows that are not flagged are regular.
    labels_ : list of Annotation
        The labels that were written.
    ax_ : Axes
        Where the map was drawn.
    figure_ : Figure
        The figure of the axes.

    References
    ----------
    .. [1] Hubert, Rousseeuw, Vanden Branden, ROBPCA: a new approach to robust principal component
       analysis, Technometrics 2005.

    Examples
    --------
    >>> from robustpca import PCAAN, plot
    >>> from robustpca.datasets import make_subspace_with_outliers
    >>> X = make_subspace_with_outliers(random_state=0).X
    >>> display = plot.OutlierMapDisplay.from_estimator(PCAAN().fit(X), X)
    >>> display.figure_.savefig("map.png")  # doctest: +SKIP
    """

    FIELDS: ClassVar[tuple[str, ...]] = (
        "regular",
        "good leverage",
        "orthogonal outlier",
        "bad leverage",
    )

    score_distances: Array
    orthogonal_distances: Array
    score_cutoff: float
    orthogonal_cutoff: float
    is_outlier: Array
    badness: Array
    labels: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        labels: Sequence[Any] | None = None,
        n_labels: int = 6,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the outlier map of rows by a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted model of this library; or scikit-learn's PCA, for which the classical
            distances and their Gaussian cutoffs are drawn; or a pipeline that ends with one.
        X : array or data frame of shape (n_samples, n_features)
            The rows.
        labels : sequence, default=None
            Names of the rows; None for the index of a data frame, or the number of the row.
        n_labels : int, default=6
            At most so many flagged rows are labelled, the worst ones.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : OutlierMapDisplay
            The map.
        """
        model, rows = last_step(estimator, X)
        check_is_fitted(model)
        found = _distances(model, rows)
        names = row_labels(X, labels, len(found["badness"]))
        return cls(**found, labels=names).plot(ax, n_labels=n_labels)

    def plot(self, ax: "Axes | None" = None, *, n_labels: int = 6) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.
        n_labels : int, default=6
            At most so many flagged rows are labelled.

        Returns
        -------
        display : OutlierMapDisplay
            This object.
        """
        from matplotlib.patheffects import withStroke

        ax = axes(ax, 6.4, 4.8)
        tidy(ax)
        x = log_if_needed(ax, "x", self.score_distances, self.score_cutoff)
        y = log_if_needed(ax, "y", self.orthogonal_distances, self.orthogonal_cutoff)
        lines: dict[str, Any] = {"color": ink(ax, 0.45), "lw": 0.9, "ls": (0, (4, 3)), "zorder": 1}
        ax.axvline(self.score_cutoff, **lines)
        ax.axhline(self.orthogonal_cutoff, **lines)
        kinds = self._kinds()
        # Two names must fit beside each other.
        inches = ax.get_window_extent().width / figure_of(ax).dpi
        small = min(SMALL + 0.5, max(6.5, 2.2 * inches))
        for kind, (color, marker, size) in enumerate(
            ((GREY, "o", 14), (GREEN, "^", 26), (ORANGE, "s", 22), (RED, "D", 22))
        ):
            here = kinds == kind
            ax.scatter(
                x[here], y[here], s=size, c=color, marker=marker, alpha=0.75 if kind else 0.55,
                linewidths=0, zorder=2 + bool(kind), label=self.FIELDS[kind],
            )  # fmt: skip
            right, top = kind in (1, 3), kind in (2, 3)
            ax.annotate(
                f"{self.FIELDS[kind]} ({np.count_nonzero(here)})",
                (float(right), float(top)),
                xycoords="axes fraction",
                xytext=(-4 if right else 6, -4 if top else 5),
                textcoords="offset points",
                ha="right" if right else "left",
                va="top" if top else "bottom",
                fontsize=small,
                fontweight="bold",
                color=color if kind else ink(ax, 0.65),
                path_effects=[withStroke(linewidth=2.5, foreground=ink(ax, 0.0))],
                zorder=4,
            )
        ax.set_xlabel("score distance: from the centre, within the subspace")
        ax.set_ylabel("orthogonal distance: from the subspace")
        worst = np.argsort(-np.where(self.is_outlier, self.badness, -np.inf))
        worst = worst[: min(n_labels, np.count_nonzero(self.is_outlier))]
        points = np.column_stack([x, y])
        self.kinds_ = kinds
        self.labels_ = place_labels(ax, points[worst], [self.labels[i] for i in worst], points)
        return self.drawn_on(ax)

    def _kinds(self) -> Array:
        across = self.score_distances / self.score_cutoff
        away = self.orthogonal_distances / self.orthogonal_cutoff
        # Two distances just below their cutoffs can make an outlier together.
        largest = np.maximum(across, away)
        far = np.minimum(largest, 1.0)
        kinds = 1 * (across >= far) + 2 * (away >= far)
        return np.where(self.is_outlier, kinds, 0)


def _distances(model: Any, X: Any) -> dict[str, Any]:
    """Both distances of rows, the cutoffs, and which rows are outliers."""
    if hasattr(model, "score_distances"):
        return {
            "score_distances": model.score_distances(X),
            "orthogonal_distances": model.orthogonal_distances(X),
            "score_cutoff": model.score_cutoff_,
            "orthogonal_cutoff": model.orthogonal_cutoff_,
            "is_outlier": model.decision_function(X) < 0,
            "badness": -model.score_samples(X),
        }
    if not all(hasattr(model, name) for name in ("components_", "explained_variance_", "mean_")):
        raise ValueError(
            f"{type(model).__name__} has no distances of rows: pass a fitted model of this library "
            "that has a subspace, or scikit-learn's PCA."
        )
    centred = dense(X) - model.mean_
    codes = centred @ model.components_.T
    score = np.sqrt(square_norms(codes / np.sqrt(np.maximum(model.explained_variance_, 1e-300))))
    orthogonal = np.sqrt(square_norms(centred - codes @ model.components_))
    score_cutoff = float(np.sqrt(stats.chi2.ppf(CLASSICAL, codes.shape[1])))
    # Wilson and Hilferty: squared distances to the power 1/3 are nearly Gaussian.
    roots = orthogonal ** (2 / 3)
    limit = float(roots.mean() + roots.std() * stats.norm.ppf(CLASSICAL)) ** 1.5
    return {
        "score_distances": score,
        "orthogonal_distances": orthogonal,
        "score_cutoff": score_cutoff,
        "orthogonal_cutoff": max(limit, float(np.finfo(np.float64).tiny)),
        "is_outlier": (score > score_cutoff) | (orthogonal > limit),
        "badness": np.maximum(score / score_cutoff, orthogonal / max(limit, 1e-300)),
    }


@dataclass
class ScoresDisplay(Display):
    """Scores of rows along two components, with an ellipse that holds nearly all clean rows.

    Make one with `from_estimator`.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, 2)
        Scores along the two components.
    is_outlier : ndarray of bool, of shape (n_samples,)
        Which rows are flagged.
    badness : ndarray of shape (n_samples,)
        Which rows to label first: those with the largest value.
    labels : sequence of str
        Names of the rows.
    center : ndarray of shape (2,)
        Centre of the ellipse.
    axes : ndarray of shape (2, 2)
        Its half axes, one in each column.
    titles : tuple of two str
        What to write at the axes.

    Attributes
    ----------
    labels_ : list of Annotation
        The labels that were written.
    ax_ : Axes
        Where the scores were drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from robustpca import PCAAN, plot
    >>> from robustpca.datasets import make_subspace_with_outliers
    >>> X = make_subspace_with_outliers(random_state=0).X
    >>> display = plot.ScoresDisplay.from_estimator(PCAAN(2).fit(X), X)
    """

    scores: Array
    is_outlier: Array
    badness: Array
    labels: Sequence[str]
    center: Array
    axes: Array
    titles: tuple[str, str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        components: tuple[int, int] = (0, 1),
        labels: Sequence[Any] | None = None,
        n_labels: int = 6,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw scores of rows by a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted model, or a pipeline that ends with one.
        X : array or data frame of shape (n_samples, n_features)
            The rows.
        components : tuple of two int, default=(0, 1)
            Which components.
        labels : sequence, default=None
            Names of the rows; None for the index of a data frame, or the number of the row.
        n_labels : int, default=6
            At most so many flagged rows are labelled, the worst ones.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ScoresDisplay
            The picture.
        """
        model, rows = last_step(estimator, X)
        check_is_fitted(model)
        codes = np.asarray(model.transform(rows), dtype=np.float64)
        if max(components) >= codes.shape[1] or min(components) < 0:
            raise ValueError(
                f"components={tuple(components)} are not all there: the model has "
                f"{codes.shape[1]}, counted from 0. Fit it with a larger n_components."
            )
        found = _distances(model, rows)
        pair = codes[:, list(components)]
        center, half_axes = _ellipse(pair)
        shares = getattr(model, "explained_variance_ratio_", None)
        titles = [
            f"component {i + 1}" + ("" if shares is None else f" ({shares[i]:.0%} of variance)")
            for i in components
        ]
        return cls(
            pair,
            found["is_outlier"],
            found["badness"],
            row_labels(X, labels, len(pair)),
            center,
            half_axes,
            (titles[0], titles[1]),
        ).plot(ax, n_labels=n_labels)

    def plot(self, ax: "Axes | None" = None, *, n_labels: int = 6) -> Self:
        """Draw the scores.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.
        n_labels : int, default=6
            At most so many flagged rows are labelled.

        Returns
        -------
        display : ScoresDisplay
            This object.
        """
        ax = axes(ax, 6.0, 4.8)
        tidy(ax)
        turn = np.linspace(0, 2 * np.pi, 181)
        outline = self.center + np.column_stack([np.cos(turn), np.sin(turn)]) @ self.axes.T
        ax.fill(*outline.T, color=BLUE, alpha=0.08, lw=0, zorder=1)
        ax.plot(*outline.T, color=BLUE, lw=1.2, zorder=1, label=f"{INSIDE:.1%} of clean rows")
        for flagged, color, marker, size, name in (
            (False, GREY, "o", 14, "regular"),
            (True, RED, "D", 22, "flagged"),
        ):
            here = self.is_outlier == flagged
            x, y = self.scores[here].T
            ax.scatter(
                x, y, s=size, c=color, marker=marker, linewidths=0,
                alpha=0.75 if flagged else 0.55, zorder=2 + flagged,
                label=f"{name} ({np.count_nonzero(here)})",
            )  # fmt: skip
        ax.margins(0.08)
        for side, values, half in zip("xy", self.scores.T, np.abs(self.axes).sum(1), strict=True):
            # Rows that are very far away would make all others one dot.
            if np.abs(values).max(initial=0.0) > 12 * half > 0:
                self._compress(ax, side, 2 * float(half))
        ax.set_xlabel(self.titles[0])
        ax.set_ylabel(self.titles[1])
        ax.legend(frameon=False, fontsize=SMALL, loc="best", handletextpad=0.4)
        worst = np.argsort(-np.where(self.is_outlier, self.badness, -np.inf))
        worst = worst[: min(n_labels, np.count_nonzero(self.is_outlier))]
        names = [self.labels[i] for i in worst]
        self.labels_ = place_labels(ax, self.scores[worst], names, self.scores)
        return self.drawn_on(ax)

    @staticmethod
    def _compress(ax: "Axes", side: str, linear: float) -> None:
        """Make an axis logarithmic outside of a linear middle, which has one tick at 0."""
        from matplotlib.ticker import SymmetricalLogLocator

        getattr(ax, f"set_{side}scale")("symlog", linthresh=linear, linscale=1.5)
        first = 10.0 ** np.ceil(np.log10(linear))
        locator = SymmetricalLogLocator(base=10, linthresh=first)
        getattr(ax, f"{side}axis").set_major_locator(locator)


def _ellipse(scores: Array) -> tuple[Array, Array]:
    """Robust centre of points of the plane, and half axes that hold most clean ones."""
    units = np.maximum(scores.std(axis=0), 1e-300)
    scatter, _ = robust_scatter(scores / units)
    # The inverse of the whitener turns a circle into the ellipse.
    half_axes = np.linalg.pinv(scatter.whitener.T) * np.sqrt(stats.chi2.ppf(INSIDE, 2))
    return scatter.center * units, units[:, None] * half_axes
