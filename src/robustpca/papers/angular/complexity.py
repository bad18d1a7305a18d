"""How the time of the methods for videos grows with the number of frames."""

from functools import partial

from robustpca import AngularEmbedding
from robustpca.bench.declarations import Claim, Table, by_level
from robustpca.datasets import make_video
from robustpca.papers.angular import PAPER
from robustpca.papers.angular.table_3 import timed_methods
from robustpca.papers.growth import FirstRows
from robustpca.papers.scores import seconds_of_fit

RANDOMISED = "AE from the mean, randomised"
SECTION = "Computational Acceleration and Complexity Analysis"

table = Table(
    name="angular_complexity",
    title="AE, complexity analysis: seconds against the number of frames",
    datasets={
        "synthetic, 1200 pixels": by_level(
            quick=partial(make_video, 800, (30, 40)),
            default=partial(make_video, 2000, (30, 40)),
            full=partial(make_video, 4000, (30, 40)),
        )
    },
    methods={
        **{name: FirstRows(estimator) for name, estimator in timed_methods(5).items()},
        RANDOMISED: FirstRows(AngularEmbedding(5, center="mean", solver="randomized")),
    },
    vary={
        "n_samples": by_level(
            quick=[200, 400, 800], default=[250, 500, 1000, 2000], full=[500, 1000, 2000, 4000]
        )
    },
    score={"seconds": seconds_of_fit},
    x="n_samples",
    repeats=2,
    seeds=by_level(quick=1, default=10, full=10),
    time_limit=by_level(quick=120.0, default=900.0, full=3600.0),
    paper=PAPER,
    claims=[
        Claim(
            text="The time of randomised AE for a few components grows with n log n.",
            section=SECTION,
            kind="not worse",
            bound=1.0,
            margin=0.25,
            method=RANDOMISED,
            along="n_samples",
        ),
        Claim(
            text="Trimming makes the time grow with the square of the number of samples.",
            section=SECTION,
            kind="not worse",
            bound=2.0,
            margin=0.05,
            method="TAE from the mean",
            along="n_samples",
        ),
    ],
    notes=[
        "The paper states orders and measures none. Exponents are slopes of straight lines through "
        "the logarithms of seconds and frames, for each seed.",
        "Orders are upper bounds: a claim is met by any exponent that is not larger.",
        "The paper states n log n for the randomised decomposition. AE itself takes it beyond 1024 "
        "frames only, and forms the inner products of all frames before: its line has a break "
        "there, and no exponent.",
    ],
)
