"""Seconds that nine components of the images of one face take."""

from functools import partial

import numpy as np
from sklearn.decomposition import PCA

from robustpca import EMPCA, RPCA, AngularEmbedding, GrassmannAverage
from robustpca.bench.declarations import Claim, Table, by_level
from robustpca.bench.scores.samples import ordered_classes
from robustpca.bench.scores.times import seconds_of_fit

SLOW = ("EM PCA", "Inexact ALM", "TGA")

table = Table(
    name="angular_table_3_yale",
    title="AE, Table 3, first row: seconds for 9 components of a face",
    datasets={"Yale": partial(ordered_classes, "yaleb_5subjects", [0], size=(192, 168))},
    methods={
        "PCA": PCA(9),
        "EM PCA": EMPCA(9, tol=1e-4),
        "Inexact ALM": RPCA(solver="ialm"),
        "TGA": GrassmannAverage(9, trim=0.5, tol=1e-4),
        "AE": AngularEmbedding(9),
        "AE from the mean": AngularEmbedding(9, center="mean"),
        "TAE": AngularEmbedding(9, max_angle=np.pi / 3),
    },
    score=seconds_of_fit,
    published="angular_table_3_yale.csv",
    seeds=by_level(quick=1, default=10, full=20),
    repeats=2,
    paper="Liu, Yu, Angular embedding: a new angular robust principal component analysis, "
    "AAAI 2021.",
    notes=[
        "The images of one person are a matrix of 64 x 32256, as printed in the paper.",
        "Printed times are of another machine (Core i7-8700, six cores) and of Matlab; ours of "
        "one core. Ratios between methods can be compared, single values cannot.",
    ],
    claims=[
        Claim(text="AE is faster than the iterative methods.", method="AE", against=SLOW),
        Claim(text="TAE is faster than the iterative methods.", method="TAE", against=SLOW),
        Claim(text="AE takes no longer than PCA.", method="AE", against=("PCA",)),
    ],
)
