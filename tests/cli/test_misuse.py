"""Files that hold no table, and places where nothing can be written: one sentence, nothing left."""

import json
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
testing = pytest.importorskip("typer.testing")
pytest.importorskip("pyarrow")

from robustpca.cli import app  # noqa: E402

NUMBERS = "a,b,c\n" + "".join(f"{i},{i * i % 7},{-i}.5\n" for i in range(30))
# Each with what is said of it.
DAMAGED = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n \n\n", "is empty"),
    "names.csv": (b"a,b,c\n", "has names of columns and no rows."),
    "text.csv": (b"a,b\n" + b"x,y\n" * 20, "holds measurements"),
    "missing.csv": (b"a,b\n" + b"nan,\n" * 20, "holds measurements: a (empty), b (empty)"),
    "ragged.csv": (b"1,2\n3,4\n1,2,3,4\n", "Line 3 of"),
    "archive.csv": (None, "is no text"),
    "utf16.csv": (NUMBERS.encode("utf-16-le"), "is no text"),
    "long.csv": (NUMBERS.encode() + b"9" * 200_000, "is there a quote without an end?"),
    "quote.csv": (b'a,"b,c\n' + b"1,2,3\n" * 20, "is there a quote without an end?"),
    "table.npy": (NUMBERS.encode(), "is damaged"),
    "table.npz": (None, "holds no array"),
    "table.xlsx": (NUMBERS.encode(), "is damaged"),
    "table.parquet": (NUMBERS.encode(), "is damaged"),
    "lists.parquet": (None, "holds measurements: a (row names), b (text)"),
    "complex.npy": (None, "numbers are needed"),
    "folder.csv": (None, "holds no images"),
    "table.xyz": (NUMBERS.encode(), "is of no kind that can be read"),
}
VERBS = {
    "check": [],
    "rows": ["-o", "out"],
    "entries": ["-o", "out"],
    "tune": [],
    "compare": ["-o", "out"],
    "fit": ["-o", "new.rpca"],
    "transform": ["--model", "model.rpca", "-o", "scores.csv"],
    "plot": ["-o", "map.png"],
    "report": ["-o", "page.html"],
    "info": [],
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command line in a folder with a table and a model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text(NUMBERS)

    def run(*arguments):
        return testing.CliRunner().invoke(app.application(), list(map(str, arguments)))

    assert run("fit", "good.csv", "--method", "PCAOM", "-o", "model.rpca").exit_code == 0
    return run


def write(folder, name):
    content = DAMAGED[name][0]
    path = folder / name
    if content is not None:
        path.write_bytes(content)
    elif name == "archive.csv":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("good.csv", NUMBERS)
    elif name == "table.npz":
        np.savez(path)
    elif name == "lists.parquet":
        pandas.DataFrame({"a": [[1, 2], [3]], "b": [{"x": 1}, {"x": 2}]}).to_parquet(path)
    elif name == "complex.npy":
        np.save(path, np.ones((20, 3), complex))
    else:
        path.mkdir()


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_holds_no_table_is_one_sentence_for_every_verb(run, name, tmp_path):
    write(tmp_path, name)
    before = contents(tmp_path)
    for verb, options in VERBS.items():
        found = run(verb, name, *options)
        assert found.exit_code == 2, (verb, found.output)
        (sentence,) = found.output.strip().splitlines()
        assert "Unexpected" not in sentence, verb
        assert "Errno" not in sentence, verb
        if verb != "transform" or DAMAGED[name][1] in sentence:
            assert DAMAGED[name][1] in sentence, verb
        assert sentence.endswith((".", "?")), verb
        assert contents(tmp_path) == before, verb


@pytest.mark.parametrize(
    ("rows", "verb", "words"),
    [
        ([[1.5, 2.5, 3.5]], "fit", "minimum of 2 is required"),
        ([[1.5, 2.5]] * 30, "check", "Nothing is wrong"),
        ([[1.5, 2.5]] * 30, "tune", "Use PCA"),
        ([[i % 3, i * i % 7, 1e300 if i == 4 else 1] for i in range(30)], "rows", "Row 5 of t.csv"),
        ([[1e-290 * (i % 3), 1e-290 * i] for i in range(30)], "entries", "divide X by"),
    ],
)
def test_odd_numbers_are_answered_or_refused_in_words(run, rows, verb, words, tmp_path):
    names = [chr(97 + i) for i in range(len(rows[0]))]
    pandas.DataFrame(rows, columns=names).to_csv("t.csv", index=False)
    found = run(verb, "t.csv", *(["-o", "new.rpca"] if verb == "fit" else []))
    assert words in found.output
    assert found.exit_code == (0 if words.startswith(("Nothing", "Use")) else 2)
    assert not (tmp_path / "new.rpca").exists()


@pytest.mark.parametrize("verb", ["fit", "transform", "rows", "entries"])
def test_the_data_are_never_replaced(run, verb, tmp_path):
    before = contents(tmp_path)
    model = ["--model", "model.rpca"] if verb == "transform" else []
    for place in ("good.csv", f"../{tmp_path.name}/good.csv"):
        found = run(verb, "good.csv", *model, "-o", place, "--force")
        assert found.exit_code == 2
        assert "good.csv holds the data, which are kept: choose another place." in found.output
        assert contents(tmp_path) == before


def test_images_are_not_replaced_in_their_folder(run, tmp_path, rng):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "cleaned").mkdir()  # as the folder of what `entries` writes
    for i in range(12):
        pixels = rng.integers(0, 255, size=(6, 5), dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / "cleaned" / f"{i}.png")
    before = contents(tmp_path)
    found = run("entries", "cleaned", "-o", ".", "--force")
    assert found.exit_code == 2
    assert "holds the data, which are kept" in found.output
    assert contents(tmp_path) == before


