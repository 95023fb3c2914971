"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.kernels import Gaussian
from hilboost.outputs import KernelOutput

pytestmark = pytest.mark.filterwarnings("ignore")

SHORT = {"n_estimators": 40, "learning_rate": 0.1}
GIVEN = {"kernel": "matern52", "regularization": 0.1}


def expected_to_fail(estimator):
    if getattr(estimator, "kernel", None) != "auto":
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": "leave-one-out of repeated rows is another"
        " error than that of weighted rows, and so is the choice of kernel and regularization"
    }


@parametrize_with_checks(
    [
        BoostingRegressor(n_estimators=20),
        BoostingClassifier(n_estimators=20),
        KernelBoostingRegressor(),
        KernelBoostingClassifier(),
        KernelBoostingRegressor(stages="sparse", n_basis=40, n_estimators=3, **GIVEN),
        KernelBoostingClassifier("log_loss", stages="block", n_basis=50, **GIVEN),
        OutputKernelBoostingRegressor(**SHORT),
        OutputKernelBoostingRegressor(KernelOutput(Gaussian(1.0), tolerance=0), **SHORT),
        OutputKernelBoostingRegressor(learner="ok3", **SHORT),
        OutputKernelBoostingRegressor(learner=KernelBoostingRegressor(**GIVEN)),
        OutputKernelForestRegressor(n_estimators=10),
        OutputKernelTreeRegressor(),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_estimators_keep_the_rules_of_scikit_learn(estimator, check):
    assert check(estimator) is None
