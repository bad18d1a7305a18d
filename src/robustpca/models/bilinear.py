"""Two-dimensional PCA of images: the loop and the losses of `reweighted`, a bilinear model."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from robustpca.engine.linalg import Array
from robustpca.engine.progress import Callback
from robustpca.engine.rows import ArrayRows, Rows
from robustpca.models.params import Interval, StrOptions
from robustpca.models.reweighted import ReweightedModel
from robustpca.parts.centers import CENTERS
from robustpca.parts.losses import LOSSES, CappedLoss, L21Loss, Loss, SquaredLoss
from robustpca.parts.ranks import rank_of
from robustpca.parts.weightings import WEIGHTINGS, Uniform, Weighting
from robustpca.solvers.bilinear import BilinearModel
from robustpca.solvers.reweighting import ReweightedSubspace

__all__ = ["GLRAM", "R2DPCA", "ReweightedBilinear"]

# So many images tell the ranks of both sides.
N_IMAGES = 100


class ReweightedBilinear(ReweightedModel):
    r"""Bilinear PCA of images with any loss and any weighting.

    Minimises :math:`\mathrm{Reg}(a) + \sum_i a_i\, \psi(\lVert A_i - M - U_1 U_1^\top (A_i - M)
    U_2 U_2^\top \rVert_F^2)` over the centre M, the orthonormal sides U1 and U2 and the weights
    a. Both papers behind the weightings say that images would be possible [1]_ [2]_; here they
    are.

    Parameters
    ----------
    n_components : tuple of two int, int, 'auto' or None, default=None
        Columns of the left and of the right side; one number for both (or all columns of a
        side that has fewer); 'auto' to find both by predicting held-out entries of the columns
        and of the rows of the images; None for the largest possible.
    image_shape : tuple of two int, default=None
        Height and width of the images, which are rows of ``X`` in C order; None for images of
        one column.
    loss : str or Loss, default='l21'
        Loss of the squared residual: a name in `robustpca.parts.LOSSES`, or such an object with its
        parameters.
    weighting : str or Weighting, default='uniform'
        Weights of the samples: a name in `robustpca.parts.WEIGHTINGS`, or such an object with its
        parameters.
    center : str, default='weighted'
        The centre: 'weighted' for the weighted mean, fitted along, or one that is found first
        and held: 'mean', 'median', 'trimmed_mean', 'geometric_median', 'medoid', 'zero'.
    init : {'auto', 'pca', 'robust', 'random'}, default='auto'
        Where to start: at plain PCA; at the half of the samples with the least
        Stahel-Donoho outlyingness, which survives outliers that form a cloud of their own;
        or at random weights. 'auto' is 'robust' for methods that drop samples, else 'pca'.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start, or the random weights.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=200
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    left_ : ndarray of shape (height, n_left)
        Orthonormal columns.
    right_ : ndarray of shape (width, n_right)
        Orthonormal columns.
    image_shape_ : tuple of two int
        Height and width of the images.
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Objective at the start and after each pass.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    Notes
    -----
    ``components_`` is the transposed Kronecker product of the sides, so a row of scores,
    reshaped to ``(n_left, n_right)``, is the core of an image. Components keep this order and
    are not sorted by variance.

    References
    ----------
    .. [1] Zhang, Tong, Robust principal component analysis with adaptive neighbors,
       NeurIPS 2019.
    .. [2] Zhang, Zhang, Li, Enhanced principal component analysis under a
       collaborative-robust framework, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustpca import ReweightedBilinear
    >>> X = load_digits().data
    >>> model = ReweightedBilinear((4, 3), image_shape=(8, 8), weighting="adaptive").fit(X)
    >>> model.left_.shape, model.right_.shape, model.transform(X).shape
    ((8, 4), (8, 3), (1797, 12))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ReweightedModel._parameter_constraints,
        "n_components": [
            tuple,
            list,
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "image_shape": [tuple, list, None],
        "loss": [StrOptions(set(LOSSES)), Loss],
        "weighting": [StrOptions(set(WEIGHTINGS)), Weighting],
        "center": [StrOptions({"weighted", *CENTERS})],
    }
    _accept_sparse = False

    center = "weighted"

    left_: Array
    right_: Array
    image_shape_: tuple[int, int]

    def __init__(
        self,
        n_components: tuple[int, int] | int | str | None = None,
        *,
        image_shape: tuple[int, int] | None = None,
        loss: Any = "l21",
        weighting: Any = "uniform",
        center: str = "weighted",
        init: str = "auto",
        random_state: Any = 0,
        tol: float = 1e-7,
        max_iter: int = 200,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.image_shape = image_shape
        self.loss = loss
        self.weighting = weighting
        self.center = center
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _model(self, rows: Rows, init: str) -> BilinearModel:
        shape = self._image_shape(rows)
        return BilinearModel(
            rows,
            shape,
            self._ranks(shape, rows),
            center=None if self.center == "weighted" else CENTERS[self.center](rows),
            n_sweeps=20,
        )

    def _own_attributes(self, model: BilinearModel, result: ReweightedSubspace) -> dict[str, Any]:
        left, right = (side.astype(model.rows.dtype) for side in model.sides())
        return {"left_": left, "right_": right, "image_shape_": model.shape}

    def _image_shape(self, rows: Rows) -> tuple[int, int]:
        n_features = rows.shape[1]
        if self.image_shape is None:
            return n_features, 1
        height, width = _pair(self.image_shape, "image_shape")
        if height * width != n_features:
            raise ValueError(
                f"image_shape={(height, width)} needs {height * width} features, but X has "
                f"{n_features}."
            )
        return height, width

    def _ranks(self, shape: tuple[int, int], rows: Rows) -> tuple[int, int]:
        given = self.n_components
        if given is None:
            return shape
        if given == "auto":
            return _side_ranks(rows, shape)
        if isinstance(given, Integral):
            # One number for both sides; a side that is shorter gives all it has.
            side = int(given)
            ranks = (min(side, shape[0]), min(side, shape[1])) if side <= max(shape) else None
        else:
            left, right = _pair(given, "n_components")
            ranks = (left, right) if left <= shape[0] and right <= shape[1] else None
        if ranks is None:
            raise ValueError(
                f"n_components={given} is more than images of shape {shape} can give: choose at "
                f"most {shape}."
            )
        return ranks


def _side_ranks(rows: Rows, shape: tuple[int, int]) -> tuple[int, int]:
    """Ranks of the columns and of the rows of some images without their median."""
    n_images = min(rows.shape[0], N_IMAGES)
    chosen = np.zeros(rows.shape[0], dtype=bool)
    chosen[np.random.RandomState(0).choice(len(chosen), n_images, replace=False)] = True
    images = rows.map("take", along=(chosen,)).reshape(-1, *shape)
    images = images - np.median(images, axis=0)
    columns, lines = images.swapaxes(1, 2).reshape(-1, shape[0]), images.reshape(-1, shape[1])
    return rank_of(ArrayRows(columns)), rank_of(ArrayRows(lines))


def _pair(given: Any, name: str) -> tuple[int, int]:
    pair = tuple(int(v) for v in given if isinstance(v, Integral) and int(v) >= 1)
    if len(pair) != 2 or len(given) != 2:
        raise ValueError(f"{name}={given!r} must be two whole numbers of at least 1.")
    return pair


class GLRAM(ReweightedBilinear):
    r"""Generalised low-rank approximation of matrices (GLRAM).

    Minimises :math:`\sum_i \lVert A_i - U_1 B_i U_2^\top \rVert_F^2` over orthonormal U1, U2 and
    the cores B [1]_: the plain, not robust, method for images. With the
    full width on the right it is one-sided 2DPCA.

    Parameters
    ----------
    n_components : tuple of two int, int, 'auto' or None, default=None
        Columns of the left and of the right side; one number for both (or all columns of a
        side that has fewer); 'auto' to find both by predicting held-out entries of the columns
        and of the rows of the images; None for the largest possible.
    image_shape : tuple of two int, default=None
        Height and width of the images, which are rows of ``X`` in C order; None for images of
        one column.
    center : {'zero', 'mean'}, default='zero'
        Leave the images as they are, like the paper, or subtract the mean image.
    init : {'leading', 'identity'}, default='leading'
        Start at the leading axes of the rows and of the columns, or at the first coordinate
        axes as the paper does.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=100
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    left_ : ndarray of shape (height, n_left)
        Orthonormal columns.
    right_ : ndarray of shape (width, n_right)
        Orthonormal columns.
    image_shape_ : tuple of two int
        Height and width of the images.
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Objective at the start and after each pass.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Ye, Generalized low rank approximations of matrices, Machine Learning 61, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustpca import GLRAM
    >>> X = load_digits().data
    >>> GLRAM((4, 3), image_shape=(8, 8)).fit(X).components_.shape
    (12, 64)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ReweightedBilinear._parameter_constraints,
        "center": [StrOptions({"zero", "mean"})],
        "init": [StrOptions({"leading", "identity"})],
    }
    _min_samples = 1

    def __init__(
        self,
        n_components: tuple[int, int] | int | str | None = None,
        *,
        image_shape: tuple[int, int] | None = None,
        center: str = "zero",
        init: str = "leading",
        tol: float = 1e-7,
        max_iter: int = 100,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.image_shape = image_shape
        self.center = center
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _parts(self) -> tuple[Loss, Weighting]:
        return SquaredLoss(), Uniform()

    def _model(self, rows: Rows, init: str) -> BilinearModel:
        shape = self._image_shape(rows)
        return BilinearModel(
            rows,
            shape,
            self._ranks(shape, rows),
            center=CENTERS[self.center](rows),
            identity=init == "identity",
        )


class R2DPCA(ReweightedBilinear):
    r"""Robust two-dimensional PCA with optimal mean (R2DPCA), plain or capped.

    Minimises :math:`\sum_i \min(\lVert A_i - M - U_1 U_1^\top (A_i - M) U_2 U_2^\top \rVert_F,
    \epsilon)` over the mean image M and the orthonormal sides U1, U2 [1]_. Without a threshold
    every image counts; with one, images with a larger residual are ignored.

    Parameters
    ----------
    n_components : tuple of two int, int, 'auto' or None, default=None
        Columns of the left and of the right side; one number for both (or all columns of a
        side that has fewer); 'auto' to find both by predicting held-out entries of the columns
        and of the rows of the images; None for the largest possible.
    image_shape : tuple of two int, default=None
        Height and width of the images, which are rows of ``X`` in C order; None for images of
        one column.
    threshold : float or str, default=None
        Cap of the residual norm: a number, or a string such as ``'q0.8'`` for that quantile of
        the residuals at the start. Lower it to drop more images; None drops none.
    init : {'auto', 'pca', 'robust', 'random'}, default='auto'
        Where to start: at plain PCA; at the half of the samples with the least
        Stahel-Donoho outlyingness, which survives outliers that form a cloud of their own;
        or at random weights. 'auto' is 'robust' for methods that drop samples, else 'pca'.
    random_state : int, RandomState instance or None, default=0
        Draws the directions of the robust start, or the random weights.
    tol : float, default=1e-7
        Stop when a pass lowers the objective by less than this share of it.
    max_iter : int, default=200
        Largest number of passes.
    contamination : 'auto' or float, default='auto'
        Which rows `predict` flags: 'auto' for those beyond a cutoff; a number in (0, 0.5] for
        that share of the training rows, and new rows that score no better.
    callback : callable, default=None
        Called after each pass with its ``iteration``, ``objective``, ``change`` and
        ``n_active``. An exception raised in it ends the fit.
    verbose : int, default=0
        Print a line after each pass.

    Attributes
    ----------
    left_ : ndarray of shape (height, n_left)
        Orthonormal columns.
    right_ : ndarray of shape (width, n_right)
        Orthonormal columns.
    image_shape_ : tuple of two int
        Height and width of the images.
    weights_ : ndarray of shape (n_samples,)
        Weight of each training sample, summing to one; outliers weigh little.
    sample_weights_ : ndarray of shape (n_samples,)
        Share of each training sample in the weighted least-squares fit: its weight times the
        slope of its loss.
    n_active_ : int
        Number of samples with a positive weight.
    loss_ : object
        The loss with all its parameters as numbers.
    mean_ : ndarray of shape (n_features,)
        Centre of the subspace.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal basis, one direction per row, by decreasing weighted variance.
    n_components_ : int
        Dimension of the subspace.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Weighted variance of the scores, and its share of the whole.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of ``(n_samples - 1) * explained_variance_``.
    orthogonal_cutoff_, score_cutoff_ : float
        Distances beyond which `predict` calls a row an outlier while the other one is usual.
    noise_variance_ : float
        Robust variance of the data along each direction that is not in the subspace.
    offset_ : float
        The score below which `predict` calls a row an outlier.
    objective_ : ndarray
        Objective at the start and after each pass.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether ``tol`` was reached.

    References
    ----------
    .. [1] Zhang, Nie, Li, Wei, Robust two-dimensional PCA with optimal mean and capped loss,
       2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustpca import R2DPCA
    >>> X = load_digits().data
    >>> model = R2DPCA((4, 3), image_shape=(8, 8), threshold="q0.8").fit(X)
    >>> model.n_active_ < len(X)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ReweightedBilinear._parameter_constraints,
        "threshold": [Interval(Real, 0, None, closed="neither"), str, None],
    }

    def __init__(
        self,
        n_components: tuple[int, int] | int | str | None = None,
        *,
        image_shape: tuple[int, int] | None = None,
        threshold: float | str | None = None,
        init: str = "auto",
        random_state: Any = 0,
        tol: float = 1e-7,
        max_iter: int = 200,
        contamination: float | str = "auto",
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.image_shape = image_shape
        self.threshold = threshold
        self.init = init
        self.random_state = random_state
        self.tol = tol
        self.max_iter = max_iter
        self.contamination = contamination
        self.callback = callback
        self.verbose = verbose

    def _parts(self) -> tuple[Loss, Weighting]:
        return (L21Loss() if self.threshold is None else CappedLoss(self.threshold)), Uniform()
