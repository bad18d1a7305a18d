"""RVFL: ridge regression as a special case, two forms of one solution, what ridge cannot learn."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from robustpca import RVFLClassifier


@pytest.fixture(name="iris", scope="module")
def iris_data():
    return load_iris(return_X_y=True)


def checkerboard(rng, n=600):
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, (X[:, 0] > 0) ^ (X[:, 1] > 0)


def design(model, X):
    Z = StandardScaler().fit_transform(X)
    hidden = expit(model.scale * (Z @ model.hidden_weights_ + model.hidden_biases_))
    return np.hstack([hidden, Z]) if model.direct_links else hidden


@pytest.mark.parametrize("n_hidden", [5, 50, 400])
@pytest.mark.parametrize("direct_links", [True, False])
def test_primal_and_dual_are_one_solution(iris, n_hidden, direct_links):
    X, y = iris
    model = RVFLClassifier(n_hidden, alpha=0.1, direct_links=direct_links).fit(X, y)
    D, Y = design(model, X), np.eye(3)[y]
    D, Y = D - D.mean(axis=0), Y - Y.mean(axis=0)
    primal = np.linalg.solve(D.T @ D + 0.1 * np.eye(D.shape[1]), D.T @ Y)
    dual = D.T @ np.linalg.solve(D @ D.T + 0.1 * np.eye(len(D)), Y)
    assert_allclose(model.coef_.T, primal, atol=1e-8)
    assert_allclose(model.coef_.T, dual, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_hidden_nodes_it_is_the_ridge_classifier(iris, n_classes):
    X, y = iris
    X, y = X[y < n_classes], y[y < n_classes]
    model = RVFLClassifier(0, alpha=0.5).fit(X, y)
    theirs = RidgeClassifier(0.5).fit(StandardScaler().fit_transform(X), y)
    expected = theirs.decision_function(StandardScaler().fit_transform(X))
    # Their targets are -1 and 1 for ours 0 and 1.
    ours = model.decision_function(X)
    assert_allclose(ours if n_classes == 2 else 2 * ours - 1, expected, atol=1e-8)
    assert_array_equal(model.predict(X), theirs.predict(StandardScaler().fit_transform(X)))
    assert model.hidden_weights_.shape == (4, 0)


def test_it_learns_what_a_linear_model_cannot(rng):
    (X, y), (new, truth) = checkerboard(rng), checkerboard(rng)
    linear, model = RVFLClassifier(0).fit(X, y), RVFLClassifier(100, scale=3.0).fit(X, y)
    assert linear.score(new, truth) < 0.65
    assert model.score(new, truth) > 0.93


def test_it_is_a_classifier_like_any_other(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = RVFLClassifier().fit(X, names)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert model.decision_function(X).shape == (150, 3)
    assert model.decision_function(X).sum(axis=1) == pytest.approx(1)
    assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    assert cross_val_score(RVFLClassifier(), X, names).mean() > 0.93
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))


def test_two_classes_have_one_score_and_one_class_has_one_answer(iris):
    X, y = iris
    model = RVFLClassifier().fit(X[:100], y[:100])
    scores = model.decision_function(X)
    assert scores.shape == (150,)
    assert_array_equal(model.predict(X), (scores > 0).astype(int))
    only = RVFLClassifier().fit(X, np.full(150, "same"))
    assert set(only.predict(X)) == {"same"}


def test_the_seed_decides_the_hidden_nodes_alone(iris):
    X, y = iris
    first, again, other = (RVFLClassifier(random_state=s).fit(X, y) for s in (1, 1, 2))
    assert_array_equal(first.coef_, again.coef_)
    assert not np.allclose(first.hidden_weights_, other.hidden_weights_)
    assert -1 <= first.hidden_weights_.min() < -0.8 < 0.8 < first.hidden_weights_.max() <= 1
    assert 0 <= first.hidden_biases_.min() < 0.2 < 0.8 < first.hidden_biases_.max() <= 1


def test_standardisation_makes_units_irrelevant_and_stands_constant_columns(iris):
    X, y = iris
    model = RVFLClassifier().fit(X, y)
    units = 10.0 ** np.arange(-3, 1)
    assert_allclose(
        RVFLClassifier().fit(units * X + 5, y).decision_function(units * X + 5),
        model.decision_function(X),
        atol=1e-6,
    )
    RVFLClassifier().fit(np.column_stack([X, np.ones(150)]), y)
    raw = RVFLClassifier(standardize=False).fit(X, y)
    assert not np.allclose(raw.coef_, model.coef_)


def test_parameters_that_change_after_a_fit_do_not_reach_it(iris):
    model = RVFLClassifier(20, scale=2.0).fit(*iris)
    before = model.decision_function(iris[0])
    model.set_params(n_hidden=3, scale=9.0, direct_links=False)
    assert_array_equal(model.decision_function(iris[0]), before)


def test_nothing_to_learn_from_is_refused(iris):
    with pytest.raises(ValueError, match="n_hidden=0 and direct_links=False leave nothing"):
        RVFLClassifier(0, direct_links=False).fit(*iris)
    with pytest.raises(ValueError, match="alpha"):
        RVFLClassifier(alpha=0.0).fit(*iris)


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        RVFLClassifier().fit([[1.0, 2.0]], [0])
