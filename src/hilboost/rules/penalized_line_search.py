"""How far to go along a step, the penalty counted in."""

from __future__ import annotations

from scipy.optimize import brentq

from hilboost.core.base_model import Stage
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import State
from hilboost.learners.kernel_machine.descending import Descending

_FLAT = 0.1
_LONGEST = 2.0**20


class PenalizedLineSearch:
    """The length of a step at which the penalized loss no longer falls, roughly.

    A length of one is kept where the slope there is a tenth of that at the beginning; else the
    slope is brought to zero by Brent's method.
    """

    def check(self, loss: Loss, learner: Learner) -> None:
        """For learners whose results are :class:`Descending`."""
        return

    def __call__(self, stage: Stage, state: State) -> Stage:
        """The coefficients times the length, 0 for a step that does not descend."""
        (fitted,) = state.fitted
        assert isinstance(fitted, Descending)
        assert fitted.outputs is not None
        outputs, weight = fitted.outputs, state.sample.weight
        weighted = outputs if weight is None else outputs * weight[:, None]

        def slope(length: float) -> float:
            moved = state.loss.gradients(state.target, state.raw + length * outputs)
            penalty = fitted.slope + fitted.curvature * length
            return penalty - float((weighted * moved.negative_gradient).sum())

        first, low, high = -fitted.descent, 0.0, 1.0
        if not first < 0:
            return stage.scaled(0.0)
        last = slope(high)
        if abs(last) <= _FLAT * -first:
            return stage
        while last < 0:
            low, high = high, 2 * high
            if high > _LONGEST:
                return stage.scaled(low)
            last = slope(high)
        return stage.scaled(float(brentq(slope, low, high, rtol=1e-2, maxiter=50, disp=False)))
