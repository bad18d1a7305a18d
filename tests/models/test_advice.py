"""`suggest` on data with one planted trouble each, and on data without any."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA

from robustpca import FRPCAG, PCAAN, RPCA, RPCAG, clean_entries, find_rows, suggest


def clean(seed, n=400, d=20):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    return L + 0.1 * rng.normal(size=(n, d)), rng


@pytest.mark.parametrize("seed", range(3))
def test_data_without_trouble_are_left_to_plain_pca(seed):
    X, rng = clean(seed)
    for data in (X, X + 0.1 * rng.standard_t(5, size=X.shape)):
        found = suggest(data)
        assert found.troubles == {}
        assert isinstance(found.estimator, PCA)
        assert found.estimator.n_components == 3


@pytest.mark.parametrize("seed", range(3))
def test_wrong_and_missing_entries_are_for_rpca(seed):
    X, rng = clean(seed)
    X[rng.random(X.shape) < 0.03] += 20
    found = suggest(X)
    assert list(found.troubles) == ["bad entries"]
    assert isinstance(found.estimator, RPCA)
    X[rng.random(X.shape) < 0.1] = np.nan
    assert list(suggest(X).troubles) == ["missing entries", "bad entries"]


@pytest.mark.parametrize("seed", range(3))
def test_bad_rows_are_for_pcaan(seed):
    X, rng = clean(seed)
    X[:40] = 10 * rng.normal(size=(40, 20))
    found = suggest(X)
    assert list(found.troubles) == ["bad rows"]
    assert isinstance(found.estimator, PCAAN)
    assert "10.0%" in found.troubles["bad rows"]


@pytest.mark.parametrize("seed", range(3))
def test_bad_rows_in_a_group_are_called_so(seed):
    X, rng = clean(seed)
    X[:60] = 8 * rng.normal(size=20) + 0.1 * rng.normal(size=(60, 20))
    found = suggest(X)
    assert list(found.troubles) == ["bad rows", "a group of bad rows"]
    assert isinstance(found.estimator, PCAAN)


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_rows_with_wrong_entries_are_for_a_graph(seed):
    X, rng = clean(seed)
    X += 10 * rng.normal(size=(4, 20))[rng.integers(0, 4, len(X))]
    assert list(suggest(X).troubles) == ["groups"]
    X[rng.random(X.shape) < 0.02] += 60
    found = suggest(X)
    assert "groups" in found.troubles
    assert "bad entries" in found.troubles
    assert isinstance(found.estimator, RPCAG | FRPCAG)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_tables_of_different_units_are_scaled(load):
    found = suggest(load().data)
    assert "different units" in found.troubles
    assert "bad entries" not in found.troubles
    assert "robustscaler" in found.estimator.named_steps


def test_heavy_noise_is_named():
    rng = np.random.default_rng(0)
    assert "heavy noise" in suggest(rng.normal(size=(300, 15))).troubles


def test_the_estimator_is_ready_and_the_text_says_it_all():
    X, rng = clean(0)
    X[rng.random(X.shape) < 0.03] += 20
    found = suggest(X)
    text = str(found)
    assert "- bad entries: about 3" in text
    assert "Use RPCA()" in text
    assert "entry_flags_" in text
    assert clone(found.estimator).fit(X).rank_ == 3


def test_bad_rows_among_wrong_entries_are_found_as_it_says():
    X, rng = clean(0)
    X[rng.random(X.shape) < 0.03] += 20
    X[:20] = 10 * rng.normal(size=(20, 20))
    found = suggest(X)
    assert {"bad entries", "bad rows"} <= set(found.troubles)
    advice = "find_rows(clean_entries(X).X)"
    assert found.reason.endswith(f"see {advice}.")
    flags = eval(advice, {"find_rows": find_rows, "clean_entries": clean_entries, "X": X}).flags
    assert flags[:20].all()
    assert flags[20:].mean() < 0.1


def test_large_and_small_data_are_sampled_or_taken_whole():
    rng = np.random.default_rng(0)
    L = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, 500))
    assert suggest(L + 0.1 * rng.normal(size=L.shape)).troubles == {}
    assert isinstance(suggest(rng.normal(size=(6, 2))).estimator, PCA)


@pytest.mark.parametrize("row", [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1e6, 1e6, 1e6]])
def test_equal_rows_have_no_trouble(row):
    assert suggest(np.tile(row, (30, 1))).troubles == {}


def test_a_single_row_beside_equal_ones_is_bad():
    X = np.tile([1.0, 2.0, 3.0, 4.0], (300, 1))
    X[5:8] = [9.0, -3.0, 7.0, 0.0]
    assert list(suggest(X).troubles) == ["bad rows"]
