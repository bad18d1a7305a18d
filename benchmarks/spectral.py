"""Speed and accuracy of the graph methods against dense eigenproblems.

Everything is measured in one run, on the same arrays and the same graph, which is made once and
given to all. Times are CPU seconds at one BLAS thread: ours the best of three (RGLPCA: one), the
others once.

    python benchmarks/spectral.py [glpca] [mmf] [eigenmaps] [rglpca] [gnmf] [--quick]

``glpca``      the whole fit against SciPy's dense ``eigh`` of the n x n matrix, which is asked for
               the wanted eigenvectors alone.
``mmf``        the whole fit against a dense Cholesky solve with all features.
``eigenmaps``  the whole fit against the dense generalised ``eigh``, and against scikit-learn's
               ``spectral_embedding``.
``rglpca``     time and passes; and what a faster growth of the penalty costs.
``gnmf``       agreement of k-means on the codes with the classes of digits, by number of passes.
"""

import argparse
import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.manifold import spectral_embedding
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from measure import seconds
from robustpca import GLPCA, GNMF, MMF, RGLPCA, LaplacianEigenmaps
from robustpca.datasets.synthetic import planted_subspace
from robustpca.parts.graphs import knn_graph, laplacian
from robustpca.solvers import eigenvectors as core

N_COMPONENTS = 10


def largest_angle(A: Any, B: Any) -> float:
    """Largest angle between the spans of two sets of columns."""
    return float(linalg.subspace_angles(A, B).max())


def clustered(n_rows: int, n_columns: int = 200, rank: int = 12) -> Any:
    """Twenty clouds around random centres, each spread along a few directions."""
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(20, n_columns))
    X = centers[rng.integers(20, size=n_rows)]
    X += rng.normal(size=(n_rows, rank)) @ rng.normal(size=(rank, n_columns))
    return X + 0.3 * rng.normal(size=X.shape)


def dense_glpca(X: Any, matrix: Any, alpha: float) -> tuple[float, Any]:
    """Seconds of the dense eigenproblem alone, its matrix given; and the eigenvectors."""
    Z = X - X.mean(axis=0)
    # The constant vector is moved to the other end of the spectrum.
    G = alpha * matrix.toarray() - Z @ Z.T + np.vdot(Z, Z) / len(X)
    wanted = (0, N_COMPONENTS - 1)
    return seconds(lambda: linalg.eigh(G, subset_by_index=wanted, check_finite=False)[1])


def glpca(n: int) -> None:
    """GLPCA with several shares of the graph."""
    X = clustered(n)
    spent, graph = seconds(lambda: knn_graph(X))
    matrix = laplacian(graph, normalized=False)
    print(
        f"\nGLPCA({N_COMPONENTS}, graph=graph) on {n} x {X.shape[1]}; the graph takes {spent:.2f} s"
        "\nbeta   fit s  dense eigh s  ratio (bar 20)  largest angle"
    )
    for beta in (0.1, 0.5, 0.9):
        ours, model = seconds(partial(GLPCA(N_COMPONENTS, beta=beta, graph=graph).fit, X), 3)
        theirs, Q = dense_glpca(X, matrix, model.alpha_)
        angle = largest_angle(model.embedding_, Q)
        print(
            f"{beta:4.1f}  {ours:6.3f}  {theirs:12.2f}  {theirs / ours:14.0f}  {angle:13.1e}",
            flush=True,
        )


def dense_mmf(X: Any, matrix: Any) -> Any:
    """Components by a dense factorisation of the smoothing operator."""
    Z = X - X.mean(axis=0)
    factor = linalg.cho_factor(np.eye(len(X)) + matrix.toarray(), check_finite=False)
    gram = Z.T @ linalg.cho_solve(factor, Z, check_finite=False)
    d = X.shape[1]
    return linalg.eigh(gram, subset_by_index=(d - N_COMPONENTS, d - 1))[1]


