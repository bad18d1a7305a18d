"""``n_components='auto'``: the planted rank, whatever some rows and entries are."""

import warnings
from inspect import signature

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris

from robustpca.engine.rows import ArrayRows, SparseRows
from robustpca.models import all_estimators
from robustpca.parts.ranks import rank_of

TROUBLES = ["none", "rows", "cluster", "plane", "entries", "missing"]


def table(shape, rank, trouble, noise, seed):
    """Low rank and noise; a tenth of the rows or a twentieth of the entries are troubled."""
    rng = np.random.default_rng(seed)
    n, d = shape
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    X = X / X.std() + noise * rng.normal(size=shape) + rng.normal(size=d)
    some, entries = rng.permutation(n)[: n // 10], rng.random(shape) < 0.05
    if trouble == "rows":
        X[some] = rng.uniform(2, 10, size=(len(some), 1)) * rng.normal(size=(len(some), d))
    if trouble == "cluster":
        X[some] = 6 * rng.normal(size=d) + 0.1 * rng.normal(size=(len(some), d))
    if trouble == "plane":
        X[some] = 3 * rng.normal(size=(len(some), 2)) @ rng.normal(size=(2, d))
    if trouble == "entries":
        X[entries] += rng.uniform(-10, 10, size=np.count_nonzero(entries))
    if trouble == "missing":
        X[entries] = np.nan
    return X


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("shape", [(300, 12), (400, 50), (60, 200)])
def test_planted_rank_is_found(shape, noise, trouble):
    tables = [table(shape, 3, trouble, noise, seed) for seed in range(2)]
    assert [rank_of(ArrayRows(X)) for X in tables] == [3, 3]


@pytest.mark.parametrize("rank", [1, 2, 5, 8, 12])
def test_other_ranks_are_found(rank):
    assert rank_of(ArrayRows(table((400, 40), rank, "entries", 0.1, 0))) == rank


def test_rank_does_not_depend_on_units_and_offsets():
    X = table((300, 12), 3, "rows", 0.1, 0)
    for factor in (1e-90, 1e-3, 1e90):
        assert rank_of(ArrayRows(factor * X)) == 3
    assert rank_of(ArrayRows(X + 1e6)) == 3
    assert rank_of(ArrayRows(X.astype(np.float32))) == 3


def test_a_sample_tells_the_rank_of_many_rows_and_columns():
    assert rank_of(ArrayRows(table((5000, 700), 4, "rows", 0.1, 0))) == 4
    X = table((2000, 60), 4, "none", 0.0, 0)
    assert rank_of(SparseRows(sparse.csr_matrix(X))) == rank_of(ArrayRows(X)) == 4


def test_noise_alone_has_one_component():
    X = np.random.default_rng(0).normal(size=(300, 20))
    assert rank_of(ArrayRows(X)) == 1


@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (3, 3), (4, 30), (30, 2), (5, 5)])
def test_small_data_have_a_rank(shape):
    rng = np.random.default_rng(0)
    assert 1 <= rank_of(ArrayRows(rng.normal(size=shape))) <= max(1, min(shape) - 1)
    assert rank_of(ArrayRows(np.ones(shape))) == 1


def test_real_data_have_a_sensible_rank():
    assert rank_of(ArrayRows(load_iris().data)) in (2, 3)
    assert 5 <= rank_of(ArrayRows(load_digits().data)) <= 30


ESTIMATORS = {
    name: kind
    for name, kind in all_estimators().items()
    if "n_components" in signature(kind).parameters and name != "LaplacianEigenmaps"
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_finds_its_number_of_components(name):
    X = table((120, 12), 3, "none", 0.05, 0)
    X = X - X.min() if name == "GNMF" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ESTIMATORS[name](n_components="auto").fit(X)
    assert model.n_components_ == (4 if name == "GNMF" else 3)
    assert model.n_components == "auto"
    assert model.transform(X).shape == (120, model.n_components_)


@pytest.mark.parametrize("name", ["GLRAM", "R2DPCA", "ReweightedBilinear"])
def test_images_have_a_rank_on_each_side(name):
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=shape))[0] for shape in [(14, 2), (10, 4)])
    X = (left @ rng.normal(size=(150, 2, 4)) @ right.T).reshape(150, -1)
    X += 0.02 * rng.normal(size=X.shape)
    model = ESTIMATORS[name](n_components="auto", image_shape=(14, 10)).fit(X)
    assert (model.left_.shape[1], model.right_.shape[1]) == (2, 4)


def test_alternating_projections_find_their_rank():
    X = table((200, 60), 3, "entries", 0.0, 0)
    model = ESTIMATORS["RPCA"](n_components="auto", solver="altproj").fit(X)
    assert model.rank_ == model.n_components_ == 3
