"""Whether a group of outliers has captured a fit: a cheap comparison with a robust subspace."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg

from robustpca.engine.linalg import Array, median, orthonormal, square_norms
from robustpca.engine.rows import ArrayRows, Rows
from robustpca.parts.starts import challenged, nearer_half, trusted_half

# So many rows are looked at, or so many for each component if that is more; wide rows only as
# far as they are so many numbers.
N_ROWS, ROWS_PER_COMPONENT, N_NUMBERS = 300, 12, 2_000_000
# Leading directions of the sample beside the components.
N_BESIDE = 10
# Directions along which rows are judged: one through a row of a group of GROUP is among them.
N_DIRECTIONS = 125
# A row is far from the robust subspace beyond this many times the median distance of trusted
# rows, and held by a fit that is nearer to it by this factor.
FAR, HELD = 6.0, 3.0
# The least share of rows that are a group; fewer rows than these are none, or no sample.
GROUP, FEW_ROWS, FEWEST_ROWS = 0.02, 5, 50
# How much worse than by the robust subspace trusted rows are fitted (in squared distances) and how
# far the fit is turned from it (in degrees): a suspicion, a capture, and one beyond doubt.
SUSPECT, CAPTURE, CLEAR = (1.3, 30.0), (1.6, 45.0), (4.0, 45.0)
# So many draws judge a fit that the first one suspects; most of them decide, or a clear one.
N_DRAWS = 7

ADVICE = "Use PCAAN, which leaves such rows out, or look at these rows first."


@dataclass(frozen=True)
class Capture:
    """How far a fit serves a group of far rows instead of the majority.

    ``angle`` (in degrees) is the largest one between the subspace and a robust one, ``share``
    that of the rows that hold it (0 if they are too few for a group), ``worse`` the factor by which
    the squared distance of the trusted rows is larger than it could be.
    """

    angle: float
    share: float
    worse: float

    def exceeds(self, limits: tuple[float, float]) -> bool:
        """Whether there is a group, and factor and angle are at least these."""
        return self.share > 0 and self.worse >= limits[0] and self.angle >= limits[1]


def capture(
    rows: Rows,
    mean: Array,
    components: Array,
    outside: Array | None = None,
    *,
    seed: int = 0,
) -> Capture | None:
    """Compare a fitted subspace with a robust one, on samples of dense rows in memory.

    Rows on disk would have to be read once more, and sparse ones made dense; their coordinates in
    a view do as well.

    Half of a sample with the least outlyingness is trusted: one part of it gives the robust
    subspace, the other one judges both. The fit is captured if it serves these rows markedly
    worse, and is near to a group of rows that are far from the robust subspace. Both are needed:
    data in classes have a half that fits a subspace of its own, but no far group.

    Near these limits another sample may say otherwise. So a suspicion is looked at with several
    samples, and most of them decide, or one that is far beyond the limits.

    Parameters
    ----------
    rows : Rows
        The data.
    mean, components : ndarray
        Centre and orthonormal rows of the fitted subspace.
    outside : ndarray of shape (n_samples,), default=None
        Squared distances of the samples from what the rows describe, if these are coordinates in
        a space that holds the subspace and the directions in which the samples vary most.
    seed : int, default=0
        Of the samples and directions that are drawn.

    Returns
    -------
    capture : Capture or None
        None if the fit is not captured, otherwise the median of the draws that found it.
    """
    n, c = rows.shape[0], len(components)
    size = min(n, max(N_ROWS, ROWS_PER_COMPONENT * c), max(100, N_NUMBERS // rows.shape[1]))
    if size < FEWEST_ROWS or 8 * c > size or c >= rows.shape[1] or not isinstance(rows, ArrayRows):
        return None
    rng = np.random.RandomState(seed)
    draw = partial(_drawn, rows, mean, components, outside, size, rng)
    found = [draw()]
    if not found[0].exceeds(SUSPECT):
        return None
    while True:
        captures = [one for one in found if one.exceeds(CAPTURE)]
        if 2 * len(captures) > N_DRAWS or found[-1].exceeds(CLEAR):
            values = np.median([(one.angle, one.share, one.worse) for one in captures], axis=0)
            return Capture(*map(float, values))
        if 2 * (len(found) - len(captures)) > N_DRAWS:
            return None
        found.append(draw())


def _drawn(
    rows: Rows,
    mean: Array,
    components: Array,
    outside: Array | None,
    size: int,
    rng: np.random.RandomState,
) -> Capture:
    """Judge a subspace by a sample of so many rows."""
    n, c = rows.shape[0], len(components)
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.choice(n, size, replace=False)] = True
    Z = rows.centred(mean).map("take", along=(chosen,))
    # Both subspaces are compared where the sample varies most: noise in all the other directions
    # would hide the difference.
    fitted_axes = components.T.astype(np.float64)
    found = Z.T @ rng.normal(size=(size, N_BESIDE))
    for _ in range(2):
        found = orthonormal(found - fitted_axes @ (fitted_axes.T @ found))
        found = Z.T @ (Z @ found)
    beside = orthonormal(found, against=fitted_axes)
    codes = np.hstack([Z @ fitted_axes, Z @ beside])
    left = np.maximum(square_norms(Z) - square_norms(codes), 0.0)
    if outside is not None:
        left += outside[chosen]
    # A cloud near the centre is trusted, but stands out in the scores of a fit that it holds.
    half = nearer_half(codes, left, c, rng)
    if half is not None:
        judged = _judged(codes, c, half, rng)
        # The rival of a fit that is bad for all rows may serve the cloud as well.
        if judged.share > 0:
            return judged
    half = trusted_half(ArrayRows(codes), left, rng, N_DIRECTIONS)
    judged = _judged(codes, c, half, rng)
    if not judged.exceeds(SUSPECT):
        return judged
    # The half itself may be held by such a cloud, and the fit be right.
    other = challenged(ArrayRows(codes), left, half, c, rng)
    return judged if other is half else _judged(codes, c, other, rng)


def _judged(codes: Array, c: int, half: Array, rng: np.random.RandomState) -> Capture:
    """Judge the subspace of the first ``c`` columns by a half of the rows."""
    own, others = np.array_split(rng.permutation(np.flatnonzero(half)), 2)
    center = codes[own].mean(axis=0)
    axes = linalg.svd(codes[own] - center, full_matrices=False, check_finite=False)[2][:c]
    robust, fitted = _distances(codes, center, axes), square_norms(codes[:, c:])
    # Distances at the level of rounding errors are none.
    limits = np.finfo(np.float64)
    rounding = limits.eps**2 * float(square_norms(codes).max())
    scale = max(median(robust[others]), rounding, limits.tiny)
    worse = median(fitted[others]) / scale
    held = np.count_nonzero((robust > FAR**2 * scale) & (fitted < robust / HELD**2))
    cosine = np.linalg.svd(axes[:, :c], compute_uv=False).min()
    angle = float(np.degrees(np.arccos(min(1.0, cosine))))
    is_group = held >= max(FEW_ROWS, GROUP * len(codes))
    return Capture(angle, held / len(codes) if is_group else 0.0, worse)


def capture_warnings(
    name: str,
    rows: Rows,
    mean: Array,
    components: Array,
    outside: Array | None = None,
    *,
    advice: str = ADVICE,
) -> tuple[Warning, ...]:
    """The warning that a group of outliers holds the fit of a method; none if it does not."""
    found = capture(rows, mean, components, outside)
    if found is None:
        return ()
    return (
        UserWarning(
            f"A group of outliers seems to hold the fit of {name}: {found.share:.0%} of the rows "
            f"lie far from a robust subspace, which is {found.angle:.0f} degrees away from the "
            f"fitted one and nearer to most other rows. {advice}"
        ),
    )


def _distances(X: Array, center: Array, axes: Array) -> Array:
    """Squared distances of rows from a subspace."""
    Z = X - center
    return square_norms(Z - (Z @ axes.T) @ axes)
