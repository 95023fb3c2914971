"""Shrinkage, and the line search along a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import Rule, State
from hilboost.reductions.sums import total

_LONGEST_STEP = 2.0**20
_SHORTEST_STEP = 2.0**-50
_TOLERANCE = 1e-10


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


@dataclass(frozen=True)
class LineSearch:
    """The step length that minimizes the loss, per output column (Friedman 2001, Algorithm 1, 5).

    A loss of the distance between points has one length for all columns of a term.

    Brent's method finds the root of the derivative along the stage between two powers of two,
    which are searched upward or downward from 1.  The length is 0 if the stage is not a descent
    direction.  If gradients and targets have different units, as for the absolute error, the
    length has units too.  The search range therefore depends on the length at which a linear
    extrapolation of the loss reaches zero.
    """

    factor: ClassVar[None] = None

    # whether to keep the coefficients of terms with leaves, whose values the loss sets
    skip_leaves: bool = False

    def check(self, loss: Loss, learner: Learner) -> None:
        """Accept every loss and learner."""
        return

    def __call__(self, stage: Stage, state: State) -> Stage:
        """Multiply the coefficient by the step length."""
        step = np.ones(state.raw.shape[1])
        for term, fitted in zip(stage.terms, state.fitted, strict=True):
            outputs = fitted.outputs
            if outputs is None:
                if self.skip_leaves:
                    continue
                model = term.model.on_leaves()
                assert model is not None
                outputs = model.values[fitted.leaves]
            first, last = term.columns.start, term.columns.stop
            width = last - first if state.loss.of_distance else 1
            for begin in range(first, last, width):
                columns = list(range(begin, begin + width))
                directions = [outputs[:, column - first] for column in columns]
                step[columns] = self._search(state, columns, directions)
        return stage.scaled(step)

    @staticmethod
    def _search(state: State, columns: list[int], directions: list[Floats]) -> float:
        moved = state.raw.copy()
        weighted = replace(state.target, weight=state.sample.weight)
        learned = [_of_the_sample(direction, state) for direction in directions]

        def descent(length: float) -> float:
            for column, direction in zip(columns, directions, strict=True):
                moved[:, column] = state.raw[:, column] + length * direction
            negative = state.loss.gradients(state.target, moved).negative_gradient
            return sum(
                total(part * negative[:, column], weighted)
                for column, part in zip(columns, learned, strict=True)
            )

        slope = descent(0.0)
        if not slope > 0:
            return 0.0
        length = _length_to_zero(state, slope)
        low, high = 0.5, 1.0
        if descent(high) > 0:
            low, high = high, 2 * high
            while descent(high) > 0:
                low, high = high, 2 * high
                if high > _LONGEST_STEP * max(length, 1.0):
                    return low
        else:
            while descent(low) < 0:
                low, high = 0.5 * low, low
                if low < _SHORTEST_STEP * min(length, 1.0):
                    return 0.0
        # Brent's method multiplies three slopes; scaling by a power of two is exact.
        unit = 2.0 ** -np.frexp(slope)[1]
        found = brentq(lambda length: unit * descent(length), low, high, xtol=_TOLERANCE * high)
        return float(found)


def _of_the_sample(direction: Floats, state: State) -> Floats:
    """A direction (n,) with zeros for the rows that are not in the sample."""
    if state.sample.rows is None:
        return direction
    inside = np.zeros(len(direction), dtype=bool)
    inside[state.sample.rows] = True
    return np.where(inside, direction, 0.0)


def _length_to_zero(state: State, slope: float) -> float:
    """Length at which the loss would reach zero if it kept its initial slope."""
    values = np.asarray(state.loss.value(state.target, state.raw), dtype=np.float64)
    loss = total(values, replace(state.target, weight=state.sample.weight))
    return loss / slope if loss > 0 else 1.0


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
