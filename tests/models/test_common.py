"""Laws that hold for every method of the library, found by discovery: no edit for a new one."""

import inspect
import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import robustpca
from robustpca import Reweighted
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance
from robustpca.models import all_estimators, all_methods

METHODS = all_methods()
ITERATIVE = [name for name, method in METHODS.items() if "max_iter" in method().get_params()]
IMAGE_SHAPE = (6, 5)

# The reason why a method is exempt from a law.
NOT_SHIFTED = {
    "GLRAM": "leaves the images uncentred, as its paper does",
    "RPCA": "takes a constant shift for one more direction of the low-rank part",
    "RPCAG": "takes a constant shift for one more direction of the low-rank part",
}
NOT_ROTATED = {
    name: "turns rows and columns of images, not all features at once"
    for name, method in METHODS.items()
    if "image_shape" in inspect.signature(method).parameters
}
NOT_ROTATED |= dict.fromkeys(
    ("RPCA", "RPCAG", "FRPCAG"), "looks at single entries, which a rotation mixes"
)
NOT_ROTATED |= {
    "GrassmannAverage": "trims every feature by itself, and a rotation mixes them",
    "RSPCA": "looks for directions with few features, and a rotation mixes them",
}
NOT_ORTHONORMAL = {"RSPCA": "sparse directions are not at right angles"}
NOT_IDEMPOTENT = {
    "RPCA": "projects the low-rank part of a row, which may have more directions than are kept",
    "RPCAG": "ties a row to other training rows once it has moved",
    "FRPCAG": "smooths what it has smoothed once more",
}
BY_PROJECTION = {
    "FRPCAG": "draws rows inwards along the subspace, and that is no distance to it",
}
WITHIN_TOLERANCE = dict.fromkeys(
    ("RPCA", "RPCAG"), "ends anywhere within its tolerance of the optimum"
)
WITHIN_TOLERANCE |= {
    "EMPCA": "ends anywhere within its tolerance of PCA",
    "EMAngularEmbedding": "ends anywhere within its tolerance of angular embedding",
}
PER_COMPONENT = dict.fromkeys(
    ("GrassmannAverage", "L1PCA", "LpPCA", "RSPCA"), "finds its components one by one"
)
TAKES_NAN = {name for name, method in METHODS.items() if method()._allow_nan}


def make(name, n_components=3, **settings):
    """A method of that name; image methods get images of six by five."""
    method = METHODS[name]
    if name in WITHIN_TOLERANCE:
        settings = {"tol": 1e-9, "max_iter": 10_000, **settings}
    if "image_shape" in inspect.signature(method).parameters:
        return method((n_components, 2), image_shape=IMAGE_SHAPE, **settings)
    return method(n_components, **settings)


def weights_of(model):
    """Weights of the samples; those of a method that has none are all the same."""
    return getattr(model, "weights_", np.ones(model.n_samples_))


def planted():
    rng = np.random.default_rng(0)
    return planted_subspace(rng, 120, 30, 3, n_outliers=12, noise=0.05)[0]


@pytest.fixture
def rng():
    """Not the numbers that the data are made of."""
    return np.random.default_rng(1)


@pytest.fixture(name="X")
def planted_rows():
    return planted()


@cache
def fitted(name):
    """A method fitted to ``X``, for tests that leave it as it is."""
    return make(name).fit(planted())


def every_method(*exempt):
    return pytest.mark.parametrize("name", [name for name in METHODS if name not in exempt])


every_loop = pytest.mark.parametrize("name", ITERATIVE)


def test_discovery_finds_the_methods():
    assert {"EPCA", "GLRAM", "PCAAN", "PCAOM", "R1PCA", "R2DPCA"} <= METHODS.keys()
    assert all(getattr(robustpca, name) is method for name, method in METHODS.items())


