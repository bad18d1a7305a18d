import csv
import math
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

from robustpca import papers
from robustpca.bench.declarations import LEVELS, place
from robustpca.bench.identity import key_of
from robustpca.papers import all_tables

TABLES = all_tables()


def test_a_table_is_called_as_its_folder_and_its_file():
    root = Path(papers.__file__).parent
    found = {path for path in root.rglob("*.py") if "table = Table(" in path.read_text("utf-8")}
    stems = ["_".join(path.relative_to(root).with_suffix("").parts) for path in found]
    assert sorted(stem.removeprefix("graphs_") for stem in stems) == list(TABLES)


@pytest.mark.parametrize("levels", [LEVELS[:2], pytest.param(LEVELS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TABLES)
def test_cells_can_be_listed_at_every_level_and_grow_with_it(name, levels):
    quick, default, *full = (len(TABLES[name].cells(level)) for level in levels)
    assert 0 < quick < default
    assert all(default <= count for count in full)


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_has_an_identity_of_its_own(name):
    cells = TABLES[name].cells("quick")
    assert len({str(cell.identity()) for cell in cells}) == len(cells)


@pytest.mark.parametrize("name", TABLES)
def test_the_code_of_every_cell_can_be_read(name):
    for cell in TABLES[name].cells("quick"):
        for address, code in key_of(cell.identity())[1].items():
            is_ours = address.startswith("robustpca")
            assert is_ours == (" " not in code)  # a hash, and not a version
        assert isinstance(cell.variant.estimator, BaseEstimator)


@pytest.mark.parametrize("name", [name for name in TABLES if TABLES[name].claims])
def test_claims_are_about_what_the_table_has(name):
    table = TABLES[name]
    places = {
        "dataset": {label for level in LEVELS for label in table.sources(level)},
        "corruption": {label for level in LEVELS for label in table.corruptions(level)},
        **{
            varied: {str(point[varied]) for level in LEVELS for point in table.points(level)}
            for varied in table.vary
        },
    }
    for claim in table.claims:
        assert claim.section
        assert claim.better in (None, "lower", "higher")
        for limits in (claim.where, claim.versus):
            for where, values in limits.items():
                assert {str(value) for value in values} <= places[where]


def test_no_claim_is_made_twice():
    texts = [claim.text for table in TABLES.values() for claim in table.claims]
    assert len(set(texts)) == len(texts)


def test_tables_with_claims_have_seeds_enough_for_verdicts_by_default():
    for table in TABLES.values():
        seeds = {cell.seed for cell in table.cells("default")}
        assert len(seeds) >= 10 or table.deterministic or not table.claims


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_claims_says_why(name):
    assert bool(TABLES[name].claims) != bool(TABLES[name].unclaimed)


@pytest.mark.parametrize("name", [name for name in TABLES if TABLES[name].deterministic])
def test_nothing_is_drawn_where_one_seed_says_all(name):
    table = TABLES[name]
    for cell in table.cells("default"):
        assert not table.draws(cell.dataset, cell.corruption)
        assert "random_state" not in str(cell.variant.estimator.get_params())


@pytest.mark.parametrize("name", [name for name in TABLES if TABLES[name].published])
def test_every_published_value_stands_at_a_declared_place(name):
    table = TABLES[name]
    declared = {
        place(dataset, corruption, method, point)
        for level in LEVELS
        for dataset in table.sources(level)
        for corruption in table.corruptions(level)
        for method in table.methods
        for point in table.points(level)
    }
    targets = [table.targets(score) for score in table.scores]
    assert targets[0]
    assert all(set(values) <= declared for values in targets)
    assert all(math.isfinite(value) and value > 0 for t in targets for value in t.values())
    text = Path(table.published).read_text("utf-8")
    assert len(list(csv.DictReader(text.splitlines()))) == sum(map(len, targets))


def test_some_numbers_of_the_papers():
    epca = TABLES["epca_table_1"].targets()
    assert len(epca) == 5 * 3 * 9
    assert epca["ORL", "", "EPCA", "10"] == 1.68e8
    assert epca["COIL20", "", "PCA-AN", "50"] == 1.30e9
    assert epca["UMIST", "", "L1PCA-NG", "30"] == 8.06e8
    # The sum of the column "EPCA" and of the row "YALE, 30", added up by hand.
    assert sum(v for k, v in epca.items() if k[2] == "EPCA" and k[0] == "UMIST") == pytest.approx(
        21.68e8
    )
    yale = [v for k, v in epca.items() if k[0] == "YALE" and k[3] == "30"]
    assert sum(yale) == pytest.approx(95.20e7)
    pcaan = TABLES["pcaan_table_2"].targets()
    assert len(pcaan) == 4 * 2 * 6
    assert pcaan["AT&T", "raw", "PCA-AN"] == 3.56
    assert pcaan["FERET", "0.2", "capped R2DPCA"] == 33.20


def test_a_level_can_be_run_without_any_data():
    assert {source.name for source in TABLES["digits"].sources("quick").values()} == {"digits"}
