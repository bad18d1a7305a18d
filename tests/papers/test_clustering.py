from statistics import fmean

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from robustpca import GLPCA, RPCA, RSPCA, LaplacianEigenmaps
from robustpca.datasets import make_low_rank_plus_sparse
from robustpca.metrics import clustering_accuracy, clustering_error
from robustpca.papers.approximations import approximation, coordinates, singular_vectors
from robustpca.papers.clustering import Clustering, mutual_information, partitions
from robustpca.papers.frpcag.scores import separation


@pytest.fixture
def blobs(rng):
    y = np.repeat(np.arange(4), 15)
    return rng.normal(scale=0.1, size=(60, 6)) + 5 * np.eye(4, 6)[y], y


def test_far_apart_classes_are_found_without_error(blobs):
    X, y = blobs
    model = PCA(3).fit(X)
    assert Clustering(clustering_accuracy)(model, X, X, y, 0) == 1
    assert Clustering()(model, X, X, y, 0) == 0
    assert Clustering(mutual_information)(model, X, X, y, 0) == pytest.approx(1)
    assert Clustering(adjusted_rand_score)(model, X, X, y, 0) == 1


def test_the_mean_counts_bad_runs_and_the_best_run_does_not_look_at_labels(rng):
    X = rng.normal(size=(60, 5))
    y = rng.integers(5, size=60)
    model = PCA(5).fit(X)
    starts = np.random.RandomState(3).randint(2**31 - 1, size=8)
    fits = [KMeans(5, n_init=1, random_state=start).fit(model.transform(X)) for start in starts]
    chosen = min(fits, key=lambda fit: fit.inertia_)
    best = Clustering(adjusted_rand_score, n_runs=8)(model, X, X, y, 3)
    assert best == adjusted_rand_score(y, chosen.labels_)
    mean = Clustering(adjusted_rand_score, fmean, n_runs=8)(model, X, X, y, 3)
    assert mean == pytest.approx(np.mean([adjusted_rand_score(y, fit.labels_) for fit in fits]))
    assert mean != best


def test_coordinates_keep_the_distances_of_the_low_rank_part():
    X = make_low_rank_plus_sparse(40, 30, random_state=0).X
    model = RPCA(noise=0.0).fit(X)
    codes = coordinates(model, X)
    np.testing.assert_allclose(pdist(codes), pdist(model.low_rank_), atol=1e-6)


def test_an_embedding_is_taken_as_it_is(blobs):
    X, _ = blobs
    model = LaplacianEigenmaps(2, n_neighbors=30).fit(X)
    np.testing.assert_array_equal(coordinates(model, X), model.embedding_)


def test_the_approximation_of_an_embedding_weighs_its_columns_by_the_loadings(blobs):
    X, y = blobs
    model = GLPCA(3, beta=0.5).fit(X)
    low_rank = model.inverse_transform(model.embedding_)
    codes = approximation(model, X)
    np.testing.assert_allclose(pdist(codes), pdist(low_rank), atol=1e-8)
    assert np.abs(pdist(codes) - pdist(model.embedding_)).max() > 1
    # Runs of one kind are not taken for runs of the other.
    own = partitions(model, X, 4, 1, 0)
    assert partitions(model, X, 4, 1, 0, of=approximation)[0].inertia != own[0].inertia
    assert Clustering(of=approximation)(model, X, X, y, 0) == 0


def test_the_approximation_of_other_models_is_what_they_are_scored_by(blobs):
    X, _ = blobs
    model = PCA(3).fit(X)
    np.testing.assert_array_equal(approximation(model, X), model.transform(X))


def test_coordinates_keep_the_distances_of_sparse_components_that_are_oblique(rng):
    X = rng.normal(size=(40, 8)) @ rng.normal(size=(8, 8))
    model = RSPCA(3, n_nonzero=4).fit(X)
    codes, restored = coordinates(model, X), model.reconstruct(X) - model.mean_
    assert np.abs(model.transform(X) @ model.transform(X).T - restored @ restored.T).max() > 1e-3
    np.testing.assert_allclose(codes @ codes.T, restored @ restored.T, atol=1e-8)


def test_of_a_pipeline_the_last_step_counts(blobs):
    X, _ = blobs
    model = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    np.testing.assert_allclose(coordinates(model, X), PCA(2).fit_transform(scale(X)), atol=1e-9)
    embedded = make_pipeline(StandardScaler(), LaplacianEigenmaps(2, n_neighbors=30)).fit(X)
    np.testing.assert_array_equal(coordinates(embedded, X), embedded[-1].embedding_)
    alone = make_pipeline(PCA(2)).fit(X)
    np.testing.assert_allclose(coordinates(alone, X), PCA(2).fit_transform(X), atol=1e-9)


def test_the_smallest_error_is_that_of_the_run_nearest_the_labels(rng):
    X, y = rng.normal(size=(60, 5)), rng.integers(5, size=60)
    model = PCA(5).fit(X)
    runs = partitions(model, X, 5, 8, 3)
    errors = [clustering_error(y, run.labels) for run in runs]
    assert Clustering(take=min, n_runs=8)(model, X, X, y, 3) == min(errors)
    assert min(errors) < Clustering(n_runs=8)(model, X, X, y, 3)


class Decomposed:
    """Stands for a model with a low-rank part."""


def test_singular_vectors_count_alike(rng):
    # The classes are told apart by a direction with a small singular value alone.
    y = np.repeat([0, 1], 30)
    codes = np.column_stack([100 * rng.normal(size=60), y - 0.5, np.zeros(60)])
    model = Decomposed()
    model.low_rank_ = model.embedding_ = codes
    assert singular_vectors(model, codes, 2).shape == (60, 2)
    args = model, codes, codes, y, 0
    for take in (min, None):
        assert Clustering(take=take, of=singular_vectors)(*args) < 0.1
        assert Clustering(take=take)(*args) > 0.1


def test_without_a_low_rank_part_there_are_no_vectors_to_take(blobs):
    X, _ = blobs
    model = PCA(3).fit(X)
    np.testing.assert_array_equal(singular_vectors(model, X, 2), model.transform(X))


def test_separation_is_near_one_for_tight_classes_and_near_zero_for_none(blobs, rng):
    X, y = blobs
    model = PCA(3).fit(X)
    assert separation(model, X, X, y) > 0.9
    assert abs(separation(model, X, X, rng.permutation(y))) < 0.1
