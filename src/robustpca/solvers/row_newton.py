"""Newton's method for the problem of a new row, whose loss is quadratic near zero and then linear.

Each residual is in one of three states: small, or beyond the threshold on either side. Given the
states, the objective is quadratic and its minimum solves a small linear system; the search ends
when that minimum has the states it was computed for, after a handful of steps and to all digits.
Between two steps few states change, and with them the sums that make up the system.

A loss without a quadratic part (L1) is smoothed, with a threshold that is lowered to ``tol`` times
the size of the low-rank part, or to what the basis leaves of a row: the solution moves along a
straight line while states do not change, so most of the way is one jump.
"""

import numpy as np

from robustpca.engine.linalg import Array

# How far the threshold of a smoothed loss is lowered once no state changes, the share of the states
# that may change then, and how far it is lowered at least if more do.
JUMP, FEW, STEP = 1e-4, 0.1, 0.2
# Steps of a search that begins with the last threshold.
FEW_STEPS = 8
# A smoothed loss may end with a threshold of so many times the mean residual of the start, and of
# the least one: smaller residuals are those of the basis, which is as accurate as the fit was.
RESOLVED = 4.0


def newton_rows(
    X: Array,
    mean: Array,
    basis: Array,
    gram: Array,
    curves: Array,
    linear: Array,
    numbers: tuple[float, float, float, float, float],
    codes: Array,
    starts: Array,
    max_iter: int,
    solved: Array,
) -> None:
    """Kernel: minimise ``loss(x - mean - z basis) + z' diag(curve) z / 2 + linear' z`` by rows.

    ``numbers`` are the weight of the loss, its threshold (0 to smooth it), its second derivative
    below and the largest derivative beyond, and the tolerance. ``gram`` is ``basis @ basis.T``.
    A row begins with its scores in ``codes``, and a smoothed loss with a threshold of ``starts``;
    where that is negative, all residuals start as small ones.
    """
    weight, threshold, curvature, bound, tol = numbers
    n, d = X.shape
    k = len(basis)
    smoothed = threshold == 0.0
    # What a row is without the mean, its residuals, those at the next point, whether they exist.
    r, e, fresh, seen, force = (np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d))
    state, place, leaves = np.empty(d), np.empty(d, np.int64), np.empty(d)
    taken, signed = np.empty((k, d)), np.empty((k, d))
    # The sum of b b' over the small residuals.
    squares, system, z, y = np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k)
    for i in range(n):
        cold = starts[i] < 0.0
        size, extent, n_seen = read_row(X[i], mean, basis, codes[i], cold, r, e, seen, z)
        t, least, settled = threshold, threshold, threshold
        if smoothed:
            least = last_threshold(tol * max(size, extent) / d, starts[i])
            t = max(starts[i], least)
            t = t if t > 0.0 else 1.0
        small = first_states(e, seen, t, state)
        # A start that fits few entries is none: then the first step is that of least squares.
        cold = cold or small < 0.25 * n_seen
        # One at the last threshold is the end but for a few states, or else leads nowhere.
        ended = smoothed and not cold and t <= 1.01 * least
        most = min(max_iter, FEW_STEPS) if ended else max_iter
        if cold:
            for j in range(d):
                state[j], e[j] = 0.0, r[j]
            for a in range(k):
                z[a] = 0.0
        m = 0
        for j in range(d):
            place[m], leaves[m] = j, -1.0
            m += (state[j] != 0.0) | (seen[j] == 0.0)
        for a in range(k):
            for b in range(k):
                squares[a, b] = gram[a, b]
        following, done, iteration = False, False, 0
        while iteration < most and not done:
            iteration += 1
            change_squares(basis, place, leaves, m, taken, signed, squares)
            slope = curvature if t == threshold else weight / t
            for j in range(d):
                force[j] = (1.0 - abs(state[j])) * slope * e[j] + weight * state[j]
            newton_point(basis, force, slope, squares, curves[i], linear[i], z, system, y)
            if threshold == np.inf:
                # A quadratic has no states: the first minimum is the last.
                for a in range(k):
                    z[a] = y[a]
                done = True
                break
            residuals_at(basis, r, seen, y, fresh)
            changed, small = compare_states(fresh, seen, state, t)
            if smoothed:
                size = size_at(fresh, r, mean)
                least = last_threshold(tol * max(size, extent) / d, starts[i])
                least = least if least > 0.0 else t
            last_t = t <= (1.01 * least if smoothed else least)
            done = last_t and changed == 0.0
            if following and changed > FEW * small and t < STEP * settled:
                t = shorter_jump(e, fresh, state, t, settled, FEW * small)
                m = 0
                continue
            share, first_step = 1.0, cold and iteration == 1
            if changed > 0.0 and not first_step:
                moved, first, last = compare_points(e, fresh, slope, bound)
                done = last_t and moved <= (1e-13 * size) ** 2
                if not following and not done:
                    share = step_share(
                        e, fresh, slope, bound, first, last, curves[i], linear[i], z, y
                    )
            for a in range(k):
                z[a] += share * (y[a] - z[a])
            if done:
                break
            following = changed == 0.0
            if first_step:
                near, total = first_sizes(fresh, seen, threshold)
                if near < 0.25 * n_seen:
                    t, following = max(least, total / d), False
            if following:
                settled, t = t, max(least, JUMP * t)
            m = 0
            for j in range(d):
                e[j] += share * (fresh[j] - e[j])
                if not following:
                    now = side(e[j], t)
                    place[m], leaves[m] = j, abs(state[j]) - abs(now)
                    m += now != state[j]
                    state[j] = now
        solved[i] = done
        for a in range(k):
            codes[i, a] = z[a]


