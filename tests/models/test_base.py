"""Life after a fit: cutoffs, and scores that are not along an orthonormal basis."""

import numpy as np
import pytest

from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.progress import ClosedForm
from robustpca.models.base import Fit, ObliqueModel, Subspace


class Planted(ObliqueModel):
    """Knows its loadings beforehand."""

    def __init__(self, n_components=None, *, loadings=None):
        self.n_components = n_components
        self.loadings = loadings

    def _fit(self, rows):
        X = rows.whole()
        mean = X.mean(axis=0)
        basis = np.linalg.qr(self.loadings.T)[0]
        codes = (X - mean) @ basis
        residuals = np.sum((X - mean - codes @ basis.T) ** 2, axis=1)
        subspace = Subspace.of(
            rows,
            mean,
            self.loadings,
            residuals=residuals,
            variances=codes.var(axis=0),
            total=X.var(axis=0).sum(),
            floor=0.0,
        )
        return Fit({"loadings_": self.loadings}, subspace, ClosedForm(np.zeros(1)))


@pytest.fixture(name="fitted")
def oblique(rng):
    X, basis, _ = planted_subspace(rng, noise=0.1)
    mixing = rng.normal(size=(len(basis), len(basis)))
    return Planted(4, loadings=mixing @ basis).fit(X), X


def test_reconstruction_is_the_orthogonal_projection_on_the_span(fitted):
    model, X = fitted
    basis = np.linalg.qr(model.loadings.T)[0]
    expected = model.mean_ + (X - model.mean_) @ basis @ basis.T
    np.testing.assert_allclose(model.reconstruct(X), expected)
    np.testing.assert_allclose(
        model.orthogonal_distances(X), np.linalg.norm(X - expected, axis=1), rtol=1e-10
    )


def test_scores_of_a_point_of_the_subspace_are_those_it_was_made_of(fitted, rng):
    model, _ = fitted
    scores = rng.normal(size=(7, 4))
    np.testing.assert_allclose(model.transform(model.inverse_transform(scores)), scores)


def test_score_distances_do_not_depend_on_how_oblique_the_loadings_are(fitted):
    model, X = fitted
    straight = Planted(4, loadings=np.linalg.qr(model.loadings.T)[0].T).fit(X)
    np.testing.assert_allclose(model.score_distances(X), straight.score_distances(X))
    assert np.median(model.score_distances(X)) == pytest.approx(2.0, abs=0.3)


def test_a_component_counts_in_score_distances_however_weak_unless_it_has_no_variance(rng):
    X = rng.normal(size=(100, 6))
    loadings = np.eye(3, 6)
    expected = Planted(3, loadings=loadings).fit(X).score_distances(X)
    weak = X * [1.0, 1.0, 1e-5, 1.0, 1.0, 1.0]
    distances = Planted(3, loadings=loadings).fit(weak).score_distances(weak)
    np.testing.assert_allclose(distances, expected, rtol=1e-6)
    flat = X * [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    distances = Planted(3, loadings=loadings).fit(flat).score_distances(flat)
    without = Planted(2, loadings=loadings[:2]).fit(X).score_distances(X)
    np.testing.assert_allclose(distances, without, rtol=1e-12)
