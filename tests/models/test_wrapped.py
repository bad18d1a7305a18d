"""`Reweighted`: the weightings around regressors and clusterers of scikit-learn."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_clusterer, is_regressor
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from robustpca import Reweighted
from robustpca.parts.losses import CappedLoss, L21Loss
from robustpca.parts.weightings import AdaptiveNeighbors, CoRobust

CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


def planted_line(seed, n_targets=None, *, leverage=False):
    """A linear law with noise of 0.1, and 40 of 200 targets that do not follow it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 5))
    coef = rng.normal(size=(5,) if n_targets is None else (n_targets, 5))
    y = X @ coef.T + 1
    y += 0.1 * rng.normal(size=y.shape)
    is_outlier = np.zeros(200, dtype=bool)
    is_outlier[rng.choice(200, 40, replace=False)] = True
    if leverage:
        X[is_outlier] += 15
        y[is_outlier] = -30 + rng.normal(size=(40, *y.shape[1:]))
    else:
        y[is_outlier] += 20 + 10 * rng.normal(size=(40, *y.shape[1:]))
    return X, y, coef, is_outlier


def planted_clusters(seed):
    """Three clouds of 60 samples, and 30 samples anywhere in a square 16 times as wide."""
    rng = np.random.default_rng(seed)
    X = np.vstack([center + rng.normal(size=(60, 2)) for center in CENTERS])
    X = np.vstack([X, rng.uniform(-80, 80, size=(30, 2))])
    return X, np.arange(210) >= 180


def center_error(centers):
    """Distance of the worst centre for the best matching."""
    distances = np.linalg.norm(CENTERS[:, None] - centers, axis=2)
    return distances[linear_sum_assignment(distances)].max()


@pytest.mark.parametrize("leverage", [False, True])
@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(1e-3)])
@pytest.mark.parametrize("seed", range(4))
def test_regression_finds_the_law_among_outliers(seed, estimator, leverage):
    X, y, coef, is_outlier = planted_line(seed, leverage=leverage)
    plain = np.linalg.norm(clone(estimator).fit(X, y).coef_ - coef)
    model = Reweighted(estimator).fit(X, y)
    assert np.linalg.norm(model.estimator_.coef_ - coef) < plain / 10
    # Noise of 0.1 over 160 samples: 0.1 * sqrt(5 / 160) = 0.02, and a little for the weights.
    assert np.linalg.norm(model.estimator_.coef_ - coef) < 0.05
    # An outlier with leverage may lie on the law by chance.
    off = is_outlier & (np.abs(y - X @ coef - 1) > 1)
    assert off.sum() > 20
    assert_array_equal(model.weights_[off], 0)
    assert model.converged_


@pytest.mark.parametrize(
    ("weighting", "loss"),
    [("uniform", "l21"), ("corobust", "sigma"), ("uniform", "cauchy"), ("adaptive", "huber")],
)
@pytest.mark.parametrize("seed", range(3))
def test_regression_finds_the_law_with_other_weightings_and_losses(seed, weighting, loss):
    X, y, coef, _ = planted_line(seed)
    plain = np.linalg.norm(LinearRegression().fit(X, y).coef_ - coef)
    model = Reweighted(LinearRegression(), weighting=weighting, loss=loss, max_iter=500).fit(X, y)
    assert np.linalg.norm(model.estimator_.coef_ - coef) < plain / 10


@pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_found_among_outliers(kind, seed):
    X, is_outlier = planted_clusters(seed)
    estimator = kind(3, n_init=3, random_state=0)
    assert center_error(clone(estimator).fit(X).cluster_centers_) > 30
    model = Reweighted(estimator).fit(X)
    assert center_error(model.estimator_.cluster_centers_) < 0.7
    far = np.linalg.norm(X[:, None] - CENTERS, axis=2).min(axis=1) > 5
    assert far[is_outlier].sum() > 20
    assert_array_equal(model.weights_[far], 0)


