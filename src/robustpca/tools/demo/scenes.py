"""Data of the demo, each with its truth: records, photographs of one place, a street."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_sample_image

from robustpca.engine.linalg import Array

__all__ = ["Photographs", "Records", "Video", "photographs", "slipped_records", "street"]

# A cell is lost in the first columns of so many records, and those after it move up.
N_SLIPPED, N_COLUMNS = 57, 10
# Shares of the pixels of a photograph that are missing, and number of things in the way.
MISSING, N_BLOTS = 0.1, 18
# Noise of cameras, where 1 is white.
NOISE = 0.01


@dataclass(frozen=True)
class Records:
    """A table, the same without errors, which rows have one, and the names of the columns."""

    X: Array
    truth: Array
    is_wrong: Array
    columns: list[str]


@dataclass(frozen=True)
class Photographs:
    """Colour images (n_images, height, width, 3), as they were and as they are given.

    ``clean`` has the noise of the camera, ``truth`` has not; NaN marks missing pixels of ``X``.
    """

    X: Array
    clean: Array
    truth: Array


@dataclass(frozen=True)
class Video:
    """Frames (n_frames, height, width, 3) up to 255, and what moves.

    ``empty`` is the street without anybody, with the noise of the camera; ``background`` has none.
    """

    X: Array
    empty: Array
    background: Array
    is_moving: Array


def slipped_records(seed: int) -> Records:
    """Records of tumours that scikit-learn brings along; a tenth of them lost a cell."""
    rng = np.random.default_rng(seed)
    data = load_breast_cancer()
    is_wrong = np.zeros(len(data.data), dtype=bool)
    is_wrong[rng.choice(len(is_wrong), N_SLIPPED, replace=False)] = True
    X = data.data.copy()
    X[is_wrong, :N_COLUMNS] = np.roll(X[is_wrong, :N_COLUMNS], -1, axis=1)
    return Records(X, data.data, is_wrong, [str(name) for name in data.feature_names])


def photographs(seed: int, n_images: int = 36, shrink: int = 4) -> Photographs:
    """One place in changing light, photographed with things in the way and dead pixels.

    The place is a photograph that scikit-learn brings along. Even light, a low sun on the left
    and an evening sky are mixed anew for each image, so that all images have rank 3.
    """
    rng = np.random.default_rng(seed)
    place = load_sample_image("china.jpg").astype(np.float64) / 255
    height, width = (size // shrink for size in place.shape[:2])
    blocks = place[: height * shrink, : width * shrink].reshape(height, shrink, width, shrink, 3)
    place = blocks.mean(axis=(1, 3))

    down, across = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j][..., None]
    sun = 1.6 * np.exp(-2.2 * across) * np.array([1.15, 0.95, 0.7])
    evening = 1.4 * (1 - down) ** 1.5 * np.array([0.75, 0.9, 1.2])
    lights = np.stack([np.ones_like(sun), sun, evening])
    amounts = rng.uniform((0.4, 0.0, 0.0), (0.65, 0.3, 0.3), size=(n_images, 3))
    truth = np.einsum("nk,khwc->nhwc", amounts, lights * place)
    clean = truth + NOISE * rng.normal(size=truth.shape)

    X = clean.copy()
    rows, columns = np.mgrid[:height, :width]
    for image in X:
        for _ in range(N_BLOTS):
            middle = rng.uniform((0, 0), (height, width))
            turn, size, ratio = rng.uniform((0, 0.02, 1), (np.pi, 0.075, 3))
            y, x = rows - middle[0], columns - middle[1]
            along, beside = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
            blot = (along / ratio) ** 2 + beside**2 < (size * height) ** 2
            image[blot] = rng.uniform(0.0, 1.0, size=3)
    X[rng.uniform(size=X.shape[:3]) < MISSING] = np.nan
    return Photographs(*(part.astype(np.float32) for part in (X, clean, truth)))


def street(seed: int, n_frames: int = 90, height: int = 72) -> Video:
    """A street with cars and people, while a cloud passes and the evening comes."""
    rng = np.random.default_rng(seed)
    width = round(height * 5 / 3)
    unit = height / 72
    kerb, road = round(0.62 * height), round(0.72 * height)
    scene = _houses(rng, height, width, kerb, road)
    time = np.arange(n_frames) / n_frames
    cloud = 1 - 0.38 * np.exp(-(((time - rng.uniform(0.35, 0.65)) / 0.16) ** 2))
    light = cloud[:, None] * (1 + np.outer(time, [0.125, 0.0, -0.15]))
    background = light[:, None, None, :] * scene

    colors = rng.permutation(PAINT)
    movers = []
    for i in range(7):
        way = (1, -1)[i % 2] if i < 3 else rng.choice([-1, 1])
        if i < 3:  # cars keep to their side of the road
            lane = height - 2 * unit if way > 0 else road + (height - road) // 2
            movers.append((lane, _car, way * rng.uniform(1.0, 2.2), 1.6 * width, colors[i]))
        else:
            lane = kerb + rng.uniform(3, 7) * unit
            movers.append((lane, _person, way * rng.uniform(0.35, 0.8), width + 12, colors[i]))
    movers.sort(key=lambda mover: mover[0])  # who is nearer hides the others
    starts = rng.uniform(size=len(movers))

    X, is_moving = background.copy(), np.zeros(background.shape[:3], dtype=bool)
    y, x = np.mgrid[:height, :width] / unit
    for frame in range(n_frames):
        for (lane, shape, speed, span, color), start in zip(movers, starts, strict=True):
            ahead = start * span + speed * unit * frame
            at = ahead % span - (span - width) / 2
            for inside, paint in shape(
                x - at / unit, lane / unit - y, np.sign(speed), frame, color
            ):
                X[frame][inside] = light[frame] * paint
                is_moving[frame] |= inside
    noise = NOISE * rng.normal(size=X.shape)
    parts = np.clip(X + noise, 0, 1), np.clip(background + noise, 0, 1), background
    frames, empty, behind = ((255 * part).astype(np.float32) for part in parts)
    return Video(frames, empty, behind, is_moving)


PAINT = np.array(
    [
        [0.80, 0.12, 0.12],
        [0.95, 0.80, 0.10],
        [0.10, 0.30, 0.70],
        [0.93, 0.93, 0.93],
        [0.10, 0.45, 0.30],
        [0.12, 0.12, 0.14],
        [0.90, 0.45, 0.10],
        [0.55, 0.15, 0.50],
    ]
)
WALLS = np.array(
    [
        [0.76, 0.56, 0.42],
        [0.86, 0.80, 0.66],
        [0.62, 0.66, 0.70],
        [0.80, 0.66, 0.52],
        [0.60, 0.44, 0.40],
        [0.72, 0.74, 0.64],
    ]
)

Part = tuple[Array, Array]


def _houses(rng: np.random.Generator, height: int, width: int, kerb: int, road: int) -> Array:
    """A row of houses with two trees, a pavement and a road."""
    unit = height / 72
    y, x = np.mgrid[:height, :width]
    share = np.clip(y / (0.34 * height), 0, 1)[..., None]
    scene = np.array([0.60, 0.74, 0.90]) + share * np.array([0.22, 0.14, 0.04])
    left, walls = 0, rng.permutation(WALLS)
    for house in range(20):
        wide, top = round(rng.uniform(16, 26) * unit), round(rng.uniform(0.12, 0.30) * height)
        wall, right = walls[house % len(walls)], left + wide
        scene[top:kerb, left:right] = wall
        scene[max(top - round(2 * unit), 0) : top, left:right] = 0.55 * wall
        u, v = (x[0] - left) / unit, (y[:, 0] - top) / unit
        panes = (v[:, None] > 3) & (v[:, None] % 8 > 3.5) & (y[:, :1] < kerb - 9 * unit)
        panes = panes & (u > 2) & (u < wide / unit - 3) & (u % 6 > 3)
        scene[panes] = (0.30, 0.36, 0.44)
        door = (np.abs(x - (left + wide // 2)) < 2 * unit) & (y >= kerb - 7 * unit) & (y < kerb)
        scene[door] = (0.32, 0.22, 0.16)
        left = right
    scene[kerb:road] = (0.70, 0.68, 0.65)
    scene[road:] = (0.36, 0.37, 0.40)
    scene[road] = (0.55, 0.54, 0.52)
    scene[road + (height - road) // 2, (np.arange(width) / unit) % 14 < 7] = (0.88, 0.88, 0.82)
    for at in (round(0.3 * width), round(0.78 * width)):
        trunk = (np.abs(x - at) <= unit) & (y >= 0.45 * height) & (y < kerb)
        scene[trunk] = (0.35, 0.25, 0.18)
        crown = ((x - at) / (9 * unit)) ** 2 + ((y - 0.40 * height) / (8 * unit)) ** 2 < 1
        scene[crown] = (0.25, 0.46, 0.24)
    return np.clip(scene + 0.025 * rng.normal(size=(height, width, 1)), 0, 1)


def _car(across: Array, up: Array, way: float, frame: int, color: Array) -> list[Part]:
    """Parts of a car, the last one on top; distances are from where its middle touches the road."""
    u, v = way * across / 1.15, up / 1.15
    body = (np.abs(u) < 9) & (v >= 1) & (v < 5)
    cabin = (np.abs(u + 1) < 5.5 - 0.35 * (v - 5)) & (v >= 5) & (v < 8.2)
    glass = (np.abs(u + 1) < 4.4 - 0.35 * (v - 5)) & (v >= 5.4) & (v < 7.6) & (np.abs(u + 1) > 0.5)
    wheels = (np.abs(u) - 5.3) ** 2 + (v - 1.3) ** 2 < 1.9**2
    lamp = (u > 8) & (u < 9) & (v > 3) & (v < 4.2)
    return [
        (body | cabin, color),
        (glass, np.array([0.18, 0.22, 0.28])),
        (wheels, np.array([0.08, 0.08, 0.09])),
        (lamp, np.array([1.0, 0.95, 0.7])),
    ]


def _person(across: Array, up: Array, way: float, frame: int, color: Array) -> list[Part]:
    """Parts of somebody who walks."""
    reach = 1.1 * np.sin(0.7 * frame) * (5 - up) / 5
    stride = np.minimum(np.abs(across - reach), np.abs(across + reach))
    legs = (up >= 0) & (up < 5) & (stride < 0.9)
    trunk = (np.abs(across) < 1.8) & (up >= 4.5) & (up < 10)
    head = across**2 + (up - 11.5) ** 2 < 1.9**2
    return [
        (legs, np.array([0.14, 0.15, 0.22])),
        (trunk, color),
        (head, np.array([0.80, 0.60, 0.48])),
    ]
