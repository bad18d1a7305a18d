"""
Clusters on a graph
===================

PCA is linear and mixes groups that lie on curved sheets. A graph of neighbours knows which samples
belong together.
"""

# %%
# Handwritten digits, 8 x 8 pixels, without looking at their labels.

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score

from robustpca import GLPCA, NCut

X, y = load_digits(n_class=6, return_X_y=True)

# %%
# :class:`~robustpca.GLPCA` fits the data and keeps neighbours close; ``beta`` divides the
# objective between both. :class:`~robustpca.NCut` looks at the graph alone and cuts it into
# clusters.

flat = PCA(6).fit_transform(X)
smooth = GLPCA(6, beta=0.95).fit(X).embedding_
clusters = {
    "PCA, then k-means": KMeans(6, n_init=5, random_state=0).fit_predict(flat),
    "GLPCA, then k-means": KMeans(6, n_init=5, random_state=0).fit_predict(smooth),
    "NCut": NCut(6, random_state=0).fit_predict(X),
}
for name, found in clusters.items():
    print(f"{name}: agrees with the labels by {normalized_mutual_info_score(y, found):.2f}")

# %%
# The colours are the true digits.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, name, Z in [(axes[0], "PCA", flat), (axes[1], "GLPCA", smooth)]:
    points = ax.scatter(Z[:, 0], Z[:, 1], c=y, s=5, cmap="tab10", vmax=9)
    ax.set(title=name, xticks=[], yticks=[])
axes[1].legend(*points.legend_elements(num=None), title="digit")
plt.show()
