"""The method of multipliers: exact steps for losses with corners.

Newton's method minimizes the penalized loss with smooth corners; then the slopes found become the
multipliers, and the width falls.  The gap to the dual objective says when to end.

Reference: Rockafellar, *Augmented Lagrangians and applications of the proximal point algorithm in
convex programming*, 1976.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.learners.kernel_machine.problem import CornerRows, StageProblem

_GAP = 1e-6  # of the penalized loss
_MOST_WIDTHS = 30
_FALL_OF_WIDTH = 0.3
_MOST_STEPS = 30  # for each width
_LEAST_SLOPE = 1e-9  # of the penalized loss
_ARMIJO = 1e-4
_MOST_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class Change:
    """A change of the function: weights (D, r) at the basis, and outputs (m, r)."""

    weights: Floats
    outputs: Floats

    @classmethod
    def none(cls, problem: StageProblem, n_basis: int) -> Change:
        """No change."""
        r = problem.n_outputs
        return cls(np.zeros((n_basis, r)), np.zeros((problem.n_rows, r)))

    def plus(self, length: Floats, step: Change) -> Change:
        """The change and a multiple (r,) of another one."""
        return Change(self.weights + length * step.weights, self.outputs + length * step.outputs)


@dataclass(frozen=True, eq=False)
class Penalty:
    """The penalty of the function after a change."""

    regularization: float
    basis: Ints  # (D,) int64: distinct rows
    function: Floats  # (D, r) float64: values of the penalized function so far at the basis
    so_far: Floats  # (r,) float64: the penalty before the change

    def value(self, change: Change) -> Floats:
        """The penalty, (r,)."""
        middle = self.function + 0.5 * change.outputs[self.basis]
        return self.so_far + self.regularization * (change.weights * middle).sum(axis=0)

    def slope(self, change: Change, step: Change) -> Floats:
        """Its slope along a step, (r,)."""
        function = self.function + change.outputs[self.basis]
        return self.regularization * (step.weights * function).sum(axis=0)


Newton = Callable[[StageProblem, Change], Change]


def minimizer(
    problem: StageProblem, rows: CornerRows, penalty: Penalty, newton: Newton, multipliers: Floats
) -> Change:
    """The change that minimizes the penalized loss over the span of the basis.

    It begins with Newton's step of a problem and a first guess of the multipliers (n, r).
    """
    change, width = Change.none(problem, len(penalty.basis)), rows.width
    for _ in range(_MOST_WIDTHS):
        change = _smooth_minimizer(problem, rows, penalty, newton, change, multipliers, width)
        left = rows.left(change.outputs)
        multipliers = rows.slopes(left, multipliers, width)
        total = rows.loss(left) + penalty.value(change)
        if (rows.gap(left, multipliers) <= _GAP * total).all():
            break
        width = _FALL_OF_WIDTH * width
    return change


def _smooth_minimizer(
    problem: StageProblem,
    rows: CornerRows,
    penalty: Penalty,
    newton: Newton,
    change: Change,
    multipliers: Floats,
    width: Floats,
) -> Change:
    """Newton's method with halved steps, for every output by itself."""

    def objective(change: Change) -> Floats:
        loss = rows.smooth_loss(rows.left(change.outputs), multipliers, width)
        return loss + penalty.value(change)

    for _ in range(_MOST_STEPS):
        gradients = rows.gradients(rows.left(change.outputs), multipliers, width)
        here = replace(problem, gradients=gradients)
        step = newton(here, change)
        slope = (here.weighted_gradient * step.outputs).sum(axis=0) - penalty.slope(change, step)
        before = objective(change)
        length = np.where(slope > _LEAST_SLOPE * np.abs(before), 1.0, 0.0)
        for _ in range(_MOST_HALVINGS):
            after = objective(change.plus(length, step))
            rises = (length > 0) & (after > before - _ARMIJO * length * slope)
            if not rises.any():
                break
            length = np.where(rises, 0.5 * length, length)
        if not length.any():
            break
        change = change.plus(np.where(rises, 0.0, length), step)
    return change
