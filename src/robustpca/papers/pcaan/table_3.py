"""Seconds that four methods take for fifty passes over faces."""

from pathlib import Path

from robustpca import GLRAM, PCAAN, PCAOM, R2DPCA
from robustpca.bench.declarations import Claim, Table, by_level
from robustpca.papers.pcaan import PAPER, table_2
from robustpca.papers.pcaan.estimators import FixedPasses
from robustpca.papers.pcaan.scores import seconds_per_pass, unit_pixels
from robustpca.papers.scores import passes, seconds_of_fit

FACES = table_2.table.datasets
OURS = (
    "By programs of ours that do in each pass what the paper states, ten passes each; its own are "
    "not public."
)

table = Table(
    name="pcaan_table_3",
    title="PCA-AN, Table 3: seconds for 50 passes",
    datasets=by_level(
        quick={name: FACES[name] for name in ("AT&T", "UMIST", "FEI")}, default=FACES, full=FACES
    ),
    prepare=unit_pixels,
    methods={
        "PCA-AN": PCAAN(90, n_active=0.85, tol=0.0, max_iter=50),
        "GLRAM": GLRAM((9, 10), tol=0.0, max_iter=50),
        "R2DPCA": R2DPCA((9, 10), tol=0.0, max_iter=50),
        "RPCA-OM": PCAOM(90, tol=0.0, max_iter=50),
        **{
            f"{name}, 10 passes": FixedPasses(name)
            for name in ("PCA-AN", "GLRAM", "R2DPCA", "RPCA-OM")
        },
    },
    score={
        "seconds": seconds_of_fit,
        "passes": passes,
        "seconds per pass": seconds_per_pass,
    },
    published=Path(__file__).with_suffix(".csv"),
    repeats=2,
    senses={"passes": "neither"},
    seeds=by_level(quick=1, default=10, full=10),
    paper=PAPER,
    claims=[
        Claim(
            text="GLRAM is the fastest, since it fits no mean.",
            section="5.2, on Table 3",
            method="GLRAM, 10 passes",
            against=["PCA-AN, 10 passes", "R2DPCA, 10 passes", "RPCA-OM, 10 passes"],
            caveat=OURS,
        ),
        Claim(
            text="PCA-AN takes about as long as R2DPCA.",
            section="5.2, on Table 3",
            kind="similar",
            margin=0.25,
            method="PCA-AN, 10 passes",
            against=["R2DPCA, 10 passes"],
            caveat=OURS,
        ),
        Claim(
            text="PCA-AN is often faster than R2DPCA.",
            section="5.2, on Table 3",
            kind="mostly best",
            method="PCA-AN, 10 passes",
            against=["R2DPCA, 10 passes"],
            caveat=OURS,
        ),
    ],
    notes=[
        "Absolute times are of other machines and other programs; the order of the methods is "
        "what can be compared.",
        "The methods of this library cannot be compared by the seconds per pass. GLRAM and R2DPCA "
        "end after 5 to 13 passes, since rounding leaves nothing to gain; R2DPCA begins with "
        "twenty sweeps that are not counted; and passes of PCA-AN and RPCA-OM work on a few "
        "coordinates of the data. Claims are judged by other programs, '10 passes': each does as "
        "many, and in each of them all images that count take part in the eigenproblems that the "
        "paper states.",
        "PCA-AN and RPCA-OM solve the same eigenproblem in each pass. The printed factor of "
        "sixteen to a hundred between them must lie in the programs, such as an eigenproblem of "
        "all features in one of them.",
        "On AT&T a pass of PCA-AN takes 0.06 seconds here, and 8.14 / 50 = 0.16 in print; one of "
        "GLRAM or R2DPCA 0.02, and 0.14 or 0.17 in print. So the paper's programs for images were "
        "the slower ones, which is why it finds PCA-AN as fast as R2DPCA, and we do not.",
        "The paper does not say whether the images were occluded; here they are not. See "
        "pcaan_table_2 for FEI and FERET.",
    ],
)
