import inspect
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from sklearn.decomposition import PCA

import robustpca
from robustpca.cli import app
from robustpca.cli.arguments import Argument
from robustpca.cli.bench import commands, run_bench, split_labels
from robustpca.cli.compare import run_compare
from robustpca.cli.data import fetch_data, show_data
from robustpca.cli.demo import show_demo
from robustpca.cli.methods import show_method, show_methods
from robustpca.cli.report import make_report
from robustpca.cli.request import Request
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


def test_methods_are_all_listed_in_plain_words(call):
    code, out, _ = call(show_methods)
    assert code == 0
    lines = [line.split(maxsplit=1) for line in out.splitlines() if line.startswith("  ")]
    assert sorted(name for name, _ in lines) == sorted(all_estimators())
    assert all(len(words.split()) >= 3 for _, words in lines)
    assert not set(out) & set("\\$`") - {"`"}


@pytest.mark.parametrize("name", sorted(all_estimators()))
def test_each_method_tells_what_it_needs_without_markup(call, name):
    code, out, _ = call(show_method, name.lower())
    assert code == 0
    assert out.startswith(f"{name}: ")
    assert "Needs" in out
    assert "math" not in out
    assert "\\" not in out


def test_needs_and_options_of_a_method(call):
    out = call(show_method, "RPCA")[1]
    assert "cells may be missing" in out
    assert "flag_rate=0.001" in out
    assert "images, one per row" in call(show_method, "GLRAM")[1]
    needs = call(show_method, "FRPCAG")[1]
    assert "no more memory than a graph of the rows" in needs
    assert "disk space of 8 times its size in TMPDIR" in needs
    needs = call(show_method, "RPCA")[1]
    assert "some numbers for each row and component" in needs
    assert "disk space of 10 times its size in TMPDIR" in needs
    code, out, err = call(show_method, "RPCAA")
    assert (code, out, err) == (2, "", "No method is called 'RPCAA'. Did you mean RPCA?\n")


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


