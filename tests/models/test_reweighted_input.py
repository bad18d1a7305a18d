"""Input of the reweighted chapter: precision, containers, and data with little in them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reweighting import METHODS, settled_data
from scipy import sparse
from sklearn.base import clone

from robustpca import EPCA, PCAAN, R1PCA, ReweightedPCA
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine.compact import inner_products
from robustpca.engine.rows import ArrayRows
from robustpca.metrics import subspace_distance


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(100, 12), (200, 90), (40, 70)])
def test_single_precision_stays_single_precision(method, shape, rng):
    X = planted_subspace(rng, *shape, 3, 10, noise=0.1)[0].astype(np.float32)
    model = method(3).fit(X)
    for name in (
        "mean_",
        "components_",
        "explained_variance_",
        "explained_variance_ratio_",
        "singular_values_",
    ):
        assert getattr(model, name).dtype == np.float32, name
    codes = model.transform(X)
    assert codes.dtype == np.float32
    assert model.inverse_transform(codes).dtype == np.float32
    assert model.reconstruct(X).dtype == np.float32


@pytest.mark.parametrize("method", METHODS)
def test_layout_and_container_of_the_data_do_not_matter(method, rng):
    pd = pytest.importorskip("pandas")
    X = settled_data(rng)
    untouched = X.copy()
    expected = method(3).fit(X)
    assert_array_equal(X, untouched)
    read_only = X.copy()
    read_only.flags.writeable = False
    names = [f"f{i}" for i in range(12)]
    for kind, other in {
        "Fortran": np.asfortranarray(X),
        "read-only": read_only,
        "strided": np.repeat(X, 2, axis=0)[::2],
        "list": X.tolist(),
        "frame": pd.DataFrame(X, columns=names),
    }.items():
        model = method(3).fit(other)
        # Another layout adds in another order, so digits at the end of the loop may differ.
        assert_allclose(model.components_, expected.components_, atol=1e-7, err_msg=kind)
        assert_allclose(model.weights_, expected.weights_, rtol=1e-6, atol=1e-12, err_msg=kind)
        assert_allclose(model.transform(other), expected.transform(X), atol=1e-6, err_msg=kind)
    assert model.feature_names_in_.tolist() == names
    frame = model.set_output(transform="pandas").transform(other)
    stem = method.__name__.lower()
    assert frame.columns.tolist() == [f"{stem}{i}" for i in range(3)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(150, 30), (200, 120), (60, 150)])
def test_sparse_data_give_the_fit_of_the_dense_ones(method, shape, rng):
    X = planted_subspace(rng, *shape, 3, 10, noise=0.1)[0]
    X[rng.random(shape) < 0.6] = 0
    S = sparse.csr_matrix(X)
    # Numbers where the default is a median at the start, which is PCA up to 1e-3 only.
    numbers = {R1PCA: {"cutoff": 3.0}, EPCA: {"sigma": 3.0, "max_weight": 0.5}}.get(method, {})
    params = {"tol": 1e-12, "max_iter": 3000, **numbers}
    expected, model = method(3, **params).fit(X), method(3, **params).fit(S)
    # Adaptive weights judge their view by a gain of 1e-7, which fixes a subspace to its root.
    accuracy = 1e-3 if method is PCAAN else 1e-5
    assert model.objective_[-1] == pytest.approx(expected.objective_[-1], rel=accuracy)
    assert subspace_distance(model.components_, expected.components_) < accuracy
    assert_allclose(model.transform(S), model.transform(X), atol=1e-9)
    assert_allclose(model.orthogonal_distances(S), model.orthogonal_distances(X), atol=1e-6)
    assert_array_equal(S.toarray(), X)


@pytest.mark.parametrize("method", METHODS)
def test_a_fitted_model_survives_pickling_and_fits_twice_the_same(method, rng):
    X = settled_data(rng)
    model = method(3).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.transform(X), model.transform(X))
    again = clone(model).fit(X)
    assert_array_equal(again.components_, model.components_)
    assert_array_equal(again.weights_, model.weights_)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_holes_are_refused(method, bad, rng):
    X = rng.normal(size=(20, 4))
    X[3, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        method(2).fit(X)


def all_finite(model):
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_")}
    return all(
        np.isfinite(v).all()
        for k, v in fitted.items()
        if isinstance(v, np.ndarray | float) and k not in ("gamma_",)
    )


EVERY = [
    *(pytest.param(method(2), id=method.__name__) for method in METHODS),
    *(
        pytest.param(ReweightedPCA(2, loss=loss, weighting=weighting), id=f"{loss}-{weighting}")
        for loss in ("squared", "l21", "huber", "cauchy", "sigma", "capped")
        for weighting in ("uniform", "adaptive", "corobust")
    ),
    pytest.param(R1PCA(2, center="geometric_median"), id="geometric median"),
    pytest.param(R1PCA(2, solver="power"), id="orthogonal iteration"),
    pytest.param(ReweightedPCA(2, init="random"), id="random start"),
]


@pytest.mark.parametrize("shape", [(10, 4), (5, 9), (12, 80), (300, 70), (300, 400)])
@pytest.mark.parametrize("method", EVERY)
def test_equal_samples_give_the_first_axes_and_equal_weights(method, shape):
    X = np.tile(np.linspace(0.1, 0.7, shape[1]), (shape[0], 1))
    model = clone(method).fit(X)
    assert_array_equal(model.components_, np.eye(2, shape[1]))
    assert_allclose(model.mean_, X[0], rtol=1e-14)
    # The l2,1 loss of a residual of 0 is its floor, the root of the smallest number there is.
    assert abs(model.objective_[-1]) < 1e-100
    assert_allclose(model.weights_, 1 / shape[0], rtol=1e-12)
    assert model.n_active_ == shape[0]
    assert all_finite(model)
    assert_allclose(model.transform(X), 0, atol=1e-14)
    assert_array_equal(model.predict(X), 1)


@pytest.mark.parametrize("shape", [(60, 12), (60, 150), (400, 150), (300, 500)])
@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_have_exact_zeros(method, shape, rng):
    X = planted_subspace(rng, *shape, 3, shape[0] // 10, noise=0.1)[0]
    constant = rng.random(shape[1]) < 0.3
    # 0.1 and its like are no binary fractions: sums of them are not exact.
    X[:, constant] = rng.choice([0.0, 0.1, -7.3, 1e3 / 3], size=constant.sum())
    model = method(3).fit(X)
    assert 0 < constant.sum() < shape[1]
    assert_array_equal(model.components_[:, constant], 0)
    # A column of zeros may have a mean at the rounding level of the others.
    assert_allclose(model.mean_[constant], X[0, constant], rtol=1e-14, atol=1e-18)


def test_constant_columns_that_are_not_centred_count_like_any_other():
    # The second moments couple the columns by 1e-6, so the components are turned by 1e-7.
    X = np.column_stack([np.ones(40), 3 * np.resize([1, -1], 40) + 1e-6])
    components = ReweightedPCA(2, center="zero").fit(X).components_
    assert_allclose(components @ components.T, np.eye(2), atol=1e-14)
    assert 1e-8 < abs(components[0, 0]) < 1e-6


@pytest.mark.parametrize("method", EVERY)
def test_duplicated_samples_get_equal_weights(method, rng):
    X = rng.normal(size=(40, 6)) * [5.0, 4.0, 1.0, 1.0, 1.0, 1.0]
    X[20:] = X[:20]
    model = clone(method).set_params(max_iter=3000).fit(X)
    assert_allclose(model.weights_[20:], model.weights_[:20], rtol=1e-9, atol=1e-13)
    assert all_finite(model)


@pytest.mark.parametrize("shape", [(40, 10), (20, 30), (100, 90), (300, 400)])
@pytest.mark.parametrize("method", METHODS)
def test_components_beyond_the_rank_complete_the_basis(method, shape, rng):
    X, basis, _ = planted_subspace(rng, *shape, 2, noise=0.0)
    model = method(5).fit(X)
    assert model.n_components_ == 5
    assert_allclose(model.components_ @ model.components_.T, np.eye(5), atol=1e-10)
    assert subspace_distance(model.components_[:2], basis) < 1e-6
    scale = np.abs(X).max()
    assert_allclose(model.reconstruct(X), X, atol=1e-9 * scale)
    assert_allclose(model.explained_variance_[2:], 0, atol=1e-12 * scale**2)
    # Nothing is left: the floored loss of each sample is at most that of rounding error.
    assert model.objective_[-1] <= 1e-6 * scale * len(X)
    assert all_finite(model)


@pytest.mark.parametrize("d", [1, 3, 100])
@pytest.mark.parametrize("method", METHODS)
def test_two_samples_are_joined_by_a_line(method, d):
    X = np.random.default_rng(3).normal(size=(2, d))
    model = method(1).fit(X)
    line = (X[1] - X[0]) / np.linalg.norm(X[1] - X[0])
    assert subspace_distance(model.components_, line[None]) < 1e-10
    assert_allclose(model.weights_, 0.5, rtol=1e-9)
    assert_allclose(model.reconstruct(X), X, atol=1e-12)
    assert all_finite(model)


@pytest.mark.parametrize("method", METHODS)
def test_one_sample_is_refused(method):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        method(1).fit([[1.0, 2.0, 3.0]])


def test_the_signs_make_the_largest_entry_positive(rng):
    for method in METHODS:
        components = method(3).fit(settled_data(rng)).components_
        largest = np.abs(components).argmax(axis=1)
        assert np.all(components[np.arange(3), largest] > 0), method.__name__


def test_memory_never_written_to_is_not_mistaken_for_data(monkeypatch, rng):
    X = rng.normal(size=(30, 50))
    monkeypatch.setattr("robustpca.engine.rows.BLOCK_BYTES", X.nbytes // 4)
    rows, full = ArrayRows(X), np.full
    assert len(rows.bounds) > 1
    monkeypatch.setattr(np, "empty", lambda shape: full(shape, np.nan))
    products = inner_products(rows)
    np.testing.assert_allclose(np.tril(products), np.tril(X @ X.T))
