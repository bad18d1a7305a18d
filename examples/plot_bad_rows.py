"""
Which rows of my table are bad?
===============================

In a tenth of the records below, the values slipped one column to the right, as happens when a line
is pasted with one separator too many. Each single value is plausible; the records are not.
"""

# %%
# The records are those of scikit-learn's breast-cancer table: 569 rows, 30 measurements.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from robustpca import PCAAN
from robustpca.plot import OutlierMapDisplay

X = load_breast_cancer().data
slipped = np.random.default_rng(0).choice(len(X), size=57, replace=False)
X[slipped] = np.roll(X[slipped], 1, axis=1)

# %%
# :class:`~robustpca.PCAAN` leaves out the rows that fit worst while it fits. The units of the
# columns differ, so they are scaled first, by medians and quartiles that bad rows cannot move.

robust = make_pipeline(RobustScaler(), PCAAN(3)).fit(X)
plain = make_pipeline(RobustScaler(), PCA(3)).fit(X)
flags = robust.predict(X) == -1
print(f"{flags.sum()} of {len(X)} rows are flagged; {flags[slipped].sum()} of the 57 slipped ones")

# %%
# The outlier map has two distances for each row: within the subspace, and away from it. Plain PCA
# turned its components towards the bad rows, so that they look fine; the robust fit did not.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, model, name in [(axes[0], plain, "plain PCA"), (axes[1], robust, "PCAAN")]:
    display = OutlierMapDisplay.from_estimator(model, X, n_labels=0, ax=ax)
    found = np.mean(display.is_outlier[slipped])
    ax.scatter(
        display.score_distances[slipped],
        display.orthogonal_distances[slipped],
        s=60,
        facecolors="none",
        edgecolors="black",
        linewidths=0.8,
    )
    ax.set_title(f"{name}: finds {found:.0%} of the slipped rows (ringed)")
plt.show()

# %%
# From a file the same is one command, which also says which columns make a row stand out:
# ``robustpca rows mine.csv -o flagged``.
