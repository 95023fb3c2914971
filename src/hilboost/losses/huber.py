"""Huber loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import AdaptiveLoss, LeafLoss
from hilboost.core.plain_values import is_number
from hilboost.core.target import Target, TargetUnits
from hilboost.losses._columns import are_numbers, row_sums
from hilboost.losses._location import Majorized, location_units
from hilboost.reductions.quantiles import quantile, quantiles_of_groups
from hilboost.reductions.sums import extremes, masses_of_groups, sums_of_groups, total

_PRECISION = 1e-15


class Huber(AdaptiveLoss, LeafLoss):
    """Quadratic up to ``delta`` and linear beyond, summed over the target columns.

    ``r² / 2`` where ``|r| <= delta``, else ``delta (|r| - delta / 2)`` (LZ2016).

    Parameters
    ----------
    delta : float or None, default=None
        ``None`` uses, at each stage, the ``alpha`` quantile of ``|y - F|`` (Friedman 2001,
        Algorithm 4).
    alpha : float in (0, 1), default=0.9
        Fraction of the residuals that are not treated as outliers.

    Raises
    ------
    InvalidParameter
        If ``delta`` is not positive, or ``alpha`` is not between 0 and 1.
    """

    regressor_name = "huber"
    symmetric = True
    divides_rows = True
    degree = 2.0

    def __init__(self, delta: float | Floats | None = None, alpha: float = 0.9) -> None:
        if delta is not None and not (
            are_numbers(delta) and (np.isfinite(delta) & (np.asarray(delta) > 0)).all()
        ):
            raise InvalidParameter(f"huber: delta must be a positive number; got {shown(delta)}.")
        if not (is_number(alpha) and 0 < alpha < 1):
            raise InvalidParameter(
                f"huber: alpha must lie strictly between 0 and 1; got {shown(alpha)}."
            )
        self.delta, self.alpha = delta, alpha

    def adapted(self, target: Target, raw: Floats) -> Huber:
        """Return the loss with the ``delta`` of this stage."""
        if self.delta is not None:
            return self
        size, weight = np.abs(target.y - raw), target.weight
        weight = None if weight is None else np.repeat(weight, size.shape[1])
        return Huber(self.adapted_delta(size.ravel(), replace(target, weight=weight)))

    def adapted_delta(self, size: Floats, target: Target) -> float:
        """Compute the ``alpha`` quantile of the sizes, of the positive sizes if that is zero.

        Parameters
        ----------
        size : (n,) float64
        target : Target
            With the weights of the sizes.

        Returns
        -------
        float
        """
        delta = quantile(size, self.alpha, target)
        if delta == 0 and extremes(size, target)[1] > 0:
            above, weight = size > 0, target.weight
            weight = None if weight is None else weight[above]
            delta = quantile(size[above], self.alpha, replace(target, weight=weight))
        return delta if delta > 0 else 1.0

    def units(self, target: Target) -> TargetUnits | None:
        """Use a power of two for an extreme target, and the spreads of several targets."""
        return location_units(self, target, self._in_units)

    def _in_units(self, size: Floats) -> Huber:
        return Huber(None if self.delta is None else self.delta / size, self.alpha)

    def _at(self, target: Target, raw: Floats) -> Floats:
        """The ``delta`` of each target, (r,)."""
        adapted = self.adapted(target, raw)
        assert adapted.delta is not None
        return np.broadcast_to(adapted.delta, raw.shape[1:])

    def initial_raw(self, target: Target) -> Floats:
        """The constant at which the clipped residuals sum to zero."""
        median = np.array([quantile(y, 0.5, target) for y in target.y.T])
        delta = self._at(target, np.broadcast_to(median, target.y.shape))
        result = median.copy()
        for k, y in enumerate(target.y.T):
            low, high = extremes(y, target)
            if low < high:
                span = high - low
                # In units of the span and delta: precision does not depend on the scale of y.
                fraction = brentq(
                    lambda fraction, y=y, low=low, span=span, own=delta[k]: total(
                        np.clip((y - (low + fraction * span)) / own, -1.0, 1.0), target
                    ),
                    0.0,
                    1.0,
                    xtol=_PRECISION,
                )
                result[k] = low + fraction * span
        return result

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,); ``delta`` must be set, by the user or by :meth:`adapted`."""
        delta = self._at(target, raw)
        size = np.abs(target.y - raw)
        clipped = np.minimum(size, delta)
        return row_sums(clipped * (size - 0.5 * clipped))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The clipped residuals; the hessian is replaced by one."""
        delta = self._at(target, raw)
        return Gradients(np.clip(target.y - raw, -delta, delta))

    def with_curvature(self, target: Target, raw: Floats) -> Loss:
        """Use the curvature of reweighted least squares, which is 1 up to ``delta``."""
        delta = self._at(target, raw)
        return Majorized(self, delta, delta, has_corners=False)

    def leaf_values(
        self, target: Target, raw: Floats, leaves: NDArray[np.int32], n_leaves: int, columns: slice
    ) -> Floats:
        """Take one step from the median (Friedman 2001, Algorithm 4)."""
        delta = self._at(target, raw)[columns]
        mass = masses_of_groups(leaves, n_leaves, target)
        result = []
        for residual, own in zip((target.y[:, columns] - raw[:, columns]).T, delta, strict=True):
            median = quantiles_of_groups(residual, leaves, n_leaves, 0.5, target)
            step = np.clip(residual - median[leaves], -own, own)
            sums = sums_of_groups(leaves, step, n_leaves, target)
            result.append(median + sums / np.maximum(mass, np.finfo(float).tiny))
        return np.column_stack(result)
