"""What stays in a video: a centre, a few components of the light, and the noise of each pixel."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.threads import ThreadPool, compiled
from robustpca.tools.video.kernels import evidence_kernel, pixel_kernel
from robustpca.tools.video.masks import MaskRule, mask_of

__all__ = ["Background", "light_codes", "masked_background", "noise_about", "square_noise"]

# Pixels that the light of a frame is found from, at most, and blocks for the light of all frames.
MOST_PIXELS, N_BLOCKS = 20_000, 600
# Light is what lowers the spread of so large a share of the blocks to less than such a part. The
# spread is a quantile of the residuals, so that light of a fifth of the time is seen.
SHARE, PART, QUANTILE = 0.4, 0.5, 0.8
# Pixels that are regressed at a time.
CHUNK = 4096
# Codecs take a picture apart into squares of such a side. Jumps of the residuals between squares
# tell how coarse they are: this share of the jumps is smaller than so many standard deviations.
SQUARE, CALM, BOUND = 8, 0.95, 1.96
# Frames that are looked at for them, at most.
MOST_FRAMES = 30
# Fits to the pixels that do not move. While learning, a pixel moves with less ease: what waves
# would be left out, and its noise underrated.
ROUNDS, DOUBT = 2, -1.0


@dataclass(frozen=True)
class Background:
    """``center`` (height, width, channels), ``components`` of it, ``sigma`` of each pixel.

    ``span`` is the difference between black and white.
    """

    center: Array
    components: Array
    sigma: Array
    span: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.center.shape

    def light_of(self, frame: Array) -> Array:
        """Coefficients of the components in a frame, whatever moves in it."""
        if not len(self.components):
            return np.zeros(0, np.float32)
        center, basis, noise = self._sampled
        z = (frame.reshape(-1)[self._places].astype(np.float32) - center) / noise
        light = np.zeros(len(basis), np.float32)
        for power in (1, 1, 1, 2, 2, 2):  # absolute deviations first: they have one minimum
            r = np.abs(z - light @ basis)
            scale = max(1.4826 * float(np.median(r)), 1.0)
            weights = (scale / np.maximum(r, scale)) ** power
            heavy = basis * weights
            light = np.linalg.solve(heavy @ basis.T, heavy @ z)
        return light.astype(np.float32)

    def change(self, light: Array) -> float:
        """By how much a change of the light moves the background, where white is one."""
        if not len(self.components):
            return 0.0
        _, basis, noise = self._sampled
        return float(np.abs(light @ basis * noise).mean()) / self.span

    def behind(self, light: Array) -> Array:
        """The background in some light."""
        if not len(self.components):
            return self.center
        return self.center + np.tensordot(light, self.components, axes=1)

    def logit_of(self, frame: Array, behind: Array, cap: float) -> Array:
        """Evidence of each pixel that it moves."""
        height, width, n_channels = self.shape
        logit = np.empty(height * width, np.float32)
        precision, offset = self._noise
        compiled(evidence_kernel)(
            frame.reshape(-1, n_channels),
            behind.reshape(-1, n_channels),
            precision,
            offset,
            np.float32(cap),
            logit,
        )
        return logit.reshape(height, width)

    @cached_property
    def _places(self) -> Array:
        """Pixels that the light of a frame is found from."""
        step = -(-self.center.size // MOST_PIXELS)
        return np.arange(step // 2, self.center.size, step)

    @cached_property
    def _sampled(self) -> tuple[Array, Array, Array]:
        """Centre, components in units of the noise, and noise of these pixels."""
        sigma = self.sigma.reshape(-1)[self._places]
        basis = self.components.reshape(-1, self.center.size)[:, self._places] / sigma
        return self.center.reshape(-1)[self._places], basis, sigma

    @cached_property
    def _noise(self) -> tuple[Array, Array]:
        """What the evidence needs of the noise, pixels in rows and channels in columns."""
        shape = (-1, self.shape[2])
        offset = np.log(self.sigma * np.sqrt(2 * np.pi) / self.span)
        return (0.5 / self.sigma**2).reshape(shape), offset.astype(np.float32).reshape(shape)


def light_codes(samples: Array, n_components: int | None = None, most: int = 3) -> Array:
    """How the light of the whole picture changes: one row of codes per frame.

    A component is light if it explains most of what happens in a large part of the picture; what
    moves is seen in few places at a time.
    """
    blocks = _block_medians(samples)
    codes = np.zeros((len(samples), 0))
    scale = _spread(blocks)
    wanted = most if n_components is None else n_components
    for k in range(1, min(wanted, len(samples) - 1) + 1):
        more = _robust_codes(blocks, k)
        left = _spread(blocks - _regressed(blocks, more))
        if n_components is None and np.mean(left < PART * scale) < SHARE:
            break
        codes, scale = more, left
    return codes


def masked_background(
    samples: Array, span: float, rule: MaskRule, n_components: int | None = None
) -> Background:
    """Median and light, then refitted to the pixels that do not move, as far as one can see."""
    codes = light_codes(samples, n_components)
    design = np.column_stack([np.ones(len(samples)), codes])
    moving = np.zeros(samples.shape[:3], bool)
    floor = span / 255
    found = fitted(samples, design, moving, span, floor, None)
    lights = design[:, 1:].astype(np.float32)
    floor = max(floor, square_noise(samples, found, lights))
    found = replace(found, sigma=np.maximum(found.sigma, np.float32(floor)))
    rule = replace(rule, prior=DOUBT)
    for _ in range(ROUNDS):
        for i, frame in enumerate(samples):
            logit = found.logit_of(frame, found.behind(lights[i]), rule.cap)
            moving[i] = mask_of(logit, rule)
        found = fitted(samples, design, moving, span, floor, found)
    return found


def noise_about(samples: Array, start: Background, rule: MaskRule) -> Background:
    """The same background with the noise of its pixels where nothing moves."""
    n_frames, *shape = samples.shape
    codes = np.stack([start.light_of(frame) for frame in samples])
    behind = np.stack([start.behind(code) for code in codes])
    residuals = (samples - behind).reshape(n_frames, -1)
    floor = max(start.span / 255, square_noise(samples, start, codes))
    scale = _deviation(residuals, floor)
    rule = replace(rule, prior=DOUBT)
    for _ in range(ROUNDS):
        found = replace(start, sigma=scale.astype(np.float32).reshape(shape))
        moving = np.stack(
            [
                mask_of(found.logit_of(frame, back, rule.cap), rule)
                for frame, back in zip(samples, behind, strict=True)
            ]
        )
        quiet = np.repeat(~moving.reshape(n_frames, -1), shape[2], axis=1)
        total, squares = quiet.sum(axis=0), (residuals**2 * quiet).sum(axis=0)
        scale = np.maximum(np.sqrt((squares + 36 * floor**2) / (total + 4)), floor)
    return replace(start, sigma=scale.astype(np.float32).reshape(shape))


def square_noise(samples: Array, start: Background, lights: Array) -> float:
    """Standard deviation of what a coarse codec adds to its squares, from jumps between them.

    Squares are wrong as a whole, at some moments alone, and so look like things that move. Jumps
    inside of squares, which noise and real things make as well, are subtracted.
    """
    step = -(-len(samples) // MOST_FRAMES)
    large: tuple[list[Array], list[Array]] = ([], [])
    for frame, light in zip(samples[::step], lights[::step], strict=True):
        residual = frame - start.behind(light)
        for found, lines in zip(large, (residual, residual.swapaxes(0, 1)), strict=True):
            jumps = np.abs(np.diff(lines, axis=0)).reshape(len(lines) - 1, -1)
            found.append(np.quantile(jumps, CALM, axis=1) ** 2)
    excess = 0.0
    for found in large:
        # Medians: the outline of a thing is on few lines if it stands, and at few times if not.
        usual = np.median(found, axis=0)
        between, half = np.arange(SQUARE - 1, len(usual) - SQUARE // 2, SQUARE), SQUARE // 2
        if len(between):
            inside = (usual[between - half] + usual[between + half]) / 2
            excess += max(float(np.median(usual[between] - inside)), 0.0) / 2
    # A jump is the difference of two squares.
    return float(np.sqrt(excess / 2)) / BOUND


def fitted(
    samples: Array,
    design: Array,
    moving: Array,
    span: float,
    floor: float,
    before: Background | None,
) -> Background:
    """Regress all pixels on the codes of the frames: by absolute deviations if nothing is known."""
    n_frames, height, width, n_channels = samples.shape
    q, size = design.shape[1], height * width * n_channels
    coef = np.zeros((size, q))
    scale = np.empty(size)
    flat, masks = samples.reshape(n_frames, -1), moving.reshape(n_frames, -1)
    if before is not None:
        coef[:, 0] = before.center.ravel()
        coef[:, 1:] = before.components.reshape(q - 1, size).T
    kernel = compiled(pixel_kernel)

    def regress(first: int) -> None:
        part = slice(first, min(first + CHUNK, size))
        T = np.ascontiguousarray(flat[:, part].T, dtype=np.float32)
        places = np.arange(part.start, part.stop) // n_channels
        ignored = np.ascontiguousarray(masks[:, places].T)
        if before is None:
            coef[part, 0] = np.median(T, axis=1)
            if q == 1:
                scale[part] = _deviation((T - coef[part]).T, floor)
                return
        kernel(T, design, ignored, coef[part], scale[part], floor, 0 if before else 12)
        if before is None:
            scale[part] = _deviation((T - coef[part] @ design.T).T, floor)

    with ThreadPool() as pool:
        pool.map(regress, range(0, size, CHUNK))
    shape = (height, width, n_channels)
    return Background(
        coef[:, 0].astype(np.float32).reshape(shape),
        coef[:, 1:].T.astype(np.float32).reshape(q - 1, *shape),
        np.maximum(scale, floor).astype(np.float32).reshape(shape),
        span,
    )


def _block_medians(samples: Array) -> Array:
    """Medians of square blocks: few numbers that small things do not change."""
    n_frames, height, width, n_channels = samples.shape
    side = max(8, round(np.sqrt(height * width / N_BLOCKS)))
    side = min(side, height, width)
    rows, columns = height // side, width // side
    blocks = samples[:, : rows * side, : columns * side].reshape(
        n_frames, rows, side, columns, side, n_channels
    )
    return np.median(blocks, axis=(2, 4)).reshape(n_frames, -1).astype(np.float64)


def _deviation(residuals: Array, floor: float = 0.5) -> Array:
    """Robust standard deviation of each column."""
    middle = np.median(residuals, axis=0)
    return np.maximum(1.4826 * np.median(np.abs(residuals - middle), axis=0), floor)


def _spread(residuals: Array) -> Array:
    """How far each column is from its median most of the time."""
    away = np.abs(residuals - np.median(residuals, axis=0))
    return np.maximum(np.quantile(away, QUANTILE, axis=0), 0.5)


def _regressed(blocks: Array, codes: Array) -> Array:
    design = np.column_stack([np.ones(len(codes)), codes])
    coef = np.zeros((blocks.shape[1], design.shape[1]))
    coef[:, 0] = np.median(blocks, axis=0)
    scale = np.empty(len(coef))
    T = np.ascontiguousarray(blocks.T)
    compiled(pixel_kernel)(T, design, np.zeros(T.shape, bool), coef, scale, 1.0, 12)
    return design @ coef.T


def _robust_codes(blocks: Array, k: int) -> Array:
    """Codes of rank ``k`` with weights that fall with the residual of each entry."""
    R = blocks - np.median(blocks, axis=0)
    R = R / _deviation(R)
    n = len(R)
    # Clipped, what moves has no more say than what drifts.
    U, _, _ = np.linalg.svd(np.clip(R, -3, 3), full_matrices=False)
    codes = U[:, :k] * np.sqrt(n)
    basis = codes.T @ R / n
    for _ in range(15):
        r = np.abs(R - codes @ basis)
        scale = 1.4826 * np.median(r) + 1e-9
        W = (scale / np.maximum(r, scale)) ** 2
        basis = _weighted(codes, W, R).T
        codes = _weighted(basis.T, W.T, R.T)
        Q, _ = np.linalg.qr(codes)
        codes = Q * np.sqrt(n)
    return codes


def _weighted(design: Array, weights: Array, targets: Array) -> Array:
    """Least squares of each column of ``targets`` with weights of its own."""
    k = design.shape[1]
    gram = np.einsum("ia,ij,ib->jab", design, weights, design, optimize=True)
    right = np.einsum("ia,ij->ja", design, weights * targets, optimize=True)
    return np.linalg.solve(gram + 1e-6 * np.eye(k), right[..., None])[..., 0]
