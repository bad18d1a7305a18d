import math

import numpy as np
import pytest

from robustpca import AngularEmbedding
from robustpca.bench.declarations import LEVELS
from robustpca.papers import all_tables
from robustpca.papers.angular.pairs import (
    paired_directions,
    share_of_bound,
    show_directions,
    show_objective,
    turn,
)

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


def test_pairs_at_right_angles_do_not_turn_the_component_of_ae():
    for deviation in (0.0, 10.0):
        data = paired_directions(30, 20, deviation, random_state=3)
        first, second = data.X[data.y == 1], data.X[data.y == 2]
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        cosines = np.einsum("ij,ij->i", first, second) / lengths
        assert np.abs(cosines) == pytest.approx(np.sin(np.deg2rad(deviation)), abs=1e-12)
        model = AngularEmbedding(1, center="zero").fit(data.X)
        assert (turn(model, data.X, data.X, data.y) < 1e-4) == (deviation == 0)
        share = share_of_bound(model, data.X, data.X, data.y)
        assert math.isnan(share) if deviation == 0 else 0.9 < share <= 1
        assert len(show_directions(model, data.X, data.X, data.y)["x"]) == 70 + 41
        peak = show_objective(model, data.X, data.X, data.y)
        angle = np.deg2rad(peak["x"][int(np.argmax(peak["y"]))])
        assert abs(model.components_[0] @ [np.cos(angle), np.sin(angle)]) > 0.999
