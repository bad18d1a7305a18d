r"""A table as LaTeX, to be taken into a paper by ``\input``: methods in columns, booktabs rules."""

import math
from dataclasses import replace

from robustpca.bench.formats import number, value
from robustpca.bench.report import Block, Report, Section
from robustpca.bench.summary import Entry

__all__ = ["render_latex"]

LINES = 40  # on a page
WIDE = 7  # columns from which a table is scaled to the width of the text
SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)


def render_latex(report: Report) -> dict[str, str]:
    r"""The tables of a report as LaTeX.

    Parameters
    ----------
    report : Report
        From `build_report`.

    Returns
    -------
    files : dict of str to str
        ``NAME.tex`` for each table: one ``table`` for each score, and more if it is long. The best
        method of a place is bold and the runner-up underlined; published values stand below ours.
        It needs the packages booktabs and graphicx.
    """
    return {f"{section.table.name}.tex": _table(section) for section in report.sections}


def _table(section: Section) -> str:
    parts = ["% Needs \\usepackage{booktabs,graphicx}.\n"]
    for block in section.blocks:
        title = section.table.title
        caption = f"{title} ({block.score})" if len(section.blocks) > 1 else title
        size = LINES // 2 if block.is_published else LINES
        for start in range(0, len(block.lines), size):
            part = block.lines[start : start + size]
            entries = [entry for line in part for entry in line.values()]
            more = ", continued" if start else ""
            parts.append(_tabular(replace(block, entries=entries), _escaped(caption + more)))
    return "\n".join(parts)


def _tabular(block: Block, caption: str) -> str:
    heads = block.place_names
    lines = []
    for line in block.lines:
        where = block.place_of(next(iter(line.values()))).values()
        cells = [line.get(name) for name in block.columns]
        lines.append([*(_escaped(value(part)) for part in where), *map(_ours, cells)])
        if any(not math.isnan(entry.published) for entry in line.values()):
            lines.append([r"\quad published", *[""] * (len(where) - 1), *map(_theirs, cells)])
    names = map(_escaped, [*heads, *block.columns])
    head, *body = (" & ".join(line) + r" \\" for line in (names, *lines))
    layout = "l" * len(heads) + "r" * len(block.columns)
    inner = "\n".join(
        [rf"\begin{{tabular}}{{{layout}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    )
    inner += "\n\\end{tabular}"
    if len(heads) + len(block.columns) > WIDE:
        inner = f"\\resizebox{{\\textwidth}}{{!}}{{%\n{inner}}}"
    return f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n{inner}\n\\end{{table}}\n"


def _ours(entry: Entry | None) -> str:
    if entry is None or math.isnan(entry.mean):
        return "--"
    std = "" if math.isnan(entry.std) else f" {{\\scriptsize$\\pm {_math(entry.std, 2)}$}}"
    return _marked(_math(entry.mean), entry.rank) + std


def _theirs(entry: Entry | None) -> str:
    if entry is None or math.isnan(entry.published):
        return ""
    return _marked(_math(entry.published), entry.published_rank)


def _marked(text: str, rank: int) -> str:
    return {1: f"$\\mathbf{{{text}}}$", 2: f"$\\underline{{{text}}}$"}.get(rank, f"${text}$")


def _math(value: float, digits: int = 4) -> str:
    mantissa, _, power = number(value, digits).partition("e")
    return f"{mantissa} \\cdot 10^{{{int(power)}}}" if power else mantissa


def _escaped(text: str) -> str:
    return text.translate(SPECIAL)
