"""Models in files: the same to the last bit, refused when spoiled, and never run."""

import hashlib
import io
import json
import warnings
import zipfile
from dataclasses import fields, is_dataclass

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

import robustpca
from robustpca import PCAAN, Reweighted, ReweightedPCA, load, save
from robustpca.models import all_estimators
from robustpca.models.saving import Saved
from robustpca.parts.losses import HuberLoss, SquaredLoss

ESTIMATORS = all_estimators()
ASKED = ("transform", "predict", "decompose", "score_samples", "reconstruct", "predict_proba")


def fitted(name, rng, dtype=np.float64):
    """A fitted model and new rows for it."""
    X = rng.uniform(size=(40, 3)) @ rng.uniform(size=(3, 12)) + 0.01 * rng.uniform(size=(40, 12))
    X[3, 4] = 50
    X = X.astype(dtype)
    model = ESTIMATORS[name](*([LinearRegression()] if name == "Reweighted" else []))
    if "image_shape" in model.get_params():
        model.set_params(image_shape=(3, 4), n_components=(2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on the end of loops
        return model.fit(X, np.arange(40) % 3), X[:5] * dtype(1.25)


def assert_same(first, second):
    """Equal to the last bit, through objects and containers."""
    assert type(first) is type(second)
    if sparse.issparse(first):
        parts = ("data", "indices", "indptr", "shape")
        first, second = ([getattr(each, part) for part in parts] for each in (first, second))
    if is_dataclass(first):
        names = [field.name for field in fields(first)]
        first, second = ({name: getattr(each, name) for name in names} for each in (first, second))
    elif isinstance(first, BaseEstimator):
        first, second = vars(first), vars(second)
    if isinstance(first, dict):
        assert list(first) == list(second)
        first, second = list(first.values()), list(second.values())
    if isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_same(one, other)
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second, strict=True)
    else:
        assert first == second or first != first


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_comes_back_to_the_last_bit(name, rng, tmp_path):
    model, new = fitted(name, rng)
    model.save(tmp_path / "a.rpca")
    again = load(tmp_path / "a.rpca")
    assert_same(model, again)
    for method in ASKED:
        if hasattr(model, method):
            assert_same(getattr(model, method)(new), getattr(again, method)(new))
    model.save(tmp_path / "b.rpca")
    assert (tmp_path / "a.rpca").read_bytes() == (tmp_path / "b.rpca").read_bytes()


@pytest.mark.parametrize("name", ["PCAAN", "RPCA"])
def test_single_precision_stays(name, rng, tmp_path):
    model, new = fitted(name, rng, np.float32)
    model.save(tmp_path / "a.rpca")
    assert_same(model.transform(new), load(tmp_path / "a.rpca").transform(new))
    assert model.components_.dtype == np.float32


def test_parameters_of_all_kinds_come_back(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.normal(size=(30, 4)), columns=list("wxyz"))
    model = ReweightedPCA(2, loss=HuberLoss(1.5), random_state=np.random.RandomState(3))
    model.callback = lambda progress: None
    model.set_output(transform="pandas").fit(X).save(tmp_path / "a.rpca")
    again = load(tmp_path / "a.rpca")
    assert list(again.feature_names_in_) == list("wxyz")
    assert again.loss == model.loss
    assert again.callback is None
    assert again.random_state.uniform() == model.random_state.uniform()
    pandas.testing.assert_frame_equal(model.transform(X), again.transform(X))


def test_wrapped_estimators_of_scikit_learn_come_back(rng, tmp_path):
    X = rng.normal(size=(30, 2)) + 9 * (np.arange(30) % 2)[:, None]
    model = Reweighted(KMeans(2, n_init=1, random_state=0)).fit(X)
    model.save(tmp_path / "a.rpca")
    np.testing.assert_array_equal(load(tmp_path / "a.rpca").predict(X), model.predict(X))

    def older(header):
        header["versions"]["scikit-learn"] = "1.0"

    with pytest.warns(InconsistentVersionWarning, match="KMeans from version 1.0"):
        load(altered(tmp_path / "a.rpca", older))


def test_pipelines_with_preprocessors_come_back(rng, tmp_path):
    X = rng.normal(size=(30, 4)) * [1, 10, 100, 1000]
    model = make_pipeline(RobustScaler(), PCAAN(2)).fit(X)
    save(model, tmp_path / "a.rpca")
    np.testing.assert_array_equal(load(tmp_path / "a.rpca").transform(X), model.transform(X))
    with pytest.raises(NotFittedError):
        save(make_pipeline(RobustScaler(), PCAAN(2)), tmp_path / "b.rpca")


class Mine(SquaredLoss):
    """A loss of the user."""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": Mine()}, r"ReweightedPCA\.loss is a Mine of .*, which is not saved"),
        ({"verbose": print}, r"ReweightedPCA\.verbose is a builtin_function_or_method"),
    ],
)
def test_what_is_neither_data_nor_ours_is_refused(rng, tmp_path, change, words):
    model = ReweightedPCA(2).fit(rng.normal(size=(20, 4)))
    for name, value in change.items():
        setattr(model, name, value)
    with pytest.raises(TypeError, match=words):
        model.save(tmp_path / "a.rpca")
    assert list(tmp_path.iterdir()) == []


