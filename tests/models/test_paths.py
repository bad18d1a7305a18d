"""Paths of weights, compared on entries that were hidden from the fits."""

import warnings

import numpy as np
import pytest
from pursuit import rpca, rpcag
from scipy import sparse
from sklearn.base import clone

from robustpca import EPCA, FRPCAG, smoothness_path, sparsity_path
from robustpca.parts.graphs import grid_graph


def planted(seed, n=80, d=50, rank=3, *, noise=0.0, missing=0.0):
    """Rank plus one entry in twenty that is wrong, and the low-rank part alone."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    X = L + noise * rng.normal(size=L.shape)
    X += np.where(rng.random(L.shape) < 0.05, rng.uniform(-10, 10, L.shape), 0.0)
    X[rng.random(L.shape) < missing] = np.nan
    return X, L


def images(seed=0):
    """Smooth pictures of twelve by twelve with pixels that are stuck, and without."""
    rng = np.random.default_rng(seed)
    pixels, centers = np.mgrid[:12, :12].reshape(2, 144, 1) / 12, rng.uniform(0.2, 0.8, (2, 1, 60))
    truth = np.exp(-np.sum((pixels - centers) ** 2, axis=0) / 0.08).T
    return np.where(
        rng.random(truth.shape) < 0.1, rng.choice([0.0, 1.0], truth.shape), truth
    ), truth


def cold_passes(model, X, **values):
    """Passes of all fits when each starts anew, on as many entries as a path would use."""
    (name, row), total = next(iter(values.items())), 0
    names = [key for key in model.get_params() if key.endswith(name)]
    training = X.copy()
    training[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for value in row:
            total += clone(model).set_params(**dict.fromkeys(names, value)).fit(training).n_iter_
    return total


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n", "d", "rank"), [(100, 80, 2), (60, 100, 3), (120, 80, 3)])
def test_the_best_weight_recovers_the_planted_rank(n, d, rank, seed):
    path = sparsity_path(planted(seed, n, d, rank)[0])
    best = path.values.tolist().index(path.best)
    assert path.rank[best] == rank
    assert path.density[best] < 0.06
    assert path.error[best] < 1e-3


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 4), marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_of_weights_that_do_equally_well_the_best_is_that_of_the_lowest_rank(noise, seeds):
    for seed in seeds:
        path = sparsity_path(planted(seed, noise=noise)[0], estimator=rpca(noise=noise, tol=1e-4))
        assert path.rank[path.values == path.best] == 3


def test_a_higher_weight_gives_a_higher_rank_and_fewer_sparse_entries():
    path = sparsity_path(planted(0, noise=0.1, missing=0.1)[0])
    assert path.parameters == ("sparsity",)
    assert len(path.values) == 9
    assert (np.diff(path.values) > 0).all()
    assert (np.diff(path.rank) >= 0).all()
    assert (np.diff(path.density) <= 1e-3).all()
    # A low-rank part of zero does as well as the median of the data.
    assert path.rank[0] == 0
    assert path.error[0] == pytest.approx(1, abs=0.1)
    assert path.rank[-1] > 30


def test_default_weights_surround_the_automatic_one():
    X = planted(0, missing=0.3)[0]
    path = sparsity_path(X)
    middle = rpca().fit(X).sparsity_
    np.testing.assert_allclose(path.values / middle, 2.0 ** np.arange(-2, 2.5, 0.5), rtol=0.05)


@pytest.mark.filterwarnings("ignore:FRPCAG. sparse_ is all zero")
def test_the_best_smoothness_is_nearly_the_best_for_the_truth():
    X, truth = images()
    model = FRPCAG(standardize=False, feature_graph=grid_graph((12, 12)))
    path = smoothness_path(X, estimator=model)
    assert set(path.parameters) == {"sample_smoothness", "feature_smoothness"}
    errors = []
    for value in path.values:
        fitted = clone(model).set_params(sample_smoothness=value, feature_smoothness=value).fit(X)
        errors.append(np.linalg.norm(fitted.low_rank_ - truth))
    assert errors[path.values.tolist().index(path.best)] <= 1.1 * min(errors)
    assert path.values[0] < path.best < path.values[-1]
    assert (np.diff(path.rank) <= 0).all()


def test_warm_starts_of_frpcag_save_passes():
    X = images()[0]
    model = FRPCAG(standardize=False, feature_graph=grid_graph((12, 12)))
    path = smoothness_path(X, estimator=model)
    assert path.n_iter.sum() < 0.85 * cold_passes(model, X, smoothness=path.values)


def test_warm_starts_of_rpcag_save_passes():
    warm = cold = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.normal(size=(4, 30)), 15, axis=0) + 0.3 * rng.normal(size=(60, 30))
        X[rng.random(X.shape) < 0.05] += 5
        values = [0.5, 1.0, 2.0, 4.0]
        warm += smoothness_path(X, values, estimator=rpcag()).n_iter.sum()
        cold += cold_passes(rpcag(), X, smoothness=values)
    assert warm < 0.9 * cold


def test_warm_starts_of_rpca_save_passes_in_sum():
    warm = cold = 0
    model, values = rpca(noise=0.05), np.geomspace(0.7, 1.4, 8) / np.sqrt(80)
    for seed in range(4):
        X = planted(seed, noise=0.05)[0]
        warm += sparsity_path(X, values, estimator=model).n_iter.sum()
        cold += cold_passes(model, X, sparsity=values)
    assert warm < cold


def test_warm_starts_end_where_cold_ones_do():
    X = planted(0, noise=0.1)[0]
    model, values = rpca(tol=1e-7, max_iter=5000), [0.08, 0.11, 0.15]
    path = sparsity_path(X, values, estimator=model)
    for i, value in enumerate(values):
        alone = sparsity_path(X, [value], estimator=model)
        assert path.rank[i] == alone.rank[0]
        assert path.density[i] == pytest.approx(alone.density[0], abs=1e-3)
        assert path.error[i] == pytest.approx(alone.error[0], rel=1e-3)


def test_a_path_neither_warns_nor_changes_what_it_is_given(recwarn):
    X = planted(0, missing=0.1)[0]
    before, model = X.copy(), rpca(tol=1e-3, max_iter=5)
    settings = model.get_params()
    sparsity_path(X, [1e-3, 0.1, 10.0], estimator=model)
    assert not recwarn.list
    np.testing.assert_array_equal(X, before)
    assert model.get_params() == settings
    assert not hasattr(model, "components_")


def test_the_hidden_entries_are_drawn_by_the_seed():
    X = planted(0, noise=0.1)[0]
    first, again = sparsity_path(X, [0.1]), sparsity_path(X, [0.1])
    other = sparsity_path(X, [0.1], random_state=1)
    assert first.error == again.error
    assert first.error != other.error


@pytest.mark.parametrize("hidden", [0.05, 0.5, 0.9])
def test_no_row_and_no_column_is_hidden_as_a_whole(hidden):
    rng = np.random.default_rng(0)
    X = np.outer(rng.normal(size=30), rng.normal(size=12))
    # Some rows have one entry and some columns few; a fit would refuse an empty one.
    X[:10, 1:], X[12:, 11] = np.nan, np.nan
    for seed in range(5):
        path = sparsity_path(X, [0.3], hidden=hidden, random_state=seed)
        assert np.isfinite(path.error).all()


def test_wrong_entries_among_the_hidden_ones_do_not_count():
    X, L = planted(0, 120, 60)
    clean, spoiled = sparsity_path(L, [0.1]), sparsity_path(X, [0.1])
    assert clean.error[0] < 1e-3
    assert spoiled.error[0] < 1e-3


@pytest.mark.parametrize("kind", ["list", "frame", "float32", "generator"])
def test_data_and_values_come_in_any_form(kind):
    X, values = np.round(10 * planted(0, 40, 30)[0]), [0.1, 0.2]
    expected = sparsity_path(X, values)
    if kind == "frame":
        given = pytest.importorskip("pandas").DataFrame(X)
    else:
        given = {"list": X.tolist(), "float32": X.astype(np.float32)}.get(kind, X)
    path = sparsity_path(given, iter(values) if kind == "generator" else values)
    np.testing.assert_array_equal(path.rank, expected.rank)
    np.testing.assert_allclose(path.error, expected.error, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("path", [sparsity_path, smoothness_path])
def test_the_path_prints_as_a_table_that_marks_the_best(path):
    found = path(planted(0, 40, 30)[0], [0.1, 0.2, 0.4])
    lines = str(found).splitlines()
    assert len(lines) == 4
    assert lines[0].split(", ")[0].strip().split()[0] == found.parameters[0]
    assert "rank" in lines[0]
    assert "error on hidden entries" in lines[0]
    for i, line in enumerate(lines[1:]):
        cells = line.split()
        assert float(cells[0]) == found.values[i]
        assert int(cells[1]) == found.rank[i]
        assert float(cells[2]) == pytest.approx(found.density[i], abs=1e-3)
        assert float(cells[3]) == pytest.approx(found.error[i], abs=1e-4)
        assert ("<- best" in line) == (found.values[i] == found.best)


def test_the_columns_of_the_table_stand_below_their_names():
    lines = str(smoothness_path(planted(0, 40, 30)[0], [0.5, 1.0])).splitlines()
    end = lines[0].index("rank") + len("rank")
    assert all(line[end - 1].isdigit() and line[end] == " " for line in lines[1:])


@pytest.mark.parametrize("hidden", [0, 1, -0.1, 5])
def test_a_share_that_is_none_is_refused(hidden):
    with pytest.raises(ValueError, match=rf"hidden={hidden} must be a share.*between 0 and 1"):
        sparsity_path(planted(0, 20, 10)[0], hidden=hidden)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_a_weight_that_cannot_be_is_refused(value):
    with pytest.raises(ValueError, match=r"'sparsity' parameter of RPCA must be.*Got"):
        sparsity_path(planted(0, 20, 10)[0], [value])


@pytest.mark.parametrize("model", [rpca(), EPCA()])
def test_an_estimator_without_smoothness_is_refused(model):
    words = rf"{type(model).__name__} has no smoothness to vary.*FRPCAG\(\).*use sparsity_path"
    with pytest.raises(ValueError, match=words):
        smoothness_path(planted(0, 20, 10)[0], estimator=model)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda X: X[0], "Expected 2D array"),
        (lambda X: np.where(X.max() == X, np.inf, X), "infinity"),
        (lambda X: np.where(np.arange(10) == 3, np.nan, X), r"1 columns of X hold no value"),
        (sparse.csr_array, r"dense data is required"),
    ],
)
def test_data_that_cannot_be_fitted_are_refused(spoil, words):
    with pytest.raises((ValueError, TypeError), match=words):
        sparsity_path(spoil(planted(0, 20, 10)[0]))


def test_an_estimator_without_sparsity_is_refused_in_words():
    with pytest.raises(ValueError, match=r"FRPCAG has no sparsity to vary.*smoothness_path"):
        sparsity_path(planted(0, 20, 10)[0], estimator=FRPCAG())


@pytest.mark.parametrize("values", [[], 0.1])
def test_no_values_or_a_single_number_are_refused_in_words(values):
    with pytest.raises(ValueError, match="sparsity="):
        sparsity_path(planted(0, 20, 10)[0], values)


@pytest.mark.parametrize("spoil", [lambda X: X[:, :1], lambda X: np.nan * X])
def test_data_of_which_nothing_can_be_hidden_are_refused_in_words(spoil):
    with pytest.raises(ValueError, match=r"hidden|hold no value"):
        sparsity_path(spoil(planted(0, 20, 10)[0]))
