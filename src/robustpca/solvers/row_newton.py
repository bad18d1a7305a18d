"""Newton's method for the problem of a new row, whose loss is quadratic near zero and then linear.

Each residual is in one of three states: small, or beyond the threshold on either side. Given the
states, the objective is quadratic and its minimum solves a small linear system; the search ends
when that minimum has the states it was computed for, after a handful of steps and to all digits.
Between two steps few states change, and with them the sums that make up the system.

A loss without a quadratic part (L1) is smoothed, with a threshold that is lowered to ``tol`` times
the size of the low-rank part: the solution moves along a straight line while states do not change,
so most of the way is one jump.
"""

import numpy as np

from robustpca.engine.linalg import Array

# How far the threshold of a smoothed loss is lowered once no state changes, the share of the states
# that may change then, and how far it is lowered at least if more do.
JUMP, FEW, STEP = 1e-4, 0.1, 0.2
# Steps of a search that begins with the last threshold.
FEW_STEPS = 8


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
            t = max(starts[i], tol * max(size, extent) / d)
            t = t if t > 0.0 else 1.0
        small = first_states(e, seen, t, state)
        # A start that fits few entries is none: then the first step is that of least squares.
        cold = cold or small < 0.25 * n_seen
        # One at the last threshold is the end but for a few states, or else leads nowhere.
        ended = smoothed and not cold and t <= 1.01 * tol * max(size, extent) / d
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
            changed, small, near, total = compare_states(fresh, seen, state, t, threshold)
            moved, size, first, last = compare_points(e, fresh, r, mean, slope, bound)
            if smoothed:
                least = tol * max(size, extent) / d
                least = least if least > 0.0 else t
            last_t = t <= (1.01 * least if smoothed else least)
            done = last_t and (changed == 0.0 or moved <= (1e-13 * size) ** 2)
            if following and changed > FEW * small and t < STEP * settled:
                t = shorter_jump(e, fresh, state, t, settled, FEW * small)
                m = 0
                continue
            share = 1.0
            if changed > 0.0 and not following and not done and not (cold and iteration == 1):
                share = step_share(e, fresh, slope, bound, first, last, curves[i], linear[i], z, y)
            for a in range(k):
                z[a] += share * (y[a] - z[a])
            if done:
                break
            following = changed == 0.0
            if cold and iteration == 1 and near < 0.25 * n_seen:
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
    """Kernel: the minimum for the states that the forces belong to, by elimination.

    If too few residuals are small to determine it, the step to it is short.
    """
    k, tiny = len(basis), 1e-14 * slope
    for a in range(k):
        s = 0.0
        for j in range(len(force)):
            s += basis[a, j] * force[j]
        y[a] = s - curves[a] * z[a] - linear[a]
        for b in range(a, k):
            system[a, b] = slope * squares[a, b]
        system[a, a] += curves[a] + tiny
    for a in range(k):
        inverse = 1 / max(system[a, a], tiny)
        for b in range(a + 1, k):
            factor = system[a, b] * inverse
            y[b] -= factor * y[a]
            for q in range(b, k):
                system[b, q] -= factor * system[a, q]
        system[a, a] = inverse
    for a in range(k - 1, -1, -1):
        s = y[a]
        for q in range(a + 1, k):
            s -= system[a, q] * y[q]
        y[a] = s * system[a, a]
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


def compare_states(
    fresh: Array, seen: Array, state: Array, t: float, threshold: float
) -> tuple[float, float, float, float]:
    """Kernel: how many states change, how many were small, how many are, and the sum of sizes."""
    changed, small, near, total = 0.0, 0.0, 0.0, 0.0
    for j in range(len(fresh)):
        changed += abs(side(fresh[j], t) - state[j])
        small += seen[j] - abs(state[j])
        near += seen[j] if abs(fresh[j]) <= threshold else 0.0
        total += abs(fresh[j])
    return changed, small, near, total


def compare_points(
    e: Array, fresh: Array, r: Array, mean: Array, slope: float, bound: float
) -> tuple[float, float, float, float]:
    """Kernel: squared length of a step, the size of the low-rank part after it, and derivatives.

    These are the derivatives of the loss along the step, at both its ends.
    """
    moved, size, first, last = 0.0, 0.0, 0.0, 0.0
    for j in range(len(e)):
        step = fresh[j] - e[j]
        moved += step * step
        size += abs(mean[j] + r[j] - fresh[j])
        first += step * min(max(slope * e[j], -bound), bound)
        last += step * min(max(slope * fresh[j], -bound), bound)
    return moved, size, first, last


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
