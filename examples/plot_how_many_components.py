"""
How many components?
====================

Outliers add variance, so a scree plot of plain PCA counts them as components. Three ways to find
the number that the data have, with bad rows present.
"""

# %%
# A table of rank 4 with a tenth of the rows replaced.

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV

from robustpca import PCAAN
from robustpca.datasets import make_subspace_with_outliers
from robustpca.plot import ScreeDisplay

X = make_subspace_with_outliers(300, 20, 4, outliers=0.1, random_state=0).X

# %%
# **Ask for it.** Every method takes ``n_components="auto"``: blocks of entries are predicted from
# the others, and a component counts if it improves the predictions.

model = PCAAN(n_components="auto").fit(X)
print(f"PCAAN(n_components='auto') finds {model.n_components_}")

# %%
# **Search for it.** ``score`` is the error of entries predicted from the other entries of their
# row, made for grid search: too few components miss structure, too many fit noise.

search = GridSearchCV(PCAAN(), {"n_components": range(1, 9)}).fit(X)
print(f"GridSearchCV finds {search.best_params_['n_components']}")

# %%
# **Look at it.** The variances of the robust fit have a gap after the fourth; those of plain PCA
# have the bad rows in them.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ScreeDisplay.from_estimator(PCAAN(12).fit(X), X, ax=axes[0])
axes[0].set_title("variance along the components")
axes[1].plot(range(1, 9), search.cv_results_["mean_test_score"], "o-")
axes[1].axvline(4, color="grey", linestyle=":")
axes[1].set(xlabel="components", ylabel="score", title="grid search")
plt.show()
