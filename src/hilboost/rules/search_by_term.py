"""Line search for models with several learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hilboost.core.base_model import Stage
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import Rule, State


@dataclass(frozen=True)
class SearchByTerm:
    """Use one line search for penalized terms, none for Newton steps, and another one for the rest.

    All terms of a stage are of the same kind, because one learner fitted them.
    """

    factor: ClassVar[None] = None

    penalized: Rule | None  # ``None`` leaves the steps unchanged
    plain: Rule | None

    def check(self, loss: Loss, learner: Learner) -> None:
        """Accept every loss and learner."""
        return

    def __call__(self, stage: Stage, state: State) -> Stage:
        """Apply the line search of this kind of term."""
        if all(fitted.penalized for fitted in state.fitted):
            rule = self.penalized
        else:
            rule = None if all(fitted.newton for fitted in state.fitted) else self.plain
        return stage if rule is None else rule(stage, state)
