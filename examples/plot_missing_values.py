"""
Fill in missing values
======================

A third of the cells are missing, and some of those that are there are wrong. What belongs in the
gaps?
"""

# %%
# A table of 400 x 30 with five common causes and a little noise. Three cells in a hundred are
# wrong.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

from robustpca import RPCA

rng = np.random.default_rng(0)
truth = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 30))
X = truth + 0.1 * rng.normal(size=truth.shape)
X[rng.random(X.shape) < 0.03] += 20
missing = rng.random(X.shape) < 0.33
X[missing] = np.nan

# %%
# :class:`~robustpca.RPCA` takes NaN as it is. ``low_rank_`` is the restored table, wrong cells
# included; a filled-in table for a model that needs one is ``np.where(missing, low_rank_, X)``.

filled = {
    "column medians": SimpleImputer(strategy="median").fit_transform(X),
    "five nearest rows": KNNImputer().fit_transform(X),
    "RPCA": RPCA().fit(X).low_rank_,
}

# %%
# Each value filled in, against the truth.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, filled.items(), strict=True):
    error = np.sqrt(np.mean((values - truth)[missing] ** 2) / np.mean(truth[missing] ** 2))
    ax.plot(truth[missing], values[missing], ".", markersize=2)
    ax.axline((0, 0), slope=1, color="black", linewidth=0.8)
    ax.set(xlabel="truth", title=f"{name}\noff by {error:.0%}")
    print(f"{name}: off by {error:.0%}")
axes[0].set_ylabel("filled in")
plt.show()
