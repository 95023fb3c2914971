"""The scikit-learn shell: check the input once, translate parameters into parts."""

from hilboost.estimators.classifier import BoostingClassifier
from hilboost.estimators.regressor import BoostingRegressor

__all__ = ["BoostingClassifier", "BoostingRegressor"]
