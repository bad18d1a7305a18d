"""Files, disks and clusters that fail: one sentence, nothing half done, and no wait without end."""

import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from types import SimpleNamespace

import numpy as np
import pytest

from robustpca import EPCA, L1PCA, RPCA, as_dask
from robustpca.engine import dask_rows, stored
from robustpca.engine import rows as engine
from robustpca.engine.threads import one_blas_thread

da = pytest.importorskip("dask.array")
h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Cut even small data into many blocks, and see that nothing is left behind."""
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 14)
    yield
    assert not one_blas_thread.holders


@pytest.fixture(name="X")
def rows(rng):
    return rng.normal(size=(300, 3)) @ rng.normal(size=(3, 90)) + 0.1 * rng.normal(size=(300, 90))


@pytest.fixture
def path(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return tmp_path / "X.npy"


def compressed(store, X, folder):
    """The rows in chunks of 50 that know when they are damaged, and the file to damage."""
    if store == "h5":
        path = folder / "X.h5"
        with h5py.File(path, "w") as file:
            options = {"chunks": (50, 90), "compression": "gzip", "fletcher32": True}
            file.create_dataset("X", data=X, **options)
            place = file["X"].id.get_chunk_info(3)
        return path, place.byte_offset, lambda: h5py.File(path, "r")["X"]
    folder = folder / "X.zarr"
    array = zarr.create_array(str(folder), shape=X.shape, chunks=(50, 90), dtype=X.dtype)
    array[:] = X
    return folder / "c" / "3" / "0", 0, lambda: zarr.open_array(str(folder), mode="r")


def refused(model, X, match, kind=OSError):
    """Whether a fit ends with this sentence, and leaves the model as it was."""
    before = dict(vars(model))
    with pytest.raises(kind, match=match):
        model.fit(X)
    assert vars(model) == before


@pytest.mark.parametrize("n_bytes", [0, 1000, 200_000, 215_999])
def test_a_file_that_was_cut_off_is_told(n_bytes, X, path):
    memmap = np.load(path, mmap_mode="r+")
    os.truncate(path, n_bytes)
    refused(EPCA(3), memmap, r"X.npy ends before row \d+ of 300: it was cut off")


CHANGED = r"X\.\w+.* was changed while it was read: start again when it stays as it is\.$"


def opened(kind, X, folder):
    """Rows in a file that nothing has changed for long, and what changes them."""
    if kind == "npy":
        path = folder / "X.npy"
        np.save(path, X)
        return path, lambda: np.load(path, mmap_mode="r"), lambda: np.save(path, 2 * X)
    damaged, offset, reopened = compressed(kind, X, folder)

    def change():
        with damaged.open("r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(byte)

    return damaged, reopened, change


@pytest.mark.parametrize("through_dask", [False, True])
@pytest.mark.parametrize("kind", ["npy", "h5", "zarr"])
def test_files_that_change_during_a_fit_are_told(kind, through_dask, X, tmp_path):
    changed, reopened, change = opened(kind, X, tmp_path)
    os.utime(changed, ns=(0, 0))  # whatever the clock of the file system can tell apart
    rows = as_dask(reopened()) if through_dask else reopened()

    def change_it(progress):
        change()
        os.utime(changed, ns=(7, 7))

    EPCA(3, tol=1e-12).fit(rows)
    refused(EPCA(3, tol=1e-12, callback=change_it), rows, CHANGED)


@pytest.mark.parametrize("kind", ["npy", "h5", "zarr"])
def test_files_that_were_changed_before_a_fit_are_fitted(kind, X, tmp_path):
    changed, reopened, change = opened(kind, X, tmp_path)
    rows = as_dask(reopened())
    change()
    os.utime(changed, ns=(7, 7))
    expected = EPCA(3).fit(2 * X if kind == "npy" else X)
    np.testing.assert_array_equal(EPCA(3).fit(rows).mean_, expected.mean_)
    np.testing.assert_array_equal(EPCA(3).fit(reopened()).mean_, expected.mean_)


def test_a_chunk_that_appears_during_a_fit_is_told(X, tmp_path):
    folder = tmp_path / "X.zarr"
    array = zarr.create_array(str(folder), shape=X.shape, chunks=(50, 90), dtype=X.dtype)
    array[:250] = X[:250]
    model = EPCA(3, tol=1e-12, callback=lambda progress: array.__setitem__(299, X[299]))
    refused(model, zarr.open_array(str(folder), mode="r"), CHANGED)


def test_copies_with_another_centre_have_the_open_file(X, tmp_path):
    _, reopened, _ = opened("h5", X, tmp_path)
    dataset = reopened()
    rows = stored.HDF5Rows(dataset)
    assert rows.centred(X[0]).X is dataset
    sent = pickle.loads(pickle.dumps(rows))
    assert (sent.X, sent.watched) == (None, None)
    np.testing.assert_array_equal(sent.read(3, 9), X[3:9])


def test_results_do_not_share_the_memory_that_rows_are_read_into(X, path):
    rows = stored.FileRows(np.load(path, mmap_mode="r"))
    assert len(rows.bounds) > 10
    for same in (rows, dask_rows.DaskRows(as_dask(np.load(path, mmap_mode="r")))):
        np.testing.assert_array_equal(same.map(lambda block: block.block), X)
        np.testing.assert_array_equal(np.concatenate(list(same.stream(_rows_of))), X)
    read = rows.reader()
    assert np.may_share_memory(read(0, 10), read(10, 20))
    assert not np.may_share_memory(rows.read(0, 10), rows.read(10, 20))


def _rows_of(block):
    return block.block


@pytest.mark.parametrize("model", [EPCA(3), L1PCA(2), RPCA()])
@pytest.mark.parametrize("store", ["h5", "zarr"])
def test_a_damaged_chunk_is_told(model, store, X, tmp_path):
    damaged, offset, opened = compressed(store, X, tmp_path)
    with damaged.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xff" * 200)
    refused(model, opened(), rf"Rows \d+ to \d+ of .*X\.{store}.* cannot be read: .")


@pytest.mark.parametrize("n_before", [0, 3, 8, 40])
def test_a_block_that_cannot_be_read_ends_the_fit(n_before, X, path, monkeypatch):
    genuine, left = stored.FileRows._read, [n_before]

    def failing(self, start, stop):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(5, "Input/output error")
        return genuine(self, start, stop)

    memmap, model = np.load(path, mmap_mode="r"), EPCA(3, tol=1e-12)
    monkeypatch.setattr(stored.FileRows, "_read", failing)
    refused(model, memmap, "X.npy cannot be read: .*Input/output error")
    monkeypatch.setattr(stored.FileRows, "_read", genuine)
    np.testing.assert_array_equal(model.fit(memmap).components_, model.fit(X).components_)


def test_what_a_worker_cannot_read_is_told_here(X, path):
    lazy = as_dask(np.load(path, mmap_mode="r+"))
    os.truncate(path, 100_000)
    refused(EPCA(3), lazy, "X.npy ends before row")


def test_too_little_memory_is_no_fault_of_the_file(X, path, monkeypatch):
    def failing(*_):
        raise MemoryError

    monkeypatch.setattr(stored.FileRows, "_read", failing)
    refused(EPCA(3), np.load(path, mmap_mode="r"), "^$", MemoryError)


def test_a_model_that_does_not_fit_on_the_disk_leaves_nothing(X, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    model, path = EPCA(3).fit(X), tmp_path / "model.rpca"
    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert list(tmp_path.iterdir()) == []


def client(status):
    """A client that has one worker."""
    return SimpleNamespace(status=status, nthreads=lambda: {"tcp://127.0.0.1:1": 1})


class TestClusters:
    def test_a_fit_does_not_wait_for_workers_for_ever(self, path, monkeypatch):
        distributed = pytest.importorskip("distributed")
        monkeypatch.setattr(dask_rows, "WAITING", 0.1)
        monkeypatch.setattr(dask_rows, "WAITED", 0.3)
        options = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
        sentence = "no workers for 0 seconds. Start some with `dask worker [a-z]+://"
        with (
            distributed.LocalCluster(**options) as cluster,
            distributed.Client(cluster),
            pytest.warns(UserWarning, match="no workers, and the fit waits"),
        ):
            refused(EPCA(3), as_dask(np.load(path, mmap_mode="r")), sentence, ConnectionError)

    @pytest.mark.parametrize("error", [CancelledError(), OSError("Connection reset by peer")])
    def test_a_lost_scheduler_is_told(self, error, monkeypatch):
        def work():
            raise error

        monkeypatch.setattr(dask_rows, "_client", lambda: client("connecting"))
        with pytest.raises(ConnectionError, match="connection to the Dask scheduler was lost"):
            dask_rows._again(work)

    def test_what_could_not_be_sent_to_a_worker_that_died_is_sent_again(self, monkeypatch):
        core = pytest.importorskip("distributed.comm.core")
        errors = [core.CommClosedError("Stream is closed"), TimeoutError("No valid workers found")]

        def work():
            if errors:
                raise errors.pop()
            return 7

        monkeypatch.setattr(dask_rows, "_client", lambda: client("running"))
        assert dask_rows._again(work) == 7

    def test_an_error_of_the_data_is_not_one_of_the_scheduler(self, monkeypatch):
        def work():
            raise OSError("Input/output error")

        monkeypatch.setattr(dask_rows, "_client", lambda: client("running"))
        with pytest.raises(OSError, match="Input/output error"):
            dask_rows._again(work)

    @pytest.mark.slow
    def test_a_scheduler_killed_during_a_fit_ends_it(self, X, tmp_path):
        distributed = pytest.importorskip("distributed")
        known, started = tmp_path / "scheduler.json", []
        scheduler, worker = (
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options],
                stderr=subprocess.DEVNULL,
            )
            for kind, options in {
                "scheduler": ["--port", "0", "--no-dashboard", "--scheduler-file", str(known)],
                "worker": ["--no-nanny", "--no-dashboard", "--scheduler-file", str(known)],
            }.items()
        )

        def kill(progress):
            scheduler.kill()
            started.append(time.monotonic())

        try:
            with distributed.Client(scheduler_file=str(known), timeout="300s") as client:
                client.wait_for_workers(1, timeout=300)
                model = EPCA(3, tol=1e-12, callback=kill)
                refused(model, da.from_array(X, chunks=(100, -1)), "scheduler was", ConnectionError)
                assert time.monotonic() - started[0] < 120
        finally:
            for process in (scheduler, worker):
                process.kill()
                process.wait()
