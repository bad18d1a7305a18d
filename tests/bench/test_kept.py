"""Kept results and the difference of two runs, on made-up rows."""

import json

import pytest
from makeshift import small_table
from processes import fork_workers  # noqa: F401
from sklearn.decomposition import PCA
from staged import report_of, rows_of, staged_table
from test_text import row

from robustpca.bench import build_report, render_markdown, run
from robustpca.bench.difference import compare_runs
from robustpca.bench.kept import cell_of, keep, kept_outcome, read_results

METHODS = {"PCA": PCA(), "older": PCA()}


def spread(method, mean, n_seeds=10, **parts):
    """Rows whose scores have a standard error of about a third."""
    return [row(method, s, mean + (s % 2) * 2.0, **parts) for s in range(n_seeds)]


def test_a_report_of_kept_rows_says_the_same_as_one_of_the_rows(tmp_path, rng):
    table = staged_table()
    rows = rows_of(table, rng, n_seeds=10)
    (path,) = keep(rows, tmp_path)
    assert path == tmp_path / "default" / "staged.json.xz"
    outcome = kept_outcome([table], tmp_path)
    assert outcome.missing_data == {"staged": {"gone": "No results were kept."}}
    assert outcome.n_other == 0

    def texts_of(report):
        files = render_markdown(report)
        return files["summary.md"], [
            line for line in files["staged.md"].splitlines() if "EPCA" in line
        ]

    kept = texts_of(build_report([table], outcome))
    missing = {"gone": "No results were kept."}
    assert kept == texts_of(report_of(table, rows, missing))


def test_kept_rows_are_small(tmp_path, rng):
    rows = rows_of(staged_table(), rng, n_seeds=10)
    (path,) = keep(rows, tmp_path)
    assert path.stat().st_size < 30 * len(rows) < len(json.dumps(rows)) / 10


def test_newer_rows_take_the_place_of_older_ones_of_their_cells(tmp_path):
    keep([row(score=1.0), row(seed=1, score=2.0)], tmp_path)
    keep([row(seed=1, score=5.0), row(seed=2, score=6.0, error="ValueError: no")], tmp_path)
    found = {one["seed"]: one for one in read_results(tmp_path / "default")}
    assert [found[seed]["scores"] for seed in (0, 1)] == [
        {"reconstruction_error": 1.0}, {"reconstruction_error": 5.0}
    ]  # fmt: skip
    assert (found[2]["scores"], found[2]["error"]) == (None, "ValueError: no")


def test_rows_that_the_table_no_longer_has_are_counted(tmp_path):
    table = small_table(seeds=1)
    keep([row(score=1.0), row("gone", score=2.0), row(score=1.0, n_components=9)], tmp_path)
    outcome = kept_outcome([table], tmp_path)
    assert len(outcome.rows) == 1
    assert outcome.n_other == 2


@pytest.mark.usefixtures("forked")
def test_rows_of_a_run_and_kept_ones_are_read_alike(tmp_path):
    table = small_table(METHODS, seeds=1)
    outcome = run([table], tmp_path / "run", jobs=1)
    keep(outcome.rows, tmp_path)
    sources = (tmp_path / "run", tmp_path / "run" / "rows.jsonl", tmp_path / "default")
    first, *others = ([cell_of(one) for one in read_results(path)] for path in sources)
    assert len(first) == 4
    assert all(sorted(other) == sorted(first) for other in others)
    same = compare_runs(read_results(sources[0]), read_results(sources[2]))
    assert same.text().startswith("0 of 4 scores moved.")
    with pytest.raises(FileNotFoundError, match=r"has no results: neither rows.jsonl of a run nor"):
        read_results(tmp_path)


def test_what_moved_by_more_than_chance_is_named():
    ours = spread("PCA", 5.0) + spread("older", 5.0)
    theirs = spread("PCA", 5.3) + spread("older", 9.0)
    difference = compare_runs(ours, theirs)
    (moved,) = difference.moved
    assert moved.where == "small, cloud, n_components=1, older, reconstruction_error"
    assert (moved.first, moved.second) == (6.0, 10.0)
    assert moved.errors == pytest.approx(4 / (2 * (10 / 9) / 10) ** 0.5)
    assert "6 and 10, +8.5 standard errors" in difference.text()
    assert "1 of 2 scores moved." in difference.text()


def test_values_that_do_not_vary_must_agree_as_far_as_they_are_kept():
    ours = [row(seed=s, score=1.234567) for s in range(3)]
    assert not compare_runs(ours, [row(seed=s, score=1.23457) for s in range(3)]).moved
    (moved,) = compare_runs(ours, [row(seed=s, score=1.2347) for s in range(3)]).moved
    assert moved.errors == float("inf")


def test_times_other_data_and_what_one_run_lacks_are_told_apart():
    times = {"scores": {"error": 1.0, "seconds": 1.0}}
    ours = [row(**times), row("b"), row("c", data={"digest": "one"}), row("d")]
    theirs = [
        row(scores={"error": 1.0, "seconds": 9.0}, seconds=1.0),
        row("c", score=7.0, data={"digest": "two"}),
        row("d", error="ValueError: no"),
        row("e"),
        row("f"),
    ]
    difference = compare_runs(ours, theirs)
    assert [move.where for move in difference.moves] == ["small, cloud, n_components=1, PCA, error"]
    assert difference.times == [2.0]
    assert difference.failures == ["small, cloud, n_components=1, d"]
    assert (difference.other_data, difference.only_first, difference.only_second) == (1, 1, 2)
    text = difference.text()
    assert "The second run took 2 times as long as the first, in the median." in text
    assert "1 group of cells of other data, not compared." in text
    assert "2 groups of cells only in the second." in text