@pytest.mark.parametrize("place", ["good.csv/out", "good.csv/deep/out"])
def test_a_file_in_the_way_of_a_folder_is_named(run, place):
    found = run("rows", "good.csv", "-o", place)
    assert found.exit_code == 2
    assert f"{place} cannot be written: good.csv is no folder." in found.output


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
def test_what_may_not_be_read_or_written_is_said_without_numbers_of_errors(run, tmp_path):
    (tmp_path / "good.csv").chmod(0)
    found = run("check", "good.csv")
    assert found.exit_code == 2
    assert "good.csv cannot be used: Permission denied." in found.output


# Runs verbs in a process that may write files of a few kilobytes only.
FULL = """
import json, resource, sys
from typer.testing import CliRunner
from robustpca.cli.app import application
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
told = []
for line in sys.argv[1:]:
    found = CliRunner().invoke(application(), line.split())
    told.append([line, found.exit_code, found.output])
print(json.dumps(told))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of the size of files")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(run, tmp_path, rng):
    for module in ("h5py", "zarr", "matplotlib"):
        pytest.importorskip(module)
    X = rng.normal(size=(2000, 3)).round(4)
    pandas.DataFrame(X, columns=list("abc")).to_csv("big.csv", index=False)
    before = contents(tmp_path)
    # Workbooks are written to a temporary file first, which is limited here as well.
    endings = ("csv", "parquet", "npy", "npz", "mat", "h5", "zarr")
    lines = [f"transform big.csv --model model.rpca -o new/s.{ending} -q" for ending in endings]
    lines += ["rows big.csv -o new -q", "plot big.csv -o new/map.svg -q"]
    done = subprocess.run(
        [sys.executable, "-c", FULL, *lines], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    for line, code, told in json.loads(done.stdout):
        assert code == 2, (line, told)
        (sentence,) = told.splitlines()
        assert re.search("new.* cannot be written: (File too large|No space)", sentence), sentence
    assert contents(tmp_path) == before
    assert not (tmp_path / "new").exists()
