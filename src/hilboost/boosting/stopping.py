"""Early stopping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the validation loss has not fallen for a while; keep the best stage.

    Parameters
    ----------
    patience : int
        Stages without an improvement by more than ``tolerance``.
    tolerance : float
        In units of the loss at the start value.
    """

    patience: int
    tolerance: float

    def should_stop(self, losses: list[float]) -> bool:
        """Whether the last ``patience`` losses are no better than the best before them."""
        if len(losses) <= self.patience:
            return False
        before = min(losses[: -self.patience])
        recent = min(losses[-self.patience :])
        return not recent < before - self.tolerance * abs(losses[0])

    @staticmethod
    def best_stage(losses: list[float]) -> int:
        """Number of stages with the lowest loss, the fewest of equals."""
        return int(np.argmin(losses))
