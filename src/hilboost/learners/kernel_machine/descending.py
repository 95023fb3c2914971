"""A fitted step, with its effect on the penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.merging import DistinctRows
from hilboost.learners.kernel_machine.problem import StageProblem


@dataclass(frozen=True)
class Descending(FittedTerm[KernelExpansion]):
    """An expansion, and the change of the penalized loss along it."""

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
    def of(cls, model: KernelExpansion, outputs: Floats) -> Descending:
        """A step with unknown effect on the penalty, for stages that no rule changes."""
        return cls(Term.of(model, slice(0, outputs.shape[1])), outputs=outputs)

    @classmethod
    def along(
        cls,
        problem: StageProblem,
        model: KernelExpansion,
        outputs: Floats,  # (n, r) float64: its values on the training rows
        # (m, r) float64: values of the penalized function so far, and of the step, at the basis
        # vectors
        function: Floats,
        step: Floats,
    ) -> Descending:
        """A step with one length for every output, or for all if the curvature is isotropic."""
        lam, weights = problem.regularization, model.weights
        slope = lam * (weights * function).sum(axis=0)
        curvature = lam * (weights * step).sum(axis=0)
        descent = (problem.weighted_gradient * outputs).sum(axis=0) - slope
        if problem.gradients.structure.isotropic:
            slope, curvature, descent = (float(v.sum()) for v in (slope, curvature, descent))
        term = Term.of(model, slice(0, outputs.shape[1]))
        return cls(term, outputs=outputs, slope=slope, curvature=curvature, descent=descent)

    def multiplied(self, factor: Floats | float) -> Self:
        """The expansion with its weights and outputs multiplied by a number, or one per output.

        Slope, curvature and descent still refer to the step itself.
        """
        assert self.outputs is not None
        model = self.term.model
        term = self.term.with_model(replace(model, weights=model.weights * factor))
        return replace(self, term=term, outputs=self.outputs * factor)

    def shortened(self, length: Floats) -> Self:
        """A part of the step, (r,) float64 of every output."""
        return replace(
            self.multiplied(length),
            slope=self.slope * length,
            curvature=self.curvature * length**2,
            descent=self.descent * length,
        )

    def in_unit(self, unit: float) -> Self:
        """The step for gradients that were divided by ``unit`` for the fit."""
        return replace(
            self.multiplied(unit),
            slope=self.slope * unit**2,
            curvature=self.curvature * unit**2,
            descent=self.descent * unit**2,
        )

    def on_all_rows(self, distinct: DistinctRows) -> Self:
        """The step with row numbers and outputs of all rows instead of the distinct ones."""
        model = self.term.model
        assert model.rows is not None
        assert self.outputs is not None
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
    n_flat: int = 0  # number of last stages with a negligible decrease

    @property
    def has_ended(self) -> bool:
        """Whether the penalized loss no longer decreases."""
        return self.n_flat >= self.patience

    def after(self, stage: Stage, step: Descending) -> Descent:
        """The decrease after a step that was added with the coefficients of a stage."""
        (term,) = stage.terms
        # At the minimum of a parabola the decrease is half of what the slope promises.
        fall = 0.5 * float((term.coefficient * step.descent).sum())
        total = self.fall + max(fall, 0.0)
        is_flat = not fall > self.least * total
        return replace(self, fall=total, n_flat=self.n_flat + 1 if is_flat else 0)
