"""Contract tests for losses, learners, kernels and output spaces of your own.

Each kind of part has a class to derive a test class from, and a function that runs the same checks
at once.  Both raise ``AssertionError``; neither needs pytest.
"""

from hilboost.testing.contract import Contract
from hilboost.testing.given import check_kernel, check_learner, check_loss, check_output_space
from hilboost.testing.kernels import KernelContract
from hilboost.testing.learners import LearnerContract
from hilboost.testing.losses import LossContract
from hilboost.testing.models import BoostingContract, ModelContract
from hilboost.testing.outputs import OutputSpaceContract

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
