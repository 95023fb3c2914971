"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilboost import BoostingClassifier, BoostingRegressor

pytestmark = pytest.mark.filterwarnings("ignore")


@parametrize_with_checks([BoostingRegressor(n_estimators=20), BoostingClassifier(n_estimators=20)])
def test_estimators_keep_the_rules_of_scikit_learn(estimator, check):
    assert check(estimator) is None
