"""The scikit-learn shell."""

from hilboost.estimators.classifier import BoostingClassifier
from hilboost.estimators.kernel_classifier import KernelBoostingClassifier
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.regressor import BoostingRegressor
from hilboost.estimators.sparse_kernel_classifier import SparseKernelClassifier
from hilboost.estimators.sparse_kernel_ridge import SparseKernelRidge

__all__ = [
    "BoostingClassifier",
    "BoostingRegressor",
    "KernelBoostingClassifier",
    "KernelBoostingRegressor",
    "SparseKernelClassifier",
    "SparseKernelRidge",
]
