"""Early stopping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the loss no longer decreases, and keep the best stage.

    Parameters
    ----------
    patience : int
        Number of stages without an improvement of more than ``tolerance``.
    tolerance : float
        Relative to the loss of the initial prediction.
    on_training_rows : bool
        Whether the loss is that of the training rows, rather than of held-out rows.
    """

    patience: int
    tolerance: float
    on_training_rows: bool = False

    def should_stop(self, losses: list[float]) -> bool:
        """Whether none of the last ``patience`` losses improves on the best one before them."""
        if len(losses) <= self.patience:
            return False
        before = min(losses[: -self.patience])
        recent = min(losses[-self.patience :])
        return not recent < before - self.tolerance * abs(losses[0])

    @staticmethod
    def best_stage(losses: list[float]) -> int:
        """Number of stages with the lowest loss; the smallest number in case of ties."""
        return int(np.argmin(losses))
