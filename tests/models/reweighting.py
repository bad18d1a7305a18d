"""What the tests of the reweighted chapter share: methods, data, and an independent loop."""

import numpy as np
from scipy import linalg

from robustpca import EPCA, PCAAN, PCAOM, R1PCA, ReweightedPCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.metrics import subspace_distance

METHODS = [PCAOM, R1PCA, PCAAN, EPCA, ReweightedPCA]


def degrees(first, second):
    return np.degrees(np.arcsin(min(1.0, subspace_distance(first, second))))


def square_residuals(X, mean, components):
    Z = np.asarray(X, dtype=np.float64) - mean
    rest = Z - (Z @ components.T) @ components
    return np.sum(rest**2, axis=1)


def weighted_pca(X, n_components, weights, center=None):
    """Weighted mean and leading eigenvectors (as rows) of the weighted covariance matrix."""
    mean = weights @ X / weights.sum() if center is None else center
    Z = X - mean
    d = X.shape[1]
    vectors = linalg.eigh((Z * weights[:, None]).T @ Z, subset_by_index=(d - n_components, d - 1))
    return mean, vectors[1][:, ::-1].T


def textbook(X, n_components, loss, weighting, *, center=None, tol=1e-14, max_iter=5000):
    """The method as one would write it down: full eigenproblem of all features in each pass."""
    X = np.asarray(X, dtype=np.float64)
    mean, components = weighted_pca(X, n_components, np.ones(len(X)), center)
    step = None
    for _ in range(max_iter):
        t = square_residuals(X, mean, components)
        previous, step = step, weighting.solve(loss.values(t))
        if previous is not None:
            change = np.abs(step.direct - previous.direct).max()
            drop = abs(previous.objective - step.objective)
            if max(change, drop / abs(step.objective)) <= tol:
                return step, mean, components
        mean, components = weighted_pca(X, n_components, step.direct * loss.weights(t), center)
    raise AssertionError("the textbook loop did not converge")


def simplex_projection(point):
    """Nearest point of the probability simplex, by bisection on the shift."""
    low, high = point.min() - 1.0, point.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(point - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(point - high, 0)


def random_rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


SHAPES = {
    "few features": (120, 12, 3),
    "nested views": (250, 100, 4),
    "few wide samples": (90, 150, 4),
    "many wide samples": (270, 320, 4),
}


def noisy_planted(shape):
    n, d, c = SHAPES[shape]
    return planted_subspace(np.random.default_rng(1), n, d, c, n // 10, noise=0.3, distance=20.0)[0]


def settled_data(rng, d=12):
    return planted_subspace(rng, 150, d, 3, 20, noise=0.3, distance=15.0)[0]
