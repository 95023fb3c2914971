"""Early stopping."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the loss no longer decreases, and keep the best stage."""

    patience: int  # number of stages without an improvement of more than ``tolerance``
    tolerance: float  # relative to the loss of the initial prediction
    # whether the loss is that of the training rows, rather than of held-out rows
    on_training_rows: bool = False

    def should_stop(self, losses: list[float]) -> bool:
        """Whether none of the last ``patience`` losses improves on the best one before them.

        Stages with an undefined loss (NaN) count as stages without an improvement.
        """
        if len(losses) <= self.patience:
            return False
        known = _with_infinity(losses)
        first = next(filter(math.isfinite, losses), 0.0)
        before, recent = known[: -self.patience].min(), known[-self.patience :].min()
        return not recent < before - self.tolerance * abs(first)

    @staticmethod
    def best_stage(losses: list[float]) -> int:
        """Number of stages with the lowest loss; the smallest number in case of ties."""
        return int(_with_infinity(losses).argmin())


def _with_infinity(losses: list[float]) -> Floats:
    """Replace NaN by infinity."""
    return np.nan_to_num(losses, nan=np.inf, posinf=np.inf, neginf=-np.inf)
