from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from robustpca import RPCA
from robustpca.papers.approximations import show_plane
from robustpca.papers.frpcag.spectra import (
    block_contrast,
    n_large,
    share_of_nuclear_norm,
    show_coupling,
    show_interaction,
    show_singular_values,
    smooth_share,
)
from robustpca.parts.graphs import grid_graph, laplacian


def with_low_rank(low_rank, **known):
    return SimpleNamespace(low_rank_=np.asarray(low_rank, float), **known)


def test_rank_and_nuclear_norm_of_a_known_matrix():
    X = np.diag([4.0, 3.0, 2.0, 1.0])
    model = with_low_rank(np.diag([4.0, 0.5, 0.05, 0.03]))
    assert n_large(model, X, X) == 3
    assert share_of_nuclear_norm(model, X, X) == pytest.approx(0.458)


def test_independent_subspaces_have_no_interaction_across():
    low_rank = np.zeros((6, 4))
    low_rank[:3, :2] = [[1, 0], [0, 1], [1, 1]]
    low_rank[3:, 2:] = [[1, 0], [0, 1], [1, 1]]
    low_rank[0, 3] = 1e-3
    assert block_contrast(with_low_rank(low_rank), low_rank, low_rank, np.repeat([0, 1], 3)) > 100
    # Classes that have nothing to do with the subspaces make no difference.
    mixed = block_contrast(with_low_rank(low_rank), low_rank, low_rank, np.array([0, 1] * 3))
    assert mixed < 3


def test_smooth_matrices_lie_in_the_lowest_eigenvectors():
    samples, features = grid_graph((30,)), grid_graph((25,))
    low = np.linalg.eigh(laplacian(samples).toarray())[1]
    high = np.linalg.eigh(laplacian(features).toarray())[1]
    U = 3 * np.outer(low[:, 2], high[:, 20]) + 4 * np.outer(low[:, 15], high[:, 4])
    model = with_low_rank(U, sample_graph_=samples, feature_graph_=features)
    assert smooth_share(model, U, U, "samples") == pytest.approx(9 / 25)
    assert smooth_share(model, U, U, "features") == pytest.approx(16 / 25)
    assert show_coupling(model, U, U, "samples")["width"] == 4 * 30
    assert show_coupling(model, U, U, "features")["width"] == 4 * 25


def test_interactions_are_drawn_class_by_class(rng):
    y = rng.permutation(np.repeat([0, 1], 60))
    low_rank = np.eye(2)[y]
    exhibit = show_interaction(with_low_rank(low_rank), low_rank, low_rank, y)
    assert (exhibit["width"], exhibit["height"]) == (200, 200)


def test_of_a_pipeline_the_data_are_those_that_the_last_step_saw(rng):
    X = 100 + 5 * rng.normal(size=(20, 6))
    model = make_pipeline(StandardScaler(), RPCA(noise=0.0)).fit(X)
    shown = show_singular_values(model, X, X, "before")
    np.testing.assert_allclose(shown["y"], np.linalg.svd(scale(X))[1], rtol=1e-4)
    after = np.linalg.svd(model[-1].low_rank_)[1]
    found = show_singular_values(model, X, X, "after")["y"]
    np.testing.assert_allclose(found, after, rtol=1e-4, atol=1e-12)  # the last ones are zero


def test_points_are_the_first_two_coordinates(rng):
    X, y = rng.normal(size=(10, 5)), np.arange(10) % 2
    model = PCA(3).fit(X)
    shown = show_plane(model, X, X, y)
    np.testing.assert_allclose(shown["x"], model.transform(X)[:, 0], rtol=1e-4)
    np.testing.assert_allclose(shown["y"], model.transform(X)[:, 1], rtol=1e-4)
    assert shown["label"] == y.tolist()
