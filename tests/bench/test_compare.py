import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import NMF, PCA

from robustpca import PCAOM
from robustpca.bench.compare import (
    _usable,
    compare,
    find_corruption,
    find_method,
    plant_cells,
    plant_rows,
    trimmed_error,
)
from robustpca.datasets import occlude_blocks
from robustpca.models import all_methods


def table(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(300, 12))


@pytest.mark.parametrize("seed", range(2))
def test_one_cell_of_the_users_own_does_not_make_pca_best(seed):
    X = table(seed)
    X[17, 4] = 999
    found = compare(X, seeds=2)
    assert found.best("bad rows")[0] == "PCAAN"
    assert found.best("wrong cells")[0] == "RPCA"
    assert found.best("missing cells")[0] == "RPCA"
    assert found.shares["PCAAN"]["bad rows"] < 0.5
    assert found.shares["RPCA"]["wrong cells"] < 0.2
    assert found.shares["PCA"] == dict.fromkeys(found.troubles, 1.0)
    assert re.match(
        r"On your data PCAAN is best with bad rows \(.* % of PCA's error\); ", found.verdict
    )
    assert found.n_components == 3
    assert "published" not in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_components_are_clipped_and_image_methods_left_out():
    found = compare(load_iris().data, ["PCAOM", "GLRAM"], n_components=10, seeds=1)
    assert found.n_components == 3
    assert "10 components are more than the data allow: 3 were used." in found.remarks
    assert {one.method for one in found.trials} == {"PCA", "PCAOM"}
    assert not any(one.failure for one in found.trials)
    assert "Left out GLRAM: it is for images" in str(found)


def test_all_means_every_method_that_applies():
    kinds, left_out = _usable(["all"], None)
    assert set(left_out) == {"GLRAM", "R2DPCA", "ReweightedBilinear"}
    assert set(kinds) == {"PCA", *all_methods()} - set(left_out)


def test_missing_cells_of_the_user_are_allowed_and_do_not_count():
    X = table(3)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    found = compare(X, ["PCAAN", "RPCA"], seeds=1)
    assert not any(one.failure for one in found.trials)
    assert "filled by RPCA first, and left out of the errors" in str(found)


def test_columns_of_different_units_are_scaled():
    X = table(4)
    found = compare(X * np.logspace(0, 5, 12), ["RPCA"], seeds=1)
    assert found.shares["RPCA"]["wrong cells"] < 0.2
    assert "brought to one scale" in str(found)


def test_images_and_corruptions_of_them():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 12))
    found = compare(
        X, ["GLRAM"], corrupt=["occlude_blocks:area=0.3"], image_shape=(3, 4), n_components=4,
        seeds=1,
    )  # fmt: skip
    assert list(found.troubles) == ["occlude_blocks:area=0.3"]
    assert {one.method for one in found.trials} == {"PCA", "GLRAM"}
    assert all(one.error > 0 for one in found.trials)
    with pytest.raises(ValueError, match="occlude_blocks needs images"):
        compare(X, ["PCA"], corrupt=["occlude_blocks"])
    with pytest.raises(ValueError, match="has 12 columns, but images of 2 x 3 have 6 pixels"):
        compare(X, ["PCA"], image_shape=(2, 3))


def test_methods_that_fail_are_told_and_others_go_on(monkeypatch):
    def broken(self, X, y=None):
        raise ValueError("not today")

    monkeypatch.setattr(PCAOM, "fit", broken)
    found = compare(table(5), ["PCAOM"], seeds=1)
    assert not found.failed
    assert "- PCAOM failed: not today" in str(found)
    assert np.isnan(found.shares["PCAOM"]["bad rows"])
    monkeypatch.setattr(PCA, "fit", broken)
    found = compare(table(5), ["PCAOM"], seeds=1)
    assert found.failed
    assert found.verdict == "Every fit failed: not today"


def test_what_is_planted_is_far_off_and_known():
    X, rng = table(6), np.random.default_rng(0)
    spoiled = plant_rows(X, rng)
    changed = (spoiled != X).any(axis=1)
    assert changed.sum() == 30
    away = np.linalg.norm(spoiled[changed] - np.median(X, axis=0), axis=1)
    assert away.min() > 4 * np.median(np.linalg.norm(X - np.median(X, axis=0), axis=1))
    seen = np.ones_like(X, dtype=bool)
    seen[:, 0] = False
    spoiled, mask = plant_cells(X, seen, rng)
    np.testing.assert_array_equal(spoiled != X, mask)
    assert 0.03 < mask.mean() < 0.07
    assert not mask[:, 0].any()


def test_the_largest_errors_do_not_count():
    errors = np.ones((10, 10))
    errors[:1] = 1e6
    assert trimmed_error(errors, np.ones((10, 10), dtype=bool)) == 1
    assert np.isnan(trimmed_error(errors, np.zeros((10, 10), dtype=bool)))


def test_progress_counts_all_fits():
    seen = []
    compare(table(7), ["PCAOM"], seeds=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i + 1, 12) for i in range(12)]


def test_methods_are_found_by_name_or_place():
    assert find_method("PCA") is PCA
    assert find_method("PCAOM") is PCAOM
    assert find_method("sklearn.decomposition:NMF") is NMF
    with pytest.raises(ValueError, match="Did you mean PCAOM"):
        find_method("PCAON")
    with pytest.raises(ValueError, match=r"There are PCA, .*EPCA"):
        find_method("zzz")
    with pytest.raises(ValueError, match="cannot be imported: No module named 'nowhere'"):
        find_method("nowhere:Thing")
    with pytest.raises(ValueError, match="cannot be imported"):
        find_method("sklearn.decomposition:Thing")
    with pytest.raises(ValueError, match="is not a class of transformers: it lacks transform"):
        find_method("sklearn.linear_model:Ridge")


def test_corruptions_are_read_from_text():
    found = find_corruption("occlude_blocks:area=0.5,fill=noise,samples=1")
    assert found.func is occlude_blocks
    assert found.keywords == {"area": 0.5, "fill": "noise", "samples": 1}
    for text, message in {
        "blur": "No corruption is called 'blur'",
        "drop_pixels:half": "should read name=value",
        "drop_pixels:area=1": "drop_pixels has no 'area': it takes share, random_state",
    }.items():
        with pytest.raises(ValueError, match=message):
            find_corruption(text)
