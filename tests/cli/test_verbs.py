"""`check`, `rows` and `entries` on files as people have them."""

import json
import warnings

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
testing = pytest.importorskip("typer.testing")

from robustpca.cli import app  # noqa: E402


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        return testing.CliRunner().invoke(app.application(), [str(a) for a in arguments])

    return invoke


@pytest.fixture
def mine(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(300, 12))
    X[17, 4] = 999
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return frame


@pytest.fixture
def plants(tmp_path):
    """A table with row names, text, a decimal comma, missing cells and one wrong cell."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 5)) + 0.05 * rng.normal(size=(150, 5)) + 9
    frame = pandas.DataFrame(X.round(3), columns=["length", "width", "height", "mass", "area"])
    frame.insert(0, "id", [f"p{i:03}" for i in range(150)])
    frame["species"] = rng.choice(["oak", "elm; wych"], size=150)
    frame.loc[7, "width"] = 350.0
    frame.loc[20:24, "height"] = np.nan
    frame.to_csv(tmp_path / "plants.csv", index=False, sep=";", decimal=",", na_rep="NA")
    return frame


def read_back(path):
    return pandas.read_csv(path, sep=";", decimal=",")


def test_check_says_first_what_was_read_and_then_what_is_wrong(invoke, mine):
    result = invoke("check", "mine.csv")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == (
        "mine.csv: 300 rows, 12 numeric columns used; no cell is missing. Rows have no "
        "names: the first below the header is row 1."
    )
    assert lines[2] == "Found 1 wrong cell."
    assert "row 18, c4: 999 instead of" in result.output
    assert "robustpca entries mine.csv -o cleaned" in result.output


def test_rows_without_a_folder_only_prints(invoke, mine, tmp_path):
    result = invoke("rows", "mine.csv")
    assert "1 of 300 rows does not fit the rest" in result.output
    assert "c4 +" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_rows_come_back_as_they_were_with_what_is_known_behind_them(invoke, plants, tmp_path):
    result = invoke("rows", "plants.csv", "-o", "marked")
    assert result.exit_code == 0, result.output
    assert "left out: id (row names), species (text)" in result.output
    back = read_back(tmp_path / "marked" / "rows.csv")
    pandas.testing.assert_frame_equal(back[plants.columns], plants, check_dtype=False)
    added = list(back.columns[len(plants.columns) :])
    assert added == ["flag", "outlyingness", "score_distance", "orthogonal_distance", "weight",
                     "reasons"]  # fmt: skip
    worst = back.loc[back["outlyingness"].idxmax()]
    assert worst["id"] == "p007"
    assert worst["flag"]
    assert worst["reasons"].startswith("width >+1000 (350, expected ")
    assert not back.loc[0, "flag"] or back["flag"].mean() < 0.1
    run = json.loads((tmp_path / "marked" / "run.json").read_text())
    assert run[0]["parameters"]["method"] == "PCAAN"


def test_marked_rows_are_read_without_what_is_known_of_them(invoke, plants, tmp_path):
    assert invoke("rows", "plants.csv", "-o", "marked").exit_code == 0
    again = invoke("rows", "marked/rows.csv", "-o", "twice")
    assert again.exit_code == 0, again.output
    first = invoke("rows", "plants.csv").output.partition("missing.")[2]
    for name in ("marked", "twice"):
        told = invoke("rows", f"{name}/rows.csv").output
        assert "outlyingness (from `rows`), score_distance (from `rows`)" in told
        assert told.partition("missing.")[2] == first
    asked = invoke("check", "twice/rows.csv", "--columns", "length,width,weight")
    assert "3 numeric columns used" in asked.output


def test_the_map_of_the_rows_is_drawn(invoke, plants, tmp_path):
    pytest.importorskip("matplotlib")
    assert invoke("rows", "plants.csv", "-o", "marked").exit_code == 0
    assert (tmp_path / "marked" / "map.png").read_bytes().startswith(b"\x89PNG")


def test_entries_writes_the_cleaned_table_and_the_list(invoke, plants, tmp_path):
    result = invoke("entries", "plants.csv", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "1 of 750 cells is wrong, and 5 are missing." in result.output
    back = read_back(tmp_path / "out" / "cleaned.csv")
    assert not back.isna().any().any()
    assert back.loc[7, "width"] < 20
    back.loc[7, "width"] = 350.0
    back.loc[20:24, "height"] = np.nan
    pandas.testing.assert_frame_equal(back, plants, check_dtype=False)
    listed = read_back(tmp_path / "out" / "entries.csv")
    assert list(listed) == ["row", "column", "given", "restored", "sigmas", "kind"]
    assert list(listed["kind"]) == ["wrong"] + 5 * ["missing"]
    assert listed.loc[0, ["row", "column", "given"]].tolist() == ["p007", "width", 350.0]
    # Cells that were not touched are the same text.
    given = (tmp_path / "plants.csv").read_text().splitlines()
    cleaned = (tmp_path / "out" / "cleaned.csv").read_text().splitlines()
    assert [a for a, b in zip(given, cleaned, strict=True) if a != b] == [given[8], *given[21:26]]


def test_wrong_cells_are_left_empty_if_wanted(invoke, plants, tmp_path):
    assert invoke("entries", "plants.csv", "-o", "out", "--remove").exit_code == 0
    back = read_back(tmp_path / "out" / "cleaned.csv")
    assert back.isna().sum().sum() == 6
    assert np.isnan(back.loc[7, "width"])


def test_files_are_not_replaced_without_force(invoke, mine, tmp_path):
    assert invoke("entries", "mine.csv", "-o", "out").exit_code == 0
    before = (tmp_path / "out" / "cleaned.csv").read_bytes()
    result = invoke("entries", "mine.csv", "-o", "out", "--remove")
    assert result.exit_code == 2
    assert "is there already" in result.output
    assert (tmp_path / "out" / "cleaned.csv").read_bytes() == before
    assert invoke("entries", "mine.csv", "-o", "out", "--remove", "--force").exit_code == 0
    assert (tmp_path / "out" / "cleaned.csv").read_bytes() != before


def test_a_file_can_be_named_instead_of_a_folder(invoke, mine, tmp_path):
    assert invoke("entries", "mine.csv", "-o", "fixed.csv").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "mine.csv",
        "fixed.csv",
        "fixed-entries.csv",
        "run.json",
    }


@pytest.mark.parametrize("verb", ["check", "rows", "entries", "tune"])
def test_json_is_all_that_is_printed(invoke, mine, verb):
    result = invoke(verb, "mine.csv", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["read"].startswith("mine.csv: 300 rows")
    assert found["verdict"]


def test_quiet_prints_the_verdict_alone(invoke, mine):
    assert invoke("entries", "mine.csv", "--quiet").output == "1 of 3600 cells is wrong.\n"


def test_columns_and_index_can_be_chosen(invoke, plants):
    result = invoke("rows", "plants.csv", "--columns", "length,width,mass", "--index", "id",
                    "--json")  # fmt: skip
    found = json.loads(result.stdout)
    assert "3 numeric columns used" in found["read"]
    assert found["rows"][0]["row"] == "p007"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nothing.csv"], "There is no file nothing.csv."),
        (["rows", "mine.csv", "--method", "PCANN"], "No method is called 'PCANN'"),
        (["rows", "mine.csv", "--contamination", "0.9"], "contamination"),
        (["rows", "mine.csv", "--components", "40"], "n_components=40 is more than the data"),
        (["entries", "mine.csv", "--flag-rate", "many"], "flag_rate"),
        (["check", "mine.csv", "--columns", "c1"], "1 numeric column"),
    ],
)
def test_wrong_requests_are_one_sentence_and_code_2(invoke, mine, tmp_path, arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


def test_ctrl_c_leaves_nothing_behind(invoke, mine, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("robustpca.tools.jobs.find_rows", interrupted)
    result = invoke("rows", "mine.csv", "-o", "out")
    assert result.exit_code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_errors_that_nobody_thought_of_are_a_sentence_too(invoke, mine, monkeypatch):
    def broken(*args, **kwargs):
        raise TypeError("no such thing")

    monkeypatch.setattr("robustpca.tools.checks.check", broken)
    result = invoke("check", "mine.csv")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "Unexpected TypeError: no such thing. Set ROBUSTPCA_DEBUG=1 to see where.\n"
    )


@pytest.mark.parametrize("verb", ["check", "rows", "entries", "tune", "compare", "fit"])
def test_a_page_to_forward_is_written_once(invoke, mine, tmp_path, verb):
    more = {"compare": ["--seeds", 1], "fit": ["-o", "m.rpca"]}.get(verb, [])
    result = invoke(verb, "mine.csv", *more, "--report", "page.html")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].endswith("page.html.")
    page = (tmp_path / "page.html").read_text()
    assert "999" in page
    again = invoke(verb, "mine.csv", *more, "--report", "page.html")
    assert again.exit_code == 2
    assert "page.html" in again.output
    assert (tmp_path / "page.html").read_text() == page


def test_a_page_must_be_named_as_one(invoke, mine):
    result = invoke("rows", "mine.csv", "--report", "page.pdf")
    assert result.exit_code == 2
    assert "should name a page" in result.output


def test_pictures_by_name_and_by_a_saved_model(invoke, plants, tmp_path):
    pytest.importorskip("matplotlib")
    assert invoke("plot", "plants.csv", "-o", "map.svg").exit_code == 0
    text = (tmp_path / "map.svg").read_text()
    assert text.startswith("<?xml")
    result = invoke("plot", "plants.csv", "--kind", "scree,entries,images", "-o", "pictures")
    assert result.exit_code == 0, result.output
    assert "Left out images: plants.csv holds no images." in result.output
    files = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert files == {"scree.png", "entries.png", "run.json"}
    assert invoke("fit", "plants.csv", "-o", "m.rpca").exit_code == 0
    result = invoke("plot", "plants.csv", "--model", "m.rpca", "-o", "scores.pdf", "--kind",
                    "scores", "--json")  # fmt: skip
    assert json.loads(result.stdout)["verdict"] == "Drew scores by RPCA."
    assert (tmp_path / "scores.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "pie", "-o", "x.png"], "No picture is called 'pie': choose from map, scores"),
        (["-o", "x.doc"], "-o x.doc should be a folder, or end with .png, .svg, .pdf."),
        (["--kind", "all", "-o", "x.png"], "x.png is one file"),
        (["--kind", "images", "-o", "x.png"], "mine.csv holds no images."),
    ],
)
def test_pictures_that_cannot_be_drawn(invoke, mine, tmp_path, arguments, message):
    pytest.importorskip("matplotlib")
    result = invoke("plot", "mine.csv", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]


def test_a_page_on_a_file_by_the_report_verb(invoke, mine, tmp_path):
    result = invoke("report", "mine.csv", "-o", "page.html", "-q")
    assert (result.exit_code, result.output) == (0, "Found 1 wrong cell.\n")
    assert "What is wrong with mine.csv?" in (tmp_path / "page.html").read_text()
    assert invoke("report", "mine.csv").exit_code == 2


def test_missing_codes_and_dropped_columns_are_said(invoke, mine, tmp_path):
    mine.loc[3:5, "c2"] = -999.0
    mine.to_csv("coded.csv", index=False)
    found = json.loads(invoke("check", "coded.csv", "--drop", "c1,c3", "--json").stdout)
    assert "-999 stands in 3 cells of 1 column and counts as missing" in found["read"]
    assert found["left_out"] == {"c1": "not chosen", "c3": "not chosen"}
    assert found["verdict"].startswith("Found 3 missing cells")
    kept = json.loads(invoke("entries", "coded.csv", "--missing", "none", "--json").stdout)
    assert kept["n_missing"] == 0
    result = invoke("check", "coded.csv", "--missing", "many")
    assert "--missing many should be numbers such as -999,-99, or none." in result.stderr


def test_warnings_are_sentences(invoke, mine, monkeypatch):
    def careless(*args, **kwargs):
        warnings.warn("This  is\nodd.", stacklevel=2)
        warnings.simplefilter("always")  # as some packages do when they are imported
        warnings.warn("It will be gone.", DeprecationWarning, stacklevel=2)
        raise ValueError("No more.")

    monkeypatch.setattr("robustpca.tools.checks.check", careless)
    result = invoke("check", "mine.csv")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == ["Note: This is odd.", "No more."]


def test_few_rows_with_units_are_brought_to_one_scale(invoke, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 6)) + 0.05 * rng.normal(size=(12, 6)) + 9
    X *= [1, 10, 100, 1000, 0.1, 5]
    X[4, 4] = 60
    pandas.DataFrame(X, columns=list("abcdef")).to_csv(tmp_path / "few.csv", index=False)
    result = invoke("entries", "few.csv", "--json")
    assert result.exit_code == 0, result.output
    (cell,) = json.loads(result.stdout)["cells"]
    assert (cell["row"], cell["column"]) == ("5", "e")
    assert 0.5 < cell["restored"] < 1.5


def test_info_has_the_usual_median_and_columns_below_their_heads(invoke, tmp_path):
    (tmp_path / "two.csv").write_text("a,b\n1,10\n2,40\n")
    lines = invoke("info", "two.csv").output.splitlines()
    assert lines[2:] == [
        "column  missing        least       median         most",
        "a             0            1          1.5            2",
        "b             0           10           25           40",
    ]


@pytest.mark.parametrize("verb", [["rows", "mine.csv"], ["fit", "mine.csv", "-o", "x.rpca"]])
def test_an_unknown_scale_is_told_in_the_words_of_the_command_line(invoke, mine, verb):
    result = invoke(*verb, "--scale", "big")
    assert (result.exit_code, result.output) == (2, "--scale big should be auto, mad or none.\n")
