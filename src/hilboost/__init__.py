"""Gradient boosting in Hilbert spaces.

Functional gradient descent with interchangeable losses, base learners and output spaces.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilboost.core.gradients import Gradients
    from hilboost.core.loss import Loss
    from hilboost.core.loss_kinds import AdaptiveLoss, GroupLoss, LeafLoss
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
    from hilboost.estimators.adaptive_intervals import AdaptiveIntervals
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

from hilboost.core.discovery import names_of
from hilboost.core.version import __version__

# Imported on first use, so that `import hilboost` loads neither the compiler nor scikit-learn.
_MODULES = {
    "core.gradients": "Gradients",
    "core.loss": "Loss",
    "core.loss_kinds": "AdaptiveLoss GroupLoss LeafLoss",
    "core.metric": "Metric",
    "estimators.adaptive_intervals": "AdaptiveIntervals",
    "estimators.files": "load save trusted_types",
    "estimators.label_weights": "label_weights",
    "export": "plot_kernels plot_tree to_onnx to_treelite to_xgboost_json tree_table",
}

__all__ = [
    "AdaBoostKernelClassifier",
    "AdaptiveIntervals",
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


def _find(name: str) -> Any:
    """Return an estimator, or an export function; suggest similar names otherwise."""
    if name in __all__:
        return getattr(import_module("hilboost.estimators"), name)
    if name.startswith("to_"):
        found = import_module("hilboost.export.registry").export_function(name)
        if found is not None:
            return found
    from difflib import get_close_matches

    near = get_close_matches(name, __all__, n=3, cutoff=0.7)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise AttributeError(f"module 'hilboost' has no attribute {name!r}{hint}")


__getattr__ = names_of(__name__, _MODULES, _find)


def __dir__() -> list[str]:
    return sorted(__all__)
