"""The page of a job in a real browser; skipped if Debian's chromium is not there."""

import html
import json
import re

import numpy as np
import pytest

from robustpca.tools.jobs import clean_entries, find_rows
from robustpca.tools.report import render_report

pytest.importorskip("jinja2")

# Points, clicks and types like a reader, and leaves what it found as text at the end of the page.
PROBE = """
<script>
(() => {
  const found = {}, place = document.getElementById("map"), svg = place.querySelector("svg");
  const told = () => document.getElementById("told").textContent;
  const picked = document.getElementById("picked").children;
  const listed = () => Array.from(picked, (item) => item.textContent);
  const bad = svg.querySelector("circle.far"), box = bad.getBoundingClientRect();
  const fire = (kind, x, y, where) => where.dispatchEvent(
    new PointerEvent(kind, { clientX: x, clientY: y, bubbles: true }));
  const x = box.left + box.width / 2, y = box.top + box.height / 2;
  fire("pointermove", x, y, svg);
  found.hover = told();
  fire("pointerdown", x, y, svg);
  fire("pointerup", x, y, svg);
  found.pinned = listed();
  const whole = svg.getBoundingClientRect();
  fire("pointerdown", whole.left + 1, whole.top + 1, svg);
  fire("pointermove", whole.right - 1, whole.bottom - 1, svg);
  found.brushed = told();
  fire("pointerup", whole.right - 1, whole.bottom - 1, svg);
  const key = (name) => place.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
  key("Escape");
  found.cleared = [told(), listed().length];
  key("ArrowRight");
  found.first = told();
  key("Enter");
  found.entered = listed();
  place.focus();
  found.focused = document.activeElement === place;
  const charts = document.querySelectorAll(".chart svg");
  found.charts = Array.from(charts, (one) => one.getBoundingClientRect().height);
  found.torn = document.querySelectorAll("#spectrum .torn").length;
  const words = Array.from(svg.querySelectorAll("text"));
  const place_of = (word) => word.getBoundingClientRect();
  const title = place_of(words.find((word) => word.textContent.startsWith("orthogonal")));
  const ticks = words.filter((word) => /^[0-9.e+]+$/.test(word.textContent)
    && word.getAttribute("text-anchor") === "end");
  found.ticks = ticks.map((tick) => place_of(tick).left - title.right);
  found.wide = document.documentElement.scrollWidth - innerWidth;
  const note = document.createElement("pre");
  note.id = "found";
  note.textContent = JSON.stringify(found);
  document.body.append(note);
})();
</script>
"""


@pytest.fixture(scope="module")
def X():  # noqa: N802
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(120, 6))
    X[7] = 40000 * np.array([1, -1, 1, -1, 1, -1])
    return X


@pytest.mark.parametrize("width", [1400, 500])
def test_a_reader_can_point_click_drag_and_type(X, open_page, width):
    page = render_report(find_rows(X)).replace("</body>", PROBE + "</body>")
    text, complaints = open_page(page, width)
    assert complaints == []
    found = json.loads(html.unescape(re.search('<pre id="found">(.*?)</pre>', text, re.DOTALL)[1]))
    assert found["hover"].startswith("Row 7: ")
    assert found["pinned"] == [found["hover"]]
    assert found["brushed"] == "120 rows in the frame."
    assert found["cleared"] == ["", 0]
    assert found["first"].startswith("Row 7: ")
    assert found["entered"] == [found["first"]]
    assert found["focused"]
    assert len(found["charts"]) == 3
    assert min(found["charts"]) > 60
    assert found["wide"] <= 0
    assert found["torn"] == 1  # the bar of plain PCA, beside which no other could be seen
    assert min(found["ticks"]) > 0


def test_cells_are_drawn(X, open_page):
    spoiled = X.copy()
    spoiled[30, 2], spoiled[31, 1] = 60, np.nan
    text, complaints = open_page(render_report(clean_entries(spoiled)))
    assert complaints == []
    assert "row 30, x2: " in text
    assert "row 31, x1: missing" in text
