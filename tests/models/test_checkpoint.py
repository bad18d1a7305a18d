"""A fit that was killed goes on from its checkpoint, to the same bits."""

import os
import signal
import zipfile
from multiprocessing import get_context

import numpy as np
import pytest
from every import bits, data, fit

from robustpca import EPCA, GLPCA, PCAAN, PCAOM, RPCA, checkpoint
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine import checkpoint as engine
from robustpca.engine.checkpoint import followed, one_fit
from robustpca.solvers import noise

# Processes are forked from one that imports the library once.
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["pytest", "every", "sklearn.cluster", "numba"])
PATIENCE = 600.0  # seconds that a very busy machine may need

# Estimators of each loop, with settings that give it some passes, and the pass of the crash.
CASES = {
    "EPCA": ("EPCA", {"tol": 1e-12}, 4),
    "EPCA with a share of the variance": ("EPCA", {"n_components": 0.7, "init": "robust"}, 3),
    "PCAOM": ("PCAOM", {"tol": 1e-12}, 5),
    "PCAAN": ("PCAAN", {"tol": 1e-12}, 3),
    "R1PCA": ("R1PCA", {}, 2),
    "R2DPCA": ("R2DPCA", {}, 3),
    "Reweighted(Ridge)": ("Reweighted(Ridge)", {"tol": 0.0, "max_iter": 8}, 4),
    "Reweighted(KMeans)": ("Reweighted(KMeans)", {"weighting": "uniform", "loss": "l21"}, 3),
    "RPCA": ("RPCA", {"tol": 1e-9}, 12),
    "RPCA without noise": ("RPCA", {"tol": 1e-9, "noise": 0.0}, 40),
    "RPCA by a growing penalty": ("RPCA", {"solver": "ialm", "noise": 0.0}, 9),
    "RPCA by projections": ("RPCA", {"solver": "altproj"}, 6),
    "RPCAG": ("RPCAG", {"smoothness": 0.1, "noise": 0.0}, 30),
    "FRPCAG": ("FRPCAG", {}, 8),
    "L1PCA": ("L1PCA", {"n_components": 3, "n_init": 4}, 6),
    "LpPCA": ("LpPCA", {"p": 1.5}, 4),
    "RSPCA": ("RSPCA", {}, 3),
    "GrassmannAverage": ("GrassmannAverage", {"trim": 0.2, "n_components": 3}, 5),
    "EMPCA": ("EMPCA", {}, 3),
    "GNMF": ("GNMF", {}, 10),
    "RGLPCA": ("RGLPCA", {}, 6),
}


def killed_fit(name, settings, n_passes, path):
    def kill(progress):
        if progress.counted and progress.iteration == n_passes:
            os.kill(os.getpid(), signal.SIGKILL)

    with checkpoint(path, every=0.0):
        fit(name, **settings, callback=kill)


class Crash(BaseException):
    """Ends a fit as a crash would, and leaves the process alone."""


@pytest.mark.parametrize("case", CASES)
def test_a_killed_fit_goes_on_to_the_same_bits(case, tmp_path):
    name, settings, n_passes = CASES[case]
    path, passes = tmp_path / "fit.ckpt", []
    process = CONTEXT.Process(target=killed_fit, args=(*CASES[case], path))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL
    assert [file.name for file in tmp_path.iterdir()] == ["fit.ckpt"]
    with checkpoint(path):
        resumed = fit(name, **settings, callback=passes.append)
    assert passes[0].counted
    assert passes[0].iteration == n_passes
    undisturbed = fit(name, **settings)
    assert undisturbed.n_iter_ > n_passes
    assert bits(resumed) == bits(undisturbed)
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_crash_at_any_pass_changes_nothing(case, tmp_path):
    name, settings, _ = CASES[case]
    undisturbed = fit(name, **settings)
    for n_passes in range(1, undisturbed.n_iter_ + 1, 1 + undisturbed.n_iter_ // 12):

        def crash(progress, last=n_passes):
            if progress.iteration == last:
                raise Crash

        with pytest.raises(Crash), checkpoint(tmp_path / "fit.ckpt", every=0.0):
            fit(name, **settings, callback=crash)
        with checkpoint(tmp_path / "fit.ckpt"):
            assert bits(fit(name, **settings)) == bits(undisturbed), n_passes


def crashed(path, n_passes, estimator, *given):
    def crash(progress):
        if progress.iteration == n_passes:
            raise Crash

    with pytest.raises(Crash), checkpoint(path, every=0.0):
        estimator.set_params(callback=crash).fit(*given)
    assert path.exists()
    estimator.set_params(callback=None)


@pytest.fixture(name="X")
def rows():
    return data("EPCA")[0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.ckpt"


# With the looser tolerance passes read a copy of the data in single precision.
@pytest.mark.parametrize("tol", [1e-12, 1e-8])
@pytest.mark.parametrize("store", ["memmap", "dask", "sparse", "zarr", "h5"])
def test_data_of_every_kind_are_referred_to_and_not_written(store, tol, path, tmp_path, rng):
    X = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 200)) + rng.normal(size=(2000, 200))
    if store == "memmap":
        np.save(tmp_path / "X.npy", X)
        stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    elif store == "dask":
        stored = pytest.importorskip("dask.array").from_array(X, chunks=(500, -1))
    elif store == "sparse":
        stored = pytest.importorskip("scipy.sparse").csr_array(X)
    elif store == "zarr":
        zarr = pytest.importorskip("zarr")
        stored = zarr.create_array(tmp_path / "X.zarr", shape=X.shape, dtype=X.dtype)
        stored[:] = X
    else:
        h5py = pytest.importorskip("h5py")
        stored = h5py.File(tmp_path / "X.h5", "w").create_dataset("X", data=X)
    crashed(path, 3, model := EPCA(3, tol=tol), stored)
    assert path.stat().st_size < X.nbytes / 2
    with checkpoint(path):
        resumed = model.fit(stored)
    assert bits(resumed) == bits(EPCA(3, tol=tol).fit(stored))


