"""Scenes for `video.py`: filmed ones with masks made by hand, and drawn ones whose truth is known.

The drawn ones were fixed before any method was tried on them. Each has one trouble: light that
drifts and is switched, trees that wave, water, somebody who stands still, a dark street. In one,
a canoe that was filmed elsewhere, with its masks, passes before a filmed curtain that moves.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from robustpca import datasets
from robustpca.engine.linalg import Array
from robustpca.tools.demo.scenes import street

SHAPE, N_FRAMES = (120, 160), 300


@dataclass(frozen=True)
class Scene:
    """Frames, uint8; labels as those of CDnet; the background of each frame if it is known."""

    frames: Array
    labels: Array
    backgrounds: Array | None = None


def filmed(name: str) -> Scene:
    """A sequence of CDnet."""
    data = datasets.load(name)
    shape = (len(data.X), *data.image_shape)
    return Scene(data.X.reshape(shape).astype(np.uint8), data.extras["masks"].reshape(shape))


def curtain() -> Scene:
    """A filmed canoe before a filmed curtain, in whose first 300 frames there is nobody."""
    data, canoe = datasets.load("i2r_curtain"), filmed("cdnet_canoe")
    behind = data.X.reshape(len(data.X), *data.image_shape)[:N_FRAMES, :120].astype(np.uint8)
    frames, labels = behind.copy(), np.zeros(behind.shape, np.uint8)
    first = int(np.argmax((canoe.labels == 255).any(axis=(1, 2))))
    for i in range(20, 260):  # it passes once
        labels[i] = canoe.labels[first + i - 20]
        frames[i] = np.where(labels[i] == 255, canoe.frames[first + i - 20], frames[i])
    return Scene(frames, labels, behind)


def drawn_street(seed: int = 0) -> Scene:
    """The street of the demo, in colour: a cloud passes, and the evening comes."""
    video = street(seed, N_FRAMES, SHAPE[0])
    return Scene(
        video.X.round().astype(np.uint8), np.uint8(255) * video.is_moving, video.background
    )


def _texture(rng: np.random.Generator, shape: tuple[int, ...], grain: float, size: float) -> Array:
    """Smooth random values of standard deviation ``size``."""
    field = gaussian_filter(rng.normal(size=shape), grain, mode="wrap")
    return size * field / field.std()


def _finished(rng: np.random.Generator, X: Array, noise: Array | float) -> Array:
    """What a camera makes of light: noise, and whole numbers."""
    return np.clip(X + noise * rng.normal(size=X.shape), 0, 255).round().astype(np.uint8)


def _walkers(rng: np.random.Generator, X: Array, light: Array, n_movers: int) -> Array:
    """Draw textured figures that walk through; returns the labels."""
    n_frames, height, width = X.shape
    labels = np.zeros(X.shape, np.uint8)
    y, x = np.mgrid[:height, :width]
    for _ in range(n_movers):
        tall, wide = rng.uniform(18, 34), rng.uniform(7, 16)
        skin = rng.uniform(20, 220) + _texture(rng, (height, width), 2.0, 12.0)
        feet, way, speed = (
            rng.uniform(0.55, 0.98) * height,
            rng.choice([-1, 1]),
            rng.uniform(0.6, 2),
        )
        start = rng.uniform(0, n_frames)
        for i in range(n_frames):
            at = way * (speed * (i - start)) % (2 * width) - width / 2
            inside = ((x - at) / wide * 2) ** 2 + ((y - feet + tall / 2) / tall * 2) ** 2 < 1
            X[i][inside] = light[i] * np.roll(skin, round(at), axis=1)[inside]
            labels[i][inside] = 255
    return labels


def trees(seed: int = 1) -> Scene:
    """Foliage that the wind moves by up to three pixels behind people on a lawn."""
    rng = np.random.default_rng(seed)
    place = 110 + _texture(rng, SHAPE, 1.5, 28.0)
    crown = np.clip(gaussian_filter((np.mgrid[: SHAPE[0], : SHAPE[1]][0] < 62) * 1.0, 4), 0, 1)
    place = crown * place + (1 - crown) * (140 + _texture(rng, SHAPE, 6.0, 8.0))
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(float)
    bends = _texture(rng, (2, N_FRAMES, *(size // 5 for size in SHAPE)), 3.0, 1.2)
    X = np.empty((N_FRAMES, *SHAPE))
    for i in range(N_FRAMES):
        sway = 1.2 * np.sin(0.35 * i)
        dy, dx = (np.kron(bend[i], np.ones((5, 5))) for bend in bends)
        dy, dx = gaussian_filter(dy, 3), gaussian_filter(dx, 3) + sway
        X[i] = map_coordinates(place, [y + crown * dy, x + crown * dx], order=1, mode="nearest")
    behind = X.copy()
    labels = _walkers(rng, X, np.ones(N_FRAMES), 4)
    return Scene(_finished(rng, X, 2.5), labels, behind)


def water(seed: int = 2) -> Scene:
    """Waves that run and glitter, and boats on them."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(float)
    near = np.clip((y - 25) / 95, 0, 1)
    X = np.empty((N_FRAMES, *SHAPE))
    waves = [
        (rng.uniform(0.15, 0.6), rng.uniform(0.4, 1.6), rng.uniform(0.2, 0.9), rng.uniform(0, 6.3))
        for _ in range(14)
    ]
    glitter = _texture(rng, (N_FRAMES, *SHAPE), 1.0, 1.0)
    for i in range(N_FRAMES):
        swell = sum(np.sin(u * x + v * y / (0.4 + near) + w * i + p) for u, v, w, p in waves)
        X[i] = 100 + 35 * near + near * (4.5 * swell + 9 * np.maximum(glitter[i], 0))
    X[:, :25] = 70 + _texture(rng, (25, SHAPE[1]), 2.0, 14.0)
    behind = X.copy()
    labels = _walkers(rng, X, np.ones(N_FRAMES), 3)
    return Scene(_finished(rng, X, 2.5), labels, behind)