def test_trees_of_scikit_learn_are_refused(rng, tmp_path):
    X = rng.normal(size=(20, 2))
    model = Reweighted(RandomForestRegressor(2, random_state=0), max_iter=50).fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"tree_ is a Tree of sklearn\.tree.*Use joblib"):
        model.save(tmp_path / "a.rpca")


def test_files_are_not_replaced_unasked_and_fits_are_needed(rng, tmp_path):
    model, _ = fitted("PCAAN", rng)
    model.save(tmp_path / "a.rpca")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(tmp_path / "a.rpca")
    model.save(tmp_path / "a.rpca", overwrite=True)
    with pytest.raises(NotFittedError):
        PCAAN().save(tmp_path / "b.rpca")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load(tmp_path / "b.rpca")
    assert [path.name for path in tmp_path.iterdir()] == ["a.rpca"]


@pytest.fixture
def path(rng, tmp_path):
    fitted("RPCA", rng)[0].save(tmp_path / "a.rpca")
    return tmp_path / "a.rpca"


def altered(path, change):
    """The file after a change of its tree, with a checksum that is right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["model.json"])
    change(header)
    members["model.json"] = json.dumps(header).encode()
    members["sha256"] = hashlib.sha256(members["model.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_damaged_files_are_refused_in_a_sentence(path, rng):
    whole, model = path.read_bytes(), load(path)
    messages = []
    for _ in range(100):
        spoiled = bytearray(whole)
        place = rng.integers(len(whole))
        spoiled[place] ^= 1 << rng.integers(8)
        path.write_bytes(spoiled if rng.uniform() < 0.7 else whole[:place])
        try:
            assert_same(model, load(path))  # the archive has bytes that nobody reads
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 75
    assert all(text.startswith(str(path)) and text.count(". ") == 0 for text in messages)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda header: header.update(version=2), "is of version 2, .* install a newer robustpca"),
        (lambda header: header.update(format="other"), "is no model of this library"),
        (lambda header: header["arrays"].append("0" * 64), "an array of it lacks"),
        (lambda header: header["arrays"].__setitem__(0, "0" * 64), "does not have the checksum"),
        (lambda header: header["model"].update({"class": "os:system"}), "class, 'os:system'"),
        (
            lambda header: header["model"].update({"class": "robustpca.models.base:warn"}),
            "unknown class",
        ),
        (
            lambda header: header.update(model=[1, 2]),
            "holds no estimator",
        ),
        (
            lambda header: header["model"]["attributes"]["_decomposition"]["fields"].pop("units"),
            "a RefittedDecomposition with other fields than this version",
        ),
        (
            lambda header: header["model"]["attributes"].update(tol={"kind": "code", "text": "1"}),
            "values of an unknown kind, 'code'",
        ),
        (
            lambda header: header["model"]["attributes"].update(tol={"kind": "array", "array": 99}),
            "is no model that can be understood",
        ),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused(path, change, words):
    with pytest.raises(ValueError, match=words) as caught:
        load(altered(path, change))
    assert str(caught.value).startswith(str(path))


def test_objects_in_arrays_are_not_loaded(path):
    content = io.BytesIO()
    np.save(content, np.array([print], dtype=object), allow_pickle=True)
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    altered(path, lambda header: header["arrays"].__setitem__(0, digest))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["arrays/0.npy"] = content.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    with pytest.raises(ValueError, match="an array cannot be read"):
        load(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.rpca").write_text("nothing")
    with pytest.raises(ValueError, match="is damaged or is no model"):
        load(tmp_path / "a.rpca")
    np.savez(tmp_path / "b.npz", X=np.ones(3))
    with pytest.raises(ValueError, match="is no model of this library"):
        load(tmp_path / "b.npz")


def test_every_estimator_can_be_saved():
    assert all(issubclass(kind, Saved) for kind in ESTIMATORS.values())
    assert robustpca.load is load


@pytest.mark.parametrize("name", ["PCAAN", "RPCA", "FRPCAG"])
def test_joblib_and_skops_work_too(name, rng, tmp_path):
    model, new = fitted(name, rng)
    joblib.dump(model, tmp_path / "a.joblib")
    np.testing.assert_array_equal(
        joblib.load(tmp_path / "a.joblib").transform(new), model.transform(new)
    )
    skops = pytest.importorskip("skops.io")
    content = skops.dumps(model)
    trusted = skops.get_untrusted_types(data=content)
    again = skops.loads(content, trusted=trusted)
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
