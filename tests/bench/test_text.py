import math
import statistics

import pytest
from makeshift import Cloud, small_table
from sklearn.decomposition import PCA
from staged import report_of, stage

from robustpca import EPCA
from robustpca.bench import (
    Claim,
    best_of,
    build_report,
    render_markdown,
    render_page,
    render_terminal,
    summarise,
)
from robustpca.bench.declarations import Table, place
from robustpca.metrics import reconstruction_error

VERSIONS = {"python": "3", "numpy": "2"}


def row(method="PCA", seed=0, score=1.0, n_components=1, error=None, **parts):
    good = error is None
    return {
        "key": f"{method}{seed}{n_components}{parts}",
        "table": "small",
        "dataset": "cloud",
        "corruption": "",
        "method": method,
        "role": "only",
        "chosen_by": "",
        "settings": {"n_components": n_components},
        "tuned": {},
        "seed": seed,
        "scores": {"reconstruction_error": score} if good else None,
        "seconds": 0.5 if good else None,
        "converged": True if good else None,
        "memory_start": 100 * 2**20 if good else None,
        "memory_peak": 103 * 2**20 if good else None,
        "error": error,
        "versions": VERSIONS,
        **parts,
    }


def entries_of(table, rows, score=None):
    return summarise(table, rows)[score or next(iter(table.scores))]


def markdown_of(table, *parts):
    return render_markdown(report_of(table, *parts))[f"{table.name}.md"]


@pytest.fixture
def published(monkeypatch):
    """Published values for a table of the tests."""

    def publish(values):
        found = {
            place("cloud", "", name, {"n_components": c}): v for (name, c), v in values.items()
        }

        def targets(table, score=None):
            return found if score in (None, next(iter(table.scores))) else {}

        monkeypatch.setattr(Table, "targets", targets)

    return publish


def test_values_are_means_over_seeds_with_their_spread():
    table = small_table()
    rows = [row(seed=seed, score=score) for seed, score in enumerate([1.0, 2.0, 6.0])]
    (entry,) = entries_of(table, rows)
    assert entry.mean == 3.0
    assert entry.std == statistics.stdev([1, 2, 6])
    assert entry.n_seeds == 3
    assert entry.memory == 3 * 2**20
    assert math.isnan(entry.published)


def test_a_score_that_does_not_exist_has_neither_mean_nor_spread():
    table = small_table(score={"error": reconstruction_error, "else": reconstruction_error})
    rows = [row(seed=seed, scores={"error": 1.0, "else": None}) for seed in range(3)]
    (entry,) = entries_of(table, rows, "else")
    assert math.isnan(entry.mean)
    assert math.isnan(entry.std)
    assert "## else" in markdown_of(table, rows)


def test_the_two_best_of_each_place_are_marked():
    table = small_table({"a": PCA(), "b": PCA(), "c": PCA()})
    rows = [row(name, score=s) for name, s in (("a", 3.0), ("b", 1.0), ("c", 2.0))]
    rows += [row(name, score=s, n_components=2) for name, s in (("a", 1.0), ("b", 5.0), ("c", 2.0))]
    ranks = {(e.method, e.settings["n_components"]): e.rank for e in entries_of(table, rows)}
    assert ranks == {("a", 1): 0, ("b", 1): 1, ("c", 1): 2, ("a", 2): 1, ("b", 2): 0, ("c", 2): 2}
    higher = small_table({"a": PCA(), "b": PCA(), "c": PCA()}, better="higher")
    ranks = {(e.method, e.settings["n_components"]): e.rank for e in entries_of(higher, rows)}
    assert ranks == {("a", 1): 1, ("b", 1): 0, ("c", 1): 2, ("a", 2): 0, ("b", 2): 1, ("c", 2): 2}


def test_equal_values_share_their_rank():
    table = small_table({"a": PCA(), "b": PCA(), "c": PCA()})
    rows = [row(name, score=s) for name, s in (("a", 2.0), ("b", 1.0), ("c", 1.0))]
    rows += [row(name, score=s, n_components=2) for name, s in (("a", 0.5), ("b", 1.0), ("c", 1.0))]
    assert [entry.rank for entry in entries_of(table, rows)] == [0, 1, 1, 1, 2, 2]


