"""Estimators with the scikit-learn API."""

from hilboost.estimators.classifier import BoostingClassifier
from hilboost.estimators.kernel_classifier import KernelBoostingClassifier
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.output_kernel_boosting import OutputKernelBoostingRegressor
from hilboost.estimators.output_kernel_forest import (
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.estimators.ranker import BoostingRanker
from hilboost.estimators.regressor import BoostingRegressor
from hilboost.estimators.sparse_kernel_classifier import SparseKernelClassifier
from hilboost.estimators.sparse_kernel_ridge import SparseKernelRidge
from hilboost.estimators.subset_ensembles import (
    AdaBoostKernelClassifier,
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    ConvexKernelRidge,
    MixtureOfKernelExperts,
    StackedKernelRidge,
)
from hilboost.estimators.survival import BoostingSurvival

__all__ = [
    "AdaBoostKernelClassifier",
    "AveragedKernelRidge",
    "BayesianCommitteeMachine",
    "BoostingClassifier",
    "BoostingRanker",
    "BoostingRegressor",
    "BoostingSurvival",
    "ConvexKernelRidge",
    "KernelBoostingClassifier",
    "KernelBoostingRegressor",
    "MixtureOfKernelExperts",
    "OutputKernelBoostingRegressor",
    "OutputKernelForestRegressor",
    "OutputKernelTreeRegressor",
    "SparseKernelClassifier",
    "SparseKernelRidge",
    "StackedKernelRidge",
]
