import re
import sys
from collections import Counter
from html.parser import HTMLParser

import pytest
from makeshift import absent, small_table
from processes import fork_workers  # noqa: F401
from sklearn.decomposition import PCA
from staged import published, stage

from robustpca.bench import (
    Claim,
    Outcome,
    Table,
    build_report,
    collect,
    read_rows,
    render_latex,
    render_markdown,
    render_page,
    render_terminal,
    run,
    write_report,
)
from robustpca.bench import page as page_module
from robustpca.bench import report as report_module
from robustpca.bench import summary as summary_module
from robustpca.bench.page import within

pytest.importorskip("jinja2")


class Page(HTMLParser):
    """What a page holds: its tags must be well nested."""

    VOID = {"meta", "br", "img", "link"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.links, self.ids = [], [], [], []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if name in found]
        self.ids += [found["id"]] if "id" in found else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


@pytest.fixture(scope="module")
def text():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "targets", published)
        return render_page(build_report(*stage()))


@pytest.fixture(scope="module")
def page(text):
    found = Page(text)
    found.text = " ".join(found.text.split())
    return found


def test_a_page_needs_nothing_but_itself(page):
    outside = [link for link in page.links if not link.startswith(("#", "data:image/png;base64,"))]
    assert outside == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert not {"link", "iframe", "object"} & set(page.tags)
    assert page.tags.count("script") == 1


def test_a_page_says_what_was_run_and_where(page):
    assert "1400 fits, level default" in page.text
    assert "2026-01-02" in page.text
    assert "Linux, A processor, 2 cores, 4.0 GiB" in page.text
    assert "python 3, numpy 2" in page.text
    assert "7 further rows of these tables belong to other levels" in page.text


def crowded(level="default"):
    """A report with more methods than columns that one can overlook."""
    names = ["PCA", *(f"M{i}" for i in range(8)), "Ours"]
    table = small_table(
        {name: PCA() for name in names},
        vary={"n_components": [1, 2]},
        x="n_components",
        claims=[Claim(text="Ours is best.", method="Ours")],
        corruption=None,
        seeds=3,  # that agree: nothing is random
    )
    base = {
        "role": "only", "chosen_by": "", "tuned": {}, "seconds": 1.0, "error": None,
        "converged": True, "memory_start": 0, "memory_peak": 0, "versions": {}, "table": "small",
        "dataset": "cloud", "shown": {},
    }  # fmt: skip
    rows = [
        base
        | {
            "key": str(i),
            "method": cell.method,
            "corruption": cell.corruption,
            "settings": dict(cell.settings),
            "seed": cell.seed,
            "scores": {"reconstruction_error": 1e6 * (names.index(cell.method) % 9 + 1)},
        }
        for i, cell in enumerate(table.cells(level))
    ]
    return build_report([table], Outcome(rows=rows, missing_data={}, level=level))


def test_in_a_crowd_the_own_method_and_the_best_rival_come_first():
    block = crowded().sections[0].blocks[0]
    assert list(block.ordered_columns)[:3] == ["Ours", "PCA", "M0"]
    line = block.lines[0]
    assert block.heat(line, "PCA") == block.heat(line, "Ours") == 0
    assert block.heat(line, "M7") == 1
    assert block.share(line, "M1") == 3


def test_large_errors_are_shown_as_shares_of_that_of_pca():
    text = render_page(crowded())
    assert re.search(r'title="3e6">3&nbsp;%|title="3e6">300&nbsp;%', text)


def test_a_chart_has_no_more_lines_than_can_be_told_apart():
    figure = crowded().sections[0].blocks[0].chart
    labels = [line.label for line in figure.legend]
    assert len(labels) == 7
    assert {"Ours", "PCA", "M0"} <= set(labels)
    assert figure.note.startswith("7 of 10 methods")


def test_the_quick_level_counts_no_verdicts():
    assert '<p class="counts">' in render_page(crowded())
    quick = render_page(crowded("quick"))
    assert '<p class="counts">' not in quick
    assert "too little for verdicts" in quick