def test_a_fit_that_left_single_precision_goes_on_in_double_precision(path, rng):
    basis = np.linalg.qr(rng.normal(size=(120, 5)))[0]
    X = rng.normal(size=(1000, 5)) @ basis.T
    X[:450] += rng.normal(size=(450, 120))
    expected = bits(PCAOM(5).fit(X))
    crashed(path, 6, model := PCAOM(5), X)
    with checkpoint(path):
        assert bits(model.fit(X)) == expected


@pytest.mark.parametrize("n_heard", [3, 38, 40])
def test_weights_that_are_tuned_again_are_tuned_to_the_same_number(n_heard, path):
    X, _, is_outlier = planted_subspace(np.random.default_rng(0), 300, 20, 3, 120, noise=0.05)
    heard = []

    def crash(progress):
        heard.append((progress.iteration, progress.n_active))
        if len(heard) == n_heard:
            raise Crash

    # PCA hides the outliers from the first count, but not from the one after 38 passes.
    undisturbed = PCAAN(3, init="pca").fit(X)
    with pytest.raises(Crash), checkpoint(path, every=0.0):
        PCAAN(3, init="pca", callback=crash).fit(X)
    with checkpoint(path):
        resumed = PCAAN(3, init="pca", callback=crash).fit(X)
    assert bits(resumed) == bits(undisturbed)
    assert [n_active for iteration, n_active in heard if iteration == 1] == [225, 180]
    assert not undisturbed.weights_[is_outlier].any()


def test_the_estimate_of_the_noise_goes_on_too(path, rng, monkeypatch):
    X = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 60)) + rng.normal(size=(200, 60))
    expected, genuine, levels = bits(RPCA().fit(X)), noise._median_residual, []

    def crash(data, low_rank, shrinkage):
        if len(levels) == 2:
            raise Crash
        levels.append(shrinkage)
        return genuine(data, low_rank, shrinkage)

    monkeypatch.setattr(noise, "_median_residual", crash)
    with pytest.raises(Crash), checkpoint(path, every=0.0):
        RPCA().fit(X)
    levels.clear()
    monkeypatch.setattr(noise, "_median_residual", genuine)
    with checkpoint(path):
        assert bits(RPCA().fit(X)) == expected


@pytest.mark.parametrize("other", ["data", "parameters", "method"])
def test_the_file_of_another_fit_is_refused(other, X, path):
    crashed(path, 3, EPCA(2, tol=1e-12), X)
    before, model = path.read_bytes(), EPCA(2, tol=1e-12)
    if other == "data":
        X = X.copy()
        X[3, 4] += 1e-12
    elif other == "parameters":
        model.set_params(tol=1e-11)
    else:
        model = PCAAN(2, tol=1e-12)
    with pytest.raises(ValueError, match="checkpoint of another fit, of EPCA"), checkpoint(path):
        model.fit(X)
    assert path.read_bytes() == before


def test_callbacks_and_printing_do_not_make_another_fit(X, path):
    crashed(path, 3, EPCA(2), X)
    with checkpoint(path):
        EPCA(2, callback=print, verbose=0).fit(X)


