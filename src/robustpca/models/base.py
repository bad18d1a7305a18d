"""Models: a fit is a value that `_fit` returns, and `store` writes it to the estimator."""

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OutlierMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from robustpca.engine.blocks import DenseBlock, cached_rows, slices
from robustpca.engine.dask_rows import lazy_rows
from robustpca.engine.linalg import Array, finite, flip_signs, orthonormal
from robustpca.engine.memory import refuse_too_large
from robustpca.engine.progress import Callback, Ending, Progress
from robustpca.engine.rows import ArrayRows, Rows, rows_in_memory
from robustpca.models.estimator import Estimator, all_or_nothing, refuse_containers
from robustpca.models.flags import Distances, Flags, Scatter, flags
from robustpca.models.params import Interval, StrOptions
from robustpca.models.precision import precision_warnings
from robustpca.parts.ranks import rank_of

Model = TypeVar("Model", bound=BaseEstimator)

# The cutoffs are learnt from at most this many rows, read in this many places.
FLAG_ROWS, FLAG_PLACES = 4096, 64
# Warnings point at the first line of code outside of these folders.
LIBRARIES = (str(Path(__file__).parents[1]), str(Path(sklearn.__file__).parent))


@dataclass(frozen=True)
class Subspace:
    """A fitted subspace; fields up to the last four are attributes without the underscore.

    ``residuals`` (squared) and ``shares`` (in the fit) of the training rows, and the ``floor``
    below which distances are rounding error, are what the cutoffs are learnt from. So are
    ``scores`` of the rows with given numbers, for which the rows are read if nothing has them.
    """

    mean: Array
    components: Array
    n_components: int
    n_samples: int
    explained_variance: Array
    explained_variance_ratio: Array
    singular_values: Array
    residuals: Array
    shares: Array
    floor: float
    scores: Callable[[Array], Array] | None = None

    @classmethod
    def of(
        cls,
        rows: Rows,
        mean: Array,
        components: Array,
        *,
        residuals: Array,
        variances: Array,
        total: float,
        floor: float,
        sample_weights: Array | None = None,
        scores: Callable[[Array], Array] | None = None,
    ) -> "Subspace":
        """Derive everything from what a solver found.

        ``residuals`` are squared; ``variances`` of the scores and the ``total`` variance are
        weighted means with ``sample_weights``, by default equal ones. Distances below ``floor``
        are rounding error. ``scores`` are those along the components as they are given.
        """
        n_samples, dtype = rows.shape[0], rows.dtype
        # As many independent samples as the weights are worth.
        if sample_weights is None:
            share, effective = np.broadcast_to(1 / n_samples, n_samples), float(n_samples)
        else:
            share = sample_weights / sample_weights.sum()
            effective = 1 / float(share @ share)
        correction = effective / (effective - 1) if effective > 1 + 1e-9 else 1.0
        variances = correction * variances
        # What a component shows of a constant column is rounding error, unless the column was
        # not centred, or the component completes the basis of data without enough variance.
        genuine = variances > 1e-10 * variances.max()
        unseen = rows.constant_columns() & (np.abs(components[genuine]) < 1e-4).all(axis=0)
        rounding = genuine[:, None] & unseen & (np.abs(components) < 1e-6)
        components = np.where(rounding, 0.0, components)
        ratio = variances / (correction * total) if total > 0 else np.zeros_like(variances)
        turned = flip_signs(components)
        signs = np.sign(np.einsum("ij,ij->i", components, turned))
        return cls(
            mean=mean.astype(dtype),
            components=np.ascontiguousarray(turned, dtype=dtype),
            n_components=len(components),
            n_samples=n_samples,
            explained_variance=variances.astype(dtype),
            explained_variance_ratio=ratio.astype(dtype),
            singular_values=np.sqrt(variances * (n_samples - 1)).astype(dtype),
            residuals=residuals,
            shares=share,
            floor=max(floor, float(np.finfo(np.float64).tiny) ** 0.5),
            scores=None if scores is None else lambda chosen: signs * scores(chosen),
        )

    def attributes(self) -> dict[str, Any]:
        """What is kept of it after a fit."""
        hidden = ("residuals", "shares", "floor", "scores")
        return {f"{name}_": value for name, value in vars(self).items() if name not in hidden}


