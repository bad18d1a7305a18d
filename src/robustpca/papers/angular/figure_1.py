"""Pairs of samples at right angles, which do not move the first component of AE."""

from functools import partial

from sklearn.decomposition import PCA

from robustpca import AngularEmbedding
from robustpca.bench.declarations import Claim, Table, by_level
from robustpca.papers.angular import PAPER
from robustpca.papers.angular.pairs import (
    paired_directions,
    share_of_bound,
    show_directions,
    show_objective,
    turn,
)

SECTION = "Why the Squared Cosine Measurement?, Theorem 1 and Fig. 1"
OFF = {
    f"pairs off by {degrees} degrees": partial(paired_directions, deviation=degrees)
    for degrees in (5, 20)
}

table = Table(
    name="angular_figure_1",
    title="AE, Fig. 1 and Theorem 1: pairs of outliers at right angles",
    datasets={"pairs at right angles": paired_directions, **OFF},
    methods={"AE": AngularEmbedding(1, center="zero"), "PCA": PCA(1, svd_solver="full")},
    score={"turn of the first component": turn, "share of the bound": share_of_bound},
    shows={"directions": show_directions, "mean squared cosine": show_objective},
    senses={"share of the bound": "neither"},
    seeds=by_level(quick=1, default=10, full=50),
    paper=PAPER,
    claims=[
        Claim(
            text="Pairs at right angles do not move the first component of AE at all.",
            section=SECTION,
            kind="always",
            bound=1e-4,
            method="AE",
            where={"dataset": ["pairs at right angles"]},
        ),
        Claim(
            text="Pairs nearly at right angles add to the objective what Theorem 1 allows.",
            section=SECTION,
            kind="always",
            bound=1.0,
            method="AE",
            score="share of the bound",
            better="lower",
            where={"dataset": [*OFF]},
        ),
        Claim(
            text="Outliers all around turn the first component of AE less than that of PCA.",
            section=SECTION,
            method="AE",
            against=("PCA",),
        ),
    ],
    notes=[
        "The figure of the paper is a drawing. Here are 100 samples about one direction and 80 "
        "pairs of outliers in all directions, five times as long; the line is the first component.",
        "The turn is the angle in degrees between the first component of all samples and that of "
        "the normal ones alone. 1e-4 degrees are allowed for rounding.",
        "Of a pair that is off the right angle by xi, the two squared cosines with a component add "
        "up to 1, give or take the sine of xi: the share is that of the largest deviation found.",
    ],
)
