"""Contract tests for custom losses, learners, kernels and output spaces.

For each type of component, there is a base class for pytest test classes, and a function that runs
the same checks without pytest.  Both raise ``AssertionError`` if a check fails.
"""

from hilboost.testing.contract import Contract
from hilboost.testing.kernels import KernelContract, check_kernel
from hilboost.testing.learners import LearnerContract, check_learner
from hilboost.testing.losses import LossContract, check_loss
from hilboost.testing.models import BoostingContract, ModelContract
from hilboost.testing.outputs import OutputSpaceContract, check_output_space

__all__ = [
    "BoostingContract",
    "Contract",
    "KernelContract",
    "LearnerContract",
    "LossContract",
    "ModelContract",
    "OutputSpaceContract",
    "check_kernel",
    "check_learner",
    "check_loss",
    "check_output_space",
]
