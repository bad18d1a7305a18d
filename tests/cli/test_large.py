"""``fit`` and ``transform`` of files that are read in blocks, and on the workers of a cluster."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from robustpca import EPCA, PCAAN, load, write_scores
from robustpca.cli import app
from robustpca.datasets.synthetic import planted_subspace
from robustpca.engine import rows as engine
from robustpca.engine import stored
from robustpca.tools import streaming
from robustpca.tools.files import large, open_large

testing = pytest.importorskip("typer.testing")
h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
pytest.importorskip("dask.array")


def planted():
    return planted_subspace(np.random.default_rng(0), 400, 20, 3, n_outliers=20, noise=0.1)[0]


@pytest.fixture(name="run")
def _run(tmp_path, monkeypatch):
    """The command line, in a folder with the same rows in three files, all of which are large."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(large, "LARGE", 1000)
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 13)
    X = planted()
    np.save("X.npy", X)
    with h5py.File("X.h5", "w") as file:
        file["rows"] = X
        file["more/others"] = X[:5]
    zarr.create_array("X.zarr", shape=X.shape, chunks=(37, 20), dtype=X.dtype)[:] = X

    def run(*arguments):
        return testing.CliRunner().invoke(app.application(), [str(each) for each in arguments])

    return run


@pytest.fixture(name="whole")
def _whole(monkeypatch):
    """Fails if a file is read at once."""

    def refuse(*arguments):
        pytest.fail("all rows were read at once")

    monkeypatch.setattr("robustpca.tools.files.arrays.of_array", refuse)
    monkeypatch.setattr(engine.Rows, "whole", refuse)


@pytest.mark.parametrize("data", ["X.npy", "X.h5:rows", "X.zarr"])
def test_files_are_fitted_and_transformed_in_blocks(data, run, whole):
    result = run("fit", data, "--method", "EPCA", "--set", "n_components=3", "-o", "m.rpca")
    assert result.exit_code == 0, result.output
    assert "400 rows, 20 numeric columns used; read in blocks of rows." in result.output
    model, expected = load("m.rpca"), EPCA(3).fit(planted())
    np.testing.assert_array_equal(model.components_, expected.components_)
    for out in ("codes.npy", "codes.h5", "codes.zarr"):
        result = run("transform", data, "-m", "m.rpca", "-o", out, "-q")
        assert (result.exit_code, result.output) == (
            0,
            "Computed the scores of 400 rows by EPCA.\n",
        )
    codes = expected.transform(planted())
    np.testing.assert_array_equal(np.load("codes.npy"), codes)
    np.testing.assert_array_equal(zarr.open_array("codes.zarr", mode="r")[:], codes)
    with h5py.File("codes.h5", "r") as file:
        np.testing.assert_array_equal(file["X"][:], codes)
    runs = json.loads(Path("run.json").read_text("utf-8"))
    assert [each["files"] for each in runs][1:] == [["codes.npy"], ["codes.h5"], ["codes.zarr"]]
    assert runs[0]["data"]["rows"] == 400


