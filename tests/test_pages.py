"""What README and the pages of the documentation show is what happens.

Code with prompts is collected as doctests by pytest itself; here are the commands, the rule that no
code goes without prompts, and the examples of the gallery.
"""

import contextlib
import doctest
import io
import os
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
NUMBER = r"\d+(?:\.\d+)?"
# The commands of a block and what they print, between what belongs to the page around them.
CONSOLE = r"(?<=^```console\n)(.*?)(?=^```$)"
# `UPDATE_PAGES=1 pytest tests/test_pages.py -k commands_print` writes outputs anew. A line that
# ends differently in every run ends with `...` on the page, and stays so if the rest is the same.
UPDATE = bool(os.environ.get("UPDATE_PAGES"))


def blocks(page, language):
    """Blocks of code in a language."""
    fences = rf"^( *)```{language}\n(.*?)^\1```$"
    return [body for _, body in re.findall(fences, page.read_text(), re.MULTILINE | re.DOTALL)]


def with_blocks(language):
    """Run a test for each page that has blocks in a language."""
    pages = [page for page in PAGES if blocks(page, language)]
    return pytest.mark.parametrize("page", pages, ids=lambda page: page.stem)


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    testing = pytest.importorskip("typer.testing")
    pytest.importorskip("pandas")
    from robustpca.cli.app import application

    monkeypatch.chdir(tmp_path)
    return lambda arguments: testing.CliRunner().invoke(application(), arguments)


def same(printed, shown):
    """Whether an output is that of the page: word for word, and its numbers to a few per cent."""
    # Columns of a table are as wide as their widest number.
    printed, shown = (re.sub(" +", " ", text).splitlines() for text in (printed, shown))
    for line, expected in zip(printed, shown, strict=True):
        # What varies from run to run is left open.
        kept, _, open_end = expected.partition("...")
        line = line[: len(kept)] if not open_end and expected.endswith("...") else line
        assert re.split(NUMBER, line) == re.split(NUMBER, kept or expected)
        numbers = (np.array(re.findall(NUMBER, each), float) for each in (line, kept or expected))
        np.testing.assert_allclose(*numbers, rtol=0.05)


def renewed(printed, shown):
    """An output for a page that has shown another one."""
    left_open = [line for line in shown.splitlines() if line.endswith("...")]
    lines = printed.splitlines()
    for place, line in enumerate(lines):
        kept = [each for each in left_open if line.startswith(each.removesuffix("..."))]
        lines[place] = kept[0] if kept else line.rstrip()
    return "".join(f"{line}\n" for line in lines)


@with_blocks("python")
def test_python_on_a_page_has_prompts_so_that_it_is_run(page):
    if page.stem == "other_libraries":
        pytest.skip("tests/test_other_libraries.py runs these")
    assert all(code.lstrip().startswith(">>>") for code in blocks(page, "python"))


def test_links_of_readme_lead_to_files():
    targets = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    assert len(targets) > 10
    assert [each for each in targets if ":" not in each and not (ROOT / each).exists()] == []


@with_blocks("console")
def test_commands_print_what_the_page_shows(page, invoke):
    names, pieces = {}, re.split(CONSOLE, page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for place, piece in enumerate(pieces):
        if place % 2 == 0:  # between two blocks
            for example in doctest.DocTestParser().get_examples(piece):
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(example.source, page.name, "single"), names)
            continue
        commands = re.split(r"^\$ ", piece, flags=re.MULTILINE)[1:]
        for number, command in enumerate(commands):
            line, _, shown = command.partition("\n")
            result = invoke(shlex.split(line)[1:])
            assert result.exit_code == 0, result.output
            if UPDATE:
                commands[number] = f"{line}\n{renewed(result.stdout, shown)}"
            else:
                same(result.stdout, shown)
        pieces[place] = "".join(f"$ {command}" for command in commands)
    if UPDATE:
        page.write_text("".join(pieces))


def test_every_verb_is_on_the_page_of_the_command_line():
    typer = pytest.importorskip("typer")
    from robustpca.cli.app import application

    text = (ROOT / "docs" / "command_line.md").read_text()
    shown = set(re.findall(r"^(?:\$ )?robustpca (\w+)", text, re.MULTILINE))
    assert shown >= set(typer.main.get_command(application()).commands)


@with_blocks("sh")
def test_commands_that_take_long_have_arguments_that_exist(page):
    typer = pytest.importorskip("typer")
    from robustpca.cli.app import application

    program = typer.main.get_command(application())
    text = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] != ["robustpca"]:
            continue
        command, words = program, words[1:]
        while hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        command.make_context(line, words)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_and_draw(path, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    plt.close("all")
    runpy.run_path(os.fspath(path))
    assert plt.get_fignums()
    plt.close("all")
    assert not list(tmp_path.iterdir())
