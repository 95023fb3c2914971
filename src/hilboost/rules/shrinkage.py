"""Shrinkage."""

from __future__ import annotations

from dataclasses import dataclass

from hilboost.core.base_model import Stage
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import State


@dataclass(frozen=True)
class Shrinkage:
    """Multiply every stage by ``rate`` (Friedman 2001, eq. 36; SY2006, eq. 5)."""

    rate: float

    @property
    def factor(self) -> float:
        """The rate."""
        return self.rate

    def check(self, loss: Loss, learner: Learner) -> None:
        """Accept every loss and learner."""
        return

    def __call__(self, stage: Stage, state: State) -> Stage:
        """Multiply the coefficient by the rate."""
        return stage.scaled(self.rate)
