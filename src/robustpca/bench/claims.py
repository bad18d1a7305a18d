"""Verdicts on what a paper claims, from the summary of a table alone.

At each place of the table (a data set, a corruption, a setting) the method of a claim meets its
rivals on the same seeds. Better means a better mean than every rival; significantly means that
Wilcoxon's signed-rank test, paired over seeds and one-sided, says so against the best of them.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from robustpca.bench.declarations import Claim, Table
from robustpca.bench.formats import count, percent, value
from robustpca.bench.identity import describe
from robustpca.bench.summary import Entry, Summary, direction, labels
from robustpca.engine.linalg import Array

__all__ = ["VERDICTS", "Finding", "evaluate"]

VERDICTS = ("holds", "depends", "does not hold", "too few seeds", "not run")
SIGNIFICANCE = 0.05  # level of the tests
MIN_SEEDS = 10  # seeds; with fewer, even a clean sweep says little
ROUNDING = 1e-9  # values are equal if they differ by less than this share
LISTED = 6  # places named one by one


@dataclass(frozen=True)
class Finding:
    """A claim and what the rows say about it.

    Parameters
    ----------
    claim : Claim
        The claim.
    verdict : {'holds', 'depends', 'does not hold', 'too few seeds', 'not run'}
        'holds' if the method is significantly better than all rivals at every place; 'does not
        hold' if it is better nowhere, or significantly worse at most places; 'depends' for all
        between.
    evidence : str
        The numbers in a sentence or two.
    by_default : Finding, default=None
        The same with default parameters for all methods, if the table chooses some.
    """

    claim: Claim
    verdict: str
    evidence: str
    by_default: "Finding | None" = None


@dataclass(frozen=True)
class Contest:
    """A method and its rivals at one place; ``margin`` is positive where the method is better."""

    position: str
    dataset: str
    rival: str
    margin: float = -math.inf
    n_seeds: int = 0
    n_won: int = 0
    p_better: float = 1.0
    p_worse: float = 1.0
    is_exact: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there are too few seeds to tell."""
        return not self.is_exact and 0 < self.n_seeds < MIN_SEEDS

    def is_significant(self, p_value: float) -> bool:
        """Whether a difference with this p-value counts; what is not random always does."""
        return self.is_exact or (self.n_seeds >= MIN_SEEDS and p_value <= SIGNIFICANCE)


def evaluate(table: Table, summary: Summary) -> tuple[Finding, ...]:
    """Verdicts on all claims of a table.

    Parameters
    ----------
    table : Table
        The declaration.
    summary : mapping of str to sequence of Entry
        Its entries for each score, from `summarise`.

    Returns
    -------
    findings : tuple of Finding
        One for each claim.
    """
    return tuple(_finding(table, claim, summary) for claim in table.claims)


def _finding(table: Table, claim: Claim, summary: Summary) -> Finding:
    score = claim.score or next(iter(table.scores))
    better = claim.better or direction(table, score)
    entries = [entry for entry in summary[score] if _is_covered(entry, claim.where)]
    # Methods without a grid have no default entry: they count as they are in both verdicts.
    defaults = {entry.method for entry in entries if entry.is_default}
    plain = [entry for entry in entries if entry.is_default == (entry.method in defaults)]
    compared = {claim.method, *(claim.against or table.methods)}
    finding = _judged(table, claim, [entry for entry in entries if not entry.is_default], better)
    if not defaults & compared or finding.verdict == "not run":
        return finding
    return replace(finding, by_default=_judged(table, claim, plain, better))


def _is_covered(entry: Entry, where: Mapping[str, Sequence[Any]]) -> bool:
    facts = {"dataset": entry.dataset, "corruption": entry.corruption, **entry.settings}
    return all(
        str(facts.get(name)) in {str(describe(value)) for value in values}
        for name, values in where.items()
    )


