"""Directions with far-reaching scores: one loop, `solvers.directions.find_directions`.

A method supplies an average of the samples and the set that its directions come from.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from robustpca.engine.linalg import Array, principal_axes
from robustpca.engine.progress import Callback
from robustpca.engine.rows import Rows
from robustpca.engine.threads import ThreadPool
from robustpca.models.base import Fit, ObliqueModel, Subspace, SubspaceModel, reporter, unconverged
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.capture import capture_warnings
from robustpca.parts.centers import CENTERS, trimmed_mean
from robustpca.solvers.directions import (
    Average,
    BoundedSphere,
    Directions,
    Frames,
    PowerSum,
    RandomStart,
    Shape,
    Span,
    SparseSphere,
    Sphere,
    Start,
    TrimmedSum,
    codes_and_rest,
    find_directions,
)
from robustpca.solvers.weighted_pca import WeightedPCA

__all__ = ["EMPCA", "L1PCA", "RSPCA", "GrassmannAverage", "LpPCA"]


class DirectionModel(SubspaceModel):
    """What all methods that maximise over directions share."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceModel._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "center": [StrOptions(set(CENTERS))],
        "init": [StrOptions({"auto", "sample", "pca"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    center: str
    init: str = "auto"
    n_init: int = 1
    random_state: Any
    greedy: bool = True

    def _average(self, rows: Rows, pool: ThreadPool) -> Average:
        """What is maximised."""
        raise NotImplementedError

    def _shape(self, n_features: int) -> Shape:
        """What it is maximised over."""
        return Sphere() if self.greedy else Frames()

    def _center(self, rows: Rows) -> Array:
        return CENTERS[self.center](rows)

    def _start(self, rows: Rows, n_components: int) -> Start | RandomStart:
        rng = check_random_state(self.random_state)
        n_columns = 1 if self.greedy else n_components
        if self.init == "sample" or (self.init == "auto" and self.greedy):
            return Start(n_columns, None, self.n_init, rng)
        pca = WeightedPCA(rows, n_components, center=rows.center)
        axes = pca.subspace()[1].T * np.sqrt(pca.variances()[0])
        return Start(n_columns, axes, self.n_init, rng)

    def _fit(self, rows: Rows) -> Fit:
        n_components = self._rank(rows)
        shape = self._shape(rows.shape[1])
        centred = rows.median_centred().centred(self._center(rows))
        with ThreadPool() as pool:
            average = self._average(centred, pool)
            result = find_directions(
                average,
                shape,
                self._start(centred, n_components),
                n_components if self.greedy else 1,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=reporter(self),
            )
        basis, oblique = result.basis, isinstance(self, ObliqueModel)
        if isinstance(shape, Span):
            # A span has no directions of its own: take the principal axes of the data within.
            codes = centred.map("project", basis).astype(np.float64)
            basis = basis @ principal_axes(codes.T @ codes)[1]
        codes, residuals = centred.map(codes_and_rest, basis)
        subspace = Subspace.of(
            rows,
            centred.center,
            (result.directions if oblique else basis).T,
            residuals=residuals,
            variances=np.mean(np.square(codes, dtype=np.float64), axis=0),
            total=float(average.norms.mean()),
            floor=rows.floor * float(np.sqrt(average.norms.mean())),
        )
        attributes = {"loadings_": subspace.components} if oblique else {}
        warnings = _cycled(result, self.tol) if result.cycled else unconverged(self, result)
        captured = capture_warnings(type(self).__name__, rows, centred.center, basis.T)
        return Fit(attributes, subspace, result, (*warnings, *captured))


def _cycled(result: Directions, tol: float) -> tuple[Warning, ...]:
    """The warning of a trimmed average, the only one of which passes may repeat."""
    return (
        ConvergenceWarning(
            "GrassmannAverage went round in circles: the same signs came up again before the "
            f"direction converged, after a change of {result.change:.1e}, above tol={tol:.1e}. "
            "Lower trim, choose another init, or raise tol to accept this fit."
        ),
    )


class LpPCA(DirectionModel):
    r"""PCA by maximising the :math:`\ell_p` norm of the scores (Lp-PCA).

    Maximises :math:`\sum_i |w^\top (x_i - m)|^p` over unit vectors w, one after the other, each
    at right angles to those before [1]_; or :math:`\sum_{ij} |w_j^\top (x_i - m)|^p` over all
    orthonormal sets at once [2]_. At p = 2 both are PCA. The smaller p, the less a far sample
    counts; but its pull still grows with its distance, other than in methods with bounded or
    falling weights such as `PCAAN`.

    The maximum found is a local one, which depends on the start.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    p : float, default=1.2
        The power, at least 1. Below, the sum is not convex and a pass need not raise it.
    greedy : bool, default=True
        Whether to find the components one by one, or all at once.
    center : str, default='mean'
        The centre, found first and held: 'mean', 'median', 'trimmed_mean' (of the middle half
        of each feature), 'geometric_median', 'medoid' (the sample nearest to all others) or
        'zero'. The mean is the papers'; the others resist outliers.
    init : {'auto', 'sample', 'pca'}, default='auto'
        Where to start: at the farthest sample, or at principal axes. 'auto' is 'sample' for
        components that are found one by one, and 'pca' for all at once.
    n_init : int, default=1
        Number of starts, of which the best is used. All but the first are random samples.
    random_state : int, RandomState instance or None, default=0
        Draws the random samples.
    tol : float, default=1e-5
        Stop when a pass turns every direction by less than this angle (its sine). Below
        1e-12, and 1e-6 in single precision, there is only rounding error to wait for.
    max_iter : int, default=1000
        Largest number of passes for each component, or for all at once.
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
        Orthonormal directions, one per row, in the order in which they were found; by
        decreasing objective if all were found at once.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Mean square of the scores about the centre, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Sum of the absolute scores to the power p at the start and after each pass, over the
        components found so far and the one at work. It never falls.
    n_iter_ : int
        Number of passes in all.
    converged_ : bool
        Whether ``tol`` was reached for every component.

    References
    ----------
    .. [1] Kwak, Principal component analysis by Lp-norm maximization, IEEE Transactions on
       Cybernetics, 2014.
    .. [2] Nie, Huang, Ding, Luo, Wang, Robust principal component analysis with non-greedy
       l1-norm maximization, IJCAI 2011.

    Examples
    --------
    >>> from robustpca import LpPCA
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> LpPCA(n_components=1).fit(X).components_.round(2)
    array([[0.5 , 0.87]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DirectionModel._parameter_constraints,
        "p": [Interval(Real, 0, None, closed="neither")],
        "greedy": ["boolean"],
    }

    p: float

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        p: float = 1.2,
        greedy: bool = True,
        center: str = "mean",
        init: str = "auto",
        n_init: int = 1,
        random_state: Any = 0,
        tol: float = 1e-5,
        max_iter: int = 1000,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.p = p
        self.greedy = greedy
        self.center = center
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _average(self, rows: Rows, pool: ThreadPool) -> Average:
        if self.p < 1:
            raise ValueError(
                f"p={self.p} is below 1: the sum of the scores to that power is not convex, so a "
                "pass may lower it. Choose p=1, the most robust of the powers, or more."
            )
        return PowerSum(rows, self.p)


class L1PCA(LpPCA):
    r"""PCA by maximising the :math:`\ell_1` norm of the scores (L1-PCA).

    Maximises :math:`\sum_i |w^\top (x_i - m)|` over unit vectors w, one after the other, each at
    right angles to those before [1]_; or :math:`\sum_{ij} |w_j^\top (x_i - m)|` over all
    orthonormal sets at once [2]_, where single directions matter and not only their span. `LpPCA`
    with p = 1, and `GrassmannAverage` without trimming.

    The maximum found is a local one, which depends on the start. No sample is at right angles
    to a component found one by one: where that happens, a pass with the other sign of the sample
    goes higher.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    greedy : bool, default=True
        Whether to find the components one by one, or all at once.
    center : str, default='mean'
        The centre, found first and held: 'mean', 'median', 'trimmed_mean' (of the middle half
        of each feature), 'geometric_median', 'medoid' (the sample nearest to all others) or
        'zero'. The mean is the papers'; the others resist outliers.
    init : {'auto', 'sample', 'pca'}, default='auto'
        Where to start: at the farthest sample, or at principal axes. 'auto' is 'sample' for
        components that are found one by one, and 'pca' for all at once.
    n_init : int, default=1
        Number of starts, of which the best is used. All but the first are random samples.
    random_state : int, RandomState instance or None, default=0
        Draws the random samples.
    tol : float, default=1e-5
        Stop when a pass turns every direction by less than this angle (its sine). Below
        1e-12, and 1e-6 in single precision, there is only rounding error to wait for.
    max_iter : int, default=1000
        Largest number of passes for each component, or for all at once.
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
        Orthonormal directions, one per row, in the order in which they were found; by
        decreasing objective if all were found at once.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Mean square of the scores about the centre, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Sum of the absolute scores to the power p at the start and after each pass, over the
        components found so far and the one at work. It never falls.
    n_iter_ : int
        Number of passes in all.
    converged_ : bool
        Whether ``tol`` was reached for every component.

    References
    ----------
    .. [1] Kwak, Principal component analysis based on L1-norm maximization, IEEE Transactions
       on Pattern Analysis and Machine Intelligence, 2008.
    .. [2] Nie, Huang, Ding, Luo, Wang, Robust principal component analysis with non-greedy
       l1-norm maximization, IJCAI 2011.

    Examples
    --------
    >>> from robustpca import L1PCA
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [2, 8]]
    >>> L1PCA(n_components=1).fit(X).components_.round(2)
    array([[0.53, 0.85]])
    """

    p = 1.0

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        greedy: bool = True,
        center: str = "mean",
        init: str = "auto",
        n_init: int = 1,
        random_state: Any = 0,
        tol: float = 1e-5,
        max_iter: int = 1000,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.greedy = greedy
        self.center = center
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose


class RSPCA(DirectionModel, ObliqueModel):
    r"""Robust sparse PCA (RSPCA): components that involve few features.

    Maximises :math:`\sum_i |w^\top (x_i - m)|` over unit vectors w with few entries that are not
    zero, or with a bound on :math:`\lVert w \rVert_1` [1]_; then again with what is left of the
    samples at right angles to all components so far.

    Sparse components are not at right angles to each other. Scores are those of the nearest
    point of their span, and ``explained_variance_`` belongs to the directions that each
    component adds to those before.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    n_nonzero : int or float, default=None
        Entries of a component that may differ from zero, as a number or as a share of the
        features, rounded up. None for a quarter, unless there is an ``l1_bound``.
    l1_bound : float, default=None
        Bound on the sum of the absolute entries of a component instead, at least 1, which
        leaves one entry. From the root of the number of features on it has no effect.
    center : str, default='mean'
        The centre, found first and held: 'mean', 'median', 'trimmed_mean' (of the middle half
        of each feature), 'geometric_median', 'medoid' (the sample nearest to all others) or
        'zero'. The mean is the papers'; the others resist outliers.
    init : {'auto', 'sample', 'pca'}, default='auto'
        Where to start: at the farthest sample, or at principal axes. 'auto' is 'sample' for
        components that are found one by one, and 'pca' for all at once.
    n_init : int, default=1
        Number of starts, of which the best is used. All but the first are random samples.
    random_state : int, RandomState instance or None, default=0
        Draws the random samples.
    tol : float, default=1e-5
        Stop when a pass turns every direction by less than this angle (its sine). Below
        1e-12, and 1e-6 in single precision, there is only rounding error to wait for.
    max_iter : int, default=1000
        Largest number of passes for each component, or for all at once.
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
        Sparse directions of unit length, one per row, in the order in which they were found.
        They are not at right angles to each other.
    loadings_ : ndarray of shape (n_components, n_features)
        The components: a point is ``scores @ loadings_ + mean_``.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Mean square of the scores about the centre, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Sum of the absolute scores to the power p at the start and after each pass, over the
        components found so far and the one at work. It never falls.
    n_iter_ : int
        Number of passes in all.
    converged_ : bool
        Whether ``tol`` was reached for every component.

    References
    ----------
    .. [1] Meng, Zhao, Xu, Improve robustness of sparse PCA by L1-norm maximization, Pattern
       Recognition, 2012.

    Examples
    --------
    >>> from robustpca import RSPCA
    >>> X = [[0, 0, 1], [1, 1, 0], [2, 2, 1], [3, 3, 0], [4, 4, 1], [5, 5, 0], [2, 6, 1]]
    >>> RSPCA(n_components=1, n_nonzero=2).fit(X).components_.round(2)
    array([[0.58, 0.81, 0.  ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DirectionModel._parameter_constraints,
        "n_nonzero": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "l1_bound": [Interval(Real, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        n_nonzero: int | float | None = None,
        l1_bound: float | None = None,
        center: str = "mean",
        init: str = "auto",
        n_init: int = 1,
        random_state: Any = 0,
        tol: float = 1e-5,
        max_iter: int = 1000,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.l1_bound = l1_bound
        self.center = center
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _average(self, rows: Rows, pool: ThreadPool) -> Average:
        return PowerSum(rows, 1)

    def _shape(self, n_features: int) -> Shape:
        if self.l1_bound is not None:
            if self.n_nonzero is not None:
                raise ValueError(
                    f"Both n_nonzero={self.n_nonzero} and l1_bound={self.l1_bound} were given: "
                    "leave one of them at None."
                )
            return BoundedSphere(self.l1_bound)
        wanted = 0.25 if self.n_nonzero is None else self.n_nonzero
        if not isinstance(wanted, Integral):
            wanted = int(np.ceil(wanted * n_features))
        if wanted > n_features:
            raise ValueError(
                f"n_nonzero={wanted} is more than the {n_features} features of X: choose fewer, "
                "or a share."
            )
        return SparseSphere(int(wanted))


class GrassmannAverage(DirectionModel):
    r"""Grassmann average (GA) and trimmed Grassmann average (TGA).

    A component is a fixed point of :math:`q \leftarrow \mathrm{average}_i(\mathrm{sgn}(q^\top
    y_i)\, y_i)` at unit length, where the average is trimmed in every feature: a share of the
    smallest and of the largest values is left out [1]_. Then the component is taken out of the
    samples, and the next one is searched for. Single bad entries of a sample are left out by
    themselves, not the sample.

    Without trimming this is `L1PCA`. With it nothing is maximised; passes may go round in
    circles, which a warning says. All samples are brought into memory then.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    trim : float, default=0.5
        Share to leave out at either end, from 0 to 0.5, which is the median.
    center : 'auto' or one of the centres of `L1PCA`, default='auto'
        The centre, found first and held. 'auto' is trimmed as the average is.
    init : {'pca', 'sample'}, default='pca'
        Where to start: at principal axes, or at the farthest sample.
    tol : float, default=1e-5
        Stop when a pass turns every direction by less than this angle (its sine). Below
        1e-12, and 1e-6 in single precision, there is only rounding error to wait for.
    max_iter : int, default=300
        Largest number of passes for each component, or for all at once.
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
        Orthonormal directions, one per row, in the order in which they were found.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Mean square of the scores about the centre, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Inner product of the direction at work and its average, times the number of samples,
        plus the same of the components found so far, at the start and after each pass.
        With trimming it may fall.
    n_iter_ : int
        Number of passes in all.
    converged_ : bool
        Whether ``tol`` was reached for every component.

    References
    ----------
    .. [1] Hauberg, Feragen, Black, Grassmann averages for scalable robust PCA, CVPR 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca import GrassmannAverage
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)) @ np.ones((1, 4))
    >>> X[rng.random(X.shape) < 0.1] = 20.0
    >>> GrassmannAverage(n_components=1).fit(X).components_.round(1)
    array([[0.5, 0.5, 0.5, 0.5]])
    """

    _by_blocks = False  # trimmed means of features need all rows of a feature
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DirectionModel._parameter_constraints,
        "trim": [Interval(Real, 0, 0.5, closed="both")],
        "center": [StrOptions({"auto", *CENTERS})],
        "init": [StrOptions({"pca", "sample"})],
    }

    random_state = None

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        trim: float = 0.5,
        center: str = "auto",
        init: str = "pca",
        tol: float = 1e-5,
        max_iter: int = 300,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.trim = trim
        self.center = center
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _reads_blocks(self) -> bool:
        return self.trim == 0

    def _center(self, rows: Rows) -> Array:
        if self.center != "auto":
            return CENTERS[self.center](rows)
        # The mean needs no columns, so it serves data of any size.
        return trimmed_mean(rows, self.trim) if self.trim > 0 else CENTERS["mean"](rows)

    def _average(self, rows: Rows, pool: ThreadPool) -> Average:
        return TrimmedSum(rows, self.trim, pool) if self.trim > 0 else PowerSum(rows, 1)


class EMPCA(DirectionModel):
    r"""PCA by expectation maximisation (EM-PCA).

    Minimises :math:`\sum_i \lVert (I - WW^\top)(x_i - m) \rVert^2`, as PCA does, by alternating
    least squares for the scores and for the directions [1]_. A pass costs two products with the
    data and no decomposition of them, and they are only read in blocks. Convergence is slow where
    the variances of the last component and the next direction are near to each other.

    With the mean as its centre this is ordinary PCA, robust against nothing.

    Parameters
    ----------
    n_components : int, 'auto' or None, default=None
        Dimension of the subspace; 'auto' to find it by predicting held-out entries, in spite of
        outlying rows and entries; None for the largest possible.
    center : str, default='mean'
        The centre, found first and held: 'mean', 'median', 'trimmed_mean' (of the middle half
        of each feature), 'geometric_median', 'medoid' (the sample nearest to all others) or
        'zero'. The mean is the papers'; the others resist outliers.
    random_state : int, RandomState instance or None, default=0
        Draws the directions to start with.
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
        Orthonormal basis, one direction per row, by decreasing variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Mean square of the scores about the centre, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Sum of the squared scores at the start and after each pass; it never falls.
    n_iter_ : int
        Number of passes in all.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Roweis, EM algorithms for PCA and SPCA, NIPS 1997.

    Examples
    --------
    >>> from robustpca import EMPCA
    >>> X = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5]]
    >>> EMPCA(n_components=1).fit(X).components_.round(2)
    array([[0.71, 0.71]])
    """

    greedy = False

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        center: str = "mean",
        random_state: Any = 0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _average(self, rows: Rows, pool: ThreadPool) -> Average:
        return PowerSum(rows, 2)

    def _shape(self, n_features: int) -> Shape:
        return Span()

    def _start(self, rows: Rows, n_components: int) -> RandomStart:
        return RandomStart(n_components, check_random_state(self.random_state))
