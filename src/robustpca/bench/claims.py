"""Verdicts on what a paper claims, from the summary of a table alone.

At each place of the table (a data set, a corruption, a setting) the method of a claim meets its
rivals on the same seeds. What it must show depends on the kind of the claim:

'better'
    A better mean than every rival at every place, confirmed by Wilcoxon's signed-rank test, paired
    over seeds and one-sided, against the best of them.
'not worse', 'similar'
    The same test of non-inferiority, or of equivalence: that the method is worse, or different, by
    more than the stated margin is refuted at every place. Where rivals are not similar to each
    other, nothing can be similar to all of them, and the place does not count.
'mostly best'
    The best mean at more than a share of the places, by the sign test over places; where two means
    are equal, the place is for neither side. At least half of the places must have been run.
'always'
    Beyond a bound in no draw at all: one exception refutes a theorem.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binomtest

from robustpca.bench.contests import (
    MIN_SEEDS,
    SIGNIFICANCE,
    Contest,
    contests,
    n_places,
    rivals_of,
)
from robustpca.bench.declarations import LEVELS, Claim, Table
from robustpca.bench.formats import count, number, percent, value
from robustpca.bench.summary import Entry, Summary, direction, labels

__all__ = ["JUDGED", "VERDICTS", "Finding", "evaluate"]

JUDGED = ("holds", "depends", "does not hold")
VERDICTS = (*JUDGED, "too few seeds", "not run", "not judged")
LISTED = 6  # places named one by one
TOO_SMALL = {
    "default": "Small data and grids: verdicts come from the default level or above.",
    "full": "Smaller data than the claim is about: judged at the full level alone.",
}
NOTHING_SIMILAR = (
    "At no place are the rivals similar to each other: nothing could be within the margin of all."
)


@dataclass(frozen=True)
class Finding:
    """A claim and what the rows say about it.

    Parameters
    ----------
    claim : Claim
        The claim.
    verdict : {'holds', 'depends', 'does not hold', 'too few seeds', 'not run', 'not judged'}
        'holds' if the claim is met at every place, with significance; 'does not hold' if it is
        missed with significance at most places, or met nowhere and so missed somewhere; 'depends'
        for all between. 'not judged' below the level of the claim, or if nothing could be what
        it says.
    evidence : str
        The numbers in a sentence or two.
    score : str, default=''
        The score that it was judged by.
    judged_on : str, default=''
        Where: data sets, and the number of places.
    by_default : Finding, default=None
        The same with default parameters for all methods, if the table chooses some.
    """

    claim: Claim
    verdict: str
    evidence: str
    score: str = ""
    judged_on: str = ""
    by_default: "Finding | None" = None

    @property
    def basis(self) -> str:
        """Kind of the claim, score, and section of the paper, in one line."""
        times = "" if self.claim.factor == 1 else f" by a factor of {value(self.claim.factor)}"
        kind = {
            "better": f"better{times}",
            "not worse": f"not worse, margin {100 * self.claim.margin:g} %",
            "similar": f"similar, within {100 * self.claim.margin:g} %",
            "mostly best": f"best at more than {100 * self.claim.share:g} % of the places",
        }.get(self.claim.kind, self.claim.kind)
        growth = f"growth of {self.score} with {self.claim.along}" if self.claim.along else ""
        return "; ".join(part for part in (kind, growth or self.score, self.claim.section) if part)


def evaluate(table: Table, summary: Summary, level: str = "default") -> tuple[Finding, ...]:
    """Verdicts on all claims of a table.

    Parameters
    ----------
    table : Table
        The declaration.
    summary : mapping of str to sequence of Entry
        Its entries for each score, from `summarise`.
    level : {'quick', 'default', 'full'}, default='default'
        Where the rows come from. The quick level is too small to judge a paper by, and the default
        one for some claims.

    Returns
    -------
    findings : tuple of Finding
        One for each claim.
    """
    return tuple(
        _finding(table, claim, summary, level)
        if LEVELS.index(level) >= LEVELS.index(claim.level)
        else Finding(claim, "not judged", TOO_SMALL[claim.level], _score(table, claim))
        for claim in table.claims
    )


def _score(table: Table, claim: Claim) -> str:
    return claim.score or next(iter(table.scores))


def _finding(table: Table, claim: Claim, summary: Summary, level: str) -> Finding:
    score = _score(table, claim)
    better = claim.better or direction(table, score)
    entries = summary[score]
    # Methods without a grid have no default entry: they count as they are in both verdicts.
    defaults = {entry.method for entry in entries if entry.is_default}
    plain = [entry for entry in entries if entry.is_default == (entry.method in defaults)]
    compared = {claim.method, *rivals_of(table, claim)}
    chosen = [entry for entry in entries if not entry.is_default]
    finding = replace(_judged(table, claim, chosen, better, level), score=score)
    if not defaults & compared or finding.verdict == "not run":
        return finding
    return replace(finding, by_default=_judged(table, claim, plain, better, level))


def _judged(
    table: Table, claim: Claim, entries: Sequence[Entry], better: str, level: str
) -> Finding:
    found = contests(table, claim, entries, better)
    if not found:
        run = {entry.method for entry in entries}
        absent = [n for n in (claim.method, *rivals_of(table, claim)) if n not in run]
        text = "No place has rows of the method and of all its rivals"
        return Finding(claim, "not run", f"{text}: {', '.join(absent)}." if absent else f"{text}.")
    impossible = [contest for contest in found if not contest.is_possible]
    found = tuple(contest for contest in found if contest.is_possible)
    if not found:
        return Finding(claim, "not judged", " ".join([NOTHING_SIMILAR, claim.caveat]).strip())
    datasets = list(dict.fromkeys(contest.dataset for contest in found))
    declared = claim.where.get("dataset") or labels(table.datasets)
    lacking = [name for name in declared if name not in datasets]
    text = _evidence(claim, better, found, len(rivals_of(table, claim)))
    text += f" Not run: {', '.join(lacking)}." if lacking else ""
    if impossible:
        places = ", ".join(contest.position for contest in impossible)
        text += f" Left out, since the rivals are not similar to each other: {places}."
    text += f" {claim.caveat}" if claim.caveat else ""
    n_declared = n_places(table, claim, level)
    if claim.kind == "mostly best" and 2 * len(found) < n_declared:
        few = f"Run at {len(found)} of {n_declared} places, too few to speak of most of them."
        return Finding(claim, "not run", f"{few} {text}")
    where = f"{', '.join(datasets)} ({count(len(found), 'place')})"
    return Finding(claim, _verdict(claim, found), text, judged_on=where)


def _verdict(claim: Claim, found: Sequence[Contest]) -> str:
    closed = [contest for contest in found if not contest.is_open]
    is_open = len(closed) < len(found)
    if claim.kind == "always":
        if any(contest.n_met < contest.n_seeds for contest in found):
            return "does not hold"
        if is_open:
            return "too few seeds"
        return "holds" if all(contest.n_seeds for contest in found) else "depends"
    if is_open and all(contest.gain > 0 for contest in closed):
        return "too few seeds"
    refuted = _refuted(found)
    if claim.kind == "mostly best" and not is_open:
        # Places where the means are equal are for neither side.
        refuted = [contest for contest in refuted if contest.gain < 0]
        n_decided = sum(contest.gain != 0 for contest in found)
        if _sign_test(claim, found, "greater") <= SIGNIFICANCE:
            return "holds"
        if _sign_test(claim, found, "less") <= SIGNIFICANCE:
            return "does not hold"
        if claim.share**n_decided <= SIGNIFICANCE:  # places enough for the test to succeed
            return "depends"
    if _is_met_everywhere(found):
        return "holds"
    is_met_nowhere = 2 * len(closed) >= len(found) and all(one.gain <= 0 for one in found)
    if 2 * len(refuted) > len(found) or (is_met_nowhere and refuted):
        return "does not hold"
    return "depends"


def _refuted(found: Sequence[Contest]) -> list[Contest]:
    """Places where the claim is missed with significance, or exactly, or where the method failed.

    A mean on the wrong side that may be chance refutes nothing, and neither do equal ones.
    """
    missed = _significant(found, met=False)
    return [contest for contest in found if contest in missed or not contest.n_seeds]


def _sign_test(claim: Claim, found: Sequence[Contest], alternative: str) -> float:
    """How often chance gives as many places, or as few, if the share of them is the stated one.

    Places where the means are equal say nothing.
    """
    n_met, n_missed = sum(one.gain > 0 for one in found), sum(one.gain < 0 for one in found)
    if not n_met + n_missed:
        return 1.0
    return float(binomtest(n_met, n_met + n_missed, claim.share, alternative=alternative).pvalue)


def _holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of several p-values."""
    order = np.argsort(values, kind="stable")
    steps = np.minimum(1.0, np.arange(len(values), 0, -1) * np.take(values, order))
    return np.maximum.accumulate(steps)[np.argsort(order)].tolist()


