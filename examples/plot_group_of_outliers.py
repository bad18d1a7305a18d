"""
Outliers that form a group
==========================

Scattered outliers pull in all directions, and their pulls cancel. A group pulls in one. Most robust
methods follow it, some with a warning; one does not.
"""

# %%
# A cloud along one direction, and a sixth of the rows in a group far off it.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from robustpca import L1PCA, PCAAN, PCAOM

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2)) * [4, 0.6]
X[:50] = [6, 14] + 0.5 * rng.normal(size=(50, 2))

# %%
# The first component of each method, drawn through its centre. Methods that a group has captured
# say so in a warning, which names the method to use; here the warnings are counted.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, model in zip(axes, [PCA(1), L1PCA(1), PCAOM(1), PCAAN(1)], strict=True):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    angle = np.degrees(np.arccos(abs(model.components_[0, 0])))
    ax.scatter(*X.T, s=6, color=np.where(np.arange(300) < 50, "tab:red", "tab:blue"))
    ax.axline(model.mean_, model.mean_ + model.components_[0], color="black")
    ax.set(title=f"{type(model).__name__}: {angle:.0f}° off", aspect="equal")
    print(f"{type(model).__name__}: {angle:.0f} degrees off, {len(caught)} warnings")
plt.show()

# %%
# :class:`~robustpca.PCAAN` starts from the half of the rows that is least outlying in many
# directions, and so never sees the group. The guide has the figures for more kinds of outliers.
