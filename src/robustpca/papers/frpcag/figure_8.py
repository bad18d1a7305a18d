"""Still backgrounds of videos."""

from functools import partial

from robustpca import FRPCAG, RPCA, RPCAG
from robustpca.bench.declarations import Claim, Source, Table, by_level
from robustpca.datasets import make_video
from robustpca.papers.frpcag import PAPER
from robustpca.papers.frpcag.background import (
    background_rmse,
    motion_left,
    show_background,
    show_foreground,
    show_frame,
)
from robustpca.papers.pursuit import ADMM, PLAIN
from robustpca.papers.scores import seconds_of_fit
from robustpca.papers.video import foreground

NAMES = {
    "restaurant": "i2r_bootstrap",
    "shopping mall": "i2r_shoppingmall",
    "airport": "i2r_hall",
    "escalator": "i2r_escalator",
    "highway": "cdnet_highway",
    "canoe": "cdnet_canoe",
}

table = Table(
    name="frpcag_figure_8",
    title="FRPCAG, Figure 8: background of videos",
    datasets=by_level(
        quick={
            "synthetic": partial(make_video, 100, (30, 40)),
            "restaurant": Source("i2r_bootstrap", size=(30, 40), n_samples=100),
            "highway": Source("cdnet_highway", size=(30, 40), n_samples=100),
        },
        default={
            "synthetic": partial(make_video, 200, (60, 80)),
            **{label: Source(name, size=(60, 80), n_samples=200) for label, name in NAMES.items()},
        },
        full={
            "synthetic": partial(make_video, 600, (120, 160)),
            **{label: Source(name) for label, name in NAMES.items()},
        },
    ),
    methods={
        "RPCA": RPCA(**{**ADMM, "center": "median"}, tol=1e-3),
        "RPCAG": RPCAG(**{**PLAIN, "center": "median"}, smoothness=1.0, tol=1e-3),
        "FRPCAG": FRPCAG(sample_smoothness=100.0, feature_smoothness=1.0),
        "FRPCAG to 1e-3": FRPCAG(sample_smoothness=100.0, feature_smoothness=1.0, tol=1e-3),
    },
    score={
        "motion left in the background": motion_left,
        "seconds": seconds_of_fit,
        "error of the background in grey levels": background_rmse,
        "F-measure of the foreground": partial(foreground, measure="f_measure"),
    },
    shows={
        "frame": show_frame,
        "background": show_background,
        "moving": show_foreground,
    },
    seeds=by_level(quick=1, default=10, full=10),
    paper=PAPER,
    time_limit=by_level(quick=120, default=900, full=14400),
    notes=[
        "The paper shows one frame of three videos of 1000 frames and gives no number but the "
        "times. Here are 600 frames of the restaurant and 24 of the airport; the mall is another "
        "video of the same collection, if it is there. Escalator, highway, canoe and the "
        "synthetic video are added: the last three have a known truth.",
        "Motion left is what still changes in the background, as a share of what changes in the "
        "video. Changing light is motion, too, and the light of the synthetic video changes. Less "
        "is not better beyond that: a single picture has none.",
        "The paper does not print the weights. FRPCAG has 100 for the frames and 1 for the "
        "pixels, after standardising the pixels. RPCA and RPCAG (weight 1) subtract the median of "
        "each pixel first: on raw grey levels RPCAG was off by 50 to 60 of them on the highway. "
        "The weights were chosen by a look at the scores of small copies of the highway and of the "
        "synthetic video.",
        "Times are judged to one tolerance, 1e-3 for all; FRPCAG to 1e-5, its default, stands "
        "beside. They are judged at the full level, which has all frames at their size: those of "
        "the default level, 200 of 60 x 80 pixels, take a second or two with any method.",
        "A pixel moves if it differs from the background by more than 25 grey levels.",
    ],
    claims=[
        Claim(
            text="On videos FRPCAG is many times faster than RPCA and RPCAG: minutes, not three "
            "quarters of an hour.",
            section="VII-D",
            method="FRPCAG to 1e-3",
            against=["RPCA", "RPCAG"],
            factor=10,
            score="seconds",
            level="full",
            caveat="The paper takes 1000 frames; how much is gained depends on size and programs.",
        ),
        Claim(
            text="The background that FRPCAG finds is as good as that of RPCAG.",
            section="VII-D, on Fig. 8",
            kind="not worse",
            method="FRPCAG",
            against=["RPCAG"],
            score="F-measure of the foreground",
            better="higher",
            where={"dataset": ["highway", "canoe", "synthetic"]},
            caveat="The videos of the paper have no truth: others stand in for them.",
        ),
    ],
)
