import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from robustpca.bench.store import read_rows
from robustpca.cli import app
from robustpca.cli.bench import commands, run_bench
from robustpca.cli.compare import run_compare
from robustpca.cli.data import fetch_data, show_data
from robustpca.cli.demo import show_demo
from robustpca.cli.methods import show_methods
from robustpca.cli.report import make_report
from robustpca.models import all_estimators
from robustpca.papers import all_tables


class Line:
    """Calls the verbs as the command line does, without typer."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, verb, *arguments):
        code = 0
        try:
            with app.one_sentence():
                verb(*arguments)
        except SystemExit as end:
            code = end.code
        out, err = self.capsys.readouterr()
        return code, out, err


@pytest.fixture
def call(capsys):
    return Line(capsys)


@pytest.fixture
def table(tmp_path, rng):
    path = tmp_path / "mine.npy"
    np.save(path, rng.normal(size=(30, 6)) * np.arange(1, 7))
    return path


def test_methods_are_all_listed_with_a_line_each(call):
    code, out, _ = call(show_methods)
    assert code == 0
    lines = dict(line.split(maxsplit=1) for line in out.split("\n\n")[0].splitlines()[1:])
    assert list(lines) == sorted(all_estimators())
    assert lines["EPCA"].startswith("reweighted    in blocks")
    assert lines["RPCA"].startswith("lowrank       in memory")
    assert all(len(text.split()) > 4 for text in lines.values())


def test_data_are_listed_with_what_to_do(call, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBUSTPCA_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    code, out, _ = call(show_data)
    assert code == 0
    lines = out.splitlines()
    umist = next(number for number, line in enumerate(lines) if line.startswith("umist "))
    assert " missing " in lines[umist]
    assert "umist" in lines[umist + 1]
    digits = next(line for line in lines if line.startswith("digits "))
    assert " there " in digits
    assert str(tmp_path / "nothing") in lines[-1]


def test_data_that_cannot_be_fetched_are_one_sentence_and_code_2(call, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBUSTPCA_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    for name in ("yale", "digits", "nonsense"):
        code, out, err = call(fetch_data, name)
        assert (code, out) == (2, "")
        assert name in err
        assert err.count("\n") == 1


def test_bench_without_names_lists_the_tables(call, tmp_path):
    code, out, _ = call(run_bench, [], "quick", None, tmp_path / "out", None, False)
    assert code == 0
    assert "epca_table_1" in out
    assert "EPCA, Table I" in out
    assert not (tmp_path / "out").exists()


def test_an_unknown_table_is_one_sentence_and_code_2(call, tmp_path):
    code, out, err = call(run_bench, ["digit"], "quick", None, tmp_path, None, False)
    assert (code, out) == (2, "")
    assert err.startswith("No table is called 'digit': choose from all, ")
    assert " digits, epca_" in err
    assert err.count("\n") == 1


def test_missing_data_are_listed_with_code_0(call, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBUSTPCA_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("HOME", str(tmp_path / "nothing"))
    code, out, _ = call(run_bench, ["epca_table_1"], "quick", None, tmp_path, None, False)
    assert code == 0
    assert "- Missing data set ORL:" in out
    assert "0 cells, 0 of them new, 0 failed; 5 data sets missing." in out
    # The terminal shows the same words as the file, in shorter lines.
    words = (tmp_path / "epca_table_1.md").read_text("utf-8").split()
    assert " ".join(words) in " ".join(out.split())
    assert f"Report: {tmp_path / 'report.html'}" in out
    assert "Nothing of this table has been run." in (tmp_path / "report.html").read_text("utf-8")


def test_a_report_without_rows_is_one_sentence_and_code_2(call, tmp_path):
    code, out, err = call(make_report, [], "quick", None, tmp_path, None)
    assert (code, out) == (2, "")
    assert err == (
        f"No rows of these tables at level quick in {tmp_path / 'rows.jsonl'}. Run `robustpca "
        "bench` first, with the same level and folder.\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"key": "of older code", "table": "digits"}\n')
    for names in ([], ["digits"], ["epca_table_1"]):
        code, out, err = call(make_report, names, "quick", None, tmp_path, None)
        assert (code, out) == (2, "")
        count = 0 if names == ["epca_table_1"] else 1
        assert f"It has {count} of other levels or older code. Run" in err
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.jsonl"]
    code, _, err = call(make_report, ["digit"], "quick", None, tmp_path, None)
    assert code == 2
    assert err.startswith("No table is called 'digit'")


def test_a_report_can_be_made_again_from_rows(call, tmp_path, monkeypatch):
    table = replace(all_tables()["digits"], methods={"PCA": PCA()}, vary={"n_components": [5]})
    monkeypatch.setattr("robustpca.papers.all_tables", lambda: {"digits": table})
    code, out, _ = call(run_bench, ["digits"], "quick", None, tmp_path, 1, False)
    assert code == 0
    first = (tmp_path / "report.html").read_text("utf-8")
    assert "<code>robustpca bench digits --quick</code>" in first
    (tmp_path / "digits.tex").unlink()
    for names in ([], ["digits"]):
        code, out, _ = call(make_report, names, "quick", None, tmp_path, tmp_path / "again.html")
        assert (code, out) == (0, f"Report of 4 rows: {tmp_path / 'again.html'}\n")
        assert (tmp_path / "again.html").read_text("utf-8") == first
    assert r"\toprule" in (tmp_path / "digits.tex").read_text("utf-8")


def test_the_report_of_a_run_without_jinja2_is_a_sentence_and_the_texts_are_there(
    call, tmp_path, monkeypatch
):
    monkeypatch.setenv("ROBUSTPCA_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    monkeypatch.setattr("robustpca.bench.page.find_spec", lambda name: None)
    code, out, _ = call(run_bench, ["epca_table_1"], "quick", None, tmp_path, None, False)
    assert code == 0
    assert "The page of a report needs jinja2" in out
    assert (tmp_path / "epca_table_1.tex").exists()


def test_compare_runs_own_data_and_own_methods(call, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mymethods.py").write_text(
        "from sklearn.decomposition import PCA\n\n\nclass Mine(PCA):\n    pass\n"
    )
    arguments = ("PCA, mymethods:Mine", ["reset_entries:samples=0.1"], "2", None, 2)
    code, out, _ = call(run_compare, table, *arguments, tmp_path / "out", 1)
    monkeypatch.delitem(sys.modules, "mymethods", raising=False)
    assert code == 0
    assert "# Reconstruction error on mine" in out
    assert "mymethods:Mine" in out
    assert "4 cells, 4 of them new, 0 failed" in out
    rows = read_rows(tmp_path / "out" / "rows.jsonl")
    scores = {(row["method"], row["seed"]): row["scores"] for row in rows}
    for seed in (0, 1):
        assert scores["PCA", seed] == scores["mymethods:Mine", seed]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: "PCAOMM"}, "No method is called 'PCAOMM'. Did you mean PCAOM?"),
        ({1: ["blur"]}, "No corruption is called 'blur'"),
        ({2: "ten"}, "--components ten should be numbers such as 10,30,50."),
        ({3: "6"}, "--image-shape 6 should be height and width as in 32x32."),
        ({3: "4x4"}, "X has 6 features, but its images are 4x4"),
    ],
)
def test_wrong_requests_are_one_sentence_and_code_2(call, table, tmp_path, change, message):
    arguments = ["PCA", [], "2", None, 1]
    for place, value in change.items():
        arguments[place] = value
    code, out, err = call(run_compare, table, *arguments, tmp_path / "out", 1)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_one_sentence_and_code_2(call, tmp_path):
    path = tmp_path / "nothing.npy"
    code, _, err = call(run_compare, path, "PCA", [], "2", None, 1, tmp_path / "out", 1)
    assert (code, err) == (2, f"There is no file {path}.\n")


def test_the_demo_is_that_of_the_library(call, tmp_path):
    code, _, err = call(show_demo, tmp_path, 7, 0, False)
    assert code == 2
    assert err.startswith("n_samples=7 does not do")


def test_ctrl_c_ends_with_a_word(call):
    def interrupted():
        raise KeyboardInterrupt

    assert call(interrupted) == (130, "", "Stopped.\n")


def test_a_missing_extra_is_named(call, monkeypatch):
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    code, _, err = call(app.main)
    assert code == 2
    assert err == (
        "The command line needs typer and rich, not installed here. Run "
        "`pip install 'robustpca[cli]'`.\n"
    )


class TestTyper:
    """The same through typer, if it is there."""

    @pytest.fixture
    def invoke(self):
        testing = pytest.importorskip("typer.testing")

        def invoke(*arguments):
            return testing.CliRunner().invoke(app.application(), [str(a) for a in arguments])

        return invoke

    def test_help_names_every_verb(self, invoke):
        result = invoke("--help")
        assert result.exit_code == 0
        for verb in ("demo", "methods", "data", "bench", "report", "compare"):
            assert verb in result.output
        assert {"list", "fetch"} <= set(invoke("data", "--help").output.split())

    def test_methods(self, invoke):
        result = invoke("methods")
        assert result.exit_code == 0
        assert "EPCA" in result.output

    def test_data_list(self, invoke):
        result = invoke("data", "list")
        assert result.exit_code == 0
        assert "umist" in result.output

    def test_bench_lists_tables_and_refuses_contradictions(self, invoke):
        assert "epca_table_1" in invoke("bench", "--quick").output
        result = invoke("bench", "--quick", "--full", "all")
        assert result.exit_code == 2
        assert "Choose one of --quick and --full." in result.output

    def test_bench_takes_names_and_a_folder(self, invoke, tmp_path):
        result = invoke("bench", "--quick", "nonsense", "--out", tmp_path, "--jobs", 1)
        assert result.exit_code == 2
        assert "No table is called 'nonsense'" in result.output

    def test_report_takes_a_level_and_a_folder(self, invoke, tmp_path):
        result = invoke("report", "--quick", "digits", "--out", tmp_path, "--html", tmp_path / "x")
        assert result.exit_code == 2
        assert "No rows of these tables at level quick" in " ".join(result.output.split())

    def test_compare(self, invoke, table, tmp_path):
        options = ["--methods", "PCA", "--components", "2", "--seeds", 1, "--jobs", 1]
        corrupt = ["--corrupt", "none", "--corrupt", "drop_pixels:share=0.1"]
        result = invoke("compare", table, *options, *corrupt, "--out", tmp_path / "out")
        assert result.exit_code == 0, result.output
        assert "2 cells, 2 of them new, 0 failed" in result.output

    def test_unknown_options_and_wrong_numbers_end_with_code_2(self, invoke, table):
        assert invoke("compare", table, "--nonsense").exit_code == 2
        assert invoke("compare", table, "--jobs", 0).exit_code == 2


def test_the_package_runs_as_a_program():
    pytest.importorskip("typer")
    command = [sys.executable, "-m", "robustpca", "bench", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Run the tables of the papers" in done.stdout


def test_the_command_that_repeats_a_table_has_level_and_seeds():
    table = all_tables()["digits"]
    assert commands([table], "default", None) == {"digits": "robustpca bench digits"}
    again = "robustpca bench digits --quick --seeds 3"
    assert commands([table], "quick", 3) == {"digits": again}


def test_the_console_script_is_declared():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["scripts"] == {"robustpca": "robustpca.cli:main"}
