"""Clustering error of twelve methods on images with occluded and missing pixels."""

from functools import partial
from typing import Any

from sklearn.decomposition import NMF, PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from robustpca import FRPCAG, GLPCA, GNMF, MMF, RPCA, RPCAG, LaplacianEigenmaps, NCut
from robustpca.bench.declarations import Claim, Source, Table, best_of, by_level
from robustpca.datasets import drop_pixels, occlude_blocks
from robustpca.papers.approximations import singular_vectors
from robustpca.papers.clustering import Clustering
from robustpca.papers.frpcag import PAPER
from robustpca.papers.frpcag.estimators import OnCleanGraphs, OnGraphs
from robustpca.papers.pursuit import ADMM, PLAIN
from robustpca.papers.samples import ordered_classes

BLOCKS = {f"blocks {100 * a:.0f} %": partial(occlude_blocks, area=a) for a in (0.15, 0.25, 0.4)}
MISSING = {f"missing {100 * q:.0f} %": partial(drop_pixels, share=q) for q in (0.1, 0.2, 0.3, 0.4)}
RANKS = by_level(quick=[10], default=[8, 16, 32, 64], full=[2**i for i in range(1, 8)])
FEW_RANKS = by_level(quick=[10], default=[8, 32], full=[2**i for i in range(1, 8)])
POWERS = [2.0**i for i in range(-3, 11)]
SPARSITIES = by_level(
    quick=[1.0], default=[0.6, 1.0], full=[0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
)
GAMMAS = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0]
FEW_GAMMAS = by_level(quick=[5.0], default=[3.0, 30.0], full=GAMMAS[::2])

by_labels = partial(best_of, chosen_by="the labels")
unit_norm = ("unit norm", Normalizer())
standard = ("standard", StandardScaler())
frpcag = FRPCAG(sample_smoothness=1.0, feature_smoothness=1.0, standardize=False)

