"""Estimators with the scikit-learn API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import by_word, names_of

if TYPE_CHECKING:
    from hilboost.estimators.classifier import BoostingClassifier as BoostingClassifier
    from hilboost.estimators.kernel_classifier import (
        KernelBoostingClassifier as KernelBoostingClassifier,
    )
    from hilboost.estimators.kernel_regressor import (
        KernelBoostingRegressor as KernelBoostingRegressor,
    )
    from hilboost.estimators.mixture_of_experts import (
        MixtureOfKernelExperts as MixtureOfKernelExperts,
    )
    from hilboost.estimators.output_kernel_boosting import (
        OutputKernelBoostingRegressor as OutputKernelBoostingRegressor,
    )
    from hilboost.estimators.output_kernel_forest import (
        OutputKernelForestRegressor as OutputKernelForestRegressor,
    )
    from hilboost.estimators.output_kernel_forest import (
        OutputKernelTreeRegressor as OutputKernelTreeRegressor,
    )
    from hilboost.estimators.ranker import BoostingRanker as BoostingRanker
    from hilboost.estimators.regressor import BoostingRegressor as BoostingRegressor
    from hilboost.estimators.sparse_kernel import SparseKernelClassifier as SparseKernelClassifier
    from hilboost.estimators.sparse_kernel import SparseKernelRidge as SparseKernelRidge
    from hilboost.estimators.stacked_kernel_ridge import StackedKernelRidge as StackedKernelRidge
    from hilboost.estimators.subset_ensembles import (
        AdaBoostKernelClassifier as AdaBoostKernelClassifier,
    )
    from hilboost.estimators.subset_ensembles import AveragedKernelRidge as AveragedKernelRidge
    from hilboost.estimators.subset_ensembles import (
        BayesianCommitteeMachine as BayesianCommitteeMachine,
    )
    from hilboost.estimators.subset_ensembles import ConvexKernelRidge as ConvexKernelRidge
    from hilboost.estimators.survival import BoostingSurvival as BoostingSurvival

# Imported on first use: an estimator does not need the code of the others.
_MODULES = {
    "classifier": "BoostingClassifier",
    "kernel_classifier": "KernelBoostingClassifier",
    "kernel_regressor": "KernelBoostingRegressor",
    "mixture_of_experts": "MixtureOfKernelExperts",
    "output_kernel_boosting": "OutputKernelBoostingRegressor",
    "output_kernel_forest": "OutputKernelForestRegressor OutputKernelTreeRegressor",
    "ranker": "BoostingRanker",
    "regressor": "BoostingRegressor",
    "sparse_kernel": "SparseKernelClassifier SparseKernelRidge",
    "stacked_kernel_ridge": "StackedKernelRidge",
    "subset_ensembles": """
        AdaBoostKernelClassifier AveragedKernelRidge BayesianCommitteeMachine ConvexKernelRidge
    """,
    "survival": "BoostingSurvival",
}

__all__ = sorted(by_word(_MODULES))

__getattr__ = names_of(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
