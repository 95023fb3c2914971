"""Line search along a stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from hilboost.core.base_model import LeafModel, Stage
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import State

_LONGEST_STEP = 2.0**20
_TOLERANCE = 1e-10


@dataclass(frozen=True)
class LineSearch:
    """The step length that minimizes the loss, per output column (Friedman 2001, Algorithm 1, 5).

    The derivative along the stage is brought to zero by Brent's method inside a bracket that grows
    from 1; a stage that does not descend gets step 0.

    Parameters
    ----------
    skip_leaves : bool
        Keep the coefficients of terms that are constant on leaves, whose values the loss sets.
    """

    skip_leaves: bool = False

    def check(self, loss: Loss, learner: Learner) -> None:
        """Works with everything."""
        return

    def __call__(self, stage: Stage, state: State) -> Stage:
        """The coefficient times the step length."""
        step = np.ones(state.raw.shape[1])
        for part, fitted in zip(stage.terms, state.fitted, strict=True):
            outputs = fitted.outputs
            if outputs is None:
                if self.skip_leaves:
                    continue
                assert isinstance(part.model, LeafModel)
                outputs = part.model.values[fitted.leaves]
            for k, column in enumerate(range(part.columns.start, part.columns.stop)):
                step[column] = self._search(state, column, outputs[:, k])
        return stage.scaled(step)

    @staticmethod
    def _search(state: State, column: int, direction: Floats) -> float:
        weight = state.sample.weight
        moved = state.raw.copy()
        scaled = direction if weight is None else direction * weight
        if state.sample.rows is not None:
            inside = np.zeros(len(direction), dtype=bool)
            inside[state.sample.rows] = True
            scaled = np.where(inside, scaled, 0.0)

        def descent(length: float) -> float:
            moved[:, column] = state.raw[:, column] + length * direction
            return float(
                scaled @ state.loss.gradients(state.target, moved).negative_gradient[:, column]
            )

        if not descent(0.0) > 0:
            return 0.0
        low, high = 0.0, 1.0
        while descent(high) > 0:
            low, high = high, 2 * high
            if high > _LONGEST_STEP:
                return low
        return float(brentq(descent, low, high, xtol=_TOLERANCE * high))