def checked_estimators():
    for name, kind in all_estimators().items():
        if name == "Reweighted":
            yield Reweighted(Ridge())
            clusters = KMeans(3, n_init=2, random_state=0)
            yield Reweighted(clusters, max_iter=5)
            yield pytest.param(Reweighted(clusters), marks=pytest.mark.slow)
        elif name == "RGLPCA":
            yield kind(max_iter=10)  # the checks fit noise, which takes it hundreds of passes
            yield pytest.param(kind(), marks=pytest.mark.slow)
        else:
            yield kind()


@pytest.mark.parametrize("estimator", list(checked_estimators()), ids=repr)
def test_scikit_learn_finds_nothing_to_complain_about(estimator):
    with warnings.catch_warnings():
        # The checks fit pure noise with as many components as features, in very few passes.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    by_status = {status: {} for status in ("passed", "failed", "skipped")}
    for result in results:
        by_status[result["status"]][result["check_name"]] = result["exception"]
    assert by_status["failed"] == {}
    # This one is for arrays that are not NumPy's, and needs SCIPY_ARRAY_API in the environment.
    assert by_status["skipped"].keys() <= {"check_array_api_input"}
    assert len(by_status["passed"]) > 40


@every_method()
def test_the_fitted_contract_is_complete(name, X):
    model = fitted(name)
    c, (n, d) = model.n_components_, X.shape
    assert model.components_.shape == (c, d)
    assert model.mean_.shape == (d,)
    for values in (
        model.explained_variance_,
        model.explained_variance_ratio_,
        model.singular_values_,
    ):
        assert values.shape == (c,)
        assert (values >= 0).all()
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-12
    np.testing.assert_allclose(model.singular_values_**2, model.explained_variance_ * (n - 1))
    if hasattr(model, "weights_"):
        assert model.weights_.shape == (n,)
        assert model.weights_.min() >= 0
        assert model.weights_.sum() == pytest.approx(1)
    if name in ITERATIVE:
        assert model.n_iter_ + 1 == len(model.objective_)
    assert model.converged_
    assert list(model.get_feature_names_out()) == [f"{name.lower()}{i}" for i in range(c)]


@every_method()
def test_components_are_orthonormal_and_their_largest_entry_is_positive(name):
    components = fitted(name).components_
    products = components @ components.T
    if name in NOT_ORTHONORMAL:
        products = np.diag(np.diag(products))
    np.testing.assert_allclose(products, np.eye(len(components)), atol=1e-12)
    largest = np.abs(components).argmax(axis=1)
    assert (components[np.arange(len(components)), largest] > 0).all()


@every_method()
def test_reconstruction_is_a_projection(name, X):
    model = fitted(name)
    once = model.reconstruct(X)
    if name not in NOT_IDEMPOTENT:
        np.testing.assert_allclose(model.reconstruct(once), once, atol=1e-11)
    nearest = once
    if name in BY_PROJECTION:
        axes = model.components_
        nearest = model.mean_ + (X - model.mean_) @ axes.T @ axes
    np.testing.assert_allclose(
        model.orthogonal_distances(X), np.linalg.norm(X - nearest, axis=1), atol=1e-10
    )
    np.testing.assert_array_equal(make(name).fit_transform(X), model.transform(X))


@every_method(*NOT_SHIFTED)
def test_shifting_the_data_moves_the_mean_alone(name, X):
    shift = np.linspace(-5, 5, X.shape[1])
    still, moved = fitted(name), make(name).fit(X + shift)
    np.testing.assert_allclose(moved.mean_, still.mean_ + shift, atol=1e-6)
    np.testing.assert_allclose(moved.components_, still.components_, atol=1e-6)
    np.testing.assert_allclose(weights_of(moved), weights_of(still), atol=1e-6)


@every_method(*NOT_ROTATED)
def test_rotating_the_data_rotates_the_components(name, X, rng):
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    still, turned = fitted(name), make(name).fit(X @ rotation)
    assert subspace_distance(turned.components_, still.components_ @ rotation) < 1e-6
    np.testing.assert_allclose(turned.mean_, still.mean_ @ rotation, atol=1e-6)


