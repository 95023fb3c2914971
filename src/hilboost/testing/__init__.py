"""Contract tests for losses, learners, kernels and output spaces of your own.

Each kind of part has a class to derive a test class from, and a function that runs the same checks
at once.  Both raise ``AssertionError``; neither needs pytest.
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