def test_clustering_starts_with_the_three_quarters_that_have_the_nearest_neighbours():
    # Five neighbours of each sample are in its own cluster: 80 within reach and 40 out of it.
    steps = np.arange(10.0)
    tight, loose = np.repeat(steps, 12), np.repeat(100 + 10 * steps, 4)
    starts = []

    class Watched(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            starts.append(sample_weight)
            return super().fit(X, y, sample_weight)

    X = np.r_[tight, loose][:, None]
    Reweighted(Watched(2, n_init=1, random_state=0), max_iter=1, tol=1.0).fit(X)
    assert_array_equal(starts[0] > 0, np.arange(160) < 120)


def test_several_targets_share_one_weight_per_sample():
    X, y, coef, is_outlier = planted_line(0, n_targets=3)
    model = Reweighted(LinearRegression()).fit(X, y)
    plain = np.linalg.norm(LinearRegression().fit(X, y).coef_ - coef)
    assert np.linalg.norm(model.estimator_.coef_ - coef) < plain / 10
    assert model.weights_.shape == (200,)
    assert_array_equal(model.weights_[is_outlier], 0)
    assert model.predict(X).shape == (200, 3)
    # The residual of a sample is the sum over its targets, so one more target of noise-free
    # zeros changes nothing.
    wider = Reweighted(LinearRegression()).fit(X, np.column_stack([y, np.zeros(200)]))
    assert_allclose(wider.estimator_.coef_[:3], model.estimator_.coef_, atol=1e-6)


def test_the_fit_is_that_of_a_textbook_loop():
    X, y, _, _ = planted_line(0)
    model = Reweighted(
        LinearRegression(), weighting="uniform", loss=L21Loss(1e-9), init="uniform", tol=1e-13,
        max_iter=5000,
    ).fit(X, y)  # fmt: skip
    D = np.column_stack([X, np.ones(200)])
    beta = np.linalg.lstsq(D, y, rcond=None)[0]
    for _ in range(5000):
        s = 1 / (2 * np.maximum(np.abs(y - D @ beta), 1e-9))
        beta = np.linalg.solve((D * s[:, None]).T @ D, (D * s[:, None]).T @ y)
    # Least absolute deviations: the objective is flat near its minimum, the coefficients less so.
    assert model.objective_[-1] == pytest.approx(np.abs(y - D @ beta).sum(), rel=1e-8)
    assert_allclose(model.estimator_.coef_, beta[:5], atol=1e-4)


def test_adaptive_weights_end_at_a_fixed_point():
    X, y, _, _ = planted_line(0)
    model = Reweighted(LinearRegression(), tol=1e-13, max_iter=1000).fit(X, y)
    t = (y - model.predict(X)) ** 2
    ordered = np.sort(t)
    margins = np.maximum(ordered[150] - t, 0)
    assert_allclose(model.weights_, margins / margins.sum(), atol=1e-10)
    again = LinearRegression().fit(X, y, sample_weight=model.weights_)
    assert_allclose(again.coef_, model.estimator_.coef_, atol=1e-9)
    assert model.n_active_ == 150 == np.count_nonzero(model.weights_)


@pytest.mark.parametrize("weighting", ["uniform", "corobust", AdaptiveNeighbors(gamma=100.0)])
@pytest.mark.parametrize("loss", ["squared", "l21", "huber", "cauchy", "sigma", "capped"])
@pytest.mark.parametrize("estimator", [LinearRegression(), KMeans(3, n_init=3, random_state=0)])
def test_the_objective_never_rises(estimator, loss, weighting):
    X, y, _, _ = planted_line(1)
    if is_clusterer(estimator):
        X = planted_clusters(1)[0]
    # A penalised estimator minimises something else, so only plain least squares is held to it.
    model = Reweighted(estimator, loss=loss, weighting=weighting, max_iter=500).fit(X, y[: len(X)])
    assert model.n_iter_ >= 1
    assert np.all(np.diff(model.objective_) <= 1e-9 * np.abs(model.objective_[:-1]))


def test_all_active_samples_give_the_plain_estimator():
    X, y, _, _ = planted_line(0)
    model = Reweighted(Ridge(2.0), weighting=AdaptiveNeighbors(1.0)).fit(X, y)
    expected = Ridge(2.0).fit(X, y)
    # Weights are scaled to mean one, so the penalty means what it means without them.
    assert_allclose(model.estimator_.coef_, expected.coef_, rtol=1e-12)
    assert_allclose(model.weights_, 1 / 200, rtol=1e-12)


def test_weights_say_how_much_each_sample_counts():
    X, y, _, is_outlier = planted_line(0)
    for weighting in ("adaptive", "corobust", "uniform"):
        model = Reweighted(LinearRegression(), weighting=weighting, loss="l21", max_iter=500)
        model.fit(X, y)
        assert model.weights_.shape == (200,)
        assert model.weights_.min() >= 0
        assert model.weights_.sum() == pytest.approx(1, rel=1e-12)
        assert model.n_active_ == np.count_nonzero(model.weights_)
        assert model.weights_[is_outlier].max() < np.median(model.weights_[~is_outlier]) + 1e-15
        assert len(model.objective_) == model.n_iter_ + 1


def test_weightings_and_losses_take_parameters_as_objects():
    X, y, _, _ = planted_line(0)
    model = Reweighted(Ridge(), weighting=AdaptiveNeighbors(60), max_iter=1000).fit(X, y)
    assert model.n_active_ == 60
    model = Reweighted(Ridge(), weighting=CoRobust(0.01), loss="sigma", max_iter=500).fit(X, y)
    assert model.weights_.max() <= 0.01 * (1 + 1e-9)
    model = Reweighted(Ridge(), weighting="uniform", loss=CappedLoss(1.0)).fit(X, y)
    assert_array_equal(model.weights_ == 0, np.abs(y - model.predict(X)) > 1.0)


def test_sparse_features_are_taken_as_they_are():
    X, y, coef, _ = planted_line(0)
    X[np.abs(X) < 0.5] = 0
    y = X @ coef + 1
    y[:30] += 20
    model = Reweighted(LinearRegression()).fit(sparse.csr_matrix(X), y)
    assert_allclose(model.estimator_.coef_, coef, atol=1e-6)
    assert_array_equal(model.weights_[:30], 0)
    assert_allclose(model.predict(sparse.csr_matrix(X)), model.predict(X), atol=1e-12)


def test_features_that_overflow_in_single_precision_are_refused(rng):
    X = 1e11 * rng.poisson(0.5, size=(25, 5))
    y = X[:, 0] / 1e11
    with pytest.raises(ValueError, match=r"Ridge overflows on X, which is float32 .* use float64"):
        Reweighted(Ridge()).fit(sparse.csr_matrix(X.astype(np.float32)), y)
    assert np.allclose(Reweighted(Ridge()).fit(sparse.csr_matrix(X), y).predict(X), y)


def test_features_that_overflow_in_double_precision_are_refused(rng):
    X = 1e80 * rng.poisson(0.5, size=(25, 5))
    with pytest.raises(ValueError, match=r"Ridge overflows on X, .* float64 .*: divide X by that"):
        Reweighted(Ridge()).fit(sparse.csr_matrix(X), X[:, 0] / 1e80)


def test_predictions_that_are_no_numbers_are_refused():
    X = 1e9 * np.ones((9, 1), dtype=np.float32)
    X[0] = 1e17
    with pytest.raises(ValueError, match="Ridge predicts NaN or infinity for X, which is float32"):
        Reweighted(Ridge(), weighting="uniform").fit(sparse.csr_matrix(X), np.arange(9) % 2)


def test_it_is_what_its_estimator_is():
    assert is_regressor(Reweighted(Ridge()))
    assert is_clusterer(Reweighted(KMeans(3)))
    assert not hasattr(Reweighted(Ridge()), "transform")
    assert not hasattr(Reweighted(Ridge()), "fit_predict")
    with pytest.raises(NotFittedError):
        Reweighted(Ridge()).predict([[1.0]])


def test_it_leaves_its_estimator_alone_and_can_be_cloned_and_pickled():
    X, y, _, _ = planted_line(0)
    inner = Ridge(0.1)
    model = Reweighted(inner, weighting=AdaptiveNeighbors(0.6), tol=1e-5).fit(X, y)
    assert not hasattr(inner, "coef_")
    assert model.estimator_ is not inner
    fresh = clone(model)
    assert not hasattr(fresh, "estimator_")
    assert fresh.get_params()["estimator__alpha"] == 0.1
    assert fresh.weighting == AdaptiveNeighbors(0.6)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict(X), model.predict(X))
    assert_array_equal(fresh.fit(X, y).weights_, model.weights_)