@every_method()
def test_scaling_the_data_changes_nothing_but_units(name, X):
    small, large = fitted(name), make(name).fit(1000 * X)
    np.testing.assert_allclose(large.components_, small.components_, atol=1e-6)
    np.testing.assert_allclose(large.mean_, 1000 * small.mean_, atol=1e-3)
    np.testing.assert_allclose(weights_of(large), weights_of(small), atol=1e-6)
    np.testing.assert_array_equal(large.predict(1000 * X), small.predict(X))


@pytest.mark.parametrize("factor", [1e-99, 1e-30, 1e30, 1e97])
@every_method()
def test_extreme_units_change_nothing(name, factor, X):
    model = make(name).fit(factor * X)
    assert subspace_distance(model.components_, fitted(name).components_) < 1e-6
    np.testing.assert_array_equal(model.predict(factor * X), fitted(name).predict(X))


@pytest.mark.filterwarnings(
    "ignore:EM\\w+ stopped after max_iter:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("factor", [1.0, 1e-90, 1e30])
@every_method(*NOT_SHIFTED)
def test_an_extreme_offset_costs_half_of_the_digits(name, factor, X):
    # Rounding may decide whether PCAAN takes another pass, which changes more: it takes them all.
    exact = {"tol": 0.0} if name == "PCAAN" else {}
    # Rounding is more than the tolerance of EM, which takes as many passes as it may.
    exact |= {"max_iter": 500} if name.startswith("EM") else {}
    model, still = make(name, **exact).fit(factor * (X + 1e8)), make(name, **exact).fit(X)
    assert subspace_distance(model.components_, still.components_) < 1e-6


@pytest.mark.parametrize(
    ("dtype", "size"), [("f4", 1e-30), ("f4", 1e30), ("f8", 1e-160), ("f8", 1e160)]
)
@every_method()
def test_units_whose_squares_overflow_or_vanish_are_refused(name, dtype, size, X):
    with pytest.raises(ValueError, match=r"overflow or vanish.*: divide X by"):
        make(name).fit((size * X).astype(dtype))


# What is left of such data may well have trivial parts.
@pytest.mark.filterwarnings("ignore:RPCAG?. low_rank_ is zero and sparse_ is the data")
@every_method()
def test_an_offset_beside_which_single_precision_holds_nothing_is_told(name, X):
    with pytest.warns(UserWarning, match="columns of X lie so far from zero that float32 holds"):
        make(name).fit((X + 1e8).astype(np.float32))


@every_method()
def test_shuffling_the_samples_shuffles_the_weights_alone(name, X, rng):
    order = rng.permutation(len(X))
    # With the start of plain PCA nothing is drawn, so nothing depends on the order.
    draws = {"init", "random_state"} <= METHODS[name]().get_params().keys()
    init = {"init": "pca"} if draws else {}
    first, second = make(name, **init).fit(X), make(name, **init).fit(X[order])
    np.testing.assert_allclose(second.components_, first.components_, atol=1e-6)
    np.testing.assert_allclose(weights_of(second), weights_of(first)[order], atol=1e-6)


@every_method()
def test_float32_stays_float32(name, X):
    single, double = make(name).fit(X.astype(np.float32)), fitted(name)
    for attribute in ("components_", "mean_", "explained_variance_", "singular_values_"):
        assert getattr(single, attribute).dtype == np.float32, attribute
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.reconstruct(X.astype(np.float32)).dtype == np.float32
    # The threshold of rounding error is 1e-6 here, and the objective is flat at its minimum.
    assert subspace_distance(single.components_, double.components_) < 1e-3


@every_method()
def test_how_the_data_are_stored_does_not_matter(name, X):
    X = np.round(10 * X)
    expected = make(name).fit(X)
    for stored in (
        np.asfortranarray(X),
        np.frombuffer(X.tobytes()).reshape(X.shape),  # read-only
        X.astype(np.int32),
        pytest.importorskip("pandas").DataFrame(X).add_prefix("x"),
        np.repeat(X, 2, axis=1)[:, ::2],
    ):
        model = make(name).fit(stored)
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-8)
        np.testing.assert_allclose(model.transform(stored), expected.transform(X), atol=1e-6)


