"""Dask arrays and data frames: what looks at each row for itself computes nothing on its own."""

import inspect
import pickle
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from robustpca import (
    EPCA,
    GNMF,
    RPCA,
    RPCAG,
    AngularTrimmer,
    GrassmannAverage,
    LaplacianEigenmaps,
    Reweighted,
    RVFLClassifier,
)
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine import dask_rows, memory
from robustpca.engine import rows as engine
from robustpca.models import all_methods

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

METHODS = all_methods()
every_method = pytest.mark.parametrize("name", METHODS)
ROWWISE = [
    *("transform", "reconstruct", "orthogonal_distances", "score_distances", "score_samples"),
    *("decision_function", "predict"),
]


@cache
def planted():
    return planted_subspace(np.random.default_rng(0), 120, 30, 3, n_outliers=12, noise=0.05)[0]


@cache
def fitted(name):
    method = METHODS[name]
    if "image_shape" in inspect.signature(method).parameters:
        return method((3, 2), image_shape=(6, 5)).fit(planted())
    return method(3).fit(planted())


@pytest.fixture(name="X")
def planted_rows():
    return planted()


@contextmanager
def computing_nothing():
    """Fail where anything is computed."""

    def refuse(graph, keys, **options):
        raise AssertionError("something was computed")

    with dask.config.set(scheduler=refuse):
        yield


@every_method
def test_methods_that_look_at_single_rows_stay_lazy_and_give_the_same_bits(name, X, monkeypatch):
    # Blocks that are not the chunks, which the results have all the same.
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 13)
    model, lazy = fitted(name), da.from_array(X, chunks=((50, 1, 69), -1))
    codes = da.from_array(model.transform(X), chunks=((50, 1, 69), -1))
    methods = [*ROWWISE, *(["decompose", "flag_entries"] if hasattr(model, "decompose") else [])]
    with computing_nothing():
        found = {method: getattr(model, method)(lazy) for method in methods}
        found["inverse_transform"] = model.inverse_transform(codes)
    for method, got in found.items():
        wanted = getattr(model, method)(codes.compute() if method == "inverse_transform" else X)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for part, expected in pairs:
            dense = expected.toarray() if sparse.issparse(expected) else expected
            assert part.chunks[0] == lazy.chunks[0], method
            assert (part.shape, part.dtype) == (dense.shape, dense.dtype), method
            np.testing.assert_array_equal(part.compute(), dense, method)


@every_method
def test_every_source_gives_the_same_bits(name, X, tmp_path, monkeypatch):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 14)
    expected = clone(fitted(name))
    if "tol" in expected.get_params():
        # A bit that differs in one pass would differ in the next, so few passes tell as much.
        expected.set_params(tol=1e-2)
    expected.fit(X)
    np.save(tmp_path / "X.npy", X)
    # Also arrays that are stored column by column.
    orders = {"rows": {}, "columns": {"order": "F", "zarr_format": 2}}
    for order, options in orders.items():
        path = str(tmp_path / order)
        zarr.create_array(path, shape=X.shape, chunks=(50, 7), dtype=X.dtype, **options)[:] = X
    with h5py.File(tmp_path / "X.h5", "w") as file:
        sources = {
            "memmap": np.load(tmp_path / "X.npy", mmap_mode="r"),
            "hdf5": file.create_dataset("X", data=X, chunks=(33, 8)),
            **{f"zarr by {order}": zarr.open_array(str(tmp_path / order)) for order in orders},
            "dask by columns": da.from_array(np.asfortranarray(X), chunks=(77, -1)),
        }
        for source, rows in sources.items():
            model = clone(expected).fit(rows)
            for attribute, value in vars(expected).items():
                if isinstance(value, np.ndarray | float) and attribute.endswith("_"):
                    np.testing.assert_array_equal(getattr(model, attribute), value, source)
            codes = np.asarray(model.transform(rows))
            np.testing.assert_array_equal(codes, expected.transform(X), source)


