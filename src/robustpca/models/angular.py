"""Angular embedding: PCA of directions, trimmed or not; see `solvers.angular`."""

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from robustpca.engine.linalg import Array
from robustpca.engine.progress import ClosedForm
from robustpca.engine.rows import Rows
from robustpca.models.base import Fit, Subspace, SubspaceModel
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.capture import capture_warnings
from robustpca.parts.centers import CENTERS
from robustpca.solvers.angular import angular_subspace

__all__ = ["AngularEmbedding"]

# Up to this many samples or features the eigenproblem is solved as it is.
SMALL = 1024


class AngularEmbedding(SubspaceModel):
    r"""Angular embedding (AE) and trimmed angular embedding (TAE): PCA of directions.

    Maximises :math:`\sum_i \lVert W^\top u_i \rVert^2` over W, where :math:`u_i = (x_i - m) /
    \lVert x_i - m \rVert`: the squared cosines between the rows and the subspace [1]_. How far
    out a row lies does not matter, so no row can carry the subspace away. It is also known as
    spherical PCA. There is no iteration over weights; new rows are projected as they are.

    With ``max_angle`` (TAE) one row becomes the anchor: the one with the fewest others farther
    than that angle from the line through it and the centre. The others are left out.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    center : str or array of shape (n_features,), default='geometric_median'
        The centre m: a point, or the name of one ('geometric_median', 'mean', 'zero', 'median',
        'trimmed_mean', 'medoid'). Directions are taken from it, so it has to resist
        outliers, too: from the mean, which is the paper's, a tenth of the rows in a far cluster
        is enough to turn the subspace by 90 degrees.
    max_angle : float, default=None
        Largest angle to the anchor in radians, from 0 to pi / 2; the paper uses pi / 3 and
        somewhat less or more. Lower it to trust fewer rows. With several components clean rows
        may lie far from any single line, so choose it large. None or pi / 2 trims nothing.
    anchors : int, default=None
        Consider only that many rows, drawn at random, as anchors. The best of them is among
        the best share q of all rows with a probability of at least ``1 - (1 - q) ** anchors``:
        with 64 it is one of the best 7 percent in 99 of 100 cases. By default all are
        considered, and the anchor is exact.
    solver : {'auto', 'exact', 'randomized'}, default='auto'
        Solve the eigenproblem of the features or, if these are more, of the samples; or expand
        a random subspace along what the rows make of it. 'auto' is exact when there are at most
        1024 samples or features, or more than an eighth of that many components.
    power_iterations : int, default=4
        How often the random subspace is expanded, with two passes over the data each. Raise it
        for more digits; the error falls by a constant factor each time.
    random_state : int, RandomState instance or None, default=0
        Draws the random subspace and the anchors.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    verbose : int, default=0
        Print how many anchors have been counted.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing sum of squared cosines.
    n_components_ : int
        Dimension of the subspace.
    cosines_ : ndarray of shape (n_components,)
        Sum of the squared cosines between the rows that count and each component.
    support_ : ndarray of shape (n_samples,)
        Which rows were used. Rows at the centre have no direction and are never left out.
    n_trimmed_ : int
        Number of rows that were left out.
    anchor_ : int or None
        Number of the row that was made the anchor.
    center_force_ : float or None
        Length of the mean of all directions, as far as rows at the centre do not balance it; it is
        zero at the geometric median, and None for other centres.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance of the scores by their median absolute value, since directions tell nothing
        about variances; and its share when the median squared residual is added.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray of shape (1,)
        The sum of all ``cosines_``.
    n_iter_ : int
        One: the subspace is not iterated.
    converged_ : bool
        True; see ``center_force_`` for the centre.

    References
    ----------
    .. [1] Liu, Yu, Angular embedding: a new angular robust principal component analysis,
       AAAI 2021.

    Examples
    --------
    >>> from robustpca import AngularEmbedding
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> AngularEmbedding(1).fit(X).components_.round(2)
    array([[0.63, 0.77]])
    >>> model = AngularEmbedding(1, max_angle=0.5).fit(X)
    >>> model.components_.round(2), model.n_trimmed_
    (array([[0.71, 0.71]]), 1)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "center": [StrOptions(set(CENTERS)), "array-like"],
        "max_angle": [Interval(Real, 0, None, closed="left"), None],
        "anchors": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"auto", "exact", "randomized"})],
        "power_iterations": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        center: Any = "geometric_median",
        max_angle: float | None = None,
        anchors: int | None = None,
        solver: str = "auto",
        power_iterations: int = 4,
        random_state: Any = 0,
        contamination: float | str = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.max_angle = max_angle
        self.anchors = anchors
        self.solver = solver
        self.power_iterations = power_iterations
        self.random_state = random_state
        self.contamination = contamination
        self.verbose = verbose

    def _fit(self, rows: Rows) -> Fit:
        n_components, smaller = self._rank(rows), min(rows.shape)
        few = smaller <= SMALL or n_components > smaller / 8
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        found = angular_subspace(
            rows,
            self._center(rows),
            n_components,
            exact=few if self.solver == "auto" else self.solver == "exact",
            max_angle=np.pi / 2 if self.max_angle is None else self.max_angle,
            n_anchors=self.anchors,
            n_expansions=self.power_iterations,
            rng=np.random.default_rng(seed),
            report=_anchor_printer() if self.verbose else lambda counted, total: None,
        )
        axes, support = found.axes, found.support
        typical = np.median(np.abs(axes.codes[support]), axis=0) / stats.norm.ppf(0.75)
        variances = typical.astype(np.float64) ** 2
        residuals = axes.residuals[support]
        subspace = Subspace.of(
            rows,
            found.center,
            axes.components,
            residuals=axes.residuals,
            sample_weights=support.astype(np.float64),
            variances=variances,
            total=float(variances.sum() + np.median(residuals)),
            floor=found.floor,
        )
        attributes = {
            "cosines_": axes.values,
            "support_": support,
            "n_trimmed_": int(np.count_nonzero(~support)),
            "anchor_": found.anchor,
            "center_force_": found.force,
        }
        captured = capture_warnings(type(self).__name__, rows, found.center, axes.components)
        ending = ClosedForm(np.array([axes.values.sum()]))
        return Fit(attributes, subspace, ending, captured)

    def _center(self, rows: Rows) -> Array | None:
        """The centre, or None for the geometric median, which the solver finds itself."""
        if isinstance(self.center, str):
            return None if self.center == "geometric_median" else CENTERS[self.center](rows)
        center = np.asarray(self.center, dtype=np.float64)
        if center.shape != (rows.shape[1],) or not np.isfinite(center).all():
            raise ValueError(
                f"center has shape {center.shape}, but X has {rows.shape[1]} features: pass as "
                f"many finite numbers, or one of {sorted(CENTERS)}."
            )
        return center


def _anchor_printer() -> Callable[[int, int], None]:
    started = time.perf_counter()

    def report(counted: int, total: int) -> None:
        seconds = time.perf_counter() - started
        print(f"[AngularEmbedding] {counted} of {total} anchors counted after {seconds:.1f} s")

    return report