@dataclass(frozen=True)
class Fit:
    """Everything that an estimator knows after `fit`.

    Attributes
    ----------
    attributes : mapping
        Attributes of the method itself by name, such as ``weights_``.
    subspace : Subspace, default=None
        The subspace, for models that have one.
    ending : Ending, default=None
        How the loop ended: usually the result of the solver itself.
    warnings : tuple of Warning, default=()
        What the user should be told.
    """

    attributes: Mapping[str, Any] = field(default_factory=dict)
    subspace: Subspace | None = None
    ending: Ending | None = None
    warnings: tuple[Warning, ...] = ()


def store(model: Model, fit: Fit) -> Model:
    """Write a fit to its estimator, and warn: the one place that sets fitted attributes."""
    if fit.subspace is not None:
        for name, value in fit.subspace.attributes().items():
            setattr(model, name, value)
    if fit.ending is not None:
        for name in ("objective", "n_iter", "converged"):
            setattr(model, f"{name}_", getattr(fit.ending, name))
    for name, value in fit.attributes.items():
        setattr(model, name, value)
    for warning in fit.warnings:
        warn(warning)
    return model


def warn(warning: Warning) -> None:
    """Warn at the line of the user's own code that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(LIBRARIES):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def unconverged(
    model: Any, ending: Ending, units: str = "passes", name: str | None = None
) -> tuple[Warning, ...]:
    """The warning that a fit stopped early, with the parameters to change; none if it did not."""
    if ending.converged:
        return ()
    return (
        ConvergenceWarning(
            f"{name or type(model).__name__} stopped after max_iter={model.max_iter} {units} with "
            f"a change of {ending.change:.1e}, above tol={model.tol:.1e}. Raise max_iter, or "
            "raise tol to accept this fit."
        ),
    )


def reporter(model: Any, unit: str = "pass") -> Callback:
    """What a loop calls after each pass: it prints a line if wanted, and calls the callback."""
    started, name = time.perf_counter(), type(model).__name__
    verbose, callback = model.verbose, model.callback

    def report(progress: Progress) -> None:
        if verbose:
            print(
                f"[{name}] {unit} {progress.iteration}: objective {progress.objective:.6g}, change "
                f"{progress.change:.1e} after {time.perf_counter() - started:.1f} s"
                + (f", {progress.detail}" if progress.detail else "")
            )
        if callback is not None:
            limits = {"tol": model.tol, "max_iter": model.max_iter} if progress.counted else {}
            callback(replace(progress, method=name, **limits))

    return report


def points_of(model: Any, X: Any, decoder: Array, mean: Array | float) -> Array:
    """Rows that have the scores ``X``, which `inverse_transform` of a fitted model was given."""
    check_is_fitted(model)
    rows = lazy_rows(X)
    codes = np.asarray(X) if rows is None else X
    if codes.ndim != 2 or codes.shape[1] != model.n_components_:
        raise ValueError(
            f"inverse_transform takes scores of shape (n_samples, {model.n_components_}), "
            f"but X has shape {codes.shape}."
        )
    rows = ArrayRows(codes) if rows is None else rows
    # In the blocks of the rows that the scores belong to.
    rows = rows.finer(decoder.shape[1] * rows.dtype.itemsize)
    points: Array = rows.rowwise(_points, decoder, mean)
    return points


class SubspaceModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OutlierMixin, Estimator):
    """Base of all models that end with ``mean_`` and orthonormal ``components_``.

    A method derives from it and writes ``_fit(rows)``, which returns a `Fit` with a subspace.
    What a user does after that is the same for all: scores, reconstructions, distances, flags.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
            None,
        ],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }
    _accept_sparse = True
    _allow_nan = False
    _min_samples = 2
    # Whether a fit reads row blocks one after the other, and never holds all rows at once.
    _by_blocks: ClassVar[bool] = True
    # What a fit that does so holds in memory beside a few blocks.
    _holds: ClassVar[str] = "a block of rows"
    # Arrays of the size of the data that a fit to rows in a file stores on disk at the same time.
    _scratch_arrays: ClassVar[int] = 0

    n_components: Any
    max_iter: int
    tol: float
    contamination: Any = "auto"
    callback: Callback | None
    verbose: int

    mean_: Array
    components_: Array
    n_components_: int
    n_features_in_: int
    n_samples_: int
    explained_variance_: Array
    explained_variance_ratio_: Array
    singular_values_: Array
    orthogonal_cutoff_: float
    score_cutoff_: float
    noise_variance_: float
    offset_: float
    objective_: Array
    n_iter_: int
    converged_: bool
    _flags: Flags

    def _fit(self, rows: Rows) -> Fit:
        raise NotImplementedError

    @all_or_nothing()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to the rows of ``X``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            A NumPy array, SciPy CSR matrix or data frame; or rows that are not held in memory:
            a numpy.memmap, an h5py dataset, a zarr array, a Dask array chunked by rows, or a
            Dask data frame, whose rows are counted first.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows = self._rows(X, reset=True)
        if not self._reads_blocks() and not isinstance(rows, ArrayRows):
            refuse_too_large(rows, type(self).__name__)
        for warning in precision_warnings(rows):
            warn(warning)
        fit = self._fit(rows)
        store(self, fit)
        if fit.subspace is not None:
            store(self, self._flagging(rows, fit.subspace))
        return store(self, Fit({"offset_": self._offset(rows)}))

    def _reads_blocks(self) -> bool:
        """Whether a fit with these parameters never holds all rows at once."""
        return self._by_blocks

    def transform(self, X: Any) -> Array:
        """Scores of the rows of ``X``: their coordinates along the components.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            The scores, in memory also if the rows are in a file; of a Dask array or data frame a
            Dask array, of which nothing is computed yet. So it is for all methods that look at
            each row for itself; `robustpca.write_scores` writes to a file.
        """
        check_is_fitted(self)
        codes: Array = self._centred(X).rowwise(_codes, self._encoder)
        return codes

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
        return points_of(self, X, self._decoder, self.mean_)

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
        """How normal each row is by all of its distances: 0 for a typical row, -1 at the cutoff.

        These are `orthogonal_distances`, `score_distances` and, for methods that leave rows out
        of the fit, the plain distance to the centre. Their logarithms are compared with those of
        the training rows and added up as logarithms, so that the largest one counts most.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Below ``offset_``, which is -1 unless ``contamination`` is a share, a row is an
            outlier.
        """
        distances = self._distances(X)
        return self._flags.scores(distances)

    def decision_function(self, X: Any) -> Array:
        """How far each row is on the safe side: `score_samples` minus ``offset_``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        margins : ndarray of shape (n_samples,)
            Negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """Flag outliers.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.

        Returns
        -------
        flags : ndarray of shape (n_samples,)
            -1 for rows that score below ``offset_``, 1 for the others.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the median over rows of the error of entries predicted from the others.

        Scores are fitted to all entries of a row but one, which they then predict; the error of
        the row is the root of the mean square over its entries. Components that are missing
        leave structure unpredicted, and those too many fit noise, so that on rows that were held
        out the right number of components scores best, as in
        ``GridSearchCV(EPCA(), {"n_components": range(1, 10)})``. With all components there are
        no other entries left to predict from: the error is then the distance to the centre.
        Outliers do not move the median.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Any kind of array that `fit` takes.
        y : None
            Ignored.

        Returns
        -------
        score : float
            At most 0, in the units of the data; larger is better.
        """
        check_is_fitted(self)
        return -float(np.median(np.sqrt(self._entry_errors(X))))

    def _entry_errors(self, X: Any) -> Array:
        """Mean square over the entries of each row of the errors that `score` is about."""
        return np.asarray(self._centred(X).map(_entry_errors, self._basis))

    def _flagging(self, rows: Rows, subspace: Subspace) -> Fit:
        """What the distances of the training rows say about outliers."""
        n, d = rows.shape
        size = FLAG_ROWS // FLAG_PLACES
        starts = np.linspace(0, n - size, FLAG_PLACES).astype(int) if n > FLAG_ROWS else [0]
        places = [slice(at, at + size) if n > FLAG_ROWS else slice(0, n) for at in starts]
        chosen = np.concatenate([np.arange(place.start, place.stop) for place in places])
        known = subspace.scores
        found = flags(
            known(chosen) if known is not None else self._training_codes(rows, places),
            subspace.residuals[chosen],
            variances=subspace.explained_variance.astype(np.float64),
            shares=subspace.shares[chosen],
            floor=subspace.floor,
            n_outside=d - subspace.n_components,
        )
        orthogonal_cutoff, score_cutoff = found.cutoffs
        return Fit(
            {
                "_flags": found,
                "orthogonal_cutoff_": orthogonal_cutoff,
                "score_cutoff_": score_cutoff,
                "noise_variance_": found.noise_variance,
            }
        )

    def _training_codes(self, rows: Rows, places: list[slice]) -> Array:
        """Scores along `_basis` of some of the training rows."""
        centred = rows.median_centred().centred(self.mean_)
        if len(places) == 1:
            return np.asarray(centred.map(_codes, self._basis))
        blocks = centred.blocks([(int(place.start), int(place.stop)) for place in places])
        return np.concatenate([_codes(block, self._basis) for block in blocks])

    def _offset(self, rows: Rows) -> float:
        """The score below which a row is an outlier, given the training rows."""
        if self.contamination == "auto":
            return -1.0
        scores = np.asarray(self._flags.scores(self._distances_of(rows)))
        return float(np.quantile(scores, self.contamination))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that was interrupted has read the data but has no result.
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
        refuse_containers(X)
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
            X = self._validated(
                X,
                reset=reset,
                accept_sparse=["csr"] if self._accept_sparse else False,
                dtype="numeric",
                ensure_all_finite="allow-nan" if self._allow_nan else True,
                ensure_min_samples=self._min_samples if reset else 1,
            )
            return rows_in_memory(X)
        if rows.stored.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, but its dtype is {rows.stored}.")
        validate_data(self, rows.header(), reset=reset, skip_check_array=True)
        rows = rows.counted() if reset else rows
        needed = self._min_samples if reset else 1
        if (rows.is_counted and rows.shape[0] < needed) or rows.shape[1] < 1:
            raise ValueError(
                f"X has shape {rows.shape}, but {name} needs at least {needed} samples and 1 "
                "feature."
            )
        return rows

    def _centred(self, X: Any) -> Rows:
        return self._rows(X, reset=False).centred(self.mean_)

    def _distances(self, X: Any) -> Distances:
        check_is_fitted(self)
        return self._distances_of(self._rows(X, reset=False))

    def _distances_of(self, rows: Rows) -> Distances:
        """All distances of rows."""
        centred = rows.centred(self.mean_)
        orthogonal, score, central = centred.rowwise(_distances, self._basis, self._flags.scatter)
        return orthogonal, score, central

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

    def _rank(self, rows: Rows) -> int:
        """Resolve an integer, automatic or missing ``n_components``."""
        largest = min(rows.shape)
        if self.n_components is None:
            return largest
        if self.n_components == "auto":
            return rank_of(rows)
        if self.n_components > largest:
            raise ValueError(
                f"n_components={self.n_components} is more than the data can give: X has shape "
                f"{rows.shape}, so choose at most {largest}."
            )
        return int(self.n_components)


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


def _codes(block: Any, basis: Array) -> Array:
    # Rows that were not in memory have not been looked at before.
    with np.errstate(invalid="ignore"):
        return finite(np.ascontiguousarray(block.project(basis)))


def _points(block: DenseBlock, decoder: Array, mean: Array | float) -> Array:
    return np.asarray(block.block @ decoder + mean)


def _distances(block: DenseBlock, basis: Array, scatter: Scatter) -> Distances:
    with np.errstate(invalid="ignore"):
        codes, norms = block.coordinates(basis)
    orthogonal = np.sqrt(np.maximum(block.square_distances(codes, finite(norms), basis), 0.0))
    return orthogonal, scatter.distances(codes), scatter.central(codes, orthogonal)


def _entry_errors(block: Any, basis: Array) -> Array:
    errors = np.empty(len(block))
    for place in slices(len(block), cached_rows(8 * len(basis))):
        rows = block.take(place)
        errors[place] = np.mean(prediction_errors(rows, rows @ basis @ basis.T, basis) ** 2, axis=1)
    return errors


def prediction_errors(rows: Array, points: Array, basis: Array) -> Array:
    """Errors of the entries of centred rows, each predicted from the others by least squares.

    ``points`` of the span of the orthonormal ``basis`` (columns) fit the whole rows. An entry that
    the others say nothing about is predicted by the centre.
    """
    # What is left of an entry when it takes part in the fit, and would be more if it did not.
    left = 1 - np.einsum("ij,ij->i", basis, basis)
    known = left > 1e-6
    return np.where(known, (rows - points) / np.where(known, left, 1.0), rows)
