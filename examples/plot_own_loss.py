r"""
Write your own loss
===================

A reweighted method is a loss: it turns the squared residual :math:`t` of a row into a cost
:math:`\psi(t)`, and :math:`\psi'(t)` is the weight of the row in the next pass. Any concave,
non-decreasing :math:`\psi` makes every pass lower the objective.
"""

# %%
# Two methods make a loss. Welsch's is bounded: beyond a few times the scale nothing more is
# charged.

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from robustpca import ReweightedPCA
from robustpca.metrics import principal_angles
from robustpca.parts import HuberLoss, L21Loss, Loss, SquaredLoss


@dataclass(frozen=True)
class WelschLoss(Loss):
    """Bounded: rows beyond a few times the scale count for almost nothing."""

    scale: float = 1.0

    def values(self, residuals):
        """Cost of squared residuals."""
        return -(self.scale**2) * np.expm1(-residuals / self.scale**2)

    def weights(self, residuals):
        """Its derivative."""
        return np.exp(-residuals / self.scale**2)


# %%
# All losses go where a loss goes. A plane in ten dimensions, a fifth of the rows far off it:

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 10)) * np.r_[5, 3, np.full(8, 0.3)]
X[:100] += 15 * rng.normal(size=(100, 10))
losses = [SquaredLoss(), HuberLoss(cutoff=1.0), L21Loss(), WelschLoss(3.0)]

residuals = np.linspace(0, 8, 200)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for loss in losses:
    model = ReweightedPCA(2, loss=loss).fit(X)
    angle = np.degrees(principal_angles(model.components_, np.eye(2, 10)).max())
    name = type(loss).__name__
    left.plot(residuals, loss.values(residuals**2), label=name)
    right.plot(residuals, loss.weights(residuals**2), label=f"{name}: {angle:.1f}° off")
left.set(xlabel="distance of a row", ylabel="cost", ylim=(0, 20))
right.set(xlabel="distance of a row", ylabel="weight", ylim=(0, 1.6))
left.legend()
right.legend(title="planted plane")
plt.show()
