"""Files of a job: all or nothing, never over others, with a record."""

import hashlib
import json

import numpy as np
import pytest

import robustpca
from robustpca.tools.files import read
from robustpca.tools.outputs import Outputs, sha256_of


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_nothing_is_there_before_the_end(tmp_path):
    with Outputs(tmp_path / "out") as outputs:
        draft = outputs.claim("a.csv.gz")
        outputs.claim("never.txt")
        draft.write_text("1")
        assert draft.name.endswith("a.csv.gz")
        assert not outputs.place("a.csv.gz").exists()
    assert names(tmp_path / "out") == ["a.csv.gz"]
    assert outputs.written == [tmp_path / "out" / "a.csv.gz"]


def job(place, files, error=None, force=False):
    """Write some files, and fail at the end if an error is given."""
    with Outputs(place, force) as outputs:
        for name, text in files.items():
            outputs.claim(name).write_text(text)
        outputs.record(f"write {' '.join(files)}")
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interrupted_job_leaves_nothing(tmp_path, error):
    with pytest.raises(error):
        job(tmp_path / "deep" / "out", {"a.txt": "1"}, error)
    assert names(tmp_path) == []


def test_files_that_are_there_are_refused_before_the_work(tmp_path):
    old = tmp_path / "a.txt"
    old.write_text("old")
    with pytest.raises(FileExistsError, match=r"a\.txt is there already: .* --force"):
        job(tmp_path, {"b.txt": "1", "a.txt": "2"})
    assert names(tmp_path) == ["a.txt"]
    with pytest.raises(ValueError, match="failed"):
        job(tmp_path, {"a.txt": "new"}, ValueError("failed"), force=True)
    assert old.read_text() == "old"
    job(tmp_path, {"a.txt": "new"}, force=True)
    assert old.read_text() == "new"


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path):
    def interfere(outputs):
        with outputs:
            outputs.claim("a.txt").write_text("mine")
            (tmp_path / "a.txt").write_text("theirs")

    with pytest.raises(FileExistsError, match="by somebody else"):
        interfere(Outputs(tmp_path))
    assert (tmp_path / "a.txt").read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


def test_files_beside_the_one_asked_for_are_called_after_it(tmp_path):
    with Outputs(tmp_path / "cleaned.csv.gz") as outputs:
        outputs.claim().write_text("1")
        outputs.claim("entries.csv").write_text("2")
        outputs.record("x")
    assert names(tmp_path) == ["cleaned-entries.csv", "cleaned.csv.gz", "run.json"]
    with pytest.raises(ValueError, match="is a folder, and the name of a file is needed"):
        Outputs(tmp_path).claim()


def test_the_record_tells_how_to_repeat_a_run(tmp_path):
    data = tmp_path / "a.npy"
    np.save(data, np.ones((4, 3)))
    with Outputs(tmp_path / "out") as outputs:
        outputs.claim("a.txt").write_text("1")
        parameters = {"n": np.int64(3), "tol": np.float64(0.1), "path": data, "missing": None}
        outputs.record("robustpca rows a.npy", parameters, read(data))
    (run,) = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["command"] == "robustpca rows a.npy"
    assert run["parameters"] == {"n": 3, "tol": 0.1, "path": str(data), "missing": None}
    assert run["versions"]["robustpca"] == robustpca.__version__
    assert run["versions"].keys() == {"python", "robustpca", "numpy", "scipy", "scikit-learn"}
    sha256 = hashlib.sha256(data.read_bytes()).hexdigest()
    assert run["data"] == {"path": str(data), "sha256": sha256, "rows": 4, "columns": 3}
    assert run["files"] == ["a.txt"]
    assert run["seconds"] >= 0


def test_the_record_keeps_the_runs_that_files_come_from(tmp_path):
    for name in ("a.txt", "b.txt", "a.txt"):
        job(tmp_path, {name: "1"}, force=True)
    runs = json.loads((tmp_path / "run.json").read_text())
    assert [run["command"] for run in runs] == ["write b.txt", "write a.txt"]
    (tmp_path / "run.json").write_text('["of somebody else"]')
    with pytest.raises(FileExistsError, match="is no record of runs"):
        Outputs(tmp_path).claim("c.txt")
    assert names(tmp_path) == ["a.txt", "b.txt", "run.json"]


def test_folders_have_a_hash_of_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    first = sha256_of(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert sha256_of(tmp_path) != first
    (tmp_path / "b").rename(tmp_path / "a")
    assert sha256_of(tmp_path) == first
