"""Interface of losses that are adapted before each stage."""

from __future__ import annotations

from abc import abstractmethod

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target


class AdaptiveLoss(Loss):
    """Base class of losses with a parameter that is estimated from all rows before each stage."""

    adaptive = True

    @abstractmethod
    def adapted(self, target: Target, raw: Floats) -> Loss:
        """Return the loss for the next stage."""
