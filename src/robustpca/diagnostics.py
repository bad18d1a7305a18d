"""What graphs say about data, and what a low-rank fit has made of it.

Fast robust PCA on graphs rests on two claims: the lowest eigenvectors of a feature graph are a
basis for the data, and smoothness on both graphs makes a matrix low-rank. `alignment_order`
measures the first; the others show the second on a matrix that was found. All of them decompose
dense matrices, in time cubic in their size, so they are for some thousand samples and features.
"""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy import linalg, sparse
from sklearn.utils import check_array

from robustpca.engine.linalg import Array, flip_signs

__all__ = [
    "SingularValues",
    "Theorem2Bound",
    "alignment_order",
    "coupling_matrix",
    "shape_interaction_matrix",
    "singular_values_before_and_after",
    "theorem2_bound",
    "theorem2_smoothness",
]


@dataclass(frozen=True)
class Theorem2Bound:
    """Both sides of the inequality of `theorem2_bound`.

    Attributes
    ----------
    lhs, rhs : float
        What the low-rank matrix gives, and what bounds it.
    holds : bool
        Whether ``lhs`` is at most ``rhs``, but for rounding.
    """

    lhs: float
    rhs: float
    holds: bool


@dataclass(frozen=True, eq=False)
class SingularValues:
    """Singular values of the data and of their low-rank part.

    Attributes
    ----------
    before, after : ndarray of shape (min(n_samples, n_features),)
        Those of the data and those of the low-rank part, largest first.
    rank_before, rank_after : int
        How many of them exceed ``rank_tol`` times the largest of their kind.
    """

    before: Array
    after: Array
    rank_before: int
    rank_after: int


def alignment_order(X: Any, feature_laplacian: Any) -> float:
    r"""How nearly the eigenvectors of a feature graph diagonalise the covariance of the data.

    This is :math:`s_r = \lVert \operatorname{diag} \Gamma \rVert_2 / \lVert \Gamma \rVert_F` with
    :math:`\Gamma = P^\top C P`, where the columns of P are the eigenvectors of the Laplacian and
    :math:`C = (X - \mu)^\top (X - \mu) / n` for the mean :math:`\mu` of all entries of X [1]_.
    It is 1 if P diagonalises C, and never below :math:`1 / \sqrt{d}` for d features.

    If the Laplacian has repeated eigenvalues, as that of a ring or of a graph in several parts,
    its eigenvectors are a matter of choice, and the result depends on the one that LAPACK makes.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Data; they must not all be equal.
    feature_laplacian : array or sparse matrix of shape (n_features, n_features)
        Laplacian of the graph of the features.

    Returns
    -------
    order : float
        Between 1 / sqrt(n_features) and 1.

    References
    ----------
    .. [1] Shahid, Perraudin, Kalofolias, Puy, Vandergheynst, Fast robust PCA on graphs, IEEE J.
       Sel. Topics Signal Process. 2016, Eq. 5 and 6. It names 1 / d for bases that are not
       aligned, which is out of reach.

    Examples
    --------
    >>> from robustpca.diagnostics import alignment_order
    >>> path = [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    >>> round(alignment_order([[1, 0, -1], [-1, 0, 1], [1, -2, 1], [-1, 2, -1]], path), 4)
    1.0
    >>> round(alignment_order([[1, 0, 0], [-1, 0, 0]], path), 4)
    0.6236
    """
    X = _matrix(X, "X")
    if X.min() == X.max():
        raise ValueError(
            f"All entries of X are {X[0, 0]:g}, so there is no covariance to align: pass data "
            "that vary."
        )
    _, vectors = _eigenpairs(feature_laplacian, "feature_laplacian", X.shape[1], "features")
    centered = X - X.mean()
    # The ratio has no units; at unit scale the fourth powers can neither overflow nor vanish.
    codes = centered / np.abs(centered).max() @ vectors
    gram = codes.T @ codes
    return min(1.0, float(np.linalg.norm(np.diag(gram)) / np.linalg.norm(gram)))


