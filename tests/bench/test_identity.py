import platform
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from robustpca import EPCA, ReweightedPCA
from robustpca.bench import identity
from robustpca.bench.identity import (
    _source_digest,
    code_behind,
    data_digest,
    describe,
    digest,
    machine,
    versions,
)
from robustpca.datasets import reset_entries
from robustpca.papers.angular.images import background_error
from robustpca.papers.approximations import recovered
from robustpca.papers.pcaan.scores import mean_error
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


def test_data_are_told_apart_by_entries_type_labels_and_shape():
    X = np.arange(12).reshape(3, 4)
    different = [
        data_digest(X),
        data_digest(X.astype(float)),
        data_digest(X.reshape(4, 3)),
        data_digest(X + (X == 5)),
        data_digest(X, [0, 1, 2]),
        data_digest(X, ["a", "b", "c"]),
        data_digest(X, None, (2, 2)),
    ]
    assert len(set(different)) == len(different)
    assert data_digest(X) == data_digest(np.asfortranarray(X))


def test_code_counts_but_not_how_it_is_written(tmp_path):
    texts = [
        'def f(x):\n    """Double."""\n    return 2 * x\n',
        "def f(x):  # doubled\n    return (2 *\n        x)\n",
        "def f(x):\n    return 3 * x\n",
    ]
    digests = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.py"
        path.write_text(text)
        digests.append(_source_digest(path))
    assert digests[0] == digests[1] != digests[2]


def test_code_of_this_library_others_and_modules_without_a_version():
    found = code_behind(describe([PCA(), EPCA(), Placed(1, "")]))
    assert set(found) == {"robustpca", "sklearn", __name__}
    assert found["sklearn"] == versions()["scikit-learn"]


def test_scores_of_tables_count_one_by_one():
    found = code_behind(describe([PCA(), mean_error]))
    assert set(found) == {"robustpca", "sklearn", mean_error.__module__}


def test_a_score_counts_with_the_scores_that_it_uses(monkeypatch):
    before = code_behind(describe([background_error]))[background_error.__module__]
    real = identity._source_digest
    changed = Path(recovered.__code__.co_filename)
    monkeypatch.setattr(
        identity, "_source_digest", lambda path: "other" if path == changed else real(path)
    )
    identity._score_digest.cache_clear()
    after = code_behind(describe([background_error]))[background_error.__module__]
    identity._score_digest.cache_clear()
    assert after != before


def test_facts_about_the_machine_hold_neither_names_nor_paths():
    text = str(machine())
    assert platform.node() == "" or platform.node() not in text
    assert str(Path.home()) not in text
    assert "/" not in text.replace("(R)", "")