@pytest.mark.parametrize("content", [b"", b"PK something", b"text" * 100])
def test_a_file_that_is_no_checkpoint_is_refused_and_left_alone(content, X, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or no checkpoint"), checkpoint(path):
        EPCA(2).fit(X)
    assert path.read_bytes() == content


def test_a_damaged_state_is_told(X, path):
    crashed(path, 3, EPCA(2), X)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged: delete it"), checkpoint(path):
        EPCA(2).fit(X)


def test_a_file_cannot_name_what_could_be_run(X, path):
    crashed(path, 3, EPCA(2), X)
    with zipfile.ZipFile(path) as archive:
        header = archive.read("fit")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fit", header)
        archive.writestr("1.passes", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="system of os is neither"), checkpoint(path):
        EPCA(2).fit(X)


def test_a_second_fit_needs_a_file_of_its_own(X, path):
    with checkpoint(path):
        EPCA(2).fit(X)
        with pytest.raises(RuntimeError, match="is for one fit"):
            EPCA(3).fit(X)


def test_a_method_without_a_loop_says_that_nothing_was_written(X, path):
    with checkpoint(path), pytest.warns(UserWarning, match="GLPCA has no loop"):
        GLPCA(2).fit(X)
    assert not path.exists()


def test_a_fit_goes_on_if_its_state_cannot_be_written(X, path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(engine, "_member", full)
    with (
        checkpoint(path, every=0.0),
        pytest.warns(RuntimeWarning, match="fit.ckpt could not be written.*No space") as told,
    ):
        model = EPCA(2).fit(X)
    assert len(told) == 1
    assert list(path.parent.iterdir()) == []
    assert bits(model) == bits(EPCA(2).fit(X))


def test_files_are_written_only_so_often(X, path, monkeypatch):
    written = []
    monkeypatch.setattr(engine, "writing", lambda *args, **_: written.append(args))
    with checkpoint(path):
        RPCA(tol=1e-9).fit(X)
    assert written == []


def test_a_fit_without_a_checkpoint_around_writes_nothing(X, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with checkpoint("other.ckpt"):
        pass
    EPCA(2).fit(X)
    assert list(tmp_path.iterdir()) == []


class Counter:
    def __init__(self):
        self.n, self.order = 0, None


class TestFollowed:
    """The loops of a made-up fit."""

    @staticmethod
    def run(path, crash_at=np.inf, every=0.0):
        """Three loops of five passes each; returns what was counted, and how many passes ran."""
        totals, n_passes = [], 0
        with checkpoint(path, every=every), one_fit("Made", lambda: "up"):
            for _ in range(3):
                counter = Counter()
                with followed(counter) as between_passes:
                    while counter.n < 5:
                        between_passes()
                        n_passes += 1
                        if n_passes == crash_at:
                            raise Crash
                        counter.n += 1
                totals.append(counter.n)
        return totals, n_passes

    @pytest.mark.parametrize("crash_at", range(1, 16))
    def test_loops_that_ended_are_not_repeated(self, crash_at, path):
        with pytest.raises(Crash):
            self.run(path, crash_at)
        assert self.run(path) == ([5, 5, 5], 15 - crash_at + 1)

    def test_a_fit_may_be_killed_again_and_again(self, path):
        for _ in range(7):
            with pytest.raises(Crash):
                self.run(path, 3)
        assert self.run(path) == ([5, 5, 5], 1)

    def test_the_last_states_of_short_loops_are_written_with_the_next_file(self, path, monkeypatch):
        clock = iter([0.0] * 12 + [100.0] * 100)
        monkeypatch.setattr(engine.time, "monotonic", lambda: next(clock))
        with pytest.raises(Crash):
            self.run(path, 13, every=60.0)
        with zipfile.ZipFile(path) as archive:
            assert {"1", "2"} <= set(archive.namelist())

    def test_a_loop_within_a_pass_of_another_is_a_part_of_it(self, path):
        outer, inner = Counter(), Counter()
        with (
            checkpoint(path, every=0.0),
            one_fit("Made", lambda: "up"),
            followed(outer) as between_outer,
            followed(inner) as between_inner,
        ):
            between_inner()
            assert not path.exists()
            between_outer()
            assert path.exists()


@pytest.mark.parametrize(
    "made",
    [
        lambda A: A,
        lambda A: A.T,
        lambda A: A[::-1],
        lambda A: A.T[:, ::-1],
        lambda A: A[:, 2:5],
        lambda A: A[::2, ::3],
        lambda A: A[0],
        lambda A: A[:0],
        lambda A: A.astype(np.float32),
        lambda A: A > 0,
        lambda A: np.broadcast_to(A[0], (4, A.shape[1])),
        lambda A: np.array(3.0),
    ],
)
def test_arrays_keep_their_layout(made, path, rng):
    counter, restored, A = Counter(), Counter(), made(rng.normal(size=(7, 9)))
    counter.order = A

    def interrupted():
        with (
            checkpoint(path, every=0.0),
            one_fit("Made", lambda: "up"),
            followed(counter) as between_passes,
        ):
            between_passes()
            raise Crash

    with pytest.raises(Crash):
        interrupted()
    with checkpoint(path), one_fit("Made", lambda: "up"), followed(restored):
        pass
    np.testing.assert_array_equal(restored.order, A)
    assert restored.order.dtype == A.dtype
    assert restored.order.strides == A.strides or A.size == 0