def _judged(table: Table, claim: Claim, entries: Sequence[Entry], better: str) -> Finding:
    rivals = claim.against or [name for name in table.methods if name != claim.method]
    places: dict[tuple[str, ...], dict[str, Entry]] = {}
    for entry in entries:
        places.setdefault(entry.place, {})[entry.method] = entry
    found = [_contest(group, claim, rivals, better, table.is_drawn) for group in places.values()]
    contests = [contest for contest in found if contest is not None]
    if not contests:
        return Finding(claim, "not run", "No rows of the method and a rival together.")
    present = {entry.method for entry in entries if entry.values}
    absent = [name for name in rivals if name not in present]
    datasets = {contest.dataset for contest in contests}
    declared = claim.where.get("dataset") or labels(table.datasets)
    lacking = [*absent, *(name for name in declared if name not in datasets)]
    evidence = _evidence(contests, len(rivals) - len(absent), lacking, claim.factor)
    return Finding(claim, _verdict(contests), evidence)


def _contest(
    group: Mapping[str, Entry], claim: Claim, rivals: Sequence[str], better: str, is_drawn: bool
) -> Contest | None:
    """The method against its rivals at one place; None if one of the sides has not been run.

    A rival that failed for all seeds cannot be better; a method that did is worse. A method that
    should be several times better is made as many times worse first.
    """
    mine = group.get(claim.method)
    others = [group[name] for name in rivals if name in group and group[name].values]
    if mine is None or not others:
        return None
    seeds = sorted(set(mine.values).intersection(*(other.values for other in others)))
    if not seeds:
        return Contest(mine.position, mine.dataset, others[0].method)
    sign = 1 if better == "lower" else -1
    values = np.array([[entry.values[seed] for seed in seeds] for entry in (mine, *others)])
    values[0] *= claim.factor**sign
    mean, *means = map(statistics.fmean, values.tolist())
    best = min(range(len(others)), key=lambda index: sign * means[index])
    gains = _gains(values[0], values[1:], sign)
    is_constant = not _gains(values[:, :1], values, 1).any()
    return Contest(
        position=mine.position,
        dataset=mine.dataset,
        rival=others[best].method,
        margin=float(_gains(mean, means[best], sign)) / (abs(means[best]) or 1.0),
        n_seeds=len(seeds),
        n_won=int((gains.min(axis=0) > 0).sum()),
        p_better=_p_value(gains[best]),
        p_worse=_p_value(-gains[best]),
        is_exact=is_constant and (len(seeds) > 1 or not is_drawn),
    )


def _gains(ours: Any, theirs: Any, sign: int) -> Array:
    """How much better ours are; differences of rounding count as none."""
    difference = sign * np.subtract(theirs, ours)
    rounding = ROUNDING * np.maximum(np.abs(ours), np.abs(theirs))
    return np.where(np.abs(difference) <= rounding, 0.0, difference)


