"""Cells of the papers that we meet, on the data in the folder that ROBUSTPCA_DATA names."""

from statistics import fmean

import numpy as np
import pytest
from sklearn.decomposition import PCA

from robustpca import L1PCA, PCAAN, R2DPCA
from robustpca.bench.declarations import Source
from robustpca.datasets import reset_entries
from robustpca.metrics import clustering_accuracy, reconstruction_error
from robustpca.papers import all_tables
from robustpca.papers.clustering import Clustering
from robustpca.papers.pcaan.scores import error_without_mean, unit_pixels, weighted_error

TABLES = all_tables()


def load(name, size):
    try:
        data = Source(name, size=size)()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return data.X.astype(np.float64), data.y


def spoil(X, seed=0):
    return reset_entries(X, samples=0.2, features=0.2, shared=True, random_state=seed)[0]


def test_two_dimensional_pca_on_raw_faces():
    X = unit_pixels(load("orl", (64, 64))[0])
    model = R2DPCA((9, 10), image_shape=(64, 64)).fit(X)
    printed = TABLES["pcaan_table_2"].targets()["AT&T", "raw", "R2DPCA"]
    assert weighted_error(model, X, X) == pytest.approx(printed, abs=0.01)


def test_pca_whose_mean_was_not_added_back():
    X = unit_pixels(load("orl", (64, 64))[0])
    printed = TABLES["pcaan_table_2"].targets()["AT&T", "raw", "PCA"]
    model = PCA(90, svd_solver="full").fit(X)
    assert error_without_mean(model, X, X) == pytest.approx(printed, rel=0.05)
    assert weighted_error(model, X, X) < 0.01 * printed


@pytest.mark.parametrize(("label", "name"), [("YALE", "yale"), ("ORL", "orl")])
def test_mean_accuracy_of_the_one_method_whose_means_are_printed(label, name):
    X, y = load(name, (32, 32))
    X_corrupt = spoil(X)
    model = L1PCA(30, greedy=False).fit(X_corrupt)
    printed = TABLES["epca_table_3"].targets()[label, "", "L1PCA-NG", "30"]
    score = Clustering(clustering_accuracy, fmean, n_runs=20)
    assert score(model, X, X_corrupt, y, 0) == pytest.approx(printed, rel=0.06)


@pytest.mark.parametrize("n_components", [10, 30])
def test_pcaan_has_its_printed_error_if_it_drops_hardly_any_sample(n_components):
    X, _ = load("yale", (32, 32))
    errors = {0.85: [], 0.99: []}
    for seed in range(3):
        X_corrupt = spoil(X, seed)
        for share, found in errors.items():
            model = PCAAN(n_components, n_active=share).fit(X_corrupt)
            found.append(reconstruction_error(model, X, X_corrupt))
    printed = TABLES["epca_table_1"].targets()["YALE", "", "PCA-AN", str(n_components)]
    assert np.mean(errors[0.99]) == pytest.approx(printed, rel=0.1)
    assert np.mean(errors[0.85]) < 0.9 * printed


def test_printed_accuracies_are_those_of_single_runs():
    sizes = {"JAFFE": 213, "YALE": 165, "ORL": 400, "COIL20": 1440, "UMIST": 575}
    single = {True: 0, False: 0}
    for (label, _, method, _), value in TABLES["epca_table_3"].targets().items():
        nearest = round(value * sizes[label]) / sizes[label]
        single[method == "L1PCA-NG"] += abs(nearest - value) < 0.51e-4
    assert single == {False: 119, True: 2}


def test_some_printed_numbers():
    accuracies = TABLES["epca_table_3"].targets()
    assert len(accuracies) == 5 * 3 * 9
    assert accuracies["ORL", "", "EPCA", "30"] == 0.62
    umist = [v for k, v in accuracies.items() if k[0] == "UMIST" and k[2] == "EPCA"]
    assert sum(umist) == pytest.approx(0.9669)
    seconds = TABLES["pcaan_table_3"].targets()
    assert seconds["FERET", "", "GLRAM"] == 45.22
    assert sum(v for k, v in seconds.items() if k[2] == "RPCA-OM") == pytest.approx(4942.92)


@pytest.mark.parametrize("name", ["epca_jaffe", "epca_pcaan_k"])
def test_experiments_on_single_cells_repeat_what_is_printed(name):
    printed = TABLES["epca_table_1"].targets()
    for place, value in TABLES[name].targets().items():
        label = "JAFFE" if name == "epca_jaffe" else place[0]
        settings = dict(zip(sorted(TABLES[name].vary), place[3:], strict=True))
        assert value == printed[label, "", place[2], settings["n_components"]]
