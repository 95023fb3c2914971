"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore")

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
    ],
    expected_failed_checks=expected_to_fail,
)
def test_estimators_keep_the_rules_of_scikit_learn(estimator, check):
    assert check(estimator) is None
