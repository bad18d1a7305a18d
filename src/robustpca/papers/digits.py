"""The digits of scikit-learn with wrong pixels: needs no data, so it always runs."""

from functools import partial

from sklearn.decomposition import PCA

from robustpca import EPCA, L1PCA, PCAAN, PCAOM, R1PCA
from robustpca.bench.declarations import Source, Table, best_of, by_level
from robustpca.datasets import reset_entries
from robustpca.metrics import reconstruction_error

table = Table(
    name="digits",
    title="Digits: reconstruction error with wrong pixels, the same in all wrong images or not",
    datasets={
        "digits": by_level(
            quick=Source("digits", n_samples=500), default=Source("digits"), full=Source("digits")
        )
    },
    corruption={
        "shared": partial(reset_entries, samples=0.2, features=0.2, shared=True),
        "scattered": partial(reset_entries, samples=0.2, features=0.2, shared=False),
    },
    methods={
        "PCA": PCA(svd_solver="full"),
        "L1PCA": L1PCA(),
        "R1PCA": R1PCA(),
        "PCA-OM": PCAOM(),
        "PCA-AN": PCAAN(),
        "EPCA": best_of(
            EPCA(),
            sigma=by_level(
                quick=[1.0, 100.0],
                default=[0.1, 1.0, 10.0, 100.0, 1000.0],
                full=[10.0**power for power in range(-4, 7)],
            ),
        ),
    },
    vary={"n_components": [5, 10, 20]},
    score=reconstruction_error,
    seeds=by_level(quick=2, default=10, full=50),
    unclaimed="It belongs to no paper: it shows the methods on data that everybody has.",
)
