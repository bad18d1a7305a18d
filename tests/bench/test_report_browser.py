"""The page of a report in a real browser; skipped if Debian's chromium is not there."""

import html
import json
import re

import pytest
from staged import published, stage

from robustpca.bench import Table, build_report, render_page

pytest.importorskip("jinja2")

# Runs in the page, and leaves what it found as text at its end.
PROBE = """
<script>
(async () => {
  const found = {};
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  await Promise.all(Array.from(document.images, (image) => image.decode()));
  found.images = Array.from(document.images, (image) => Math.min(image.naturalWidth, image.width));
  found.charts = Array.from(document.querySelectorAll("svg"), (svg) => {
    const box = svg.getBoundingClientRect();
    return Math.min(box.width, box.height);
  });
  const read = (table, column) =>
    Array.from(table.tBodies[0].rows, (row) => row.cells[column].textContent.trim());
  const table = document.querySelector("section table");
  const heads = Array.from(table.tHead.rows[0].cells);
  const column = heads.findIndex((head) => head.textContent === "PCA");
  const button = heads[column].querySelector("button");
  found.columns = [read(table, column)];
  found.sorts = [heads[column].getAttribute("aria-sort")];
  for (let click = 0; click < 3; click++) {
    button.click();
    found.columns.push(read(table, column));
    found.sorts.push(heads[column].getAttribute("aria-sort"));
  }
  heads[0].querySelector("button").click();
  found.words = read(table, 0);
  found.others = heads.slice(1).map((head) => head.getAttribute("aria-sort"));
  button.focus();
  found.focused = document.activeElement === button;
  const frame = document.createElement("iframe");
  frame.style.width = "360px";
  const copy = document.documentElement.cloneNode(true);
  for (const script of copy.querySelectorAll("script")) script.remove();
  frame.srcdoc = "<!DOCTYPE html>" + copy.outerHTML;
  await new Promise((done) => { frame.onload = done; document.body.append(frame); });
  found.narrow = frame.contentDocument.documentElement.scrollWidth;
  frame.remove();
  const fold = document.querySelector("#staged > details");
  fold.open = false;
  location.hash = "";
  location.hash = "#staged";
  await new Promise((done) => setTimeout(done, 50));
  found.unfolded = fold.open;
  document.querySelector("figure img").click();
  const dialog = document.getElementById("zoom");
  found.zoomed = [dialog.open, dialog.querySelector("img").getBoundingClientRect().width];
  dialog.querySelector("img").click();
  found.closed = !dialog.open;
  const marker = document.querySelector(".marker title").parentNode;
  marker.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
  found.tip = document.getElementById("tip").textContent;
  const note = document.createElement("pre");
  note.id = "found";
  note.textContent = JSON.stringify(found);
  document.body.append(note);
})();
</script>
"""


@pytest.fixture(scope="module")
def text():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "targets", published)
        return render_page(build_report(*stage()))


@pytest.fixture(scope="module")
def opened(text, open_page):
    return open_page(text.replace("</body>", PROBE + "</body>"))


@pytest.fixture(scope="module")
def found(opened):
    note = re.search('<pre id="found">(.*?)</pre>', opened[0], re.DOTALL)
    assert note, opened[1]
    return json.loads(html.unescape(note[1]))


def test_scripts_run_without_errors(opened):
    assert opened[1] == []


def test_an_error_in_a_script_would_be_noticed(text, open_page):
    broken = text.replace("table.sortable", "table..sortable")
    assert broken != text
    _, complaints = open_page(broken)
    assert len(complaints) == 1
    assert "SyntaxError" in complaints[0]


def test_all_pictures_and_charts_are_there(found):
    assert len(found["images"]) == 32 + 8
    assert min(found["images"]) > 50
    assert len(found["charts"]) > 40
    assert min(found["charts"]) > 10


def test_a_click_on_a_header_sorts_by_number_up_and_down_and_back(found):
    first, up, down, back = found["columns"]
    assert found["sorts"] == ["none", "ascending", "descending", "none"]
    numbers = [float(cell.split()[0]) for cell in up]
    assert numbers == sorted(numbers)
    assert numbers != [float(cell.split()[0]) for cell in first]
    assert [float(cell.split()[0]) for cell in down] == numbers[::-1]
    assert back == first
    assert sorted(up) == sorted(first)


def test_words_are_sorted_too_and_one_header_at_a_time(found):
    assert found["words"] == ["digits"] * 4 + ["faces"] * 4
    assert set(found["others"]) == {"none"}
    assert found["focused"]


def test_a_narrow_screen_needs_no_scrolling_of_the_whole_page(found):
    assert found["narrow"] <= 360


def test_a_link_unfolds_its_table(found):
    assert found["unfolded"]


def test_a_click_enlarges_a_picture_and_another_closes_it(found):
    is_open, width = found["zoomed"]
    assert is_open
    assert width > 3 * min(found["images"])
    assert found["closed"]


def test_pointing_at_a_value_shows_its_number(found):
    assert re.fullmatch(r".+: [\d.e-]+ at \S+", found["tip"])
