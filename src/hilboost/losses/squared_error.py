"""Half squared error."""

from __future__ import annotations

import numpy as np

from hilboost.backends.squared_error import add_squares
from hilboost.core.dtypes import RAW, Floats
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.core.target_units import TargetUnits
from hilboost.losses._columns import array_for
from hilboost.losses._location import location_units
from hilboost.reductions.sums import mean


class SquaredError(Loss):
    """``(y - F)² / 2``, summed over the target columns.

    The factor ½ makes the negative gradient the residual (LZ2016; G2007 in feature space).
    """

    regressor_name = "squared_error"
    compiled_name = "squared_error"
    quadratic = True
    joins_kernel_machine = True
    divides_rows = True
    gaussian = True
    bounded_hessian = True
    additive_over_targets = True
    symmetric = True
    degree = 2.0
    evaluates_both = True
    checked_by_value = True

    def units(self, target: Target) -> TargetUnits | None:
        """Use a power of two for an extreme target, and the spreads of several targets."""
        return location_units(self, target, lambda _: self)

    def initial_raw(self, target: Target) -> Floats:
        """The mean."""
        return mean(target)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return _value_and_residual(target, raw, None)[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The residuals; the hessian is one."""
        return Gradients(target.y - raw, structure=Structure(residual=True))

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Both from the same residuals."""
        value, residual = _value_and_residual(target, raw, memory)
        return value, Gradients(residual, structure=Structure(residual=True))


def _value_and_residual(
    target: Target, raw: Floats, memory: Gradients | None
) -> tuple[Floats, Floats]:
    """Loss of every row (n,), and residuals (n, r)."""
    value, residual = np.empty(len(raw)), array_for(raw, memory)
    for k in range(raw.shape[1]):
        y, scores = (np.ascontiguousarray(columns[:, k], RAW) for columns in (target.y, raw))
        add_squares(y, scores, k == 0, value, residual[:, k])
    return value, residual
