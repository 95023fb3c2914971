"""Estimators with the scikit-learn API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import names_of

if TYPE_CHECKING:
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
    from hilboost.estimators.sparse_kernel import SparseKernelClassifier, SparseKernelRidge
    from hilboost.estimators.subset_ensembles import (
        AdaBoostKernelClassifier,
        AveragedKernelRidge,
        BayesianCommitteeMachine,
        ConvexKernelRidge,
        MixtureOfKernelExperts,
        StackedKernelRidge,
    )
    from hilboost.estimators.survival import BoostingSurvival

# Imported on first use: an estimator does not need the code of the others.
_MODULES = {
    "classifier": "BoostingClassifier",
    "kernel_classifier": "KernelBoostingClassifier",
    "kernel_regressor": "KernelBoostingRegressor",
    "output_kernel_boosting": "OutputKernelBoostingRegressor",
    "output_kernel_forest": "OutputKernelForestRegressor OutputKernelTreeRegressor",
    "ranker": "BoostingRanker",
    "regressor": "BoostingRegressor",
    "sparse_kernel": "SparseKernelClassifier SparseKernelRidge",
    "subset_ensembles": (
        "AdaBoostKernelClassifier AveragedKernelRidge BayesianCommitteeMachine "
        "ConvexKernelRidge MixtureOfKernelExperts StackedKernelRidge"
    ),
    "survival": "BoostingSurvival",
}

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

__getattr__ = names_of(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
