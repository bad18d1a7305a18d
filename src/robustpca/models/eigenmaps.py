"""Embeddings and clusters of a graph alone: eigenvectors of its Laplacian."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from robustpca.engine.linalg import Array, flip_signs, in_safe_units
from robustpca.models.base import Fit, store
from robustpca.models.estimator import Estimator, all_or_nothing, rowwise
from robustpca.models.params import Interval, StrOptions
from robustpca.parts.graphs import adjacency_of, laplacian
from robustpca.solvers.eigenvectors import Cuts, joined_vertices, normalized_cuts
from robustpca.solvers.new_rows import TrainingGraph

__all__ = ["LaplacianEigenmaps", "NCut"]

# Nearer to one, an eigenvalue tells nothing of a vertex by its neighbours.
NOTHING = 1e-6
# The largest number of coordinates that is looked for, and an eigenvalue that is rounding error.
MOST_COORDINATES, ZERO = 20, 1e-9


class GraphSpectrum(Estimator):
    """What the methods share that use a graph alone."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "graph": ["array-like", "sparse matrix", None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    graph: Any
    n_neighbors: int
    embedding_: Array
    eigenvalues_: Array
    graph_: Any
    n_connected_components_: int

    @all_or_nothing()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to the rows of ``X``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted model.
        """
        X = self._validated(X, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2)
        return store(self, self._fit(X))

    def _fit(self, X: Array) -> Fit:
        raise NotImplementedError

    def _cuts(self, X: Array, count: int, least: int) -> tuple[Any, Cuts]:
        """The graph of the rows and its first ``count`` cuts, or as many, but ``least``, it has."""
        graph = adjacency_of(self.graph, X, self.n_neighbors)
        n_joined = int(np.count_nonzero(joined_vertices(graph)))
        count = max(min(count, n_joined), least)
        if count > n_joined:
            raise ValueError(
                f"{type(self).__name__} needs edges at {count} or more of the samples here, but "
                f"the graph has edges at {n_joined} of {len(X)}. Ask for fewer, or pass a graph "
                "with more edges."
            )
        return graph, normalized_cuts(graph, count)


class LaplacianEigenmaps(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GraphSpectrum):
    r"""Laplacian eigenmaps, with an embedding of new rows.

    Minimises :math:`\mathrm{tr}(Y^\top (D - A) Y)` subject to :math:`Y^\top D Y = I` and
    :math:`Y^\top D 1 = 0` for the adjacency A of a graph of the samples and its degrees D [1]_.
    The columns of Y solve :math:`(D - A) y = \lambda D y`. Samples without an edge are put at
    the origin.

    scikit-learn's `SpectralEmbedding` is the same for the training rows up to the length of the
    columns. What it lacks is `transform`: by the equation above each row of Y is the weighted
    mean of its neighbours' over :math:`1 - \lambda`, and that is where a new row goes that is
    joined to its nearest training rows [2]_. A row of the training data has the edges, and so
    the place, that it had.

    Parameters
    ----------
    n_components : int or 'auto', default=2
        Number of coordinates; 'auto' for those before the largest ratio of two eigenvalues that
        follow each other, of the first 21: one fewer than there are clusters, if these are apart.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training rows.
    n_components_ : int
        Number of coordinates.
    eigenvalues_ : ndarray of shape (n_components,)
        The :math:`\lambda` of each coordinate, in [0, 2] and ascending.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    n_connected_components_ : int
        Number of connected parts of the graph, samples without an edge left out.

    References
    ----------
    .. [1] Belkin, Niyogi, Laplacian eigenmaps for dimensionality reduction and data
       representation, Neural Computation, 2003.
    .. [2] Bengio et al., Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps, and spectral
       clustering, NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca import LaplacianEigenmaps
    >>> angle = np.linspace(0, 3, 200)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = LaplacianEigenmaps(n_components=1).fit(X[::2])
    >>> along = model.transform(X[1::2])[:, 0]
    >>> bool((np.diff(along) > 0).all() or (np.diff(along) < 0).all())
    True
    """

    _of_training = ("graph_",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphSpectrum._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    n_components_: int

    def __init__(
        self, n_components: int | str = 2, *, graph: Any = None, n_neighbors: int = 10
    ) -> None:
        self.n_components = n_components
        self.graph = graph
        self.n_neighbors = n_neighbors

    def _fit(self, X: Array) -> Fit:
        if self.n_components == "auto":
            graph, cuts = self._cuts(X, MOST_COORDINATES + 2, least=2)
            n_components = before_the_gap(cuts.values[1:])
        else:
            n_components = int(self.n_components)
            graph, cuts = self._cuts(X, n_components + 1, least=n_components + 1)
        wanted = slice(1, n_components + 1)
        parted = UserWarning(
            f"The graph falls into {cuts.n_parts} connected parts, and the first "
            f"{min(cuts.n_parts - 1, n_components)} coordinates do nothing but tell them "
            "apart. Raise n_neighbors, or embed each part for itself."
        )
        matrix = laplacian(graph, normalized=False)
        attributes = {
            "embedding_": np.ascontiguousarray(flip_signs(cuts.vectors[:, wanted].T).T, X.dtype),
            "n_components_": n_components,
            "eigenvalues_": cuts.values[wanted].astype(X.dtype),
            "graph_": graph,
            "n_connected_components_": cuts.n_parts,
            # A copy, for the user may go on working with the array.
            "_training": TrainingGraph(X.copy(), graph, matrix, self.n_neighbors, normalized=False),
        }
        return Fit(attributes, warnings=(parted,) if cuts.n_parts > 1 else ())

    @rowwise
    def transform(self, X: Any) -> Array:
        """Place rows among the training rows they are nearest to.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            New rows, or rows of the training data.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
            Coordinates; zero for a row so far away that all its weights vanish.
        """
        check_is_fitted(self)
        X = self._validated(X, dtype=[np.float64, np.float32], order="C", reset=False)
        degrees, edges = self._training.edges(X)
        reach = 1 - self.eigenvalues_.astype(np.float64)
        divisors = np.maximum(degrees, np.finfo(np.float64).tiny)[:, None]
        means = (edges @ self.embedding_) / divisors
        means /= np.where(np.abs(reach) > NOTHING, reach, 1.0)
        return np.ascontiguousarray(means, self.embedding_.dtype)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class NCut(ClusterMixin, GraphSpectrum):
    r"""Spectral clustering by normalised cuts (NCut).

    Cuts a graph of the samples into clusters S so that :math:`\sum_S \mathrm{cut}(S) /
    \mathrm{vol}(S)` is small [1]_: the first solutions of :math:`(D - A) y = \lambda D y`, for
    the adjacency A and its degrees D, solve the relaxed problem, and k-means on their rows
    rounds them to clusters. Samples without an edge are put at the origin.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of solutions.
    graph : sparse array of shape (n_samples, n_samples), default=None
        Adjacency of the samples, or what scikit-learn's `KNeighborsTransformer` gives; None to
        connect nearest neighbours.
    n_neighbors : int, default=10
        Neighbours of each vertex in a graph that is made here.
    njw : bool, default=False
        Whether to cluster rows of unit length of the eigenvectors of the normalised Laplacian,
        as Ng, Jordan and Weiss do [2]_.
    n_init : int, default=10
        Number of starts of k-means, of which the best is used.
    random_state : int, RandomState instance or None, default=0
        Draws the starts of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        The rows that k-means clustered.
    eigenvalues_ : ndarray of shape (n_clusters,)
        The :math:`\lambda` of each coordinate, in [0, 2] and ascending.
    graph_ : csr_array of shape (n_samples, n_samples)
        Adjacency that was used; give it to another fit on the same rows.
    n_connected_components_ : int
        Number of connected parts of the graph, samples without an edge left out.

    References
    ----------
    .. [1] Shi, Malik, Normalized cuts and image segmentation, IEEE Transactions on Pattern
       Analysis and Machine Intelligence, 2000.
    .. [2] Ng, Jordan, Weiss, On spectral clustering: analysis and an algorithm, NIPS 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from robustpca import NCut
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> float(adjusted_rand_score(NCut(n_clusters=2).fit_predict(X), y))
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GraphSpectrum._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "njw": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    labels_: Array

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        graph: Any = None,
        n_neighbors: int = 10,
        njw: bool = False,
        n_init: int = 10,
        random_state: Any = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.njw = njw
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, X: Array) -> Fit:
        graph, cuts = self._cuts(X, self.n_clusters, least=self.n_clusters)
        merged = UserWarning(
            f"The graph falls into {cuts.n_parts} connected parts, more than "
            f"n_clusters={self.n_clusters}: the smallest of them end up in one cluster. Raise "
            "n_neighbors or n_clusters."
        )
        vectors = flip_signs(cuts.vectors.T).T
        if self.njw:
            # The lengths of rows of y and of v differ by the root of the degree alone.
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        embedding = np.ascontiguousarray(vectors, X.dtype)
        means = KMeans(self.n_clusters, n_init=self.n_init, random_state=self.random_state)
        attributes = {
            "labels_": means.fit(in_safe_units(embedding)).labels_,
            "embedding_": embedding,
            "eigenvalues_": cuts.values.astype(X.dtype),
            "graph_": graph,
            "n_connected_components_": cuts.n_parts,
        }
        return Fit(attributes, warnings=(merged,) if cuts.n_parts > self.n_clusters else ())


def before_the_gap(values: Array) -> int:
    """How many ascending eigenvalues come before the largest ratio of one to the last."""
    values = np.maximum(values, ZERO)
    return int(np.argmax(values[1:] / values[:-1])) + 1 if len(values) > 1 else 1
