"""Single rows fitted robustly: Huber's loss, and least squares without wrong entries.

A fit of all entries of a row is two products with a basis, and so the same for a whole tile. What
changes if some entries are left out follows from these entries alone: ``hat`` is the matrix that
turns a row into its fit, F are the entries that are left out, and r are the residuals of the fit of
all entries. Replaced by ``x - u`` with ``(I - hat[F, F]) u = r[F]``, the entries of F are fitted
exactly and have no part in the fit.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.threads import compiled

# A pivot below this may have no correct digit.
LEAST_PIVOT = 1e-8
# Leverages count as at most this, so that no residual is divided by zero.
MOST_LEVERAGE = 0.9
# Features up to which the matrix that turns rows into fits may be formed.
MOST_FEATURES = 4096


@dataclass(frozen=True)
class LeastSquares:
    """Fits of rows by least squares, all entries or without those that are wrong.

    Attributes
    ----------
    basis : ndarray of shape (rank, n_features)
        Orthonormal basis of the fits.
    ridge : ndarray of shape (rank,)
        Weights of the squared scores beside the squared residuals.
    n_rows : int
        For about how many rows it will be used.
    """

    basis: Array
    ridge: Array
    n_rows: int

    @cached_property
    def leverages(self) -> Array:
        """Share of each entry of a row in its own fit, if no entry is left out."""
        return np.sum(self.basis**2, axis=0)

    @cached_property
    def scale(self) -> Array:
        """What is left of the scores by the ridge, if no entry is left out."""
        return 1 / (1 + self.ridge)

    @cached_property
    def roots(self) -> Array:
        """A root of the matrix that turns rows into their fits."""
        return self.basis * np.sqrt(self.scale)[:, None]

    @cached_property
    def hat(self) -> Array:
        """Matrix that turns rows into their fits, if it saves more than it costs."""
        rank, n_features = self.basis.shape
        if n_features <= MOST_FEATURES and 4 * n_features <= rank * min(self.n_rows, 64):
            return self.roots.T @ self.roots
        return np.zeros((0, 0))

    @cached_property
    def shares(self) -> Array:
        """What an entry of a row adds to its scores, if no entry is left out."""
        return np.ascontiguousarray((self.basis * self.scale[:, None]).T)

    def whole(self, X: Array) -> tuple[Array, Array]:
        """Scores and residuals of the fits of all entries."""
        codes = X @ self.shares
        fits = codes @ self.basis
        return codes, np.subtract(X, fits, out=fits)

    def without_wrong(
        self,
        X: Array,
        lost: Array,
        cuts: Array,
        errors: Array | None = None,
        *,
        multiple: float = 0.0,
        few: float = 0.0,
        max_iter: int,
    ) -> tuple[Array, Array, Array]:
        """Fit rows without entries that are too far off.

        `settle_flags` has the parameters; ``errors`` are the residuals of the fit of all entries
        by default. Entries that are ``lost`` may have any finite value. Returns the scores, the
        flagged entries, and the mean sizes of the residuals of the others, negative for rows that
        these hardly determine.
        """
        codes, whole = self.whole(X)
        flags, sizes = np.empty(X.shape, bool), np.empty(len(X))
        fits = self.roots, self.hat, self.shares, self.leverages, cuts
        numbers = multiple, MOST_LEVERAGE, few, max_iter
        errors = whole if errors is None else errors
        compiled(settle_flags)(errors, whole, lost, *fits, numbers, flags, codes, sizes)
        return codes, flags, sizes


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


def centre_rows(X: Array, mean: Array, rows: Array, lost: Array, extents: Array) -> None:
    """Kernel: rows without the mean, zero where they are missing, and their mean sizes."""
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            value = X[i, j] - mean[j]
            known = value == value
            rows[i, j] = value if known else 0.0
            lost[i, j] = not known
            total += abs(rows[i, j])
        extents[i] = total / X.shape[1]


def settle_flags(
    errors: Array,
    whole: Array,
    lost: Array,
    roots: Array,
    hat: Array,
    shares: Array,
    leverages: Array,
    cuts: Array,
    numbers: tuple[float, float, float, int],
    flags: Array,
    codes: Array,
    sizes: Array,
) -> None:
    """Kernel: flag the wrong entries of rows and leave them out of the fit, until no flag changes.

    An entry is wrong if its squared residual is too large for one that has a part in the fit, or
    for one that has none: a fit comes nearer to the entries that it is made with. At the end, the
    scores are those of the fit of all entries but the flagged and the lost.

    Parameters
    ----------
    errors : ndarray of shape (n_rows, n_features)
        Residuals of a first fit.
    whole : ndarray of shape (n_rows, n_features)
        Residuals of the fit of all entries.
    lost : ndarray of shape (n_rows, n_features)
        Entries that are left out in any case.
    roots : ndarray of shape (n_directions, n_features)
        A root of the matrix that turns rows into fits, which is ``roots.T @ roots``.
    hat : ndarray of shape (n_features, n_features) or (0, 0)
        That matrix, if it is at hand.
    shares : ndarray of shape (n_features, n_directions)
        What an entry adds to the scores.
    leverages : ndarray of shape (n_features,)
        Share of each entry in its own fit, if no entry is left out.
    cuts : ndarray of shape (n_rows,)
        Squared residual up to which no entry of a row is wrong.
    numbers : tuple
        How many times the mean residual is too large as well (0 if the cut alone decides); largest
        leverage; share of the entries of a row whose flags may still change at the end; number of
        fits before the last one.
    flags, codes, sizes : ndarray
        The results. The scores are at first those of the fit of all entries. The last are the mean
        sizes of the residuals of the entries in the fit, negative if these hardly determine it.
    """
    multiple, most, few, max_iter = numbers
    n, d = errors.shape
    k = len(roots)
    size = most_equations(k)
    system, y, taken = np.empty((size, size)), np.empty(size), np.empty((k, d))
    places, r = np.empty(d, np.int64), np.empty(d)
    for i in range(n):
        m = 0
        for j in range(d):
            r[j] = errors[i, j]
            flags[i, j] = False
            m += lost[i, j]
        iteration, least, ended = 0, 1.0, False
        while not ended:
            cut = cuts[i]
            if multiple > 0.0:
                cut = max(cut, (multiple * mean_size(r, flags[i], lost[i])) ** 2)
            room = most, max((d - m) / d, 1e-300)
            n_changed = renew_flags(r, lost[i], leverages, cut, room, flags[i])
            if n_changed == 0 and iteration > 0:
                break
            m = list_places(flags[i], lost[i], places)
            least = leave_out(whole, i, places, m, roots, hat, system, y, taken, r)
            iteration += 1
            ended = iteration > max_iter or (iteration > 1 and n_changed <= few * d)
        sizes[i] = mean_size(r, flags[i], lost[i]) if least > LEAST_PIVOT else -1.0
        for q in range(m):
            line, v = shares[places[q]], r[places[q]]
            for a in range(k):
                codes[i, a] -= v * line[a]


def mean_size(r: Array, flags: Array, lost: Array) -> float:
    """Kernel: mean size of the residuals of the entries that have a part in the fit."""
    total, count = 0.0, 0.0
    for j in range(len(r)):
        used = 0.0 if flags[j] or lost[j] else 1.0
        total += used * abs(r[j])
        count += used
    return total / max(count, 1.0)


def renew_flags(
    r: Array,
    lost: Array,
    leverages: Array,
    cut: float,
    room: tuple[float, float],
    flags: Array,
) -> int:
    """Kernel: flags by the residuals of the last fit; returns how many have changed.

    ``room`` is the largest leverage and the share of the entries in that fit.
    """
    most, share = room
    n_changed = 0
    for j in range(len(r)):
        left = 1.0 - min(leverages[j] / share, most)
        square = r[j] * r[j]
        # Beyond the cut in the fit, and as far beyond it outside of it.
        far = square * (left if flags[j] else 1.0) > cut * (1.0 if flags[j] else left)
        flag = far & (not lost[j])
        n_changed += flag != flags[j]
        flags[j] = flag
    return n_changed


def list_places(flags: Array, lost: Array, places: Array) -> int:
    """Kernel: the entries that are left out; returns how many there are."""
    m = 0
    for j in range(len(flags)):
        if flags[j] | lost[j]:
            places[m] = j
            m += 1
    return m


def most_equations(k: int) -> int:
    """Kernel: a system of so many equations costs as much as that of k directions and making it."""
    return 3 * k // 2


def leave_out(
    whole: Array,
    i: int,
    places: Array,
    m: int,
    roots: Array,
    hat: Array,
    system: Array,
    y: Array,
    taken: Array,
    r: Array,
) -> float:
    """Kernel: residuals of a row without the entries of some places, from those of all entries.

    Returns the least pivot of the equations, which are those of the entries that are left out if
    these are few, otherwise those of the directions.
    """
    k, d = roots.shape
    by_entries = m <= len(y) and len(hat) > 0
    if by_entries:
        entry_equations(hat, whole[i], places, m, system, y)
    else:
        direction_equations(roots, whole[i], places, m, taken, system, y)
    size = m if by_entries else k
    least = solve_equations(system, y, size)
    # By number: a view of the row, which has to be counted, would take as long as the loop.
    for j in range(d):
        r[j] = whole[i, j]
    for a in range(size):
        line, v = hat[places[a]] if by_entries else roots[a], y[a]
        for j in range(d):
            r[j] += v * line[j]
    return least


def entry_equations(
    hat: Array, whole: Array, places: Array, m: int, system: Array, y: Array
) -> None:
    """Kernel: what is subtracted from the entries that are left out, less the unit matrix."""
    for a in range(m):
        line = hat[places[a]]
        for b in range(a + 1):
            system[a, b] = -line[places[b]]
        y[a] = whole[places[a]]


def direction_equations(
    roots: Array, whole: Array, places: Array, m: int, taken: Array, system: Array, y: Array
) -> None:
    """Kernel: what that changes along the directions, less the unit matrix."""
    for a in range(len(roots)):
        v = 0.0
        for q in range(m):
            taken[a, q] = roots[a, places[q]]
            v += taken[a, q] * whole[places[q]]
        y[a] = v
        for b in range(a + 1):
            v = 0.0
            for q in range(m):
                v += taken[a, q] * taken[b, q]
            system[a, b] = -v


def solve_equations(system: Array, y: Array, size: int) -> float:
    """Kernel: solve for ``y``, with the unit matrix added, by L D L'; returns the least pivot.

    Pivots are stored as their inverses. Unlike those of Cholesky's factor they have no roots, which
    are what takes longest in so few equations.
    """
    least = 1.0
    for a in range(size):
        pivot, v = 1.0 + system[a, a], y[a]
        for b in range(a):
            s = system[a, b]
            for q in range(b):
                s -= system[a, q] * system[b, q]
            system[a, b] = s
        for b in range(a):
            s = system[a, b] * system[b, b]
            pivot -= system[a, b] * s
            v -= s * y[b]
            system[a, b] = s
        least = min(least, pivot)
        system[a, a] = 1.0 / max(pivot, LEAST_PIVOT)
        y[a] = v
    for a in range(size - 1, -1, -1):
        v = y[a] * system[a, a]
        for q in range(a + 1, size):
            v -= system[q, a] * y[q]
        y[a] = v
    return least


def prove_rows(
    rows: Array,
    lost: Array,
    flags: Array,
    basis: Array,
    hat: Array,
    pulls: Array,
    numbers: tuple[float, float, int],
    codes: Array,
    sizes: Array,
    solved: Array,
) -> None:
    """Kernel: whether scores z minimise ``weight |x - z basis|_1`` and a smooth function of z.

    They do if the entries that are not flagged are matched, up to ``tol`` of the size of the row,
    and there are multipliers for them, none above the weight, that balance the flagged ones, which
    pull with the weight, and the gradient of the function. The shortest such multipliers are the
    residuals of a fit without the flagged entries. Where some are above the weight, they are held
    at it and the shortest others are looked for.

    Parameters
    ----------
    rows, lost, flags : ndarray of shape (n_rows, n_features)
        Rows without the mean, and what was left out of their fits: missing and wrong entries.
    basis : ndarray of shape (n_directions, n_features)
        Orthonormal directions.
    hat : ndarray of shape (n_features, n_features) or (0, 0)
        The product of the basis with itself, if it is at hand.
    pulls : ndarray of shape (n_rows, n_features)
        Rows whose scores are the gradients of the smooth function, in the span of the basis. They
        are written over.
    numbers : tuple
        Weight, tolerance, and how many times multipliers are looked for.
    codes : ndarray of shape (n_rows, n_directions)
        Scores.
    sizes : ndarray of shape (n_rows,)
        Mean sizes of the residuals of the other entries, negative if these hardly determine a fit.
    solved : ndarray of shape (n_rows,)
        The result.
    """
    weight, tol, max_tries = numbers
    n, d = rows.shape
    k = len(basis)
    size = most_equations(k)
    system, y, taken = np.empty((size, size)), np.empty(size), np.empty((k, d))
    places, multipliers = np.empty(d, np.int64), np.empty(d)
    for i in range(n):
        square = 0.0
        for a in range(k):
            square += codes[i, a] * codes[i, a]
        going = 0.0 <= sizes[i] <= tol * (square / d) ** 0.5
        m, tries = list_places(flags[i], lost[i], places), 0
        for q in range(m):
            j = places[q]
            error = rows[i, j]
            for a in range(k):
                error -= codes[i, a] * basis[a, j]
            if not lost[i, j]:
                pulls[i, j] -= weight if error > 0.0 else -weight
        solved[i] = False
        while going:
            least = leave_out(pulls, i, places, m, basis, hat, system, y, taken, multipliers)
            for q in range(m):
                multipliers[places[q]] = 0.0
            largest = 0.0
            for j in range(d):
                largest = max(largest, abs(multipliers[j]))
            tries += 1
            solved[i] = least > LEAST_PIVOT and largest <= weight
            going = least > LEAST_PIVOT and largest > weight and tries < max_tries
            if going:
                for j in range(d):
                    v = multipliers[j]
                    if abs(v) > weight:
                        places[m] = j
                        pulls[i, j] -= weight if v > 0.0 else -weight
                        m += 1
