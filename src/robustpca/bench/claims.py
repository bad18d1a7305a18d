"""What becomes of the sentences of a paper: verdicts on claims, from the rows of a table alone.

At each place of the table (a data set, a corruption, a setting) the method of a claim meets its
rivals on the same seeds. Better means a better mean than every rival; significantly means that
Wilcoxon's signed-rank test, paired over seeds and one-sided, says so against the best of them.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from robustpca.bench.declarations import Claim, Table
from robustpca.bench.formats import position
from robustpca.bench.identity import describe
from robustpca.bench.store import Row
from robustpca.bench.summary import Entry, direction, labels, summarise

__all__ = ["VERDICTS", "Finding", "evaluate"]

VERDICTS = ("holds", "depends", "does not hold", "too few seeds", "not run")
LEVEL = 0.05  # of the tests
ENOUGH = 10  # seeds; with fewer, even a clean sweep says little
ROUNDING = 1e-9  # values are equal if they differ by less than this share
LISTED = 6  # places named one by one


@dataclass(frozen=True)
class Finding:
    """A claim and what the rows say about it.

    Parameters
    ----------
    table : str
        Name of the table.
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

    table: str
    claim: Claim
    verdict: str
    evidence: str
    by_default: "Finding | None" = None


@dataclass(frozen=True)
class Contest:
    """A method and its rivals at one place; ``margin`` is positive where the method is better."""

    place: str
    dataset: str
    rival: str
    margin: float
    n_seeds: int
    n_won: int
    p_better: float
    p_worse: float
    is_exact: bool

    @property
    def is_open(self) -> bool:
        """Whether there are too few seeds to tell."""
        return not self.is_exact and 0 < self.n_seeds < ENOUGH


def evaluate(table: Table, rows: Iterable[Row]) -> list[Finding]:
    """Verdicts on all claims of a table.

    Parameters
    ----------
    table : Table
        The declaration.
    rows : iterable of dict
        Its rows.

    Returns
    -------
    findings : list of Finding
        One for each claim.
    """
    rows = list(rows)
    return [_finding(table, claim, rows) for claim in table.claims]


def _finding(table: Table, claim: Claim, rows: Sequence[Row]) -> Finding:
    score = claim.score or next(iter(table.scores))
    better = claim.better or direction(table, score)
    entries = [e for e in summarise(table, rows, score, better) if _is_meant(e, claim.where)]
    tuned = [entry for entry in entries if entry.role != "default"]
    # Methods that are not tuned have no default entry: they are what they are in both lines.
    defaults = {entry.method for entry in entries if entry.role == "default"}
    plain = [e for e in entries if (e.role == "default") == (e.method in defaults)]
    compared = {claim.method, *(claim.against or table.methods)}
    finding = _judged(table, claim, tuned, better)
    if not defaults & compared or finding.verdict == "not run":
        return finding
    beside = _judged(table, claim, plain, better)
    return Finding(finding.table, claim, finding.verdict, finding.evidence, beside)


def _is_meant(entry: Entry, where: Mapping[str, Sequence[Any]]) -> bool:
    facts = {"dataset": entry.dataset, "corruption": entry.corruption, **entry.settings}
    return all(
        str(facts.get(name)) in {str(describe(value)) for value in values}
        for name, values in where.items()
    )


