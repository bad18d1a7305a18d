"""`VideoSeparator`: what stays in a video, and what moves before it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.models.params import Interval, StrOptions
from robustpca.tools.video.background import Background
from robustpca.tools.video.masks import MaskRule, is_shadow, mask_of
from robustpca.tools.video.methods import METHODS, learned
from robustpca.tools.video.reading import Frames, open_frames
from robustpca.tools.video.samples import Samples, is_cut, thumbnail

__all__ = ["Layers", "Separation", "VideoSeparator"]

# A light change moves the background by such a part of the way from black to white, within a
# second; if more of the picture than this moves all at once, it is no movement.
LIGHT, WHOLE = 0.03, 0.6
SECOND = 25
# Frames of a new scene that its background is learned from.
N_NEW = 60
# Share of the memory that a background and the frames it is learned from may have.
SHARE = 0.7
CUT, CHANGE = "scene cut", "light change"


@dataclass(frozen=True)
class Layers:
    """One frame, taken apart.

    Attributes
    ----------
    number : int
        Number of the frame, from 0.
    frame, background : ndarray
        The frame as given, and what is behind all that moves in it, of the same shape and type.
    mask : ndarray of bool, of shape (height, width)
        Which pixels move.
    share : float
        Share of the pixels that move.
    score : float
        Mean evidence of the pixels that something moves, in logarithms of odds.
    event : str
        'scene cut', 'light change', or nothing.
    """

    number: int
    frame: Array
    background: Array
    mask: Array
    share: float
    score: float
    event: str = ""

    @property
    def foreground(self) -> Array:
        """The frame where something moves, and black elsewhere."""
        mask = self.mask if self.frame.ndim == 2 else self.mask[..., None]
        return np.where(mask, self.frame, np.zeros((), self.frame.dtype))


@dataclass(frozen=True)
class Separation:
    """Frames of a video, taken apart: `Layers` as arrays with one more axis."""

    backgrounds: Array
    foregrounds: Array
    masks: Array
    shares: Array
    scores: Array
    events: list[str]


class VideoSeparator(BaseEstimator):
    r"""Separate what moves in a video from what stays, for any length.

    A background has a centre :math:`b`, a few components of the light :math:`V`, and a standard
    deviation :math:`\sigma` of each pixel. In a frame :math:`x`, the light :math:`z` minimises a
    robust loss of :math:`(x - b - zV) / \sigma`, and a pixel with the residual :math:`r` moves with
    the log-odds :math:`r^2 / 2\sigma^2 + \log(\sqrt{2\pi} \sigma / s)`, where :math:`s` is the
    difference between black and white; neighbours are heard by a mean field.

    Parameters
    ----------
    method : str, default='masked'
        Where the background comes from. 'masked' starts from medians, admits only components that
        change the light of a large part of the picture, and is fitted again to the pixels that do
        not move. Others: 'median', 'pca', 'rpca', 'frpcag', 'tae', 'grassmann', 'pcaan'.
    n_components : int or 'auto', default='auto'
        Number of components of the light; by default those that are found, at least one for the
        methods other than 'masked' and 'median'.
    n_samples : int, default=120
        Frames that a background is learned from, at most.
    horizon : int, default=3000
        They are spread over so many frames: first over those at the beginning, later over the
        last ones. What stands still for more than half of them becomes background.
    shadows : bool, default=True
        Whether shadows count as what casts them. If False, pixels that look like the background
        in less light do not move.
    min_size : int, default=12
        Smallest number of pixels that move together.
    memory : float, default=2e9
        Bytes that the background and the frames that are held may take, beside the program itself;
        fewer frames are held if it is little.

    Attributes
    ----------
    background_ : Background
        ``center``, ``components`` and ``sigma``, of shape (height, width, channels).
    n_samples_ : int
        Frames that it was learned from.
    n_frames_seen_ : int
        Frames of the present scene that `fit`, `partial_fit` and `stream` were given.
    false_positive_rate_ : float
        Share of the pixels that are marked in frames of nothing but the background and its noise.

    See Also
    --------
    RPCA : Both parts of a table, and of a short video.

    Examples
    --------
    >>> from robustpca import VideoSeparator
    >>> from robustpca.datasets import make_video
    >>> video = make_video(100, random_state=0)
    >>> frames = video.X.reshape(100, 48, 64)
    >>> parts = VideoSeparator().fit(frames).separate(frames)
    >>> from robustpca.metrics import foreground_scores
    >>> masks = parts.masks.reshape(100, -1)
    >>> bool(foreground_scores(video.extras["masks"], masks).f_measure > 0.95)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "method": [StrOptions({"masked", "median", *METHODS})],
        "n_components": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "n_samples": [Interval(Integral, 4, None, closed="left")],
        "horizon": [Interval(Integral, 4, None, closed="left")],
        "shadows": ["boolean"],
        "min_size": [Interval(Integral, 1, None, closed="left")],
        "memory": [Interval(Real, 0, None, closed="neither")],
    }

    # Thumbnail of the last frame, and number of frames since the scene was learned.
    _last: Array | None
    _n_quiet: int

    def __init__(
        self,
        method: str = "masked",
        *,
        n_components: int | str = "auto",
        n_samples: int = 120,
        horizon: int = 3000,
        shadows: bool = True,
        min_size: int = 12,
        memory: float = 2e9,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.n_samples = n_samples
        self.horizon = horizon
        self.shadows = shadows
        self.min_size = min_size
        self.memory = memory

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the background from the first frames of a video, up to the first cut.

        Parameters
        ----------
        X : array of shape (n_frames, height, width) or (n_frames, height, width, 3), or path, \
or iterable of frames
            The video; of an iterator, the first ``horizon`` frames are taken.
        y : None
            Ignored.

        Returns
        -------
        self : VideoSeparator
            The fitted separator.
        """
        self._validate_params()
        frames = open_frames(X)
        self._begin(frames.shape, frames.dtype, frames.n_frames)
        last = None
        for frame in islice(frames, self.horizon):
            picture = thumbnail(_solid(frame))
            if last is not None and is_cut(last, picture):
                break
            self._samples.add(_solid(frame))
            last = picture
        self._learn()
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning from the next frames of the same scene.

        The background is fitted anew whenever a quarter of the frames that are held are new, at
        numbers of frames that do not depend on how many come at a time.

        Parameters
        ----------
        X : as for `fit`
            The next frames.
        y : None
            Ignored.

        Returns
        -------
        self : VideoSeparator
            The fitted separator.
        """
        if not hasattr(self, "background_"):
            return self.fit(X)
        for frame in self._checked(open_frames(X)):
            self._remember(_solid(frame))
        return self

    def separate(self, X: Any) -> Separation:
        """Take frames apart, with the background as it was learned.

        Parameters
        ----------
        X : as for `fit`
            The frames; all results are held in memory. For long videos, see `stream`.

        Returns
        -------
        separation : Separation
            ``backgrounds``, ``foregrounds``, ``masks``, ``shares``, ``scores`` and ``events``.
        """
        check_is_fitted(self)
        parts = [self._layers(frame, i) for i, frame in enumerate(self._checked(open_frames(X)))]
        return Separation(
            np.stack([part.background for part in parts]),
            np.stack([part.foreground for part in parts]),
            np.stack([part.mask for part in parts]),
            np.array([part.share for part in parts]),
            np.array([part.score for part in parts]),
            [part.event for part in parts],
        )

    def stream(self, X: Any, known: int = 0) -> Iterator[Layers]:
        """Take frames apart one by one while the background is kept up to date.

        If nothing was learned yet, the first frames are held until enough are there. After a scene
        cut, and when the light changes as it did not before, a new background is learned from
        the frames that follow. Call it again with the next frames to go on.

        Parameters
        ----------
        X : as for `fit`
            The frames, of any number.
        known : int, default=0
            Number of frames at the beginning that `fit` has learned from already.

        Yields
        ------
        layers : Layers
            One for each frame, in order.
        """
        self._validate_params()
        frames = open_frames(X)
        if not hasattr(self, "background_"):
            self._begin(frames.shape, frames.dtype, frames.n_frames)
        # Frames that a background is to be learned from before they are taken apart; they have the
        # part of the memory that the background leaves.
        waiting: list[Array] = []
        room = max(int((1 - SHARE) * self.memory // self._n_bytes), min(10, self._samples.most))
        n_wanted = 0
        if not hasattr(self, "background_"):
            n_wanted = min(self.horizon, 3 * self._samples.most, room)
        event, number = "", 0
        for frame in self._checked(frames):
            picture = thumbnail(_solid(frame))
            cut = self._last is not None and is_cut(self._last, picture)
            self._last = picture
            if waiting and (cut or len(waiting) >= n_wanted):
                yield from self._new_scene(waiting, number, event)
                number, waiting, n_wanted, event = number + len(waiting), [], 0, ""
            if cut:
                n_wanted, event = min(N_NEW, room), CUT
            if n_wanted == 0:
                layers = self._layers(frame, number, follow=True)
                if layers.share <= WHOLE or self._n_quiet < N_NEW:
                    if number >= known:
                        self._remember(_solid(frame))
                    self._n_quiet, number = self._n_quiet + 1, number + 1
                    yield layers
                    continue
                n_wanted, event = min(N_NEW, room), CHANGE
            waiting.append(frame.copy())  # a camera may use one buffer for all
        if waiting:
            yield from self._new_scene(waiting, number, event)

    def _new_scene(self, waiting: list[Array], number: int, event: str) -> Iterator[Layers]:
        """Learn from the first frames of a scene, and take them apart."""
        last = self._last
        self._begin(waiting[0].shape, waiting[0].dtype, len(waiting))
        self._last = last
        for frame in waiting:
            self._samples.add(_solid(frame))
        self._learn()
        for i, frame in enumerate(waiting):
            layers = self._layers(frame, number + i, follow=True)
            yield replace(layers, event=event) if event and i == 0 else layers

    def _begin(self, shape: tuple[int, ...], dtype: Any, n_frames: int | None) -> None:
        """Forget all, and find how many frames can be held."""
        size, pixels = int(np.prod(shape)), int(np.prod(shape[:2]))
        # The frames, their masks; centre, components, noise and their copies while fitting. Only
        # the default works on a few pixels at a time.
        wide = 0 if self.method == "masked" else 24 * size
        self._n_bytes = size * np.dtype(dtype).itemsize
        each, fixed = self._n_bytes + pixels + wide, 100 * size
        most = int((SHARE * self.memory - fixed) // each)
        if most < min(self.n_samples, 10):
            raise ValueError(
                f"memory={self.memory:.3g} bytes is not enough for frames of shape {shape}: "
                f"{(fixed + 10 * each) / SHARE:.2g} are needed at least."
            )
        most = min(most, self.n_samples)
        length = self.horizon if n_frames is None else min(n_frames, self.horizon)
        stride = 1 if n_frames is None else -(-length // most)
        self._samples = Samples(most, stride)
        self._shape, self._dtype = tuple(shape), np.dtype(dtype)
        self._lights: deque[Array] = deque(maxlen=SECOND)
        self._last, self._n_quiet = None, 0

    def _checked(self, frames: Frames) -> Iterator[Array]:
        if tuple(frames.shape) != self._shape:
            raise ValueError(
                f"Frames have shape {tuple(frames.shape)}, but {type(self).__name__} was fitted to "
                f"frames of shape {self._shape}."
            )
        yield from frames

    def _remember(self, frame: Array) -> None:
        """Take notice of a frame, and fit the background anew when its number is due."""
        if self._samples.add(frame):
            self._n_new += 1
            if self._n_new >= max(self._samples.most // 4, 1):
                self._learn()
        self.n_frames_seen_ = self._samples.n_seen

    def _learn(self) -> None:
        held = self._samples.held
        components = None if self.n_components == "auto" else int(self.n_components)
        self.background_ = learned(held, self.method, self._span(held), self._rule, components)
        self._samples.learning = False
        # From now on the frames are to cover the whole horizon.
        self._samples.stride = max(self._samples.stride, -(-self.horizon // self._samples.most))
        self._n_new = 0
        self._lights.clear()
        self.n_samples_, self.n_frames_seen_ = len(held), self._samples.n_seen
        self.false_positive_rate_ = false_positive_rate(self.background_, self._rule)

    def _span(self, held: Array) -> float:
        if self._dtype == np.uint8:
            return 255.0
        low, high = np.quantile(held[:: max(len(held) // 8, 1)], [0.001, 0.999])
        return float(max(high - low, np.finfo(np.float32).tiny * 1e6))

    @property
    def _rule(self) -> MaskRule:
        return MaskRule(min_size=self.min_size)

    def _layers(self, frame: Array, number: int, follow: bool = False) -> Layers:
        model, rule, solid = self.background_, self._rule, _solid(frame)
        light = model.light_of(solid)
        behind = model.behind(light)
        logit = model.logit_of(solid, behind, rule.cap)
        mask = mask_of(logit, rule)
        if not self.shadows and mask.any():
            mask &= ~is_shadow(solid, behind, model.span)
        event = ""
        if follow:
            if self._lights and model.change(light - self._lights[0]) > LIGHT:
                event = CHANGE
            self._lights.append(light)
        return Layers(
            number,
            frame,
            _alike(behind, frame),
            mask,
            float(mask.mean()),
            float(np.maximum(logit, 0).mean()),
            event,
        )


def false_positive_rate(model: Background, rule: MaskRule, n_frames: int = 4) -> float:
    """Share of the pixels that are marked where there is nothing but noise."""
    rng = np.random.default_rng(0)
    marked = 0.0
    for _ in range(n_frames):
        noise = model.sigma * rng.standard_normal(model.shape, dtype=np.float32)
        frame = model.center + noise
        marked += mask_of(model.logit_of(frame, model.center, rule.cap), rule).mean() / n_frames
    return float(marked)


def _solid(frame: Array) -> Array:
    """A frame with an axis of channels."""
    return frame if frame.ndim == 3 else frame[..., None]


def _alike(behind: Array, frame: Array) -> Array:
    """A background in the shape and type of a frame."""
    behind = behind.reshape(frame.shape)
    if frame.dtype.kind in "ui":
        limits = np.iinfo(frame.dtype)
        behind = np.clip(np.rint(behind), limits.min, limits.max)
    return behind.astype(frame.dtype)
