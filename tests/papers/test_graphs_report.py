import base64
import zlib

import numpy as np
import pytest
from sklearn.decomposition import PCA

from robustpca import GLPCA, RPCA
from robustpca.datasets import Dataset
from robustpca.papers import samples
from robustpca.papers.approximations import recovered
from robustpca.papers.graphs_report import samples as report_samples
from robustpca.papers.graphs_report import scores


@pytest.fixture
def lights(monkeypatch):
    """Three persons with six images each, in mixed order; an image holds its own number."""
    y = np.tile([2, 0, 1], 6)
    data = Dataset("pie", np.arange(18.0)[:, None], y, (1, 1), "made for this test")
    monkeypatch.setattr(samples, "load", lambda name, size: data)
    monkeypatch.setattr(report_samples, "N_PERSONS", 3)
    return data


def test_faces_are_those_of_the_first_persons_evenly_over_the_lights(lights):
    data = samples.ordered_classes("pie", 2, 3, spaced=True)
    # Person 0 has the images 1, 4, ..., 16, person 1 the images 2, 5, ..., 17.
    assert data.X.ravel().tolist() == [1, 7, 16, 2, 8, 17]
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1]


def test_each_seed_has_a_person_of_its_own(lights):
    people = [
        report_samples.one_face(n_images=2, random_state=seed).y.tolist() for seed in range(4)
    ]
    assert people == [[0, 0], [1, 1], [2, 2], [0, 0]]


def test_planted_images_are_drawn_by_seed_low_rank_and_never_black():
    data = report_samples.planted_images(60, 12, random_state=3)
    np.testing.assert_array_equal(data.X, report_samples.planted_images(60, 12, random_state=3).X)
    assert not np.array_equal(data.X, report_samples.planted_images(60, 12, random_state=4).X)
    assert data.images.shape == (60, 12, 12)
    assert data.X.min() >= 1
    assert data.X.max() <= 255
    # Kinds differ by tens of grey levels, images of a kind by the noise of two.
    within = [data.X[data.y == kind].std(axis=0).mean() for kind in range(6)]
    assert max(within) < 3
    assert data.X.std(axis=0).mean() > 20


def test_what_is_recovered_is_the_approximation_of_the_training_data(rng):
    X = rng.normal(size=(40, 9)) @ rng.normal(size=(9, 9))
    pca, glpca, rpca = PCA(2).fit(X), GLPCA(2, beta=0.8).fit(X), RPCA(noise=0.0).fit(X)
    middle = X.mean(axis=0)
    axes = np.linalg.svd(X - middle)[2][:2]
    np.testing.assert_allclose(recovered(pca, X), middle + (X - middle) @ axes.T @ axes)
    Q = glpca.embedding_
    np.testing.assert_allclose(recovered(glpca, X), middle + Q @ Q.T @ (X - middle))
    np.testing.assert_array_equal(recovered(rpca, X), rpca.low_rank_)


class Known:
    """A model that has recovered what it was given."""

    def __init__(self, low_rank):
        self.low_rank_ = low_rank


def test_errors_are_means_over_all_over_hidden_and_over_visible_pixels():
    clean = np.zeros((2, 4))
    mask = np.array([[True, False, False, False], [False, False, False, True]])
    model = Known(np.array([[6.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 8.0]]))
    corrupt = np.full((2, 4), 99.0)
    assert scores.squared_error(model, clean, corrupt) == (36 + 1 + 4 + 64) / 8
    assert scores.error_hidden(model, clean, corrupt, mask) == (36 + 64) / 2
    assert scores.error_visible(model, clean, corrupt, mask) == (1 + 4) / 6


def test_a_picture_has_clean_above_corrupted_above_recovered():
    clean, corrupt = np.full((5, 6), 200.0), np.full((5, 6), 100.0)
    shown = scores.before_and_after(Known(np.zeros((5, 6))), clean, corrupt, (2, 3), n_images=2)
    assert (shown["height"], shown["width"]) == (6, 7)
    png = base64.b64decode(shown["png"])
    start = png.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompressobj().decompress(png[start:]), np.uint8).reshape(6, 8)
    # The first byte of a line is its filter; the brightest clean pixel is white.
    assert lines[:, 1].tolist() == [255, 255, 128, 128, 0, 0]
