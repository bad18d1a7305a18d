"""Small linear algebra shared by every loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, special
from scipy.optimize import brentq

from robustpca.engine.threads import compiled

Array = NDArray[Any]

# Upper quartile of the Gaussian distribution.
QUARTILE = float(special.ndtri(0.75))

# Values of which one is selected by way of a sample, and about how many that has.
MANY_VALUES, SAMPLED_VALUES = 1 << 17, 1 << 14


def square_norms(A: Array) -> Array:
    """Squared Euclidean norm of each row, accumulated in double precision."""
    return np.einsum("ij,ij->i", A, A, dtype=np.float64)


def inner_product(A: Array, B: Array) -> float:
    """Sum of the products of entries, without those that are missing (NaN)."""
    total = float(np.vdot(A, B))
    return total if np.isfinite(total) else float(np.nansum(A * B))


def median(values: Array) -> float:
    """Median of some numbers, none of them NaN, without the checks of `numpy.median`."""
    if len(values) > MANY_VALUES:
        middle = len(values) // 2
        places = [middle] if len(values) % 2 else [middle - 1, middle]
        return float(np.mean([selected(values, place) for place in places]))
    return float(medians(values))


def medians(A: Array) -> Array:
    """Median of each row, none of them with NaN, without the checks of `numpy.median`."""
    # One place is found several times as fast as two.
    middle = A.shape[-1] // 2
    parts = np.partition(A, middle, axis=-1)
    high = parts[..., middle]
    return high if A.shape[-1] % 2 else (parts[..., :middle].max(axis=-1) + high) / 2


def bulk(values: Array, n_spreads: float, n_usual: int = 0) -> Array:
    """The values, in order, that are at most so many spreads above the bulk of them.

    The bulk is found from the shortest interval that holds half of them, so that up to half of
    them may be outliers, unless ``n_usual`` is more.
    """
    ordered = np.sort(values)
    n_half = len(ordered) // 2 + 1
    widths = ordered[n_half - 1 :] - ordered[: len(ordered) - n_half + 1]
    first = int(np.argmin(widths))
    middle = (ordered[first] + ordered[first + n_half - 1]) / 2
    spread = widths[first] / 2 / QUARTILE
    kept = ordered
    for _ in range(30):
        n_before = len(kept)
        n_near = np.searchsorted(ordered, middle + n_spreads * spread + 1e-9, side="right")
        kept = ordered[: max(int(n_near), n_half, n_usual)]
        middle = median(kept)
        spread = median(np.abs(kept - middle)) / QUARTILE
        if len(kept) == n_before:
            break
    return kept


def selected(values: Array, rank: int) -> Any:
    """The value that has this place among all in ascending order, as `numpy.partition` finds it.

    A sample tells between which values it is, so that few are left to choose from.
    """
    if len(values) > MANY_VALUES:
        some = np.sort(values[:: len(values) // SAMPLED_VALUES])
        place, margin = rank / len(values) * len(some), 4 * np.sqrt(len(some))
        low, high = some[int(max(place - margin, 0))], some[int(min(place + margin, len(some) - 1))]
        near = values[(values >= low) & (values <= high)]
        n_below = int(np.count_nonzero(values < low))
        if n_below <= rank < n_below + len(near):
            values, rank = near, rank - n_below
    return np.partition(values, rank)[rank]


def column_percentiles(A: Array, wanted: list[float]) -> Array:
    """Percentiles of each column without its missing entries; NaN for a column without others."""
    # Sorting is faster than a selection for several columns at once. Missing entries come last.
    ordered = np.sort(A, axis=0)
    places = np.outer(wanted, np.count_nonzero(~np.isnan(A), axis=0) - 1) / 100
    below = np.floor(places).astype(int)
    low, high = (np.take_along_axis(ordered, at, 0) for at in (below, np.ceil(places).astype(int)))
    return np.asarray(low + (places - below) * (high - low))


def finite(sums: Array) -> Array:
    """Return ``sums`` if they are finite: any bad entry of the data shows up in them."""
    if not np.isfinite(sums).all():
        raise ValueError("Input X contains NaN, infinity or a value too large to be squared.")
    return sums


def orthonormal(A: Array, against: Array | None = None) -> Array:
    """Orthonormal columns spanning those of ``A``, completed where ``A`` lacks rank.

    With ``against`` (orthonormal columns), the result is also orthogonal to it, and columns
    of ``A`` that already lie in its span are replaced by other directions.
    """
    Q = linalg.qr(A, mode="economic", check_finite=False)[0]
    if against is None or against.shape[1] == 0:
        return Q
    # A column almost inside span(against) is mostly rounding error once projected, so the
    # projection is repeated on unit columns until nothing is left to remove.
    for _ in range(3):
        overlap = against.T @ Q
        if np.abs(overlap).max() < 1e-14:
            return Q
        Q = linalg.qr(Q - against @ overlap, mode="economic", check_finite=False)[0]
    # A column that vanishes altogether is replaced by QR with an axis that may lie in
    # span(against) again; one factorisation of both together leaves no such choice.
    both = linalg.qr(np.hstack([against, Q]), mode="economic", check_finite=False)[0]
    return both[:, against.shape[1] :]


def principal_axes(gram: Array) -> tuple[Array, Array]:
    """Eigenvalues, largest first and never negative, and eigenvectors of a psd matrix.

    Coordinates without any variance stay out of the others' way: they come last, in order, as
    axes of their own, and all other eigenvectors are exactly zero there.
    """

    def solve(inner: Array) -> tuple[Array, Array]:
        if inner.dtype == np.float32:
            # NumPy would compute in double precision, and round what it finds.
            values, vectors = linalg.eigh(inner, driver="evd", check_finite=False)
        else:
            values, vectors = np.linalg.eigh(inner)
        return np.maximum(values[::-1], 0.0), vectors[:, ::-1]

    used = np.asarray(gram.any(axis=0))
    return _axes(used, gram if used.all() else gram[np.ix_(used, used)], solve)


def singular_axes(A: Array) -> tuple[Array, Array]:
    """What `principal_axes` gives for ``A.T @ A``, with the digits that the product would lose."""

    def solve(inner: Array) -> tuple[Array, Array]:
        missing = max(0, inner.shape[1] - len(inner))
        inner = np.pad(inner, ((0, missing), (0, 0)))
        values, turned = linalg.svd(inner, full_matrices=False, check_finite=False)[1:]
        return values**2, turned.T

    used = np.asarray(A.any(axis=0))
    return _axes(used, A[:, used], solve)


def _axes(
    used: Array, inner: Array, solve: Callable[[Array], tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Solve for the used coordinates; the others come last, as axes of their own."""
    if used.all():
        return solve(inner)
    n, n_used = len(used), int(np.count_nonzero(used))
    values, axes = np.zeros(n), np.zeros((n, n))
    axes[~used, n_used:] = np.eye(n - n_used)
    if n_used:
        values[:n_used], axes[used, :n_used] = solve(inner)
    return values, axes


