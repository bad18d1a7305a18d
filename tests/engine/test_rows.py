"""The row engine: whoever holds the rows and whoever works on them, the result is the same."""

import pickle
import time
import tracemalloc
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from kills import processes, same_bits, two_workers, with_a_kill
from robustpca import EPCA, FRPCAG, L1PCA, PCAAN, RPCA, AngularEmbedding
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine import dask_rows
from robustpca.engine import rows as engine
from robustpca.engine.dask_rows import as_dask, lazy_rows
from robustpca.engine.rows import ArrayRows, SparseRows, fold, halved
from robustpca.engine.stored import FileRows

da = pytest.importorskip("dask.array")
h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut even small data into many blocks."""
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 14)


@pytest.fixture(name="X")
def planted(rng):
    return planted_subspace(rng, 400, 90, 3, n_outliers=60, noise=0.1)[0]


@pytest.fixture
def stored(X, tmp_path):
    """The same rows as every kind of array that is not held in memory."""
    np.save(tmp_path / "X.npy", X)
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["X"] = X
        array = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=X.dtype)
        array[:] = X
        memmap = np.load(tmp_path / "X.npy", mmap_mode="r")
        yield {
            "memmap": memmap,
            "hdf5": file["X"],
            "zarr": zarr.open_array(str(tmp_path / "X.zarr"), mode="r"),
            "dask": da.from_array(X, chunks=(77, -1)),
            "dask over a file": as_dask(memmap),
        }


def same(first, second):
    """Whether two fits agree to the last bit."""
    return (
        np.array_equal(first.components_, second.components_)
        and np.array_equal(first.mean_, second.mean_)
        and np.array_equal(getattr(first, "weights_", 1), getattr(second, "weights_", 1))
        and np.array_equal(first.objective_, second.objective_)
    )


@pytest.mark.parametrize("method", [EPCA, PCAAN])
def test_every_source_gives_the_same_fit_to_the_last_bit(method, X, stored, small_blocks):
    # A bit that differs in one pass would differ in the next, so few passes tell as much.
    expected = method(3, tol=1e-3).fit(X)
    assert len(ArrayRows(X).bounds) > 10
    for kind, array in stored.items():
        model = method(3, tol=1e-3).fit(array)
        assert same(model, expected), kind
        np.testing.assert_array_equal(model.transform(array), expected.transform(X), kind)
        np.testing.assert_array_equal(model.predict(array), expected.predict(X), kind)


@pytest.mark.parametrize("method", [EPCA, PCAAN])
def test_the_number_of_threads_does_not_change_a_bit(method, X, small_blocks):
    fits = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads):
            fits.append(method(3).fit(X))
    assert same(fits[0], fits[1])
    assert same(fits[0], fits[2])


@pytest.fixture(scope="module")
def two_processes():
    pytest.importorskip("distributed")
    with processes(n_workers=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(two_processes):
    """What Dask arrays are worked on by, until the test ends."""
    with pytest.importorskip("distributed").Client(two_processes) as client:
        yield client


@pytest.mark.parametrize("method", [EPCA, PCAAN])
def test_a_cluster_gives_the_same_fit_to_the_last_bit(method, X, stored, cluster, monkeypatch):
    # The workers are other processes and have the default block size, but they are told which
    # rows to work on, so it does not matter.
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 16)
    assert len(ArrayRows(X).bounds) > 4
    expected = method(3, tol=1e-2).fit(X)
    for kind in ("dask", "dask over a file"):
        assert same(method(3, tol=1e-2).fit(stored[kind]), expected)


def test_work_is_done_anew_where_what_a_worker_held_is_lost():
    losses = [True, True, False]

    def work():
        if losses.pop(0):
            raise CancelledError
        return 7

    assert dask_rows._again(work) == 7
    losses = [True] * 20
    with pytest.raises(CancelledError):
        dask_rows._again(work)


@pytest.mark.parametrize(
    "trouble",
    [
        KeyError("tcp://127.0.0.1:1"),
        OSError("Timed out trying to connect to tcp://127.0.0.1:1 after 30 s"),
        CancelledError(),
    ],
)
def test_whatever_dask_raises_where_a_worker_dies_while_it_is_sent_something(
    trouble, X, stored, cluster, monkeypatch
):
    # The moment decides which of them it is, so no kill could be timed to give each.
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 16)
    weights, scatter, troubles = np.arange(len(X), dtype=float), cluster.scatter, [trouble] * 2

    def send(*arguments, **options):
        if troubles:
            raise troubles.pop()
        return scatter(*arguments, **options)

    monkeypatch.setattr(cluster, "scatter", send)
    expected = ArrayRows(X).sum("weighted_gram", along=(weights,))
    found = lazy_rows(stored["dask"]).sum("weighted_gram", along=(weights,))
    assert not troubles
    for part, same_part in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, same_part)


@pytest.mark.parametrize(
    ("n_threads", "n_blocks", "n_tasks"),
    [
        *((1, 19, 1), (1, 100, 2), (2, 16, 2), (2, 19, 2), (2, 5, 2), (2, 37, 4), (3, 72, 8)),
        *((2, 500, 8), (4, 1000, 16), (100, 1000, 128), (50, 72, 72), (50, 5, 5)),
    ],
)
def test_a_pass_has_few_tasks_that_are_equally_long(n_threads, n_blocks, n_tasks, tmp_path):
    dask = pytest.importorskip("dask")
    rows = lazy_rows(as_dask(np.memmap(tmp_path / "X.dat", np.float32, "w+", shape=(n_blocks, 4))))
    rows.row_bytes = engine.BLOCK_BYTES
    assert len(rows.bounds) == n_blocks
    with dask.config.set(scheduler="threads", num_workers=n_threads):
        assert rows._n_tasks() == n_tasks
    # None is much longer than a thread's share of all blocks.
    rounds, longest = -(-n_tasks // n_threads), max(map(len, _cut_blocks(n_blocks, n_tasks)))
    assert rounds * longest <= max(1.7 * n_blocks / n_threads, 2)


def _cut_blocks(n_blocks, n_tasks):
    return [range(n_blocks)[place] for place in halved(n_blocks, n_tasks)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FRPCAG. low_rank_ has full rank")
@pytest.mark.parametrize(
    ("source", "model", "n_kills"),
    [
        ("array", EPCA(3, tol=1e-2), 20),
        ("array", L1PCA(3, tol=1e-2), 20),
        *(("file", EPCA(3, tol=1e-2), 5), ("file", L1PCA(3, tol=1e-2), 5)),
        *(("file", PCAAN(3, tol=1e-2), 5), ("file", AngularEmbedding(3), 5)),
        ("file", RPCA(), 5),
        ("file", FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0), 5),
    ],
)
def test_a_worker_killed_at_any_moment_changes_nothing(
    source, model, n_kills, X, tmp_path, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 16)
    expected = clone(model).fit(X)
    if source == "file":
        # A task has several blocks of it.
        monkeypatch.setattr(dask_rows, "TASKS_PER_THREAD", 1)
        np.save(tmp_path / "X.npy", X)
        rows = as_dask(np.load(tmp_path / "X.npy", mmap_mode="r"))
    else:
        rows = da.from_array(X, chunks=(len(X) // 8, X.shape[1]))
    moments = np.random.default_rng(0)
    with processes(n_workers=2) as cluster, distributed.Client(cluster) as client:
        started = time.perf_counter()
        model.fit(rows)
        duration = time.perf_counter() - started
        for _ in range(n_kills):
            victim = int(moments.choice(two_workers(cluster, client)))
            fit = partial(clone(model).fit, rows)
            found, _ = with_a_kill(fit, victim, moments.uniform(0, duration))
            if isinstance(found, Exception):
                raise found
            assert same_bits(found, expected)


def _peak_memory():
    # ru_maxrss would be no good: a new process inherits it from the one that started it.
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


def large_file(path, n_samples, rng):
    """Rows of 600 numbers near a subspace, written piece by piece, as a Dask array."""
    basis = rng.normal(size=(3, 600)).astype(np.float32)
    with path.open("wb") as file:
        for start in range(0, n_samples, 1 << 15):
            n = min(1 << 15, n_samples - start)
            block = rng.standard_normal((n, 3), dtype=np.float32) @ basis
            block[::10] += 30 * rng.standard_normal(600, dtype=np.float32)
            (block + 0.1 * rng.standard_normal(600, dtype=np.float32)).tofile(file)
    return as_dask(np.memmap(path, np.float32, "r", shape=(n_samples, 600)))


@needs_proc
def test_the_memory_of_a_worker_does_not_grow_with_the_array_on_disk(tmp_path, cluster, rng):
    X = large_file(tmp_path / "large.dat", 120_000, rng)
    PCAAN(3, max_iter=2, tol=1.0).fit(X[:30_000])
    before = cluster.run(_peak_memory)
    PCAAN(3, max_iter=2, tol=1.0).fit(X)
    after = cluster.run(_peak_memory)
    # Each of the two works on half of the rows; it holds a few blocks of them at a time.
    assert max(after[worker] - before[worker] for worker in before) < X.nbytes / 4


@pytest.mark.slow
@needs_proc
def test_an_array_on_disk_four_times_the_worker_memory_is_fitted_within_it(tmp_path, rng):
    limit = 320 << 20
    X = large_file(tmp_path / "large.dat", 4 * limit // (4 * 600) + 1, rng)
    assert X.nbytes >= 4 * limit
    with processes(n_workers=1, memory_limit=limit) as cluster, cluster.get_client() as client:
        PCAAN(3, max_iter=2, tol=1.0).fit(X)
        assert max(client.run(_peak_memory).values()) < limit


def test_a_fit_from_disk_holds_a_few_blocks_at_a_time(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 20)
    X = planted_subspace(rng, 20_000, 200, 2, n_outliers=2000, noise=0.1)[0]
    np.save(tmp_path / "X.npy", X)
    n_bytes = X.nbytes
    del X
    memmap = np.load(tmp_path / "X.npy", mmap_mode="r")
    with threadpool_limits(2):
        EPCA(2).fit(memmap[:500])  # imports and caches are not the fit's
        tracemalloc.start()
        EPCA(2).fit(memmap)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert n_bytes > 30 << 20
    # Blocks in flight, and the coordinates of the rows in a view of about forty directions.
    assert peak < 16 << 20


@pytest.mark.parametrize("method", [EPCA, PCAAN, AngularEmbedding])
def test_memory_beside_the_blocks_is_some_numbers_a_row(method, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 18)
    n_rows = 50_000
    X = planted_subspace(rng, n_rows, 12, 2, n_outliers=n_rows // 10, noise=0.1)[0]
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    memmap = np.load(tmp_path / "X.npy", mmap_mode="r")
    with threadpool_limits(1):
        method(2).fit(X[:500])
        tracemalloc.start()
        method(2).fit(memmap)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # Scores, distances and weights, and copies of these where they are sorted.
    assert peak < 30 * 8 * n_rows


def test_a_task_graph_over_a_file_holds_paths_and_not_data(stored, X):
    for kind in ("memmap", "hdf5", "zarr"):
        graph = as_dask(stored[kind]).__dask_graph__()
        assert len(pickle.dumps(dict(graph))) < X.nbytes / 20


def test_a_view_of_a_memmap_is_read_from_its_own_place(stored, X):
    memmap = stored["memmap"]
    for view in (memmap[37:], memmap[5:300][20:]):
        rows = lazy_rows(view)
        assert isinstance(rows, FileRows)
        np.testing.assert_array_equal(rows.read(3, 9), view[3:9])


def test_a_memmap_whose_rows_are_not_in_the_file_is_read_from_memory(stored, X, tmp_path):
    assert lazy_rows(stored["memmap"][:, ::2]) is None
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    private[0] = 1e3
    assert lazy_rows(private) is None
    changed = X.copy()
    changed[0] = 1e3
    assert same(EPCA(3).fit(private), EPCA(3).fit(changed))


def test_reading_from_a_file_leaves_nothing_mapped(stored):
    block = lazy_rows(stored["memmap"]).read(0, 10)
    assert not isinstance(block, np.memmap)
    assert block.base is None or not isinstance(block.base, np.memmap)


def test_bounds_depend_on_the_shape_alone_and_cover_every_row_once(monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1000)
    for n in (1, 2, 7, 100, 1001):
        bounds = ArrayRows(np.zeros((n, 3))).bounds
        assert [start for start, _ in bounds[1:]] == [stop for _, stop in bounds[:-1]]
        assert bounds[0][0] == 0
        assert bounds[-1][1] == n
        sizes = [stop - start for start, stop in bounds]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) * 24 <= 1000 + 24


def test_what_is_made_of_one_block_shares_no_memory_with_the_data(X):
    found, doubled = ArrayRows(X).map(lambda block: (block.block, 2 * block.block))
    assert not np.shares_memory(found, X)
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(doubled, 2 * X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_single_rows_and_blocks_are_centred(dtype, rng):
    X = rng.normal(size=(50, 8)).astype(dtype) + dtype(5)
    for rows in (ArrayRows(X), SparseRows(sparse.csr_matrix(X)), ArrayRows(X).median_centred()):
        rows = rows.centred(X[3])
        np.testing.assert_array_equal(rows.row(3), np.zeros(8))
        np.testing.assert_allclose(rows.row(7), X[7].astype(float) - X[3], atol=1e-12)
        np.testing.assert_allclose(rows.block(4, 9).dense(), X[4:9] - X[3], atol=1e-6)
        exact = rows.precise()
        assert exact.block(0, 2).dense().dtype == np.float64
        assert exact.is_dense is rows.is_dense


@pytest.mark.parametrize("n", [1, 5, 7, 8, 13, 30, 64, 100])
@pytest.mark.parametrize("n_groups", [1, 2, 4, 8, "all"])
def test_halves_of_halves_are_folded_for_themselves_in_the_same_tree(n, n_groups):
    def tree(parts):
        return fold(parts, lambda a, b: f"({a} {b})", len(parts))

    leaves = [str(i) for i in range(n)]
    n_groups = n if n_groups == "all" else min(n_groups, 1 << (n.bit_length() - 1))
    places = halved(n, n_groups)
    sizes = [place.stop - place.start for place in places]
    assert len(places) == n_groups
    assert sum(sizes) == n
    assert max(sizes) - min(sizes) <= 1
    assert tree([tree(leaves[place]) for place in places]) == tree(leaves)


@pytest.mark.parametrize("n_tasks", [1, 4, 5, 32, 37, 64, 100, 256])
def test_workers_add_many_sums_in_the_tree_of_all_blocks(n_tasks):
    pytest.importorskip("dask")
    from dask.delayed import delayed

    leaf = delayed(_leaf)
    found = dask_rows._gathered(dask_rows._summed([leaf(i) for i in range(n_tasks)]))
    assert len(found) == (n_tasks if n_tasks <= 4 else 1)
    wanted = fold([_leaf(i) for i in range(n_tasks)], lambda a, b: a + b, n_tasks)
    assert fold(found, lambda a, b: a + b, len(found)) == wanted


def _leaf(i):
    """Something whose sums tell in which order they were formed."""
    return Sum(str(i))


class Sum(str):
    def __add__(self, other):
        return Sum(f"({self!s} {other!s})")


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
def test_how_many_tasks_a_pass_takes_changes_no_bit(n_threads, X, stored, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(dask_rows, "_n_threads", lambda: n_threads)
    expected = ArrayRows(X).centred(X[0])
    n_blocks, weights = len(expected.bounds), np.linspace(0.1, 2, len(X))
    assert n_blocks > 60
    for kind in ("dask", "dask over a file"):
        rows = lazy_rows(stored[kind]).centred(X[0])
        n_tasks = len(rows._tasks(engine.total, "weighted_gram", (), (weights,)))
        if kind == "dask over a file":
            assert {1: 2, 50: n_blocks}.get(n_threads, n_tasks) == n_tasks
            assert n_threads <= n_tasks <= max(2, 10 * n_threads)
        found = rows.sum("weighted_gram", along=(weights,))
        for part, wanted in zip(
            found, expected.sum("weighted_gram", along=(weights,)), strict=True
        ):
            np.testing.assert_array_equal(part, wanted)
        for first in (0, 1, 5, n_blocks - 1):
            np.testing.assert_array_equal(
                rows.map("square_norms", first=first), expected.map("square_norms", first=first)
            )


def test_few_rows_of_a_file_are_read_without_a_task(X, stored):
    dask = pytest.importorskip("dask")

    def refuse(*arguments, **options):
        raise AssertionError("A task was given to the scheduler.")

    rows = lazy_rows(stored["dask over a file"])
    with dask.config.set(scheduler=refuse):
        first, last = rows.read_places([(0, 3), (len(X) - 2, len(X))])
    np.testing.assert_array_equal(first, X[:3])
    np.testing.assert_array_equal(last, X[-2:])


def test_a_task_has_as_many_rows_as_a_chunk(X, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 12)
    n_blocks = len(ArrayRows(X).bounds)
    for n_chunks, n_most in ((1, 1), (4, 4), (5, 8), (400, n_blocks)):
        rows = lazy_rows(da.from_array(X, chunks=(len(X) // n_chunks, -1)))
        assert len(rows._tasks(engine.total, "weighted_gram", (), ())) <= n_most


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_fold_adds_in_a_tree_of_fixed_shape(n):
    tree = fold([str(i) for i in range(n)], lambda a, b: f"({a}{b})", n)
    assert tree.replace("(", "").replace(")", "") == "".join(map(str, range(n)))
    if n == 5:
        assert tree == "(((01)2)(34))"


def test_sums_hold_few_parts_at_a_time():
    alive, most = 0, 0

    def parts():
        nonlocal alive, most
        for _ in range(1024):
            alive += 1
            most = max(most, alive)
            yield 1

    def add(a, b):
        nonlocal alive
        alive -= 1
        return a + b

    assert fold(parts(), add, 1024) == 1024
    assert most <= 12


def test_float32_sums_are_kept_in_double_precision(rng, small_blocks):
    X = (1e4 + rng.normal(size=(5000, 40))).astype(np.float32)
    rows = ArrayRows(X).median_centred()
    total, gram = rows.sum("weighted_gram")
    exact = X.astype(np.float64) - rows.center
    assert total.dtype == gram.dtype == np.float64
    np.testing.assert_allclose(gram, exact.T @ exact, rtol=1e-5, atol=1e-3)


def test_the_same_rows_sparse_and_dense_give_the_same_fit(rng):
    X = rng.normal(size=(300, 120)) * (rng.random((300, 120)) < 0.2)
    rows = sparse.csr_matrix(X)
    dense = EPCA(4, tol=1e-14).fit(X)
    # The rule for sigma stops early, at the first digits.
    assert EPCA(4).fit(rows).sigma_ == pytest.approx(dense.sigma_, rel=1e-2)
    thin = EPCA(4, sigma=dense.sigma_, tol=1e-14).fit(rows)
    assert isinstance(SparseRows(sparse.csr_matrix(X)).read(0, 3), sparse.csr_matrix)
    np.testing.assert_allclose(thin.objective_[-1], dense.objective_[-1], rtol=1e-9)
    np.testing.assert_allclose(thin.components_, dense.components_, atol=1e-5)


def test_sparse_input_is_never_made_dense():
    X = sparse.random(1000, 20_000, density=1e-4, format="csr", random_state=0)
    tracemalloc.start()
    EPCA(2, max_iter=3, tol=1.0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.shape[0] * X.shape[1] / 10


def test_a_dask_array_chunked_by_columns_is_refused_with_the_remedy(X):
    with pytest.raises(ValueError, match=r"3 chunks along its columns.*rechunk"):
        EPCA(2).fit(da.from_array(X, chunks=(100, 30)))


def test_a_dask_array_of_unknown_length_is_refused_with_the_remedy(X):
    array = da.from_array(X, chunks=(100, -1))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        EPCA(2).fit(array[array[:, 0] > 0])


@pytest.mark.parametrize("shape", [(400, 90), (100, 40), (90, 150), (300, 400)])
def test_bad_numbers_on_disk_are_found(shape, tmp_path, rng):
    X = rng.normal(size=shape)
    X[23, 7] = np.nan
    np.save(tmp_path / "bad.npy", X)
    with pytest.raises(ValueError, match="contains NaN"):
        EPCA(2).fit(np.load(tmp_path / "bad.npy", mmap_mode="r"))


def test_as_dask_refuses_what_is_not_on_disk(X):
    with pytest.raises(TypeError, match=r"as_dask takes.*not ndarray"):
        as_dask(X)


def test_new_rows_on_disk_must_have_the_right_width(X, stored):
    model = EPCA(2).fit(stored["zarr"])
    assert model.n_features_in_ == 90
    with pytest.raises(ValueError, match="X has 45 features, but EPCA is expecting 90"):
        model.transform(da.from_array(X[:, ::2], chunks=(100, -1)))
