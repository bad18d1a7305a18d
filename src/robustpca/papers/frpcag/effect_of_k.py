"""Clustering error of FRPCAG on faces against the number of neighbours in its graphs."""

from pathlib import Path

from sklearn.preprocessing import scale

from robustpca import FRPCAG
from robustpca.bench.declarations import Claim, Source, Table, best_of, by_level
from robustpca.papers.approximations import singular_vectors
from robustpca.papers.clustering import Clustering
from robustpca.papers.frpcag import PAPER
from robustpca.papers.frpcag.estimators import OnGraphs

GRID = {
    "estimator__sample_smoothness": by_level(
        quick=[3.0], default=[1.0, 3.0, 10.0], full=[1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    ),
    "estimator__feature_smoothness": by_level(
        quick=[1.0], default=[0.1, 1.0, 10.0], full=[0.1, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    ),
}

table = Table(
    name="frpcag_effect_of_k",
    title="FRPCAG, Section VII-C: clustering error against the number of neighbours",
    datasets={
        "ORL": by_level(
            quick=Source("orl", size=(28, 23)),
            default=Source("orl", size=(56, 46)),
            full=Source("orl", size=(56, 46)),
        ),
        "digits": by_level(
            quick=Source("digits", n_samples=300), default=Source("digits"), full=Source("digits")
        ),
    },
    prepare=scale,
    methods={
        "FRPCAG": best_of(
            OnGraphs(FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0, standardize=False)),
            chosen_by="the labels",
            **GRID,
        ),
        "FRPCAG, equal weights": best_of(
            OnGraphs(
                FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0, standardize=False),
                bandwidth=None,
            ),
            chosen_by="the labels",
            **GRID,
        ),
    },
    vary={"n_neighbors": [5, 10, 25, 40]},
    score={
        "smallest error of ten runs": Clustering(take=min, of=singular_vectors),
        "clustering error": Clustering(of=singular_vectors),
        "smallest error of ten runs, low-rank part": Clustering(take=min),
        "clustering error, low-rank part": Clustering(),
    },
    published=Path(__file__).with_suffix(".csv"),
    seeds=by_level(quick=1, default=10, full=20),
    x="n_neighbors",
    claims=[
        Claim(
            text="No more neighbours than images of a class, 5 or 10, give the smallest error.",
            section="VII-C",
            method="FRPCAG",
            where={"dataset": ["ORL"], "n_neighbors": [5, 10]},
            versus={"n_neighbors": [25, 40]},
        )
    ],
    notes=[
        "The paper does not say what k-means ran on. Of four readings that were tried against its "
        "numbers, the first 40 singular vectors of the low-rank part, without the singular values, "
        "come nearest: 0.17, 0.16, 0.20 and 0.23 over two seeds. The low-rank part itself gives "
        "0.20, 0.26, 0.27 and 0.30. The published values stand beside both.",
        "For 25 and 40 neighbours the vectors have smaller errors than printed, also with both "
        "weights fixed at 1 (0.24 and 0.23); we do not know why.",
        "The weights are chosen by the labels, as in the paper, and so is the run of k-means. The "
        "clustering error is that of the run with the lowest inertia, which needs no labels.",
        "Equal weights of the edges make little difference: those of width 1 after the scaling "
        "of the toolbox that the paper used are nearly equal.",
        "The quick level has images of 28 x 23 pixels.",
    ],
    paper=PAPER,
)
