"""Errors of PCA-AN on occluded faces, against the share of its active samples."""

from robustpca import PCAAN
from robustpca.bench.declarations import Source, Table, by_level
from robustpca.bench.scores.errors import (
    mean_error,
    mean_error_observed,
    unit_pixels,
    weighted_error,
    weighted_error_observed,
)
from robustpca.bench.tables import pcaan_table_2

SHARES = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]

table = Table(
    name="pcaan_figure_2",
    title="PCA-AN, Figure 2: error against the share of active samples",
    datasets={
        "AT&T": pcaan_table_2.table.datasets["AT&T"],
        "FERET": by_level(
            quick=Source("feret", size=(40, 40), n_samples=700),
            default=pcaan_table_2.table.datasets["FERET"],
            full=pcaan_table_2.table.datasets["FERET"],
        ),
    },
    prepare=unit_pixels,
    corruption=pcaan_table_2.table.corruption["0.2"],
    methods={"PCA-AN": PCAAN(90)},
    vary={"n_active": by_level(quick=SHARES[::3], default=SHARES, full=SHARES)},
    score={
        "error to the observed, own weights": weighted_error_observed,
        "error to the observed": mean_error_observed,
        "error, own weights": weighted_error,
        "error": mean_error,
    },
    x="n_active",
    seeds=by_level(quick=1, default=10, full=50),
    paper=pcaan_table_2.table.paper,
    notes=[],
)
