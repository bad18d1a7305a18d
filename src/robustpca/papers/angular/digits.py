"""The protocol of Table 2 on the digits of scikit-learn: needs no data, so it always runs."""

from functools import partial

from robustpca.bench.declarations import Source, Table, by_level
from robustpca.papers.angular import PAPER, table_2
from robustpca.papers.angular.samples import split

FEW = partial(split, source=Source("digits", n_samples=600), unit_range=True)
ALL = partial(split, source=Source("digits"), unit_range=True)

table = Table(
    name="angular_digits",
    title="AE, protocol of Table 2 on digits: mean accuracy (%) on 10, 20, ... components",
    datasets={"digits": by_level(quick=FEW, default=ALL, full=ALL)},
    methods=table_2.table.methods,
    vary={"n_components": by_level(quick=[20], default=[60], full=[60])},
    score=table_2.table.score,
    seeds=by_level(quick=1, default=10, full=20),
    better="higher",
    paper=PAPER,
    unclaimed="The paper says nothing about such data.",
    notes=[
        "Not in the paper: digits have 64 features, so that components go up to 60, and no "
        "outliers were added.",
    ],
)