@every_method()
def test_the_input_is_never_modified(name, X):
    before = X.copy()
    model = make(name).fit(X)
    model.predict(X)
    model.reconstruct(X)
    np.testing.assert_array_equal(X, before)


@every_method()
def test_dask_and_numpy_agree_to_the_last_bit(name, X):
    da = pytest.importorskip("dask.array")
    here, there = fitted(name), make(name).fit(da.from_array(X, chunks=(50, -1)))
    np.testing.assert_array_equal(here.components_, there.components_)
    np.testing.assert_array_equal(here.transform(X), there.transform(X))
    if name in ITERATIVE:
        np.testing.assert_array_equal(here.objective_, there.objective_)


@every_method()
def test_outliers_are_flagged_in_training_and_new_rows(name, X, rng):
    model = fitted(name)
    far = model.mean_ + 1e3 * rng.normal(size=(5, X.shape[1]))
    assert (model.predict(far) == -1).all()
    assert (model.score_samples(far) < -1).all()
    assert set(model.predict(X)) <= {-1, 1}
    scores, flags = model.score_samples(X), model.predict(X)
    np.testing.assert_array_equal(flags, np.where(scores < -1, -1, 1))
    # Far beyond one of the cutoffs a row is an outlier, whatever its other distance.
    beyond = model.orthogonal_distances(X) > 2 * model.orthogonal_cutoff_
    beyond |= model.score_distances(X) > 2 * model.score_cutoff_
    assert (flags[beyond] == -1).all()


@every_method()
def test_contamination_is_the_share_of_training_rows_that_are_flagged(name, X):
    plain = fitted(name)
    assert plain.offset_ == -1
    np.testing.assert_array_equal(plain.decision_function(X), plain.score_samples(X) + 1)
    np.testing.assert_array_equal(make(name).fit_predict(X), plain.predict(X))
    model = make(name, contamination=0.25)
    flags = model.fit_predict(X)
    assert np.count_nonzero(flags == -1) == 30
    np.testing.assert_array_equal(model.score_samples(X), plain.score_samples(X))
    worst = np.argsort(model.score_samples(X))[:30]
    assert (flags[worst] == -1).all()
    for share in (0.0, 0.6, "many"):
        with pytest.raises(ValueError, match="contamination"):
            make(name, contamination=share).fit(X)


@pytest.mark.parametrize("stored", ["memmap", "dask", "sparse"])
def test_contamination_is_the_same_however_rows_are_stored(stored, X, tmp_path):
    X = np.round(X)
    if stored == "memmap":
        rows = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
        rows[:] = X
    elif stored == "dask":
        rows = pytest.importorskip("dask.array").from_array(X, chunks=(50, -1))
    else:
        rows = sparse.csr_array(X)
    expected = make("EPCA", contamination=0.1).fit(X)
    model = make("EPCA", contamination=0.1).fit(rows)
    assert model.offset_ == pytest.approx(expected.offset_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(rows), expected.predict(X))


@every_method()
def test_works_in_pipelines_searches_clones_and_pickles(name, X):
    model = make(name)
    pipeline = make_pipeline(StandardScaler(), model).fit(X)
    assert pipeline.transform(X).shape == (len(X), pipeline[-1].n_components_)
    search = GridSearchCV(clone(model), {"n_components": [1, model.n_components]}, cv=2).fit(X)
    assert np.isfinite(search.best_score_)
    again = pickle.loads(pickle.dumps(fitted(name)))
    np.testing.assert_array_equal(again.transform(X), fitted(name).transform(X))


@every_method()
def test_pandas_output_has_the_names_and_the_index(name, X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, index=[f"row {i}" for i in range(len(X))]).add_prefix("x")
    model = make(name).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert list(out.index) == list(frame.index)
    assert list(model.feature_names_in_) == list(frame.columns)


