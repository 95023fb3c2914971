"""Kernel machines with sparse, block or full stages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.lazy import names_of

if TYPE_CHECKING:
    from hilboost.learners.kernel_machine.basis import SELECTIONS
    from hilboost.learners.kernel_machine.block import BlockLearner
    from hilboost.learners.kernel_machine.config import KernelMachineConfig
    from hilboost.learners.kernel_machine.expansion import KernelExpansion
    from hilboost.learners.kernel_machine.full import FullLearner
    from hilboost.learners.kernel_machine.several import SeveralKernelsLearner
    from hilboost.learners.kernel_machine.sparse import SparseLearner
    from hilboost.learners.kernel_machine.workspace import Workspace

# Imported on first use: trees do not need them.
_MODULES = {
    "basis": "SELECTIONS",
    "block": "BlockLearner",
    "config": "KernelMachineConfig",
    "expansion": "KernelExpansion",
    "full": "FullLearner",
    "several": "SeveralKernelsLearner",
    "sparse": "SparseLearner",
    "workspace": "Workspace",
}

__all__ = [
    "SELECTIONS",
    "BlockLearner",
    "FullLearner",
    "KernelExpansion",
    "KernelMachineConfig",
    "SeveralKernelsLearner",
    "SparseLearner",
    "Workspace",
]

__getattr__ = names_of(__name__, _MODULES)