def test_the_quick_level_gives_no_verdict_anywhere():
    default, quick = crowded(), crowded("quick")
    assert "**depends**" in render_markdown(default)["summary.md"]
    texts = [
        *render_markdown(quick).values(),
        render_terminal(quick),
        Page(render_page(quick)).text,
    ]
    assert all("Ours is best." in text for text in texts[:1] + texts[2:])
    assert not any(verdict in text for text in texts for verdict in ("hold", "depends", "judged."))
    assert not quick.judged


def test_texts_are_escaped(text, page):
    assert "A paper about <nothing> & more" in page.text
    assert "R<sub>1</sub> & co" in page.text
    assert "<b>no luck</b> today" in page.text
    assert "<sub>" not in text


def test_a_page_has_a_summary_of_each_table(page):
    assert "staged 400 of 600 10 4 12 of 24 51 s gone" in page.text
    assert "staged_figure 1000 of 1500 10 10 30 of 60" in page.text


def test_a_page_has_verdicts_on_claims(page):
    assert "run again 1 depends 2 does not hold 1 not run 1400 fits" in page.text
    assert re.search(r"EPCA is best\..{,99} depends", page.text)
    assert re.search(r"PCA beats the others on faces\..{,99} does not hold", page.text)
    assert re.search(r"PCA is best on what is gone\..{,99} not run", page.text)
    assert "With default parameters:" in page.text


def test_a_page_compares_with_published_values_and_says_how_parameters_were_chosen(text, page):
    assert "12 of 24 values lie within 10 % of the published one." in page.text
    assert "sigma=1: best of 2 by the labels" in page.text
    assert "EPCA, default" in page.text
    assert "<b>0.9204</b> <small>± 0.029</small>" in text
    assert '<b>0.9269</b> <span class="near">\N{MULTIPLICATION SIGN}0.993</span>' in text


def test_a_page_names_failures_and_what_lacks_with_what_to_do(text):
    assert "ValueError: &lt;b&gt;no luck&lt;/b&gt; today" in text
    assert "Run <code>robustpca data fetch gone</code>." in text
    assert "The paper uses other data &amp; does not say which: x &lt; y." in text


def test_a_page_shows_pictures_curves_and_points(page):
    # Two data sets, two corruptions, three methods of which one has a default; two tables, of
    # each of which one place is shown on top.
    assert page.tags.count("img") == 2 * 2 * 4 * 2 + 2 * 4
    titles = ["restored faces: faces, raw, n_components=3", "loss: digits, wrong, n_components=3"]
    assert all(title in page.text for title in titles)


def test_the_command_to_repeat_is_given_for_tables_that_have_one():
    outcome = Outcome(level="quick")
    command = "robustpca bench small --quick"
    report = build_report([small_table()], outcome, {"small": command})
    assert f"<code>{command}</code>" in render_page(report)
    own = render_page(build_report([small_table()], outcome))
    assert "robustpca bench small" not in own
    assert "<h1>Robust PCA: a comparison</h1>" in own


def test_pictures_that_do_not_fit_are_left_out_with_a_sentence(monkeypatch, text):
    limit = len(text) - 60_000
    monkeypatch.setattr(page_module, "LIMIT", limit)
    monkeypatch.setattr(Table, "targets", published)
    small = render_page(build_report(*stage()))
    assert len(small.encode()) <= limit
    assert "further figures are left out, since the page would be larger than 10 MB" in small
    assert 0 < Page(small).tags.count("img") < 32


def test_tables_share_the_room_for_figures():
    assert within({"much": [1000] * 9, "little": [1000]}, 6000) == {
        "much": [0, 1, 2, 3, 4],
        "little": [0],
    }
    assert within({"one": [3000, 1000]}, 2000) == {"one": [1]}
    assert within({"one": [1000]}, 0) == {"one": []}


