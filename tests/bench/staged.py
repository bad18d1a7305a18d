"""Tables and made-up rows in which everything occurs that a report can show."""

import numpy as np
from makeshift import Cloud, small_table
from sklearn.decomposition import PCA

from robustpca import EPCA
from robustpca.bench import Claim, Outcome, best_of, build_report, by_level, write_report
from robustpca.bench.declarations import place
from robustpca.bench.shown import curve, picture, points
from robustpca.metrics import reconstruction_error

MACHINE = {"system": "Linux", "processor": "A processor", "cores": 2, "memory_gib": 4.0, "blas": []}
LEVELS = {"PCA": 3.0, "R<sub>1</sub> & co": 2.5, "EPCA": 2.0}
PAPER = "Nobody, A paper about <nothing> & more, 2020."
SIZES = [1, 3, 10, 30, 100]


def staged_table(**parts):
    """A table with tuned and failing methods, two scores, claims and notes."""
    methods = {
        "PCA": PCA(),
        "R<sub>1</sub> & co": PCA(),
        "EPCA": best_of(EPCA(), "the labels", sigma=[1.0, 10.0]),
    }
    return small_table(
        **{
            "name": "staged",
            "title": "Staged: error & time in 100 % of all_cases",
            "datasets": {"faces": Cloud(), "digits": Cloud(), "gone": Cloud()},
            "corruption": {"raw": None, "wrong": None},
            "methods": methods,
            "vary": {"n_components": SIZES[1:3]},
            "score": {"error": reconstruction_error, "seconds": reconstruction_error},
            "paper": PAPER,
            "notes": ["The paper uses other data & does not say which: x < y."],
            "seeds": by_level(quick=2, default=10, full=50),
            "claims": [
                Claim(text="EPCA is best.", method="EPCA"),
                Claim(text="PCA beats the others on faces.", method="PCA",
                      where={"dataset": ["faces"]}),
                Claim(text="EPCA is best with many components.", method="EPCA",
                      where={"n_components": [10], "dataset": ["digits"]}),
                Claim(text="PCA is best on what is gone.", method="PCA",
                      where={"dataset": ["gone"]}),
            ],
            **parts,
        }
    )  # fmt: skip


def rows_of(table, rng, n_seeds=10):
    """A row for each cell of the data that are there."""
    rows = []
    for cell in table.cells("full"):
        if cell.seed >= n_seeds or cell.dataset == "gone":
            continue
        size = cell.settings["n_components"]
        score = LEVELS[cell.method] * (1 + (cell.dataset == "digits")) / size**0.7
        score *= {"only": 1.0, "default": 1.2}.get(
            cell.variant.role, cell.variant.tuned.get("sigma", 0) ** 0.1
        )
        score *= 1.4 if (cell.dataset, size, cell.method) == ("digits", 10, "EPCA") else 1.0
        error = None
        if cell.method.startswith("R") and cell.seed == 3 and cell.corruption == "wrong":
            error = "ValueError: <b>no luck</b> today"
        score *= 1 + 0.05 * rng.normal()
        good = error is None
        rows.append(
            {
                "key": str(len(rows)),
                "table": table.name,
                "dataset": cell.dataset,
                "corruption": cell.corruption,
                "method": cell.method,
                "role": cell.variant.role,
                "chosen_by": cell.variant.chosen_by,
                "settings": dict(cell.settings),
                "tuned": dict(cell.variant.tuned),
                "seed": cell.seed,
                "scores": {"error": score, "seconds": score / 100} if good else None,
                "shown": shown(rng, size, cell.method) if good and not cell.seed else {},
                "seconds": 0.02 * size if good else None,
                "converged": cell.seed != 5,
                "memory_start": 100 * 2**20,
                "memory_peak": 103 * 2**20,
                "error": error,
                "versions": {"python": "3", "numpy": "2"},
                "machine": MACHINE,
                "finished": "2026-01-02T03:04:05+00:00",
            }
        )
    return rows


def shown(rng, size, name):
    """A picture, a curve and points."""
    if size != SIZES[1]:
        return {}
    images = np.linspace(0, 255, 3 * 24 * 20).reshape(3, 24, 20) + 20 * rng.normal(size=(3, 24, 20))
    passes = np.arange(1, 41)
    labels = np.arange(90) % 3
    return {
        "restored faces": picture(images),
        "loss": curve(passes, 100.0 * np.exp(-passes / (3 + 3 * len(name))) + 0.01),
        "codes": points(rng.normal(size=(90, 2)) + 4 * np.eye(3)[labels, :2], labels),
    }


def report_of(table, rows, missing_data=None):
    """The report of one table."""
    outcome = Outcome(rows=rows, missing_data={table.name: missing_data or {}})
    return build_report([table], outcome)


def stage():
    """Tables and the outcome of their run."""
    rng = np.random.default_rng(0)
    table = staged_table()
    figure = staged_table(
        name="staged_figure", title="Staged: error by size", vary={"n_components": SIZES},
        x="n_components", claims=[], notes=[], paper="",
    )  # fmt: skip
    outcome = Outcome(
        rows=rows_of(table, rng) + rows_of(figure, rng),
        missing_data={"staged": {"gone": "No file of this set. Run `robustpca data fetch gone`."}},
        n_other=7,
    )
    return [table, figure], outcome


def published(table, score=None):
    """Values of the first score as if they had been printed in a paper."""
    return (
        {}
        if score == "seconds"
        else {
            place(data, corruption, name, settings): LEVELS[name] / settings["n_components"] ** 0.7
            for data in ("faces", "digits")
            for corruption in table.corruptions()
            for name in LEVELS
            for settings in table.points()
        }
    )


if __name__ == "__main__":
    import sys
    from pathlib import Path

    from robustpca.bench import Table

    Table.targets = published
    print(write_report(build_report(*stage()), Path(sys.argv[1])))
