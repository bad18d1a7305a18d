"""Both sides of the bound of Theorem 2, on fitted models."""

from functools import partial

from robustpca.bench.declarations import Claim, Source, Table, by_level
from robustpca.datasets import make_graph_clusters
from robustpca.papers.frpcag import PAPER
from robustpca.papers.frpcag.estimators import Theorem2Fit
from robustpca.papers.frpcag.samples import waves_of_error
from robustpca.papers.frpcag.scores import bound, printed_ratio

table = Table(
    name="frpcag_theorem_2",
    title="FRPCAG, Theorem 2: left and right side of the bound",
    datasets={
        "clusters": partial(make_graph_clusters, n_samples=200),
        "clusters without noise": partial(make_graph_clusters, n_samples=200, noise=0.0),
        "waves of error": waves_of_error,
        "digits": Source("digits", n_samples=300),
        "USPS": Source("usps", n_samples=300),
    },
    methods={"FRPCAG": Theorem2Fit()},
    vary={
        "n_sample": by_level(quick=[1, 6], default=[1, 6, 20], full=[1, 2, 6, 20]),
        "n_feature": by_level(quick=[5], default=[1, 5, 10], full=[1, 2, 5, 10]),
        "smoothness": by_level(
            quick=[0.1, 1.0],
            default=[0.01, 0.1, 1.0, 10.0],
            full=[0.001, 0.01, 0.1, 1.0, 10.0, 100.0],
        ),
    },
    score={
        "left over right": bound,
        "left": partial(bound, side="left"),
        "right": partial(bound, side="right"),
        "left as printed over right": printed_ratio,
    },
    seeds=by_level(quick=1, default=10, full=10),
    paper=PAPER,
    claims=[
        Claim(
            text="The bound of Theorem 2 holds as it is proved.",
            section="IV-D, proof of Theorem 2",
            kind="always",
            bound=1.0,
            method="FRPCAG",
            score="left over right",
        ),
        Claim(
            text="The bound of Theorem 2 holds as it is printed.",
            section="IV-D, equation (8)",
            kind="always",
            bound=1.0,
            method="FRPCAG",
            score="left as printed over right",
            caveat="Surely a misprint: its own proof ends with the common weight on the left side.",
        ),
    ],
    notes=[
        "The bound holds where the first ratio is at most 1. It is for the part of the clean data "
        "in the span of the lowest eigenvectors of both graphs, 6 and 5 of them for the clusters; "
        "what else is in the data counts as corruption.",
        "The theorem is printed with the weights of the two graphs on its left side; its proof "
        "has the common weight there. The last ratio is that of the printed form. Waves round a "
        "ring, which are all error but smooth, contradict it: with one eigenvector, the left side "
        "is several times the right one.",
        "Where a graph falls into more parts than eigenvectors are asked for, there are as many "
        "eigenvectors as parts.",
    ],
)
