import platform
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from makeshift import Made
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from robustpca import EPCA, ReweightedPCA
from robustpca.bench import identity
from robustpca.bench.identity import (
    data_digest,
    describe,
    digest,
    key_of,
    machine,
    versions,
)
from robustpca.bench.reached import Sources
from robustpca.datasets import catalogue, load, reset_entries
from robustpca.datasets.dataset import checksum_of
from robustpca.parts.losses import HuberLoss


@dataclass(frozen=True)
class Placed:
    size: int
    path: str = field(compare=False)


def test_every_parameter_changes_the_digest():
    different = [
        EPCA(),
        EPCA(3),
        EPCA(3, sigma=2.0),
        ReweightedPCA(3),
        ReweightedPCA(3, loss=HuberLoss()),
        ReweightedPCA(3, loss=HuberLoss(2.0)),
        make_pipeline(StandardScaler(), PCA(3)),
        make_pipeline(StandardScaler(), PCA(4)),
        partial(reset_entries, samples=0.2),
        partial(reset_entries, samples=0.3),
        reset_entries,
        np.arange(3),
        np.arange(3.0),
        [1, 2],
        [[1, 2]],
        "1",
        1,
        None,
        float("inf"),
    ]
    assert len({digest(describe(value)) for value in different}) == len(different)


def test_equal_things_have_equal_digests():
    assert digest(describe(EPCA(3))) == digest(describe(EPCA(n_components=3)))
    assert digest(describe({"a": 1, "b": 2})) == digest(describe({"b": 2, "a": 1}))
    assert digest(describe(np.float64(0.5))) == digest(describe(0.5))
    assert digest(describe((1, 2))) == digest(describe(range(1, 3)))


def test_where_something_lies_does_not_count():
    assert describe(Placed(3, "here")) == describe(Placed(3, "there"))
    assert describe(Placed(3, "here")) != describe(Placed(4, "here"))


def test_things_without_a_name_are_refused():
    with pytest.raises(TypeError, match="has no name by which another process"):
        describe(lambda X: X)
    with pytest.raises(TypeError, match="cannot be written down"):
        describe(object())


def test_data_are_told_apart_by_entries_type_labels_shape_and_extras():
    X = np.arange(12).reshape(3, 4)
    different = [
        Made(X),
        Made(X.astype(float)),
        Made(X.reshape(4, 3)),
        Made(X + (X == 5)),
        Made(X, [0, 1, 2]),
        Made(X, ["a", "b", "c"]),
        Made(X, np.array(["a", "b", "d"], dtype=object)),
        Made(X, None, (2, 2)),
        Made(X, extras={"mask": X > 3}),
        Made(X, extras={"mask": X > 4}),
    ]
    assert len(set(map(data_digest, different))) == len(different)
    assert data_digest(Made(X)) == data_digest(Made(np.asfortranarray(X)))
    labels = np.array(["a", "b", "c"], dtype=object)
    assert data_digest(Made(X, labels)) == data_digest(Made(X, ["a", "b", "c"]))


def test_a_data_set_and_a_description_have_the_same_hash_of_an_array():
    data = load("digits")
    assert describe(data.X)["sha256"] == checksum_of(data.X) != data.checksum
    assert data.checksum == checksum_of(data.X, data.y)


def test_a_key_knows_the_code_of_this_library_and_of_modules_that_are_not_installed():
    _, code = key_of(describe([PCA(), EPCA(), Placed(1, "")]))
    assert set(code) == {
        "sklearn.decomposition._pca:PCA", f"{EPCA.__module__}:EPCA", f"{__name__}:Placed"
    }  # fmt: skip
    assert code["sklearn.decomposition._pca:PCA"].endswith(f" {versions()['scikit-learn']}")
    assert code[f"{EPCA.__module__}:EPCA"] == Sources().digest(f"{EPCA.__module__}:EPCA")


def test_a_key_does_not_know_where_code_is(monkeypatch):
    before = key_of(describe([EPCA(3), reset_entries]))[0]
    assert before != key_of(describe([EPCA(4), reset_entries]))[0]
    monkeypatch.setattr(identity, "_code_of", {"new:EPCA": "1", "new:f": "2"}.get)
    moved = [{"class": "new:EPCA"}, {"function": "new:f"}]
    changed = key_of(moved)[0]
    monkeypatch.setattr(identity, "_code_of", {"other:PCA": "1", "other:g": "2"}.get)
    assert key_of([{"class": "other:PCA"}, {"function": "other:g"}])[0] == changed


def test_the_version_of_this_library_does_not_count_but_those_of_others_do(monkeypatch):
    def key(**changed):
        monkeypatch.setattr(identity, "versions", lambda: versions() | changed)
        return key_of(describe(EPCA()))[0]

    assert key(robustpca="99") == key() != key(scipy="99")


def some_digits(random_state):
    data = load("digits")
    return data.taken(np.random.default_rng(random_state).permutation(len(data.X))[:50])


def test_a_data_set_more_in_the_catalogue_changes_no_key():
    start = f"{__name__}:{some_digits.__name__}"
    followed, all_ = ({*one.reached(start)} for one in (identity._sources(), Sources()))
    assert len(followed) == 2
    assert (catalogue.__name__, "ENTRIES") in all_ - followed


def test_facts_about_the_machine_hold_neither_names_nor_paths():
    text = str(machine())
    assert platform.node() == "" or platform.node() not in text
    assert str(Path.home()) not in text
    assert "/" not in text.replace("(R)", "")
