"""Times and passes of FRPCAG and of the two methods with a nuclear norm."""

from functools import partial
from pathlib import Path

from sklearn.preprocessing import scale

from robustpca import FRPCAG, RPCA, RPCAG
from robustpca.bench.declarations import Claim, Source, Table, by_level
from robustpca.papers.frpcag import PAPER
from robustpca.papers.frpcag.estimators import OnGraphs
from robustpca.papers.frpcag.scores import graph_seconds, seconds_after_graphs
from robustpca.papers.pursuit import ADMM, PLAIN
from robustpca.papers.samples import ordered_classes
from robustpca.papers.scores import passes, seconds_of_fit

SCORES = {
    "seconds": seconds_after_graphs,
    "iterations": passes,
    "seconds for the sample graph": partial(graph_seconds, side="samples"),
    "seconds for the feature graph": partial(graph_seconds, side="features"),
    "seconds in all": seconds_of_fit,
}
MIDDLE = {
    "MNIST 5000": Source("mnist", n_samples=5000),
    "ORL 300": partial(ordered_classes, "orl", 30, size=(112, 92)),
    "USPS 3500": Source("usps", n_samples=3500),
}

table = Table(
    name="frpcag_table_5",
    title="FRPCAG, Table V: seconds and passes",
    datasets=by_level(
        quick={
            "MNIST 200": Source("mnist", n_samples=200),
            "ORL 100": partial(ordered_classes, "orl", 10, size=(56, 46)),
            "USPS 300": Source("usps", n_samples=300),
            "digits 600": Source("digits", n_samples=600),
        },
        default={**MIDDLE, "digits": Source("digits")},
        full={
            **MIDDLE,
            "MNIST 15000": Source("mnist", n_samples=15000),
            "MNIST 25000": Source("mnist", n_samples=25000),
            "digits": Source("digits"),
        },
    ),
    prepare=scale,
    methods={
        "FRPCAG": OnGraphs(
            FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0, standardize=False)
        ),
        "RPCAG": OnGraphs(RPCAG(**PLAIN, smoothness=0.125, tol=1e-4)),
        "RPCA": OnGraphs(RPCA(**ADMM, tol=1e-4)),
        # To the tolerance of FRPCAG.
        "RPCAG to 1e-5": OnGraphs(RPCAG(**PLAIN, smoothness=0.125, tol=1e-5)),
        "RPCA to 1e-5": OnGraphs(RPCA(**ADMM, tol=1e-5)),
    },
    score=SCORES,
    published=Path(__file__).with_suffix(".csv"),
    seeds=by_level(quick=1, default=10, full=10),
    repeats=2,
    paper=PAPER,
    time_limit=by_level(quick=120, default=1800, full=14400),
    notes=[
        "Seconds and passes are those of one core of the machine that ran it; the paper's had "
        "3.3 GHz. Seconds are without the graphs, which stand by themselves, as in the paper.",
        "The paper prints neither tolerances nor weights. FRPCAG stops when a step is 1e-5 of "
        "the point it leads to, with both weights at 1; RPCA and RPCAG (weight 1/8) when what the "
        "parts leave of the data, or the duality gap, is 1e-4 of them. So both take hundreds of "
        "passes, as in the paper. Claims are judged to the same tolerance, 1e-5 for all.",
        "FRPCAG takes about the time that was printed. To 1e-4, RPCA and RPCAG take seconds where "
        "minutes were printed, with 74 to 380 passes on USPS and ORL where 301 to 410 were "
        "printed. FRPCAG is several times faster then, not a hundred times. The reason was not "
        "looked for.",
        "To 1e-5, RPCA and RPCAG come to the limit of their passes on USPS, 1000 and 2000, less "
        "than a factor of two from the tolerance: there, their seconds and passes are too low.",
        "In the paper RPCA and RPCAG did not come to an end in 4 hours on MNIST 25000.",
        "In print the graph of the 10304 features of ORL takes most of the time, here a fifth.",
    ],
    claims=[
        Claim(
            text="FRPCAG is orders of magnitude faster than RPCAG and RPCA.",
            section="VII-E, on Table V",
            method="FRPCAG",
            against=["RPCAG to 1e-5", "RPCA to 1e-5"],
            where={"dataset": [*MIDDLE]},
            factor=10,
            caveat="By programs of ours; the paper prints no tolerances. On ORL, with 300 images, "
            "a pass of RPCA takes 0.08 seconds here and 0.75 in print, and it takes 114 passes "
            "where 320 are printed. FRPCAG takes 3 seconds and 25 passes, where 4.7 and 12 are "
            "printed.",
        ),
        Claim(
            text="FRPCAG needs very few passes whatever the size of the data: fewer than RPCAG and "
            "RPCA.",
            section="VII-E, on Table V, which has 12 to 27 beside 301 to 412",
            method="FRPCAG",
            against=["RPCAG to 1e-5", "RPCA to 1e-5"],
            where={"dataset": [*MIDDLE]},
            score="iterations",
            caveat="The paper prints neither a number for few nor its tolerances.",
        ),
    ],
)
