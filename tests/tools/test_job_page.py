import json
import re

import numpy as np
import pytest

from robustpca.tools import report
from robustpca.tools.checks import check
from robustpca.tools.jobs import clean_entries, find_rows
from robustpca.tools.report import render_report
from robustpca.tools.words import number

pytest.importorskip("jinja2")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(120, 6))
    X[7] = 40 * np.array([1, -1, 1, -1, 1, -1])
    X[30, 2], X[31, 1] = 60, np.nan
    names = ["a", "b", "c", "d", "e", "</script><b>f</b>"]
    return pd.DataFrame(X, columns=names, index=[f"part {i}" for i in range(120)])


def embedded(page):
    text = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    return json.loads(text)


def headline(page):
    return re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)[1]


def test_the_page_of_rows_holds_every_flagged_row_with_its_reasons(frame):
    found = find_rows(frame)
    page = render_report(found, "robustpca rows parts.csv")
    assert found.far[7]
    assert headline(page).startswith(found.verdict.split(";")[0])
    points = {point[0]: point for point in embedded(page)["map"]["points"]}
    assert len(points) == 120
    assert points["part 7"][3] == 2
    assert points["part 7"][4] == "; ".join(map(str, found.reasons[7]))
    assert points["part 7"][1] == found.score_distance[7]
    assert "robustpca rows parts.csv" in page


def test_the_page_of_entries_lists_given_and_restored_cells(frame):
    found = clean_entries(frame)
    page = render_report(found)
    cells = embedded(page)["cells"]
    at = cells["rows"].index("part 30"), cells["columns"].index("c")
    assert cells["wrong"][at[0]][at[1]] == 1
    missing = cells["rows"].index("part 31"), cells["columns"].index("b")
    assert cells["sigmas"][missing[0]][missing[1]] is None
    line = re.search(r"<td class=\"text\">part 30</td>.*?</tr>", page, re.DOTALL)[0]
    assert ">60<" in line
    assert f">{number(found.model.low_rank_[30, 2], 6)}<" in line


def test_the_page_of_a_check_has_both(frame):
    found = check(frame)
    data = embedded(render_report(found))
    assert {"map", "cells"} <= set(data)


def test_names_of_columns_cannot_leave_their_place(frame):
    page = render_report(find_rows(frame))
    assert "<b>f</b>" not in page
    assert page.count("</script>") == 2


def test_nothing_is_loaded_from_elsewhere(frame):
    page = render_report(find_rows(frame))
    assert not re.search(r"(src|href)=|url\(|@import", page)


def test_long_tables_leave_out_rows_that_fit(frame, monkeypatch):
    monkeypatch.setattr(report, "MOST_POINTS", 40)
    found = find_rows(frame)
    page = render_report(found)
    data = embedded(page)["map"]
    labels = {point[0] for point in data["points"]}
    assert {found.table.labels[i] for i in found.order} <= labels
    assert data["n_left_out"] == 120 - len(labels) > 0
    assert f"{data['n_left_out']} rows that fit are not drawn" in page


def test_how_much_the_number_of_components_matters(frame):
    page = render_report(find_rows(frame, n_components=2))
    table = page[page.index("How much the parameter matters") :]
    lines = re.findall(r"<tr><td>(\d+)</td><td>(\d+)</td><td>(\d+) of (\d+)</td></tr>", table)
    assert [line[0] for line in lines] == ["1", "2", "3", "4"]
    number, same, of = map(int, lines[1][1:])
    assert number == same == of > 0