def mmf(n: int) -> None:
    """MMF at its default smoothness."""
    X = clustered(n)
    graph = knn_graph(X)
    ours, model = seconds(partial(MMF(N_COMPONENTS, graph=graph).fit, X), 3)
    theirs, V = seconds(lambda: dense_mmf(X, laplacian(graph)))
    angle = largest_angle(model.components_.T, V)
    print(
        f"\nMMF({N_COMPONENTS}, graph=graph) on {n} x {X.shape[1]}: {ours:.3f} s, dense "
        f"{theirs:.2f} s, ratio {theirs / ours:.0f}, largest angle {angle:.1e}"
    )


def eigenmaps(n: int) -> None:
    """Laplacian eigenmaps of a graph in one part."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    graph = knn_graph(X)
    degrees = graph.sum(axis=1)
    ours, model = seconds(partial(LaplacianEigenmaps(N_COMPONENTS, graph=graph).fit, X), 3)
    settings: dict[str, Any] = {"n_components": N_COMPONENTS, "random_state": 0}
    sklearn, other = seconds(lambda: spectral_embedding(graph, **settings))
    dense = laplacian(graph, normalized=False).toarray()
    wanted = (1, N_COMPONENTS)
    theirs, Y = seconds(lambda: linalg.eigh(dense, np.diag(degrees), subset_by_index=wanted)[1])
    roots = np.sqrt(degrees)[:, None]
    print(
        f"\nLaplacianEigenmaps({N_COMPONENTS}, graph=graph) on {n} x 3: {ours:.3f} s; dense eigh "
        f"{theirs:.2f} s, ratio {theirs / ours:.0f}, largest angle "
        f"{largest_angle(roots * model.embedding_, roots * Y):.1e}; scikit-learn {sklearn:.2f} s, "
        f"ratio {sklearn / ours:.1f}, angle {largest_angle(roots * other, roots * Y):.1e}"
    )


def rglpca(n: int) -> None:
    """RGLPCA on rows a tenth of which are gross outliers."""
    X, _, bad = planted_subspace(np.random.default_rng(0), n, 200, N_COMPONENTS, n // 10, noise=0.1)
    graph = knn_graph(X)
    ours, model = seconds(partial(RGLPCA(N_COMPONENTS, beta=0.1, graph=graph).fit, X))
    errors = np.linalg.norm(model.sparse_rows_, axis=1)
    print(
        f"\nRGLPCA({N_COMPONENTS}, beta=0.1, graph=graph) on {n} x 200: {ours:.2f} s, "
        f"{model.n_iter_} passes; least error of an outlier over the largest of the others "
        f"{errors[bad].min() / errors[~bad].max():.1f}"
    )
    print("growth of the penalty on 120 x 30: passes, least objective (four seeds)")
    usual = core.GROWTH
    for core.GROWTH in (usual, 1.1, 1.2):
        models = [RGLPCA(3).fit(planted(seed)) for seed in range(4)]
        told = (f"{model.n_iter_:4d} {model.objective_[-1]:8.2f}" for model in models)
        print(f"{core.GROWTH:6.2f} {'  '.join(told)}")
    core.GROWTH = usual


def planted(seed: int) -> Any:
    """Rows near a subspace of three dimensions, a tenth of them outliers."""
    return planted_subspace(np.random.default_rng(seed), 120, 30, 3, 12, noise=0.05)[0]


def gnmf(n: int) -> None:
    """GNMF with rows of unit length in its basis, and with free ones."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    passes = (50, 200, 500, 2000)
    print(f"\nGNMF(10) on 600 digits: normalised mutual information after {passes} passes")
    for smoothness in (0.0, 1.0, 10.0, 100.0):
        for scale in ("unit", "free"):
            settings: dict[str, Any] = {"smoothness": smoothness, "scale": scale, "tol": 0}
            told = []
            for max_iter in passes:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    codes = GNMF(10, max_iter=max_iter, **settings).fit(X).embedding_
                labels = KMeans(10, n_init=10, random_state=0).fit_predict(codes)
                told.append(f"{normalized_mutual_info_score(y, labels):.3f}")
            print(f"smoothness {smoothness:5.0f}, {scale}: {'  '.join(told)}", flush=True)


PARTS = {"glpca": glpca, "mmf": mmf, "eigenmaps": eigenmaps, "rglpca": rglpca, "gnmf": gnmf}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    with threadpool_limits(1):
        for part in options.parts:
            PARTS[part](1500 if options.quick else 5000)


if __name__ == "__main__":
    main()
