"""The sigma-loss of one number, between its absolute value and its square."""

from robustpca.bench.declarations import Claim, Source, Table, by_level
from robustpca.papers.epca import PAPER
from robustpca.papers.epca.estimators import LossAt
from robustpca.papers.epca.scores import loss_value
from robustpca.parts.losses import L21Loss, SigmaLoss, SquaredLoss

table = Table(
    name="epca_figure_2",
    title="EPCA, Figure 2: the sigma-loss",
    datasets={"one number": Source("digits", n_samples=1)},
    methods={
        "absolute value": LossAt(L21Loss()),
        "sigma = 0.01": LossAt(SigmaLoss(0.01)),
        "sigma = 0.1": LossAt(SigmaLoss(0.1)),
        "sigma = 1": LossAt(SigmaLoss(1.0)),
        "sigma = 10": LossAt(SigmaLoss(10.0)),
        "sigma = 100": LossAt(SigmaLoss(100.0)),
        "square": LossAt(SquaredLoss()),
    },
    vary={
        "residual": by_level(
            quick=[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0],
            default=[step / 4 for step in range(-12, 13)],
            full=[step / 10 for step in range(-30, 31)],
        )
    },
    score=loss_value,
    x="residual",
    seeds=1,
    deterministic=True,
    paper=PAPER,
    claims=[
        Claim(
            text="The sigma-loss of a large residual lies below its square.",
            section="III-C, on Fig. 2",
            method="sigma = 1",
            against=["square"],
            where={"residual": [-3.0, -2.0, 2.0, 3.0]},
        ),
        Claim(
            text="The sigma-loss of a large residual lies above its absolute value.",
            section="III-C, on Fig. 2",
            method="sigma = 1",
            against=["absolute value"],
            where={"residual": [-3.0, -2.0, 2.0, 3.0]},
            better="higher",
        ),
        Claim(
            text="With a tiny sigma the sigma-loss is the absolute value.",
            section="III-C, insight 2",
            kind="similar",
            margin=0.02,
            method="sigma = 0.01",
            against=["absolute value"],
            where={"residual": [-3.0, -2.0, 2.0, 3.0]},
        ),
        Claim(
            text="With a large sigma the sigma-loss is the square.",
            section="III-C, insight 3",
            kind="similar",
            margin=0.02,
            method="sigma = 100",
            against=["square"],
            where={"residual": [-3.0, -2.0, 2.0, 3.0]},
        ),
    ],
    notes=[
        "Nothing is fitted and no data are used: the curves are those of the losses that "
        "EPCA, PCA-OM and PCA take.",
        "The paper does not print the values of sigma that it draws.",
        "All curves meet at residuals of -1, 0 and 1. From there to infinity the loss grows with "
        "sigma, from the absolute value to the square.",
    ],
)
