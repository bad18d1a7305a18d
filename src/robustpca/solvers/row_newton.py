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


def newton_rows(
    X: Array,
    mean: Array,
    basis: Array,
    gram: Array,
    curves: Array,
    linear: Array,
    numbers: tuple[float, float, float, float, float],
    codes: Array,
    start: float,
    max_iter: int,
    solved: Array,
) -> None:
    """Kernel: minimise ``loss(x - mean - z basis) + z' diag(curve) z / 2 + linear' z`` by rows.

    ``numbers`` are the weight of the loss, its threshold (0 to smooth it), its second derivative
    below and the largest derivative beyond, and the tolerance. ``gram`` is ``basis @ basis.T``.
    With ``start > 0`` the scores in ``codes`` are used, and a smoothed loss begins with a threshold
    of so many times the size of the low-rank part; otherwise all residuals start as small ones.
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
        for j in range(d):
            there = X[i, j] == X[i, j]
            seen[j] = 1.0 if there else 0.0
            r[j] = X[i, j] - mean[j] if there else 0.0
            e[j] = r[j]
        for a in range(k):
            z[a] = codes[i, a] if start > 0.0 else 0.0
            if start > 0.0:
                for j in range(d):
                    e[j] -= z[a] * basis[a, j]
            for b in range(k):
                squares[a, b] = gram[a, b]
        size, extent, n_seen = 0.0, 0.0, 0.0
        for j in range(d):
            e[j] *= seen[j]
            size += abs(mean[j] + r[j] - e[j])
            extent += abs(r[j])
            n_seen += seen[j]
        # A low-rank part that is zero has no size to compare with.
        extent *= 1e-6
        t, least, settled = threshold, threshold, threshold
        if smoothed:
            t = max(start, tol) * max(size, extent) / d
            if t == 0.0:
                t = 1.0
        small = 0.0
        for j in range(d):
            state[j] = (1.0 if e[j] > t else 0.0) - (1.0 if e[j] < -t else 0.0)
            small += seen[j] - abs(state[j])
        # A start that fits few entries is none: then the first step is that of least squares.
        cold = start == 0.0 or small < 0.25 * n_seen
        m = 0
        for j in range(d):
            if cold:
                state[j], e[j] = 0.0, r[j]
            place[m], leaves[m] = j, -1.0
            m += (state[j] != 0.0) | (seen[j] == 0.0)
        for a in range(k):
            z[a] = 0.0 if cold else z[a]
        following, done, iteration = False, False, 0
        while iteration < max_iter and not done:
            iteration += 1
            for a in range(k):
                for q in range(m):
                    taken[a, q] = basis[a, place[q]]
                    signed[a, q] = leaves[q] * taken[a, q]
                for b in range(a + 1):
                    s = 0.0
                    for q in range(m):
                        s += signed[a, q] * taken[b, q]
                    squares[b, a] += s
            # The step to the minimum for these states, by elimination. If too few residuals are
            # small to determine it, it is short.
            slope = curvature if t == threshold else weight / t
            tiny = 1e-14 * slope
            for j in range(d):
                force[j] = (1.0 - abs(state[j])) * slope * e[j] + weight * state[j]
            for a in range(k):
                s = 0.0
                for j in range(d):
                    s += basis[a, j] * force[j]
                y[a] = s - curves[i, a] * z[a] - linear[i, a]
                for b in range(a, k):
                    system[a, b] = slope * squares[a, b]
                system[a, a] += curves[i, a] + tiny
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
            if threshold == np.inf:
                # A quadratic has no states: the first minimum is the last.
                for a in range(k):
                    z[a] = y[a]
                done = True
                break
            for j in range(d):
                fresh[j] = r[j]
            for a in range(k):
                s = y[a]
                for j in range(d):
                    fresh[j] -= s * basis[a, j]
            # States there, and derivatives of the objective along the step at both its ends.
            changed, small, moved, size, first, last = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            near, total = 0.0, 0.0
            for j in range(d):
                fresh[j] *= seen[j]
                now = (1.0 if fresh[j] > t else 0.0) - (1.0 if fresh[j] < -t else 0.0)
                changed += abs(now - state[j])
                small += seen[j] - abs(state[j])
                near += seen[j] if abs(fresh[j]) <= threshold else 0.0
                total += abs(fresh[j])
                step = fresh[j] - e[j]
                moved += step * step
                size += abs(mean[j] + r[j] - fresh[j])
                first += step * min(max(slope * e[j], -bound), bound)
                last += step * min(max(slope * fresh[j], -bound), bound)
            if smoothed:
                least = tol * max(size, extent) / d
                if least == 0.0:
                    least = t
            last_t = t <= (1.01 * least if smoothed else least)
            done = last_t and (changed == 0.0 or moved <= (1e-13 * size) ** 2)
            m, share = 0, 1.0
            if following and changed > FEW * small and t < STEP * settled:
                # Too far: follow the line of minima to where few states change.
                left, right = t, STEP * settled
                while right > 2.0 * left:
                    middle, n_left = (left * right) ** 0.5, 0.0
                    share = (settled - middle) / (settled - t)
                    for j in range(d):
                        size = abs(e[j] + share * (fresh[j] - e[j]))
                        n_left += 1.0 if state[j] == 0.0 and size > middle else 0.0
                    if n_left > FEW * small:
                        left = middle
                    else:
                        right = middle
                t = right
                continue
            if changed > 0.0 and not following and not done and not (cold and iteration == 1):
                begin, end = 0.0, 0.0
                for a in range(k):
                    begin += (y[a] - z[a]) * (curves[i, a] * z[a] + linear[i, a])
                    end += (y[a] - z[a]) * (curves[i, a] * y[a] + linear[i, a])
                first, last = first + begin, last + end
                # A step too long: find where the derivative along it is about zero.
                left, right, above = 0.0, 1.0, last > -0.5 * first
                low, high, tries = first, last, 0
                while above and tries < 12:
                    tries += 1
                    cut = low / (low - high) if low < 0.0 else 0.5
                    share = left + min(max(cut, 0.1), 0.9) * (right - left)
                    s = begin + share * (end - begin)
                    for j in range(d):
                        step = fresh[j] - e[j]
                        s += step * min(max(slope * (e[j] + share * step), -bound), bound)
                    above = abs(s) > -0.3 * first
                    if s > 0.0:
                        right, high = share, s
                    else:
                        left, low = share, s
            for a in range(k):
                z[a] += share * (y[a] - z[a])
            following = changed == 0.0
            if cold and iteration == 1 and near < 0.25 * n_seen and not done:
                t, following = max(least, total / d), False
            if following:
                settled, t = t, max(least, JUMP * t)
            for j in range(d):
                e[j] += share * (fresh[j] - e[j])
                if not following:
                    now = (1.0 if e[j] > t else 0.0) - (1.0 if e[j] < -t else 0.0)
                    place[m], leaves[m] = j, abs(state[j]) - abs(now)
                    m += now != state[j]
                    state[j] = now
        solved[i] = done
        for a in range(k):
            codes[i, a] = z[a]
