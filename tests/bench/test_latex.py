import re

import pytest
from makeshift import small_table
from staged import published, report_of, stage
from test_text import row

from robustpca.bench import Table, build_report, render_latex


@pytest.fixture
def latex(monkeypatch):
    monkeypatch.setattr(Table, "targets", published)
    return render_latex(build_report(*stage()))["staged.tex"]


def latex_of(rows):
    return render_latex(report_of(small_table(), rows))["small.tex"]


def test_special_characters_are_escaped(latex):
    assert r"\caption{Staged: error \& time in 100 \% of all\_cases (error)}" in latex
    assert r"R\textless{}sub\textgreater{}1\textless{}/sub\textgreater{} \& co" in latex
    assert r"n\_components" in latex


def test_the_best_is_bold_and_the_runner_up_underlined(latex):
    ours = next(line for line in latex.splitlines() if line.startswith("faces & raw & 3"))
    cells = [cell.strip() for cell in ours.removesuffix(r"\\").split("&")]
    assert cells[3].startswith("$1.368$ ")
    assert cells[4] == r"$\underline{1.166}$ {\scriptsize$\pm 0.054$}"
    assert cells[5].startswith(r"$\mathbf{0.9204}$ ")
    assert cells[6].startswith("$1.106$ ")
    assert latex.splitlines()[latex.splitlines().index(ours) + 1].startswith(
        r"\quad published &  &  & $1.39$ & $\underline{1.159}$ & $\mathbf{0.9269}$ &"
    )


def test_environments_braces_and_columns_fit(latex):
    plain = re.sub(r"\\[{}]", "", latex)
    assert plain.count("{") == plain.count("}")
    for name in ("table", "tabular"):
        assert latex.count(f"\\begin{{{name}}}") == latex.count(f"\\end{{{name}}}") == 2
    layouts = re.findall(r"\\begin\{tabular\}\{(l+r+)\}", latex)
    widths = {len(re.split(r"(?<!\\)&", line)) for line in latex.splitlines() if line[-2:] == r"\\"}
    assert widths == {len(layout) for layout in layouts} == {7}


def test_large_numbers_have_a_power_of_ten():
    text = latex_of([row(score=1.68e8), row("R1", score=3e8)])
    assert r"$\mathbf{1.68 \cdot 10^{8}}$" in text


def test_long_tables_are_cut():
    rows = [row(n_components=size) for size in range(1, 101)]
    text = latex_of(rows)
    assert text.count(r"\begin{tabular}") == 3
    assert text.count(", continued}") == 2
    assert all(f"cloud & {size} &" in text for size in range(1, 101))
