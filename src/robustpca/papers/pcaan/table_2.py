"""Reconstruction errors of six methods on faces, as they are and with a fifth occluded."""

from functools import partial
from pathlib import Path

from sklearn.decomposition import PCA

from robustpca import GLRAM, PCAAN, PCAOM, R2DPCA
from robustpca.bench.declarations import AS_PRINTED, Claim, Source, Table, best_of, by_level
from robustpca.datasets import occlude_randomly
from robustpca.papers.pcaan import PAPER
from robustpca.papers.pcaan.scores import (
    error_without_mean,
    mean_error,
    mean_error_observed,
    unit_pixels,
    weighted_error,
    weighted_error_observed,
)

OWN = "error to the observed, own weights"
PLAIN = "error to the observed"
WITHOUT_MEAN = "error to the observed, mean not added"
MIXED = "What is printed weights images otherwise in each method."
ALIKE = (
    "The paper takes the weights of each method for its errors; here all images count alike, and "
    "are compared with the clean ones."
)
THRESHOLDS = [10.0, 20.0, 30.0, 40.0, 50.0]

table = Table(
    name="pcaan_table_2",
    title="PCA-AN, Table 2: reconstruction error",
    datasets={
        "AT&T": Source("orl", size=(64, 64)),
        "UMIST": Source("umist", size=(64, 64)),
        "FEI": Source("fei", size=(32, 32)),
        "FERET": by_level(
            quick=Source("feret", size=(40, 40), n_samples=700),
            default=Source("feret", size=(40, 40)),
            full=Source("feret", size=(40, 40)),
        ),
    },
    prepare=unit_pixels,
    corruption={"raw": None, "0.2": partial(occlude_randomly, samples=0.2)},
    methods={
        "PCA-AN": PCAAN(90, n_active=0.85),
        "GLRAM": GLRAM((9, 10)),
        "R2DPCA": R2DPCA((9, 10)),
        "capped R2DPCA": best_of(
            R2DPCA((9, 10), threshold="q0.8"),
            threshold=by_level(quick=THRESHOLDS[::4], default=THRESHOLDS, full=THRESHOLDS),
        ),
        "PCA": PCA(90, svd_solver="full"),
        "RPCA-OM": PCAOM(90),
    },
    score={
        OWN: weighted_error_observed,
        PLAIN: mean_error_observed,
        WITHOUT_MEAN: error_without_mean,
        "error, own weights": weighted_error,
        "error": mean_error,
    },
    senses={OWN: "neither", WITHOUT_MEAN: "neither", "error, own weights": "neither"},
    printed={"PCA": WITHOUT_MEAN, "RPCA-OM": PLAIN},
    published=Path(__file__).with_suffix(".csv"),
    comparable=["AT&T"],
    seeds=by_level(quick=1, default=10, full=50),
    paper=PAPER,
    claims=[
        Claim(
            text="PCA-AN has the smallest error on occluded images, as printed.",
            section="5.2, 1 and 3",
            method="PCA-AN",
            where={"corruption": ["0.2"]},
            score=AS_PRINTED,
            caveat=MIXED,
        ),
        Claim(
            text="PCA-AN restores occluded images best, all images counted alike.",
            section="5.2, 1 and 3",
            method="PCA-AN",
            where={"corruption": ["0.2"]},
            score="error",
            caveat=ALIKE,
        ),
        Claim(
            text="PCA-AN has the smallest error on raw images, as printed.",
            section="5.2, 3",
            method="PCA-AN",
            where={"corruption": ["raw"]},
            score=AS_PRINTED,
            caveat=MIXED,
        ),
        Claim(
            text="On raw images RPCA-OM comes second, as printed.",
            section="5.2, 2",
            method="RPCA-OM",
            against=["GLRAM", "R2DPCA", "capped R2DPCA", "PCA"],
            where={"corruption": ["raw"]},
            score=AS_PRINTED,
            caveat=MIXED,
        ),
        Claim(
            text="On raw images R2DPCA is better than GLRAM and PCA, as printed.",
            section="5.2, 2",
            method="R2DPCA",
            against=["GLRAM", "PCA"],
            where={"corruption": ["raw"]},
            score=AS_PRINTED,
            caveat=MIXED,
        ),
        Claim(
            text="On raw images R2DPCA is better than GLRAM, all images counted alike.",
            section="5.2, 2",
            method="R2DPCA",
            against=["GLRAM"],
            where={"corruption": ["raw"]},
            score="error",
            caveat="PCA cannot be beaten by this error on raw images, as a theorem.",
        ),
        *(
            Claim(
                text=f"On occluded images {name} is better than GLRAM and PCA, {reading}.",
                section="5.2, 4",
                method=name,
                against=["GLRAM", "PCA"],
                where={"corruption": ["0.2"]},
                score=score,
                caveat=caveat,
            )
            for reading, score, caveat in (
                ("as printed", AS_PRINTED, MIXED),
                ("all images counted alike", "error", ALIKE),
            )
            for name in ("R2DPCA", "capped R2DPCA", "RPCA-OM")
        ),
    ],
    notes=[
        "The published metric weighs the error of each image with the method's own weights. It "
        "does not compare methods, since weights on images that fit exactly make it vanish: no "
        "claim is judged by it. 'As printed' has of each method the score whose values the paper "
        "seems to print; 'error' counts all images alike, against the clean ones.",
        "The paper does not say whether the original image is the one before or after "
        "occlusion. After is nearer to its numbers: occlusion multiplies the error of PCA-AN "
        "by 1.9, 1.6 and 1.6 in print (AT&T, FEI, FERET), by 1.5, 1.6 and 1.7 here against "
        "the occluded images, and by 3.4, 5.6 and 2.0 against the clean ones. Both are given.",
        "Pixels are scaled to [0, 1]: R2DPCA on raw AT&T then has the printed value to all digits.",
        "RPCA-OM: its weights go to the few images that are fitted exactly, so its weighted "
        "error is near 0. The value printed for raw AT&T, 5.27, is that of the unweighted "
        "error, 5.30; at no stage of the fit is the weighted one so large.",
        "PCA: the printed values cannot be of this metric. On raw data no method of the table "
        "can have a smaller unweighted error than PCA, whose printed value is the largest. "
        "They are about the squared length of the mean image: if the mean is not added to the "
        "reconstruction, PCA has 1148 on raw AT&T, where 1197.25 is printed.",
        "GLRAM: 15.4 on raw AT&T, where 21.87 is printed. A single pass from the start of its "
        "paper gives 17.1, images on their side give 15.0, so that neither explains it.",
        "FEI: 500 images of 100 persons, resized, instead of 2600 of 200. FERET: 40 x 40 "
        "pixels instead of 80 x 80, of another crop. Their errors cannot be expected to "
        "match.",
        "Occlusions cover 25 to 50 % of an image with noise; the paper gives neither the largest "
        "size nor the filling. With noise on 25 to 100 % of it, PCA-AN, GLRAM and R2DPCA come "
        "nearer to print on AT&T (0.86, 0.84 and 0.88 of it), but on FERET the factor by which "
        "occlusion raises their errors is then further from print.",
    ],
)
