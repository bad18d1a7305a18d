import base64
import io
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from robustpca.bench.declarations import Source
from robustpca.papers.angular.estimators import PixelMedian
from robustpca.papers.angular.images import (
    background_error,
    block_error,
    far_from_median,
    ghost_error,
    lit_error,
    median_distance,
    percent_kept,
    shadow_gain,
    triptych,
)
from robustpca.papers.angular.samples import SomeSamples
from robustpca.papers.video import foreground


def restoring(images):
    """A model that makes these images of anything."""
    return SimpleNamespace(low_rank_=np.asarray(images, float))


def test_the_foreground_is_what_differs_by_more_than_25_grey_levels():
    X = np.array([[100.0, 100, 100, 100, 100, 100]])
    model = restoring([[100, 130, 70, 124, 76, 200]])  # three of them differ enough
    extras = {"masks": np.array([[0, 255, 255, 255, 0, 0]])}
    assert foreground(model, X, X, extras, "precision") == pytest.approx(2 / 3)
    assert foreground(model, X, X, extras, "recall") == pytest.approx(2 / 3)
    extras = {"masks": np.array([[0, 255, 255, 255, 255, 0]])}
    assert foreground(model, X, X, extras, "recall") == pytest.approx(2 / 4)
    assert foreground(model, X, X, extras, "f_measure") == pytest.approx(4 / 7)


def test_the_light_of_a_frame_is_no_error_of_its_background():
    background = np.array([3.0, 4.0, 0.0])
    extras = {"background": background, "masks": np.array([[0, 0, 255], [0, 0, 0]])}
    bright = restoring([background, 2 * background])
    assert background_error(bright, bright.low_rank_, bright.low_rank_, extras) == 0
    # An error of 6 where the background is black cannot be light; something moves there.
    ghost = restoring([[3, 4, 6], 2 * background])
    assert background_error(ghost, ghost.low_rank_, ghost.low_rank_, extras) == pytest.approx(
        6**0.5
    )
    assert ghost_error(ghost, ghost.low_rank_, ghost.low_rank_, extras) == pytest.approx(6)
    # Nor is anything an error where the background is not known.
    extras["background_valid"] = np.array([True, True, False])
    assert background_error(ghost, ghost.low_rank_, ghost.low_rank_, extras) == 0


def test_the_distance_to_the_median_is_a_mean_over_pixels():
    X = np.array([[0.0, 0], [10, 10], [100, 100]])
    assert median_distance(restoring([[10, 10], [10, 16], [10, 10]]), X, X) == 1


def test_the_simplest_background_is_the_median_of_each_pixel():
    X = np.array([[0.0, 5], [10, 5], [100, 8]])
    np.testing.assert_array_equal(PixelMedian().fit(X).low_rank_, [[10, 5]] * 3)


def test_the_share_of_images_kept():
    X = np.zeros((8, 2))
    assert percent_kept(SimpleNamespace(n_trimmed_=2), X, X) == 75
    assert percent_kept(PCA(), X, X) == 100


def test_lit_dark_and_covered_pixels_are_told_apart():
    clean = np.array([[100.0, 100, 10, 20, 80, 90]])
    covered = np.array([[False, False, False, False, True, True]])
    observed = np.where(covered, 0, clean)
    model = restoring([[103, 104, 16, 24, 70, 90]])
    assert lit_error(model, clean, observed, covered) == pytest.approx(np.sqrt((9 + 16) / 2))
    assert shadow_gain(model, clean, observed, covered) == 5
    assert block_error(model, clean, observed, covered) == pytest.approx(np.sqrt(50))
    assert np.isnan(block_error(model, clean, clean, np.zeros_like(covered)))


def test_the_image_that_tells_most_is_far_from_the_median():
    X = np.zeros((10, 4))
    X[[1, 3, 7, 8]] = np.array([5, 9, 3, 2])[:, None]
    assert (far_from_median(X, 0), far_from_median(X, 1)) == (3, 7)
    assert far_from_median(X, 0, 0.75) == 1
    assert far_from_median(X[:9], 1) == 7


def test_a_triptych_has_the_image_its_background_and_the_difference():
    pyplot = pytest.importorskip("matplotlib.image")
    X = np.array([[10.0, 20], [200, 100], [10, 20], [10, 20]])
    exhibit = triptych(restoring(np.tile([30.0, 25], (4, 1))), X, X, (2, 1))
    shown = pyplot.imread(io.BytesIO(base64.b64decode(exhibit["png"])), format="png")
    expected = [[200, 255, 30, 255, 255 - 170], [100, 255, 25, 255, 255 - 75]]
    np.testing.assert_array_equal(np.round(255 * shown), expected)


def test_a_share_of_the_samples_is_drawn_by_the_seed():
    source = Source("digits")
    data = source()
    some = SomeSamples(source, 0.1)
    assert some(1).X.shape == (180, 64)
    np.testing.assert_array_equal(some(1).X, some(1).X)
    assert (some(1).X != some(2).X).any()
    places = {row.tobytes(): i for i, row in enumerate(data.X)}
    found = [places[row.tobytes()] for row in some(1).X]
    assert found == sorted(found)
    assert len(set(found)) > 170  # digits has hardly any image twice
    np.testing.assert_array_equal(some(1).y, data.y[found])
