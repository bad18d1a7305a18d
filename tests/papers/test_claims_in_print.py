"""What a paper prints must not contradict what we say that it claims.

If it does, we have read the claim too strictly, and a verdict on it would be one on ourselves.
"""

import math

import pytest

from robustpca.bench.contests import contests
from robustpca.bench.declarations import AS_PRINTED, Claim
from robustpca.bench.summary import Entry, direction
from robustpca.papers import all_tables

TABLES = all_tables()
# Labels of the same method in print, and of the score of a table.
ENDINGS = (" from the mean", " to 1e-5", ", 10 passes")


def printed(table, score):
    """The printed values as entries of a single draw."""
    entries = []
    for (dataset, corruption, method, *given), value in table.targets(score).items():
        settings = dict(zip(sorted(table.vary), given, strict=True))
        entries.append(
            Entry(
                dataset, corruption, settings, method, role="only", tuned={}, chosen_by="",
                n_candidates=0, values={0: value}, mean=value, std=math.nan, n_seeds=1, n_failed=0,
                n_unconverged=0, seconds=0.0, memory=0.0,
            )
        )  # fmt: skip
    return entries


def in_print(name):
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name


def supported():
    """Claims of which the paper prints the score, and their contests in print."""
    for table in TABLES.values():
        for claim in table.claims:
            score = claim.score or next(iter(table.scores))
            if table.published is None or (table.printed and score != AS_PRINTED):
                continue
            renamed = Claim(
                **{
                    **vars(claim),
                    "method": in_print(claim.method),
                    "against": [in_print(name) for name in claim.against],
                }
            )
            entries = printed(table, None if score == AS_PRINTED else score)
            better = claim.better or direction(table, score)
            found = contests(table, renamed, entries, better)
            if found:
                yield table.name, claim, found


CASES = {f"{name}: {claim.text}": (claim, found) for name, claim, found in supported()}


@pytest.mark.parametrize("case", CASES)
def test_the_printed_values_support_the_claim(case):
    claim, found = CASES[case]
    won, lost = sum(one.gain > 0 for one in found), sum(one.gain < 0 for one in found)
    if claim.kind == "mostly best":
        assert won > claim.share * (won + lost)
    else:
        assert won == len(found), [one.position for one in found if one.gain <= 0]


def test_most_tables_with_numbers_are_looked_at():
    assert len(CASES) >= 25
    assert {case.partition(":")[0] for case in CASES} >= {
        "angular_table_1", "angular_table_2", "angular_table_3", "epca_table_1", "epca_table_3",
        "frpcag_effect_of_k", "frpcag_table_5", "pcaan_table_2", "pcaan_table_3",
    }  # fmt: skip