def shape_interaction_matrix(
    low_rank: Any, n_components: int | None = None, *, center: bool = False, rank_tol: float = 1e-6
) -> Array:
    r"""Which samples of a low-rank matrix share a subspace.

    This is :math:`P_c P_c^\top` for the first c left singular vectors P of the matrix [1]_: the
    projection on the space of its columns. If the samples come from independent subspaces, those
    of different ones have entries of 0, so that samples ordered by class give diagonal blocks.

    Parameters
    ----------
    low_rank : array of shape (n_samples, n_features)
        Such as ``low_rank_`` of a fitted model.
    n_components : int, default=None
        Number of singular vectors, at most the rank; None for as many as singular values exceed
        ``rank_tol`` times the largest.
    center : bool, default=False
        Subtract the mean of each column first. Blocks are exact only without.
    rank_tol : float, default=1e-6
        What counts as rank, relative to the largest singular value; 1e-2 suits a matrix that is
        low-rank by smoothness alone.

    Returns
    -------
    interaction : ndarray of shape (n_samples, n_samples)
        Symmetric and idempotent, of trace ``n_components``; all 0 for a matrix of rank 0.

    References
    ----------
    .. [1] Costeira, Kanade, A multibody factorization method for independently moving objects,
       IJCV 1998.

    Examples
    --------
    >>> from robustpca.diagnostics import shape_interaction_matrix
    >>> abs(shape_interaction_matrix([[1, 2], [1, 2], [1, 0], [-1, 0]])).round(2)
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    """
    A = _matrix(low_rank, "low_rank")
    _check_rank_tol(rank_tol)
    # Centring leaves rounding errors of this size, which would else pass for a component when
    # all rows are equal.
    floor = max(A.shape) * np.finfo(np.float64).eps * np.linalg.norm(A)
    if center:
        A = A - A.mean(axis=0)
    vectors, values, _ = linalg.svd(A, full_matrices=False)
    if n_components is None:
        n_components = int(np.count_nonzero(values > max(floor, rank_tol * values[0])))
    else:
        rank = int(np.count_nonzero(values > floor))
        if not isinstance(n_components, Integral) or not 1 <= n_components <= rank:
            raise ValueError(
                f"n_components={n_components} is not possible, as low_rank of shape {A.shape} "
                f"has rank {rank}{' once centred' if center else ''}: choose an integer from 1 "
                "to the rank, or None."
            )
    basis = vectors[:, :n_components]
    return basis @ basis.T


def singular_values_before_and_after(
    X: Any, low_rank: Any, *, rank_tol: float = 1e-6
) -> SingularValues:
    """Singular values of the data beside those of their low-rank part.

    A fit that cleans the data lowers the small singular values, which are mostly noise, and
    leaves the large ones [1]_. Nothing is centred.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Data.
    low_rank : array of shape (n_samples, n_features)
        What a model made of them, such as its ``low_rank_``.
    rank_tol : float, default=1e-6
        What counts as rank, relative to the largest singular value; 1e-2 suits a matrix that is
        low-rank by smoothness alone.

    Returns
    -------
    values : SingularValues
        Both spectra, and their ranks.

    References
    ----------
    .. [1] Shahid, Perraudin, Kalofolias, Puy, Vandergheynst, Fast robust PCA on graphs, IEEE J.
       Sel. Topics Signal Process. 2016, Fig. 5.

    Examples
    --------
    >>> from robustpca.diagnostics import singular_values_before_and_after
    >>> singular_values_before_and_after([[3, 0], [0, 2]], [[2, 0], [0, 0]])
    SingularValues(before=array([3., 2.]), after=array([2., 0.]), rank_before=2, rank_after=1)
    """
    X, low_rank = _matrix(X, "X"), _matrix(low_rank, "low_rank")
    _check_same_shape("X", X, "low_rank", low_rank)
    _check_rank_tol(rank_tol)
    before, after = linalg.svdvals(X), linalg.svdvals(low_rank)
    ranks = [int(np.count_nonzero(values > rank_tol * values[0])) for values in (before, after)]
    return SingularValues(before, after, *ranks)


