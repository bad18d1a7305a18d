import math

import pytest

from robustpca.bench.declarations import LEVELS
from robustpca.papers import all_tables

TABLES = {name: table for name, table in all_tables().items() if name.startswith("angular_")}


def test_some_numbers_of_the_paper():
    first, second = TABLES["angular_table_1"], TABLES["angular_table_2"]
    assert first.targets("RVFL")["synthetic", "", "AE", "1"] == 96.03
    assert first.targets("boosted trees")["synthetic", "", "EM PCA", "2"] == 99.68
    assert second.targets("boosted trees")["Kin", "", "AE", "100"] == 63.96
    # Sums over all methods, added up by hand.
    assert sum(first.targets("RVFL").values()) == pytest.approx(291.49 + 399.12)
    assert sum(second.targets("RVFL").values()) == pytest.approx(339.05 + 278.78)
    times = TABLES["angular_table_3"].targets()
    assert times["Hall", "", "Inexact ALM"] == 4611.4
    assert sum(v for k, v in times.items() if k[2] == "TGA") == pytest.approx(160.1)
    assert TABLES["angular_table_3_yale"].targets()["Yale", "", "AE"] == 0.1


def test_videos_of_the_printed_sizes_wait_for_the_full_level():
    sizes = {}
    for level in LEVELS:
        for source in TABLES["angular_table_3"].sources(level).values():
            if hasattr(source, "args"):
                n_frames, image_shape = source.args
                sizes.setdefault((n_frames, math.prod(image_shape)), level)
    assert sizes == {
        (100, 5120): "quick",
        (633, 20480): "default",
        (3584, 25344): "full",
        (1675, 110592): "full",
    }


def test_what_needs_no_data_is_there_at_every_level(monkeypatch):
    monkeypatch.setenv("ROBUSTPCA_DATA", "")
    for name in ("angular_table_1", "angular_figure_2", "angular_digits"):
        for source in TABLES[name].sources("quick").values():
            assert len(source().X) > 0
    for name in ("angular_figure_3_4", "angular_background_scores"):
        assert TABLES[name].sources("quick")["synthetic"]().X.shape == (100, 48 * 64)
