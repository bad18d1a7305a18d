"""Angular embedding: PCA of directions, trimmed or not, and its trimming before other estimators.

See `solvers.angular`.
"""

import time
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import stats
from sklearn.base import OutlierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import Rows
from robustpca.models.base import Fit, Subspace, SubspaceModel, reporter, unconverged
from robustpca.models.estimator import Estimator, all_or_nothing, rowwise
from robustpca.models.params import HasMethods, Interval, StrOptions
from robustpca.parts.capture import capture_warnings
from robustpca.parts.centers import CENTERS
from robustpca.solvers.angular import NEAR_TIE, AngularSubspace, angular_subspace, em_axes

__all__ = ["AngularEmbedding", "AngularTrimmer", "EMAngularEmbedding"]

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

    cosines_: Array
    support_: Array
    n_trimmed_: int
    anchor_: int | None
    center_force_: float | None

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

    def _solve(self, rows: Rows, n_components: int) -> AngularSubspace:
        smaller = min(rows.shape)
        few = smaller <= SMALL or n_components > smaller / 8
        return angular_subspace(
            rows,
            self._center(rows),
            n_components,
            exact=few if self.solver == "auto" else self.solver == "exact",
            max_angle=np.pi / 2 if self.max_angle is None else self.max_angle,
            n_anchors=self.anchors,
            n_expansions=self.power_iterations,
            rng=self._rng(),
            report=_anchor_printer() if self.verbose else lambda counted, total: None,
        )

    def _rng(self) -> np.random.Generator:
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return np.random.default_rng(seed)

    def _fit(self, rows: Rows) -> Fit:
        found = self._solve(rows, self._rank(rows))
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
        stopped = unconverged(self, found.ending)
        return Fit(attributes, subspace, found.ending, (*stopped, *captured))

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