def _judged(table: Table, claim: Claim, entries: Sequence[Entry], better: str) -> Finding:
    rivals = claim.against or [name for name in table.methods if name != claim.method]
    groups: dict[tuple[str, ...], dict[str, Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.place, {})[entry.method] = entry
    found = [_contest(group, claim, rivals, better, table.is_drawn) for group in groups.values()]
    contests = [contest for contest in found if contest is not None]
    if not contests:
        return Finding(table.name, claim, "not run", "No rows of the method and a rival together.")
    present = {entry.method for entry in entries if entry.values}
    absent = [name for name in rivals if name not in present]
    declared = claim.where.get("dataset") or labels(table.datasets)
    run = {contest.dataset for contest in contests}
    lacking = [*absent, *(name for name in declared if name not in run)]
    evidence = _evidence(contests, len(rivals) - len(absent), lacking, claim.factor)
    return Finding(table.name, claim, _verdict(contests), evidence)


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
    here = position(mine.dataset, mine.corruption, mine.settings)
    sign = 1 if better == "lower" else -1
    seeds = sorted(set(mine.values).intersection(*(other.values for other in others)))
    if not seeds:
        return Contest(here, mine.dataset, others[0].method, -math.inf, 0, 0, 1.0, 1.0, False)
    handicap = claim.factor**sign
    ours = [mine.values[seed] * handicap for seed in seeds]
    theirs = {other.method: [other.values[seed] for seed in seeds] for other in others}
    rival = min(theirs, key=lambda name: sign * statistics.fmean(theirs[name]))
    gains = {
        name: [_gain(a, b, sign) for a, b in zip(ours, values, strict=True)]
        for name, values in theirs.items()
    }
    is_exact = (len(seeds) > 1 or not is_drawn) and all(
        _gain(values[0], value, 1) == 0 for values in (ours, *theirs.values()) for value in values
    )
    mean, best = statistics.fmean(ours), statistics.fmean(theirs[rival])
    return Contest(
        place=here,
        dataset=mine.dataset,
        rival=rival,
        margin=_gain(mean, best, sign) / abs(best) if best else _gain(mean, best, sign),
        n_seeds=len(seeds),
        n_won=sum(min(draw) > 0 for draw in zip(*gains.values(), strict=True)),
        p_better=_p_value(gains[rival], 1),
        p_worse=_p_value(gains[rival], -1),
        is_exact=is_exact,
    )


def _gain(ours: float, theirs: float, sign: int) -> float:
    """How much better ours is; differences of rounding count as none."""
    difference = sign * (theirs - ours)
    return 0.0 if abs(difference) <= ROUNDING * max(abs(ours), abs(theirs)) else difference


def _p_value(gains: Sequence[float], sign: int) -> float:
    """Of Wilcoxon's test, exact also with ties: how often chance alone does as well.

    Equal pairs say nothing for either side and are left out. SciPy tries all signs one by one if
    there are ties; here they are counted, by the sum of ranks that they lead to.
    """
    unequal = np.array([sign * gain for gain in gains if gain])
    ranks = np.rint(2 * rankdata(np.abs(unequal))).astype(int)  # whole numbers in spite of ties
    ways = np.zeros(ranks.sum() + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[:-rank]
    return float(ways[ranks[unequal > 0].sum() :].sum() / 2.0 ** len(unequal))


def _holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of several p-values."""
    corrected, largest = [0.0] * len(values), 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = largest
    return corrected


def _is_everywhere(contests: Sequence[Contest]) -> bool:
    """Significantly better at every place.

    If the method is not better at some place, then all tests succeed no more often than the test
    at that place does: this needs no correction for their number.
    """
    return all(
        contest.margin > 0
        and (contest.is_exact or (contest.n_seeds >= ENOUGH and contest.p_better <= LEVEL))
        for contest in contests
    )


def _surely(contests: Sequence[Contest], better: bool) -> list[Contest]:
    """Places where the difference is significant after Holm's correction, or exact."""
    values = [contest.p_better if better else contest.p_worse for contest in contests]
    return [
        contest
        for contest, p in zip(contests, _holm(values), strict=True)
        if (contest.margin > 0 if better else contest.margin < 0)
        and (contest.is_exact or (contest.n_seeds >= ENOUGH and p <= LEVEL))
    ]


def _verdict(contests: Sequence[Contest]) -> str:
    settled = [contest for contest in contests if not contest.is_open]
    if len(settled) < len(contests) and all(contest.margin > 0 for contest in settled):
        return "too few seeds"
    if _is_everywhere(contests):
        return "holds"
    is_nowhere = all(contest.margin <= 0 for contest in contests)
    if is_nowhere or 2 * len(_surely(contests, better=False)) > len(contests):
        return "does not hold"
    return "depends"


def _evidence(
    contests: Sequence[Contest], n_rivals: int, lacking: Sequence[str], factor: float
) -> str:
    won = [contest for contest in contests if contest.margin > 0]
    everywhere = _is_everywhere(contests)
    sure = won if everywhere else _surely(contests, better=True)
    against = "its rival" if n_rivals == 1 else f"all {n_rivals} rivals"
    times = "Better" if factor == 1 else f"{factor:g} times better"
    text = f"{times} than {against} at {len(won)} of {_count(len(contests), 'place')}"
    text += _tested(contests, sure, everywhere)
    draws = sum(contest.n_seeds for contest in contests)
    wins = sum(contest.n_won for contest in contests)
    text += f"; best in {wins} of {_count(draws, 'draw')}"
    margins = [contest.margin for contest in contests if math.isfinite(contest.margin)]
    if margins:
        beyond = "" if factor == 1 else " beyond that"
        text += f"; margin over the best rival{beyond} {_percent(statistics.median(margins))}"
        if len(margins) > 1:
            text += f" in the median, {_percent(min(margins))} to {_percent(max(margins))}"
    sentences = [text]
    lost = [contest for contest in contests if contest.margin <= 0]
    if lost and won:
        sentences.append(f"Not better at {_listed(lost)}")
    unsure = [contest for contest in won if contest not in sure and not contest.is_open]
    if unsure:
        sentences.append(f"Better, but not significantly, at {_listed(unsure)}")
    if lacking:
        sentences.append(f"Not run: {', '.join(lacking)}")
    return ". ".join(sentences) + "."


def _tested(contests: Sequence[Contest], sure: Sequence[Contest], everywhere: bool) -> str:
    """How sure the evidence is, and by what test."""
    if all(contest.is_exact for contest in contests):
        return " (deterministic: compared exactly)"
    seeds = sorted({contest.n_seeds for contest in contests if contest.n_seeds})
    if not seeds:
        return ""
    span = _count(seeds[-1], "seed") if seeds[0] == seeds[-1] else f"{seeds[0]}-{seeds[-1]} seeds"
    if seeds[-1] < ENOUGH:
        return f" ({span}: too few for a test)"
    worse = len(_surely(contests, better=False))
    text = f", significantly at {len(sure)}"
    text += f", significantly worse at {worse}" if worse else ""
    holm = "" if everywhere else ", Holm's correction"
    text += f" (Wilcoxon over {span}{holm})"
    n_exact = sum(contest.is_exact for contest in contests)
    return text + (f", {n_exact} of them deterministic" if n_exact else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _percent(share: float) -> str:
    percent = 100 * share
    text = f"{percent:+.2g}" if abs(percent) < 99.5 else f"{percent:+.0f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def _listed(contests: Sequence[Contest]) -> str:
    named = [f"{contest.place} ({_outcome(contest)})" for contest in contests[:LISTED]]
    more = len(contests) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def _outcome(contest: Contest) -> str:
    if not contest.n_seeds:
        return "failed"
    if contest.margin == 0:
        return f"equal to {contest.rival}"
    if contest.margin > 0:
        return f"{_percent(contest.margin)} over {contest.rival}"
    return f"{contest.rival} is better, {_percent(contest.margin)}"