def in_safe_units(A: Array) -> Array:
    """A matrix times a power of two, which changes no digit: squares do not overflow."""
    exponent = np.frexp(np.abs(A).max(initial=0.0))[1]
    return np.asarray(np.ldexp(A, -exponent))


def root_between(function: Callable[[float], float], low: float, high: float, xtol: float) -> float:
    """Where a function is zero between two places at which its signs differ."""
    # Near a root values may be hardly more than rounding errors. The search then runs out of steps
    # before it meets so small a tolerance, but it is where it should be.
    found, _ = brentq(function, low, high, xtol=xtol, rtol=1e-15, full_output=True, disp=False)
    return float(found)


def flip_signs(components: Array) -> Array:
    """Make the entry of largest magnitude of each row positive (the first one of a tie)."""
    # Entries equal but for rounding must not decide the sign by chance.
    magnitude = np.abs(components)
    largest = np.argmax(magnitude >= magnitude.max(axis=1, keepdims=True) * (1 - 1e-9), axis=1)
    signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
    # Adding zero leaves no negative zeros.
    return components * signs[:, None] + 0.0


def row_counts(A: Array) -> Array:
    """How many entries of each row are not zero."""
    counts = np.empty(len(A), np.int64)
    compiled(count_entries)(np.ascontiguousarray(A), counts)
    return counts


def csr_of(A: Array, counts: Array | None = None) -> sparse.csr_array:
    """A dense array as a sparse one; ``counts`` are those of its rows, if they are known."""
    A = np.ascontiguousarray(A)
    index = np.int32 if A.size <= np.iinfo(np.int32).max else np.int64
    starts = np.zeros(len(A) + 1, index)
    np.cumsum(row_counts(A) if counts is None else counts, out=starts[1:])
    # One entry more, which the kernel may write.
    entries, columns = np.empty(starts[-1] + 1, A.dtype), np.empty(starts[-1] + 1, index)
    compiled(list_entries)(A, entries, columns)
    return sparse.csr_array((entries[:-1], columns[:-1], starts), shape=A.shape)


def count_entries(A: Array, counts: Array) -> None:
    """Kernel: how many entries of each row are not zero."""
    for i in range(A.shape[0]):
        count = 0
        for j in range(A.shape[1]):
            count += A[i, j] != 0
        counts[i] = count


def list_entries(A: Array, entries: Array, columns: Array) -> None:
    """Kernel: the entries that are not zero and their columns, row by row."""
    m = 0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            # Without a branch, which would be a surprise at each entry.
            entries[m], columns[m] = A[i, j], j
            m += A[i, j] != 0
