"""SubspaceModel: everything about a fitted subspace that is not the method."""

import time
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from robustpca.engine.linalg import Array, DenseBlock, flip_signs, orthonormal
from robustpca.engine.rows import ArrayRows, Rows, SparseRows, lazy_rows
from robustpca.engine.threads import one_blas_thread
from robustpca.models.params import Interval, fit_context
from robustpca.solvers.reweighting import Pass, Watch

T = TypeVar("T")

# Both cutoffs leave out this share of a Gaussian sample on average.
QUANTILE = 0.975


def announcer(name: str, unit: str, verbose: int, callback: Watch | None) -> Watch:
    """What a loop calls after each pass: it prints a line and tells the user's callback."""
    started = time.perf_counter()

    def watch(info: Pass) -> None:
        if verbose:
            print(
                f"[{name}] {unit} {info.iteration}: objective {info.objective:.6g}, change "
                f"{info.change:.1e} after {time.perf_counter() - started:.1f} s, {info.detail}"
            )
        if callback is not None:
            callback(info)

    return watch


def warn_unconverged(name: str, units: str, change: float, model: Any, stacklevel: int = 4) -> None:
    """Say that a fit stopped early, and which knobs there are; called from `fit` itself."""
    warnings.warn(
        f"{name} stopped after max_iter={model.max_iter} {units} with a change of {change:.1e}, "
        f"above tol={model.tol:.1e}. Raise max_iter, or raise tol to accept this fit.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def given_codes(model: Any, X: Any) -> Array:
    """What `inverse_transform` of a fitted model was given, if it can be scores of rows."""
    check_is_fitted(model)
    codes = np.asarray(X)
    if codes.ndim != 2 or codes.shape[1] != model.n_components_:
        raise ValueError(
            f"inverse_transform takes scores of shape (n_samples, {model.n_components_}), "
            f"but X has shape {codes.shape}."
        )
    return codes


class SubspaceModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all models that end with ``mean_`` and orthonormal ``components_``.

    A method derives from it and writes ``_fit(rows)``, which ends with `_keep`. What a user
    does after that is the same for all: scores, reconstructions, distances, outlier flags.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }
    _accept_sparse = True
    _allow_nan = False
    _min_samples = 2

    n_components: Any
    max_iter: int
    tol: float
    callback: Watch | None
    verbose: int

    def _fit(self, rows: Rows) -> None:
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to the rows of ``X``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            A NumPy array, SciPy CSR matrix or data frame; or rows that are not held in memory:
            a numpy.memmap, an h5py dataset, a zarr array, or a Dask array chunked by rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows = self._rows(X, reset=True)
        # A fit that is interrupted must not leave half of it in the place of an older one.
        self.__dict__.pop("components_", None)
        with one_blas_thread:
            self._fit(rows)
        if not self.converged_:
            self._warn_unconverged()
        return self

    def transform(self, X: Any) -> Array:
        """Scores of the rows of ``X``: their coordinates along the components.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            The scores.
        """
        check_is_fitted(self)
        return self._centred(X).map(_codes, self._encoder)

    def inverse_transform(self, X: Any) -> Array:
        """Points of the subspace that have these scores.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)
            Scores, as given by `transform`.

        Returns
        -------
        points : ndarray of shape (n_samples, n_features)
            The points.
        """
        return given_codes(self, X) @ self._decoder + self.mean_

    def reconstruct(self, X: Any) -> Array:
        """Project the rows of ``X`` on the subspace.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        points : ndarray of shape (n_samples, n_features)
            The nearest points of the subspace.
        """
        return self.inverse_transform(self.transform(X))

    def orthogonal_distances(self, X: Any) -> Array:
        """Distance of each row to the subspace.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            Compare them with ``orthogonal_cutoff_``.
        """
        return self._distances(X)[0]

    def score_distances(self, X: Any) -> Array:
        """Distance of each row to the centre within the subspace, in standard deviations.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            Compare them with ``score_cutoff_``.
        """
        return self._distances(X)[1]

    def score_samples(self, X: Any) -> Array:
        """How normal each row is: minus the larger of its two distances over their cutoffs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            At most 0; below -1 a row is an outlier.
        """
        orthogonal, score = self._distances(X)
        return -np.maximum(orthogonal / self.orthogonal_cutoff_, score / self.score_cutoff_)

    def predict(self, X: Any) -> Array:
        """Flag outliers.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        flags : ndarray of shape (n_samples,)
            -1 for rows beyond one of the cutoffs, 1 for the others.
        """
        return np.where(self.score_samples(X) < -1, -1, 1)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the median distance of the rows to the subspace; larger is better.

        The median makes it fit for choosing parameters on data with outliers.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.
        y : None
            Ignored.

        Returns
        -------
        score : float
            At most 0.
        """
        return -float(np.median(self.orthogonal_distances(X)))

    def _warn_unconverged(self) -> None:
        """Say why `fit` stopped short of its tolerance."""
        warn_unconverged(type(self).__name__, "passes", self._change, self, stacklevel=5)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that was interrupted has looked at the data but has no result.
        return hasattr(self, "components_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accept_sparse
        tags.input_tags.allow_nan = self._allow_nan
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _rows(self, X: Any, *, reset: bool) -> Rows:
        """Check ``X`` and open it for the row engine."""
        name = type(self).__name__
        if getattr(X, "ndim", 2) == 3:
            shape = X.shape
            raise ValueError(
                f"X has shape {shape}, but {name} takes one sample per row: pass "
                f"X.reshape({shape[0]}, -1), and image_shape={shape[1:]} to the image methods."
                " Found array with dim 3."
            )
        rows = lazy_rows(X)
        if rows is None:
            if sparse.issparse(X) and not self._accept_sparse:
                raise TypeError(
                    f"{name} works on dense arrays, but X is sparse: pass X.toarray(), or use a "
                    "method such as EPCA. Sparse data was passed."
                )
            X = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse=["csr"] if self._accept_sparse else False,
                dtype="numeric",
                ensure_all_finite="allow-nan" if self._allow_nan else True,
                ensure_min_samples=self._min_samples if reset else 1,
            )
            return SparseRows(X) if sparse.issparse(X) else ArrayRows(X)
        self._check_lazy(rows, reset)
        return rows

    def _check_lazy(self, rows: Rows, reset: bool) -> None:
        name = type(self).__name__
        n_samples, n_features = rows.shape
        if rows.stored.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, but its dtype is {rows.stored}.")
        needed = self._min_samples if reset else 1
        if n_samples < needed or n_features < 1:
            raise ValueError(
                f"X has shape {rows.shape}, but {name} needs at least {needed} samples and 1 "
                "feature."
            )
        if reset:
            self.n_features_in_ = n_features
        elif n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but {name} is expecting "
                f"{self.n_features_in_} features as input."
            )

    def _centred(self, X: Any) -> Rows:
        return self._rows(X, reset=False).centred(self.mean_)

    def _distances(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        basis, inverse_deviations = self._basis, self._inverse_deviations
        squares, scores = self._centred(X).map(_square_distances, basis, inverse_deviations)
        return np.sqrt(squares), scores

    @property
    def _basis(self) -> Array:
        """Orthonormal columns that span the subspace, along which the variances are."""
        return np.asarray(self.components_.T)

    @property
    def _encoder(self) -> Array:
        """What a centred row is multiplied by to give its scores."""
        return self._basis

    @property
    def _decoder(self) -> Array:
        """What scores are multiplied by to give a centred point."""
        return np.asarray(self.components_)

    @property
    def _inverse_deviations(self) -> Array:
        # Along a component without variance every row has the same score, so it tells nothing.
        variances = np.asarray(self.explained_variance_, dtype=np.float64)
        usable = variances > 1e-12 * max(variances.max(initial=0.0), np.finfo(np.float64).tiny)
        return np.where(usable, 1 / np.sqrt(np.where(usable, variances, 1.0)), 0.0)

    def _rank(self, rows: Rows) -> int:
        """Resolve an integer or missing ``n_components``."""
        largest = min(rows.shape)
        if self.n_components is None:
            return largest
        if self.n_components > largest:
            raise ValueError(
                f"n_components={self.n_components} is more than the data can give: X has shape "
                f"{rows.shape}, so choose at most {largest}."
            )
        return int(self.n_components)

    def _keep(
        self,
        rows: Rows,
        mean: Array,
        components: Array,
        *,
        residuals: Array,
        sample_weights: Array,
        variances: Array,
        total: float,
        floor: float,
    ) -> None:
        """Store the subspace and what follows from it.

        ``residuals`` are squared; ``variances`` of the scores and the ``total`` variance are
        weighted means with ``sample_weights``. Distances below ``floor`` are rounding error.
        """
        share = sample_weights / sample_weights.sum()
        # As many independent samples as the weights are worth: n for equal weights.
        effective = 1 / float(share @ share)
        correction = effective / (effective - 1) if effective > 1 + 1e-9 else 1.0
        variances, dtype = correction * variances, rows.dtype
        # What a component shows of a constant column is rounding error, unless it is one of
        # those that complete the basis of data without enough variance.
        genuine = (variances > 1e-10 * variances.max())[:, None]
        rounding = genuine & rows.constant_columns() & (np.abs(components) < 1e-6)
        components = np.where(rounding, 0.0, components)
        ratio = variances / (correction * total) if total > 0 else np.zeros_like(variances)
        self.mean_ = mean.astype(dtype)
        self.components_ = np.ascontiguousarray(flip_signs(components), dtype=dtype)
        self.n_components_ = len(components)
        self.n_samples_ = rows.shape[0]
        self.explained_variance_ = variances.astype(dtype)
        self.explained_variance_ratio_ = ratio.astype(dtype)
        self.singular_values_ = np.sqrt(variances * (self.n_samples_ - 1)).astype(dtype)
        self.score_cutoff_ = float(np.sqrt(stats.chi2.ppf(QUANTILE, len(components))))
        tiny = float(np.finfo(np.float64).tiny) ** 0.5
        self.orthogonal_cutoff_ = max(orthogonal_cutoff(np.sqrt(residuals)), floor, tiny)


class ObliqueModel(SubspaceModel):
    """A subspace with scores along ``loadings_``, which need not be orthonormal.

    A point is ``scores @ loadings_ + mean_``. The scores of a row are those of the nearest
    point, so reconstruction is the orthogonal projection on the span of the loadings.
    ``explained_variance_`` belongs to the directions that each loading adds to those before.
    """

    loadings_: Array

    @property
    def _basis(self) -> Array:
        return orthonormal(self.loadings_.T)

    @property
    def _encoder(self) -> Array:
        return np.asarray(np.linalg.pinv(self.loadings_))

    @property
    def _decoder(self) -> Array:
        return self.loadings_


def orthogonal_cutoff(distances: Array) -> float:
    """Cutoff of distances to a subspace by the Wilson-Hilferty transformation.

    The distances to the power 2/3 are nearly Gaussian; their centre and spread are estimated
    by the median and the median absolute deviation, so outliers do not raise the cutoff.
    """
    powers = distances ** (2 / 3)
    location = np.median(powers)
    spread = stats.norm.ppf(0.75) ** -1 * np.median(np.abs(powers - location))
    return float((location + stats.norm.ppf(QUANTILE) * spread) ** 1.5)


def _codes(block: Any, basis: Array) -> Array:
    return np.ascontiguousarray(block.project(basis))


def _square_distances(
    block: DenseBlock, basis: Array, inverse_deviations: Array
) -> tuple[Array, Array]:
    codes, norms = block.coordinates(basis)
    squares = np.maximum(block.square_distances(codes, norms, basis), 0.0)
    return squares, np.sqrt(np.square(codes, dtype=np.float64) @ inverse_deviations**2)