def _p_value(gains: Array) -> float:
    """Of Wilcoxon's test, exact also with ties: how often chance alone does as well.

    Equal pairs say nothing for either side and are left out. SciPy tries all signs one by one if
    there are ties; here they are counted, by the sum of ranks that they lead to.
    """
    unequal = gains[gains != 0]
    ranks = np.rint(2 * rankdata(np.abs(unequal))).astype(int)  # whole numbers in spite of ties
    ways = np.zeros(ranks.sum() + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[:-rank]
    return float(ways[ranks[unequal > 0].sum() :].sum() / 2.0 ** len(unequal))


def _holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of several p-values."""
    order = np.argsort(values, kind="stable")
    steps = np.minimum(1.0, np.arange(len(values), 0, -1) * np.take(values, order))
    return np.maximum.accumulate(steps)[np.argsort(order)].tolist()


def _is_better_everywhere(contests: Sequence[Contest]) -> bool:
    """Significantly better at every place.

    If the method is not better at some place, then all tests succeed no more often than the test
    at that place does: this needs no correction for their number.
    """
    return all(one.margin > 0 and one.is_significant(one.p_better) for one in contests)


def _significant(contests: Sequence[Contest], better: bool) -> list[Contest]:
    """Places where the difference is significant after Holm's correction, or exact."""
    values = [contest.p_better if better else contest.p_worse for contest in contests]
    return [
        contest
        for contest, p in zip(contests, _holm(values), strict=True)
        if (contest.margin > 0 if better else contest.margin < 0) and contest.is_significant(p)
    ]


def _verdict(contests: Sequence[Contest]) -> str:
    closed = [contest for contest in contests if not contest.is_open]
    if len(closed) < len(contests) and all(contest.margin > 0 for contest in closed):
        return "too few seeds"
    if _is_better_everywhere(contests):
        return "holds"
    is_nowhere = all(contest.margin <= 0 for contest in contests)
    if is_nowhere or 2 * len(_significant(contests, better=False)) > len(contests):
        return "does not hold"
    return "depends"


def _evidence(
    contests: Sequence[Contest], n_rivals: int, lacking: Sequence[str], factor: float
) -> str:
    won = [contest for contest in contests if contest.margin > 0]
    lost = [contest for contest in contests if contest.margin <= 0]
    sure = won if _is_better_everywhere(contests) else _significant(contests, better=True)
    unsure = [contest for contest in won if contest not in sure and not contest.is_open]
    times = "Better" if factor == 1 else f"{value(factor)} times better"
    beyond = "" if factor == 1 else " beyond that"
    against = "its rival" if n_rivals == 1 else f"all {n_rivals} rivals"
    text = f"{times} than {against} at {len(won)} of {count(len(contests), 'place')}"
    text += _tested(contests, len(sure))
    wins, draws = sum(one.n_won for one in contests), sum(one.n_seeds for one in contests)
    text += f"; best in {wins} of {count(draws, 'draw')}"
    margins = [contest.margin for contest in contests if math.isfinite(contest.margin)]
    if margins:
        text += f"; margin over the best rival{beyond} {percent(statistics.median(margins))}"
    if len(margins) > 1:
        text += f" in the median, {percent(min(margins))} to {percent(max(margins))}"
    text += f". Not better at {_listed(lost)}" if lost and won else ""
    text += f". Better, but not significantly, at {_listed(unsure)}" if unsure else ""
    text += f". Not run: {', '.join(lacking)}" if lacking else ""
    return f"{text}."


def _tested(contests: Sequence[Contest], n_sure: int) -> str:
    """How sure the evidence is, and by what test."""
    n_exact = sum(contest.is_exact for contest in contests)
    if n_exact == len(contests):
        return " (deterministic: compared exactly)"
    seeds = sorted({contest.n_seeds for contest in contests if contest.n_seeds})
    if not seeds:
        return ""
    span = count(seeds[-1], "seed") if seeds[0] == seeds[-1] else f"{seeds[0]}-{seeds[-1]} seeds"
    if seeds[-1] < MIN_SEEDS:
        return f" ({span}: too few for a test)"
    n_worse = len(_significant(contests, better=False))
    worse = f", significantly worse at {n_worse}" if n_worse else ""
    holm = "" if _is_better_everywhere(contests) else ", Holm's correction"
    exact = f", {n_exact} of them deterministic" if n_exact else ""
    return f", significantly at {n_sure}{worse} (Wilcoxon over {span}{holm}){exact}"


def _listed(contests: Sequence[Contest]) -> str:
    named = [f"{contest.position} ({_outcome(contest)})" for contest in contests[:LISTED]]
    more = len(contests) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def _outcome(contest: Contest) -> str:
    if not contest.n_seeds:
        return "failed"
    if contest.margin == 0:
        return f"equal to {contest.rival}"
    if contest.margin > 0:
        return f"{percent(contest.margin)} over {contest.rival}"
    return f"{contest.rival} is better, {percent(contest.margin)}"
