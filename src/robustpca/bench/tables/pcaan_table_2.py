"""Reconstruction errors of six methods on faces, as they are and with a fifth occluded."""

from functools import partial

from sklearn.decomposition import PCA

from robustpca import GLRAM, PCAAN, PCAOM, R2DPCA
from robustpca.bench.declarations import Source, Table, best_of, by_level
from robustpca.bench.scores.errors import (
    error_without_mean,
    mean_error,
    mean_error_observed,
    unit_pixels,
    weighted_error,
    weighted_error_observed,
)
from robustpca.datasets import occlude_randomly

table = Table(
    name="pcaan_table_2",
    title="PCA-AN, Table 2: reconstruction error",
    datasets={
        "AT&T": Source("orl", size=(64, 64)),
        "UMIST": Source("umist", size=(64, 64)),
        "FEI": Source("fei", size=(32, 32)),
        "FERET": Source("feret", size=(40, 40)),
    },
    prepare=unit_pixels,
    corruption={"raw": None, "0.2": partial(occlude_randomly, samples=0.2)},
    methods={
        "PCA-AN": PCAAN(90, n_active=0.85),
        "GLRAM": GLRAM((9, 10)),
        "R2DPCA": R2DPCA((9, 10)),
        "capped R2DPCA": best_of(
            R2DPCA((9, 10), threshold="q0.8"), threshold=[10.0, 20.0, 30.0, 40.0, 50.0]
        ),
        "PCA": PCA(90, svd_solver="full"),
        "RPCA-OM": PCAOM(90),
    },
    score={
        "error to the observed, own weights": weighted_error_observed,
        "error to the observed": mean_error_observed,
        "error to the observed, mean not added": error_without_mean,
        "error, own weights": weighted_error,
        "error": mean_error,
    },
    published="pcaan_table_2.csv",
    seeds=by_level(quick=1, default=10, full=50),
    paper="Zhang, Tong, Robust principal component analysis with adaptive neighbors, NeurIPS 2019.",
    notes=[
        "The published metric weighs the error of each image with the method's own weights, so it "
        "does not compare methods; the unweighted one does. The paper does not say whether the "
        "original image is the one before or after occlusion: both are given.",
        "Pixels are scaled to [0, 1]: R2DPCA on raw AT&T then has the printed value.",
        "RPCA-OM: its weights go to the few images that are fitted exactly, so its weighted error "
        "is near 0; the value printed for raw AT&T is that of the unweighted error.",
        "PCA: the printed values cannot be of this metric. On raw data no method of the table can "
        "have a smaller unweighted error than PCA, whose printed value is the largest.",
        "FEI: 500 images of 100 persons, resized, instead of 2600 of 200. FERET: 40 x 40 pixels "
        "instead of 80 x 80. Their errors cannot be expected to match.",
        "Occlusions cover 25 to 50 % of an image with noise; the paper gives neither the largest "
        "size nor the filling.",
    ],
)