FACTORISATIONS = {
    "k-means": PCA(svd_solver="full"),
    "NCut": by_labels(OnGraphs(NCut(20, n_init=1)), estimator__n_clusters=RANKS),
    "LE": by_labels(OnGraphs(LaplacianEigenmaps(20)), estimator__n_components=RANKS),
    "PCA": by_labels(PCA(20, svd_solver="full"), n_components=RANKS),
    "GLPCA": by_labels(
        OnGraphs(GLPCA(20)),
        estimator__n_components=FEW_RANKS,
        estimator__beta=by_level(
            quick=[0.5], default=[0.3, 0.6, 0.9], full=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
        ),
    ),
    "MMF": by_labels(
        Pipeline([standard, unit_norm, ("fit", OnGraphs(MMF(20)))]),
        fit__estimator__n_components=FEW_RANKS,
        fit__estimator__smoothness=by_level(quick=[8.0], default=[0.125, 1.0, 32.0], full=POWERS),
    ),
}
NONNEGATIVE = {
    "NMF": by_labels(
        Pipeline([unit_norm, ("fit", NMF(20, init="nndsvda", tol=1e-3))]), fit__n_components=RANKS
    ),
    "GNMF": by_labels(
        Pipeline([unit_norm, ("fit", OnGraphs(GNMF(20, tol=1e-3)))]),
        fit__estimator__n_components=FEW_RANKS,
        fit__estimator__smoothness=by_level(quick=[8.0], default=[1.0, 32.0], full=POWERS),
    ),
}
# Clusters do not hang on the last digits, which take the nuclear norm most of its time.
NUCLEAR = {
    "RPCA": by_labels(
        Pipeline([standard, ("fit", OnGraphs(RPCA(**ADMM, tol=1e-3)))]), fit__sparsity=SPARSITIES
    ),
    "RPCAG": by_labels(
        Pipeline([standard, ("fit", OnGraphs(RPCAG(**PLAIN, smoothness=0.125, tol=1e-3)))]),
        fit__sparsity=SPARSITIES,
        fit__estimator__smoothness=by_level(quick=[0.125], default=[0.125], full=POWERS[::2]),
    ),
}
CONTROLS = {
    "PCA, whitened": by_labels(PCA(20, whiten=True, svd_solver="full"), n_components=RANKS),
    "FRPCAG, graphs of the clean data": by_labels(
        Pipeline([standard, ("fit", OnCleanGraphs(frpcag))]),
        fit__estimator__sample_smoothness=FEW_GAMMAS,
    ),
}
# The same pairs for all three versions: fewer for one of them would be another comparison.
WEIGHTS: dict[str, Any] = {
    "fit__estimator__sample_smoothness": by_level(
        quick=[1.0, 5.0], default=[1.0, 3.0, 10.0, 30.0], full=GAMMAS
    ),
    "fit__estimator__feature_smoothness": by_level(quick=[1.0], default=[1.0, 10.0], full=GAMMAS),
}
NOISY = {"FRPCAG(A)": (), "FRPCAG(B)": ["features"], "FRPCAG(C)": ["samples", "features"]}
GRAPHS = {
    name: by_labels(Pipeline([standard, ("fit", OnGraphs(frpcag, noisy=noisy))]), **WEIGHTS)
    for name, noisy in NOISY.items()
}
SCORES = {
    "smallest error of ten runs": Clustering(take=min, of=singular_vectors),
    "clustering error": Clustering(of=singular_vectors),
    "smallest error of ten runs, low-rank part": Clustering(take=min),
    "clustering error, low-rank part": Clustering(),
}
NOTES = [
    "The figure is a drawing without numbers, so there is none to compare with.",
    "The first error is that of the paper: the smallest of ten runs of k-means, which looks at the "
    "labels; the second is that of the run with the lowest inertia, which does not.",
    "Of RPCA, RPCAG and FRPCAG k-means runs on as many singular vectors of the low-rank part as "
    "there are classes, and in the last two scores on the low-rank part itself. The paper calls "
    "both alike. The vectors come first because, of four readings tried, they come nearest to the "
    "errors that it prints for the number of neighbours; on clean ORL they are better than the "
    "low-rank part.",
    "Parameters are chosen by the labels, as in the paper, from coarser grids and ranks up to "
    "128. The default has 20 components, and weights of 1 for the graphs (RPCAG: 1/8).",
    "FRPCAG(B) and (C): neighbours are looked for after a random projection to 32 dimensions, in "
    "place of an approximate search; (B) for the features, (C) for the samples as well.",
    "Two controls are not in the paper. FRPCAG with graphs of the clean data is no method for "
    "users. With blocks of 15, 25 and 40 % on ORL, ten seeds, the smallest error of FRPCAG(A) over "
    "eight pairs of weights is 0.63, 0.70 and 0.73; with the graphs of the clean data it is 0.21 "
    "in all three. Section III of the paper makes graphs 'even if the dataset is corrupted', and "
    "only of the videos does it say that the mask of the errors is not known: if it was known in "
    "this figure, graphs and errors were others.",
    "Whitened PCA is plain PCA with singular vectors that count alike, as those of FRPCAG do. On "
    "clean CMU PIE, one seed, it brings the error of PCA from "
    "0.74 to 0.20, which is that of FRPCAG; with missing pixels FRPCAG is ahead.",
    "Graphs have 10 neighbours and Gaussian weights of width 1, as in the paper; not in the units "
    "of the data, in which all weights would vanish, but after the scaling of the toolbox that "
    "the paper used.",
    "RPCA and RPCAG are run on all data sets, in the paper on ORL alone; with a tolerance of "
    "1e-3, which does not move the error by more than the starts of k-means do.",
]
COARSE = (
    "From at most eight pairs of weights of the graphs and two of the sparse part, where the paper "
    "has finer grids. Graphs are of the corrupted images, as its Section III has it; with graphs "
    "of the clean ones FRPCAG has errors of 0.19 to 0.21 whatever the corruption."
)
PROJECTED = " The paper's noisy graphs come from an approximate search, not from a projection."


