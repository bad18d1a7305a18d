"""Pictures of how a fit went: convergence, and paths of a parameter."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.tools.plot.style import BLUE, RED, SMALL, Display, axes, ink, plain_numbers, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ConvergenceDisplay", "PathDisplay"]


@dataclass
class ConvergenceDisplay(Display):
    """How a fit approached its end.

    Make one with `from_estimator`, which shows how far the objective was above its last value, or
    with `from_progress`, which shows what the fit compares with its tolerance.

    Parameters
    ----------
    values : ndarray of shape (n_passes,)
        What is drawn.
    first : int
        Number of the first pass.
    quantity : str
        What the values are.
    tol : float or None, default=None
        Tolerance, drawn as a line.

    Attributes
    ----------
    ax_ : Axes
        Where they were drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from robustpca import EPCA, plot
    >>> from robustpca.datasets import make_subspace_with_outliers
    >>> X = make_subspace_with_outliers(random_state=0).X
    >>> history = []
    >>> model = EPCA(4, callback=history.append).fit(X)
    >>> display = plot.ConvergenceDisplay.from_estimator(model)
    >>> display = plot.ConvergenceDisplay.from_progress(history, tol=model.tol)
    """

    values: Array
    first: int
    quantity: str
    tol: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: "Axes | None" = None) -> Self:
        """Draw how far the objective was above its smallest value, as a share of its first.

        Parameters
        ----------
        estimator : estimator
            A fitted model that has ``objective_``, or a pipeline that ends with one.
        X : None
            Ignored.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ConvergenceDisplay
            The picture.
        """
        model = estimator[-1] if hasattr(estimator, "named_steps") else estimator
        check_is_fitted(model)
        objective = np.asarray(getattr(model, "objective_", ()), dtype=np.float64)
        objective = objective[np.isfinite(objective)]
        if len(objective) < 2:
            raise ValueError(
                f"{type(model).__name__} has no course of an objective to draw: it was fitted "
                "without passes, or minimises none."
            )
        scale = max(abs(objective[0]), np.finfo(np.float64).tiny)
        # An objective that grows is one that is maximised.
        distance = np.abs(objective - objective[-1]) / scale
        return cls(distance, 0, "objective: distance to its last value").plot(ax)

    @classmethod
    def from_progress(
        cls, history: Iterable[Any], *, tol: float | None = None, ax: "Axes | None" = None
    ) -> Self:
        """Draw the change of each pass that counts, which a fit compares with its tolerance.

        Parameters
        ----------
        history : iterable of Progress
            What a callback received, as the list in ``EPCA(callback=history.append)``.
        tol : float, default=None
            The tolerance, drawn as a line.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ConvergenceDisplay
            The picture.
        """
        steps = [step for step in history if step.counted]
        if not steps:
            raise ValueError("There is no pass to draw: pass callback=history.append to the model.")
        values = np.array([step.change for step in steps], dtype=np.float64)
        return cls(values, steps[0].iteration, "change of a pass", tol).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the course.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : ConvergenceDisplay
            This object.
        """
        from matplotlib.ticker import MaxNLocator

        ax = axes(ax, 5.6, 3.6)
        tidy(ax)
        shown = np.where(np.isfinite(self.values) & (self.values > 0), self.values, np.nan)
        places = self.first + np.arange(len(shown))
        marker = "o" if len(shown) <= 60 else ""
        ax.plot(places, shown, color=BLUE, lw=1.6, marker=marker, ms=3.5)
        if self.tol:
            ax.axhline(self.tol, color=ink(ax, 0.45), lw=0.9, ls=(0, (4, 3)))
            ax.annotate(
                f"tol = {self.tol:g}", (0, self.tol), xycoords=("axes fraction", "data"),
                xytext=(4, 3), textcoords="offset points", fontsize=SMALL,
                color=ink(ax, 0.6),
            )  # fmt: skip
        if np.isfinite(shown).any():
            ax.set_yscale("log")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("pass")
        ax.set_ylabel(self.quantity)
        return self.drawn_on(ax)


@dataclass
class PathDisplay(Display):
    """Error at hidden entries for several values of a parameter, with the rank at each value.

    The error of the median of the data is 1; the band is one standard error on both sides.
    Make one with `from_path`.

    Parameters
    ----------
    values, error, uncertainty, rank : ndarray of shape (n_values,)
        As in the result of `sparsity_path` and `smoothness_path`.
    best : float
        The value that was chosen.
    parameter : str
        Name of the parameter.

    Attributes
    ----------
    ax_ : Axes
        Where the path was drawn.
    figure_ : Figure
        The figure of the axes.

    Examples
    --------
    >>> from robustpca import plot, sparsity_path
    >>> from robustpca.datasets import make_low_rank_plus_sparse
    >>> X = make_low_rank_plus_sparse(60, 30, 2, random_state=0).X
    >>> display = plot.PathDisplay.from_path(sparsity_path(X))
    """

    values: Array
    error: Array
    uncertainty: Array
    rank: Array
    best: float
    parameter: str

    @classmethod
    def from_path(cls, path: Any, *, ax: "Axes | None" = None) -> Self:
        """Draw the result of `sparsity_path` or `smoothness_path`.

        Parameters
        ----------
        path : Path
            The result.
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : PathDisplay
            The picture.
        """
        name = " and ".join(path.parameters)
        return cls(path.values, path.error, path.uncertainty, path.rank, path.best, name).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        display : PathDisplay
            This object.
        """
        ax = axes(ax, 5.8, 3.8)
        tidy(ax)
        order = np.argsort(self.values)
        values, error = np.asarray(self.values)[order], np.asarray(self.error)[order]
        spread, rank = np.asarray(self.uncertainty)[order], np.asarray(self.rank)[order]
        if values[0] > 0 and values[-1] > 4 * values[0]:
            ax.set_xscale("log")
            ax.set_xlim(values[0] / 1.15, values[-1] * 1.15)
            plain_numbers(ax, "x")
        ax.fill_between(values, error - spread, error + spread, color=BLUE, alpha=0.15, lw=0)
        ax.plot(values, error, color=BLUE, marker="o", ms=5, lw=1.6)
        ax.set_ylim(0, 1.15 * float(np.max(error + spread)))
        chosen = int(np.argmin(np.abs(values - self.best)))
        ax.plot(values[chosen], error[chosen], "o", ms=11, mfc="none", mec=RED, mew=1.8)
        for i, (value, height) in enumerate(zip(values, error, strict=True)):
            ax.annotate(
                f"rank {rank[i]}" if i in (0, chosen) else str(rank[i]),
                (value, height + spread[i]), xytext=(0, 8), textcoords="offset points",
                ha="center", fontsize=SMALL, color=RED if i == chosen else ink(ax, 0.65),
            )  # fmt: skip
        ax.set_xlabel(f"{self.parameter} (chosen: {self.best:.3g})")
        ax.set_ylabel("error at hidden entries")
        return self.drawn_on(ax)
