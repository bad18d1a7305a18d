"""Methods on graphs that are made as the experiments of the FRPCAG paper say."""

import time
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import scale
from sklearn.random_projection import GaussianRandomProjection

from robustpca import FRPCAG
from robustpca.diagnostics import theorem2_smoothness
from robustpca.engine.linalg import Array
from robustpca.parts.graphs import grid_graph, knn_graph, laplacian
from robustpca.solvers.penalties import observed_norm

__all__ = ["SIDES", "FeatureGraph", "OnCleanGraphs", "OnGraphs", "Theorem2Fit", "unit_bandwidth"]

# Parameters by which methods take a graph, and whose graph it is.
SIDES = {"graph": "samples", "sample_graph": "samples", "feature_graph": "features"}


def unit_bandwidth(vertices: Array) -> float:
    r"""Width that is 1 once the vertices are scaled as the toolbox of the FRPCAG paper does.

    It scales n vertices in d dimensions by :math:`n^{1 / \min(d, 3)} / 10` over the radius of
    their box, so that a width of 1 means the same for data in any units. Neighbours are nearer
    than that, and weights differ little.

    Parameters
    ----------
    vertices : array of shape (n_vertices, n_dimensions)
        Where the vertices lie.

    Returns
    -------
    bandwidth : float
        The width in the units of the vertices.

    Examples
    --------
    >>> import numpy as np
    >>> from robustpca.papers.frpcag.estimators import unit_bandwidth
    >>> unit_bandwidth(np.array([[0.0], [1.0], [3.0], [4.0], [8.0]]))
    8.0
    """
    n, d = vertices.shape
    radius = 0.5 * float(np.linalg.norm(np.ptp(vertices, axis=0)))
    return 10 * radius / n ** (1 / min(d, 3))