def side(error: float, t: float) -> float:
    """Kernel: the state of a residual, 0 if it is small and else its sign."""
    return (1.0 if error > t else 0.0) - (1.0 if error < -t else 0.0)


def read_row(
    x: Array,
    mean: Array,
    basis: Array,
    codes: Array,
    cold: bool,
    r: Array,
    e: Array,
    seen: Array,
    z: Array,
) -> tuple[float, float, float]:
    """Kernel: a row without the mean, and its residuals at the start.

    Returns sums over the entries: of the sizes of the low-rank part, of the least size that
    compares with it, and of those that are there.
    """
    for j in range(len(x)):
        there = x[j] == x[j]
        seen[j] = 1.0 if there else 0.0
        r[j] = x[j] - mean[j] if there else 0.0
        e[j] = r[j]
    for a in range(len(basis)):
        z[a] = 0.0 if cold else codes[a]
        if not cold:
            for j in range(len(x)):
                e[j] -= z[a] * basis[a, j]
    size, extent, n_seen = 0.0, 0.0, 0.0
    for j in range(len(x)):
        e[j] *= seen[j]
        size += abs(mean[j] + r[j] - e[j])
        extent += abs(r[j])
        n_seen += seen[j]
    # A low-rank part that is zero has no size to compare with.
    return size, 1e-6 * extent, n_seen


def first_states(e: Array, seen: Array, t: float, state: Array) -> float:
    """Kernel: the states of residuals; returns how many are small."""
    small = 0.0
    for j in range(len(e)):
        state[j] = side(e[j], t)
        small += seen[j] - abs(state[j])
    return small


def change_squares(
    basis: Array, place: Array, leaves: Array, m: int, taken: Array, signed: Array, squares: Array
) -> None:
    """Kernel: add to the upper half of ``squares`` what ``m`` changed states make of it."""
    for a in range(len(basis)):
        for q in range(m):
            taken[a, q] = basis[a, place[q]]
            signed[a, q] = leaves[q] * taken[a, q]
        for b in range(a + 1):
            s = 0.0
            for q in range(m):
                s += signed[a, q] * taken[b, q]
            squares[b, a] += s


def newton_point(
    basis: Array,
    force: Array,
    slope: float,
    squares: Array,
    curves: Array,
    linear: Array,
    z: Array,
    system: Array,
    y: Array,
) -> None:
    """Kernel: the minimum for the states that the forces belong to, by a Cholesky factor.

    If too few residuals are small to determine it, the step to it is short.
    """
    k, tiny = len(basis), 1e-14 * slope
    # The diagonal of the factor is stored as its inverse.
    for a in range(k):
        for b in range(a):
            s = slope * squares[b, a]
            for q in range(b):
                s -= system[a, q] * system[b, q]
            system[a, b] = s * system[b, b]
        pivot, s = slope * squares[a, a] + curves[a] + tiny, 0.0
        for j in range(len(force)):
            s += basis[a, j] * force[j]
        s -= curves[a] * z[a] + linear[a]
        for q in range(a):
            pivot -= system[a, q] * system[a, q]
            s -= system[a, q] * y[q]
        system[a, a] = 1.0 / max(pivot, tiny) ** 0.5
        y[a] = s * system[a, a]
    for a in range(k - 1, -1, -1):
        y[a] *= system[a, a]
        for q in range(a):
            y[q] -= system[a, q] * y[a]
    for a in range(k):
        y[a] += z[a]


