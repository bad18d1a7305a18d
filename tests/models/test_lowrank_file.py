"""FRPCAG on rows in files: the bits of a fit in memory, without an array of their size."""

import tracemalloc

import numpy as np
import pytest
from stored import ScratchSpace, dense, saved, use_small_pieces
from threadpoolctl import threadpool_limits

from robustpca import FRPCAG
from robustpca.engine import neighbors, rows, scratch
from robustpca.engine.scratch import is_scratch
from robustpca.parts.entry_losses import HuberNorm
from robustpca.solvers import graph_descent, refit

# On random data nothing is smooth, and it does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:FRPCAG. low_rank_ has full rank")
ATTRIBUTES = [
    "components_",
    "mean_",
    "explained_variance_",
    "objective_",
    "column_noise_",
    "sample_smoothness_",
    "feature_smoothness_",
    "rank_",
    "density_",
    "orthogonal_cutoff_",
    "score_cutoff_",
    "offset_",
]
NUMBERS = {"sample_smoothness": 0.5, "feature_smoothness": 0.3}
CASES = {
    "auto": {},
    "numbers": NUMBERS,
    "raw": {"standardize": False, "center_low_rank": False, **NUMBERS},
    "huber": {"loss": HuberNorm(1.0, 0.5), "n_components": 2, **NUMBERS},
    "share": {"contamination": 0.1, **NUMBERS},
}


def clouds(n, d, dtype=np.float64, missing=0.0):
    """Rows about a few centres, some entries wrong."""
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(6, d))[rng.integers(6, size=n)]
    X += rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.2 * rng.normal(size=(n, d))
    X[rng.random((n, d)) < 0.02] += 10
    X[rng.random((n, d)) < missing] = np.nan
    return X.astype(dtype)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    use_small_pieces(monkeypatch)


def same(stored, model):
    """Whether two fits agree in all that they tell, to the last bit."""
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(stored, name), getattr(model, name), err_msg=name)
    np.testing.assert_array_equal(stored.low_rank_, model.low_rank_)
    np.testing.assert_array_equal(dense(stored.sparse_), dense(model.sparse_))
    np.testing.assert_array_equal(stored.entry_flags_, model.entry_flags_)
    np.testing.assert_array_equal(stored.embedding_, model.embedding_)
    assert (stored.sample_graph_ != model.sample_graph_).nnz == 0


@pytest.mark.parametrize("case", CASES)
def test_a_fit_to_a_file_gives_the_bits_of_one_in_memory(case, tmp_path):
    X = clouds(300, 20)
    model = FRPCAG(**CASES[case]).fit(X)
    stored = FRPCAG(**CASES[case]).fit(saved(X, "memmap", tmp_path))
    same(stored, model)
    assert is_scratch(stored.low_rank_)
    assert not is_scratch(model.low_rank_)


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_any_kind_of_file_will_do(kind, tmp_path):
    X = clouds(300, 20, np.float32)
    same(FRPCAG(**NUMBERS).fit(saved(X, kind, tmp_path)), FRPCAG(**NUMBERS).fit(X))


def test_missing_entries_and_whole_numbers(tmp_path):
    X = clouds(300, 20, missing=0.1)
    same(FRPCAG(**NUMBERS).fit(saved(X, "memmap", tmp_path)), FRPCAG(**NUMBERS).fit(X))
    whole = np.round(10 * clouds(200, 15)).astype(np.int16)
    same(FRPCAG(**NUMBERS).fit(saved(whole, "memmap", tmp_path)), FRPCAG(**NUMBERS).fit(whole))


def test_approximate_graphs_are_the_same_too(tmp_path, monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT_WORK", 0)
    monkeypatch.setattr(neighbors, "LEAST_CELL", 32)
    X = clouds(1500, 12, np.float32)
    # Of the features all pairs are compared: an approximate search needs more vertices.
    settings = {**NUMBERS, "feature_smoothness": 0.0, "feature_graph": np.zeros((12, 12))}
    same(FRPCAG(**settings).fit(saved(X, "memmap", tmp_path)), FRPCAG(**settings).fit(X))


def test_bad_entries_of_a_file_are_refused_as_in_memory(tmp_path):
    X = clouds(200, 15)
    X[150, 3] = np.inf
    with pytest.raises(ValueError, match="contains infinity"):
        FRPCAG().fit(saved(X, "memmap", tmp_path))
    X[150] = np.nan
    with pytest.raises(ValueError, match=r"1 rows of X hold no value.*\[150\]"):
        FRPCAG().fit(saved(X, "memmap", tmp_path))


def test_new_rows_of_a_file_are_read_by_blocks_and_scored_alike(tmp_path, monkeypatch):
    X = clouds(400, 20)
    model = FRPCAG(**NUMBERS).fit(X[:300])
    codes, scores = model.transform(X), model.score_samples(X)
    stored = saved(X, "memmap", tmp_path)
    monkeypatch.setattr(rows.Rows, "whole", lambda _: pytest.fail("all rows were asked for"))
    np.testing.assert_allclose(model.transform(stored), codes, atol=1e-7)
    np.testing.assert_allclose(model.score_samples(stored), scores, atol=1e-7)


def test_a_fit_to_a_file_holds_no_array_of_the_size_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr(scratch, "GROUP_BYTES", 1 << 20)
    monkeypatch.setattr(graph_descent, "TILE_BYTES", 1 << 15)
    monkeypatch.setattr(neighbors, "CODED_ENTRIES", 1 << 15)
    monkeypatch.setattr(refit, "SAMPLED_ENTRIES", 10_000)
    X = clouds(5000, 300)
    stored, n_bytes = saved(X, "memmap", tmp_path), X.nbytes
    settings = {"n_components": 3, **NUMBERS}
    with threadpool_limits(1):
        FRPCAG(**settings).fit(stored[:300])  # imports and caches are not the fit's
        del X
        tracemalloc.start()
        FRPCAG(**settings).fit(stored)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # The graph, matrices of the size of the features, and blocks: with one array of the size of the
    # data besides, even in single precision, it would be more than n_bytes.
    assert peak < 0.75 * n_bytes


@pytest.mark.parametrize("case", ["auto", "numbers"])
def test_no_more_than_the_stated_number_of_arrays_is_on_disk(case, tmp_path, monkeypatch):
    space, X = ScratchSpace(monkeypatch), clouds(300, 20)
    FRPCAG(**CASES[case]).fit(saved(X, "memmap", tmp_path))
    assert 0.75 * FRPCAG._scratch_arrays * X.nbytes <= space.most
    # Keys by which training rows are known take 16 bytes each.
    assert space.most <= FRPCAG._scratch_arrays * X.nbytes + 16 * len(X)