def _is_met_everywhere(found: Sequence[Contest]) -> bool:
    """Met with significance at every place.

    If the claim is wrong at some place, then all tests succeed no more often than the test at
    that place does: this needs no correction for their number.
    """
    return all(one.gain > 0 and one.is_significant(one.p_met) for one in found)


def _significant(found: Sequence[Contest], met: bool) -> list[Contest]:
    """Places where the claim is met, or missed, after Holm's correction, or exactly."""
    values = [contest.p_met if met else contest.p_missed for contest in found]
    return [
        contest
        for contest, p in zip(found, _holm(values), strict=True)
        if (contest.gain > 0 if met else contest.gain < 0) and contest.is_significant(p)
    ]


def _evidence(claim: Claim, better: str, found: Sequence[Contest], n_rivals: int) -> str:
    met = [contest for contest in found if contest.gain > 0]
    missed = [contest for contest in found if contest.gain <= 0]
    draws = count(sum(one.n_seeds for one in found), "draw")
    n_met = sum(one.n_met for one in found)
    if claim.kind == "always":
        failed = [one for one in found if not one.n_seeds]
        text = f"Within {value(claim.bound)} in {n_met} of {draws}{_span('mean', found)}"
        return f"{text}. Not run: {_listed(failed)}." if failed else f"{text}."
    text = f"{_relation(claim, better, n_rivals)} at {len(met)} of {count(len(found), 'place')}"
    if claim.kind == "mostly best":
        text += f" (sign test over places: p = {number(_sign_test(claim, found, 'greater'), 2)})"
    sure = met if _is_met_everywhere(found) else _significant(found, met=True)
    unsure = [contest for contest in met if contest not in sure and not contest.is_open]
    text += f"{_tested(found, len(sure))}; met in {n_met} of {draws}"
    text += _sizes(claim, found)
    text += f". Not met at {_listed(missed)}" if missed and met else ""
    text += f". Met, but not significantly, at {_listed(unsure)}" if unsure else ""
    return f"{text}."