def test_published_values_have_ranks_of_their_own(published):
    published({("a", 1): 5.0, ("b", 1): 4.0, ("c", 1): 6.0})
    table = small_table({"a": PCA(), "b": PCA(), "c": PCA()})
    rows = [row(name, score=s) for name, s in (("a", 3.0), ("b", 2.0), ("c", 1.0))]
    found = [(entry.rank, entry.published_rank) for entry in entries_of(table, rows)]
    assert found == [(0, 2), (2, 1), (1, 0)]


def test_a_claim_says_which_values_of_another_score_are_good():
    claim = Claim(text="Gains most.", method="a", score="gain", better="higher")
    parts = {"score": {"error": len, "gain": max}, "claims": [claim]}
    table = small_table({"a": PCA(), "b": PCA()}, **parts)
    rows = [row(n, scores={"error": s, "gain": s}) for n, s in (("a", 1.0), ("b", 2.0))]
    assert [entry.rank for entry in entries_of(table, rows)] == [1, 2]
    assert [entry.rank for entry in entries_of(table, rows, "gain")] == [2, 1]


def test_a_score_that_only_describes_has_no_best():
    table = small_table(
        {"PCA": PCA(), "EPCA": EPCA()},
        score={"error": reconstruction_error, "rank": reconstruction_error},
        senses={"rank": "neither"},
    )
    rows = [row(name, scores={"error": 1.0, "rank": 2.0}) for name in ("PCA", "EPCA")]
    assert [entry.rank for entry in entries_of(table, rows, "rank")] == [0, 0]
    assert [entry.rank for entry in entries_of(table, rows, "error")] == [1, 1]
    with pytest.raises(ValueError, match="senses has 'rnk'"):
        small_table(senses={"rnk": "neither"})


def test_entries_stand_in_the_order_of_the_declaration():
    table = small_table(
        {"z": PCA(), "a": PCA()}, datasets={"two": Cloud(), "one": Cloud()}, vary={"c": [2, 10]}
    )
    rows = [
        row(name, dataset=data, settings={"c": c}, score=1.0)
        for c in (10, 2)
        for data in ("one", "two")
        for name in ("a", "z")
    ]
    order = [(e.dataset, e.settings["c"], e.method) for e in entries_of(table, rows)]
    assert order == [(d, c, m) for d in ("two", "one") for c in (2, 10) for m in ("z", "a")]


def test_the_best_candidate_counts_and_the_default_stands_beside_it(published):
    published({("EPCA", 1): 2.0})
    table = small_table({"EPCA": best_of(EPCA(), "the labels", sigma=[1.0, 2.0])})
    parts = {"role": "candidate", "chosen_by": "the labels"}
    rows = [
        row("EPCA", seed, score, tuned={"sigma": sigma}, **parts)
        # The least single value is at 1.0, the least mean at 2.0.
        for sigma, scores in {1.0: (0.5, 5.5), 2.0: (1.9, 2.1)}.items()
        for seed, score in enumerate(scores)
    ]
    rows += [row("EPCA", seed, 4.0, role="default", chosen_by="the labels") for seed in (0, 1)]
    chosen, default = entries_of(table, rows)
    assert chosen.tuned == {"sigma": 2.0}
    assert chosen.mean == pytest.approx(2.0)
    assert chosen.ratio == pytest.approx(1.0)
    assert (chosen.rank, default.rank) == (1, 0)
    assert default.mean == 4.0
    assert math.isnan(default.published)
    text = markdown_of(table, rows)
    assert "sigma=2: best of 2 by the labels" in text
    assert "EPCA, default" in text


def test_all_scores_are_of_the_candidate_that_the_first_score_chose():
    table = small_table(
        {"EPCA": best_of(EPCA(), sigma=[1.0, 2.0])},
        score={"error": reconstruction_error, "rank": reconstruction_error},
    )
    candidates = [(1.0, {"error": 5.0, "rank": 1.0}), (2.0, {"error": 3.0, "rank": 9.0})]
    rows = [
        row("EPCA", role="candidate", tuned={"sigma": sigma}, scores=scores)
        for sigma, scores in candidates
    ]
    (entry,) = entries_of(table, rows, "rank")
    assert (entry.mean, entry.tuned) == (9.0, {"sigma": 2.0})


