"""The quadratic problem of one stage: the function so far, and the corners of the loss.

A loss with corners, ``max(lower r, upper r)``, is the largest ``v r`` for ``v`` between the two
slopes.  A smooth version subtracts ``½ width (v - u)²`` for multipliers ``u``.  This is the method
of multipliers (Rockafellar, *Augmented Lagrangians and applications of the proximal point algorithm
in convex programming*, 1976): the slopes found become the multipliers, and the width falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.gradients import Corners, Gradients
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.config import DistinctRows

_SMALLEST_CURVATURE = 1e-6
_GAP = 1e-6  # of the penalized loss
_MOST_WIDTHS = 30
_FALL_OF_WIDTH = 0.3
_MOST_STEPS = 30  # for each width
_LEAST_SLOPE = 1e-9  # of the penalized loss
_ARMIJO = 1e-4
_MOST_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class CornerRows:
    """The corners of all rows, as a function of the outputs of the distinct rows."""

    corners: Corners  # of all rows
    weight: Floats | None  # (n,) float64 or None: sample weights of all rows
    distinct: DistinctRows | None

    def left(self, outputs: Floats) -> Floats:
        """Residuals (n, r) that outputs (m, r) of the distinct rows leave."""
        return self.corners.residual - self._on_all(outputs)

    def slopes(self, left: Floats, multipliers: Floats, width: Floats) -> Floats:
        """The slopes ``v`` (n, r) of the smooth loss."""
        return np.clip(multipliers + left / width, self.corners.lower, self.corners.upper)

    def gradients(self, left: Floats, multipliers: Floats, width: Floats) -> Gradients:
        """Gradients of the smooth loss, of the distinct rows."""
        slopes = self.slopes(left, multipliers, width)
        is_curved = (slopes > self.corners.lower) & (slopes < self.corners.upper)
        found = Gradients(slopes, is_curved / width)
        return found if self.distinct is None else self.distinct.merged(found, self.weight)[0]

    def smooth_loss(self, left: Floats, multipliers: Floats, width: Floats) -> Floats:
        """Sum of the smooth loss, (r,)."""
        slopes = self.slopes(left, multipliers, width)
        return self._sum(slopes * left - 0.5 * width * (slopes - multipliers) ** 2)

    def loss(self, left: Floats) -> Floats:
        """Sum of the loss, (r,)."""
        return self._sum(np.maximum(self.corners.lower * left, self.corners.upper * left))

    def gap(self, left: Floats, slopes: Floats) -> Floats:
        """How far the penalized loss may lie above its minimum, at one of the smooth loss, (r,)."""
        return self.loss(left) - self._sum(slopes * left)

    def multipliers(self, alpha: Floats, regularization: float) -> Floats:
        """The slopes of the residuals (n, r) at the minimum, if it has these weights (m, r)."""
        w = 1.0 if self.weight is None else self.weight[:, None]
        if self.distinct is not None:
            w = np.broadcast_to(w, (len(self.distinct.group), 1))
            w = self.distinct.sums(w)[self.distinct.group]
        found: Floats = np.clip(
            regularization * self._on_all(alpha) / np.maximum(w, 1e-300),
            self.corners.lower,
            self.corners.upper,
        )
        return found

    @property
    def width(self) -> Floats:
        """Mean residual over the mean length of the interval of slopes, (r,)."""
        size = np.abs(self.corners.residual).mean(axis=0)
        width = size / (self.corners.upper - self.corners.lower).mean(axis=0)
        return np.where(width > 0, width, 1.0)

    def _on_all(self, values: Floats) -> Floats:
        return values if self.distinct is None else values[self.distinct.group]

    def _sum(self, values: Floats) -> Floats:
        return values.sum(axis=0) if self.weight is None else self.weight @ values


@dataclass(frozen=True, eq=False)
class Component:
    """The part of the model that lies in the space of one kernel, on the training rows."""

    in_files: ClassVar[bool] = True

    kernel: Kernel
    alpha: Floats  # (n, r) float64: weights, by training row
    function: Floats  # (n, r) float64: values ``K alpha``

    @classmethod
    def zero(cls, kernel: Kernel, n: int, n_outputs: int) -> Component:
        """The zero function on ``n`` rows."""
        return cls(kernel, np.zeros((n, n_outputs)), np.zeros((n, n_outputs)))

    @property
    def basis(self) -> Ints:
        """Rows whose weights are not zero, in ascending order."""
        return np.flatnonzero(self.alpha.any(axis=1))

    def plus(self, rows: Ints, weights: Floats, outputs: Floats, coefficient: Floats) -> Component:
        """The sum with a multiple of an expansion in distinct rows (m,), with outputs (n, r)."""
        alpha, function = self.alpha.copy(), self.function.copy()
        alpha[rows] += coefficient * weights
        function += coefficient * outputs
        return replace(self, alpha=alpha, function=function)


@dataclass(frozen=True, eq=False)
class StageProblem:
    """Minimize ``Σ_i w_i (½ h_i o_i² - g_i o_i) + ½ λ |f + o|²`` over functions ``o``.

    ``g`` is the negative gradient of the loss at the ensemble so far, ``h`` its hessian (1 without
    one, or a bound), and ``f`` the part of the ensemble that lies in the kernel's space.
    """

    so_far: Component  # f
    regularization: float  # λ
    gradients: Gradients  # of the distinct rows
    weight: Floats | None  # (n,) float64 or None: sample weights; zero for rows outside the sample
    # the loss itself, if the gradients belong to a smoothed version of a loss with corners
    corners: CornerRows | None = None
    place: int = 0  # of the kernel among those that propose stages

    @property
    def kernel(self) -> Kernel:
        """The kernel of the stage."""
        return self.so_far.kernel

    @property
    def alone(self) -> StageProblem:
        """The problem without the ensemble so far, whose norm is not penalized then."""
        zero = Component.zero(self.kernel, self.n_rows, self.n_outputs)
        return replace(self, so_far=zero)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.gradients.negative_gradient)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.gradients.negative_gradient.shape[1]

    @property
    def is_newton(self) -> bool:
        """Whether the hessian is that at ``raw`` alone, so that every stage has its own system."""
        return self.gradients.hessian is not None and self.gradients.structure.bound is None

    @cached_property
    def weighted_gradient(self) -> Floats:
        """``w g``, (n, r)."""
        negative = self.gradients.negative_gradient
        return negative if self.weight is None else negative * self.weight[:, None]

    @cached_property
    def curvature(self) -> Floats | None:
        """``w h``, (n, 1) if all outputs share it, else (n, r); ``None`` means 1 everywhere."""
        h = self.hessian
        if self.weight is None:
            return h
        return self.weight[:, None] if h is None else h * self.weight[:, None]

    @property
    def hessian(self) -> Floats | None:
        """``h`` without sample weights, bounded away from zero."""
        bound = self.gradients.structure.bound
        if self.gradients.hessian is None:
            return None
        if bound is not None and self.n_outputs > 1:
            return np.full((self.n_rows, 1), bound)  # one system for all outputs
        return np.maximum(self.own_hessian, _SMALLEST_CURVATURE)

    @property
    def own_hessian(self) -> Floats:
        """Hessian of the gradients, (n, 1) if all outputs share it, else (n, r)."""
        hessian = self.gradients.hessian
        assert hessian is not None
        return hessian[:, :1] if self.gradients.structure.isotropic else hessian

    @property
    def curvature_bound(self) -> float:
        """A number that no entry of the hessian exceeds; 1 for squared error."""
        bound, hessian = self.gradients.structure.bound, self.gradients.hessian
        if bound is not None:
            return bound
        return 1.0 if hessian is None else max(float(hessian.max()), 1e-12)

    @property
    def gained(self) -> Floats:
        """Decrease of the penalized squared error by the stages so far, (r,).

        A step that descends on the dual may increase the error, but not above that of the constant.
        """
        function, alpha = self.so_far.function, self.so_far.alpha
        w = 1.0 if self.weight is None else self.weight[:, None]
        gained: Floats = w * function * (0.5 * function + self.gradients.negative_gradient)
        return (gained - 0.5 * self.regularization * alpha * function).sum(axis=0)

    def penalty(self, basis: Ints, change: Change) -> Floats:
        """The penalty of the function after a change at a basis (D,), (r,)."""
        before = (self.so_far.alpha * self.so_far.function).sum(axis=0)
        middle = self.so_far.function[basis] + 0.5 * change.outputs[basis]
        own = (change.weights * middle).sum(axis=0)
        return 0.5 * self.regularization * before + self.regularization * own

    def penalty_slope(self, basis: Ints, change: Change, step: Change) -> Floats:
        """The slope of the penalty along a step after a change, (r,)."""
        function = self.so_far.function[basis] + change.outputs[basis]
        return self.regularization * (step.weights * function).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Change:
    """A change of the function: weights (D, r) at the basis, and outputs (m, r)."""

    in_files: ClassVar[bool] = True

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


Newton = Callable[[StageProblem, Change], Change]


def minimizer(problem: StageProblem, basis: Ints, newton: Newton) -> Change:
    """The change that minimizes a loss with corners over the span of a basis (D,), penalized.

    ``newton`` takes Newton's steps of problems with smooth corners.
    """
    rows = problem.corners
    assert rows is not None
    change, width = Change.none(problem, len(basis)), rows.width
    multipliers = rows.multipliers(problem.so_far.alpha, problem.regularization)
    for _ in range(_MOST_WIDTHS):
        change = _smooth_minimizer(problem, basis, newton, change, multipliers, width)
        left = rows.left(change.outputs)
        multipliers = rows.slopes(left, multipliers, width)
        total = rows.loss(left) + problem.penalty(basis, change)
        if (rows.gap(left, multipliers) <= _GAP * total).all():
            break
        width = _FALL_OF_WIDTH * width
    return change


def _smooth_minimizer(
    problem: StageProblem,
    basis: Ints,
    newton: Newton,
    change: Change,
    multipliers: Floats,
    width: Floats,
) -> Change:
    """Newton's method with halved steps, for every output by itself."""
    rows = problem.corners
    assert rows is not None

    def objective(change: Change) -> Floats:
        loss = rows.smooth_loss(rows.left(change.outputs), multipliers, width)
        return loss + problem.penalty(basis, change)

    for _ in range(_MOST_STEPS):
        gradients = rows.gradients(rows.left(change.outputs), multipliers, width)
        here = replace(problem, gradients=gradients)
        step = newton(here, change)
        slope = (here.weighted_gradient * step.outputs).sum(axis=0)
        slope -= problem.penalty_slope(basis, change, step)
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
