"""How the time of ten methods grows with the number of samples."""

from functools import partial
from typing import Any

from sklearn.decomposition import NMF, PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, scale

from robustpca import FRPCAG, GLPCA, GNMF, MMF, RPCA, RPCAG, LaplacianEigenmaps, NCut
from robustpca.bench.declarations import Claim, Source, Table, by_level
from robustpca.datasets import make_graph_clusters
from robustpca.papers.frpcag import PAPER
from robustpca.papers.frpcag.estimators import OnGraphs
from robustpca.papers.frpcag.figure_6 import unit_norm
from robustpca.papers.growth import FirstRows
from robustpca.papers.pursuit import ADMM, PLAIN
from robustpca.papers.scores import seconds_of_fit


def not_negative(X: Any) -> Any:
    """The same data with their least entry at zero."""
    return X - X.min()


shift = ("shift", FunctionTransformer(not_negative))
METHODS = {
    "FRPCAG": OnGraphs(FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0, standardize=False)),
    "NCut": OnGraphs(NCut(20, n_init=1)),
    "LE": OnGraphs(LaplacianEigenmaps(20)),
    "PCA": PCA(20, svd_solver="full"),
    "GLPCA": OnGraphs(GLPCA(20)),
    "NMF": Pipeline([shift, unit_norm, ("fit", NMF(20, init="nndsvda", tol=1e-3))]),
    "GNMF": Pipeline([shift, unit_norm, ("fit", OnGraphs(GNMF(20, tol=1e-3)))]),
    "MMF": OnGraphs(MMF(20)),
    "RPCA": OnGraphs(RPCA(**ADMM, tol=1e-4)),
    "RPCAG": OnGraphs(RPCAG(**PLAIN, smoothness=0.125, tol=1e-4)),
}


table = Table(
    name="frpcag_table_2",
    title="FRPCAG, Table II: seconds against the number of samples",
    datasets={
        "USPS": Source("usps"),
        "synthetic": partial(make_graph_clusters, n_samples=8000, n_features=64),
    },
    prepare=scale,
    methods={name: FirstRows(estimator) for name, estimator in METHODS.items()},
    vary={
        "n_samples": by_level(
            quick=[200, 400, 800],
            default=[500, 1000, 2000, 4000],
            full=[500, 1000, 2000, 4000, 8000],
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
            text="The time of FRPCAG, its graphs included, grows with n log n.",
            section="VI-C and Table II",
            kind="not worse",
            bound=1.0,
            margin=0.25,
            method="FRPCAG",
            along="n_samples",
        )
    ],
    notes=[
        "The paper states orders and measures none. Exponents are slopes of straight lines through "
        "the logarithms of seconds and samples, for each seed; n log n has about 1.15 here.",
        "Printed orders are upper bounds for the programs that the paper cites: cubes for LE and "
        "GLPCA, whose eigenvectors are found by a sparse solver here.",
        "The number of features is fixed, 256 and 64. Passes are counted in the time, and each "
        "method stops at its own tolerance.",
    ],
)
