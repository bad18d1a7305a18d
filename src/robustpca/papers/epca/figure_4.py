"""How many samples EPCA raises, against the dimension of the subspace."""

from robustpca import EPCA
from robustpca.bench.declarations import Table, by_level
from robustpca.papers.epca import PAPER, table_1
from robustpca.papers.epca.scores import n_active, share_active

table = Table(
    name="epca_figure_4",
    title="EPCA, Figure 4: number of active samples against the dimension",
    datasets={name: table_1.table.datasets[name] for name in ("YALE", "ORL")},
    corruption=table_1.table.corruption,
    methods={
        "sigma = 2^-20": EPCA(sigma=2.0**-20),
        "sigma by default": EPCA(),
        "sigma = 2^20": EPCA(sigma=2.0**20),
    },
    vary={
        "n_components": by_level(
            quick=[10, 40, 70], default=list(range(10, 101, 10)), full=list(range(5, 121, 5))
        )
    },
    score={"active samples": n_active, "share of active samples": share_active},
    x="n_components",
    senses={"active samples": "neither", "share of active samples": "neither"},
    seeds=by_level(quick=1, default=10, full=20),
    paper=PAPER,
    unclaimed="The paper shows the figure and concludes nothing from it.",
    notes=[
        "The published values are only in a picture, and the paper does not state sigma; "
        "three are shown.",
        "Active are the samples whose weight is raised above 1; all others count as well. "
        "Their number falls to 2 once some sample is fitted almost exactly and takes nearly "
        "all of the weight: with 40 components on YALE, and with 70 on ORL except for the "
        "largest sigma.",
    ],
)
