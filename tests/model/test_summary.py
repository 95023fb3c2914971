"""The line that says what a fitted model is."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
    SparseKernelRidge,
    load,
)
from hilboost.kernels import Gaussian
from hilboost.learners.tree import TreeLearner

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0] + X[:, 1] ** 2
KERNEL = {"kernel": Gaussian(1.0), "regularization": 0.1, "n_estimators": 2, "random_state": 0}
FEW = {"n_estimators": 2, "random_state": 0}


class Stumps(TreeLearner):
    name = "stumps"

    def __init__(self):
        super().__init__(max_leaf_nodes=2)


def test_reports_name_the_loss_of_a_tree():
    model = OutputKernelTreeRegressor("linear", random_state=0).fit(X, np.column_stack([Y, -Y]))
    assert model.report(X, np.column_stack([Y, -Y])).facts["model"]["loss"] == "squared_error"


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
        (BoostingRegressor(early_stopping=False, **FEW), Y, "trees, 2 stages"),
        (BoostingRegressor(learner=Ridge(), **FEW), Y, "Ridge, 2 stages"),
        (BoostingRegressor(learner="linear", **FEW), Y, "linear function, 2 stages"),
        (BoostingRegressor(learner=Stumps(), **FEW), Y, "stumps, 2 stages"),
        (OutputKernelTreeRegressor("linear", random_state=0), np.column_stack([Y, -Y]), "1 tree"),
        (OutputKernelForestRegressor("linear", **FEW), np.column_stack([Y, -Y]), "2 trees"),
    ],
)
def test_the_learner_is_named_in_words(model, y, said):
    assert str(model.fit(X, y)).rpartition("\n")[2].startswith(said)


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (BoostingRegressor(learner="tree", **FEW), Y, "trees × 4 folds"),
        (BoostingRegressor(learner="tree", cv_folds=1, **FEW), Y, "trees, "),
        (BoostingRegressor(learner="tree", **FEW), np.column_stack([Y, -Y]), "trees × 4 folds"),
        (BoostingRegressor(multi_output="shared", learner="tree", **FEW), Y, "trees × 4 folds"),
        (BoostingClassifier(learner="tree", **FEW), np.digitize(Y, [0, 1]), "trees × 4 folds"),
        (BoostingRegressor(n_estimators=40, random_state=0), Y, "4 folds"),
    ],
)
def test_a_model_of_a_file_is_described_as_before(model, y, said, tmp_path):
    many, labels = (
        np.tile(X, (5, 1)) + RNG.normal(0, 0.01, size=(300, 2)),
        np.repeat([y], 5, axis=0),
    )
    model.fit(many, labels.reshape(300, *np.shape(y)[1:]))
    model.save(tmp_path / "model", training_data=True)
    assert said in str(model)
    assert str(load(tmp_path / "model")) == str(model)