def test_rows_are_rebuilt_in_blocks_and_text_holds_scores(run, whole):
    run("fit", "X.zarr", "--set", "n_components=3", "-o", "m.rpca", "-q")
    run("transform", "X.zarr", "-m", "m.rpca", "--rebuild", "-o", "rebuilt.zarr", "-q")
    model = load("m.rpca")
    assert isinstance(model, PCAAN)
    rebuilt = zarr.open_array("rebuilt.zarr", mode="r")[:]
    np.testing.assert_array_equal(rebuilt, model.reconstruct(planted()))
    pytest.importorskip("pandas")
    assert run("transform", "X.zarr", "-m", "m.rpca", "-o", "codes.csv", "-q").exit_code == 0
    codes = np.loadtxt("codes.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(codes, model.transform(planted()), rtol=1e-12)


def test_columns_of_different_units_are_scaled_block_by_block(run, whole):
    X = planted() * 10.0 ** np.arange(20) + 1e3 * np.arange(20)
    np.save("units.npy", X)
    run("fit", "units.npy", "--method", "EPCA", "--set", "n_components=3", "-o", "m.rpca")
    model = load("m.rpca")
    scaler, last = (step for _, step in model.steps)
    # All rows are in the sample here, so that units are those of the whole table.
    np.testing.assert_allclose(scaler.center_, np.median(X, axis=0))
    here = EPCA(3).fit(scaler.transform(X))
    np.testing.assert_array_equal(last.components_, here.components_)
    run("transform", "units.npy", "-m", "m.rpca", "-o", "codes.npy", "-q")
    np.testing.assert_array_equal(np.load("codes.npy"), model.transform(X))


def test_a_folder_of_zarr_is_there_as_a_whole_or_not_at_all(run, monkeypatch):
    run("fit", "X.npy", "-o", "m.rpca", "-q")
    before = sorted(path.name for path in Path().iterdir())

    def interrupted(*arguments):
        yield next(score_blocks(*arguments))
        raise KeyboardInterrupt

    score_blocks = streaming.score_blocks
    monkeypatch.setattr(streaming, "score_blocks", interrupted)
    assert run("transform", "X.npy", "-m", "m.rpca", "-o", "codes.zarr").exit_code == 130
    assert sorted(path.name for path in Path().iterdir()) == before
    monkeypatch.setattr(streaming, "score_blocks", score_blocks)
    assert run("transform", "X.npy", "-m", "m.rpca", "-o", "codes.zarr").exit_code == 0
    result = run("transform", "X.npy", "-m", "m.rpca", "-o", "codes.zarr")
    assert (result.exit_code, "codes.zarr is there already" in result.output) == (2, True)
    (Path("codes.zarr") / "old").write_text("of the run before")
    assert run("transform", "X.npy", "-m", "m.rpca", "-o", "codes.zarr", "--force").exit_code == 0
    assert not (Path("codes.zarr") / "old").exists()
    assert sorted(path.name for path in Path().iterdir()) == sorted([*before, "codes.zarr"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "bad.npy", "-o", "n.rpca"], "contains NaN"),
        (["fit", "worse.npy", "--method", "EPCA", "-o", "n.rpca"], "EPCA takes none: fill them"),
        (["transform", "bad.npy", "-m", "m.rpca", "-o", "c.npy"], "contains NaN, and PCAAN"),
        (["transform", "worse.npy", "-m", "m.rpca", "-o", "c.npy"], "has missing cells, and PCA"),
        (["transform", "narrow.npy", "-m", "m.rpca", "-o", "c.npy"], "has 7 numeric columns"),
        (["fit", "X.npy", "-o", "n.rpca", "--report", "page.html"], "--report needs all rows"),
        (["fit", "X.h5:none", "-o", "n.rpca"], "has no array 'none'"),
        (["fit", "text.csv", "-o", "n.rpca", "--cluster", "tcp://x:1"], "cannot be read by a clu"),
        (["fit", "X.npy", "-o", "n.rpca", "--drop", "a", "--cluster", "x"], "leave other opt"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(run, arguments, words, monkeypatch):
    # A cell that is missing may be seen before the file is read, or on the way.
    monkeypatch.setattr(large, "SAMPLED_ROWS", 64)
    run("fit", "X.npy", "-o", "m.rpca", "-q")
    X = planted()
    X[399, 3] = np.nan
    np.save("bad.npy", X)
    X[:, 4] = np.nan
    np.save("worse.npy", X)
    np.save("narrow.npy", X[:, :7].copy())
    Path("text.csv").write_text("a,b\n1,2\n2,3\n3,5\n")
    before = sorted(path.name for path in Path().iterdir())
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert "Traceback" not in result.output
    assert sorted(path.name for path in Path().iterdir()) == before


def test_small_files_are_read_at_once_and_looked_through(tmp_path):
    np.save(tmp_path / "small.npy", planted())
    np.save(tmp_path / "images.npy", np.zeros((100, 300, 300)))
    (tmp_path / "broken.npy").write_bytes(b"none")
    for name in ("small.npy", "images.npy", "broken.npy", "none.npy"):
        with open_large(tmp_path / name) as table:
            assert table is None, name
    with open_large(tmp_path / "small.npy", least=0) as table:
        np.testing.assert_array_equal(table.sample(), planted())


def test_scores_are_written_from_python(tmp_path):
    X = planted()
    np.save(tmp_path / "X.npy", X)
    file, model, heard = np.load(tmp_path / "X.npy", mmap_mode="r"), EPCA(3).fit(X), []
    write_scores(model, file, tmp_path / "c.h5", callback=lambda *done: heard.append(done))
    assert heard[-1] == (400, 400)
    with h5py.File(tmp_path / "c.h5", "r") as stored:
        np.testing.assert_array_equal(stored["X"][:], model.transform(X))
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_scores(model, file, tmp_path / "c.h5")
    with pytest.raises(ValueError, match=r"c.csv cannot be written in blocks: use .npy, .h5"):
        write_scores(model, file, tmp_path / "c.csv")
    with pytest.raises(TypeError, match=r"not ndarray; of data in memory use model.transform"):
        write_scores(model, X, tmp_path / "d.npy")


MEMORY = """
from pathlib import Path
from robustpca.cli import app
from robustpca.engine import rows as engine
from robustpca.tools.files import large

engine.BLOCK_BYTES = large.BLOCK_BYTES = large.LARGE = 1 << 20

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10

def run(*arguments):
    try:
        app.application()((*arguments, "-q"))
    except SystemExit as end:
        assert not end.code, end.code

# What imports take is not what is measured.
run("fit", "small.zarr", "--method", "EPCA", "--set", "n_components=2", "-o", "m.rpca")
run("transform", "small.zarr", "-m", "m.rpca", "-o", "small-codes.zarr")
before = peak()
run("transform", "large.zarr", "-m", "m.rpca", "--rebuild", "-o", "rebuilt.zarr")
run("transform", "large.zarr", "-m", "m.rpca", "-o", "codes.zarr")
run("fit", "large.zarr", "--method", "EPCA", "--set", "n_components=2", "-o", "l.rpca")
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_file(tmp_path, rng):
    basis = rng.normal(size=(2, 500)).astype(np.float32)
    for name, n in (("small", 2000), ("large", 40_000)):
        options = {"shape": (n, 500), "chunks": (1000, 500), "dtype": np.float32}
        array = zarr.create_array(str(tmp_path / f"{name}.zarr"), compressors=None, **options)
        for at in range(0, n, 1000):
            block = rng.standard_normal((1000, 2), dtype=np.float32) @ basis
            block[::10] += 3.0
            array[at : at + 1000] = block + 0.1
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # The fit holds coordinates of all rows in about twenty directions, as for any source.
    assert int(done.stdout.splitlines()[-1]) < (4 * 40_000 * 500) / 2


@pytest.fixture(scope="module")
def scheduler():
    """Address of a scheduler with two workers in other processes, which may be slow to start."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    timeouts = {"connect": "300s", "tcp": "300s"}
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        dask.config.set({"distributed.comm.timeouts": timeouts}),
        distributed.LocalCluster(**settings, dashboard_address=":0") as cluster,
    ):
        yield cluster.scheduler_address


def test_the_workers_of_a_cluster_give_the_same_bits(run, whole, scheduler, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 14)
    data, settings = "X.zarr", ["--method", "EPCA", "--set", "n_components=3", "--set", "tol=0.01"]
    result = run("fit", data, *settings, "-o", "m.rpca", "--cluster", scheduler)
    assert result.exit_code == 0, result.output
    model, expected = load("m.rpca"), EPCA(3, tol=1e-2).fit(planted())
    np.testing.assert_array_equal(model.components_, expected.components_)
    for more, wanted in ([], expected.transform), (["--rebuild"], expected.reconstruct):
        result = run(
            *("transform", data, "-m", "m.rpca", "-o", "out.zarr", "--force"),
            *("--cluster", scheduler, *more),
        )
        assert result.exit_code == 0, result.output
        found = zarr.open_array("out.zarr", mode="r")[:]
        np.testing.assert_array_equal(found, wanted(planted()))


def test_the_workers_of_a_cluster_scale_and_read_the_rows(run, scheduler, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(stored.FileRows, "read", lambda *place: pytest.fail("read here"))
    X = planted() * 10.0 ** np.arange(20)
    np.save("units.npy", X)
    arguments = ["units.npy", "--cluster", scheduler]
    settings = ["--method", "EPCA", "--set", "n_components=3", "--set", "tol=0.01"]
    result = run("fit", *arguments, *settings, "-o", "m.rpca")
    assert result.exit_code == 0, result.output
    result = run("transform", *arguments, "-m", "m.rpca", "-o", "codes.npy")
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(np.load("codes.npy"), load("m.rpca").transform(X))
