"""Kernel machines with sparse, block or full stages."""

from hilboost.learners.kernel_machine.basis import SELECTIONS
from hilboost.learners.kernel_machine.block import BlockLearner
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.learners.kernel_machine.several import SeveralKernelsLearner
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.kernel_machine.workspace import Workspace

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