def test_files_are_complete_or_not_there(tmp_path, monkeypatch):
    report = build_report(*stage())
    page = write_report(report, tmp_path / "new", tmp_path / "else" / "page.html")
    assert page == tmp_path / "else" / "page.html"
    names = {"staged.md", "staged.tex", "staged_figure.md", "staged_figure.tex", "summary.md"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == names
    before = page.read_text("utf-8")
    monkeypatch.setattr(
        "robustpca.bench.write.render_page", lambda *_: "\ud800"
    )  # cannot be written
    with pytest.raises(UnicodeEncodeError):
        write_report(report, tmp_path / "new", page)
    assert page.read_text("utf-8") == before
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]


def test_a_summary_has_a_line_for_each_table_and_each_claim(monkeypatch):
    monkeypatch.setattr(Table, "targets", published)
    text = render_markdown(build_report(*stage()))["summary.md"]
    lines = {" ".join(line.split()) for line in text.splitlines() if "|" in line}
    start = "| `staged` | Staged: error & time in 100 % of all_cases |"
    assert f"{start} 400 of 600 | 10 | 4 | 12 of 24 | gone |" in lines
    claim = "| `staged` | PCA is best on what is gone. | better; error | **not run** | - | - |"
    assert any(line.startswith(claim) for line in lines)
    assert len(lines) == 2 + 2 + 2 + 4  # two heads and rules, two tables, four claims


def test_the_same_rows_give_the_same_page():
    assert render_page(build_report(*stage())) == render_page(build_report(*stage()))


def test_without_jinja2_the_texts_are_written_and_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(page_module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'robustpca\[report\]'"):
        write_report(build_report(*stage()), tmp_path)
    assert (tmp_path / "staged.md").exists()
    assert not (tmp_path / "report.html").exists()


def test_every_summary_is_computed_once_for_all_renderers(tmp_path, monkeypatch):
    tables, outcome = stage()
    calls = Counter()

    def count(module, name, *parts):
        function = getattr(module, name)

        def counted(*args):
            calls[name, *(str(args[index]) for index in parts)] += 1
            return function(*args)

        monkeypatch.setattr(module, name, counted)

    count(report_module, "summarise")
    count(report_module, "evaluate")
    count(report_module, "chart", 2)
    count(summary_module, "_entry", 1)
    report = build_report(tables[:1], outcome)
    entries = len(report.sections[0].blocks[0].entries)
    once = {("summarise",): 1, ("evaluate",): 1}
    for score in ("error", "seconds"):
        once |= {("chart", score): 1, ("_entry", score): entries}
    assert calls == once
    write_report(report, tmp_path)
    for render in (render_page, render_markdown, render_latex, render_terminal):
        assert render(report)
    assert calls == once


def test_the_page_is_rendered_once(monkeypatch):
    from jinja2 import Template

    render, rendered = Template.render, []

    def noted(template, *args, **kwargs):
        rendered.append(template.name)
        return render(template, *args, **kwargs)

    monkeypatch.setattr(Template, "render", noted)
    assert "<figure>" in render_page(build_report(*stage()))
    assert rendered == ["report.html"]


@pytest.mark.usefixtures("forked")
def test_a_report_takes_the_rows_of_its_level_and_counts_the_others(tmp_path):
    from robustpca.bench import by_level

    seeds = by_level(quick=1, default=2, full=3)
    table = small_table({"PCA": PCA()}, seeds=seeds)
    older = small_table({"PCA": PCA(whiten=True)}, seeds=seeds)
    run([table], tmp_path, level="default", jobs=1)
    run([older], tmp_path, level="quick", jobs=1)
    assert len(read_rows(tmp_path / "rows.jsonl")) == 6
    for level, n_rows in {"quick": 2, "default": 4, "full": 4}.items():
        outcome = collect([table], tmp_path, level=level)
        assert (len(outcome.rows), outcome.n_other) == (n_rows, 6 - n_rows)
        assert (outcome.level, outcome.n_new) == (level, 0)
    lacking = collect([small_table(name="other", datasets={"none": absent})], tmp_path)
    assert (lacking.rows, lacking.n_other) == ([], 0)
    assert lacking.missing_data["other"] == {"none": "No file of this set. Fetch it."}


def test_importing_the_bench_does_not_import_jinja2():
    import subprocess

    code = "import sys, robustpca.bench; assert 'jinja2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
