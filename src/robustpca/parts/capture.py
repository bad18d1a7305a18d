"""Whether a group of outliers has captured a fit: a cheap comparison with a robust subspace."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from robustpca.engine.linalg import Array, orthonormal, square_norms
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
# The least share of rows that are a group, and how much worse than by the robust subspace
# trusted rows must be fitted (in squared distances).
GROUP, WORSE = 0.02, 1.5
# Fewer rows than these are no group, or no sample to judge by.
FEW_ROWS, FEWEST_ROWS = 5, 50
# Smaller angles than this one (in degrees) are no capture.
TURNED = 30.0

ADVICE = "Use PCAAN, which leaves such rows out, or look at these rows first."


@dataclass(frozen=True)
class Capture:
    """A fit that serves a group of far rows instead of the majority.

    ``angle`` (in degrees) is the largest one between the subspace and a robust one, ``share``
    that of the rows that hold it, ``worse`` the factor by which the squared distance of the
    trusted rows is larger than it could be.
    """

    angle: float
    share: float
    worse: float


def capture(
    rows: Rows, mean: Array, components: Array, outside: Array | None = None
) -> Capture | None:
    """Compare a fitted subspace with a robust one, on a sample of dense rows in memory.

    Rows on disk would have to be read once more, and sparse ones made dense; their coordinates in
    a view do as well.

    Half of the sample with the least outlyingness is trusted: one part of it gives the robust
    subspace, the other one judges both. The fit is captured if it serves these rows markedly
    worse, and is near to a group of rows that are far from the robust subspace. Both are needed:
    data in classes have a half that fits a subspace of its own, but no far group.

    Parameters
    ----------
    rows : Rows
        The data.
    mean, components : ndarray
        Centre and orthonormal rows of the fitted subspace.
    outside : ndarray of shape (n_samples,), default=None
        Squared distances of the samples from what the rows describe, if these are coordinates in
        a space that holds the subspace and the directions in which the samples vary most.
    """
    n, c = rows.shape[0], len(components)
    rng = np.random.RandomState(0)
    size = min(n, max(N_ROWS, ROWS_PER_COMPONENT * c), max(100, N_NUMBERS // rows.shape[1]))
    if size < FEWEST_ROWS or 8 * c > size or c >= rows.shape[1] or not isinstance(rows, ArrayRows):
        return None
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
        return _captured(codes, c, half, rng)
    half = trusted_half(ArrayRows(codes), left, rng, N_DIRECTIONS)
    found = _captured(codes, c, half, rng)
    if found is None:
        return None
    # The half itself may be held by such a cloud, and the fit be right.
    other = challenged(ArrayRows(codes), left, half, c, rng)
    return found if other is half else _captured(codes, c, other, rng)


def _captured(codes: Array, c: int, half: Array, rng: np.random.RandomState) -> Capture | None:
    """Judge the subspace of the first ``c`` columns by a half of the rows."""
    own, others = np.array_split(rng.permutation(np.flatnonzero(half)), 2)
    center = codes[own].mean(axis=0)
    axes = linalg.svd(codes[own] - center, full_matrices=False, check_finite=False)[2][:c]
    robust, fitted = _distances(codes, center, axes), square_norms(codes[:, c:])
    scale = float(np.median(robust[others]))
    worse = float(np.median(fitted[others])) / max(scale, np.finfo(np.float64).tiny)
    held = np.count_nonzero((robust > FAR**2 * scale) & (fitted < robust / HELD**2))
    cosine = np.linalg.svd(axes[:, :c], compute_uv=False).min()
    angle = float(np.degrees(np.arccos(min(1.0, cosine))))
    is_group = held >= max(FEW_ROWS, GROUP * len(codes))
    if not is_group or worse < WORSE or angle < TURNED:
        return None
    return Capture(angle, held / len(codes), worse)


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