def coupling_matrix(
    low_rank: Any, laplacian: Any, side: Literal["samples", "features"] = "samples"
) -> Array:
    r"""How the singular vectors of a low-rank matrix couple to the eigenvectors of a graph.

    For :math:`U = W \Sigma V^\top` this is :math:`\Sigma W^\top Q` with the eigenvectors Q of a
    sample graph, or :math:`\Sigma V^\top P` with the eigenvectors P of a feature graph [1]_. The
    squares of its column j, times eigenvalue j and summed over j, are what smoothness costs,
    :math:`\operatorname{tr}(U^\top L_1 U)` or :math:`\operatorname{tr}(U L_2 U^\top)`: a smooth
    matrix has its large entries in the first columns.

    The signs of singular vectors and eigenvectors are arbitrary (here, the largest entry of each
    is positive): compare magnitudes. Repeated eigenvalues leave a choice of eigenvectors, and so
    of the columns that belong to them.

    Parameters
    ----------
    low_rank : array of shape (n_samples, n_features)
        Such as ``low_rank_`` of a fitted model.
    laplacian : array or sparse matrix of shape (n_vertices, n_vertices)
        Laplacian of the graph of the samples or of the features.
    side : {"samples", "features"}, default="samples"
        Whose graph it is.

    Returns
    -------
    coupling : ndarray of shape (min(n_samples, n_features), n_vertices)
        One row per singular vector, largest singular value first; one column per eigenvector,
        smallest eigenvalue first.

    References
    ----------
    .. [1] Shahid, Perraudin, Kalofolias, Puy, Vandergheynst, Fast robust PCA on graphs, IEEE J.
       Sel. Topics Signal Process. 2016, Eq. 10 and Fig. 4.

    Examples
    --------
    >>> from robustpca.diagnostics import coupling_matrix
    >>> path = [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    >>> abs(coupling_matrix([[1, 2], [1, 2], [1, 2]], path)).round(2)
    array([[3.87, 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    """
    A = _matrix(low_rank, "low_rank")
    if side not in ("samples", "features"):
        raise ValueError(f"side must be 'samples' or 'features', but it is {side!r}.")
    n_vertices = A.shape[0] if side == "samples" else A.shape[1]
    _, eigenvectors = _eigenpairs(laplacian, "laplacian", n_vertices, side)
    left, values, right = linalg.svd(A, full_matrices=False)
    singular_vectors = flip_signs(left.T if side == "samples" else right)
    return values[:, None] * (singular_vectors @ flip_signs(eigenvectors.T).T)


def theorem2_smoothness(
    sample_laplacian: Any,
    feature_laplacian: Any,
    n_sample: int,
    n_feature: int,
    smoothness: float,
) -> tuple[float, float]:
    r"""The two smoothness weights for which `theorem2_bound` holds.

    These are :math:`\gamma_1 = \gamma / \lambda_{k_1 + 1}` and
    :math:`\gamma_2 = \gamma / \omega_{k_2 + 1}` for the eigenvalues
    :math:`\lambda_1 \le \lambda_2 \le \dots` of the sample Laplacian and
    :math:`\omega_1 \le \omega_2 \le \dots` of the feature Laplacian [1]_.

    Parameters
    ----------
    sample_laplacian : array or sparse matrix of shape (n_samples, n_samples)
        Laplacian of the graph of the samples.
    feature_laplacian : array or sparse matrix of shape (n_features, n_features)
        Laplacian of the graph of the features.
    n_sample, n_feature : int
        Number of lowest eigenvectors, k1 and k2, that span the clean data; at least the number
        of connected parts of the graph and less than its number of vertices.
    smoothness : float
        The positive weight :math:`\gamma` of the theorem.

    Returns
    -------
    sample_smoothness, feature_smoothness : float
        Weights of the sample and of the feature term.

    References
    ----------
    .. [1] Shahid, Perraudin, Kalofolias, Puy, Vandergheynst, Fast robust PCA on graphs, IEEE J.
       Sel. Topics Signal Process. 2016, Theorem 2.

    Examples
    --------
    >>> from robustpca.diagnostics import theorem2_smoothness
    >>> path, pair = [[1, -1, 0], [-1, 2, -1], [0, -1, 1]], [[1, -1], [-1, 1]]
    >>> sample_smoothness, feature_smoothness = theorem2_smoothness(path, pair, 2, 1, 3.0)
    >>> round(sample_smoothness, 6), round(feature_smoothness, 6)
    (1.0, 1.5)
    """
    _check_smoothness(smoothness)
    samples, _ = _eigenpairs(sample_laplacian, "sample_laplacian")
    features, _ = _eigenpairs(feature_laplacian, "feature_laplacian")
    _check_cut(samples, "sample_laplacian", n_sample, "n_sample")
    _check_cut(features, "feature_laplacian", n_feature, "n_feature")
    return float(smoothness / samples[n_sample]), float(smoothness / features[n_feature])


