"""
Images with occlusions
======================

Sixty pictures of one scene in changing light; in each, something is in the way somewhere else. What
does the scene look like?
"""

# %%
# The scene is one of scikit-learn's photographs, in grey. Light that falls from different sides
# makes the pictures a family of few dimensions.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA

from robustpca import RPCA
from robustpca.datasets import occlude_blocks
from robustpca.plot import image_rows

photograph = load_sample_image("china.jpg").mean(axis=2) / 255
scene = photograph[:420, :636].reshape(70, 6, 106, 6).mean(axis=(1, 3))
height, width = scene.shape
down, across = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
rng = np.random.default_rng(0)
light = 0.7 + 0.25 * np.einsum(
    "ik,khw->ihw", rng.uniform(-1, 1, size=(60, 2)), np.stack([down, across])
)
clean = (light * scene).reshape(60, -1)
X, covered = occlude_blocks(clean, (height, width), 0.08, random_state=0)

# %%
# A block of 8 % of each picture is covered. Plain PCA smears the blocks over all pictures;
# :class:`~robustpca.RPCA` takes them out and restores what is behind.

plain = PCA(3).fit(X)
smeared = plain.inverse_transform(plain.transform(X))
model = RPCA().fit(X)
for name, restored in [("PCA", smeared), ("RPCA", model.low_rank_)]:
    error = np.linalg.norm((restored - clean)[covered]) / np.linalg.norm(clean[covered])
    print(f"{name}: {error:.1%} off behind the blocks")

some = [0, 20, 40]
image_rows(
    [X[some], smeared[some], model.low_rank_[some], clean[some]],
    (height, width),
    ["given", "plain PCA", "RPCA", "truth"],
)
plt.show()
