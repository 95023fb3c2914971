"""One small estimator of every family, and data that all of them take."""

import numpy as np

import hilboost

GIVEN = {"kernel": "gaussian", "regularization": 0.1}

REGRESSORS = [
    hilboost.BoostingRegressor(learner="tree", n_estimators=20, learning_rate=0.2, random_state=0),
    hilboost.KernelBoostingRegressor(random_state=0, **GIVEN),
    hilboost.SparseKernelRidge(n_basis=40, random_state=0, **GIVEN),
    hilboost.OutputKernelBoostingRegressor(
        learner="ok3", n_estimators=10, learning_rate=0.4, random_state=0
    ),
]
CLASSIFIERS = [
    hilboost.BoostingClassifier(n_estimators=15, learning_rate=0.2, random_state=0),
    hilboost.KernelBoostingClassifier(random_state=0, **GIVEN),
    hilboost.SparseKernelClassifier(n_basis=30, random_state=0, **GIVEN),
]
FAMILIES = [*REGRESSORS, *CLASSIFIERS]

_RNG = np.random.default_rng(0)
X = _RNG.uniform(-1, 1, size=(160, 3))
Y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * _RNG.normal(size=len(X))
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.7, 0.7])]
WEIGHT = _RNG.integers(1, 4, size=len(X)).astype(float)


def name(model):
    """For test ids."""
    return type(model).__name__


def target(model):
    """What this estimator learns."""
    return LABELS if hasattr(model, "class_weight") else Y
