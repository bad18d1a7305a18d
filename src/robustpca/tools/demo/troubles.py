"""The three troubles: plain PCA, the method that is made for it, and the best one could do."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import RobustScaler

from robustpca.engine.linalg import Array
from robustpca.metrics import foreground_scores, principal_angles
from robustpca.models import PCAAN, RPCA
from robustpca.tools.demo.scenes import photographs, slipped_records, street
from robustpca.tools.plot import OutlierMapDisplay
from robustpca.tools.plot.style import BLUE, GREY, RED, diverging, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TROUBLES", "Measure", "Trouble", "pixels", "rows", "video"]

COLUMNS = ("what you have", "plain PCA", "robustpca", "the truth")
# Grey levels by which a colour must differ from the background to count as something that moves.
DIFFERENCE = 25
MISSING = np.array([0.93, 0.2, 0.75])


@dataclass(frozen=True)
class Measure:
    """One number three times: by plain PCA, by the method, and by the best one could do."""

    name: str
    form: str
    values: Sequence[float]

    @property
    def texts(self) -> list[str]:
        """The numbers in words."""
        return [self.form.format(value) for value in self.values]


@dataclass(frozen=True)
class Trouble:
    """What was wrong, what was done, how well it went, and how to draw it.

    ``draw`` takes ``n_rows`` rows of four axes in a figure that is twelve inches wide and
    ``height`` inches high.
    """

    title: str
    story: str
    best: str
    method: str
    code: str
    measures: tuple[Measure, ...]
    draw: Callable[[Array], None]
    n_rows: int
    height: float
    seconds: float


def rows(seed: int, quick: bool = False) -> Trouble:
    """Bad rows in a group: records that lost a cell."""
    data = slipped_records(seed)
    wrong = data.is_wrong
    scaler = RobustScaler().fit(data.X)
    X = scaler.transform(data.X)
    started = time.perf_counter()
    ours = PCAAN().fit(X)
    seconds = time.perf_counter() - started
    plain = PCA(ours.n_components_).fit(X)
    truth = PCA(1).fit(scaler.transform(data.truth))
    best = PCA(1).fit(X[~wrong])
    displays = [_map(model, X) for model in (plain, ours)]
    found = [float(display.is_outlier[wrong].mean()) for display in displays]
    angles = [
        float(np.degrees(principal_angles(model.components_[:1], truth.components_)[0]))
        for model in (plain, ours, best)
    ]
    n_wrong, n_rows = int(wrong.sum()), len(wrong)

    def draw(axes: Array) -> None:
        given, left, right, compass = axes[0]
        _table(given, X, seed)
        for ax, display, share in zip((left, right), displays, found, strict=True):
            display.plot(ax, n_labels=0)
            lines = ax.scatter(
                _shown(ax, "x", display.score_distances[wrong]),
                _shown(ax, "y", display.orthogonal_distances[wrong]),
                s=34, facecolors="none", edgecolors=[ink(ax)], linewidths=0.7, zorder=4,
            )  # fmt: skip
            lines.set_label("slipped")
            ax.set_xlabel("score distance")
            ax.set_ylabel("orthogonal distance")
            _caption(ax, f"finds {round(share * n_wrong)} of {n_wrong} slipped records (ringed)")
        _compass(compass, angles)

    return Trouble(
        title="Bad rows in a group",
        story=(
            f"{n_rows} records of tumours with 30 measurements each. In {n_wrong} of them a cell "
            "was lost and the next nine moved up by one column, as happens in a spreadsheet. "
            "Plain PCA turns its first component towards them, and then finds them normal."
        ),
        best="PCA of the right records alone",
        method="PCAAN",
        code="flags = PCAAN().fit_predict(X)    # -1 for rows that do not fit the rest",
        measures=(
            Measure("slipped records found", "{:.0%}", [*found, 1.0]),
            Measure("first component is off by", "{:.0f} degrees", angles),
        ),
        draw=draw,
        n_rows=1,
        height=3.0,
        seconds=seconds,
    )


def pixels(seed: int, quick: bool = False) -> Trouble:
    """Wrong and missing entries: photographs with things in the way."""
    data = photographs(seed, 18, 8) if quick else photographs(seed)
    shape = data.X.shape
    X, clean, truth = (part.reshape(len(part), -1) for part in (data.X, data.clean, data.truth))
    started = time.perf_counter()
    ours = RPCA().fit(X)
    seconds = time.perf_counter() - started
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    restored = [_projected(filled, ours.rank_), ours.low_rank_, _projected(clean, ours.rank_)]
    norm = np.linalg.norm(truth)
    errors = [float(np.linalg.norm(part - truth) / norm) for part in restored]
    share = float(np.isnan(X).mean())
    # The one that has lost most is the one to show.
    shown = int(np.argmax(np.sum(np.abs(filled - truth) > 0.1, axis=1)))

    def draw(axes: Array) -> None:
        images = [data.X[shown], *(part.reshape(shape)[shown] for part in restored[:2])]
        captions = [
            f"{share:.0%} missing, and things in the way",
            f"off by {errors[0]:.0%}",
            f"off by {errors[1]:.1%}",
            "the photograph before",
        ]
        for ax, image, caption in zip(axes[0], [*images, data.truth[shown]], captions, strict=True):
            missing = np.isnan(image).any(axis=-1)
            _image(ax, np.where(missing[..., None], MISSING, image))
            _caption(ax, caption)

    return Trouble(
        title="Wrong and missing entries",
        story=(
            f"{len(X)} photographs of one place in changing light. In each, a tenth of the pixels "
            "is missing and things are in the way, elsewhere each time. Plain PCA, with the gaps "
            "filled by medians, smears all of it over all images; RPCA finds which pixels are "
            "wrong, and restores them from the others."
        ),
        best="PCA of the photographs before they were spoiled",
        method="RPCA",
        code="restored = RPCA().fit(X).low_rank_    # NaN in X where an entry is missing",
        measures=(Measure("restored photographs are off by", "{:.1%}", errors),),
        draw=draw,
        n_rows=1,
        height=2.6,
        seconds=seconds,
    )


def video(seed: int, quick: bool = False) -> Trouble:
    """What moves before a background in changing light."""
    data = street(seed, 45, 48) if quick else street(seed)
    shape = data.X.shape
    X, behind = data.X.reshape(len(data.X), -1), data.background.reshape(len(data.X), -1)
    labels = np.where(data.is_moving, 255, 0)
    started = time.perf_counter()
    ours = RPCA().fit(X)
    seconds = time.perf_counter() - started
    empty = data.empty.reshape(len(X), -1)
    # RPCA takes no mean off, and PCA would spend one more direction on it.
    limit = TruncatedSVD(ours.rank_, algorithm="arpack", random_state=0)
    best = limit.inverse_transform(limit.fit_transform(empty))
    backgrounds = [_projected(X, ours.rank_), ours.low_rank_, best]
    masks = [np.abs(X - part).reshape(shape).max(axis=-1) > DIFFERENCE for part in backgrounds]
    scores = [foreground_scores(labels, mask).f_measure for mask in masks]
    errors = [float(np.sqrt(np.mean((part - behind) ** 2))) for part in backgrounds]
    # The frame with the most to see, of the second half, which has another light than the first.
    shown = len(X) // 2 + int(np.argmax(data.is_moving[len(X) // 2 :].sum(axis=(1, 2))))

    def draw(axes: Array) -> None:
        images = [part.reshape(shape)[shown] for part in (X, *backgrounds[:2], behind)]
        captions = ["a frame", "background, with ghosts", "background", "background"]
        for ax, image, caption in zip(axes[0], images, captions, strict=True):
            _image(ax, image / 255)
            _caption(ax, caption)
        _curves(axes[1, 0], data.X)
        captions = [f"what moves: F-measure {score:.2f}" for score in scores[:2]]
        found = [*masks[:2], data.is_moving]
        for ax, mask, caption in zip(axes[1, 1:], found, [*captions, "what moves"], strict=True):
            _image(ax, mask[shown].astype(float))
            _caption(ax, caption)

    return Trouble(
        title="What moves in a video",
        story=(
            f"A street in {len(X)} frames. People and cars pass, a cloud darkens the scene, and "
            "evening comes. Plain PCA takes what is slow for background and leaves ghosts; RPCA "
            "keeps the light in the low-rank part and what moves in the sparse part."
        ),
        best="the same street with nobody in it, cut to the same rank",
        method="RPCA",
        code="moving = RPCA().fit(frames).sparse_    # frames in rows; the rest is low_rank_",
        measures=(
            Measure("F-measure of moving pixels, 1 is perfect", "{:.2f}", scores),
            Measure("background is off by", "{:.1f} grey levels", errors),
        ),
        draw=draw,
        n_rows=2,
        height=4.5,
        seconds=seconds,
    )


TROUBLES: tuple[Callable[[int, bool], Trouble], ...] = (rows, pixels, video)


def _map(model: Any, X: Array) -> OutlierMapDisplay:
    """The outlier map of a model, not yet drawn."""
    from matplotlib.figure import Figure

    return OutlierMapDisplay.from_estimator(model, X, n_labels=0, ax=Figure().subplots())


def _projected(X: Array, rank: int) -> Array:
    """What plain PCA makes of data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PCA(rank, random_state=0).fit(X)
    return np.asarray(model.inverse_transform(model.transform(X)))


