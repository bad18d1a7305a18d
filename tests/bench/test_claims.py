"""Verdicts on made-up rows whose outcome is known."""

import re
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from makeshift import Cloud, drawn, small_table
from scipy.stats import rankdata, wilcoxon
from sklearn.decomposition import PCA
from test_text import markdown_of, row

from robustpca import EPCA
from robustpca.bench import Claim, best_of, by_level, evaluate, summarise
from robustpca.bench.charts import draw
from robustpca.bench.claims import _holm
from robustpca.bench.contests import exponents, p_value
from robustpca.bench.figures import chart
from robustpca.datasets import reset_entries

RIVALS = {"new": PCA(), "old": PCA(), "older": PCA()}
CLAIM = Claim(text="The new method is best.", method="new")


def rows_of(n_seeds=10, n_components=1, rng=None, **means):
    """Rows of methods around their means; noise that is common to all of them cancels in pairs."""
    rng = rng or np.random.default_rng(0)
    common = rng.normal(size=n_seeds)
    return [
        row(name, seed, mean + common[seed] + 0.01 * rng.normal(), n_components)
        for name, mean in means.items()
        for seed in range(n_seeds)
    ]


def judge(rows, claim=CLAIM, methods=RIVALS, **parts):
    table = small_table(methods, claims=[claim], **parts)
    (finding,) = evaluate(table, summarise(table, rows))
    return finding


def test_better_everywhere_holds():
    rows = rows_of(new=5.0, old=6.0, older=7.0) + rows_of(
        n_components=2, new=5.0, old=7.0, older=6.0
    )
    finding = judge(rows)
    assert finding.verdict == "holds"
    assert "Better than both rivals at 2 of 2 places, significantly at 2" in finding.evidence
    assert "Wilcoxon over 10 seeds)" in finding.evidence
    assert "met in 20 of 20 draws" in finding.evidence
    assert finding.by_default is None


def test_better_at_many_places_holds_although_each_p_value_is_only_a_thousandth():
    rows = [one for c in range(80) for one in rows_of(n_components=c, new=5.0, old=6.0, older=7.0)]
    assert judge(rows).verdict == "holds"