def theorem2_bound(
    low_rank: Any,
    X: Any,
    X_star: Any,
    sample_laplacian: Any,
    feature_laplacian: Any,
    n_sample: int,
    n_feature: int,
    smoothness: float,
) -> Theorem2Bound:
    r"""How far from low-rank on two graphs a fit can be: both sides of the inequality.

    Let the clean data :math:`X^*` lie in the span of the :math:`k_1` lowest eigenvectors of the
    sample Laplacian :math:`L_1` and the :math:`k_2` lowest of the feature Laplacian :math:`L_2`,
    and let U minimise :math:`\lVert X - U \rVert_1 + \gamma_1 \operatorname{tr}(U^\top L_1 U)
    + \gamma_2 \operatorname{tr}(U L_2 U^\top)` with the weights of `theorem2_smoothness`. Then
    [1]_

    .. math::

        \lVert U - X \rVert_1
        + \gamma (\lVert \bar Q^\top U \rVert_F^2 + \lVert U \bar P \rVert_F^2)
        \le \lVert X - X^* \rVert_1 + \gamma \lVert X^* \rVert_F^2
        \left( \frac{\lambda_{k_1}}{\lambda_{k_1 + 1}}
        + \frac{\omega_{k_2}}{\omega_{k_2 + 1}} \right)

    for the other eigenvectors :math:`\bar Q` of :math:`L_1` and :math:`\bar P` of :math:`L_2`.
    The proof only needs that U has no larger objective than :math:`X^*`, so a fit that is not
    quite converged will do. The paper prints :math:`\gamma_1` and :math:`\gamma_2` in place of
    :math:`\gamma` on the left; that can fail when an eigenvalue is small, and is not what its
    proof shows.

    Where eigenvalues k and k + 1 are equal, the inequality holds but its left side depends on
    which of their eigenvectors LAPACK puts first: choose k at a gap.

    Parameters
    ----------
    low_rank : array of shape (n_samples, n_features)
        The minimiser U, found without scaling or centring X.
    X : array of shape (n_samples, n_features)
        Data.
    X_star : array of shape (n_samples, n_features)
        Clean data; what else is in X is the corruption.
    sample_laplacian : array or sparse matrix of shape (n_samples, n_samples)
        Laplacian of the graph of the samples.
    feature_laplacian : array or sparse matrix of shape (n_features, n_features)
        Laplacian of the graph of the features.
    n_sample, n_feature : int
        Number of lowest eigenvectors, k1 and k2, that span the clean data; at least the number
        of connected parts of the graph and less than its number of vertices.
    smoothness : float
        The positive weight :math:`\gamma` of the theorem.

    Returns
    -------
    bound : Theorem2Bound
        Left and right side, and whether the inequality holds.

    References
    ----------
    .. [1] Shahid, Perraudin, Kalofolias, Puy, Vandergheynst, Fast robust PCA on graphs, IEEE J.
       Sel. Topics Signal Process. 2016, Theorem 2.

    Examples
    --------
    With so little smoothness, the minimiser is the data themselves.

    >>> import numpy as np
    >>> from robustpca.diagnostics import theorem2_bound
    >>> path, pair = [[1, -1, 0], [-1, 2, -1], [0, -1, 1]], [[1, -1], [-1, 1]]
    >>> X_star, X = np.ones((3, 2)), np.array([[5, 1], [1, 1], [1, 1]])
    >>> bound = theorem2_bound(X, X, X_star, path, pair, 1, 1, smoothness=0.05)
    >>> round(bound.lhs, 4), round(bound.rhs, 4), bound.holds
    (0.9333, 4.0, True)
    """
    U, X, X_star = _matrix(low_rank, "low_rank"), _matrix(X, "X"), _matrix(X_star, "X_star")
    _check_same_shape("X", X, "low_rank", U)
    _check_same_shape("X", X, "X_star", X_star)
    _check_smoothness(smoothness)
    samples = _eigenpairs(sample_laplacian, "sample_laplacian", X.shape[0], "samples")
    features = _eigenpairs(feature_laplacian, "feature_laplacian", X.shape[1], "features")
    _check_cut(samples[0], "sample_laplacian", n_sample, "n_sample")
    _check_cut(features[0], "feature_laplacian", n_feature, "n_feature")
    _check_smooth(X_star, *samples, "sample_laplacian", n_sample, "n_sample")
    _check_smooth(X_star.T, *features, "feature_laplacian", n_feature, "n_feature")

    rough = _square_norm(_outside(U, samples[1][:, :n_sample]))
    rough += _square_norm(_outside(U.T, features[1][:, :n_feature]))
    gaps = samples[0][n_sample - 1] / samples[0][n_sample]
    gaps += features[0][n_feature - 1] / features[0][n_feature]
    lhs = float(np.abs(U - X).sum() + smoothness * rough)
    rhs = float(np.abs(X - X_star).sum() + smoothness * _square_norm(X_star) * gaps)
    # Without corruption on connected graphs both sides are 0, up to rounding errors of X.
    return Theorem2Bound(lhs, rhs, lhs <= rhs + 1e-9 * float(rhs + np.abs(X).sum()))


