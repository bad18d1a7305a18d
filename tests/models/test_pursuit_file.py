"""RPCA on rows in files: the bits of a fit in memory, without an array of their size."""

import tracemalloc

import numpy as np
import pytest
from stored import ScratchSpace, dense, saved, use_small_pieces
from threadpoolctl import threadpool_limits

from robustpca import RPCA
from robustpca.engine import blocks, column_ranks, entries, rows, scratch
from robustpca.engine.scratch import is_scratch
from robustpca.solvers import anderson, refit

ATTRIBUTES = [
    "components_",
    "mean_",
    "explained_variance_",
    "objective_",
    "column_noise_",
    "noise_",
    "sparsity_",
    "dual_gap_",
    "rank_",
    "density_",
    "orthogonal_cutoff_",
    "score_cutoff_",
    "offset_",
    "embedding_",
    "low_rank_",
    "entry_flags_",
]
PAPER = {"noise": 0, "debias": False}
CASES = {
    "default": {},
    "paper": PAPER,
    "shrunk": {"debias": False, "tol": 1e-4},
    "admm": {"solver": "admm"},
    "ialm": {"solver": "ialm", "tol": 1e-4},
    "altproj": {"solver": "altproj", "n_components": 4},
    "units": {"center": "median", "scale": "mad"},
    "share": {"contamination": 0.1, "n_components": 0.9},
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    use_small_pieces(monkeypatch)


def planted(n, d, noise=0.1, dtype=np.float64, missing=0.0):
    """A matrix of low rank, some entries of which are wrong or missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + noise * rng.normal(size=(n, d))
    X[rng.random((n, d)) < 0.03] += 10
    X[rng.random((n, d)) < missing] = np.nan
    return X.astype(dtype)


def same(stored, model):
    """Whether two fits agree in all that they tell, to the last bit."""
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(stored, name), getattr(model, name), err_msg=name)
    np.testing.assert_array_equal(dense(stored.sparse_), dense(model.sparse_))


def agree(X, kind, folder, **settings):
    same(RPCA(**settings).fit(saved(X, kind, folder)), RPCA(**settings).fit(X))


@pytest.mark.parametrize("noise", [0.0, 0.1], ids=["exact", "noisy"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:RPCA. solver='ialm' ended")
@pytest.mark.filterwarnings("ignore:RPCA. low_rank_ has full rank")
def test_a_fit_to_a_file_gives_the_bits_of_one_in_memory(case, noise, tmp_path):
    X = planted(500, 45, noise)
    model = RPCA(**CASES[case]).fit(X)
    stored = RPCA(**CASES[case]).fit(saved(X, "memmap", tmp_path))
    same(stored, model)
    assert is_scratch(stored.low_rank_)
    assert is_scratch(stored.entry_flags_)
    assert not is_scratch(model.low_rank_)
    assert not is_scratch(model.entry_flags_)


@pytest.mark.parametrize("kind", ["hdf5", "zarr", "dask"])
def test_whatever_holds_the_rows_will_do(kind, tmp_path):
    agree(planted(400, 45, dtype=np.float32), kind, tmp_path)


def test_tables_with_units_are_the_same_too(tmp_path):
    X = planted(400, 30)
    X = X * np.geomspace(1e-3, 1e3, 30) + np.linspace(-500, 500, 30)
    X[:, 7] = np.where(np.arange(400) % 7, 5.0, X[:, 7])  # its median deviation is zero
    X[:, 8] = 3.0
    model = RPCA().fit(X)
    same(RPCA().fit(saved(X, "memmap", tmp_path)), model)
    assert model._decomposition.units.shift.any()
    assert len(set(model._decomposition.units.scale)) > 20


def test_missing_entries_whole_numbers_and_many_columns(tmp_path):
    agree(planted(400, 45, missing=0.1), "memmap", tmp_path)
    agree(np.round(10 * planted(400, 20)).astype(np.int16), "memmap", tmp_path)
    agree(planted(45, 400), "memmap", tmp_path)


def test_a_sparse_part_of_many_entries_is_in_a_scratch_file(tmp_path):
    X = planted(400, 45)
    settings = {**PAPER, "sparsity": 0.03, "tol": 1e-3}
    model, stored = RPCA(**settings).fit(X), RPCA(**settings).fit(saved(X, "memmap", tmp_path))
    same(stored, model)
    assert model.density_ > 0.5
    assert is_scratch(stored.sparse_)


def test_a_second_fit_goes_on_from_the_first(tmp_path):
    X = planted(400, 45)
    file = saved(X, "memmap", tmp_path)
    model, stored = (RPCA(warm_start=True, **PAPER).fit(data) for data in (X, file))
    first = model.n_iter_
    same(stored.fit(file), model.fit(X))
    assert model.n_iter_ < first / 2


def test_threads_change_nothing(tmp_path):
    file = saved(planted(500, 45), "memmap", tmp_path)
    with threadpool_limits(1, user_api="blas"):
        alone = RPCA().fit(file)
    with threadpool_limits(3, user_api="blas"):
        same(RPCA().fit(file), alone)


def test_bad_entries_of_a_file_are_refused_as_in_memory(tmp_path):
    X = planted(200, 15)
    X[150, 3] = np.inf
    with pytest.raises(ValueError, match="contains infinity"):
        RPCA().fit(saved(X, "memmap", tmp_path))
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match=r"1 columns of X hold no value.*\[3\]"):
        RPCA().fit(saved(X, "memmap", tmp_path))


def test_only_sampling_asks_for_all_rows(tmp_path, monkeypatch):
    X = planted(400, 45)
    file = saved(X, "memmap", tmp_path)
    monkeypatch.setattr("robustpca.engine.memory.available_bytes", lambda: X.nbytes - 1)
    RPCA().fit(file)
    with pytest.raises(MemoryError, match="RPCA needs all rows at once"):
        RPCA(solver="sampled").fit(file)


@pytest.mark.parametrize(("noise", "settings"), [(0.1, {}), (0.0, PAPER)], ids=["default", "paper"])
def test_a_fit_to_a_file_holds_no_array_of_the_size_of_the_data(
    noise, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1 << 19)
    monkeypatch.setattr(scratch, "GROUP_BYTES", 1 << 19)
    monkeypatch.setattr(refit, "SAMPLED_ENTRIES", 10_000)
    X = planted(20_000, 160, noise)
    stored, n_bytes = saved(X, "memmap", tmp_path), X.nbytes
    with threadpool_limits(1):
        RPCA(**settings).fit(stored[:500])  # imports and caches are not the fit's
        del X
        tracemalloc.start()
        RPCA(**settings).fit(stored)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # Blocks; one array of the size of the data besides, even in single precision, would be more.
    assert peak < 0.5 * n_bytes


@pytest.mark.parametrize(
    ("noise", "settings"),
    [
        (0.1, {}),
        (0.1, {"solver": "altproj", "n_components": 4}),
        (0.0, {"solver": "altproj", "n_components": 4}),
        (0.1, {"center": "median", "scale": "mad"}),
        (0.1, {"debias": False, "tol": 1e-3}),
        pytest.param(0.0, {}, marks=pytest.mark.slow),  # hundreds of passes
    ],
    ids=["default", "altproj", "exact altproj", "units", "not debiased", "exact"],
)
def test_more_rows_in_a_file_need_no_more_memory(noise, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(column_ranks, "SORTED_ROWS", 1 << 9)
    monkeypatch.setattr(scratch, "GROUP_BYTES", 1 << 19)
    monkeypatch.setattr(refit, "SAMPLED_ENTRIES", 10_000)
    monkeypatch.setattr(scratch, "SUMMED_ROWS", 1 << 11)
    monkeypatch.setattr(entries, "LISTED", 1 << 11)
    monkeypatch.setattr(blocks, "TILE_BYTES", 1 << 16)
    X = planted(17_000, 45, noise, dtype=np.float32)
    stored, peaks = saved(X, "memmap", tmp_path), []
    del X
    with threadpool_limits(1):
        RPCA(**settings).fit(stored[:2000])  # imports and caches are not the fit's
        for n_rows in (8500, 17_000):
            tracemalloc.start()
            model = RPCA(**settings).fit(stored[:n_rows])
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert model.n_components_ == 4
    # A number for each row would take four or eight bytes; one for each part of them is fine.
    assert peaks[1] - peaks[0] < 3 * 8500


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_more_than_the_stated_number_of_arrays_is_on_disk(dtype, tmp_path, monkeypatch):
    # As for large data, of which the acceleration remembers one step.
    monkeypatch.setattr(anderson, "MOST_BYTES", 1)
    X = planted(400, 45, dtype=dtype) * np.geomspace(0.01, 100, 45).astype(dtype)
    space = ScratchSpace(monkeypatch, large=4 * X.size)
    RPCA(debias=False, tol=1e-4).fit(saved(X, "memmap", tmp_path))
    most = RPCA._scratch_arrays * X.nbytes
    assert 0.6 * most <= space.most_large <= most
    # Factors and sparse entries, which are more beside rows as short as these.
    assert space.most <= 1.2 * most