def test_worse_everywhere_does_not_hold():
    rows = rows_of(new=8.0, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "does not hold"
    assert "at 0 of 1 place, significantly at 0, refuted at 1" in finding.evidence
    assert "met in 0 of 10 draws" in finding.evidence


def test_significantly_worse_at_most_places_does_not_hold():
    rows = rows_of(new=5.0, old=6.0, older=7.0)
    rows += rows_of(n_components=2, new=8.0, old=6.0, older=7.0)
    rows += rows_of(n_components=3, new=8.0, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "does not hold"
    assert "Not met at cloud, n_components=2 (old is better, -" in finding.evidence


def test_better_here_and_worse_there_depends_and_says_where():
    rows = rows_of(new=5.0, old=6.0, older=7.0)
    rows += rows_of(n_components=2, new=6.5, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "depends"
    assert "at 1 of 2 places, significantly at 1" in finding.evidence
    assert "Not met at cloud, n_components=2 (old is better" in finding.evidence


def test_a_better_mean_that_is_luck_depends():
    scores = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    lucky = [
        *(score + 0.1 for score in scores[:-1]),
        5.0,
    ]  # worse at nine seeds, much better at one
    rows = [row("new", s, score) for s, score in enumerate(lucky)]
    rows += [row("old", s, score) for s, score in enumerate(scores)]
    finding = judge(rows, methods={"new": PCA(), "old": PCA()})
    assert finding.verdict == "depends"
    assert "Better than its rival at 1 of 1 place, significantly at 0" in finding.evidence
    assert "Met, but not significantly, at cloud" in finding.evidence
    assert "met in 1 of 10 draws" in finding.evidence


def test_a_worse_mean_that_may_be_bad_luck_refutes_nothing():
    rows = [row("old", s, 5.0) for s in range(10)]
    rows += [row("new", s, 7.0 if s < 5 else 4.0) for s in range(10)]
    finding = judge(rows, methods={"new": PCA(), "old": PCA()})
    assert finding.verdict == "depends"
    assert "at 0 of 1 place, significantly at 0 (Wilcoxon over 10 seeds" in finding.evidence


def test_the_best_rival_counts_not_all_rivals_together():
    rows = rows_of(new=5.0, old=9.0, older=4.9)
    assert judge(rows).verdict == "does not hold"
    limited = Claim(text="Better than the old one.", method="new", against=["old"])
    assert judge(rows, limited).verdict == "holds"


def test_nine_seeds_are_too_few():
    finding = judge(rows_of(9, new=5.0, old=6.0, older=7.0))
    assert finding.verdict == "too few seeds"
    assert "at 1 of 1 place (9 seeds: too few for a test)" in finding.evidence


def test_only_seeds_count_that_all_have():
    rows = rows_of(12, new=5.0, old=6.0, older=7.0)
    short = [one for one in rows if one["method"] != "old" or one["seed"] < 8]
    assert judge(rows).verdict == "holds"
    assert judge(short).verdict == "too few seeds"


def test_without_rows_it_was_not_run():
    assert judge([]).verdict == "not run"
    assert judge(rows_of(new=1.0)).verdict == "not run"
    assert judge(rows_of(old=1.0, older=2.0)).verdict == "not run"


def test_what_is_not_random_is_compared_exactly():
    def constant(n_seeds=3, **means):
        rows = [row(name, s, mean) for name, mean in means.items() for s in range(n_seeds)]
        return judge(rows, corruption=None)

    finding = constant(new=1.0, old=1.1, older=1.2)
    assert finding.verdict == "holds"
    assert "deterministic: compared exactly" in finding.evidence
    assert constant(2, new=1.0, old=1.1, older=1.2).verdict == "too few seeds"
    assert constant(new=1.0, old=0.9, older=1.2).verdict == "does not hold"
    # Methods that are equal, as where nothing is left to improve, refute no claim and prove none.
    assert constant(new=1.0, old=1.0, older=1.0).verdict == "depends"
    assert constant(new=1.0, old=1.0 + 1e-12, older=1.2).verdict == "depends"


def test_a_few_equal_draws_may_be_chance():
    rows = [
        row(name, s, mean) for name, mean in (("new", 3.0), ("old", 4.0), ("older", 5.0))
        for s in range(10)
    ]  # fmt: skip
    few = [one for one in rows if one["seed"] < 5]
    reset = partial(reset_entries, samples=0.2, features=0.2)
    for parts in ({"corruption": reset}, {"datasets": {"cloud": drawn}, "corruption": None}):
        assert judge(few, **parts).verdict == "too few seeds"
        assert judge(rows, **parts).verdict == "holds"
    assert judge(few, corruption=None).verdict == "holds"  # no data are drawn


@pytest.mark.parametrize("seeds", [1, by_level(quick=1, default=10, full=50)])
def test_one_draw_proves_nothing_unless_the_table_is_declared_as_not_random(seeds):
    rows = [row("new", 0, 1.0), row("old", 0, 1.1), row("older", 0, 1.2)]
    assert judge(rows, seeds=seeds).verdict == "too few seeds"
    assert judge(rows, seeds=seeds, deterministic=True).verdict == "holds"
    repeated = small_table(RIVALS, claims=[CLAIM], seeds=seeds).repeated(1)
    (finding,) = evaluate(repeated, summarise(repeated, rows))
    assert finding.verdict == "too few seeds"


def test_the_quick_level_is_not_judged():
    table = small_table(RIVALS, claims=[CLAIM])
    rows = rows_of(new=5.0, old=6.0, older=7.0)
    (finding,) = evaluate(table, summarise(table, rows), "quick")
    assert finding.verdict == "not judged"
    assert "at 1 of 1 place" not in finding.evidence


def test_a_claim_about_large_data_waits_for_the_full_level():
    rows = rows_of(new=5.0, old=6.0, older=7.0)
    table = small_table(RIVALS, claims=[replace(CLAIM, level="full")])
    (finding,) = evaluate(table, summarise(table, rows), "default")
    assert finding.verdict == "not judged"
    assert "full level" in finding.evidence
    (finding,) = evaluate(table, summarise(table, rows), "full")
    assert finding.verdict == "holds"
    with pytest.raises(ValueError, match="level='quick'"):
        replace(CLAIM, level="quick")


def test_few_of_many_places_say_nothing_about_most_of_them():
    claim = Claim(text="Mostly best.", method="new", kind="mostly best", against=["old"])
    rows = [row for c in (1, 2) for row in rows_of(n_components=c, new=6.0, old=5.0)]
    some = judge(rows, claim, vary={"n_components": [1, 2, 3, 4]})
    assert some.verdict == "does not hold"
    few = judge(rows, claim, vary={"n_components": [1, 2, 3, 4, 5]})
    assert few.verdict == "not run"
    assert few.evidence.startswith("Run at 2 of 5 places")
    limited = replace(claim, where={"n_components": [1, 2, 3]})
    assert judge(rows, limited, vary={"n_components": [1, 2, 3, 4, 5]}).verdict == "does not hold"


def test_equal_pairs_are_for_neither_side():
    rows = [row("old", s, 1.0 + s) for s in range(12)]
    rows += [row("new", s, 1.0 + s - (s == 11)) for s in range(12)]
    rows += [row("older", s, 2.0 + s) for s in range(12)]
    finding = judge(rows)  # better at one seed, equal at eleven
    assert finding.verdict == "depends"
    assert "met in 1 of 12 draws" in finding.evidence


def test_twice_as_good_is_not_ten_times_as_good():
    rows = rows_of(new=20.0, old=60.0, older=70.0)
    claims = [
        Claim(text="Several times.", method="new", factor=factor, against=["old"])
        for factor in (2, 10)
    ]
    twice, ten_times = (judge(rows, claim) for claim in claims)
    assert twice.verdict == "holds"
    assert twice.evidence.startswith("2 times better than its rival at 1 of 1 place")
    assert twice.basis == "better by a factor of 2; reconstruction_error"
    assert "beyond that +3" in twice.evidence  # 40 of 60
    assert ten_times.verdict == "does not hold"
    higher = Claim(text="Ten times higher.", method="old", factor=10, against=["new"])
    assert judge(rows, higher, better="higher").verdict == "does not hold"


def test_high_scores_can_be_the_good_ones():
    rows = rows_of(new=8.0, old=6.0, older=7.0)
    assert judge(rows).verdict == "does not hold"
    assert judge(rows, better="higher").verdict == "holds"
    claim = Claim(text="Higher.", method="new", better="higher")
    assert judge(rows, claim).verdict == "holds"


def test_a_claim_may_be_about_another_score():
    rows = rows_of(new=8.0, old=6.0, older=7.0)
    for one in rows:
        one["scores"] = dict.fromkeys(("error", "gain"), one["scores"]["reconstruction_error"])
    claim = Claim(text="Gains most.", method="new", score="gain", better="higher")
    assert judge(rows, claim, score={"error": len, "gain": max}).verdict == "holds"


def test_where_limits_a_claim():
    rows = rows_of(new=5.0, old=6.0, older=7.0)
    rows += rows_of(n_components=2, new=9.0, old=6.0, older=7.0)
    here = Claim(text="Best with few.", method="new", where={"n_components": [1]})
    there = Claim(text="Best with two.", method="new", where={"n_components": [2]})
    elsewhere = Claim(text="Best on faces.", method="new", where={"dataset": ["faces"]})
    assert judge(rows, here).verdict == "holds"
    assert judge(rows, there).verdict == "does not hold"
    assert judge(rows, elsewhere).verdict == "not run"


def test_what_was_not_run_is_named():
    clouds = {"cloud": Cloud(), "faces": Cloud()}
    finding = judge(rows_of(new=5.0, old=6.0, older=7.0), datasets=clouds)
    assert finding.verdict == "holds"
    assert finding.evidence.endswith("Not run: faces.")
    assert finding.judged_on == "cloud (1 place)"


def test_a_rival_that_was_not_run_cannot_be_beaten():
    finding = judge(rows_of(new=5.0, old=6.0))
    assert finding.verdict == "not run"
    assert finding.evidence.endswith("all its rivals: older.")
    rows = rows_of(new=5.0, old=6.0, older=7.0) + rows_of(n_components=2, new=5.0, old=6.0)
    assert judge(rows).judged_on == "cloud (1 place)"


def test_a_method_that_fails_is_not_better():
    rows = rows_of(old=6.0, older=7.0)
    rows += [row("new", s, error="ValueError: no") for s in range(10)]
    assert judge(rows).verdict == "does not hold"
    rows += rows_of(n_components=2, new=5.0, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "depends"
    assert "Not met at cloud, n_components=1 (failed)" in finding.evidence


def test_chosen_parameters_count_and_defaults_are_judged_beside_them():
    methods = {"new": best_of(EPCA(), sigma=[1.0, 2.0]), "old": best_of(EPCA(), sigma=[1.0])}
    rng = np.random.default_rng(1)
    common = rng.normal(size=10)

    def tuned(name, mean, **parts):
        return [row(name, s, mean + common[s] + 0.01 * rng.normal(), **parts) for s in range(10)]

    rows = tuned("new", 9.0, role="candidate", tuned={"sigma": 1.0})
    rows += tuned("new", 5.0, role="candidate", tuned={"sigma": 2.0})
    rows += tuned("new", 8.0, role="default")
    rows += tuned("old", 6.0, role="candidate", tuned={"sigma": 1.0})
    rows += tuned("old", 7.0, role="default")
    finding = judge(rows, methods=methods)
    assert finding.verdict == "holds"
    assert finding.by_default.verdict == "does not hold"
    text = markdown_of(small_table(methods, claims=[CLAIM]), rows)
    claim = "- Claim: The new method is best. (better; reconstruction_error) **holds**. Better than"
    assert f"{claim} its rival at 1 of 1" in text
    assert "With default parameters: **does not hold**." in text


def test_p_values_are_those_of_scipy_and_of_all_signs(rng):
    plain = rng.normal(0.3, size=11)
    assert p_value(plain) == pytest.approx(wilcoxon(plain, alternative="greater").pvalue)
    assert p_value(-plain) == pytest.approx(wilcoxon(plain, alternative="less").pvalue)
    tied = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0, -3.0, 3.0])
    ranks = rankdata(np.abs(tied))
    sums = [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(tied))]
    expected = np.mean(np.array(sums) >= ranks[tied > 0].sum())
    assert p_value(np.append(tied, 0.0)) == pytest.approx(expected)
    assert p_value(np.zeros(2)) == 1


def test_holm_corrects_as_in_a_textbook():
    assert _holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert _holm([0.9, 0.8]) == [1.0, 1.0]


def test_not_worse_needs_less_than_the_margin_and_says_which():
    claim = Claim(text="As good.", method="new", against=["old"], kind="not worse", margin=0.1)
    assert judge(rows_of(new=60.0, old=59.0), claim).verdict == "holds"
    assert judge(rows_of(new=70.0, old=59.0), claim).verdict == "does not hold"
    assert judge(rows_of(new=40.0, old=59.0), claim).verdict == "holds"
    finding = judge(rows_of(new=60.0, old=59.0), claim)
    assert finding.basis == "not worse, margin 10 %; reconstruction_error"
    assert "Not worse than its rival at 1 of 1 place, significantly at 1" in finding.evidence
    assert judge(rows_of(9, new=60.0, old=59.0), claim).verdict == "too few seeds"
    higher = Claim(
        text="As high.", method="new", against=["old"], kind="not worse", better="higher"
    )
    assert judge(rows_of(new=-60.0, old=-59.0), higher).verdict == "holds"
    assert judge(rows_of(new=-70.0, old=-59.0), higher).verdict == "does not hold"


def test_a_mean_inside_the_margin_by_luck_depends():
    claim = Claim(text="As good.", method="new", against=["old"], kind="not worse", margin=0.1)
    rows = [row("old", s, 10.0) for s in range(10)]
    rows += [row("new", s, 11.5 if s % 2 else 10.0) for s in range(10)]
    assert judge(rows, claim).verdict == "depends"


def test_similar_is_neither_worse_nor_better():
    claim = Claim(text="The same.", method="new", against=["old"], kind="similar", margin=0.1)
    assert judge(rows_of(new=60.0, old=59.0), claim).verdict == "holds"
    assert judge(rows_of(new=40.0, old=59.0), claim).verdict == "does not hold"
    assert judge(rows_of(new=80.0, old=59.0), claim).verdict == "does not hold"


def test_nothing_is_similar_to_rivals_that_are_not_similar_to_each_other():
    claim = Claim(
        text="The same.", method="new", against=["old", "older"], kind="similar", margin=0.1
    )
    finding = judge(rows_of(new=60.0, old=59.0, older=90.0), claim)
    assert finding.verdict == "not judged"
    assert "nothing could be within the margin of all" in finding.evidence
    rows = rows_of(new=60.0, old=59.0, older=90.0)
    rows += rows_of(n_components=7, new=60.0, old=59.0, older=61.0)
    finding = judge(rows, claim)
    assert finding.verdict == "holds"
    assert "Similar to both rivals at 1 of 1 place" in finding.evidence
    assert "Left out, since the rivals are not similar to each other" in finding.evidence


@pytest.mark.parametrize(
    ("n_won", "n_places", "verdict"),
    [(5, 5, "holds"), (8, 9, "holds"), (7, 10, "depends"), (1, 9, "does not hold"),
     (4, 4, "holds"), (3, 4, "depends"), (0, 3, "does not hold")],
)  # fmt: skip
def test_best_in_most_places_is_a_sign_test_over_places(n_won, n_places, verdict):
    claim = Claim(text="Mostly best.", method="new", kind="mostly best")
    rows = []
    for place in range(n_places):
        means = {"new": 5.0 if place < n_won else 6.5, "old": 6.0, "older": 7.0}
        rows += rows_of(n_components=place, **means)
    finding = judge(rows, claim)
    assert finding.verdict == verdict
    assert f"at {n_won} of {n_places} places (sign test over places: p = " in finding.evidence


def test_places_with_equal_means_are_for_neither_side_of_most_places():
    def judged(won, lost, equal):
        claim = Claim(text="Mostly best.", method="new", kind="mostly best", against=["old"])
        rows, means = [], [5.0] * won + [6.5] * lost + [6.0] * equal
        for place, mean in enumerate(means):
            here = rows_of(n_components=place, old=6.0)
            shift = mean - 6.0
            theirs = [(one["seed"], one["scores"]["reconstruction_error"]) for one in here]
            rows += here + [row("new", s, score + shift, place) for s, score in theirs]
        return judge(rows, claim, methods={"new": PCA(), "old": PCA()})

    finding = judged(1, 0, 8)
    assert finding.verdict == "depends"
    assert "at 1 of 9 places (sign test over places: p = 0.5)" in finding.evidence
    assert judged(5, 0, 6).verdict == "holds"
    assert judged(0, 5, 6).verdict == "does not hold"
    assert "p = 1)" in judged(0, 0, 3).evidence


def test_most_places_are_a_matter_of_places_and_not_of_seeds():
    claim = Claim(text="Mostly best.", method="new", kind="mostly best")
    rows = []
    for place in range(10):  # significantly worse at six of ten places: as chance may have it
        new = 5.0 if place < 4 else 6.5
        rows += rows_of(n_components=place, new=new, old=6.0, older=7.0)
    assert judge(rows, claim).verdict == "depends"


def test_a_single_refuted_place_says_nothing_for_those_with_too_few_seeds():
    rows = rows_of(new=8.0, old=6.0, older=7.0)
    for place in range(2, 6):
        rows += rows_of(3, n_components=place, new=6.1, old=6.0, older=7.0)
    assert judge(rows).verdict == "depends"
    assert judge(rows[30:]).verdict == "too few seeds"


def test_a_caveat_stands_beside_the_verdict():
    claim = replace(CLAIM, caveat="But the data are ours.")
    finding = judge(rows_of(new=5.0, old=6.0, older=7.0), claim)
    assert finding.evidence.endswith(". But the data are ours.")


def test_a_theorem_falls_with_one_exception():
    claim = Claim(text="At most one.", method="new", kind="always", bound=1.0)
    rows = [row("new", s, 0.5 + 0.05 * s) for s in range(11)]  # the last is 1 exactly
    finding = judge(rows, claim)
    assert finding.verdict == "holds"
    assert finding.evidence.startswith("Within 1 in 11 of 11 draws; mean 0.75.")
    assert judge(rows[:5], claim).verdict == "too few seeds"
    exception = [row("new", 0, 1.2), *rows[1:5]]
    assert judge(exception, claim).verdict == "does not hold"
    failed = [row("new", s, n_components=2, error="ValueError: no") for s in range(11)]
    finding = judge(rows + failed, claim)
    assert finding.verdict == "depends"
    assert finding.evidence.endswith("Not run: cloud, n_components=2 (failed).")
    assert judge(failed, claim).evidence.startswith("Within 1 in 0 of 0 draws. Not run:")


def test_a_method_may_meet_itself_with_other_settings():
    rows = rows_of(new=5.0) + rows_of(n_components=2, new=6.0) + rows_of(n_components=3, new=7.0)
    claim = Claim(
        text="Fewer are better.", method="new", where={"n_components": [1]},
        versus={"n_components": [2, 3]},
    )  # fmt: skip
    finding = judge(rows, claim)
    assert finding.verdict == "holds"
    assert "Better than with the other settings at 1 of 1 place" in finding.evidence
    worse = replace(claim, where={"n_components": [2]}, versus={"n_components": [1]})
    assert judge(rows, worse).verdict == "does not hold"


def test_growth_is_judged_by_its_exponent():
    def grown(name, exponent, rng):
        return [
            row(name, s, 3.0 * size**exponent * np.exp(0.01 * rng.normal()), size)
            for s in range(10)
            for size in (100, 200, 400, 800)
        ]

    rng = np.random.default_rng(0)
    rows = grown("new", 1.05, rng) + grown("old", 2.0, rng)
    table = small_table(RIVALS)
    entries = summarise(table, rows)["reconstruction_error"]
    found = {entry.method: entry for entry in exponents(entries, "n_components")}
    assert found["new"].mean == pytest.approx(1.05, abs=0.01)
    assert found["new"].settings == {}
    linear = Claim(text="Linear.", method="new", kind="not worse", bound=1.0, along="n_components")
    finding = judge(rows, linear)
    assert finding.verdict == "holds"
    assert finding.evidence.startswith("Exponent at most 1.1 at 1 of 1 place")
    assert "; exponent 1.05." in finding.evidence
    steeper = replace(linear, method="old", better="higher", bound=2.0)
    assert judge(rows, steeper).evidence.startswith("Exponent at least 1.8 at 1 of 1 place")
    assert judge(rows, replace(linear, method="old")).verdict == "does not hold"
    figure = chart(small_table(RIVALS, claims=[linear], x="n_components"), entries, "error")
    svg = draw(figure.panels[0][1], "growth")  # exponents are slopes: both scales are logarithmic
    places = {x: float(re.search(rf'x="([\d.]+)"[^>]*>{x}<', svg)[1]) for x in (100, 200, 500)}
    ratio = (places[200] - places[100]) / (places[500] - places[100])
    assert ratio == pytest.approx(np.log(2) / np.log(5), rel=0.02)
    slower = Claim(text="Slower.", method="new", against=["old"], along="n_components")
    assert judge(rows, slower).verdict == "holds"


def test_what_was_printed_may_be_another_score_for_each_method():
    scores = {"weighted": len, "plain": max}
    rows = [
        row(name, s, scores={"weighted": weighted, "plain": plain})
        for name, weighted, plain in (("new", 2.0, 5.0), ("old", 1e-9, 3.0), ("older", 4.0, 4.0))
        for s in range(10)
    ]
    table = small_table(
        RIVALS, score=scores, printed={"old": "plain"}, senses={"weighted": "neither"},
        claims=[replace(CLAIM, score="as printed"), replace(CLAIM, text="By all.", score="plain")],
    )  # fmt: skip
    summary = summarise(table, rows)
    assert list(summary) == ["as printed", "weighted", "plain"]
    assert [entry.mean for entry in summary["as printed"]] == [2.0, 3.0, 4.0]
    assert [entry.rank for entry in summary["weighted"]] == [0, 0, 0]
    assert [one.verdict for one in evaluate(table, summary)] == ["holds", "does not hold"]


def test_methods_are_not_compared_by_a_score_that_compares_nothing():
    parts = {"score": {"weighted": len, "plain": max}, "senses": {"weighted": "neither"}}
    with pytest.raises(ValueError, match="compares methods by 'weighted'"):
        small_table(RIVALS, claims=[CLAIM], **parts)
    itself = replace(CLAIM, versus={"n_components": [2]}, better="lower")
    assert small_table(RIVALS, claims=[itself], **parts).claims == [itself]
    with pytest.raises(ValueError, match="has the score 'as printed', but the table has weighted"):
        small_table(RIVALS, claims=[replace(CLAIM, score="as printed")], **parts)


def test_claims_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="kind='best' is not known: choose from better, not worse"):
        Claim(text="x", method="new", kind="best")
    with pytest.raises(ValueError, match="needs one kind of rivals"):
        Claim(text="x", method="new", against=["old"], bound=1.0)
    with pytest.raises(ValueError, match="needs one kind of rivals"):
        Claim(text="x", method="new", kind="always")
    with pytest.raises(ValueError, match="factor=2 needs the kind 'better'"):
        Claim(text="x", method="new", kind="similar", factor=2)
