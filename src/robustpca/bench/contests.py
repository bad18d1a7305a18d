"""A method and its rivals at one place of a table, seed by seed: what claims are judged by.

A *gain* is by how much a draw is what a claim says: for 'better' the advantage over the rival, for
'not worse' the same with the margin added, for 'similar' what the difference leaves of the
margin. The claim is met where gains are positive, and missed where they are negative.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import rankdata

from robustpca.bench.declarations import Claim, Table, place
from robustpca.bench.formats import parameters, value
from robustpca.bench.identity import describe
from robustpca.bench.summary import Entry
from robustpca.engine.linalg import Array

__all__ = [
    "MIN_SEEDS",
    "SIGNIFICANCE",
    "Contest",
    "contests",
    "exponents",
    "n_places",
    "p_value",
    "rivals_of",
]

SIGNIFICANCE = 0.05  # level of the tests
MIN_SEEDS = 10  # seeds; with fewer, even a clean sweep says little
MIN_EQUAL = 3  # seeds that must agree before a value counts as not random, if no data are drawn
MIN_POINTS = 3  # points through which an exponent is fitted
ROUNDING = 1e-9  # values are equal if they differ by less than this share

Values = Mapping[int, float]  # of each seed


@dataclass(frozen=True)
class Contest:
    """A method against its rivals at one place.

    Parameters
    ----------
    position, dataset : str
        Where.
    rival : str
        The one against which the claim is met least.
    gain : float, default=-inf
        Mean gain over the score of that rival; positive where the claim is met.
    difference : float, default=-inf
        By how much the method is better than that rival, as a share of its score.
    value : float, default=nan
        Mean score of the method, or its exponent.
    n_seeds, n_met : int, default=0
        Draws, and in how many of them the claim is met against all rivals.
    p_met, p_missed : float, default=1.0
        How often chance alone meets the claim as well, and misses it as badly.
    is_exact : bool, default=False
        Whether nothing is random.
    is_possible : bool, default=True
        Whether anything could be what the claim says: similar to rivals that are not similar to
        each other is nothing.
    """

    position: str
    dataset: str
    rival: str
    gain: float = -math.inf
    difference: float = -math.inf
    value: float = math.nan
    n_seeds: int = 0
    n_met: int = 0
    p_met: float = 1.0
    p_missed: float = 1.0
    is_exact: bool = False
    is_possible: bool = True

    @property
    def is_open(self) -> bool:
        """Whether there are too few seeds to tell."""
        return not self.is_exact and 0 < self.n_seeds < MIN_SEEDS

    def is_significant(self, p: float) -> bool:
        """Whether a difference with this p-value counts; what is not random always does."""
        return self.is_exact or (self.n_seeds >= MIN_SEEDS and p <= SIGNIFICANCE)


def contests(
    table: Table, claim: Claim, entries: Sequence[Entry], better: str
) -> tuple[Contest, ...]:
    """All contests of a claim, one for each place where all sides have been run.

    Parameters
    ----------
    table : Table
        The declaration.
    claim : Claim
        One of its claims.
    entries : sequence of Entry
        Those of the score of the claim, one for each method and place.
    better : {'lower', 'higher'}
        Which scores are good.

    Returns
    -------
    contests : tuple of Contest
        In the order of the entries. A rival that failed for all seeds was run, and lost.
    """
    rivals = rivals_of(table, claim)
    within = {**claim.where, **claim.versus}
    mine = [e for e in entries if e.method == claim.method and _is_covered(e, claim.where)]
    theirs = [e for e in entries if e.method in rivals and _is_covered(e, within)]
    if claim.along is not None:
        mine, theirs = exponents(mine, claim.along), exponents(theirs, claim.along)
    found = []
    for entry in mine:
        here = [e for e in theirs if _place(e, claim) == _place(entry, claim)]
        others = {_label(e, claim): e.values for e in here if e.values}
        if claim.bound is not None:
            others = {value(claim.bound): dict.fromkeys(entry.values, claim.bound)}
        if others and {e.method for e in here} == set(rivals):
            contest = _contest(entry, others, claim, better, _enough_equal(table, entry))
            found.append(replace(contest, is_possible=_is_possible(claim, others)))
    return tuple(found)


def rivals_of(table: Table, claim: Claim) -> list[str]:
    """The methods that a claim is about besides its own; itself if its settings are compared."""
    if claim.versus:
        return [claim.method]
    if claim.bound is not None:
        return []
    return [*claim.against] or [name for name in table.methods if name != claim.method]


def n_places(table: Table, claim: Claim, level: str) -> int:
    """At how many places a claim could be judged if all of the table were run."""
    places = product(table.sources(level), table.corruptions(level), table.points(level))
    return sum(
        _is_within({"dataset": dataset, "corruption": corruption, **settings}, claim.where)
        for dataset, corruption, settings in places
    )


def exponents(entries: Iterable[Entry], along: str) -> list[Entry]:
    """The exponents with which values grow along something varied, in place of the values.

    Parameters
    ----------
    entries : iterable of Entry
        Values of one score.
    along : str
        What is varied: positive numbers.

    Returns
    -------
    entries : list of Entry
        One for each method and place, without what was varied: for each seed the slope of a
        straight line through the logarithms, if there are three points for all.
    """
    groups: dict[tuple[str, ...], dict[float, Entry]] = {}
    for entry in entries:
        size, entry = entry.settings[along], replace(entry, settings=_without(entry, [along]))
        key = (*entry.place, entry.label)
        groups.setdefault(key, {})[math.log(size)] = entry
    found = []
    for group in groups.values():
        seeds = set.intersection(*(set(entry.values) for entry in group.values()))
        if len(group) < MIN_POINTS or not seeds:
            continue
        values = np.log(
            [[entry.values[seed] for seed in sorted(seeds)] for entry in group.values()]
        )
        slopes = np.polyfit(list(group), values, 1)[0].tolist()
        first = next(iter(group.values()))
        found.append(
            replace(
                first,
                values=dict(zip(sorted(seeds), slopes, strict=True)),
                mean=statistics.fmean(slopes),
                std=statistics.stdev(slopes) if len(slopes) > 1 else math.nan,
            )
        )
    return found


def p_value(gains: Array) -> float:
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


def _is_possible(claim: Claim, others: Mapping[str, Values]) -> bool:
    """Whether some number lies within the margin of all rivals, if the claim asks for one."""
    if claim.kind != "similar":
        return True
    means = [statistics.fmean(values.values()) for values in others.values()]
    reach = [claim.margin * abs(mean) for mean in means]
    lowest = max(mean - one for mean, one in zip(means, reach, strict=True))
    return lowest <= min(mean + one for mean, one in zip(means, reach, strict=True))


def _enough_equal(table: Table, entry: Entry) -> int:
    """How many equal seeds show that nothing at a place is random.

    Where data or corruption are drawn, few values may agree by chance, above all whole numbers.
    """
    if table.deterministic:
        return 1
    return MIN_SEEDS if table.draws(entry.dataset, entry.corruption) else MIN_EQUAL


def _contest(
    mine: Entry, others: Mapping[str, Values], claim: Claim, better: str, enough_equal: int
) -> Contest:
    """The method against its rivals at one place.

    A method that failed for all seeds misses every claim; a rival that did is not there. If all
    values of ``enough_equal`` seeds are the same, nothing is random.
    """
    seeds = sorted(set(mine.values).intersection(*others.values()))
    names = list(others)
    if not seeds:
        return Contest(mine.position, mine.dataset, names[0])
    sign = 1 if better == "lower" else -1
    ours = np.array([mine.values[seed] for seed in seeds])
    theirs = np.array([[others[name][seed] for seed in seeds] for name in names])
    gains = np.array([_gains(claim, ours, rival, sign) for rival in theirs])
    least = int(np.argmin(gains.mean(axis=1)))
    scale = abs(statistics.fmean(theirs[least])) or 1.0
    is_met = gains >= 0 if claim.kind == "always" else gains > 0
    everything = np.vstack([ours, theirs])
    is_constant = not _advantage(everything[:, :1], everything, 1).any()
    return Contest(
        position=mine.position,
        dataset=mine.dataset,
        rival=names[least],
        gain=statistics.fmean(gains[least]) / scale,
        difference=statistics.fmean(_advantage(ours, theirs[least], sign)) / scale,
        value=statistics.fmean(ours),
        n_seeds=len(seeds),
        n_met=int(is_met.all(axis=0).sum()),
        p_met=p_value(gains[least]),
        p_missed=p_value(-gains[least]),
        is_exact=is_constant and len(seeds) >= enough_equal,
    )


def _gains(claim: Claim, ours: Array, theirs: Array, sign: int) -> Array:
    """By how much each draw is what the claim says.

    A method that should be several times better is made as many times worse first.
    """
    margin = claim.margin * np.abs(theirs)
    if claim.kind == "similar":
        return np.asarray(margin - np.abs(_advantage(ours, theirs, sign)))
    advantage = _advantage(ours * claim.factor**sign, theirs, sign)
    return advantage + margin if claim.kind == "not worse" else advantage


def _advantage(ours: Any, theirs: Any, sign: int) -> Array:
    """How much better ours are; differences of rounding count as none."""
    difference = sign * np.subtract(theirs, ours)
    rounding = ROUNDING * np.maximum(np.abs(ours), np.abs(theirs))
    return np.where(np.abs(difference) <= rounding, 0.0, difference)


def _facts(entry: Entry) -> dict[str, Any]:
    return {"dataset": entry.dataset, "corruption": entry.corruption, **entry.settings}


def _is_covered(entry: Entry, where: Mapping[str, Sequence[Any]]) -> bool:
    return _is_within(_facts(entry), where)


def _is_within(facts: Mapping[str, Any], where: Mapping[str, Sequence[Any]]) -> bool:
    return all(
        str(describe(facts.get(name))) in {str(describe(one)) for one in values}
        for name, values in where.items()
    )


def _place(entry: Entry, claim: Claim) -> tuple[str, ...]:
    """Where an entry meets its rivals: for one with other settings, whatever these are."""
    corruption = "" if "corruption" in claim.versus else entry.corruption
    return place(entry.dataset, corruption, "", _without(entry, claim.versus))


def _without(entry: Entry, names: Iterable[str]) -> dict[str, Any]:
    return {name: given for name, given in entry.settings.items() if name not in names}


def _label(entry: Entry, claim: Claim) -> str:
    """What a rival is called: its method, or the settings by which it differs."""
    return parameters({name: _facts(entry)[name] for name in claim.versus}) or entry.method
