"""As user_code.py, with scikit-learn, which has no types: mypy alone reads it strictly."""

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

import robustpca
from robustpca.parts import HuberLoss

Matrix = npt.NDArray[np.float64]


def searched(X: Matrix) -> GridSearchCV:
    steps = make_pipeline(RobustScaler(), robustpca.ReweightedPCA(2, loss=HuberLoss(1.0)))
    return GridSearchCV(steps, {"reweightedpca__n_components": [1, 2, 3]}).fit(X)
