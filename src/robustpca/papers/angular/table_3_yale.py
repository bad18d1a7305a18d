"""Seconds that nine components of the images of one face take."""

from functools import partial
from pathlib import Path

from robustpca.bench.declarations import Table, by_level
from robustpca.papers.angular import PAPER
from robustpca.papers.angular.table_3 import time_claims, timed_methods
from robustpca.papers.samples import ordered_classes
from robustpca.papers.scores import seconds_of_fit

table = Table(
    name="angular_table_3_yale",
    title="AE, Table 3, first row: seconds for 9 components of a face",
    datasets={"Yale": partial(ordered_classes, "yaleb_5subjects", [0], size=(192, 168))},
    methods=timed_methods(9),
    score=seconds_of_fit,
    published=Path(__file__).with_suffix(".csv"),
    seeds=by_level(quick=1, default=10, full=20),
    repeats=2,
    paper=PAPER,
    notes=[
        "The images of one person are a matrix of 64 x 32256, as printed in the paper.",
        "Printed times are of another machine (Core i7-8700, six cores) and of Matlab; ours of "
        "one core. Ratios between methods can be compared, single values cannot.",
        "AE finds the geometric median first, which takes half of its time. From the mean, as "
        "in the paper, it is faster than PCA, as printed.",
        "EM PCA, Inexact ALM and TGA are 7 to 21 times as fast here as printed, and "
        "about equal: how much faster AE is depends on how well its rivals are written.",
    ],
    claims=time_claims("On faces"),
)