class OnGraphs(BaseEstimator):
    """A method with graphs of nearest neighbours that are made before it, and timed.

    Parameters
    ----------
    estimator : estimator
        The method; its parameters ``graph``, ``sample_graph`` and ``feature_graph`` are set, as
        far as it has them.
    n_neighbors : int, default=10
        Neighbours of each vertex.
    bandwidth : 'unit', 'mean', float or None, default='unit'
        Width of the Gaussian weights: 1 for vertices scaled as in `unit_bandwidth`, the mean
        distance, a number, or None for equal weights.
    noisy : sequence of {'samples', 'features'}, default=()
        Graphs whose neighbours are searched after a random projection, in place of a search
        that is fast but not exact.
    n_axes : int, default=32
        Dimension of that projection.
    sparsity : float, default=None
        Weight of the sparse part of a low-rank method in units of one over the root of the
        longer side of the data; None to leave it alone.
    random_state : int or None, default=None
        Draws the projection.

    Attributes
    ----------
    model_ : estimator
        The fitted method.
    graph_seconds_ : dict
        CPU seconds that each graph took, by the parameter it was made for.
    loop_seconds_ : float
        CPU seconds that the method took with its graphs given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from robustpca import GLPCA
    >>> from robustpca.papers.frpcag.estimators import OnGraphs
    >>> model = OnGraphs(GLPCA(2), n_neighbors=5, bandwidth=None).fit(load_iris().data)
    >>> sorted(set(model.model_.graph_.data.tolist())), list(model.graph_seconds_)
    ([1.0], ['graph'])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        n_neighbors: int = 10,
        bandwidth: Any = "unit",
        noisy: Any = (),
        n_axes: int = 32,
        sparsity: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.noisy = noisy
        self.n_axes = n_axes
        self.sparsity = sparsity
        self.random_state = random_state

    def fit(self, X: Array, y: None = None) -> Self:
        """Make the graphs of ``X`` and fit the method with them."""
        known = self.estimator.get_params(deep=False)
        graphs, self.graph_seconds_ = {}, {}
        data = self._graph_data(X)
        for name in (name for name in SIDES if name in known):
            started = time.process_time()
            graphs[name] = self._graph(data, SIDES[name])
            self.graph_seconds_[name] = time.process_time() - started
        model = clone(self.estimator).set_params(**graphs)
        if self.sparsity is not None:
            model.set_params(sparsity=self.sparsity / max(X.shape) ** 0.5)
        started = time.process_time()
        self.model_ = model.fit(X)
        self.loop_seconds_ = time.process_time() - started
        return self

    def __getattr__(self, name: str) -> Any:
        # Learned attributes are those of the method; before a fit there are none.
        if name == "model_" or not name.endswith("_") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.model_, name)

    def _graph_data(self, X: Array) -> Array:
        """The data that the graphs are made of."""
        return X

    def _graph(self, X: Array, side: str) -> sparse.csr_array:
        vertices = X if side == "samples" else np.ascontiguousarray(X.T)
        if side in self.noisy and vertices.shape[1] > self.n_axes:
            projection = GaussianRandomProjection(self.n_axes, random_state=self.random_state)
            vertices = projection.fit_transform(vertices)
        return _weighted_graph(vertices, self.n_neighbors, self.bandwidth)


class OnCleanGraphs(OnGraphs):
    """A method that is fitted to corrupted data with graphs of the data before corruption.

    No user could do so; it tells the effect of the graphs from that of the method.

    Parameters
    ----------
    estimator, n_neighbors
        As in `OnGraphs`.
    X_clean : array of shape (n_samples, n_features), default=None
        The data before corruption; their columns are standardised. None for those of `fit`.
    """

    def __init__(self, estimator: Any, *, n_neighbors: int = 10, X_clean: Any = None) -> None:
        super().__init__(estimator, n_neighbors=n_neighbors)
        self.X_clean = X_clean

    def _graph_data(self, X: Array) -> Array:
        return X if self.X_clean is None else scale(self.X_clean)


class FeatureGraph(BaseEstimator):
    """The Laplacian of a graph of the features, each of which has ten neighbours.

    Parameters
    ----------
    kind : {'neighbors', 'grid', 'shuffled'}, default='neighbors'
        Nearest features; neighbouring pixels; or nearest features with the names of the features
        exchanged at random, which is a graph that knows nothing of the data.
    bandwidth : 'unit', 'mean', float or None, default='unit'
        Width of the Gaussian weights, as in `OnGraphs`.
    image_shape : tuple of two int, default=None
        Height and width, for the grid.
    random_state : int or None, default=None
        Shuffles.

    Attributes
    ----------
    laplacian_ : csr_array of shape (n_features, n_features)
        Normalised Laplacian.
    """

    def __init__(
        self,
        kind: str = "neighbors",
        *,
        bandwidth: Any = "unit",
        image_shape: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kind = kind
        self.bandwidth = bandwidth
        self.image_shape = image_shape
        self.random_state = random_state

    def fit(self, X: Array, y: None = None) -> Self:
        """Make the graph of the features of ``X``."""
        if self.kind == "grid":
            graph = grid_graph(self.image_shape)
        else:
            graph = _weighted_graph(X.T, 10, self.bandwidth)
        if self.kind == "shuffled":
            order = np.random.RandomState(self.random_state).permutation(X.shape[1])
            graph = graph[order][:, order]
        self.laplacian_ = laplacian(graph)
        return self


class Theorem2Fit(BaseEstimator):
    """Fast robust PCA on graphs with the two weights for which Theorem 2 holds.

    Parameters
    ----------
    n_sample, n_feature : int, default=10
        Number of lowest eigenvectors of both graphs that the clean data are to lie in; raised to
        the number of connected parts of the graph where that is larger.
    smoothness : float, default=1.0
        The weight of the theorem.
    n_neighbors : int, default=10
        Neighbours of each vertex.

    Attributes
    ----------
    model_ : FRPCAG
        The fitted method.
    counts_ : tuple of two int
        Number of eigenvectors of the graph of the samples and of that of the features.
    laplacians_ : tuple of two csr_array
        Both Laplacians.
    weights_ : tuple of two float
        Both weights, in the units of the data.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether the fit came to its end.
    """

    def __init__(
        self,
        n_sample: int = 10,
        n_feature: int = 10,
        *,
        smoothness: float = 1.0,
        n_neighbors: int = 10,
    ) -> None:
        self.n_sample = n_sample
        self.n_feature = n_feature
        self.smoothness = smoothness
        self.n_neighbors = n_neighbors

    def fit(self, X: Array, y: None = None) -> Self:
        """Fit to ``X`` as it is."""
        graphs = knn_graph(X, self.n_neighbors), knn_graph(X.T, self.n_neighbors)
        self.laplacians_ = laplacian(graphs[0]), laplacian(graphs[1])
        parts = [sparse.csgraph.connected_components(graph)[0] for graph in graphs]
        self.counts_ = max(self.n_sample, parts[0]), max(self.n_feature, parts[1])
        self.weights_ = theorem2_smoothness(
            self.laplacians_[0], self.laplacians_[1], *self.counts_, self.smoothness
        )
        # The method takes its weights for data of unit size.
        unit = observed_norm(X) / X.size**0.5
        self.model_ = FRPCAG(
            sample_smoothness=unit * self.weights_[0],
            feature_smoothness=unit * self.weights_[1],
            sample_graph=graphs[0],
            feature_graph=graphs[1],
            standardize=False,
            tol=1e-7,
            max_iter=5000,
        ).fit(X)
        self.n_iter_, self.converged_ = self.model_.n_iter_, self.model_.converged_
        return self


def _weighted_graph(vertices: Array, n_neighbors: int, bandwidth: Any) -> sparse.csr_array:
    width = unit_bandwidth(vertices) if bandwidth == "unit" else bandwidth
    return knn_graph(vertices, n_neighbors, bandwidth=width)
