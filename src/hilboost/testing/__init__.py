"""Contract tests for custom components, and paired tests of methods over splits.

For each type of component, there is a base class for pytest test classes; ``LossContract.of(loss)
.run()`` and its siblings run the same checks without pytest.  A check that fails raises
``AssertionError``.
"""

from hilboost.testing.comparisons import PairedTest, paired_test
from hilboost.testing.contract import Contract
from hilboost.testing.distributions import DistributionContract
from hilboost.testing.group_losses import GroupLossContract
from hilboost.testing.kernels import KernelContract
from hilboost.testing.learners import LearnerContract
from hilboost.testing.losses import LossContract
from hilboost.testing.models import BoostingContract, ModelContract
from hilboost.testing.outputs import OutputSpaceContract

__all__ = [
    "BoostingContract",
    "Contract",
    "DistributionContract",
    "GroupLossContract",
    "KernelContract",
    "LearnerContract",
    "LossContract",
    "ModelContract",
    "OutputSpaceContract",
    "PairedTest",
    "paired_test",
]
