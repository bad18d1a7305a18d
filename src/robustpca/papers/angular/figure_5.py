"""Faces without their shadows: an image, what is left of it, and their difference."""

from functools import partial

import numpy as np

from robustpca import AngularEmbedding
from robustpca.bench.declarations import Claim, Table, by_level
from robustpca.datasets import occlude_blocks
from robustpca.papers.angular import PAPER
from robustpca.papers.angular.images import (
    block_error,
    lit_error,
    percent_kept,
    shadow_gain,
    triptych,
)
from robustpca.papers.angular.methods import compared_methods
from robustpca.papers.samples import ordered_classes

HALF_SIZE = partial(ordered_classes, "yaleb_5subjects", size=(96, 84))
FULL_SIZE = partial(ordered_classes, "yaleb_5subjects", size=(192, 168))
PERSONS = {f"person {label + 1}": partial(FULL_SIZE, classes=[label]) for label in range(5)}

table = Table(
    name="angular_figure_5",
    title="AE, Fig. 5: faces without shadows from 9 components",
    datasets=by_level(
        quick={"person 1": partial(HALF_SIZE, classes=[0])}, default=PERSONS, full=PERSONS
    ),
    corruption={"as they are": None, "covered": partial(occlude_blocks, area=0.1, samples=0.5)},
    methods={
        **compared_methods(9),
        "TAE, 50 degrees": AngularEmbedding(9, max_angle=5 * np.pi / 18),
        "TAE, 60 degrees": AngularEmbedding(9, max_angle=np.pi / 3),
    },
    score={
        "change of lit pixels": lit_error,
        "gain of dark pixels": shadow_gain,
        "error under blocks": block_error,
        "images kept (%)": percent_kept,
    },
    shows={
        "first half": partial(triptych, half=0, quantile=0.5),
        "second half": partial(triptych, half=1, quantile=0.5),
    },
    senses={"images kept (%)": "neither"},
    seeds=by_level(quick=1, default=10, full=20),
    paper=PAPER,
    notes=[
        "Each picture has a face, what the method makes of it, and their difference, where white "
        "is none. The images are those of middle distance to the median, one of either half.",
        "The figure has no numbers, and the faces without their shadows are unknown. Ours are "
        "the root mean square change of pixels of at least 25 grey levels, where there is no "
        "shadow to remove; and by how much darker pixels become brighter, which more of is not "
        "always better. 'covered' has a truth: half of the images lose a tenth of their area to "
        "a black block, and the error is that of the pixels under it.",
        "The paper finds faces clearer with TAE than with AE, by eye. That is not judged: shadows "
        "have no truth, and it says nothing about blocks.",
        "TAE has both ends of the range of angles that the paper gives.",
        "Five persons, decoded from JPEG; the second has 60 images, the others 64.",
    ],
    claims=[
        Claim(
            text="AE keeps more of the light on faces than Inexact ALM, which makes them matt.",
            section="Shadow Removal on Face Data",
            method="AE from the mean",
            against=("Inexact ALM",),
            where={"corruption": ["as they are"]},
            score="change of lit pixels",
        ),
    ],
)
