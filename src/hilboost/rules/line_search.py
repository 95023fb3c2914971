"""Shrinkage, and line searches on the loss and on the penalized loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from scipy.optimize import brentq

from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import Rule, State
from hilboost.reductions.sums import total

if TYPE_CHECKING:  # trees have no penalty
    from hilboost.learners.kernel_machine.descending import Descending

_LONGEST_STEP = 2.0**20
_SHORTEST_STEP = 2.0**-50
_TOLERANCE = 1e-10
_LARGEST = 2.0**500
_LEVEL = 1e-12  # relative slope at which a loss that falls forever has fallen
_NO_SLOPE = 2.0**-48  # of the sum of its magnitudes, which is rounding error


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

        def slopes(length: float) -> list[Floats]:
            for column, direction in zip(columns, directions, strict=True):
                moved[:, column] = state.raw[:, column] + length * direction
            negative = state.loss.gradients(state.target, moved).negative_gradient
            pairs = zip(columns, learned, strict=True)
            return [part * negative[:, column] for column, part in pairs]

        @cache  # the solver asks for the ends again
        def descent(length: float) -> float:
            return sum(total(of_rows, weighted) for of_rows in slopes(length))

        at_start = slopes(0.0)
        slope = sum(total(of_rows, weighted) for of_rows in at_start)
        if not slope > _NO_SLOPE * sum(total(np.abs(of_rows), weighted) for of_rows in at_start):
            return 0.0
        length = _length_to_zero(state, slope)
        low, high = 0.5, 1.0
        if (last := descent(high)) > 0:
            while last > _LEVEL * slope:
                low, high = high, 2 * high
                if high > _LONGEST_STEP * max(length, 1.0):
                    return low
                last = descent(high)
            if last > 0:  # the loss falls forever, but hardly any more
                return high
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
    """Length at which the loss would reach zero if it kept its initial slope; 1 if it is level."""
    values = np.asarray(state.loss.value(state.target, state.raw), dtype=np.float64)
    loss = total(values, replace(state.target, weight=state.sample.weight))
    length = loss / slope
    return length if 0 < length < _LARGEST else 1.0


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


_FLAT = 0.1
_LONGEST = 2.0**20
_ROUNDING = 1e-12  # relative rounding error of a sum of many losses
_MOST_HALVINGS = 8


@dataclass(frozen=True)
class PenalizedLineSearch:
    """Approximately minimize the penalized loss along a step; the loss never increases.

    A length of one is kept if the slope there is at most a tenth of the initial slope; otherwise
    Brent's method finds the root of the slope.  If a step has a penalty for every output, outputs
    are searched in turn, each with the updated values of the others.
    """

    factor: ClassVar[None] = None

    # whether to keep a length of one whenever it does not increase the penalized loss.  Steps to a
    # minimum are always kept then.
    keeps_whole_steps: bool = False

    def check(self, loss: Loss, learner: Learner) -> None:
        """Check that the results of the learner have a penalty."""
        if not learner.capabilities.penalizes:
            raise IncompatibleParts(
                f"a penalized line search requires a learner with a penalty, and "
                f"{type(learner).__name__} has none; use LineSearch."
            )

    def __call__(self, stage: Stage, state: State) -> Stage:
        """Multiply the coefficients by the length, which is 0 if the step is not a descent."""
        fitted = cast("Descending", state.fitted[0])
        assert fitted.outputs is not None
        descents = np.atleast_1d(fitted.descent)
        if len(descents) == 1:
            length = self._length(state, state.raw, fitted.outputs, fitted, 0)
            return stage if length == 1 else stage.scaled(length)
        if self._keeps_whole(fitted) and self._descends_whole(state, fitted):
            return stage
        raw = state.raw.copy()
        lengths = np.zeros(len(descents))
        for k in range(len(descents)):
            direction = np.zeros_like(fitted.outputs)
            direction[:, k] = fitted.outputs[:, k]
            lengths[k] = self._length(state, raw, direction, fitted, k)
            raw[:, k] += lengths[k] * direction[:, k]
        return stage.scaled(lengths)

    def _keeps_whole(self, fitted: Descending) -> bool:
        return self.keeps_whole_steps or fitted.is_minimizer

    def _descends_whole(self, state: State, fitted: Descending) -> bool:
        assert fitted.outputs is not None
        slope, curvature = float(np.sum(fitted.slope)), _not_negative(np.sum(fitted.curvature))
        return _rises(state, state.raw, fitted.outputs, slope, curvature)(1.0) <= 0

    def _length(
        self, state: State, raw: Floats, outputs: Floats, fitted: Descending, k: int
    ) -> float:
        penalty_slope = float(np.atleast_1d(fitted.slope)[k])
        penalty_curvature = _not_negative(np.atleast_1d(fitted.curvature)[k])
        first = -float(np.atleast_1d(fitted.descent)[k])
        if not first < 0:
            return 0.0
        rise = _rises(state, raw, outputs, penalty_slope, penalty_curvature)
        if self._keeps_whole(fitted) and rise(1.0) <= 0:
            return 1.0
        weight = state.sample.weights_of_all(len(outputs))
        weighted = outputs if weight is None else outputs * weight[:, None]

        def slope(length: float) -> float:
            moved = state.loss.gradients(state.target, raw + length * outputs)
            penalty = penalty_slope + penalty_curvature * length
            return penalty - float((weighted * moved.negative_gradient).sum())

        length = _lowest(slope, first)
        # If the loss has kinks, or rounding hides the slope, the minimum may be nearer.
        for _ in range(_MOST_HALVINGS):
            if rise(length) <= 0:
                return length
            length *= 0.5
        return 0.0


def _not_negative(curvature: Any) -> float:
    """The curvature of a squared norm, which rounding may have made negative.

    Weights grow in directions in which a kernel of low rank is zero, and with them rounding errors.
    """
    return max(float(curvature), 0.0)


def _lowest(slope: Callable[[float], float], first: float) -> float:
    """Approximately minimize a convex function with slope ``first < 0`` at zero."""
    slope = cache(slope)  # the solver asks for the ends again
    low, high = 0.0, 1.0
    last = slope(high)
    if abs(last) <= _FLAT * -first:
        return 1.0
    while last < 0:
        low, high = high, 2 * high
        if high > _LONGEST:
            return low
        last = slope(high)
    if low == 0 and slope(low) >= 0:
        return high  # a kink at zero; halving checks whether a shorter step descends
    return float(brentq(slope, low, high, rtol=1e-2, maxiter=50, disp=False))


def _rises(
    state: State, raw: Floats, outputs: Floats, slope: float, curvature: float
) -> Callable[[float], float]:
    """Increase of the penalized loss at a length; 0 if within rounding error."""
    weight = state.sample.weights_of_all(len(outputs))
    before = state.loss.value(state.target, raw)
    size = float(np.abs(before).sum() if weight is None else weight @ np.abs(before))

    def rise(length: float) -> float:
        change = state.loss.value(state.target, raw + length * outputs) - before
        total = float(change.sum() if weight is None else weight @ change)
        total += length * (slope + 0.5 * curvature * length)
        return total if total > _ROUNDING * size else 0.0

    return rise
