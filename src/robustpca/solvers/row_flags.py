"""Kernels that fit single rows robustly: Huber's loss, and least squares without wrong entries.

A fit of all entries of a row is two products with a basis, and so the same for a whole tile. What
changes if some entries are left out follows from these entries alone: ``hat`` is the matrix that
turns a row into its fit, F are the entries that are left out, and r are the residuals of the fit of
all entries. Replaced by ``x - u`` with ``(I - hat[F, F]) u = r[F]``, the entries of F are fitted
exactly and have no part in the fit.
"""

import numpy as np

from robustpca.engine.linalg import Array

# A pivot below this may have no correct digit.
LEAST_PIVOT = 1e-8


def clip_forces(
    X: Array, rows: Array, forces: Array, clip: Array, share: float, least: float
) -> None:
    """Kernel: residuals of some rows, clipped; at first ``forces`` holds what is fitted to them.

    ``clip`` is lowered to a ``share`` of the largest residual of each row, but not below ``least``.
    Missing entries (NaN) have no force.
    """
    zero = share - share  # of the same precision as the rest
    for q in range(len(rows)):
        i, largest = rows[q], zero
        for j in range(X.shape[1]):
            error = X[i, j] - forces[q, j]
            error = error if error == error else zero
            forces[q, j] = error
            largest = max(largest, abs(error))
        limit = max(min(clip[q], share * largest), least)
        clip[q] = limit
        for j in range(X.shape[1]):
            forces[q, j] = min(max(forces[q, j], -limit), limit)


def accelerate(
    ahead: Array, fresh: Array, codes: Array, rows: Array, scale: Array, pace: Array, steps: Array
) -> None:
    """Kernel: a step of descent with momentum; the sum of ``ahead`` and ``fresh`` is its gradient.

    The scores of the rows become the point that is reached, ``ahead`` the next one to start from,
    and ``steps`` the lengths of the steps. A row that goes uphill loses its momentum.
    """
    zero = scale.sum() - scale.sum()
    for q in range(len(rows)):
        i, uphill, square = rows[q], zero, zero
        for a in range(len(scale)):
            new = (ahead[q, a] + fresh[q, a]) * scale[a]
            back = ahead[q, a] - new
            uphill += back * (new - codes[i, a])
            square += back * back
            fresh[q, a] = new
        following, momentum = 1.0, 0.0
        if uphill <= 0.0:
            following = (1.0 + (1.0 + 4.0 * pace[q] ** 2) ** 0.5) / 2.0
            momentum = (pace[q] - 1.0) / following
        pace[q], steps[q] = following, square**0.5
        for a in range(len(scale)):
            new = fresh[q, a]
            ahead[q, a] = new + momentum * (new - codes[i, a])
            codes[i, a] = new


def settle_flags(
    errors: Array,
    whole: Array,
    lost: Array,
    roots: Array,
    hat: Array,
    leverages: Array,
    numbers: tuple[float, float, float, int],
    flags: Array,
    shifts: Array,
    solved: Array,
) -> None:
    """Kernel: flag the wrong entries of rows and leave them out of the fit, until no flag changes.

    An entry is wrong if its squared residual is too large for one that has a part in the fit, or
    for one that has none: a fit comes nearer to the entries that it is made with. At the end, rows
    from which ``shifts`` are subtracted have the fit of all entries but the flagged and the lost.

    Parameters
    ----------
    errors : ndarray of shape (n_rows, n_features)
        Residuals of a first, robust fit.
    whole : ndarray of shape (n_rows, n_features)
        Residuals of the fit of all entries.
    lost : ndarray of shape (n_rows, n_features)
        Entries that are left out in any case.
    roots : ndarray of shape (n_directions, n_features)
        A root of the matrix that turns rows into fits, which is ``roots.T @ roots``.
    hat : ndarray of shape (n_features, n_features) or (0, 0)
        That matrix, if it is at hand.
    leverages : ndarray of shape (n_features,)
        Share of each entry in its own fit, if no entry is left out.
    numbers : tuple
        Largest squared residual; largest leverage; share of the entries of a row whose flags may
        still change at the end; number of fits before the last one.
    flags, shifts, solved : ndarray
        The results. A row is not ``solved`` if the other entries hardly determine its fit.
    """
    cut, most, few, max_iter = numbers
    n, d = errors.shape
    k = len(roots)
    # A system of so many equations costs as much as that of the directions and making it.
    most_equations = 3 * k // 2
    system, y = np.empty((most_equations, most_equations)), np.empty(most_equations)
    places, r, taken = np.empty(d, np.int64), np.empty(d), np.empty((k, d))
    for i in range(n):
        m = 0
        for j in range(d):
            r[j] = errors[i, j]
            flags[i, j] = False
            m += lost[i, j]
        iteration, least, ended = 0, 1.0, False
        while not ended:
            share, n_changed = max((d - m) / d, 1e-300), 0
            m = 0
            for j in range(d):
                room = 1.0 - min(leverages[j] / share, most)
                square = r[j] * r[j]
                flag = square * room > cut if flags[i, j] else square > cut * room
                flag = flag and not lost[i, j]
                n_changed += flag != flags[i, j]
                flags[i, j] = flag
                if flag or lost[i, j]:
                    places[m] = j
                    m += 1
            if n_changed == 0 and iteration > 0:
                break
            # The equations of the entries that are left out if these are few, otherwise those of
            # the directions.
            by_entries = m <= most_equations and len(hat) > 0
            size = m if by_entries else k
            if by_entries:
                for a in range(m):
                    line = hat[places[a]]
                    for b in range(a + 1):
                        system[a, b] = -line[places[b]]
                    y[a] = whole[i, places[a]]
            else:
                for a in range(k):
                    v = 0.0
                    for q in range(m):
                        taken[a, q] = roots[a, places[q]]
                        v += taken[a, q] * whole[i, places[q]]
                    y[a] = v
                    for b in range(a + 1):
                        v = 0.0
                        for q in range(m):
                            v += taken[a, q] * taken[b, q]
                        system[a, b] = -v
            # Cholesky, with the inverses of the diagonal of the factor.
            least = 1.0
            for a in range(size):
                for b in range(a):
                    v = system[a, b]
                    for q in range(b):
                        v -= system[a, q] * system[b, q]
                    system[a, b] = v * system[b, b]
                pivot, v = 1.0 + system[a, a], y[a]
                for q in range(a):
                    pivot -= system[a, q] * system[a, q]
                    v -= system[a, q] * y[q]
                least = min(least, pivot)
                system[a, a] = 1.0 / max(pivot, LEAST_PIVOT) ** 0.5
                y[a] = v * system[a, a]
            for a in range(size - 1, -1, -1):
                y[a] *= system[a, a]
                for q in range(a):
                    y[q] -= system[a, q] * y[a]
            for j in range(d):
                r[j] = whole[i, j]
            for a in range(size):
                line, v = hat[places[a]] if by_entries else roots[a], y[a]
                for j in range(d):
                    r[j] += v * line[j]
            iteration += 1
            ended = iteration > max_iter or (iteration > 1 and n_changed <= few * d)
        solved[i] = least > LEAST_PIVOT
        for j in range(d):
            shifts[i, j] = 0.0
        for q in range(m):
            shifts[i, places[q]] = r[places[q]]
