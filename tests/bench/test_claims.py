"""Verdicts on made-up rows whose outcome is known."""

from itertools import product

import numpy as np
import pytest
from makeshift import Cloud, small_table
from scipy.stats import rankdata, wilcoxon
from sklearn.decomposition import PCA
from test_text import markdown_of, row

from robustpca import EPCA
from robustpca.bench import Claim, best_of, by_level, evaluate, summarise
from robustpca.bench.claims import _holm, _p_value

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
    assert "Better than all 2 rivals at 2 of 2 places, significantly at 2" in finding.evidence
    assert "Wilcoxon over 10 seeds)" in finding.evidence
    assert "best in 20 of 20 draws" in finding.evidence
    assert finding.by_default is None


def test_better_at_many_places_holds_although_each_p_value_is_only_a_thousandth():
    rows = [one for c in range(80) for one in rows_of(n_components=c, new=5.0, old=6.0, older=7.0)]
    assert judge(rows).verdict == "holds"


def test_worse_everywhere_does_not_hold():
    rows = rows_of(new=8.0, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "does not hold"
    assert "at 0 of 1 place, significantly at 0, significantly worse at 1" in finding.evidence
    assert "best in 0 of 10 draws" in finding.evidence


def test_significantly_worse_at_most_places_does_not_hold():
    rows = rows_of(new=5.0, old=6.0, older=7.0)
    rows += rows_of(n_components=2, new=8.0, old=6.0, older=7.0)
    rows += rows_of(n_components=3, new=8.0, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "does not hold"
    assert "Not better at cloud, n_components=2 (old is better, -" in finding.evidence


def test_better_here_and_worse_there_depends_and_says_where():
    rows = rows_of(new=5.0, old=6.0, older=7.0)
    rows += rows_of(n_components=2, new=6.5, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "depends"
    assert "at 1 of 2 places, significantly at 1" in finding.evidence
    assert "Not better at cloud, n_components=2 (old is better" in finding.evidence


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
    assert "Better, but not significantly, at cloud" in finding.evidence
    assert "best in 1 of 10 draws" in finding.evidence


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
    rows = [row(name, s, x) for name, x in (("new", 1.0), ("old", 1.1)) for s in (0, 1)]
    finding = judge(rows)
    assert finding.verdict == "holds"
    assert "deterministic: compared exactly" in finding.evidence
    equal = [row(name, s, 1.0) for name in ("new", "old") for s in (0, 1)]
    assert judge(equal).verdict == "does not hold"
    rounded = [row(name, s, x) for name, x in (("new", 1.0), ("old", 1.0 + 1e-12)) for s in (0, 1)]
    assert judge(rounded).verdict == "does not hold"


def test_one_seed_is_exact_only_if_the_table_never_asks_for_more():
    rows = [row("new", 0, 1.0), row("old", 0, 1.1)]
    seeds = by_level(quick=1, default=10, full=50)
    assert judge(rows, seeds=1).verdict == "holds"
    assert judge(rows, seeds=seeds).verdict == "too few seeds"


def test_equal_pairs_are_for_neither_side():
    rows = [row("old", s, 1.0 + s) for s in range(12)]
    rows += [row("new", s, 1.0 + s - (s == 11)) for s in range(12)]
    finding = judge(rows)  # better at one seed, equal at eleven
    assert finding.verdict == "depends"
    assert "best in 1 of 12 draws" in finding.evidence


def test_twice_as_good_is_not_ten_times_as_good():
    rows = rows_of(new=20.0, old=60.0, older=70.0)
    claims = [
        Claim(text="Several times.", method="new", factor=factor, against=["old"])
        for factor in (2, 10)
    ]
    twice, ten_times = (judge(rows, claim) for claim in claims)
    assert twice.verdict == "holds"
    assert twice.evidence.startswith("2 times better than its rival at 1 of 1 place")
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
    finding = judge(rows_of(new=5.0, old=6.0), datasets=clouds)
    assert finding.verdict == "holds"
    assert finding.evidence.endswith("Not run: older, faces.")


def test_a_method_that_fails_is_not_better():
    rows = rows_of(old=6.0, older=7.0)
    rows += [row("new", s, error="ValueError: no") for s in range(10)]
    assert judge(rows).verdict == "does not hold"
    rows += rows_of(n_components=2, new=5.0, old=6.0, older=7.0)
    finding = judge(rows)
    assert finding.verdict == "depends"
    assert "Not better at cloud, n_components=1 (failed)" in finding.evidence


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
    assert "- Claim: The new method is best. **holds**. Better than its rival at 1 of 1" in text
    assert "With default parameters: **does not hold**." in text


def test_p_values_are_those_of_scipy_and_of_all_signs(rng):
    plain = rng.normal(0.3, size=11)
    assert _p_value(plain) == pytest.approx(wilcoxon(plain, alternative="greater").pvalue)
    assert _p_value(-plain) == pytest.approx(wilcoxon(plain, alternative="less").pvalue)
    tied = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0, -3.0, 3.0])
    ranks = rankdata(np.abs(tied))
    sums = [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=len(tied))]
    expected = np.mean(np.array(sums) >= ranks[tied > 0].sum())
    assert _p_value(np.append(tied, 0.0)) == pytest.approx(expected)
    assert _p_value(np.zeros(2)) == 1


def test_holm_corrects_as_in_a_textbook():
    assert _holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert _holm([0.9, 0.8]) == [1.0, 1.0]