def test_it_works_in_a_pipeline_and_a_grid_search():
    X, y, _, is_outlier = planted_line(0)
    pipe = make_pipeline(StandardScaler(), PCA(5), Reweighted(Ridge()))
    clean = ~is_outlier
    assert pipe.fit(X, y).score(X[clean], y[clean]) > 0.99
    assert make_pipeline(StandardScaler(), Ridge()).fit(X, y).score(X[clean], y[clean]) < 0
    search = GridSearchCV(Reweighted(Ridge()), {"estimator__alpha": [1e-3, 1e6]}, cv=3).fit(X, y)
    assert search.cv_results_["params"][0] == {"estimator__alpha": 1e-3}
    grown = make_pipeline(StandardScaler(), Reweighted(KMeans(3, n_init=3, random_state=0)))
    X, _ = planted_clusters(0)
    assert grown.fit(X).transform(X).shape == (210, 3)
    assert_array_equal(grown.predict(X), grown[-1].labels_)
    assert_array_equal(clone(grown).fit_predict(X), grown[-1].labels_)


def test_score_and_transform_are_those_of_the_estimator():
    X, y, _, _ = planted_line(0)
    model = Reweighted(Ridge()).fit(X, y)
    assert model.score(X, y) == model.estimator_.score(X, y)
    X, _ = planted_clusters(0)
    model = Reweighted(KMeans(3, n_init=3, random_state=0))
    assert_array_equal(model.fit_transform(X), model.estimator_.transform(X))
    assert_array_equal(model.labels_, model.estimator_.predict(X))


