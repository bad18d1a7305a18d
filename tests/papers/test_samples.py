import numpy as np
import pytest

from robustpca.datasets import load, save
from robustpca.papers.frpcag.samples import busy_airports, without_view
from robustpca.papers.samples import ordered_classes


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBUSTPCA_DATA", str(tmp_path))
    return tmp_path


def test_the_first_samples_of_some_classes_come_class_by_class():
    digits = load("digits")
    data = ordered_classes("digits", [3, 1], 5)
    np.testing.assert_array_equal(data.y, np.repeat([3, 1], 5))
    np.testing.assert_array_equal(data.X[:5], digits.X[digits.y == 3][:5])
    assert ordered_classes("digits", 4, size=(4, 4)).X.shape == (np.sum(digits.y < 4), 16)
    assert len(ordered_classes("digits").X) == len(digits.X)


def test_samples_without_classes_cannot_be_chosen_by_them(home, rng):
    save("mine", rng.normal(size=(6, 4)))
    with pytest.raises(ValueError, match="no classes"):
        ordered_classes("mine", 2)


def test_one_view_is_left_out(home):
    X = np.arange(24.0).reshape(4, 6)
    save("mine", X, np.array([1, 0, 1, 0]), view_names=["a", "pix", "b"], view_sizes=[1, 3, 2])
    data = without_view("mine", "pix", 1)
    np.testing.assert_array_equal(data.X, X[[1, 0]][:, [0, 4, 5]])
    assert data.image_shape is None


def test_busy_airports_get_columns(home, rng):
    origin = np.array([7, 7, 7, 2, 2, 5])
    destination = np.array([1, 1, 3, 3, 3, 0])
    delay = np.array([0, 1, 2, 3, 4, 5])
    columns = ["delay", "ORIGIN", "destination"]
    save("flights", np.column_stack([delay, origin, destination]).astype(np.int16), columns=columns)
    data = busy_airports(5, n_features=5)
    assert data.X.dtype == np.float32
    np.testing.assert_array_equal(data.X[:, 1:3], np.column_stack([origin == 7, origin == 2])[:5])
    np.testing.assert_array_equal(data.X[:, 3], (destination == 3)[:5])
    assert data.X[:, 0].std() == pytest.approx(1)