def residuals_at(basis: Array, r: Array, seen: Array, y: Array, fresh: Array) -> None:
    """Kernel: residuals at a point; missing entries have none."""
    for j in range(len(r)):
        fresh[j] = r[j]
    for a in range(len(basis)):
        s = y[a]
        for j in range(len(r)):
            fresh[j] -= s * basis[a, j]
    for j in range(len(r)):
        fresh[j] *= seen[j]


def last_threshold(least: float, start: float) -> float:
    """Kernel: where to stop lowering the threshold of a smoothed loss."""
    return min(max(least, RESOLVED * start), RESOLVED * least)


def compare_states(fresh: Array, seen: Array, state: Array, t: float) -> tuple[float, float]:
    """Kernel: how many states change, and how many were small."""
    changed, small = 0.0, 0.0
    for j in range(len(fresh)):
        changed += abs(side(fresh[j], t) - state[j])
        small += seen[j] - abs(state[j])
    return changed, small


def size_at(fresh: Array, r: Array, mean: Array) -> float:
    """Kernel: the size of the low-rank part."""
    size = 0.0
    for j in range(len(fresh)):
        size += abs(mean[j] + r[j] - fresh[j])
    return size


def first_sizes(fresh: Array, seen: Array, threshold: float) -> tuple[float, float]:
    """Kernel: how many residuals are small after the first step, and the sum of their sizes."""
    near, total = 0.0, 0.0
    for j in range(len(fresh)):
        near += seen[j] if abs(fresh[j]) <= threshold else 0.0
        total += abs(fresh[j])
    return near, total


def compare_points(
    e: Array, fresh: Array, slope: float, bound: float
) -> tuple[float, float, float]:
    """Kernel: squared length of a step, and derivatives of the loss along it at both its ends."""
    moved, first, last = 0.0, 0.0, 0.0
    for j in range(len(e)):
        step = fresh[j] - e[j]
        moved += step * step
        first += step * min(max(slope * e[j], -bound), bound)
        last += step * min(max(slope * fresh[j], -bound), bound)
    return moved, first, last


def shorter_jump(
    e: Array, fresh: Array, state: Array, t: float, settled: float, few: float
) -> float:
    """Kernel: how far to follow the line of minima, on which only a ``few`` states may change."""
    left, right = t, STEP * settled
    while right > 2.0 * left:
        middle, n_left = (left * right) ** 0.5, 0.0
        share = (settled - middle) / (settled - t)
        for j in range(len(e)):
            size = abs(e[j] + share * (fresh[j] - e[j]))
            n_left += 1.0 if state[j] == 0.0 and size > middle else 0.0
        if n_left > few:
            left = middle
        else:
            right = middle
    return right


def step_share(
    e: Array,
    fresh: Array,
    slope: float,
    bound: float,
    first: float,
    last: float,
    curves: Array,
    linear: Array,
    z: Array,
    y: Array,
) -> float:
    """Kernel: the share of a step at which the derivative along it is about zero, at most all."""
    begin, end = 0.0, 0.0
    for a in range(len(z)):
        begin += (y[a] - z[a]) * (curves[a] * z[a] + linear[a])
        end += (y[a] - z[a]) * (curves[a] * y[a] + linear[a])
    first, last = first + begin, last + end
    share, left, right, above = 1.0, 0.0, 1.0, last > -0.5 * first
    low, high, tries = first, last, 0
    while above and tries < 12:
        tries += 1
        cut = low / (low - high) if low < 0.0 else 0.5
        share = left + min(max(cut, 0.1), 0.9) * (right - left)
        s = begin + share * (end - begin)
        for j in range(len(e)):
            step = fresh[j] - e[j]
            s += step * min(max(slope * (e[j] + share * step), -bound), bound)
        above = abs(s) > -0.3 * first
        if s > 0.0:
            right, high = share, s
        else:
            left, low = share, s
    return share