class EMAngularEmbedding(AngularEmbedding):
    r"""Angular embedding by expectation maximisation: AE and TAE without any decomposition.

    Maximises :math:`\sum_i \lVert W^\top u_i \rVert^2` over W, where :math:`u_i = (x_i - m) /
    \lVert x_i - m \rVert`, as `AngularEmbedding` does, by alternating least squares for the scores
    of the directions and for W, which the paper leaves for the future [1]_. A pass costs two
    products with the data, which are only read in blocks; neither their covariance nor their inner
    products are formed, and passes keep nothing of a row but its length. Convergence is slow where
    the sums of squared cosines of the last component and the next direction are near to each other:
    `AngularEmbedding` is faster unless memory is short.

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
    random_state : int, RandomState instance or None, default=0
        Draws the directions to start with, and the anchors.
    tol : float, default=1e-6
        Stop when a pass turns the subspace by less than this angle (its sine). Below
        1e-12, and 1e-6 in single precision, there is only rounding error to wait for.
    max_iter : int, default=1000
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``stage``, the component at work. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

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
    objective_ : ndarray
        Sum of the squared cosines at the start and after each pass; it never falls.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Liu, Yu, Angular embedding: a new angular robust principal component analysis,
       AAAI 2021.

    Examples
    --------
    >>> from robustpca import EMAngularEmbedding
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> EMAngularEmbedding(1).fit(X).components_.round(2)
    array([[0.63, 0.77]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: limits
        for name, limits in AngularEmbedding._parameter_constraints.items()
        if name not in ("solver", "power_iterations")
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        center: Any = "geometric_median",
        max_angle: float | None = None,
        anchors: int | None = None,
        random_state: Any = 0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.max_angle = max_angle
        self.anchors = anchors
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _solve(self, rows: Rows, n_components: int) -> AngularSubspace:
        rng = self._rng()
        return angular_subspace(
            rows,
            self._center(rows),
            n_components,
            exact=True,
            max_angle=np.pi / 2 if self.max_angle is None else self.max_angle,
            n_anchors=self.anchors,
            n_expansions=0,
            rng=rng,
            report=lambda counted, total: None,
            find_axes=partial(
                em_axes,
                rng=rng,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=reporter(self),
            ),
        )


def _inner_has(name: str) -> Any:
    """Whether the estimator behind a trimmer has a method."""

    def check(self: Any) -> bool:
        inner = getattr(self, "estimator_", self.estimator)
        return inner is not None and hasattr(inner, name)

    return check


class AngularTrimmer(OutlierMixin, Estimator):
    r"""The trimming of angular embedding (TAE) as a step before any estimator.

    One row becomes the anchor: the one with the fewest others farther than ``max_angle`` from
    the line through it and the centre [1]_. Those others are outliers. An estimator, if one is
    given, is fitted to the rest; without one this is an outlier detector. Only directions count:
    a row far out in the usual direction is kept.

    Parameters
    ----------
    estimator : object, default=None
        What is fitted to the rows that are kept; None to find outliers only.
    max_angle : float, default=1.05
        Largest angle to the anchor in radians, from 0 to pi / 2; the paper uses pi / 3 and
        somewhat less or more. Lower it to trust fewer rows. Where clean rows spread in several
        directions they may lie far from any single line, so choose it large.
    center : str or array of shape (n_features,), default='geometric_median'
        The centre m: a point, or the name of one ('geometric_median', 'mean', 'zero', 'median',
        'trimmed_mean', 'medoid'). Directions are taken from it, so it has to resist
        outliers, too: from the mean, which is the paper's, a tenth of the rows in a far cluster
        is enough to turn the subspace by 90 degrees.
    anchors : int, default=None
        Consider only that many rows, drawn at random, as anchors. The best of them is among
        the best share q of all rows with a probability of at least ``1 - (1 - q) ** anchors``:
        with 64 it is one of the best 7 percent in 99 of 100 cases. By default all are
        considered, and the anchor is exact.
    random_state : int, RandomState instance or None, default=0
        Draws the anchors.

    Attributes
    ----------
    estimator_ : object or None
        The estimator fitted to the rows that were kept.
    center_ : ndarray of shape (n_features,)
        Where directions are taken from.
    direction_ : ndarray of shape (n_features,)
        Unit vector from the centre to the anchor; zero if nothing can be trimmed.
    anchor_ : int or None
        Number of the row that was made the anchor.
    support_ : ndarray of shape (n_samples,)
        Which rows were used. Rows at the centre have no direction and are never left out.
    n_trimmed_ : int
        Number of rows that were left out.
    offset_ : float
        The score below which `predict` calls a row an outlier.

    References
    ----------
    .. [1] Liu, Yu, Angular embedding: a new angular robust principal component analysis,
       AAAI 2021.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from robustpca import AngularTrimmer
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> model = AngularTrimmer(PCA(1), max_angle=0.5).fit(X)
    >>> model.predict(X)
    array([ 1,  1,  1,  1,  1,  1, -1])
    >>> abs(model.estimator_.components_).round(2)
    array([[0.71, 0.71]])
    """

    _of_training = ("support_",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"]), None],
        "max_angle": [Interval(Real, 0, None, closed="left")],
        "center": [StrOptions(set(CENTERS)), "array-like"],
        "anchors": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    estimator_: Any
    center_: Array
    direction_: Array
    anchor_: int | None
    support_: Array
    n_trimmed_: int
    offset_: float

    def __init__(
        self,
        estimator: Any = None,
        *,
        max_angle: float = 1.05,
        center: Any = "geometric_median",
        anchors: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.max_angle = max_angle
        self.center = center
        self.anchors = anchors
        self.random_state = random_state

    @all_or_nothing(skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the outliers, and fit the estimator to the other rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,), default=None
            Targets for the estimator.

        Returns
        -------
        self : object
            The fitted model.
        """
        X = self._validated(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        trimmed = AngularEmbedding(
            1,
            center=self.center,
            max_angle=self.max_angle,
            anchors=self.anchors,
            random_state=self.random_state,
        ).fit(X)
        self.center_, self.support_ = trimmed.mean_, trimmed.support_
        self.n_trimmed_ = trimmed.n_trimmed_
        found = trimmed.anchor_ is not None and trimmed.anchor_ >= 0
        self.anchor_ = trimmed.anchor_ if found else None
        ray = X[trimmed.anchor_] - self.center_ if found else np.zeros(X.shape[1], X.dtype)
        self.direction_ = ray / (np.linalg.norm(ray) or 1.0)
        self.offset_ = float(np.cos(min(self.max_angle, np.pi / 2))) - NEAR_TIE
        self.estimator_ = None
        if self.estimator is not None:
            kept = () if y is None else (np.asarray(y)[self.support_],)
            self.estimator_ = clone(self.estimator).fit(X[self.support_], *kept)
        return self

    @rowwise
    def score_samples(self, X: Any) -> Array:
        """Cosine of the angle between each row and the line of the anchor.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        cosines : ndarray of shape (n_samples,)
            From 0 at a right angle to 1 along the line; 1 for rows at the centre.
        """
        check_is_fitted(self)
        X = self._validated(X, dtype=[np.float64, np.float32], reset=False)
        rays = X - self.center_
        lengths = np.linalg.norm(rays, axis=1)
        # As for training rows: what is no farther from the centre than rounding has no direction.
        near = lengths <= np.finfo(X.dtype).eps * np.linalg.norm(self.center_)
        if not self.direction_.any():
            return np.ones(len(X), X.dtype)
        cosines = np.abs(rays @ self.direction_) / np.where(near, 1.0, lengths)
        return np.asarray(np.where(near, 1.0, np.minimum(cosines, 1.0)), dtype=X.dtype)

    def decision_function(self, X: Any) -> Array:
        """`score_samples` less ``offset_``: negative for outliers.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        decision : ndarray of shape (n_samples,)
            Negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Which rows are outliers.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 for outliers, 1 for the others.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    @available_if(_inner_has("transform"))
    @rowwise
    def transform(self, X: Any) -> Any:
        """`transform` of the estimator.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples, outliers or not.

        Returns
        -------
        codes : object
            What the estimator makes of them.
        """
        check_is_fitted(self)
        return self.estimator_.transform(X)

    @available_if(_inner_has("inverse_transform"))
    def inverse_transform(self, codes: Any) -> Any:
        """`inverse_transform` of the estimator.

        Parameters
        ----------
        codes : array of shape (n_samples, n_codes)
            What `transform` returned.

        Returns
        -------
        X : object
            Samples.
        """
        check_is_fitted(self)
        return self.estimator_.inverse_transform(codes)


def _anchor_printer() -> Callable[[int, int], None]:
    started = time.perf_counter()

    def report(counted: int, total: int) -> None:
        seconds = time.perf_counter() - started
        print(f"[AngularEmbedding] {counted} of {total} anchors counted after {seconds:.1f} s")

    return report
