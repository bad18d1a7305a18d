"""Kernels of a splitting: what happens to the entries of a tile in a pass, and at its end."""

from robustpca.engine.linalg import Array


def residual_step(
    X: Array,
    A: Array,
    L: Array,
    decay: Array,
    slope: Array,
    bound: Array,
    relaxation: float,
    threshold: float,
    curvature: float,
    sums: Array,
) -> None:
    """Kernel: the step of the residual part and of its multipliers, on a tile.

    ``A - L`` are the scaled multipliers; ``decay``, ``slope`` and ``bound`` hold a number for
    each row. Each row of ``sums`` gets the squared norms of the primal residual and of the new
    multipliers, and the loss of ``X - L``.
    """
    zero = relaxation - relaxation  # of the same precision as the rest
    for i in range(X.shape[0]):
        primal = dual = value = zero
        shrunk, rise, most = decay[i], slope[i], bound[i]
        for j in range(X.shape[1]):
            low = L[i, j]
            old = (A[i, j] - low) * shrunk
            error = X[i, j] - low
            new = min(max(rise * (error + old), -most), most)
            size = abs(error)
            flat = min(size, threshold)
            cost = size - flat + curvature * flat * flat
            if error != error:  # a missing entry: no force, no cost
                new = zero
                cost = zero
            step = new - old
            A[i, j] = low + old + relaxation * step
            primal += step * step
            dual += new * new
            value += cost
        sums[i, 0] = primal
        sums[i, 1] = dual
        sums[i, 2] = value


def printed_step(
    X: Array,
    A: Array,
    Y: Array,
    L: Array,
    decay: Array,
    slope: Array,
    bound: Array,
    threshold: float,
    curvature: float,
    sums: Array,
) -> None:
    """Kernel: the step of the residual part and then of the multipliers ``Y``, on a tile.

    ``Y`` holds them over the penalty, and in the end over the next one, to which ``A`` belongs.
    The other arguments are those of `residual_step`.
    """
    zero = curvature - curvature
    for i in range(X.shape[0]):
        primal = dual = value = zero
        shrunk, rise, most = decay[i], slope[i], bound[i]
        for j in range(X.shape[1]):
            low, old = L[i, j], Y[i, j]
            error = X[i, j] - low
            new = min(max(rise * (error + old), -most), most)
            size = abs(error)
            flat = min(size, threshold)
            cost = size - flat + curvature * flat * flat
            if error != error:  # a missing entry: no force, no cost
                new = zero
                cost = zero
            step = new - old
            kept = shrunk * new
            # The data without the residual part, and with the multipliers.
            A[i, j] = low + step + kept
            Y[i, j] = kept
            primal += step * step
            dual += new * new
            value += cost
        sums[i, 0] = primal
        sums[i, 1] = dual
        sums[i, 2] = value


def extract_tile(
    X: Array,
    A: Array,
    L: Array,
    slope: float,
    bound: float,
    threshold: float,
    curvature: float,
    penalty: float,
    counts: Array,
    columns: Array,
    entries: Array,
) -> tuple[int, float, float, float]:
    """Kernel: turn a tile of ``A`` into multipliers and list the sparse entries of its rows.

    Returns the number of entries, the inner product of data and multipliers, the squared norm
    of the multipliers, and the loss of ``X - L``.
    """
    zero = slope - slope
    found, inner, squares, value = 0, 0.0, 0.0, 0.0
    for i in range(X.shape[0]):
        first = found
        for j in range(X.shape[1]):
            error = X[i, j] - L[i, j]
            if error != error:
                A[i, j] = zero
                continue
            push = error + (A[i, j] - L[i, j])
            force = min(max(slope * push, -bound), bound)
            flat = min(abs(error), threshold)
            value += abs(error) - flat + curvature * flat * flat
            rest = push - force
            rest -= min(max(rest, -threshold), threshold)
            dual = penalty * force
            A[i, j] = dual
            inner += X[i, j] * dual
            squares += dual * dual
            if rest != zero:
                columns[found] = j
                entries[found] = rest
                found += 1
        counts[i] = found - first
    return found, inner, squares, value