def test_single_precision_and_whole_numbers_have_the_types_of_arrays(X):
    model = fitted("EPCA")
    single = EPCA(3).fit(X.astype(np.float32))
    for fit, rows in ((single, X.astype(np.float32)), (model, np.round(X).astype(int))):
        lazy = fit.transform(da.from_array(rows, chunks=(50, -1)))
        assert lazy.dtype == fit.transform(rows).dtype
        assert lazy.compute().dtype == lazy.dtype


@pytest.mark.parametrize("name", ["EPCA", "RPCA"])
def test_filtered_rows_need_not_be_counted(name, X):
    model, lazy = fitted(name), da.from_array(X, chunks=(20, -1))
    X = X.copy()
    X[20:40, 0] = -100.0
    lazy = da.from_array(X, chunks=(20, -1))
    chosen = lazy[lazy[:, 0] > 0]
    with computing_nothing():
        codes, flags = model.transform(chosen), model.predict(chosen)
    # The blocks are not those of the array, so that sums may be rounded in another way.
    np.testing.assert_allclose(codes.compute(), model.transform(X[X[:, 0] > 0]), atol=1e-9)
    np.testing.assert_array_equal(flags.compute(), model.predict(X[X[:, 0] > 0]))
    with pytest.raises(ValueError, match=r"unknown chunk sizes.*compute_chunk_sizes"):
        model.fit(chosen)


@pytest.mark.parametrize("name", ["EPCA", "PCAAN", "AngularEmbedding", "RPCA"])
def test_task_graphs_hold_nothing_of_the_size_of_the_training_data(name):
    X = planted_subspace(np.random.default_rng(0), 6000, 20, 3, n_outliers=300, noise=0.05)[0]
    model = METHODS[name](3).fit(X)
    rows = da.zeros((100, 20), chunks=(50, -1))
    for method in ("transform", "predict"):
        graph = dict(getattr(model, method)(rows).__dask_graph__())
        assert len(pickle.dumps(graph)) < 30_000 < X.nbytes / 30


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_numbers_are_found_when_they_are_read(bad, X, tmp_path):
    X = X.copy()
    X[70, 3] = bad
    np.save(tmp_path / "X.npy", X)
    for rows in (np.load(tmp_path / "X.npy", mmap_mode="r"), da.from_array(X, chunks=(50, -1))):
        for method in ("transform", "predict"):
            with pytest.raises(ValueError, match="contains NaN, infinity"):
                np.asarray(getattr(fitted("EPCA"), method)(rows))


def test_results_go_on_in_other_graphs(X):
    model, lazy = fitted("PCAAN"), da.from_array(X, chunks=(40, -1))
    with computing_nothing():
        mean = model.transform(lazy)[model.predict(lazy) == 1].mean(axis=0)
    expected = model.transform(X)[model.predict(X) == 1].mean(axis=0)
    np.testing.assert_allclose(mean.compute(), expected)


def test_a_fit_with_contamination_counts_rows_of_a_dask_array(X):
    lazy = da.from_array(X, chunks=(50, -1))
    here, there = (EPCA(3, contamination=0.25).fit(rows) for rows in (X, lazy))
    assert there.offset_ == here.offset_
    assert np.count_nonzero(np.asarray(there.predict(lazy)) == -1) == 30


def test_scores_of_the_wrong_width_are_refused_at_once(X):
    with pytest.raises(ValueError, match=r"takes scores of shape \(n_samples, 3\)"):
        fitted("EPCA").inverse_transform(da.zeros((10, 4), chunks=(5, -1)))
    assert fitted("EPCA").inverse_transform(np.zeros((0, 3))).shape == (0, 30)


