from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from robustpca.bench.declarations import Source
from robustpca.datasets import make_shifted_classes
from robustpca.papers.angular.classification import accuracy, angle_to_clean
from robustpca.papers.angular.samples import split
from robustpca.papers.approximations import show_plane

digits = partial(split, source=Source("digits", n_samples=400))


def test_the_parts_have_all_samples_and_no_sample_twice():
    data, whole = digits(random_state=1), Source("digits", n_samples=400)()
    assert data.X.shape == (280, 64)
    assert data.extras["X_test"].shape == (120, 64)
    parts = np.vstack([data.X, data.extras["X_test"]])
    np.testing.assert_array_equal(np.sort(parts, axis=0), np.sort(whole.X, axis=0))
    rows = {row.tobytes() for row in data.X}
    assert not any(row.tobytes() in rows for row in data.extras["X_test"])


def test_labels_stay_with_their_samples():
    data, whole = digits(random_state=1), Source("digits", n_samples=400)()
    known = {row.tobytes(): label for row, label in zip(whole.X, whole.y, strict=True)}
    assert [known[row.tobytes()] for row in data.X] == list(data.y)
    assert [known[row.tobytes()] for row in data.extras["X_test"]] == list(data.extras["y_test"])


def test_seeds_draw_the_parts_and_the_data():
    assert (digits(random_state=0).X != digits(random_state=1).X).any()
    np.testing.assert_array_equal(digits(random_state=1).X, digits(random_state=1).X)
    drawn = [split(make_shifted_classes, seed).X for seed in (0, 1)]
    assert drawn[0].shape == (2940, 3)
    assert set(map(tuple, drawn[0])).isdisjoint(map(tuple, drawn[1]))


def test_the_range_of_a_feature_is_that_of_the_training_part():
    plain, scaled = split(make_shifted_classes, 3), split(make_shifted_classes, 3, unit_range=True)
    np.testing.assert_allclose([scaled.X.min(axis=0), scaled.X.max(axis=0)], [[0] * 3, [1] * 3])
    low, high = plain.X.min(axis=0), plain.X.max(axis=0)
    expected = (plain.extras["X_test"] - low) / (high - low)
    np.testing.assert_allclose(scaled.extras["X_test"], expected)


@pytest.fixture
def asked():
    """What accuracy is asked with: the class is told by the last of four codes alone."""
    y, y_test = np.arange(40) % 2, np.arange(10) % 2
    X, X_test = (np.column_stack([np.zeros((len(c), 3)), c]) for c in (y, y_test))
    extras = {"X_test": X_test, "y_test": y_test}
    return {"X_clean": X, "X_corrupt": X, "y": y, "extras": extras, "random_state": 0}


def test_accuracy_is_that_of_the_test_part(asked):
    model, tree = FunctionTransformer(), DecisionTreeClassifier()
    assert accuracy(model, **asked, classifier=tree) == 100
    asked["extras"] |= {"y_test": np.array([0, 1, 0, 1, 0, 1, 0, 1, 1, 0])}
    assert accuracy(model, **asked, classifier=tree) == pytest.approx(80)


def test_the_classifier_learns_from_the_training_part_alone(asked):
    asked["extras"] |= {"y_test": np.ones(10, int)}
    asked["y"] = np.array([0] * 30 + [1] * 10)
    assert accuracy(FunctionTransformer(), **asked, classifier=DummyClassifier()) == 0


def test_steps_average_over_the_first_codes(asked):
    # Two codes say nothing, so half of the answers are right; four say all.
    found = accuracy(FunctionTransformer(), **asked, classifier=DecisionTreeClassifier(), step=2)
    assert found == pytest.approx(75)


def test_angles_are_those_to_pca_without_outliers(rng):
    X = rng.normal(size=(200, 3)) * [5, 2, 0.1]
    clean = PCA().fit(X).components_
    is_outlier = np.arange(220) >= 200
    X = np.vstack([X, np.tile([0, 0, 500.0], (20, 1))])
    right, turned = (SimpleNamespace(components_=clean[rows]) for rows in ([0, 1], [0, 2]))
    extras = {"is_outlier": is_outlier}
    assert angle_to_clean(right, X, X, extras) == pytest.approx(0, abs=1e-6)
    assert angle_to_clean(turned, X, X, extras, n_components=1) == pytest.approx(0, abs=1e-6)
    assert angle_to_clean(turned, X, X, extras) == pytest.approx(90)
    tilted = clean[:1] + clean[1:2]
    model = SimpleNamespace(components_=tilted)
    assert angle_to_clean(model, X, X, extras, n_components=1) == pytest.approx(45)


def test_the_plane_shows_the_first_two_codes():
    X = np.arange(12.0).reshape(4, 3)
    shown = show_plane(FunctionTransformer(), X, X, np.arange(4), n_points=3)
    assert (shown["x"], shown["y"], shown["label"]) == ([0, 3, 6], [1, 4, 7], [0, 1, 2])
