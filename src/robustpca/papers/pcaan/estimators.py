"""Methods of the PCA-AN paper for a given number of passes, each with the work that is printed."""

from typing import Any, Self

import numpy as np
from scipy import linalg
from sklearn.base import BaseEstimator

from robustpca.engine.linalg import Array, square_norms
from robustpca.engine.rows import ArrayRows
from robustpca.parts.losses import L21Loss, SquaredLoss
from robustpca.parts.weightings import AdaptiveNeighbors, Uniform
from robustpca.solvers.bilinear import BilinearModel
from robustpca.solvers.reweighting import reweight

__all__ = ["FixedPasses"]

PARTS = {
    "PCA-AN": (SquaredLoss(), AdaptiveNeighbors(0.85)),
    "RPCA-OM": (L21Loss(), Uniform()),
    "R2DPCA": (L21Loss(), Uniform()),
    "GLRAM": (SquaredLoss(), Uniform()),
}
SIDES = (9, 10)


class FixedPasses(BaseEstimator):
    """A method of the paper that does not stop before its last pass.

    Our own methods end when nothing is left to gain, after 5 passes or after 50, and those for
    vectors do most of their passes on a few coordinates. Here every pass of every method touches
    all images that count, and solves the eigenproblems that the paper states.

    Parameters
    ----------
    method : {'PCA-AN', 'RPCA-OM', 'R2DPCA', 'GLRAM'}
        Which one; with 9 x 10 components for images, and 90 for vectors.
    n_passes : int, default=10
        Number of passes.
    image_shape : tuple of two int, default=None
        Height and width of the images.

    Attributes
    ----------
    n_iter_ : int
        Number of passes, as asked for.
    objective_ : ndarray of shape (n_passes + 1,)
        Objective at the start and after each pass.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustpca.papers.pcaan.estimators import FixedPasses
    >>> X = load_digits().data[:50].repeat(4, axis=1)
    >>> FixedPasses("GLRAM", 3, image_shape=(16, 16)).fit(X).n_iter_
    3
    """

    def __init__(
        self, method: str, n_passes: int = 10, image_shape: tuple[int, int] | None = None
    ) -> None:
        self.method = method
        self.n_passes = n_passes
        self.image_shape = image_shape

    def fit(self, X: Array, y: Any = None) -> Self:
        """Do all passes."""
        loss, weighting = PARTS[self.method]
        model: Any
        if self.method in ("PCA-AN", "RPCA-OM"):
            model = FullPCA(X, SIDES[0] * SIDES[1])
        else:
            center = np.zeros(X.shape[1]) if self.method == "GLRAM" else None
            model = BilinearModel(
                ArrayRows(X), self.image_shape or (X.shape[1], 1), SIDES, center=center
            )
        loss = loss.tuned(model.residuals(), model.floor)
        # No change is below this tolerance.
        found = reweight(model, loss, weighting, tol=-np.inf, max_iter=self.n_passes)
        self.n_iter_, self.objective_ = found.n_iter, found.objective
        return self


class FullPCA:
    """Weighted PCA by one eigenproblem of the samples that count, or of the features, a pass."""

    exact = True

    def __init__(self, X: Array, n_components: int) -> None:
        self.X, self.n_components = np.asarray(X, dtype=np.float64), n_components
        self.fit(np.ones(len(X)))
        # Distances that are rounding error: samples that are fitted exactly must not weigh so much
        # that all others are lost beside them.
        self.floor = ArrayRows(self.X).floor * float(np.sqrt(np.mean(self.lengths())))

    @property
    def given(self) -> tuple[Any, ...]:
        """What a checkpoint need not keep."""
        return (self.X,)

    def fit(self, weights: Array) -> None:
        """Weighted mean and leading eigenvectors."""
        counts = weights > 0
        weights, X = weights[counts], self.X[counts]
        self.mean = weights @ X / weights.sum()
        Z = np.sqrt(weights)[:, None] * (X - self.mean)
        gram = Z @ Z.T if len(Z) < Z.shape[1] else Z.T @ Z
        last = len(gram) - 1
        vectors = linalg.eigh(gram, subset_by_index=(last - self.n_components + 1, last))[1]
        axes = Z.T @ vectors if len(Z) < Z.shape[1] else vectors
        self.basis = axes / np.linalg.norm(axes, axis=0)

    def residuals(self) -> Array:
        """Squared distance of each sample from the subspace."""
        centred = self.X - self.mean
        return np.maximum(self.lengths() - square_norms(centred @ self.basis), self.floor**2)

    def lengths(self) -> Array:
        """Squared distance of each sample from the mean."""
        return square_norms(self.X - self.mean)

    def expand(self, weights: Array, enough: float) -> bool:
        """Do nothing: every pass uses all of the data."""
        return False
