"""The directive ``picture``: code of a page, and the picture that it draws; the order of examples.

A page is a doctest from top to bottom, so that the code of a picture may use what stands above it.
pytest runs the same code as a test of the page.
"""

import doctest
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "pictures"
# What people ask first comes first.
EXAMPLES = (
    "bad_rows",
    "wrong_cells",
    "missing_values",
    "group_of_outliers",
    "how_many_components",
    "occluded_images",
    "video",
    "clusters_on_a_graph",
    "pipeline_and_grid_search",
    "bigger_than_memory",
    "save_and_load",
    "own_loss",
)
# Names of each page, the number of its examples that have run, and the folder for its files.
PAGES: dict[str, tuple[dict[str, object], int, tempfile.TemporaryDirectory[str]]] = {}


class Picture(SphinxDirective):
    """Run a page up to the end of this block, and show its code and the figure it has drawn."""

    has_content = True
    option_spec = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Make the picture; its nodes are the code and the image."""
        path = Path(self.env.doc2path(self.env.docname))
        # In Markdown, content_offset counts from the fence.
        end = self.lineno + self.content_offset + len(self.content)
        names, ran, folder = PAGES.get(str(path)) or ({}, 0, tempfile.TemporaryDirectory())
        examples = doctest.DocTestParser().get_examples(path.read_text(encoding="utf-8"))
        for example in examples[ran:]:
            if example.lineno >= end:
                break
            with chdir(folder.name), redirect_stdout(StringIO()):
                exec(compile(example.source, str(path), "single"), names)
            ran += 1
        PAGES[str(path)] = names, ran, folder
        code = "\n".join(self.content)
        return [nodes.literal_block(code, code, language="pycon"), self.image(end)]

    def image(self, line: int) -> nodes.image:
        """Write the figure to a file beside the pages."""
        if not plt.get_fignums():
            raise self.error("The code of this picture has drawn nothing.")
        name = f"{self.env.docname.replace('/', '-')}-{line}.png"
        folder = Path(self.env.srcdir) / FOLDER
        folder.mkdir(exist_ok=True)
        plt.savefig(folder / name, dpi=120)
        plt.close("all")
        depth = self.env.docname.count("/")
        return nodes.image(uri="../" * depth + f"{FOLDER}/{name}", alt=self.options["alt"])


def place_of_example(file: str) -> int:
    """Where an example stands in the gallery; new ones come last until they are listed."""
    name = Path(file).stem.removeprefix("plot_")
    return EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES)


def start(app: Sphinx, docname: str, source: list[str]) -> None:
    """Forget what a page has run before."""
    PAGES.pop(str(app.env.doc2path(docname)), None)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    plt.switch_backend("agg")
    app.add_directive("picture", Picture)
    app.connect("source-read", start)
    return {"parallel_read_safe": True}
