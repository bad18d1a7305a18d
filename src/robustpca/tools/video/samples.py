"""Frames that a background is learned from: few, spread evenly over the time that counts."""

from dataclasses import dataclass, field

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["Samples", "thumbnail"]


@dataclass
class Samples:
    """Every ``stride``-th frame, at most ``most`` of them.

    While learning, the stride is doubled and every other frame given up when there are too many;
    later, the oldest one is. What is held follows from the numbers of the frames alone.
    """

    most: int
    stride: int = 1
    learning: bool = True
    n_seen: int = 0
    n_held: int = 0
    data: Array = field(default_factory=lambda: np.empty(0))

    def add(self, frame: Array) -> bool:
        """Take notice of a frame; returns whether it is held."""
        number, self.n_seen = self.n_seen, self.n_seen + 1
        if number % self.stride:
            return False
        if not self.data.size:
            self.data = np.empty((self.most, *frame.shape), frame.dtype)
        if self.n_held == self.most:
            if self.learning:
                self.n_held = (self.most + 1) // 2
                self.data[: self.n_held] = self.data[::2].copy()
                self.stride *= 2
                if number % self.stride:
                    return False
            else:
                self.data[:-1] = self.data[1:].copy()
                self.n_held -= 1
        self.data[self.n_held] = frame
        self.n_held += 1
        return True

    @property
    def held(self) -> Array:
        return self.data[: self.n_held]


def thumbnail(frame: Array, side: int = 16) -> Array:
    """Means of blocks of a frame (height, width, channels): what the picture is like as a whole."""
    height, width = frame.shape[:2]
    rows = np.linspace(0, height, min(side, height) + 1).astype(int)[:-1]
    columns = np.linspace(0, width, min(side, width) + 1).astype(int)[:-1]
    grey = frame.mean(axis=2, dtype=np.float32) if frame.shape[2] > 1 else frame[..., 0]
    sums = np.add.reduceat(grey.astype(np.float32), rows, axis=0)
    sums = np.add.reduceat(sums, columns, axis=1)
    areas = np.outer(np.diff([*rows, height]), np.diff([*columns, width]))
    return (sums / areas).ravel()


def is_cut(before: Array, after: Array) -> bool:
    """Whether two thumbnails show different scenes.

    Most blocks must have changed by more than an even light can, which somebody who walks by does
    not do, and light and dark must be in other places, which no lamp does.
    """
    before, after = before - np.median(before), after - np.median(after)
    changed = np.median(np.abs(after - before))
    contrast = np.median(np.abs(before)) + np.median(np.abs(after))
    size = np.sqrt((before @ before) * (after @ after))
    return bool(changed > CHANGED * contrast and before @ after < ALIKE * size)


# Change of a typical block at a cut, in parts of the contrast of both scenes, at least; correlation
# of the thumbnails of two frames of one scene, at least.
CHANGED, ALIKE = 0.4, 0.5
