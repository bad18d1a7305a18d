r"""A table as LaTeX, to be taken into a paper by ``\input``: methods in columns, booktabs rules."""

import math
from collections.abc import Iterable, Sequence

from robustpca.bench.declarations import Table
from robustpca.bench.formats import label, number
from robustpca.bench.store import Row
from robustpca.bench.summary import Entry, summarise

__all__ = ["render_latex"]

LINES = 40  # on a page
WIDE = 7  # columns from which a table is scaled to the width of the text
SPECIAL = {
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


def render_latex(table: Table, rows: Iterable[Row]) -> str:
    r"""A table as LaTeX.

    Parameters
    ----------
    table : Table
        The declaration.
    rows : iterable of dict
        Its rows.

    Returns
    -------
    text : str
        One ``table`` for each score, and more if it is long. The best method of a place is bold
        and the runner-up underlined; published values stand below ours. It needs the packages
        booktabs and graphicx.
    """
    rows = list(rows)
    parts = ["% Needs \\usepackage{booktabs,graphicx}.\n"]
    for score in table.scores:
        entries = summarise(table, rows, score)
        places = list(dict.fromkeys(entry.place for entry in entries))
        height = 2 if any(not math.isnan(entry.published) for entry in entries) else 1
        size = LINES // height
        caption = f"{table.title} ({score})" if len(table.scores) > 1 else table.title
        for start in range(0, len(places), size):
            part = set(places[start : start + size])
            shown = [entry for entry in entries if entry.place in part]
            more = ", continued" if start else ""
            parts.append(_tabular(shown, _escaped(caption + more)))
    return "\n".join(parts)


def _tabular(entries: Sequence[Entry], caption: str) -> str:
    columns = list(dict.fromkeys(label(entry) for entry in entries))
    is_corrupted = any(entry.corruption for entry in entries)
    varied = list(entries[0].settings)
    heads = ["data", *(["corruption"] if is_corrupted else []), *varied]
    places: dict[tuple[str, ...], dict[str, Entry]] = {}
    for entry in entries:
        places.setdefault(entry.place, {})[label(entry)] = entry
    lines = []
    for group in places.values():
        one = next(iter(group.values()))
        where = [one.dataset, *([one.corruption] if is_corrupted else [])]
        where += [str(value) for value in one.settings.values()]
        lines.append([*map(_escaped, where), *(_ours(group.get(name)) for name in columns)])
        if any(not math.isnan(entry.published) for entry in group.values()):
            blank = [r"\quad published", *[""] * (len(where) - 1)]
            lines.append([*blank, *(_theirs(group.get(name)) for name in columns)])
    body = "\n".join(" & ".join(line) + r" \\" for line in lines)
    head = " & ".join(map(_escaped, [*heads, *columns])) + r" \\"
    layout = "l" * len(heads) + "r" * len(columns)
    inner = (
        f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{head}\n\\midrule\n{body}\n"
        "\\bottomrule\n\\end{tabular}"
    )
    if len(heads) + len(columns) > WIDE:
        inner = f"\\resizebox{{\\textwidth}}{{!}}{{%\n{inner}}}"
    return f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n{inner}\n\\end{{table}}\n"


def _ours(entry: Entry | None) -> str:
    if entry is None or math.isnan(entry.mean):
        return "--"
    spread = "" if math.isnan(entry.spread) else f" {{\\scriptsize$\\pm {_math(entry.spread, 2)}$}}"
    return _marked(_math(entry.mean), entry.rank) + spread


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
    return "".join(SPECIAL.get(sign, sign) for sign in text)
