"""Rows that are not what they should be: left out, or refused, in one sentence."""

import json
import lzma
import warnings
from pathlib import Path

import pytest
from makeshift import small_table
from processes import fork_workers  # noqa: F401
from staged import report_of, rows_of, staged_table

from robustpca.bench import collect, read_rows, run
from robustpca.bench.charts import draw
from robustpca.bench.fields import whole_rows
from robustpca.bench.figures import Picture
from robustpca.bench.kept import keep, read_results
from robustpca.bench.page import render_page

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(name="row")
def _row(rng):
    (row, *_) = (one for one in rows_of(staged_table(), rng) if one["shown"])
    return row


def test_rows_of_runs_and_of_kept_results_are_whole(rng):
    rows = rows_of(staged_table(), rng)
    assert whole_rows(rows, "rows.jsonl") == rows
    some = sorted(RESULTS.glob("*/*.json.xz"))[:3]
    assert all(read_results(path) for path in some)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dataset", None),
        ("settings", "none"),
        ("seed", "0"),
        ("scores", None),
        ("scores", {"error": "low"}),
        ("seconds", [1]),
        ("error", {"text": "no"}),
        ("versions", []),
        ("shown", {"faces": {"kind": "picture", "png": '"><script>', "width": 2, "height": 2}}),
        ("shown", {"faces": {"kind": "picture", "png": "AAAA", "width": '1"', "height": 2}}),
        ("shown", {"faces": {"kind": "picture", "png": "AAAA", "width": 0, "height": 2}}),
        ("shown", {"loss": {"kind": "curve", "x": [1, 2], "y": [1]}}),
        ("shown", {"loss": {"kind": "curve", "x": [], "y": []}}),
        ("shown", {"codes": {"kind": "points", "x": [1], "y": [1]}}),
        ("shown", {"film": {"kind": "film"}}),
    ],
)
def test_rows_with_wrong_fields_are_left_out_and_told(name, value, row):
    words = rf"1 of the rows in rows\.jsonl are left out, .*: {name} in '{row['key']}'\. Run these"
    with pytest.warns(UserWarning, match=words):
        assert whole_rows([row, {**row, name: value}], "rows.jsonl") == [row]


def test_every_field_is_needed(row):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spare = [name for name in row if whole_rows([{k: row[k] for k in row if k != name}], "")]
    assert set(spare) == {"machine", "finished", "shown"}


@pytest.mark.usefixtures("forked")
def test_a_run_does_cells_again_whose_rows_are_of_no_use(tmp_path):
    table = small_table(seeds=1)
    first = run([table], tmp_path, jobs=1)
    path = tmp_path / "rows.jsonl"
    rows = read_rows(path)
    del rows[0]["dataset"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(UserWarning, match=r"1 of the rows in .*rows\.jsonl are left out"):
        assert len(collect([table], tmp_path).rows) == len(first.rows) - 1
    with pytest.warns(UserWarning, match="1 of the rows"):
        again = run([table], tmp_path, jobs=1)
    assert (again.n_new, len(again.rows)) == (1, len(first.rows))
    assert len(collect([table], tmp_path).rows) == len(first.rows)


def test_pictures_cannot_leave_their_attribute(rng):
    html = draw(Picture('"><script>alert(1)</script>', 2, 2), 'a "title"')
    assert "<script>" not in html
    assert html.count('"') == 8
    rows = rows_of(staged_table(), rng)
    for row in rows:
        row["dataset"] = row["dataset"].replace("faces", '"><script>alert(1)</script>')
    assert "<script>alert" not in render_page(report_of(staged_table(), rows))


def test_rows_of_deep_lists_are_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b", "x": ' + 100_000 * "[" + 100_000 * "]" + "}\n")
    with pytest.raises(ValueError, match=r"Line 2 of .* is not a row: .*Correct or delete"):
        read_rows(path)
    path.write_text('{"key": []}\n')
    with pytest.raises(ValueError, match=r"Line 1 of .* is not a row"):
        read_rows(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        lzma.compress(b"no JSON"),
        lzma.compress(b"[]"),
        lzma.compress(b'{"columns": {"key": ["a"]}}'),
        lzma.compress(100_000 * b"["),
    ],
)
def test_damaged_kept_results_are_refused(content, tmp_path, rng):
    (path,) = keep(rows_of(staged_table(), rng), tmp_path)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"staged\.json\.xz is damaged: it holds no kept results"):
        read_results(path)