def _relation(claim: Claim, better: str, n_rivals: int) -> str:
    """What the claim says of method and rivals."""
    if claim.bound is not None and claim.kind == "not worse":
        sign = 1 if better == "lower" else -1
        limit = value(claim.bound + sign * claim.margin * abs(claim.bound))
        what = "Exponent at" if claim.along else "At"
        return f"{what} {'most' if better == 'lower' else 'least'} {limit}"
    if claim.bound is not None:
        against = value(claim.bound)
    elif claim.versus:
        against = "with the other settings"
    else:
        against = {1: "its rival", 2: "both rivals"}.get(n_rivals, f"all {n_rivals} rivals")
    better = "Better than" if claim.factor == 1 else f"{value(claim.factor)} times better than"
    words = {"not worse": "Not worse than", "similar": "Similar to"}
    return f"{words.get(claim.kind, better)} {against}"


def _sizes(claim: Claim, found: Sequence[Contest]) -> str:
    """How large differences are; of exponents the exponents themselves."""
    if claim.along is not None:
        return _span("exponent", found)
    sizes = [one.gain if claim.kind == "better" else one.difference for one in found]
    sizes = [size for size in sizes if math.isfinite(size)]
    if not sizes:
        return ""
    rival = "difference to" if claim.kind == "similar" else "margin over"
    beyond = "" if claim.factor == 1 else " beyond that"
    text = f"; {rival} the best rival{beyond} {percent(statistics.median(sizes))}"
    if len(sizes) > 1:
        text += f" in the median, {percent(min(sizes))} to {percent(max(sizes))}"
    return text


def _span(what: str, found: Sequence[Contest]) -> str:
    """Least and largest mean score of the method."""
    values = [one.value for one in found if one.n_seeds]
    if not values:
        return ""
    low, high = number(min(values), 3), number(max(values), 3)
    return f"; {what} {low}" if low == high else f"; {what}s from {low} to {high}"


def _tested(found: Sequence[Contest], n_sure: int) -> str:
    """How sure the evidence is, and by what test."""
    n_exact = sum(contest.is_exact for contest in found)
    if n_exact == len(found):
        return " (deterministic: compared exactly)"
    seeds = sorted({contest.n_seeds for contest in found if contest.n_seeds})
    if not seeds:
        return ""
    span = count(seeds[-1], "seed") if seeds[0] == seeds[-1] else f"{seeds[0]}-{seeds[-1]} seeds"
    if seeds[-1] < MIN_SEEDS:
        return f" ({span}: too few for a test)"
    n_missed = len(_refuted(found))
    missed = f", refuted at {n_missed}" if n_missed else ""
    holm = "" if _is_met_everywhere(found) else ", Holm's correction"
    exact = f", {n_exact} of them deterministic" if n_exact else ""
    return f", significantly at {n_sure}{missed} (Wilcoxon over {span}{holm}){exact}"


def _listed(found: Sequence[Contest]) -> str:
    named = [f"{contest.position} ({_outcome(contest)})" for contest in found[:LISTED]]
    more = len(found) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def _outcome(contest: Contest) -> str:
    if not contest.n_seeds:
        return "failed"
    if contest.difference == 0:
        return f"equal to {contest.rival}"
    if contest.difference > 0:
        return f"{percent(contest.difference)} over {contest.rival}"
    return f"{contest.rival} is better, {percent(contest.difference)}"