def light(seed: int = 3) -> Scene:
    """A hall: daylight drifts by a third, and a lamp on one side is switched on and off."""
    rng = np.random.default_rng(seed)
    place = 90 + _texture(rng, SHAPE, 5.0, 18.0) + _texture(rng, SHAPE, 1.0, 6.0)
    x = np.linspace(0, 1, SHAPE[1])
    time = np.arange(N_FRAMES) / N_FRAMES
    daylight = 1 + 0.33 * np.sin(2 * np.pi * time)
    is_on = ((time > 0.3) & (time < 0.45)) | (time > 0.75)
    lamp = 0.45 * np.exp(-3 * x) * np.ones((SHAPE[0], 1))
    X = place * (daylight[:, None, None] + is_on[:, None, None] * lamp)
    behind = X.copy()
    labels = _walkers(rng, X, daylight, 4)
    return Scene(_finished(rng, X, 2.0), labels, behind)


def standing(seed: int = 4, share: float = 0.4) -> Scene:
    """Somebody comes, stands for a share of the time, and goes; others walk by."""
    rng = np.random.default_rng(seed)
    place = 120 + _texture(rng, SHAPE, 4.0, 22.0) + _texture(rng, SHAPE, 1.0, 6.0)
    X = np.repeat(place[None], N_FRAMES, axis=0)
    behind = X.copy()
    labels = _walkers(rng, X, np.ones(N_FRAMES), 2)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    begin = round((1 - share) / 2 * N_FRAMES)
    end = begin + round(share * N_FRAMES)
    for middle, feet, level in ((55, 100, 60.0), (110, 90, 190.0)):
        skin = level + _texture(rng, SHAPE, 2.0, 10.0)
        for i in range(N_FRAMES):
            at = middle - 2.0 * max(begin - i, 0) + 2.0 * max(i - end, 0)
            inside = ((x - at) / 7) ** 2 + ((y - feet + 20) / 21) ** 2 < 1
            X[i][inside] = np.roll(skin, round(at), axis=1)[inside]
            labels[i][inside] = 255
    return Scene(_finished(rng, X, 2.5), labels, behind)


def night(seed: int = 5) -> Scene:
    """A dark street: noise of nine grey levels, more where it is brighter, and little contrast."""
    rng = np.random.default_rng(seed)
    place = 45 + _texture(rng, SHAPE, 6.0, 12.0)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    place += 70 * np.exp(-(((y - 40) / 30) ** 2) - ((x - 110) / 35) ** 2)
    X = np.repeat(place[None], N_FRAMES, axis=0)
    behind = X.copy()
    labels = _walkers(rng, X, np.full(N_FRAMES, 0.6), 4)
    return Scene(_finished(rng, X, 4 + 0.08 * X), labels, behind)


FILMED: dict[str, Callable[[], Scene]] = {
    "highway": lambda: filmed("cdnet_highway"),
    "canoe": lambda: filmed("cdnet_canoe"),
    "curtain": curtain,
}
DRAWN: dict[str, Callable[[], Scene]] = {
    "street": drawn_street,
    "trees": trees,
    "water": water,
    "light": light,
    "standing": standing,
    "night": night,
}