table = Table(
    name="frpcag_figure_6",
    title="FRPCAG, Figure 6: clustering error",
    datasets=by_level(
        quick={
            "ORL": partial(ordered_classes, "orl", 10, size=(28, 23)),
            "digits": Source("digits", n_samples=200),
        },
        default={
            "CMU PIE": partial(ordered_classes, "pie", 30, 20, size=(32, 32)),
            "ORL": Source("orl", size=(56, 46)),
            "COIL20": Source("coil20", size=(32, 32), n_samples=480),
            "YALE": Source("yale", size=(32, 32)),
            "MNIST": Source("mnist", n_samples=500),
            "USPS": Source("usps", n_samples=700),
            "digits": Source("digits", n_samples=700),
        },
        full={
            "CMU PIE": partial(ordered_classes, "pie", 30, 40, size=(32, 32)),
            "ORL": Source("orl", size=(56, 46)),
            "COIL20": Source("coil20", size=(32, 32)),
            "YALE": Source("yale", size=(32, 32)),
            "MNIST": Source("mnist", n_samples=5000),
            "USPS": Source("usps", n_samples=3500),
            "digits": Source("digits"),
        },
    ),
    corruption=by_level(
        quick={
            "none": None,
            "blocks 25 %": BLOCKS["blocks 25 %"],
            "missing 20 %": MISSING["missing 20 %"],
        },
        default={"none": None, **BLOCKS, **MISSING},
        full={"none": None, **BLOCKS, **MISSING},
    ),
    methods={**FACTORISATIONS, **NONNEGATIVE, **NUCLEAR, **GRAPHS, **CONTROLS},
    score=SCORES,
    seeds=by_level(quick=1, default=10, full=10),
    x="corruption",
    paper=PAPER,
    time_limit=by_level(quick=120, default=600, full=7200),
    notes=[
        *NOTES,
        "MNIST: 500 images (full level: 5000) in place of 50000. CMU PIE, COIL20 and USPS have "
        "the printed number of images at the full level only.",
        "COIL20: the paper takes views within 45 degrees, but prints 1400 images, nearly all; "
        "here all are used. YALE has 15 persons, not 11.",
        "USPS: ours has grey levels from 0 to 255, so NMF and GNMF can be run; in the paper they "
        "are not.",
        "What the paper says of MNIST is not judged: there all of its graphs are noisy, those of "
        "the rivals as well.",
        "Missing pixels are black, as are blocks.",
    ],
    claims=[
        Claim(
            text="FRPCAG with good graphs has a smaller clustering error than the matrix "
            "factorisations in most cases, with and without corruption.",
            section="VII-A, 1",
            kind="mostly best",
            method="FRPCAG(A)",
            against=[*FACTORISATIONS, *NONNEGATIVE],
            where={"dataset": ["CMU PIE", "ORL", "COIL20", "YALE"]},
            caveat="CMU PIE with 600 of 1200 images, COIL20 with 480 of 1400. FRPCAG has eight "
            "candidates and rivals at most six.",
        ),
        Claim(
            text="On USPS FRPCAG with good graphs has a smaller clustering error than the matrix "
            "factorisations in most cases.",
            section="VII-A, 1",
            kind="mostly best",
            method="FRPCAG(A)",
            against=[*FACTORISATIONS],
            where={"dataset": ["USPS"]},
            caveat="Without NMF and GNMF, which the paper does not run on USPS. 700 of 3500 "
            "images. FRPCAG has eight candidates and rivals at most six. MMF by its default, which "
            "is none of its candidates, is ahead by 0.2 % with blocks of 15 %: then it is 7 of 8 "
            "places, p = 0.035.",
        ),
        Claim(
            text="FRPCAG with good graphs has a smaller error on ORL than the methods with a "
            "nuclear norm.",
            section="VII-A, 2",
            method="FRPCAG(A)",
            against=["RPCA", "RPCAG"],
            where={"dataset": ["ORL"]},
            caveat=COARSE,
        ),
        Claim(
            text="Even with a noisy graph of the features FRPCAG is better on ORL than RPCAG.",
            section="VII-A, 2",
            method="FRPCAG(B)",
            against=["RPCAG"],
            where={"dataset": ["ORL"]},
            caveat=COARSE + PROJECTED,
        ),
        Claim(
            text="Even with two noisy graphs FRPCAG is better on ORL than RPCA.",
            section="VII-A, 2",
            method="FRPCAG(C)",
            against=["RPCA"],
            where={"dataset": ["ORL"]},
            caveat=COARSE + PROJECTED,
        ),
    ],
)