@every_loop
def test_the_callback_hears_of_every_pass(name, X):
    heard = []
    model = make(name, callback=heard.append).fit(X)
    counted = [info for info in heard if info.counted]
    assert [info.iteration for info in counted] == list(range(1, model.n_iter_ + 1))
    np.testing.assert_array_equal([info.objective for info in counted], model.objective_[1:])


@every_loop
def test_verbose_prints_a_line_a_pass(name, X, capsys):
    model = make(name, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    others = [line for line in lines if line.endswith((", noise", ", refit"))]
    assert len(lines) - len(others) == model.n_iter_
    assert not others or name in ("RPCA", "RPCAG")
    assert all(line.startswith(f"[{name}] pass ") for line in lines)


@every_loop
def test_an_interrupt_ends_the_fit_and_leaves_the_data_alone(name, X):
    def interrupt(info):
        raise KeyboardInterrupt

    before = X.copy()
    model = make(name, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    np.testing.assert_array_equal(X, before)
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert model.set_params(callback=None).fit(X).converged_
    # Half of a second fit in the place of the first would be worse than nothing.
    model.set_params(callback=interrupt)
    first = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X + 1)
    assert all(vars(model)[name] is value for name, value in first.items())


@every_loop
def test_stopping_early_names_the_knobs(name, X):
    with pytest.warns(ConvergenceWarning, match=rf"{name} stopped after max_iter=1 passes.*tol="):
        model = make(name, max_iter=1, tol=0.0).fit(X)
    assert not model.converged_
    assert model.n_iter_ == (model.n_components_ if name in PER_COMPONENT else 1)


BAD = {
    "NaN": (lambda X: np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X), "NaN"),
    "infinity": (lambda X: np.where(np.arange(X.size).reshape(X.shape) == 7, np.inf, X), "inf"),
    "one sample": (lambda X: X[:1], "1 sample"),
    "no sample": (lambda X: X[:0], "0 sample"),
    "no feature": (lambda X: X[:, :0], "0 feature"),
    "one dimension": (lambda X: X[0], "Expected 2D array"),
    "three dimensions": (lambda X: X.reshape(-1, *IMAGE_SHAPE), r"X\.reshape\(120, -1\)"),
    "complex": (lambda X: X + 1j, "Complex data not supported"),
    "words": (lambda X: np.full(X.shape, "word"), "not compatible with arrays of bytes/strings"),
    "objects": (lambda X: np.full(X.shape, {}, dtype=object), "dict"),
}


@every_method()
def test_bad_input_is_refused_in_words(name, X):
    taken = {"NaN"} if name in TAKES_NAN else set()
    if name == "GLRAM":
        taken.add("one sample")  # which has a truncated singular value decomposition
    for kind in BAD.keys() - taken:
        spoil, words = BAD[kind]
        with pytest.raises((ValueError, TypeError), match=words):
            make(name).fit(spoil(X))


@every_method()
def test_too_many_components_are_refused_with_the_numbers(name, X):
    with pytest.raises(ValueError, match=r"n_components=.*is more than.*choose at most"):
        make(name, n_components=31).fit(X)


@every_method()
def test_new_rows_of_another_width_are_refused_with_the_numbers(name, X):
    model = fitted(name)
    with pytest.raises(ValueError, match=f"X has 10 features, but {name} is expecting 30"):
        model.transform(X[:, :10])
    with pytest.raises(
        ValueError, match=rf"takes scores of shape \(n_samples, {model.n_components_}\)"
    ):
        model.inverse_transform(X)


def test_methods_by_blocks_never_ask_for_all_rows_and_the_others_do(X, monkeypatch):
    class AskedForAllError(Exception):
        pass

    def whole(rows):
        raise AskedForAllError

    monkeypatch.setattr(ArrayRows, "whole", whole)
    asked = set()
    for name in METHODS:
        try:
            make(name).fit(X)
        except AskedForAllError:
            asked.add(name)
    others = {name for name, method in METHODS.items() if not method._by_blocks}
    # Trimmed means take the rows feature by feature, but all of them.
    assert asked == others - {"GrassmannAverage"}