def test_a_candidate_that_failed_for_some_seed_is_not_chosen():
    table = small_table({"EPCA": best_of(EPCA(), sigma=[1.0, 2.0])})
    good = [row("EPCA", s, 3.0, role="candidate", tuned={"sigma": 1.0}) for s in (0, 1)]
    bad = [row("EPCA", 0, 1.0, role="candidate", tuned={"sigma": 2.0})]
    bad += [row("EPCA", 1, error="ValueError: no", role="candidate", tuned={"sigma": 2.0})]
    (entry,) = entries_of(table, good + bad)
    assert entry.tuned == {"sigma": 1.0}
    (entry,) = entries_of(table, bad)
    assert (entry.mean, entry.n_failed) == (1.0, 1)


def test_a_candidate_with_fewer_seeds_is_not_chosen_for_its_luck():
    table = small_table({"EPCA": best_of(EPCA(), sigma=[1.0, 2.0])})
    all_run = [row("EPCA", s, 3.0 + s, role="candidate", tuned={"sigma": 1.0}) for s in (0, 1)]
    half_run = [row("EPCA", 0, 2.0, role="candidate", tuned={"sigma": 2.0})]
    (entry,) = entries_of(table, half_run + all_run)
    assert (entry.tuned, entry.mean) == ({"sigma": 1.0}, 3.5)


def test_ours_stands_beside_the_published_value(published):
    published({("PCA", 1): 1.05, ("PCA", 2): 2.0, ("PCA", 3): 7.0})
    rows = [row(score=1.0), row(score=1.0, n_components=2)]
    entries = entries_of(small_table(), rows)
    assert [entry.ratio for entry in entries] == [pytest.approx(1 / 1.05), 0.5]
    assert [entry.is_near for entry in entries] == [True, False]
    text = markdown_of(small_table(), rows)
    assert "1 of 2 values lie within 10 % of the published one." in text
    line = next(line for line in text.splitlines() if "0.952" in line)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:6] == ["1", "PCA", "**1**", "-", "1.05", "0.952"]


def test_failures_and_what_lacks_are_shown():
    table = small_table({"PCA": PCA(), "bad": PCA()}, notes=["A remark."])
    rows = [row(), row("bad", error="ValueError: no | luck"), row("bad", 1, 2.0, converged=False)]
    text = markdown_of(table, rows, {"faces": "Put them there."})
    assert "1 of 2 failed; 1 not converged" in text
    assert "- 1 cells of bad failed: ValueError: no | luck" in text
    assert "- Missing data set faces: Put them there." in text
    assert "- A remark." in text


def test_a_table_without_any_row_still_says_what_lacks():
    text = markdown_of(small_table(), [], {"cloud": "It is gone."})
    assert text == "# Small\n\n- Missing data set cloud: It is gone.\n"


def test_every_score_has_a_block_and_only_the_first_is_compared(published):
    published({("PCA", 1): 1.0})
    table = small_table(score={"first": len, "second": max})
    rows = [row(scores={"first": 1.0, "second": None})]
    text = markdown_of(table, rows)
    assert "## first" in text
    assert "## second" in text
    assert text.count("published |") == 1


def test_a_table_without_claims_says_why_in_text_and_page():
    table = small_table(unclaimed="Nobody has said anything.")
    assert "- No claims: Nobody has said anything." in markdown_of(table, [row()])
    assert "No claims: Nobody has said anything." in render_page(report_of(table, [row()]))
    with pytest.raises(ValueError, match="small has claims, and says why it has none"):
        small_table(unclaimed="None.", claims=[Claim(text="Best.", method="PCA")])


def test_columns_are_lined_up():
    rows = [row(), row(score=123456.789, n_components=2)]
    lines = [line for line in markdown_of(small_table(), rows).splitlines() if line.startswith("|")]
    assert len(lines) == 4
    assert len(set(map(len, lines))) == 1


def test_varied_numbers_are_written_as_on_the_page():
    rows = [row(settings={"sigma": sigma}) for sigma in (1.0, 0.25)]
    table = small_table({"EPCA": EPCA()}, vary={"sigma": [1.0, 0.25]})
    lines = markdown_of(table, rows).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("|")][2:] == ["0.25", "1"]


def test_the_terminal_shows_all_tables_and_breaks_prose_only():
    report = build_report(*stage())
    text, files = render_terminal(report, width=60), render_markdown(report)
    assert [line for line in text.splitlines() if line.startswith("# ")] == [
        "# Staged: error & time in 100 % of all_cases",
        "# Staged: error by size",
    ]
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 60
    tables = files["staged.md"] + files["staged_figure.md"]
    assert text.split() == tables.split()
