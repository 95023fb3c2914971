"""Conversion between the rows and gradients of the table and those that the machine sees."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.merging import DistinctRows
from hilboost.learners.kernel_machine.problem import CornerRows

_USUAL_EXPONENT = 100  # of gradients, which are squared and divided by λ


@dataclass(frozen=True, eq=False)
class Conversion:
    """From all rows to distinct ones, and to a unit in which squares of gradients are finite."""

    distinct: DistinctRows | None  # ``None`` if no two rows are equal but for rounding
    unit: float  # A power of two that gradients are divided by

    @classmethod
    def of(cls, distinct: DistinctRows | None, gradients: Gradients) -> Conversion:
        """The unit that suits the gradients of the first stage.

        It is 1 with a hessian, since such gradients have a unit of their own.
        """
        largest = float(np.abs(gradients.negative_gradient).max(initial=0.0))
        exponent = np.frexp(largest)[1]
        is_usual = abs(exponent) <= _USUAL_EXPONENT or gradients.hessian is not None
        return cls(distinct, 1.0 if is_usual else float(np.ldexp(1.0, exponent)))

    def seen(self, gradients: Gradients, sample: RowSample) -> tuple[Gradients, Floats | None]:
        """Gradients and sample weights of the distinct rows."""
        weight = sample_weights(sample, len(gradients.negative_gradient))
        if self.unit != 1:
            negative = gradients.negative_gradient / self.unit
            gradients = replace(gradients, negative_gradient=negative)
        if self.distinct is None:
            return gradients, weight
        return self.distinct.merged(gradients, weight)

    def corners(self, gradients: Gradients, sample: RowSample) -> CornerRows | None:
        """The corners of the loss, for outputs of the distinct rows."""
        if gradients.corners is None:
            return None
        weight = sample_weights(sample, len(gradients.negative_gradient))
        return CornerRows(gradients.corners, weight, self.distinct)

    def means(self, values: Floats) -> Floats:
        """Weighted means (m, r) over equal rows of values (n, r), in the unit."""
        values, distinct = values / self.unit, self.distinct
        return values if distinct is None else distinct.means(values, distinct.weight)

    def shown(self, steps: tuple[Descending, ...]) -> list[FittedTerm]:
        """Base models for all rows, in the unit of the gradients."""
        if self.distinct is not None:
            steps = tuple(step.on_all_rows(self.distinct) for step in steps)
        if self.unit != 1:
            steps = tuple(step.in_unit(self.unit) for step in steps)
        return list(steps)

    def predictions(self, rows: Ints, outputs: Floats) -> tuple[Ints, Floats]:
        """Turn predictions (m, r) for some distinct rows into those for rows of the table."""
        outputs = outputs * self.unit
        if self.distinct is None:
            return rows, outputs
        members, places = self.distinct.members(rows)
        return members, outputs[places]


def sample_weights(sample: RowSample, n: int) -> Floats | None:
    """Weight of every row, 0 outside the sample; ``None`` means 1 for all."""
    if sample.rows is None:
        return sample.weight
    weight = np.zeros(n)
    weight[sample.rows] = 1.0 if sample.weight is None else sample.weight[sample.rows]
    return weight
