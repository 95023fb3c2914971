"""Fitted steps with their effect on the penalty, and their rounding errors.

A system ``K + D`` tolerates the rounding error ``E`` of ``K`` if the norm of ``D^-½ E D^-½`` is
below one: then ``K + E + D`` is positive definite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.config import DistinctRows, Workspace
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.problem import Change, StageProblem

_USUAL_EXPONENT = 100  # of gradients, which are squared and divided by λ
LARGEST_SHARE = 1.0  # norm of D^-½ E D^-½; beyond, the system may be indefinite
_ROWS = 512
_PRODUCTS = 20  # of the power method; an error of a factor of two is harmless
ROWS_CHECKED = 128
# Of predictions from the values computed in the fit, relative to the spread of the function.
_LARGEST_DEVIATIONS = {"float32": 0.01, "float64": 0.5}
_ROUNDINGS = 16  # of the largest residual: harmless if the function is tiny relative to it
_REMEDIES = {"float32": "precision='float64'", "float64": "longer length scales"}
_LARGEST_LOSS = 1e-3  # by single precision, relative to the same spread
_LARGEST_RISE = 1e-10  # of an objective by rounding, relative to the sum of squares


@dataclass(frozen=True)
class Descending(FittedTerm[KernelExpansion]):
    """An expansion, and the change of the penalized loss along it."""

    outputs: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (n, r) float64
    # float or (r,) float64: of the penalty: a multiple ``c`` of the step adds ``slope c + ½
    # curvature c²``.  A number means one length for all outputs, an array a length for each.
    slope: Floats | float = 0.0
    curvature: Floats | float = 0.0
    # float or (r,) float64: negative slope of the penalized loss at the start of the step
    descent: Floats | float = 0.0
    # whether the whole step minimizes the penalized loss over the span of its basis
    is_minimizer: bool = False

    @property
    def penalized(self) -> bool:
        """Whether :attr:`penalty` is known; it is."""
        return True

    @property
    def penalty(self) -> tuple[float, float]:
        """Slope and curvature of the penalty, summed over the outputs."""
        return float(np.sum(self.slope)), float(np.sum(self.curvature))

    @classmethod
    def along(
        cls,
        problem: StageProblem,
        workspace: Workspace,
        rows: Ints,  # (D,) int64: basis vectors
        change: Change,
        basis: NDArray | None = None,  # (D, d): an array of basis vectors that stages share
    ) -> Descending:
        """A step with one length for every output, or for all if the curvature is isotropic."""
        lam, weights, outputs = problem.regularization, change.weights, change.outputs
        model = workspace.expansion(problem.kernel, rows, weights, basis)
        slope = lam * (weights * problem.so_far.function[rows]).sum(axis=0)
        curvature = lam * (weights * outputs[rows]).sum(axis=0)
        descent = (problem.weighted_gradient * outputs).sum(axis=0) - slope
        if problem.gradients.structure.isotropic:
            slope, curvature, descent = (float(v.sum()) for v in (slope, curvature, descent))
        term = Term.of(model, slice(0, outputs.shape[1]))
        return cls(term, outputs=outputs, slope=slope, curvature=curvature, descent=descent)

    def shortened(self, length: Floats) -> Self:
        """A part of the step, (r,) float64 of every output."""
        return self._rescaled(length, length, length**2)

    def in_unit(self, unit: float) -> Self:
        """The step for gradients that were divided by ``unit`` for the fit."""
        return self._rescaled(unit, unit**2, unit**2)

    def _rescaled(
        self, factor: Floats | float, of_slope: Floats | float, of_curvature: Floats | float
    ) -> Self:
        model = self.term.model
        return replace(
            self,
            term=self.term.with_model(replace(model, weights=model.weights * factor)),
            outputs=self.outputs * factor,
            slope=self.slope * of_slope,
            curvature=self.curvature * of_curvature,
            descent=self.descent * of_slope,
        )

    def on_all_rows(self, distinct: DistinctRows) -> Self:
        """The step with row numbers and outputs of all rows instead of the distinct ones."""
        model = self.term.model
        assert model.rows is not None
        term = self.term.with_model(replace(model, rows=distinct.first[model.rows]))
        return replace(self, term=term, outputs=self.outputs[distinct.group])


@dataclass(frozen=True)
class Descent:
    """The decrease of the penalized loss so far."""

    in_files: ClassVar[bool] = True

    # number of consecutive stages with a negligible decrease after which the fit ends
    patience: int
    # decrease of a stage, relative to the decrease so far, below which it is negligible
    least: float = 1e-7
    fall: float = 0.0  # decrease so far
    last: float = 0.0  # decrease by the last stage
    n_flat: int = 0  # number of last stages with a negligible decrease

    @property
    def has_ended(self) -> bool:
        """Whether the penalized loss no longer decreases."""
        return self.n_flat >= self.patience

    def after(self, fall: float) -> Descent:
        """The decrease after a stage."""
        total = self.fall + max(fall, 0.0)
        is_flat = not fall > self.least * total
        return replace(self, fall=total, last=fall, n_flat=self.n_flat + 1 if is_flat else 0)


def unit_of(gradients: Gradients) -> float:
    """The unit that suits the gradients of the first stage; 1 with a hessian, which has its own."""
    largest = float(np.abs(gradients.negative_gradient).max(initial=0.0))
    exponent = np.frexp(largest)[1]
    is_usual = abs(exponent) <= _USUAL_EXPONENT or gradients.hessian is not None
    return 1.0 if is_usual else float(np.ldexp(1.0, exponent))


def share_of_rounding(kernel: Kernel, X: Array, D: Floats, seed: int) -> float:
    """Estimate the norm of ``D^-½ E D^-½``, where ``E`` is the rounding error of float32 values.

    ``E`` is evaluated for at most 512 random rows.  Its norm off the diagonal is proportional to
    their number, because whole rows share the errors of the terms of a distance.
    """
    n = X.shape[0]
    rng = np.random.default_rng((seed, 4))
    rows = np.arange(n) if n <= _ROWS else np.sort(rng.choice(n, _ROWS, replace=False))
    A = array_api.to_numpy(X[rows]).astype(np.float32)
    exact = A.astype(np.float64)
    E = kernel.block(A, A) - kernel.block(exact, exact)
    on_diagonal = float(np.abs(E.diagonal()).max())
    np.fill_diagonal(E, 0.0)
    v, size = rng.normal(size=len(rows)), 0.0
    for _ in range(_PRODUCTS):
        v = E @ (v / max(float(np.linalg.norm(v)), 1e-300))
        size = float(np.linalg.norm(v))
    return on_diagonal / float(D.min()) + size / len(rows) * float((1.0 / D).sum())


def loses_digits(
    kernel: Kernel, A: Array, B: Array, weights: Floats, spread: float, team: ThreadTeam
) -> bool:
    """Whether the error of ``k(A, B) weights`` in float32 exceeds a thousandth of the spread.

    The spread is that of the function so far, or of the outputs if it is larger.
    """
    A, B = array_api.to_numpy(A), array_api.to_numpy(B)
    exact = Gram(kernel, A, B, 0.0, team).times(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        short = Gram(kernel, A.astype(np.float32), B.astype(np.float32), 0.0, team)
        error = np.sqrt(((short.times(weights) - exact) ** 2).mean())
        spread = max(spread, float(np.sqrt((exact**2).mean())))
    return not error <= _LARGEST_LOSS * spread


def unspoilt(step: Descending, problem: StageProblem, allowed: Floats | None = None) -> Descending:
    """The step, shortened if rounding errors made it increase the penalized squared error.

    The step ``o`` changes this error by ``Σ w (½ o² - negative o)`` plus the change of the penalty.
    If that is more than ``allowed`` (r,), or than rounding errors, the length is the best one,
    possibly zero.  The line search takes care of other losses.
    """
    negative, outputs = problem.gradients.negative_gradient, step.outputs
    if problem.gradients.hessian is not None:
        return step
    w = 1.0 if problem.weight is None else problem.weight[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        slope = step.slope - (w * negative * outputs).sum(axis=0)
        curvature = step.curvature + (w * outputs * outputs).sum(axis=0)
        rise = slope + 0.5 * curvature
        rounding = _LARGEST_RISE * (w * negative * negative).sum(axis=0)
        is_good = rise <= (rounding if allowed is None else np.maximum(allowed, rounding))
        if is_good.all():
            return step
        best = np.where((slope < 0) & (curvature > 0), -slope / curvature, 0.0)
    best[~np.isfinite(best)] = 0.0
    return step.shortened(np.where(is_good, 1.0, np.minimum(best, 1.0)))


def check_predictions(
    predict: Callable[[Floats], Floats],  # maps rows (m, d) to raw predictions (m, r)
    X: Floats,  # (n, d) float64: training rows; 128 of them are checked
    raw: Floats,  # (n, r) float64: values of the model on these rows, as computed in the fit
    start: Floats,  # (r,) float64: initial prediction
    y: Floats,  # (n, r) float64: a deviation of a few rounding errors of their spread is harmless
    precision: str,  # precision of the kernel values
    seed: int,
) -> None:
    """Refuse a model whose predictions differ from the values computed in its fit."""
    rng = np.random.default_rng((seed, 5))
    n = len(X)
    rows = np.arange(n) if n <= ROWS_CHECKED else rng.choice(n, ROWS_CHECKED, replace=False)
    expected = raw[rows] - start
    scale = np.abs(expected).max(initial=0.0) or 1.0
    deviation = (predict(X[rows]) - raw[rows]) / scale
    spread = np.sqrt(((expected / scale) ** 2).mean())
    size = np.abs(start).max(initial=0.0) + _ROUNDINGS * np.abs(y - start).max(initial=0.0)
    floor = float(np.finfo(np.float32).eps * size / scale)
    if not np.sqrt((deviation**2).mean()) <= _LARGEST_DEVIATIONS[precision] * spread + floor:
        raise InvalidData(
            "rounding errors make the kernel machine inaccurate, because rows of X are nearly "
            "equal for this kernel or their weights are very unequal; increase regularization, or "
            f"set {_REMEDIES[precision]}."
        )
