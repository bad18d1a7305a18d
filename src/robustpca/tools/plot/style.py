"""What all pictures have in common: colours, axes, labels that do not cover each other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from robustpca.engine.linalg import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

# After Okabe and Ito: told apart by colour-blind people, and readable on white and on black.
BLUE, ORANGE, RED, GREEN, GREY = "#2f82c2", "#e69f00", "#d55e00", "#009e73", "#8a929c"
SMALL = 8.5
# Names of the user are no formulas, though they may have dollars.
AS_WRITTEN: dict[str, Any] = {"parse_math": False}


class Display:
    """Base of all pictures: where it was drawn last."""

    ax_: "Axes"
    figure_: "Figure"

    def drawn_on(self, ax: "Axes") -> Self:
        """Keep the axes and their figure.

        Parameters
        ----------
        ax : Axes
            Where the picture was drawn.

        Returns
        -------
        display : Display
            This object.
        """
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def figure_of(ax: "Axes") -> "Figure":
    """The figure that holds the axes, or the subfigure that holds them."""
    figure: Figure = ax.figure.canvas.figure
    return figure


def axes(ax: "Axes | None", width: float = 6.0, height: float = 4.5) -> "Axes":
    """The axes to draw on: those given, or the only ones of a new figure of pyplot."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def tidy(ax: "Axes") -> None:
    """Leave the two spines that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)


def ground(ax: "Axes") -> Array:
    """The colour behind the picture, as red, green and blue."""
    from matplotlib.colors import to_rgba

    red, green, blue, opacity = to_rgba(ax.get_facecolor())
    if opacity < 0.5:
        red, green, blue, opacity = to_rgba(figure_of(ax).get_facecolor())
    return np.array([red, green, blue]) if opacity >= 0.5 else np.ones(3)


def ink(ax: "Axes", strength: float = 1.0) -> tuple[float, float, float]:
    """The colour of text: between that of the background (0) and its opposite (1)."""
    behind = ground(ax)
    opposite = 0.08 if behind @ [0.3, 0.59, 0.11] > 0.5 else 0.95
    red, green, blue = (1 - strength) * behind + strength * opposite
    return float(red), float(green), float(blue)


def diverging(ax: "Axes") -> "LinearSegmentedColormap":
    """Colours of signed numbers: 0 is the background, blue is below and orange above."""
    from matplotlib.colors import LinearSegmentedColormap

    behind = tuple(ground(ax))
    below, above = ("#0b4a7d", BLUE), ("#f08a24", "#a33b00")
    if ink(ax)[0] > 0.5:  # on black the strongest colours are the brightest
        below, above = ("#9fd4ff", BLUE), (RED, "#ffd09a")
    # An odd number of colours has one in the middle, which is 0.
    return LinearSegmentedColormap.from_list("signed", [*below, behind, *above], N=257)


def log_if_needed(ax: "Axes", side: str, values: Array, cutoff: float) -> Array:
    """Make an axis logarithmic if most values would not be seen; values it can show."""
    high = float(np.max(values, initial=cutoff))
    if not high > 8 * cutoff > 0:
        getattr(ax, f"set_{side}lim")(0, 1.08 * high if high > 0 else 1.0)
        return values
    usual = values[values > 1e-3 * cutoff]
    low = 0.7 * min(float(usual.min(initial=cutoff)), 0.5 * cutoff)
    getattr(ax, f"set_{side}scale")("log")
    getattr(ax, f"set_{side}lim")(low, high * (high / low) ** 0.08)
    plain_numbers(ax, side)
    return np.maximum(values, 1.1 * low)


def plain_numbers(ax: "Axes", side: str) -> None:
    """Numbers such as 0.1 and 20 instead of powers of ten, if there are few powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = getattr(ax, f"{side}axis")
    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    if decades < 5:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 1.6 else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def place_labels(ax: "Axes", points: Array, texts: Sequence[str], others: Array) -> list[Any]:
    """Write texts beside points of the axes, where they cover neither text nor points.

    Places are tried from near to far in eight directions; a text that is not at its point has a
    line to it, and one without any free place is left out.
    """
    figure = figure_of(ax)
    figure.draw_without_rendering()  # the layout decides where the points are
    to_pixels, frame = ax.transData.transform, ax.get_window_extent()
    points, others = to_pixels(points), to_pixels(others)
    unit = figure.dpi / 72
    taken = [text.get_window_extent() for text in ax.texts]
    legend = ax.get_legend()
    taken += [legend.get_window_extent()] if legend is not None else []
    labels = []
    for point, text in zip(points, texts, strict=True):
        label: Any = ax.annotate(
            text,
            tuple(ax.transData.inverted().transform(point)),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=SMALL,
            color=ink(ax, 0.9),
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "color": ink(ax, 0.45), "lw": 0.6, "shrinkB": 3},
            zorder=5,
            **AS_WRITTEN,
        )
        box = label.get_window_extent()
        size = np.array([box.width, box.height]) / 2
        for offset, far in _places(size, unit):
            low, high = point + offset - size - 1, point + offset + size + 1
            crowded = ((others > low - unit) & (others < high + unit)).all(axis=1).any()
            apart = all(
                low[0] > b.x1 or high[0] < b.x0 or low[1] > b.y1 or high[1] < b.y0 for b in taken
            )
            inside = (low >= frame.min).all() and (high <= frame.max).all()
            if apart and inside and not crowded:
                label.set_position(tuple(offset / unit))
                label.arrow_patch.set_visible(far)
                taken.append(label.get_window_extent())
                labels.append(label)
                break
        else:
            label.remove()
    return labels


def _places(size: Array, unit: float) -> list[tuple[Array, bool]]:
    """Offsets of the middle of a text from its point, and whether it needs a line."""
    places = []
    for gap in (5, 14, 26, 40, 58):
        for x, y in ((1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1)):
            direction = np.array([x, y], dtype=float)
            places.append((direction * size + direction * gap * unit, gap > 5))
    return places


def last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The model at the end of a pipeline, and the data as they reach it."""
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X


def row_labels(X: Any, labels: Sequence[Any] | None, n_rows: int) -> list[str]:
    """Names of rows: those given, those of the index of a data frame, or their numbers."""
    if labels is None:
        labels = getattr(X, "index", None)
        labels = range(n_rows) if labels is None or callable(labels) else labels
    names = [str(label) for label in labels]
    if len(names) != n_rows:
        raise ValueError(f"There are {len(names)} labels and {n_rows} rows: pass one for each row.")
    return names


def column_names(X: Any, names: Sequence[Any] | None, n_columns: int) -> list[str]:
    """Names of columns: those given, those of a data frame, or their numbers."""
    if names is None:
        names = getattr(X, "columns", None)
        names = range(n_columns) if names is None or len(names) != n_columns else names
    texts = [str(name) for name in names]
    if len(texts) != n_columns:
        raise ValueError(
            f"There are {len(texts)} names and {n_columns} columns: pass one for each column."
        )
    return texts


def dense(X: Any) -> Array:
    """Numbers of a table or array, in double precision."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def filled(X: Array) -> Array:
    """Missing entries replaced by the median of their column."""
    missing = np.isnan(X)
    return np.where(missing, np.nanmedian(X, axis=0), X) if missing.any() else X