def _shown(ax: "Axes", side: str, values: Array) -> Array:
    """Values where the map has put them: none below its lower end."""
    low = getattr(ax, f"get_{side}lim")()[0]
    return np.maximum(values, 1.1 * low)


def _table(ax: "Axes", X: Array, seed: int) -> None:
    """Some of the records, each number as a colour."""
    some = np.random.default_rng(seed).choice(len(X), 80, replace=False)
    ax.imshow(X[some], cmap=diverging(ax), vmin=-6, vmax=6, aspect="auto", interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlabel("30 measurements")
    ax.set_ylabel("records")
    _caption(ax, "a part of the table, numbers as colours")


def _compass(ax: "Axes", angles: list[float]) -> None:
    """Directions of the first component, the true one straight up."""
    for angle, color in zip(angles, (GREY, BLUE, ink(ax, 0.8)), strict=True):
        x, y = np.sin(np.radians(angle)), np.cos(np.radians(angle))
        ax.annotate(
            "", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2.2,
            "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
    turn = np.radians(np.linspace(0, 90, 60))
    ax.plot(np.sin(turn), np.cos(turn), color=ink(ax, 0.25), lw=0.8, zorder=0)
    for name, angle, color, offset in (
        ("plain PCA", angles[0], GREY, (-4, 8)),
        ("PCAAN", angles[1], BLUE, (8, -4)),
        ("at best", angles[2], ink(ax, 0.8), (-14, 7)),
    ):
        x, y = np.sin(np.radians(angle)), np.cos(np.radians(angle))
        ax.annotate(
            f"{name}: {angle:.0f}°", (x, y), xytext=offset, textcoords="offset points",
            ha="right" if name == "plain PCA" else "left", color=color, fontsize=9.5,
            fontweight="bold",
        )  # fmt: skip
    ax.set_xlim(-0.2, 1.2)
    ax.set_ylim(-0.08, 1.18)
    ax.set_aspect("equal")
    ax.axis("off")
    _caption(ax, "first component; the true one is up")


def _curves(ax: "Axes", frames: Array) -> None:
    """Mean brightness of the frames."""
    for channel, color in enumerate((RED, "#009e73", BLUE)):
        ax.plot(frames[..., channel].mean(axis=(1, 2)), color=color, lw=1.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlabel("frame")
    ax.set_ylabel("brightness")
    _caption(ax, "the light: a cloud, then evening")


def _image(ax: "Axes", image: Array) -> None:
    ax.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


def _caption(ax: "Axes", text: str) -> None:
    ax.annotate(
        text, (0.5, 1), xycoords="axes fraction", xytext=(0, 4), textcoords="offset points",
        ha="center", fontsize=9, color=ink(ax, 0.7), annotation_clip=False,
    )  # fmt: skip
