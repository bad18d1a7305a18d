import base64
import io

import numpy as np
import pytest

from robustpca.bench.shown import curve, picture


def decoded(exhibit):
    pyplot = pytest.importorskip("matplotlib.image")
    return pyplot.imread(io.BytesIO(base64.b64decode(exhibit["png"])), format="png")


def test_a_picture_is_a_png_of_its_pixels(rng):
    pixels = rng.integers(0, 256, size=(5, 7))
    exhibit = picture(pixels)
    np.testing.assert_array_equal(np.round(decoded(exhibit) * 255), pixels)
    assert (exhibit["height"], exhibit["width"]) == (5, 7)


def test_values_beyond_black_and_white_are_cut_off():
    shown = decoded(picture([[-3.0, 0.0, 1.0, 2.0]], low=0, high=1))
    np.testing.assert_array_equal(shown, [[0, 0, 1, 1]])


def test_several_images_stand_side_by_side(rng):
    images = rng.integers(0, 256, size=(3, 4, 5))
    shown = np.round(decoded(picture(images)) * 255)
    assert shown.shape == (4, 17)
    np.testing.assert_array_equal(shown[:, 6:11], images[1])
    np.testing.assert_array_equal(shown[:, 5], np.full(4, 255))


def test_zoom_makes_pixels_larger():
    shown = decoded(picture([[0, 255]], zoom=2))
    np.testing.assert_array_equal(shown, [[0, 0, 1, 1], [0, 0, 1, 1]])


@pytest.mark.parametrize("pixels", [[1.0, 2.0], [[np.nan]], np.ones((2, 2, 2, 2)), [[]]])
def test_what_is_no_picture_is_refused(pixels):
    with pytest.raises(ValueError, match="are needed"):
        picture(pixels)


def test_curves_need_finite_numbers():
    with pytest.raises(ValueError, match="finite"):
        curve([1, 2], [0.0, np.inf])
