"""The line that says what a fitted model is."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from hilboost import (
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    SparseKernelRidge,
)
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0] + X[:, 1] ** 2
KERNEL = {"kernel": Gaussian(1.0), "regularization": 0.1, "n_estimators": 2, "random_state": 0}
FEW = {"n_estimators": 2, "random_state": 0}


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (KernelBoostingRegressor(**KERNEL), Y, "kernel machine (Gaussian kernel, 60 centers), 1 s"),
        (
            KernelBoostingRegressor(**KERNEL, stages="sparse", n_basis=5),
            Y,
            "sparse kernel machine (Gaussian kernel, ",
        ),
        (
            KernelBoostingClassifier(**KERNEL),
            Y > 0.5,
            "kernel machine (Gaussian kernel, 60 centers), 1 stage",
        ),
        (
            OutputKernelBoostingRegressor("linear", learner="kernel", **FEW),
            np.column_stack([Y, -Y]),
            "kernel machine (60 centers), 1 stage",
        ),
        (
            OutputKernelBoostingRegressor("linear", learner="ok3", **FEW),
            np.column_stack([Y, -Y]),
            "trees, 2 stages",
        ),
        (
            SparseKernelRidge(kernel=Gaussian(1.0), regularization=0.1, n_basis=5, random_state=0),
            Y,
            "sparse kernel machine (Gaussian kernel, 5 centers), 1 stage",
        ),
        (BoostingRegressor(learner="tree", **FEW), Y, "trees, 2 stages"),
        (BoostingRegressor(learner=Ridge(), **FEW), Y, "Ridge, 2 stages"),
        (BoostingRegressor(learner="linear", **FEW), Y, "linear function, 2 stages"),
    ],
)
def test_the_learner_is_named_in_words(model, y, said):
    assert str(model.fit(X, y)).rpartition("\n")[2].startswith(said)
