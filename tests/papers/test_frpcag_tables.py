import pytest

from robustpca.bench.declarations import Source
from robustpca.papers import all_tables

TABLES = {name: table for name, table in all_tables().items() if name.startswith("frpcag")}


def test_some_numbers_of_the_paper():
    table = TABLES["frpcag_table_5"]
    seconds, passes = table.targets("seconds"), table.targets("iterations")
    # Columns of Table V, added up by hand; infinity is not printed.
    assert sum(v for k, v in seconds.items() if k[2] == "FRPCAG") == pytest.approx(114.16)
    assert sum(v for k, v in seconds.items() if k[2] == "RPCAG") == 6406
    assert sum(v for k, v in seconds.items() if k[2] == "RPCA") == 5520
    assert sum(v for k, v in passes.items() if k[2] == "FRPCAG") == 102
    assert sum(v for k, v in passes.items() if k[2] == "RPCAG") == 1448
    assert sum(v for k, v in passes.items() if k[2] == "RPCA") == 1371
    graphs = [f"seconds for the {side} graph" for side in ("sample", "feature")]
    assert sum(table.targets(graphs[0]).values()) == pytest.approx(91.6)
    assert sum(table.targets(graphs[1]).values()) == pytest.approx(107.0)
    census = TABLES["frpcag_table_5_census"]
    assert census.targets() == {("2500000 flights", "", "FRPCAG"): 3900}
    assert TABLES["frpcag_figure_2_3"].targets()["USPS", "", "nearest pixels"] == 0.82
    assert TABLES["frpcag_effect_of_k"].targets()["ORL", "", "FRPCAG", "40"] == 0.31


def test_the_figure_has_all_corruptions_and_data_sets_of_the_paper():
    table = TABLES["frpcag_figure_6"]
    assert len(table.corruptions()) == 8
    # Seven sets, of which MFEAT has a table of its own, and the digits.
    assert len(table.sources("full")) == 7
    assert len(TABLES["frpcag_figure_6_mfeat"].corruptions()) == 5


@pytest.mark.parametrize("name", ["frpcag_figure_6", "frpcag_figure_6_mfeat"])
def test_all_versions_of_the_method_choose_from_the_same_weights(name):
    cells = [cell for cell in TABLES[name].cells() if cell.variant.role == "candidate"]
    choices = {
        method: {
            tuple(sorted(cell.variant.tuned.items())) for cell in cells if cell.method == method
        }
        for method in ("FRPCAG(A)", "FRPCAG(B)", "FRPCAG(C)")
    }
    assert len(choices["FRPCAG(A)"]) == 8
    assert choices["FRPCAG(A)"] == choices["FRPCAG(B)"] == choices["FRPCAG(C)"]


@pytest.mark.parametrize("name", [name for name in TABLES if name != "frpcag_figure_6_mfeat"])
def test_every_table_has_something_to_run_without_data(name):
    sources = TABLES[name].sources("quick").items()
    assert any(
        isinstance(source, Source) and source.name == "digits" for _, source in sources
    ) or any("digits" in label or label in SYNTHETIC for label, _ in sources)


SYNTHETIC = ("synthetic", "10000 synthetic", "clusters")
