"""``fit``, ``transform`` and ``info`` as a new user would try them."""

import itertools
import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from robustpca import load
from robustpca.cli import app
from robustpca.tools.files import read

testing = pytest.importorskip("typer.testing")
pytest.importorskip("pandas")


@pytest.fixture(name="run")
def _run(tmp_path, monkeypatch):
    """The command line, in a folder with a table as spreadsheets write them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ [[1, 20, 300], [0, 20, -300]] + [170, 70, 2000]
    X += rng.normal(size=X.shape) * [0.02, 0.4, 6]
    cells = [[f"{x:.3f}".replace(".", ",") for x in row] for row in X]
    lines = [f"{i:03d};{'ab'[i % 2]};" + ";".join(row) for i, row in enumerate(cells, 1)]
    Path("full.csv").write_text("\n".join(["id;stadt;größe;gewicht;lohn", *lines]), "utf-8")
    lines[7] = "008;b;170,5;;1999"
    Path("holes.csv").write_text("\n".join(["id;stadt;größe;gewicht;lohn", *lines]), "cp1252")

    def run(*arguments):
        return testing.CliRunner().invoke(app.application(), [str(each) for each in arguments])

    return run


def test_a_model_is_fitted_saved_and_used(run):
    result = run("fit", "full.csv", "--method", "pcaan", "--set", "tol=1e-5", "-o", "m.rpca")
    assert result.exit_code == 0, result.output
    assert "full.csv: 60 rows, 3 numeric columns used; left out: id (row numbers)" in result.output
    assert "PCAAN, fitted to 60 rows and 3 columns; components: 2" in result.output
    result = run("transform", "full.csv", "--model", "m.rpca", "-o", "scores.csv", "-q")
    assert (result.exit_code, result.output) == (0, "Computed the scores of 60 rows by PCAAN.\n")
    scores = read("scores.csv")
    assert list(scores.frame) == ["id", "stadt", "pcaan0", "pcaan1"]
    assert scores.labels[:2] == ["001", "002"]
    expected = load("m.rpca").transform(read("full.csv").frame[["größe", "gewicht", "lohn"]])
    np.testing.assert_allclose(scores.X, expected, rtol=1e-12)
    runs = json.loads(Path("run.json").read_text("utf-8"))
    assert [each["files"] for each in runs] == [["m.rpca"], ["scores.csv"]]
    assert runs[0]["parameters"] == {"method": "PCAAN", "tol": 1e-5, "scale": "auto"}


def test_missing_cells_come_back_filled(run):
    assert run("fit", "holes.csv", "--method", "RPCA", "-o", "m.rpca").exit_code == 0
    result = run("transform", "holes.csv", "--model", "m.rpca", "-o", "rebuilt.csv", "--rebuild")
    assert result.exit_code == 0, result.output
    rebuilt = read("rebuilt.csv")
    assert rebuilt.layout == read("holes.csv").layout
    assert np.isfinite(rebuilt.X).all()


def test_files_tell_what_they_hold(run):
    run("fit", "full.csv", "-o", "m.rpca")
    result = run("info", "m.rpca")
    assert result.output.startswith("m.rpca: PCAAN, fitted to 60 rows and 3 columns\n")
    assert "names of columns: größe, gewicht, lohn" in result.output
    result = run("info", "holes.csv")
    assert "0.6 % of the cells are missing" in result.output
    assert result.output.splitlines()[4].split()[:2] == ["gewicht", "1"]
    found = json.loads(run("info", "holes.csv", "--json").output)
    assert (found["rows"], found["left_out"]["stadt"]) == (60, "text")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "none.csv", "-o", "m.rpca"], "There is no file none.csv."),
        (["fit", "full.csv", "-o", "full.csv"], "full.csv holds the data, which are kept"),
        (["fit", "full.csv", "-o", "model"], "-o model should be a file, such as model.rpca."),
        (["fit", "full.csv", "-o", "m.rpca", "--method", "PCAN"], "Did you mean PCAAN?"),
        (["fit", "full.csv", "-o", "m.rpca", "--set", "rank=3"], "PCAAN has no parameter 'rank'"),
        (["fit", "full.csv", "-o", "m.rpca", "--set", "tol=-1"], "The 'tol' parameter of PCAAN"),
        (["fit", "full.csv", "-o", "m.rpca", "--scale", "x"], "--scale x should be auto, mad or"),
        (
            ["fit", "holes.csv", "-o", "m.rpca", "--method", "PCAAN"],
            "1 missing cell, and PCAAN takes none",
        ),
        (["transform", "full.csv", "--model", "full.csv", "-o", "s.csv"], "full.csv is damaged or"),
        (["transform", "full.csv", "--model", "m.rpca", "-o", "s.doc"], "s.doc is of no kind that"),
        (["info", "none.rpca"], "There is no file none.rpca."),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(run, arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output
    assert sorted(path.name for path in Path().iterdir()) == ["full.csv", "holes.csv"]


def test_a_fit_that_was_stopped_goes_on_from_its_checkpoint(run, monkeypatch):
    command = ["fit", "full.csv", "--method", "PCAOM", "--set", "tol=1e-12", "-o"]
    assert run(*command, "whole.rpca", "-q").exit_code == 0
    passes, clock = [], itertools.count(0.0, 1000.0)

    @contextmanager
    def told(*_):
        def callback(progress):
            passes.append(progress.iteration)
            if len(passes) == 3:
                raise KeyboardInterrupt

        yield callback

    with monkeypatch.context() as patched:
        patched.setattr("robustpca.cli.fit.told", told)
        patched.setattr("robustpca.engine.checkpoint.time.monotonic", lambda: next(clock))
        assert run(*command, "m.rpca", "--checkpoint", "fit.ckpt").exit_code == 130
        assert Path("fit.ckpt").exists()
        assert run(*command, "m.rpca", "--checkpoint", "fit.ckpt").exit_code == 0
    assert passes[:4] == [1, 2, 3, 3]
    assert not Path("fit.ckpt").exists()
    whole, resumed = load("whole.rpca"), load("m.rpca")
    np.testing.assert_array_equal(whole[-1].components_, resumed[-1].components_)
    np.testing.assert_array_equal(whole[-1].objective_, resumed[-1].objective_)
