"""
A pipeline with classification and GridSearchCV
===============================================

Every method is a scikit-learn transformer. It goes into a pipeline, and its parameters into a grid.
"""

# %%
# Digits from a scanner that was broken for a while: a twelfth of the training images are bright
# noise, which nobody has removed. The test images are clean.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from robustpca import PCAAN, AngularEmbedding

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
rng = np.random.default_rng(0)
broken = rng.choice(len(train), size=len(train) // 12, replace=False)
train[broken] = rng.uniform(0, 160, size=(len(broken), 64))

# %%
# The reducer is a step like any other: the grid varies which one it is, and its size.

pipeline = Pipeline(
    [
        ("reduce", PCA()),
        ("scale", StandardScaler()),
        ("classify", LogisticRegression(max_iter=500)),
    ]
)
sizes = [5, 10, 15, 20]
grid = {"reduce": [PCA(), PCAAN(), AngularEmbedding()], "reduce__n_components": sizes}
search = GridSearchCV(pipeline, grid, cv=3).fit(train, y_train)
print(f"best: {search.best_params_}")
print(f"accuracy on clean test images: {search.score(test, y_test):.3f}")

# %%
# Accuracy on the clean test images, method by method.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for reducer in grid["reduce"]:
    scores = []
    for size in sizes:
        pipeline.set_params(reduce=reducer, reduce__n_components=size)
        scores.append(pipeline.fit(train, y_train).score(test, y_test))
    ax.plot(sizes, scores, "o-", label=type(reducer).__name__)
ax.set(xlabel="components", ylabel="accuracy", xticks=sizes)
ax.legend()
plt.show()
