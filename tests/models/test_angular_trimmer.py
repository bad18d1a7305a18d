"""The trimming of TAE before other estimators."""

import numpy as np
import pytest
from sklearn.base import is_outlier_detector
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from robustpca import AngularEmbedding, AngularTrimmer
from robustpca.metrics import principal_angles


@pytest.fixture
def line(rng):
    """Ninety rows along a line, the last of them far out, and ten that point elsewhere."""
    along = np.outer(rng.normal(size=90) + 3, [3.0, 4.0, 0.0]) + 0.1 * rng.normal(size=(90, 3))
    along[-1] *= 20
    away = np.outer(rng.normal(size=10) + 8, [0.0, 0.0, 30.0]) + rng.normal(size=(10, 3))
    return np.vstack([along, away])


def test_rows_that_point_elsewhere_are_left_out_and_far_ones_stay(line):
    model = AngularTrimmer(center="zero").fit(line)
    assert model.support_.tolist() == 90 * [True] + 10 * [False]
    assert model.predict(line).tolist() == 90 * [1] + 10 * [-1]
    assert model.n_trimmed_ == 10
    assert model.anchor_ < 90
    assert model.estimator_ is None
    assert is_outlier_detector(model)
    assert not hasattr(model, "transform")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("angle", [0.3, 1.05])
def test_it_trims_as_angular_embedding_does(line, angle, dtype):
    X = line.astype(dtype)
    model = AngularTrimmer(max_angle=angle).fit(X)
    embedding = AngularEmbedding(1, max_angle=angle).fit(X)
    assert np.array_equal(model.support_, embedding.support_)
    assert model.anchor_ == embedding.anchor_
    assert np.array_equal(model.predict(X) == 1, model.support_)
    assert model.score_samples(X).dtype == dtype
    assert model.direction_ @ model.direction_ == pytest.approx(1)


def test_any_estimator_is_fitted_to_the_rest(line):
    truth = np.array([[0.6, 0.8, 0.0]])
    model = AngularTrimmer(PCA(1), center="zero").fit(line)
    alone = PCA(1).fit(line)
    assert principal_angles(model.estimator_.components_, truth)[0] < 0.02
    assert principal_angles(alone.components_, truth)[0] > 1
    assert model.transform(line).shape == (100, 1)
    assert model.inverse_transform(model.transform(line)).shape == line.shape
    assert (
        len(AngularTrimmer(KMeans(2, n_init=1, random_state=0)).fit(line).estimator_.labels_) < 100
    )
    targets = line @ [1.0, 2.0, 0.0]
    targets[90:] += 1e4
    fitted = AngularTrimmer(LinearRegression(), center="zero").fit(line, targets).estimator_
    assert fitted.coef_[:2] == pytest.approx([1, 2])
    pipeline = make_pipeline(StandardScaler(with_mean=False), AngularTrimmer(PCA(1)))
    assert pipeline.fit_transform(line).shape == (100, 1)


def test_nothing_is_trimmed_at_a_right_angle_nor_at_the_centre(line):
    model = AngularTrimmer(max_angle=np.pi / 2).fit(line)
    assert model.support_.all()
    assert model.anchor_ is None
    assert (model.predict(line) == 1).all()
    centred = AngularTrimmer(center="zero").fit(np.vstack([line, np.zeros(3)]))
    assert centred.support_[-1]
    assert centred.predict(np.zeros((1, 3))) == 1


def test_a_fit_that_fails_leaves_the_old_one(line):
    class Broken(KMeans):
        def fit(self, X, y=None):
            raise KeyboardInterrupt

    model = AngularTrimmer(center="zero").fit(line)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.set_params(estimator=Broken(2)).fit(line[::-1])
    after = vars(model) | {"estimator": None}
    assert all(after[name] is before[name] for name in before)