def _matrix(A: Any, name: str) -> Array:
    checked: Array = check_array(A, dtype=np.float64, input_name=name)
    return checked


def _eigenpairs(
    laplacian: Any, name: str, n_vertices: int | None = None, side: str = ""
) -> tuple[Array, Array]:
    """Eigenvalues, smallest first and exactly 0 where they are, and eigenvectors in columns."""
    L = check_array(laplacian, accept_sparse="csr", dtype=[np.float64, np.float32], input_name=name)
    precision = 1e-6 if L.dtype == np.float32 else 1e-12
    L = (L.toarray() if sparse.issparse(L) else L).astype(np.float64)
    if n_vertices is not None and L.shape != (n_vertices, n_vertices):
        raise ValueError(
            f"{name} has shape {L.shape}, but there are {n_vertices} {side}: build the graph from "
            f"the same {side}, so that its Laplacian has shape {(n_vertices, n_vertices)}."
        )
    if L.shape[0] != L.shape[1]:
        raise ValueError(f"{name} has shape {L.shape}, but a Laplacian must be square.")
    floor = precision * np.abs(L).sum(axis=1).max()
    asymmetry = np.abs(L - L.T).max()
    if asymmetry > floor:
        raise ValueError(
            f"{name} must be symmetric, but differs from its transpose by up to {asymmetry:.2g}: "
            "symmetrise the adjacency before taking the Laplacian."
        )
    values, vectors = linalg.eigh(L)
    if values[0] < -floor:
        raise ValueError(
            f"{name} must not have negative eigenvalues, but has {values[0]:.2g}: pass the "
            "Laplacian, not the adjacency, and make the graph without negative weights."
        )
    return np.where(values > floor, values, 0.0), vectors


def _outside(A: Array, basis: Array) -> Array:
    """What is left of the columns of ``A`` beyond their projection on orthonormal columns."""
    return A - basis @ (basis.T @ A)


def _square_norm(A: Array) -> float:
    return float(np.sum(A**2))


def _check_same_shape(first: str, A: Array, second: str, B: Array) -> None:
    if A.shape != B.shape:
        raise ValueError(
            f"{first} has shape {A.shape} and {second} has shape {B.shape}: pass the same samples "
            "and features in both."
        )


def _check_rank_tol(rank_tol: float) -> None:
    if not isinstance(rank_tol, Real) or not 0 < rank_tol < 1:
        raise ValueError(
            f"rank_tol={rank_tol} must be between 0 and 1, such as 1e-6: it is relative to the "
            "largest singular value."
        )


def _check_smoothness(smoothness: float) -> None:
    if not isinstance(smoothness, Real) or not 0 < smoothness < np.inf:
        raise ValueError(f"smoothness={smoothness} must be a positive number, such as 1.0.")


def _check_cut(values: Array, name: str, count: int, count_name: str) -> None:
    """Check that there is an eigenvalue after the first ``count``, and that it is not 0."""
    n_vertices, n_parts = len(values), int(np.count_nonzero(values == 0))
    if n_parts == n_vertices:
        raise ValueError(
            f"All eigenvalues of {name} are 0, so smoothness on it means nothing: pass the "
            "Laplacian of a graph with edges."
        )
    if not isinstance(count, Integral) or not 1 <= count < n_vertices:
        raise ValueError(
            f"{count_name}={count} must be an integer from 1 to {n_vertices - 1}, as {name} has "
            f"{n_vertices} eigenvalues and the next one is needed too."
        )
    if values[count] == 0:
        raise ValueError(
            f"{count_name}={count} needs eigenvalue {count + 1} of {name} to be positive, but it "
            f"is 0, as the graph has {n_parts} connected parts: choose {count_name} from "
            f"{n_parts} to {n_vertices - 1}, or connect the parts."
        )


def _check_smooth(
    X_star: Array, values: Array, vectors: Array, name: str, count: int, count_name: str
) -> None:
    """Check that the columns of ``X_star`` lie in the span of the lowest eigenvectors."""
    # The proof allows for every eigenvector that ties with the last one, so that the choice among
    # them which eigh makes cannot matter here.
    lowest = vectors[:, values <= values[count - 1] + 1e-9 * values[-1]]
    outside, norm = np.linalg.norm(_outside(X_star, lowest)), np.linalg.norm(X_star)
    if outside > 1e-6 * norm:
        raise ValueError(
            f"X_star must lie in the span of the lowest {count} eigenvectors of {name}, but "
            f"{outside / norm:.2g} of its norm is outside: project X_star on that span, or raise "
            f"{count_name}."
        )