def test_frames_keep_their_names():
    pd = pytest.importorskip("pandas")
    X, y, _, _ = planted_line(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = Reweighted(Ridge()).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert_allclose(model.predict(frame), Reweighted(Ridge()).fit(X, y).predict(X), rtol=1e-12)


class Weightless(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Centreless(DBSCAN):
    """Takes sample weights and has no centres; DBSCAN itself cannot predict."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            LogisticRegression(),
            "takes a regressor or a clusterer, but LogisticRegression is neither",
        ),
        (Weightless(), r"needs sample_weight, but Weightless.fit does not take it"),
        (KNeighborsRegressor(), r"needs sample_weight, but KNeighborsRegressor.fit does not take"),
        (Centreless(eps=3.0), "needs cluster_centers_, but Centreless has none"),
    ],
)
def test_estimators_that_cannot_be_reweighted_are_refused(estimator, message):
    X, y, _, _ = planted_line(0)
    with pytest.raises(TypeError, match=message):
        Reweighted(estimator).fit(X, y > 0)


@pytest.mark.parametrize("estimator", [DBSCAN(), AgglomerativeClustering()])
def test_clusterers_that_cannot_predict_are_refused(estimator):
    with pytest.raises((TypeError, ValueError), match="predict"):
        Reweighted(estimator).fit(planted_clusters(0)[0])


@pytest.mark.parametrize(
    "wrong",
    [{"weighting": "some"}, {"loss": "l3"}, {"init": "pca"}, {"tol": -1.0}, {"max_iter": 0}],
)
def test_wrong_parameters_are_named(wrong):
    X, y, _, _ = planted_line(0)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Reweighted(Ridge(), **wrong).fit(X, y)


def test_a_callback_sees_every_fit_and_can_stop_it():
    X, y, _, _ = planted_line(0)
    seen = []
    model = Reweighted(Ridge(), callback=seen.append).fit(X, y)
    assert [info.iteration for info in seen] == list(range(1, model.n_iter_ + 1))
    assert_array_equal([info.objective for info in seen], model.objective_[1:])
    assert seen[-1].n_active == model.n_active_
    assert seen[-1].change <= model.tol

    def stop(info):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Reweighted(Ridge(), callback=stop).fit(X, y)


def test_verbose_prints_a_line_per_fit(capsys):
    X, y, _, _ = planted_line(0)
    model = Reweighted(Ridge(), verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[0].startswith("[Reweighted] fit 1: objective ")
    assert lines[-1].endswith("150 active")
    Reweighted(Ridge()).fit(X, y)
    assert capsys.readouterr().out == ""


def test_a_loop_that_is_cut_short_says_what_to_change():
    X, y, _, _ = planted_line(0)
    wanted = (
        r"Reweighted\(Ridge\) stopped after max_iter=2 fits with a change of .*, above tol=1.0e-15"
    )
    with pytest.warns(ConvergenceWarning, match=wanted):
        model = Reweighted(Ridge(), max_iter=2, tol=1e-15).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 2
