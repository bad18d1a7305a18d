import re

import numpy as np
import pytest
from staged import published, shown, stage, staged_table
from test_text import row

from robustpca.bench import Table, build_report, summarise
from robustpca.bench.charts import draw
from robustpca.bench.figures import Chart, Line, Points, exhibits, spans_decades


def drawn(*lines, x_name="", y_name="", title=""):
    return draw(Chart(lines, x_name, y_name), title)


def spots_of(svg, kind="marker"):
    pattern = rf'class="{kind}"[^>]*translate\(([\d.]+) ([\d.]+)\)'
    return np.array(re.findall(pattern, svg), float)


def test_values_are_where_they_belong():
    spots = spots_of(drawn(Line("a", 0, [0, 1, 4], [2.0, 4.0, 3.0])))
    steps = np.diff(spots, axis=0)
    assert steps[1, 0] == pytest.approx(3 * steps[0, 0], abs=0.4)
    assert steps[0, 1] == pytest.approx(-2 * steps[1, 1], abs=0.4)
    assert steps[0, 1] < 0  # up the page


def test_positions_that_span_decades_are_on_a_logarithmic_scale():
    spots = spots_of(drawn(Line("a", 0, [1, 10, 100], [1.0, 2.0, 3.0])))
    assert np.diff(spots[:, 0])[0] == pytest.approx(np.diff(spots[:, 0])[1], abs=0.4)
    assert not spans_decades([-1.0, 100.0])


@pytest.mark.parametrize("x", [["raw", "0.1", "0.9"], [None, 1, 9]])
def test_positions_that_are_not_numbers_are_spaced_evenly(x):
    svg = drawn(Line("a", 0, x, [1.0, 2.0, 3.0]))
    steps = np.diff(spots_of(svg)[:, 0])
    assert steps[0] == pytest.approx(steps[1], abs=0.4)
    assert all(f">{one}</text>" in svg for one in x)


def test_texts_are_escaped():
    svg = drawn(Line("<a>", 0, ["<b>"], [1.0]), x_name="<c>", y_name="<d>", title='<e"')
    assert not re.search('<[abcde]>|<e"', svg)


@pytest.mark.parametrize("y", [[0.0], [5.0, 5.0], [-1e-9, 1e9], [1e-300, 1.0]])
def test_odd_values_are_drawn_inside_the_chart(y):
    spots = spots_of(drawn(Line("a", 0, range(len(y)), y)))
    assert len(spots) == len(y)
    assert (spots >= 0).all()
    assert (spots <= [360, 250]).all()


def test_a_band_covers_the_spread():
    line = Line("a", 0, [0, 1], [1.0, 2.0], std=[0.5, float("nan")])
    assert 'class="band"' not in drawn(line)
    line = Line("a", 0, [0, 1], [1.0, 2.0], std=[0.5, 0.5])
    assert drawn(line).count('class="band"') == 1


def test_points_have_the_colour_of_their_class():
    svg = draw(Points([0.0, 1.0, 2.0], [0.0, 0.0, 5.0], [7, 7, 9]), "")
    assert [part.count("h0") for part in svg.split("<path")[1:]] == [2, 1]


def test_a_figure_has_a_panel_for_each_place_beside_its_axis(monkeypatch):
    monkeypatch.setattr(Table, "targets", published)
    tables = build_report(*stage()).sections
    figure = tables[1].blocks[0].chart
    captions = [caption for caption, _ in figure.panels]
    assert captions == ["faces, raw", "faces, wrong", "digits, raw", "digits, wrong"]
    names = [line.label for line in figure.legend]
    assert names[:2] == ["PCA", "PCA, published"]
    assert names[4:] == ["EPCA", "EPCA, default", "EPCA, published"]
    # Three methods, ours and published, at five sizes.
    assert [len(spots_of(draw(panel, ""))) for _, panel in figure.panels] == [30] * 4
    assert tables[0].blocks[0].chart is None


def test_the_candidate_is_shown_that_is_best_over_all_seeds():
    table = staged_table()
    parts = {"dataset": "faces", "corruption": "raw", "role": "candidate", "table": "staged"}
    exhibit = shown(np.random.default_rng(0), 3, "EPCA")
    rows = [
        row("EPCA", seed, 0.0, 3, tuned={"sigma": sigma}, shown={} if seed else exhibit, **parts)
        | {"scores": {"error": score, "seconds": 1.0}}
        # The first is best at the seed that is shown, the second in the mean.
        for sigma, scores in {1.0: (1.0, 9.0), 10.0: (2.0, 2.0)}.items()
        for seed, score in enumerate(scores)
    ]
    figures = exhibits(table, summarise(table, rows)["error"])
    assert [figure.title.partition(":")[0] for figure in figures] == list(exhibit)
    assert [caption for caption, _ in figures[0].panels] == ["EPCA (sigma=10)"]
