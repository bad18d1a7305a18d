"""Whether the objective of EPCA falls in every pass."""

from robustpca import EPCA
from robustpca.bench.declarations import Claim, Table, by_level
from robustpca.papers.epca import PAPER, table_1
from robustpca.papers.scores import largest_rise, passes

table = Table(
    name="epca_algorithm_2",
    title="EPCA, Theorem 2: largest rise of the objective in a pass",
    datasets={name: table_1.table.datasets[name] for name in ("YALE", "ORL")},
    corruption=table_1.table.corruption,
    methods={
        "sigma = 2^-20": EPCA(sigma=2.0**-20),
        "sigma by default": EPCA(),
        "sigma = 2^20": EPCA(sigma=2.0**20),
    },
    vary={"n_components": by_level(quick=[10], default=[10, 30, 50], full=[10, 30, 50])},
    score={"largest rise": largest_rise, "passes": passes},
    senses={"passes": "neither"},
    seeds=by_level(quick=1, default=10, full=20),
    paper=PAPER,
    claims=[
        Claim(
            text=f"Every pass of EPCA lowers its objective, {name}.",
            section="III-C, Theorem 2, proved in V-B",
            kind="always",
            bound=1e-9,
            method=name,
        )
        for name in ("sigma = 2^-20", "sigma by default", "sigma = 2^20")
    ],
    notes=[
        "Largest rise of the objective from one pass to the next, as a share of its first value; "
        "negative if it always falls. 1e-9 is allowed for rounding.",
        "Theorem 2 is about the loss with fixed weights. The weights of EPCA minimise the same "
        "objective in turn, so that it falls as well.",
    ],
)
