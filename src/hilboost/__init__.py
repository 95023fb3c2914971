"""Gradient boosting in Hilbert spaces.

Functional gradient descent with interchangeable losses, base learners and output spaces.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilboost.core.gradients import Gradients as Gradients
    from hilboost.core.loss import Loss as Loss
    from hilboost.core.loss_kinds import AdaptiveLoss as AdaptiveLoss
    from hilboost.core.loss_kinds import GroupLoss as GroupLoss
    from hilboost.core.loss_kinds import LeafLoss as LeafLoss
    from hilboost.core.metric import Metric as Metric
    from hilboost.estimators import AdaBoostKernelClassifier as AdaBoostKernelClassifier
    from hilboost.estimators import AveragedKernelRidge as AveragedKernelRidge
    from hilboost.estimators import BayesianCommitteeMachine as BayesianCommitteeMachine
    from hilboost.estimators import BoostingClassifier as BoostingClassifier
    from hilboost.estimators import BoostingRanker as BoostingRanker
    from hilboost.estimators import BoostingRegressor as BoostingRegressor
    from hilboost.estimators import BoostingSurvival as BoostingSurvival
    from hilboost.estimators import ConvexKernelRidge as ConvexKernelRidge
    from hilboost.estimators import KernelBoostingClassifier as KernelBoostingClassifier
    from hilboost.estimators import KernelBoostingRegressor as KernelBoostingRegressor
    from hilboost.estimators import MixtureOfKernelExperts as MixtureOfKernelExperts
    from hilboost.estimators import OutputKernelBoostingRegressor as OutputKernelBoostingRegressor
    from hilboost.estimators import OutputKernelForestRegressor as OutputKernelForestRegressor
    from hilboost.estimators import OutputKernelTreeRegressor as OutputKernelTreeRegressor
    from hilboost.estimators import SparseKernelClassifier as SparseKernelClassifier
    from hilboost.estimators import SparseKernelRidge as SparseKernelRidge
    from hilboost.estimators import StackedKernelRidge as StackedKernelRidge
    from hilboost.estimators.adaptive_intervals import AdaptiveIntervals as AdaptiveIntervals
    from hilboost.estimators.files import load as load
    from hilboost.estimators.files import save as save
    from hilboost.estimators.files import trusted_types as trusted_types
    from hilboost.estimators.label_weights import label_weights as label_weights
    from hilboost.export import plot_kernels as plot_kernels
    from hilboost.export import plot_tree as plot_tree
    from hilboost.export import to_onnx as to_onnx
    from hilboost.export import to_treelite as to_treelite
    from hilboost.export import to_xgboost_json as to_xgboost_json
    from hilboost.export import tree_table as tree_table

from hilboost.core.discovery import by_word, names_of
from hilboost.core.version import __version__ as __version__

# Imported on first use, so that `import hilboost` loads neither the compiler nor scikit-learn.
_MODULES = {
    "core.gradients": "Gradients",
    "core.loss": "Loss",
    "core.loss_kinds": "AdaptiveLoss GroupLoss LeafLoss",
    "core.metric": "Metric",
    "estimators": """
        AdaBoostKernelClassifier AveragedKernelRidge BayesianCommitteeMachine BoostingClassifier
        BoostingRanker BoostingRegressor BoostingSurvival ConvexKernelRidge KernelBoostingClassifier
        KernelBoostingRegressor MixtureOfKernelExperts OutputKernelBoostingRegressor
        OutputKernelForestRegressor OutputKernelTreeRegressor SparseKernelClassifier
        SparseKernelRidge StackedKernelRidge
    """,
    "estimators.adaptive_intervals": "AdaptiveIntervals",
    "estimators.files": "load save trusted_types",
    "estimators.label_weights": "label_weights",
    "export": "plot_kernels plot_tree to_onnx to_treelite to_xgboost_json tree_table",
}

__all__ = sorted(["__version__", *by_word(_MODULES)])


def _find(name: str) -> Any:
    """Return an estimator, or an export function; suggest similar names otherwise."""
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
    return __all__
