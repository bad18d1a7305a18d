"""Loops over pixels, compiled when first used."""

import numpy as np

from robustpca.engine.linalg import Array

__all__ = ["evidence_kernel", "pixel_kernel"]


def pixel_kernel(
    T: Array, design: Array, moving: Array, coef: Array, scale: Array, floor: float, n_iter: int
) -> None:
    """Regress each pixel, a row of ``T``, on a few codes of the frames, in place.

    With ``n_iter > 0`` by least absolute deviations from ``coef``; otherwise by least squares over
    the frames that are not ``moving``, drawn to ``coef`` by the weight of one frame. ``scale``
    becomes the standard deviation of the residuals that count.
    """
    n_pixels, n_frames = T.shape
    q = design.shape[1]
    gram, right, old = np.empty((q, q)), np.empty(q), np.empty(q)
    weights = np.empty(n_frames)
    for p in range(n_pixels):
        for a in range(q):
            old[a] = coef[p, a]
        for _ in range(max(n_iter, 1)):
            total = 0.0
            for i in range(n_frames):
                if n_iter > 0:
                    r = T[p, i]
                    for a in range(q):
                        r -= design[i, a] * coef[p, a]
                    weights[i] = 1.0 / max(abs(r), floor)
                else:
                    weights[i] = 0.0 if moving[p, i] else 1.0
                total += weights[i]
            for a in range(q):
                right[a] = 0.0
                for b in range(q):
                    gram[a, b] = 0.0
            for i in range(n_frames):
                w = weights[i]
                for a in range(q):
                    right[a] += w * design[i, a] * T[p, i]
                    for b in range(a + 1):
                        gram[a, b] += w * design[i, a] * design[i, b]
            # Pixels that were seldom seen stay where they are.
            pull = 1e-6 * total if n_iter > 0 else 1.0
            for a in range(q):
                gram[a, a] += pull
                right[a] += pull * old[a]
                for b in range(a):
                    gram[b, a] = gram[a, b]
            for a in range(q):  # the matrix is positive definite
                for b in range(a + 1, q):
                    factor = gram[b, a] / gram[a, a]
                    right[b] -= factor * right[a]
                    for c in range(a, q):
                        gram[b, c] -= factor * gram[a, c]
            for a in range(q - 1, -1, -1):
                for b in range(a + 1, q):
                    right[a] -= gram[a, b] * right[b]
                right[a] /= gram[a, a]
            for a in range(q):
                coef[p, a] = right[a]
        total, squares = 0.0, 0.0
        for i in range(n_frames):
            r = T[p, i]
            for a in range(q):
                r -= design[i, a] * coef[p, a]
            if not moving[p, i]:
                total += 1.0
                squares += r * r
        # As if a few more frames had shown the noise of a plain camera.
        scale[p] = np.sqrt((squares + 36.0 * floor * floor) / (total + 4.0))


def evidence_kernel(
    frame: Array, background: Array, precision: Array, offset: Array, cap: float, logit: Array
) -> None:
    """Logarithm of how much better a moving thing explains a pixel than the background does.

    ``precision`` is half of one over the variance of the noise, ``offset`` the evidence at a
    residual of zero; of several channels the largest counts.
    """
    n_channels = background.shape[1]
    for p in range(background.shape[0]):
        most = -1e30
        for c in range(n_channels):
            r = np.float32(frame[p, c]) - background[p, c]
            value = r * r * precision[p, c] + offset[p, c]
            most = max(most, value)
        logit[p] = min(most, cap)
