"""What a cell shows besides its scores: pictures, curves and points, as text for its row.

A report reads only rows, so what it shows must be in them: pictures as PNG, and as few of them as
tell the story.
"""

import base64
import struct
import zlib
from typing import Any

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["curve", "picture", "points"]


def picture(pixels: Any, low: float = 0.0, high: float = 255.0, zoom: int = 1) -> dict[str, Any]:
    """A grey image, or several side by side.

    Parameters
    ----------
    pixels : array-like of shape (height, width) or (n_images, height, width)
        Brightness; several images stand in a row with a white line between.
    low, high : float, default=0.0 and 255.0
        What is black and what is white; values beyond are cut off.
    zoom : int, default=1
        Width and height of a pixel.

    Returns
    -------
    exhibit : dict
        With ``kind`` 'picture', ``width``, ``height``, and ``png``, the file as base64.

    Examples
    --------
    >>> from robustpca.bench.shown import picture
    >>> exhibit = picture([[0, 255], [255, 0]], zoom=3)
    >>> exhibit["kind"], exhibit["width"], exhibit["height"]
    ('picture', 6, 6)
    """
    images = np.asarray(pixels, float)
    images = images[None] if images.ndim == 2 else images
    if images.ndim != 3 or images.size == 0 or not np.isfinite(images).all():
        raise ValueError(
            f"pixels has shape {np.shape(pixels)}: finite numbers of shape (height, width) or "
            "(n_images, height, width) are needed."
        )
    grey = np.clip((images - low) / (high - low) * 255, 0, 255).round().astype(np.uint8)
    grey = grey.repeat(zoom, axis=1).repeat(zoom, axis=2)
    gap = np.full((grey.shape[1], 1), 255, np.uint8)
    parts = [part for image in grey for part in (gap, image)][1:]
    strip = np.hstack(parts)
    return {
        "kind": "picture",
        "height": strip.shape[0],
        "width": strip.shape[1],
        "png": base64.b64encode(_png(strip)).decode(),
    }


def curve(x: Any, y: Any) -> dict[str, Any]:
    """A line through points, in the order of ``x``.

    Parameters
    ----------
    x, y : array-like of shape (n_points,)
        Positions and values.

    Returns
    -------
    exhibit : dict
        With ``kind`` 'curve', ``x`` and ``y``.

    Examples
    --------
    >>> from robustpca.bench.shown import curve
    >>> curve([1, 2], [0.5, 0.25])
    {'kind': 'curve', 'x': [1.0, 2.0], 'y': [0.5, 0.25]}
    """
    return {"kind": "curve", "x": _floats(x), "y": _floats(y)}


def points(positions: Any, labels: Any) -> dict[str, Any]:
    """Points in the plane, coloured by their class.

    Parameters
    ----------
    positions : array-like of shape (n_points, 2)
        Where they lie.
    labels : array-like of shape (n_points,)
        Classes, whole numbers.

    Returns
    -------
    exhibit : dict
        With ``kind`` 'points', ``x``, ``y`` and ``label``.

    Examples
    --------
    >>> from robustpca.bench.shown import points
    >>> points([[0.0, 1.0], [2.0, 3.0]], [0, 1])["label"]
    [0, 1]
    """
    x, y = np.asarray(positions, float).T
    return {
        "kind": "points",
        "x": _floats(x),
        "y": _floats(y),
        "label": [int(label) for label in labels],
    }


def _floats(values: Any) -> list[float]:
    """Finite numbers with as many digits as a drawing can show."""
    values = np.asarray(values, float).ravel()
    if not np.isfinite(values).all():
        raise ValueError("Curves and points need finite numbers.")
    return [float(f"{value:.5g}") for value in values]


def _png(grey: Array) -> bytes:
    """A grey image of bytes as a PNG file."""
    height, width = grey.shape
    lines = np.hstack([np.zeros((height, 1), np.uint8), grey])  # each line begins with its filter
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
