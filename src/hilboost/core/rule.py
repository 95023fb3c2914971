"""Interface of rules, which determine the step size of a stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.row_sample import RowSample
from hilboost.core.target import Target


@dataclass(frozen=True)
class State:
    """Inputs of a rule.

    Attributes
    ----------
    loss : Loss
        The loss of this stage.
    target : Target
    raw : (n, r) float64
        Values before the stage.
    fitted : tuple of FittedTerm
        Result of the learner, in the order of the terms of the stage.
    sample : RowSample
        The rows to which the stage was fitted.
    """

    loss: Loss
    target: Target
    raw: Floats
    fitted: tuple[FittedTerm, ...]
    sample: RowSample


class Rule(Protocol):
    """Interface of rules, which set the coefficients or leaf values of a proposed stage."""

    @property
    def factor(self) -> float | None:
        """By what the rule multiplies every stage, if it does nothing else.

        Several stages may then be fitted in one call.
        """

    def __call__(self, stage: Stage, state: State) -> Stage:
        """Return the stage with new coefficients or leaf values."""

    def check(self, loss: Loss, learner: Learner) -> None:
        """Raise an error if the rule does not support the loss or the learner.

        Parameters
        ----------
        loss : Loss
        learner : Learner

        Raises
        ------
        IncompatibleParts
            If the rule does not support one of them.
        """