@pytest.mark.parametrize("meta", ["known", "unknown"])
def test_sparse_chunks_are_refused_with_the_remedy(meta, X):
    lazy = da.from_array(X, chunks=(50, -1))
    known = {"meta": sparse.csr_matrix((0, 0))} if meta == "known" else {"dtype": X.dtype}
    chunks = lazy.map_blocks(sparse.csr_matrix, **known)
    for use in (lambda: EPCA(2).fit(chunks), lambda: fitted("EPCA").transform(chunks).compute()):
        with pytest.raises(TypeError, match=r"sparse \(csr_matrix\).*toarray\(\)"):
            use()
    dense = chunks.map_blocks(lambda block: block.toarray(), dtype=X.dtype)
    np.testing.assert_array_equal(EPCA(2).fit(dense).mean_, EPCA(2).fit(X).mean_)


@pytest.mark.parametrize("shape", [(10,), (10, 5, 6)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"Expected 2D array|takes one sample per row"):
        fitted("EPCA").transform(da.zeros(shape))


def test_chunks_of_columns_are_refused_by_lazy_methods_too(X):
    with pytest.raises(ValueError, match=r"3 chunks along its columns.*rechunk"):
        fitted("EPCA").transform(da.from_array(X, chunks=(100, 10)))


@pytest.fixture(name="frames")
def _frames(X):
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pandas.DataFrame(X).add_prefix("x")
    frame["x1"] = np.round(frame["x1"]).astype(int)
    frame["x2"] = frame["x2"] > 0
    return frame, dd.from_pandas(frame, npartitions=3)


@pytest.mark.parametrize("name", ["EPCA", "RPCA"])
def test_data_frames_are_taken_with_the_names_of_their_columns(name, frames):
    frame, lazy = frames
    numbers = np.ascontiguousarray(frame, dtype=float)
    method = METHODS[name]
    here, there = method(3).fit(numbers), method(3).fit(lazy)
    np.testing.assert_array_equal(there.components_, here.components_)
    assert list(there.feature_names_in_) == list(frame.columns)
    with computing_nothing():
        codes, flags = there.transform(lazy), there.predict(lazy)
    np.testing.assert_allclose(codes.compute(), here.transform(numbers), atol=1e-9)
    np.testing.assert_array_equal(flags.compute(), here.predict(numbers))
    with pytest.raises(ValueError, match="feature names should match"):
        there.transform(lazy[[*reversed(lazy.columns)]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        there.transform(lazy.astype(float).to_dask_array())
    # Without names nothing is left of those of an earlier fit.
    assert not hasattr(there.fit(da.from_array(numbers)), "feature_names_in_")


def test_columns_that_are_no_numbers_are_named(frames):
    _, lazy = frames
    lazy["city"] = "Oslo"
    with pytest.raises(ValueError, match=r"1 of its columns do not: city \(.*Choose columns"):
        EPCA(2).fit(lazy)


def others(X):
    y = (X[:, 0] > 0).astype(int)
    yield GNMF(3, n_neighbors=5, max_iter=1000).fit(np.abs(X)), ["transform"]
    yield LaplacianEigenmaps(2).fit(np.abs(X)), ["transform"]
    yield RVFLClassifier(10).fit(X, y), ["predict", "decision_function"]
    yield AngularTrimmer(PCA(2)).fit(X), ["transform", "predict", "score_samples"]
    yield Reweighted(KMeans(3, n_init=1, random_state=0)).fit(X), ["transform", "predict"]
    yield Reweighted(Ridge()).fit(X, X[:, 0]), ["predict"]


def test_other_estimators_are_lazy_too_and_send_nothing_of_the_training_rows(X, tmp_path):
    X = np.abs(X)
    lazy = da.from_array(X, chunks=(50, -1))
    np.save(tmp_path / "X.npy", X)
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    for model, methods in others(X):
        for method in methods:
            wanted = getattr(model, method)(X)
            with computing_nothing():
                found = getattr(model, method)(lazy)
            assert found.chunks[0] == lazy.chunks[0]
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.compute(), wanted, str(model))
            np.testing.assert_array_equal(getattr(model, method)(file), wanted, str(model))
        left_out = set(vars(model)) - set(vars(model._without_training()))
        assert left_out == set(model._of_training) & set(vars(model))
    model = GNMF(3, n_neighbors=5, max_iter=1000).fit(X)
    with computing_nothing():
        points = model.inverse_transform(da.ones((10, 3), chunks=(5, -1)))
    np.testing.assert_array_equal(points.compute(), model.inverse_transform(np.ones((10, 3))))


@pytest.mark.parametrize("source", ["dask", "zarr", "hdf5", "frame"])
def test_methods_that_need_all_rows_say_so_before_they_read_any(source, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 5e9)
    shape = (10_000_000, 100)
    rows = da.zeros(shape, chunks=(1000_000, -1))
    if source == "frame":
        pytest.importorskip("dask.dataframe")
        # Its rows are counted, which reads zeros.
        rows = da.zeros((1000, 100), chunks=(100, -1)).to_dask_dataframe()
        monkeypatch.setattr(memory, "available_bytes", lambda: 5e4)
        shape = (1000, 100)
    elif source == "zarr":
        zarr = pytest.importorskip("zarr")
        rows = zarr.create_array(str(tmp_path / "X"), shape=shape, chunks=(1000, 100), dtype=float)
    elif source == "hdf5":
        h5py = pytest.importorskip("h5py")
        file = h5py.File(tmp_path / "X.h5", "w")
        rows = file.create_dataset("X", shape=shape, dtype=float, chunks=(1000, 100))
    words = rf"needs all rows at once: X of shape \({shape[0]}, 100\) takes 8.* are free\. Use"
    for model in (RPCAG(), GrassmannAverage(2), LaplacianEigenmaps(2), GNMF(2)):
        name = type(model).__name__
        with pytest.raises(MemoryError, match=f"^{name} {words}"):
            model.fit(rows)


def test_what_is_far_too_large_is_refused_without_cutting_it_into_blocks(monkeypatch):
    monkeypatch.setattr(dask_rows.DaskRows, "_in_blocks", lambda rows: pytest.fail("cut"))
    with pytest.raises(MemoryError, match="takes 8e\\+03 TB"):
        RPCAG().fit(da.zeros((10**12, 1000), chunks=(10**9, -1)))


def test_what_no_disk_holds_is_refused_before_it_is_read(monkeypatch):
    def read(rows, start, stop):
        assert stop - start < 100  # a few rows tell what numbers these are
        return np.zeros((stop - start, 1000))

    monkeypatch.setattr(dask_rows.DaskRows, "read", read)
    with pytest.raises(OSError, match=r"No room for 8000000\.00 GB of scratch space.*TMPDIR"):
        RPCA().fit(da.zeros((10**12, 1000), chunks=(10**9, -1)))


def test_which_methods_read_blocks_is_true(tmp_path, monkeypatch):
    """Those that do are never refused, and never ask for all rows."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 0.0)
    monkeypatch.setattr(engine.Rows, "whole", lambda rows: pytest.fail("all rows were read"))
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 13)
    np.save(tmp_path / "X.npy", planted())
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    for name, method in METHODS.items():
        settings = {"image_shape": (6, 5)} if "image_shape" in method().get_params() else {}
        if method._by_blocks:
            method(2, **settings).fit(file)
        else:
            with pytest.raises(MemoryError, match=f"{name} needs all rows at once"):
                method(2, **settings).fit(file)
    GrassmannAverage(2, trim=0).fit(file)


def test_available_memory_is_that_of_the_system_or_of_the_container(tmp_path, monkeypatch):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  3000 kB\nMemAvailable:  2000 kB\nHugePages_Total: 0\n")
    monkeypatch.setattr(memory, "MEMINFO", meminfo)
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert memory.available_bytes() == 2000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_bytes() == 2000 * 1024
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("800000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 300000\n")
    assert memory.available_bytes() == 500_000
    meminfo.unlink()
    (tmp_path / "memory.max").unlink()
    assert memory.available_bytes() == float("inf")
