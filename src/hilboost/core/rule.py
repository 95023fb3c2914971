"""The contract of a rule: how far to go along a proposed stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.learner import FittedTerm, Learner, RowSample
from hilboost.core.loss import Loss, Target


@dataclass(frozen=True)
class State:
    """What a rule may read.

    Attributes
    ----------
    loss : Loss
        Of this stage.
    target : Target
    raw : (n, r) float64
        Before the stage.
    fitted : tuple of FittedTerm
        What the learner returned, in the order of the terms of the stage.
    sample : RowSample
        The rows that the stage was fitted to.
    """

    loss: Loss
    target: Target
    raw: Floats
    fitted: tuple[FittedTerm, ...]
    sample: RowSample


class Rule(Protocol):
    """Sets the coefficients or leaf values of a proposed stage; a rule never fits."""

    def __call__(self, stage: Stage, state: State) -> Stage:
        """The stage with other coefficients or other values."""

    def check(self, loss: Loss, learner: Learner) -> None:
        """Refuse a loss or learner that this rule cannot work with, before anything is fitted.

        Parameters
        ----------
        loss : Loss
        learner : Learner

        Raises
        ------
        IncompatibleParts
        """
