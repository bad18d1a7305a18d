"""How good a subspace, a clustering, a background or outlier flags are when the truth is known.

Mutual information and the adjusted Rand index of clusterings are in `sklearn.metrics`; papers
often divide mutual information by the geometric mean of the entropies, which is
``normalized_mutual_info_score(..., average_method="geometric")``. The numerical rank of a
matrix is `numpy.linalg.matrix_rank`.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import orth, svdvals
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_array, column_or_1d

from robustpca.engine.linalg import Array, square_norms

__all__ = [
    "ForegroundScores",
    "clustering_accuracy",
    "clustering_error",
    "foreground_scores",
    "outlier_precision_recall",
    "principal_angles",
    "reconstruction_error",
    "recovery_error",
    "subspace_distance",
    "weighted_reconstruction_error",
]


def reconstruction_error(model: Any, X_clean: Any, X_corrupt: Any) -> float:
    r"""Squared distance of the clean data to the reconstruction of the corrupted data.

    This is :math:`\lVert X_{\text{clean}} - \hat X \rVert_F^2` [1]_, where :math:`\hat X` is what
    the model makes of ``X_corrupt``.

    Parameters
    ----------
    model : object
        A fitted model with ``reconstruct``, or, as those of scikit-learn, with ``transform`` and
        ``inverse_transform``.
    X_clean, X_corrupt : array of shape (n_samples, n_features)
        The same samples before and after corruption.

    Returns
    -------
    error : float
        Sum over all entries.

    References
    ----------
    .. [1] Zhang, Zhang, Li, Enhanced principal component analysis under a
       collaborative-robust framework, 2021.

    Examples
    --------
    >>> from robustpca import PCAOM
    >>> from robustpca.metrics import reconstruction_error
    >>> X_clean = [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]
    >>> X_corrupt = [[0, 0], [1, 1], [2, 2], [3, 3], [3, 5]]
    >>> model = PCAOM(n_components=1).fit(X_clean)
    >>> round(reconstruction_error(model, X_clean, X_corrupt), 6)
    0.0
    """
    return float(_square_errors(model, X_clean, X_corrupt).sum())


def weighted_reconstruction_error(
    model: Any, X_clean: Any, X_corrupt: Any, weights: Any = None
) -> float:
    r"""Weighted mean over the samples of the squared reconstruction error.

    This is :math:`\sum_i p_i \lVert x_i - \hat x_i \rVert^2` with weights that are scaled to sum
    to one [1]_. Methods that weigh the samples differently cannot be compared by it: give
    `reconstruction_error` beside it.

    Parameters
    ----------
    model : object
        A fitted model, as for `reconstruction_error`.
    X_clean, X_corrupt : array of shape (n_samples, n_features)
        The same samples before and after corruption.
    weights : array of shape (n_samples,), default=None
        Weights of the samples, not negative; None for the ``weights_`` of the model, if these are
        its training samples.

    Returns
    -------
    error : float
        Mean squared error of a sample.

    References
    ----------
    .. [1] Zhang, Tong, Robust principal component analysis with adaptive neighbors,
       NeurIPS 2019.
    """
    errors = _square_errors(model, X_clean, X_corrupt)
    if weights is None:
        weights = getattr(model, "weights_", None)
        if weights is None:
            raise ValueError(f"{type(model).__name__} has no weights_: pass weights=.")
    weights = column_or_1d(np.asarray(weights, dtype=np.float64))
    if len(weights) != len(errors):
        raise ValueError(
            f"There are {len(weights)} weights and {len(errors)} samples; pass weights= with one "
            "weight per sample."
        )
    if not (np.all(np.isfinite(weights)) and weights.min() >= 0 and weights.sum() > 0):
        raise ValueError(
            f"Weights must be finite, not negative, and not all 0, but they run from "
            f"{weights.min()} to {weights.max()}."
        )
    return float(weights @ errors / weights.sum())


def recovery_error(X_clean: Any, low_rank: Any, where: Any = None) -> float:
    r"""Mean squared error of a recovered low-rank matrix.

    This is :math:`\lVert L - X_{\text{clean}} \rVert_F^2 / (n d)`.

    Parameters
    ----------
    X_clean : array of shape (n_samples, n_features)
        The data before corruption.
    low_rank : array of shape (n_samples, n_features)
        What was recovered, such as ``low_rank_``.
    where : array of bool, of shape (n_samples, n_features) or (n_features,), default=None
        Entries to count, such as the mask of a corruption, or the pixels whose background is
        known; None for all.

    Returns
    -------
    error : float
        Mean over the entries; NaN if ``where`` is nowhere true.

    Examples
    --------
    >>> from robustpca.metrics import recovery_error
    >>> recovery_error([[1, 2], [3, 4]], [[1, 2], [3, 6]])
    1.0
    """
    clean = check_array(X_clean, dtype=np.float64, input_name="X_clean")
    recovered = check_array(low_rank, dtype=np.float64, input_name="low_rank")
    if clean.shape != recovered.shape:
        raise ValueError(
            f"X_clean has shape {clean.shape} and low_rank has shape {recovered.shape}: pass two "
            "versions of the same data."
        )
    errors = (recovered - clean) ** 2
    if where is not None:
        where = np.asarray(where)
        if where.dtype != bool or where.shape not in (errors.shape, errors.shape[1:]):
            raise ValueError(
                f"where has shape {where.shape} and type {where.dtype}: pass booleans, one for "
                f"each entry of {errors.shape} or for each of the {errors.shape[1]} features."
            )
        errors = errors[np.broadcast_to(where, errors.shape)]
    return float(errors.mean()) if errors.size else float("nan")


def principal_angles(first: Any, second: Any) -> Array:
    """Principal angles between the spaces that the rows of two matrices span.

    Each angle comes from its sine and its cosine, so small and large ones are accurate; the arc
    cosine alone could not tell angles below 1e-8 from 0.

    Parameters
    ----------
    first, second : array of shape (n_vectors, n_features)
        Vectors in rows, such as ``components_``; not necessarily orthonormal, nor equally many.

    Returns
    -------
    angles : ndarray of shape (dimension,)
        Angles in radians, the largest last, as many as the smaller space has dimensions.

    Examples
    --------
    >>> from robustpca.metrics import principal_angles
    >>> principal_angles([[1, 0, 0], [0, 1, 0]], [[2, 0, 0], [0, 1, 1]]).round(4)
    array([0.    , 0.7854])
    """
    A = check_array(first, dtype=np.float64, input_name="first")
    B = check_array(second, dtype=np.float64, input_name="second")
    if A.shape[1] != B.shape[1]:
        raise ValueError(
            f"The vectors of first have {A.shape[1]} features and those of second "
            f"{B.shape[1]}: spaces can only be compared within one space."
        )
    for name, vectors in (("first", A), ("second", B)):
        if not vectors.any():
            raise ValueError(f"All {len(vectors)} vectors of {name} are 0, so they span nothing.")
    larger, smaller = orth(A.T), orth(B.T)
    if larger.shape[1] < smaller.shape[1]:
        larger, smaller = smaller, larger
    # scipy.linalg.subspace_angles mixes up which angles to take from sines when both small and
    # large ones occur, and then has an error of 1e-8.
    overlap = larger.T @ smaller
    cosines, sines = svdvals(overlap), svdvals(smaller - larger @ overlap)
    return np.arctan2(sines[::-1], cosines)


def subspace_distance(first: Any, second: Any) -> float:
    """Sine of the largest principal angle between the spaces that two sets of rows span.

    Parameters
    ----------
    first, second : array of shape (n_vectors, n_features)
        As for `principal_angles`.

    Returns
    -------
    distance : float
        From 0, if one space contains the other, to 1, if some direction of the smaller one is
        orthogonal to the larger one.

    Examples
    --------
    >>> from robustpca.metrics import subspace_distance
    >>> round(subspace_distance([[1, 0, 0], [0, 1, 0]], [[2, 0, 0], [0, 1, 1]]), 4)
    0.7071
    """
    return float(np.sin(principal_angles(first, second)[-1]))


def clustering_accuracy(y_true: Any, y_pred: Any) -> float:
    """Share of samples in the right cluster, for the best matching of clusters to classes.

    Each cluster stands for at most one class and each class for at most one cluster; with
    different numbers of them, the samples of those left over count as wrong.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_samples,)
        Classes and clusters; the labels may be anything.

    Returns
    -------
    accuracy : float
        Between 0 and 1.

    Examples
    --------
    >>> from robustpca.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.75
    """
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    if len(y_true) != len(y_pred) or len(y_true) == 0:
        raise ValueError(
            f"y_true has {len(y_true)} labels and y_pred has {len(y_pred)}: pass one of each per "
            "sample, for at least one sample."
        )
    counts = contingency_matrix(y_true, y_pred)
    matched = counts[linear_sum_assignment(counts, maximize=True)].sum()
    return float(matched / len(y_true))


def clustering_error(y_true: Any, y_pred: Any) -> float:
    """Share of samples in the wrong cluster, for the best matching of clusters to classes.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_samples,)
        Classes and clusters; the labels may be anything.

    Returns
    -------
    error : float
        One minus `clustering_accuracy`.
    """
    return 1.0 - clustering_accuracy(y_true, y_pred)


class ForegroundScores(NamedTuple):
    """Precision, recall and F-measure of a foreground; NaN where there is nothing to divide by."""

    precision: float
    recall: float
    f_measure: float


def foreground_scores(masks: Any, foreground: Any) -> ForegroundScores:
    """How well a foreground agrees with masks made by hand, by the rules of CDnet [1]_.

    Pixels labelled 255 move, those labelled 0 do not, and neither do hard shadows, labelled 50.
    Others are not scored: 85 is outside the region of interest, 170 is unknown or a border.

    Parameters
    ----------
    masks : array of shape (n_samples, n_features)
        Labels of the pixels, one frame per row.
    foreground : array of bool, of shape (n_samples, n_features)
        Pixels that are said to move, such as ``abs(sparse_) > 25`` for grey levels up to 255.

    Returns
    -------
    scores : ForegroundScores
        ``precision``, the share of moving pixels among those of the foreground; ``recall``, the
        share of the foreground among the moving pixels; ``f_measure``, their harmonic mean. All
        frames are counted together.

    References
    ----------
    .. [1] Wang, Jodoin, Porikli, Konrad, Benezeth, Ishwar, CDnet 2014: an expanded change
       detection benchmark dataset, CVPR workshops 2014.

    Examples
    --------
    >>> from robustpca.metrics import foreground_scores
    >>> foreground_scores([[0, 50, 170, 255, 255]], [[False, True, True, True, False]])
    ForegroundScores(precision=0.5, recall=0.5, f_measure=0.5)
    """
    masks, foreground = np.asarray(masks), np.asarray(foreground)
    if masks.shape != foreground.shape or foreground.dtype != bool:
        raise ValueError(
            f"masks have shape {masks.shape}, and foreground has shape {foreground.shape} and type "
            f"{foreground.dtype}: pass one boolean per pixel."
        )
    labels = np.unique(masks)
    if not np.isin(labels, (0, 50, 85, 170, 255)).all():
        raise ValueError(
            f"masks must hold 0, 50, 85, 170 and 255, but they hold {labels[:6].tolist()}."
        )
    moving = masks == 255
    n_right = int(np.count_nonzero(moving & foreground))
    n_moving = int(np.count_nonzero(moving))
    n_claimed = n_right + int(np.count_nonzero(foreground & (masks <= 50)))
    return ForegroundScores(
        _ratio(n_right, n_claimed),
        _ratio(n_right, n_moving),
        _ratio(2 * n_right, n_claimed + n_moving),
    )


def outlier_precision_recall(is_outlier: Any, flags: Any) -> tuple[float, float]:
    """How many flagged samples are outliers, and how many outliers are flagged.

    Parameters
    ----------
    is_outlier : array of bool, of shape (n_samples,)
        The truth.
    flags : array of shape (n_samples,)
        What ``predict`` gives, -1 for an outlier and 1 for the others.

    Returns
    -------
    precision : float
        Share of outliers among the flagged samples; NaN if none is flagged.
    recall : float
        Share of flagged samples among the outliers; NaN if there are none.

    Examples
    --------
    >>> from robustpca.metrics import outlier_precision_recall
    >>> outlier_precision_recall([True, True, False, False], [-1, 1, 1, 1])
    (1.0, 0.5)
    """
    truth, flags = column_or_1d(is_outlier), column_or_1d(flags)
    if len(truth) != len(flags):
        raise ValueError(
            f"is_outlier has {len(truth)} entries and flags has {len(flags)}: pass one of each "
            "per sample."
        )
    # Swapped arguments or flags of 0 and 1 would give a plausible and wrong number.
    if truth.dtype != bool or not np.isin(flags, (-1, 1)).all() or flags.dtype == bool:
        raise ValueError(
            f"is_outlier must hold booleans and flags -1 and 1, but they hold "
            f"{np.unique(truth)[:5].tolist()} and {np.unique(flags)[:5].tolist()}."
        )
    flagged = flags == -1
    n_found = int(np.count_nonzero(flagged & truth))
    return _ratio(n_found, int(flagged.sum())), _ratio(n_found, int(truth.sum()))


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _square_errors(model: Any, X_clean: Any, X_corrupt: Any) -> Array:
    """Squared distance of each clean sample to the reconstruction of its corrupted version."""
    clean = check_array(X_clean, dtype=np.float64, input_name="X_clean")
    if np.shape(X_corrupt) != clean.shape:
        raise ValueError(
            f"X_clean has shape {clean.shape} and X_corrupt has shape {np.shape(X_corrupt)}: "
            "pass the same samples before and after corruption."
        )
    if hasattr(model, "reconstruct"):
        restored = model.reconstruct(X_corrupt)
    else:
        restored = model.inverse_transform(model.transform(X_corrupt))
    return square_norms(clean - restored)
