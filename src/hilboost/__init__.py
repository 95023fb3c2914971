"""Gradient boosting in Hilbert spaces.

Functional gradient descent with interchangeable losses, base learners and output spaces.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilboost.core.adaptive_loss import AdaptiveLoss
    from hilboost.core.gradients import Gradients
    from hilboost.core.group_loss import GroupLoss
    from hilboost.core.leaf_loss import LeafLoss
    from hilboost.core.loss import Loss
    from hilboost.core.metric import Metric
    from hilboost.estimators import (
        AdaBoostKernelClassifier,
        AveragedKernelRidge,
        BayesianCommitteeMachine,
        BoostingClassifier,
        BoostingRanker,
        BoostingRegressor,
        BoostingSurvival,
        ConvexKernelRidge,
        KernelBoostingClassifier,
        KernelBoostingRegressor,
        MixtureOfKernelExperts,
        OutputKernelBoostingRegressor,
        OutputKernelForestRegressor,
        OutputKernelTreeRegressor,
        SparseKernelClassifier,
        SparseKernelRidge,
        StackedKernelRidge,
    )
    from hilboost.estimators.files import load, save, trusted_types
    from hilboost.estimators.label_weights import label_weights
    from hilboost.export import (
        plot_kernels,
        plot_tree,
        to_onnx,
        to_treelite,
        to_xgboost_json,
        tree_table,
    )

from hilboost.core.version import __version__

# Imported on first use, so that `import hilboost` loads neither the compiler nor scikit-learn.
_HOMES = {
    "AdaBoostKernelClassifier": "hilboost.estimators",
    "AdaptiveLoss": "hilboost.core.adaptive_loss",
    "AveragedKernelRidge": "hilboost.estimators",
    "BayesianCommitteeMachine": "hilboost.estimators",
    "BoostingClassifier": "hilboost.estimators",
    "BoostingRanker": "hilboost.estimators",
    "BoostingRegressor": "hilboost.estimators",
    "BoostingSurvival": "hilboost.estimators",
    "ConvexKernelRidge": "hilboost.estimators",
    "Gradients": "hilboost.core.gradients",
    "GroupLoss": "hilboost.core.group_loss",
    "KernelBoostingClassifier": "hilboost.estimators",
    "KernelBoostingRegressor": "hilboost.estimators",
    "LeafLoss": "hilboost.core.leaf_loss",
    "Loss": "hilboost.core.loss",
    "Metric": "hilboost.core.metric",
    "MixtureOfKernelExperts": "hilboost.estimators",
    "OutputKernelBoostingRegressor": "hilboost.estimators",
    "OutputKernelForestRegressor": "hilboost.estimators",
    "OutputKernelTreeRegressor": "hilboost.estimators",
    "SparseKernelClassifier": "hilboost.estimators",
    "SparseKernelRidge": "hilboost.estimators",
    "StackedKernelRidge": "hilboost.estimators",
    "label_weights": "hilboost.estimators.label_weights",
    "load": "hilboost.estimators.files",
    "plot_kernels": "hilboost.export",
    "plot_tree": "hilboost.export",
    "save": "hilboost.estimators.files",
    "to_onnx": "hilboost.export",
    "to_treelite": "hilboost.export",
    "to_xgboost_json": "hilboost.export",
    "tree_table": "hilboost.export",
    "trusted_types": "hilboost.estimators.files",
}

__all__ = [
    "AdaBoostKernelClassifier",
    "AdaptiveLoss",
    "AveragedKernelRidge",
    "BayesianCommitteeMachine",
    "BoostingClassifier",
    "BoostingRanker",
    "BoostingRegressor",
    "BoostingSurvival",
    "ConvexKernelRidge",
    "Gradients",
    "GroupLoss",
    "KernelBoostingClassifier",
    "KernelBoostingRegressor",
    "LeafLoss",
    "Loss",
    "Metric",
    "MixtureOfKernelExperts",
    "OutputKernelBoostingRegressor",
    "OutputKernelForestRegressor",
    "OutputKernelTreeRegressor",
    "SparseKernelClassifier",
    "SparseKernelRidge",
    "StackedKernelRidge",
    "__version__",
    "label_weights",
    "load",
    "plot_kernels",
    "plot_tree",
    "save",
    "to_onnx",
    "to_treelite",
    "to_xgboost_json",
    "tree_table",
    "trusted_types",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name.startswith("to_"):
        found = import_module("hilboost.export.registry").export_function(name)
        if found is not None:
            return found
    from difflib import get_close_matches

    near = get_close_matches(name, __all__, n=3, cutoff=0.7)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise AttributeError(f"module 'hilboost' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
