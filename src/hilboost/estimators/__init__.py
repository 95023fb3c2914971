"""The scikit-learn shell."""

from hilboost.estimators.classifier import BoostingClassifier
from hilboost.estimators.kernel_classifier import KernelBoostingClassifier
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.regressor import BoostingRegressor

__all__ = [
    "BoostingClassifier",
    "BoostingRegressor",
    "KernelBoostingClassifier",
    "KernelBoostingRegressor",
]
