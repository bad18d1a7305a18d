"""Clustering error on the numerals of MFEAT, which are no images, with missing values."""

from functools import partial

from robustpca.bench.declarations import Claim, Table, by_level
from robustpca.papers.frpcag import PAPER
from robustpca.papers.frpcag.figure_6 import (
    CONTROLS,
    FACTORISATIONS,
    GRAPHS,
    MISSING,
    NOTES,
    NUCLEAR,
    SCORES,
)
from robustpca.papers.frpcag.samples import without_view

table = Table(
    name="frpcag_figure_6_mfeat",
    title="FRPCAG, Figure 6, MFEAT: clustering error",
    datasets={
        "MFEAT": by_level(
            quick=partial(without_view, "mfeat", "pix", 15),
            default=partial(without_view, "mfeat", "pix", 40),
            full=partial(without_view, "mfeat", "pix", 40),
        )
    },
    corruption=by_level(
        quick={"none": None, "missing 20 %": MISSING["missing 20 %"]},
        default={"none": None, **MISSING},
        full={"none": None, **MISSING},
    ),
    methods={**FACTORISATIONS, **NUCLEAR, **GRAPHS, **CONTROLS},
    score=SCORES,
    seeds=by_level(quick=1, default=10, full=10),
    x="corruption",
    paper=PAPER,
    time_limit=by_level(quick=120, default=600, full=7200),
    notes=[
        *NOTES,
        "400 numerals, 40 of each: the paper does not say which. The 409 features are all views "
        "but the pixels. Some are negative, so there is no NMF and GNMF, as in the paper; and "
        "since they are no images, there are no blocks.",
    ],
    claims=[
        Claim(
            text="On MFEAT FRPCAG with good graphs has a smaller clustering error than the matrix "
            "factorisations in most cases.",
            section="VII-A, 1",
            kind="mostly best",
            method="FRPCAG(A)",
            against=[*FACTORISATIONS],
        )
    ],
)
