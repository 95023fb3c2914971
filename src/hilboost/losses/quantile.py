"""Pinball loss for one or several quantile levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.link import SortedLink
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import LeafLoss
from hilboost.core.target import Target, TargetUnits
from hilboost.distributions import Distribution, TabulatedDistribution
from hilboost.losses._columns import are_numbers, row_sums
from hilboost.losses._location import Majorized, location_units, width_of_kink
from hilboost.reductions.quantiles import quantile, quantiles_of_groups


class Quantile(LeafLoss):
    """``max(q (y - F), (q - 1) (y - F))``, summed over the levels ``q``.

    Parameters
    ----------
    levels : float or sequence of float in (0, 1), default=0.5
        One model predicts all levels, with one column of ``raw`` per level; the predicted
        quantiles of a row never cross.

    Raises
    ------
    InvalidParameter
        If a level is not between 0 and 1, or two levels are equal.

    Notes
    -----
    :meth:`inverse_link` sorts each row.  This never raises the summed pinball loss
    (Chernozhukov, Fernández-Val and Galichon 2010).
    """

    regressor_name = "quantile"
    degree = 1.0
    divides_rows = True

    def __init__(self, levels: float | Sequence[float] = 0.5) -> None:
        if not are_numbers(levels):
            raise InvalidParameter(f"quantile levels must be numbers; got {shown(levels)}.")
        self.levels = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if not self.levels.size:
            raise InvalidParameter(
                f"quantile levels must contain at least one level; got {shown(levels)}."
            )
        if self.levels.ndim != 1 or len(set(self.levels)) < len(self.levels):
            raise InvalidParameter(
                f"quantile levels must be distinct numbers; got {shown(levels)}."
            )
        if not ((self.levels > 0) & (self.levels < 1)).all():
            raise InvalidParameter(
                f"quantile levels must lie strictly between 0 and 1; got {shown(levels)}."
            )

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the levels in the parameter ``quantile``."""
        return cls(parameters.get("quantile", 0.5))

    @property
    def link(self) -> SortedLink:
        """Link that sorts the quantiles by level."""
        return SortedLink(tuple(self.levels.tolist()))

    @property
    def xgboost_objective(self) -> dict[str, Any] | None:
        """Quantile regression for one level."""
        if len(self.levels) > 1:
            return None
        level = {"quantile_alpha": f"[{float(self.levels[0])!r}]"}
        return {"name": "reg:quantileerror", "quantile_loss_param": level}

    def check(self, target: Target) -> None:
        """Check that there is a single target column."""
        if target.y.shape[1] != 1:
            raise InvalidData(
                f"the quantile loss supports one target column; got {target.y.shape[1]}. "
                "Fit one model per column."
            )

    def units(self, target: Target) -> TargetUnits | None:
        """Use a power of two for targets whose squares overflow or underflow float64."""
        return location_units(self, target, lambda _: self)

    def initial_raw(self, target: Target) -> Floats:
        """The weighted quantiles."""
        y = target.y[:, 0]
        return np.array([quantile(y, q, target) for q in self.levels])

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        residual = target.y - raw
        return row_sums(np.maximum(self.levels * residual, (self.levels - 1) * residual))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """``q`` above the prediction, ``q - 1`` below; the zero hessian is replaced by one."""
        residual = target.y - raw
        return Gradients(
            np.where(residual > 0, self.levels, np.where(residual < 0, self.levels - 1, 0.0))
        )

    def with_curvature(self, target: Target, raw: Floats) -> Loss:
        """Smooth the loss around zero and use the curvature of reweighted least squares."""
        return Majorized(self, width_of_kink(target, raw), 0.5, self.levels - 0.5)

    def inverse_link(self, raw: Floats) -> Floats:
        """Sort the quantiles by their levels."""
        result = np.empty_like(raw)
        result[:, np.argsort(self.levels)] = np.sort(raw, axis=1)
        return result

    def distribution_of(self, raw: Floats) -> Distribution:
        """Convert several quantiles to distributions, with exponential tails."""
        if len(self.levels) == 1:
            return super().distribution_of(raw)
        levels, quantiles = np.sort(self.levels), np.sort(raw, axis=1)
        return TabulatedDistribution.of(quantiles, levels)

    def leaf_values(
        self, target: Target, raw: Floats, leaves: NDArray[np.int32], n_leaves: int, columns: slice
    ) -> Floats:
        """Weighted quantiles of the residuals."""
        residuals = (target.y - raw[:, columns]).T
        return np.column_stack(
            [
                quantiles_of_groups(r, leaves, n_leaves, q, target)
                for r, q in zip(residuals, self.levels[columns], strict=True)
            ]
        )