def test_many_tables_are_a_line_each_and_the_quick_level_has_no_verdicts(
    call, tmp_path, monkeypatch
):
    monkeypatch.setenv("ROBUSTPCA_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("HOME", str(tmp_path / "nothing"))
    names = ["epca_table_1", "epca_figure_3"]
    code, out, _ = call(run_bench, names, "quick", None, tmp_path / "out", None, False)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "2 tables at the quick level."
    assert len(lines) < 12
    assert sum(line.startswith(tuple(names)) for line in lines) == 2
    assert "quick level, no verdicts." in out
    assert lines[-1] == f"Report: {tmp_path / 'out' / 'report.html'}"


def test_a_report_without_rows_is_one_sentence_and_code_2(call, tmp_path):
    code, out, err = call(make_report, [], "quick", None, tmp_path, None)
    assert (code, out) == (2, "")
    assert err == (
        f"No rows of these tables at level quick in {tmp_path / 'rows.jsonl'}. Run `robustpca "
        "bench` first, with the same level and folder.\n"
    )
    row = dict.fromkeys(["dataset", "corruption", "method", "role", "chosen_by"], "")
    row |= {name: {} for name in ("settings", "tuned", "versions")}
    row |= dict.fromkeys(["converged", "seconds", "memory_start", "memory_peak", "scores"])
    row |= {"key": "of older code", "table": "digits", "seed": 0, "error": "it failed"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
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


def test_a_piece_is_run_and_the_report_has_all_that_was_run(call, tmp_path, monkeypatch):
    methods = {"PCA": PCA(), "PCA, white": PCA(whiten=True)}
    table = replace(all_tables()["digits"], methods=methods, vary={"n_components": [5]})
    monkeypatch.setattr("robustpca.papers.all_tables", lambda: {"digits": table})
    parts = (["digits"], "quick", 1, tmp_path, 1, False)
    code, out, _ = call(run_bench, *parts, {"methods": "PCA", "corruptions": "shared"})
    assert code == 0
    assert "1 cells, 1 of them new" in out
    code, out, _ = call(run_bench, *parts, {"methods": "PCA, white", "datasets": None})
    assert code == 0
    assert "3 cells, 2 of them new" in out
    code, _, err = call(run_bench, *parts, {"corruptions": "shared,else"})
    assert code == 2
    assert err == (
        "digits has no corruption 'else' at the quick level: choose from shared, scattered.\n"
    )


def test_labels_with_commas_are_known():
    known = ["TAE, 60 degrees", "AE", "TAE"]
    assert split_labels("AE,TAE, 60 degrees,TAE", known) == ["AE", "TAE, 60 degrees", "TAE"]
    assert split_labels("XE, AE", known) == ["XE", "AE"]


def test_two_runs_are_compared_with_code_1_if_something_moved(call, tmp_path, monkeypatch):
    for name, table in {"a": PCA(), "b": PCA(whiten=True)}.items():
        varied = replace(
            all_tables()["digits"], methods={"PCA": table}, vary={"n_components": [5]}, seeds=1
        )
        monkeypatch.setattr("robustpca.papers.all_tables", lambda varied=varied: {"digits": varied})
        call(run_bench, ["digits"], "quick", None, tmp_path / name, 1, False)
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    arguments = ("quick", None, tmp_path, None, False)
    code, out, _ = call(run_bench, ["diff", folders[0], folders[0]], *arguments)
    assert code == 0
    assert out.startswith("0 of 2 scores moved.")
    rows = tmp_path / "b" / "rows.jsonl"
    rows.write_text(
        rows.read_text().replace('"reconstruction_error": ', '"reconstruction_error": 9')
    )
    code, out, _ = call(run_bench, ["diff", *folders], *arguments)
    assert code == 1
    assert "2 of 2 scores moved." in out
    code, _, err = call(run_bench, ["diff", folders[0]], *arguments)
    assert code == 2
    assert err.startswith("Two runs are compared, 1 given")


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


def test_compare_runs_own_methods(call, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mymethods.py").write_text(
        "from sklearn.decomposition import PCA\n\n\nclass Mine(PCA):\n    pass\n"
    )
    arguments = ("PCA, mymethods:Mine", ["reset_entries:samples=0.1"], "2", None, 2)
    code, out, _ = call(run_compare, Request(str(table), out=tmp_path / "out"), *arguments)
    monkeypatch.delitem(sys.modules, "mymethods", raising=False)
    assert code == 0
    assert out.startswith("mine.npy: 30 rows, 6 numeric columns used")
    assert "no method is better than PCA" in out
    lines = (tmp_path / "out" / "compare.csv").read_text("utf-8").splitlines()
    assert lines[0] == "trouble,method,seed,error,seconds,failure"
    assert len(lines) == 5
    assert "mymethods:Mine" in (tmp_path / "out" / "compare.txt").read_text("utf-8")


def test_a_comparison_in_which_all_fits_fail_ends_with_code_1(call, table, tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.decomposition.PCA.fit", None)
    code, out, _ = call(run_compare, Request(str(table)), "PCA", [], "2", None, 1)
    assert code == 1
    assert "Every fit failed: 'NoneType' object is not callable" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: "PCAOMM"}, "No method is called 'PCAOMM'. Did you mean PCAOM?"),
        ({1: ["blur"]}, "No corruption is called 'blur'"),
        ({2: "ten"}, "--components ten should be a number such as 10, or auto."),
        ({3: "6"}, "--image-shape 6 should be height and width as in 32x32."),
        ({3: "4x4"}, "mine.npy has 6 columns, but images of 4 x 4 have 16 pixels."),
    ],
)
def test_wrong_requests_are_one_sentence_and_code_2(call, table, tmp_path, change, message):
    arguments = ["PCA", [], "2", None, 1]
    for place, value in change.items():
        arguments[place] = value
    request = Request(str(table), out=tmp_path / "out", quiet=True)
    code, out, err = call(run_compare, request, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_one_sentence_and_code_2(call, tmp_path):
    path = tmp_path / "nothing.npy"
    code, _, err = call(run_compare, Request(str(path)), "PCA", [], "2", None, 1)
    assert (code, err) == (2, f"There is no file {path}.\n")


def test_the_demo_is_that_of_the_library(call, tmp_path):
    (tmp_path / "demo.png").touch()
    code, _, err = call(show_demo, tmp_path, 0, False, False)
    assert code == 2
    assert err.startswith(f"{tmp_path / 'demo.png'} would be lost")


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


@pytest.mark.parametrize("verb", [*app.VERBS, *app.DATA_VERBS], ids=lambda verb: verb.name)
def test_every_argument_is_declared_beside_its_verb_with_a_sentence(verb):
    parameters = dict(inspect.signature(verb.run).parameters)
    parameters.pop("request", None)
    for name, parameter in parameters.items():
        how = get_args(parameter.annotation)[1]
        assert isinstance(how, Argument), name
        assert how.help.endswith("."), how.help
    assert inspect.getdoc(verb.run).splitlines()[0].endswith(".")


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
        verbs = (
            "check rows entries tune compare fit transform plot info report demo methods bench data"
        )
        for verb in verbs.split():
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
        options = ["--methods", "PCAOM", "--components", "2", "--seeds", 1]
        corrupt = ["--corrupt", "drop_pixels:share=0.1"]
        result = invoke("compare", table, *options, *corrupt, "-o", tmp_path / "out")
        assert result.exit_code == 0, result.output
        assert "drop_pixels:share=0.1" in result.output
        assert {file.name for file in (tmp_path / "out").iterdir()} == {
            "compare.csv",
            "compare.txt",
            "map.png",
            "run.json",
        }

    def test_unknown_options_and_wrong_numbers_end_with_code_2(self, invoke, table):
        assert invoke("compare", table, "--nonsense").exit_code == 2
        assert invoke("compare", table, "--seeds", 0).exit_code == 2

    def test_version_and_short_help_everywhere(self, invoke):
        assert invoke("--version").output == f"robustpca {robustpca.__version__}\n"
        for verbs in ([], ["check"], ["rows"], ["entries"], ["data"], ["data", "fetch"]):
            result = invoke(*verbs, "-h")
            assert result.exit_code == 0
            assert "Usage:" in result.output
        assert "--install-completion" in invoke("-h").output

    def test_every_verb_can_be_quiet_and_print_json(self, invoke):
        verbs = "check rows entries tune compare fit transform plot info report demo methods bench"
        for verb in verbs.split():
            options = invoke(verb, "-h").output
            assert "--json" in options, verb
            assert "--quiet" in options, verb

    def test_names_of_methods_are_completed(self, monkeypatch):
        pytest.importorskip("typer")
        command = [sys.executable, "-m", "robustpca"]
        words = {
            "_ROBUSTPCA_COMPLETE": "complete_bash",
            "COMP_WORDS": "robustpca rows mine.csv --method PCA",
            "COMP_CWORD": "4",
        }
        done = subprocess.run(
            command, env=os.environ | words, capture_output=True, text=True, check=True
        )
        assert {"PCAAN", "PCAOM"} <= set(done.stdout.split())

    def test_each_verb_has_an_example(self, invoke):
        shown = " ".join(invoke("--help").output.replace("│", " ").split())
        for example in ("check mine.csv", "rows mine.csv -o marked", "plot mine.csv -o map.png"):
            assert f"robustpca {example}" in shown


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
