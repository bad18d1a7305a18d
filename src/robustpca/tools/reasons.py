"""Which columns make a row stand out: what stands there, and what was expected."""

from dataclasses import dataclass

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.parts.units import Units, spreads
from robustpca.tools.words import number

__all__ = ["Columns", "Reason", "reasons"]

# Residuals of a column are believed to vary by at least this share of the column itself.
LEAST_NOISE = 1e-3
# Columns that are nearer than this to what is usual give no reason, unless none is farther.
NOTABLE = 2.5
# Numbers of standard deviations beyond this say no more than that it is many.
MANY_SIGMAS = 1000


@dataclass(frozen=True)
class Reason:
    """One column of a row that is too high or too low.

    Attributes
    ----------
    column : str
        Its name.
    sigmas : float
        By how many standard deviations it is off: of what the other columns of a good row leave
        open, or of the column itself if the row is far out and obeys the pattern of the others.
    given, expected : float
        What stands there, and what the rest of the row, or the column, lets expect.
    """

    column: str
    sigmas: float
    given: float = float("nan")
    expected: float = float("nan")

    @property
    def short(self) -> str:
        """The column and the number of standard deviations."""
        if abs(self.sigmas) >= MANY_SIGMAS:
            return f"{self.column} {'>+' if self.sigmas > 0 else '<-'}{MANY_SIGMAS}"
        return f"{self.column} {self.sigmas:+.{1 if abs(self.sigmas) < 100 else 0}f}"

    def __str__(self) -> str:
        return f"{self.short} ({number(self.given)}, expected {number(self.expected, 4)})"


@dataclass(frozen=True)
class Columns:
    """How columns vary in clean rows: together along a few directions, and each for itself.

    The covariance is ``loadings @ loadings.T + diag(noise)``.
    """

    center: Array
    loadings: Array
    noise: Array

    @classmethod
    def of(cls, data: Array, fitted: Array, rank: int) -> "Columns":
        """Learn it from clean rows and the points of the subspace that belong to them."""
        center = np.median(data, axis=0)
        inside = fitted - fitted.mean(axis=0)
        _, values, axes = np.linalg.svd(inside, full_matrices=False)
        loadings = (axes[:rank].T * values[:rank]) / np.sqrt(max(len(data) - 1, 1))
        sizes = spreads(data)
        # Columns of equal entries vary less than others; where all are, less than their numbers.
        usual = float(sizes.max()) or float(np.abs(data).max()) or 1.0
        sizes = np.where(sizes > 0, sizes, usual)
        return cls(center, loadings, np.maximum(spreads(data - fitted), LEAST_NOISE * sizes) ** 2)

    def alone(self, rows: Array) -> Array:
        """Distance of each entry from the centre of its column, in standard deviations."""
        variances = np.einsum("ij,ij->i", self.loadings, self.loadings) + self.noise
        return (rows - self.center) / np.sqrt(variances)

    def given_others(self, rows: Array, n_picks: int) -> tuple[Array, Array, Array]:
        """Entries that most disagree with the others of their row, by how much, and their size.

        One entry after the other is left out of the row: that which the remaining ones predict
        worst, in standard deviations of the prediction. In the end all notable ones are predicted
        from the entries that are left, as a wrong one tells nothing of another.
        """
        centred = rows - self.center
        # Not by I + loadings' / noise loadings, which has no digits left where columns are exact.
        deviations = np.sqrt(self.noise)[:, None]
        left, ratios, _ = np.linalg.svd(self.loadings / deviations, full_matrices=False)
        root = left * (ratios / np.hypot(1.0, ratios)) / deviations
        # The precision matrix is diag(1 / noise) - root @ root.T; each pick removes its column.
        first = pulls = centred / self.noise - (centred @ root) @ root.T
        diagonal = np.tile(1 / self.noise - np.einsum("ij,ij->i", root, root), (len(rows), 1))
        least = 1e-12 / self.noise
        at, every = np.empty((len(rows), n_picks), dtype=int), np.arange(len(rows))
        sigmas = np.empty((len(rows), n_picks))
        removed: list[tuple[Array, Array]] = []
        for pick in range(n_picks):
            scores = pulls / np.sqrt(np.maximum(diagonal, least))
            scores[every[:, None], at[:, :pick]] = 0.0
            at[:, pick] = chosen = np.abs(scores).argmax(axis=1)
            sigmas[:, pick] = scores[every, chosen]
            column = -root[chosen] @ root.T
            column[every, chosen] += 1 / self.noise[chosen]
            for earlier, size in removed:
                column -= earlier * (earlier[every, chosen] / size)[:, None]
            size = np.maximum(column[every, chosen], least[chosen])
            pulls = pulls - column * (pulls[every, chosen] / size)[:, None]
            diagonal = diagonal - column**2 / size[:, None]
            removed.append((column, size))
        notable = np.abs(sigmas) >= NOTABLE
        notable[:, 0] = True
        scale = np.sqrt(self.noise)[at]
        picked = scale[:, :, None] * root[at]
        precision = (1 + 1e-12) * np.eye(n_picks) - picked @ picked.transpose(0, 2, 1)
        together = notable[:, :, None] & notable[:, None, :]
        # Where columns follow from each other, rounding leaves eigenvalues of either sign.
        values, axes = np.linalg.eigh(np.where(together, precision, np.eye(n_picks)))
        scaled = axes / np.maximum(values, 1e-12)[:, None, :]
        covariance = scaled @ axes.transpose(0, 2, 1)
        off = np.where(notable, scale * np.take_along_axis(first, at, axis=1), 0.0)
        off = np.einsum("ijk,ik->ij", covariance, off)
        sigmas = np.where(notable, off / np.sqrt(np.einsum("ijj->ij", covariance)), sigmas)
        return at, sigmas, off * scale


def reasons(
    columns: Columns,
    rows: Array,
    inside: Array,
    names: list[str],
    units: Units,
    n_picks: int = 3,
) -> list[tuple[Reason, ...]]:
    """The columns that make each of these rows stand out, the most telling one first.

    Parameters
    ----------
    columns : Columns
        How the columns of clean rows vary.
    rows : ndarray of shape (n_rows, n_features)
        The rows.
    inside : ndarray of shape (n_rows,), dtype bool
        Rows that agree with the subspace and are far from the centre within it. No column of
        these disagrees with the others, so that each is compared with its own usual range.
    names : list of str
        Names of the columns.
    units : Units
        What was removed from the data of the user.
    n_picks : int, default=3
        Number of columns for each row, at most.

    Returns
    -------
    list of tuple of Reason
        At least one for each row.
    """
    if not len(rows):
        return []
    n_picks = min(n_picks, len(names))
    at, sigmas, excess = columns.given_others(rows, n_picks)
    alone, beyond = columns.alone(rows), rows - columns.center
    farthest = np.argsort(-np.abs(alone), axis=1)[:, :n_picks]
    at = np.where(inside[:, None], farthest, at)
    sigmas = np.where(inside[:, None], np.take_along_axis(alone, at, axis=1), sigmas)
    excess = np.where(inside[:, None], np.take_along_axis(beyond, at, axis=1), excess)
    given = np.take_along_axis(rows, at, axis=1)
    told = [sigmas, *(v * units.scale[at] + units.shift[at] for v in (given, given - excess))]
    found = []
    for places, numbers in zip(at, np.stack(told, axis=-1).tolist(), strict=True):
        pairs = list(zip(places, numbers, strict=True))
        pairs = [pair for pair in pairs if abs(pair[1][0]) >= NOTABLE] or pairs[:1]
        found.append(tuple(Reason(names[j], *each) for j, each in pairs))
    return found
