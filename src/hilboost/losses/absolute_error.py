"""Absolute error (LAD)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import LeafLoss
from hilboost.core.target import Target, TargetUnits
from hilboost.losses._columns import row_sums
from hilboost.losses._location import Majorized, location_units, width_of_kink
from hilboost.reductions.quantiles import quantile, quantiles_of_groups


class AbsoluteError(LeafLoss):
    """``|y - F|``, summed over the target columns.

    With trees, this is LAD_TreeBoost (Friedman 2001, Algorithm 3): the initial prediction is the
    median, trees are fitted to the signs of the residuals, and the value of a leaf is the median of
    its residuals.
    """

    regressor_name = "absolute_error"
    symmetric = True
    divides_rows = True
    degree = 1.0

    @property
    def xgboost_objective(self) -> dict[str, Any]:
        """Absolute error."""
        return {"name": "reg:absoluteerror"}

    def units(self, target: Target) -> TargetUnits | None:
        """Use a power of two for an extreme target, and the spreads of several targets."""
        return location_units(self, target, lambda _: self)

    def initial_raw(self, target: Target) -> Floats:
        """The weighted median."""
        return np.array([quantile(y, 0.5, target) for y in target.y.T])

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return row_sums(np.abs(target.y - raw))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The signs of the residuals; the hessian, which is zero, is replaced by one."""
        return Gradients(np.sign(target.y - raw))

    def with_curvature(self, target: Target, raw: Floats) -> Loss:
        """Smooth the loss around zero and use the curvature of reweighted least squares."""
        return Majorized(self, width_of_kink(target, raw), 1.0)

    def leaf_values(
        self, target: Target, raw: Floats, leaves: NDArray[np.int32], n_leaves: int, columns: slice
    ) -> Floats:
        """Weighted medians of the residuals."""
        residuals = (target.y[:, columns] - raw[:, columns]).T
        return np.column_stack(
            [quantiles_of_groups(r, leaves, n_leaves, 0.5, target) for r in residuals]
        )
