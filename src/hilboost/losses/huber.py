"""Huber loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from hilboost.core.adaptive_loss import AdaptiveLoss
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.exchange import RowShare
from hilboost.core.gradients import Gradients
from hilboost.core.leaf_loss import LeafLoss
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.target import Target
from hilboost.losses import _location
from hilboost.losses._columns import row_sums
from hilboost.losses._kinked import Majorized
from hilboost.reductions.quantiles import quantile, quantiles_of_groups
from hilboost.reductions.sums import largest, masses_of_groups, on_any_worker, sums_of_groups, total

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
        if delta is not None and not (np.isfinite(delta) & (np.asarray(delta) > 0)).all():
            raise InvalidParameter(f"huber: delta must be a positive number; got {delta!r}.")
        if not 0 < alpha < 1:
            raise InvalidParameter(
                f"huber: alpha must lie strictly between 0 and 1; got {alpha!r}."
            )
        self.delta, self.alpha = delta, alpha

    def adapted(self, target: Target, raw: Floats) -> Huber:
        """Return the loss with the ``delta`` of this stage."""
        if self.delta is not None:
            return self
        size = np.abs(target.y - raw)
        weight = None if target.weight is None else np.repeat(target.weight, size.shape[1])
        return Huber(self.adapted_delta(size.ravel(), weight, target.share))

    def adapted_delta(
        self, size: Floats, weight: Floats | None, share: RowShare | None = None
    ) -> float:
        """Compute the ``alpha`` quantile of the sizes, of the positive sizes if that is zero.

        Parameters
        ----------
        size : (n,) float64
        weight : (n,) float64 or None
        share : RowShare or None
            Which rows these are, if other workers have the others.

        Returns
        -------
        float
        """
        delta = quantile(size, weight, self.alpha, share)
        if delta == 0 and on_any_worker(bool(size.any()), share):
            above = size > 0
            weight = None if weight is None else weight[above]
            delta = quantile(size[above], weight, self.alpha, share)
        return delta if delta > 0 else 1.0

    def units(self, target: Target) -> TargetUnits | None:
        """Use a power of two for an extreme target, and the spreads of several targets."""
        return _location.location_units(self, target, self._in_units)

    def _in_units(self, size: Floats) -> Huber:
        return Huber(None if self.delta is None else self.delta / size, self.alpha)

    def _at(self, target: Target, raw: Floats) -> Floats:
        """The ``delta`` of each target, (r,)."""
        adapted = self.adapted(target, raw)
        assert adapted.delta is not None
        return np.broadcast_to(adapted.delta, raw.shape[1:])

    def initial_raw(self, target: Target) -> Floats:
        """The constant at which the clipped residuals sum to zero."""
        share = target.share
        median = np.array([quantile(y, target.weight, 0.5, share) for y in target.y.T])
        delta = self._at(target, np.broadcast_to(median, target.y.shape))
        result = median.copy()
        for k, y in enumerate(target.y.T):
            low = -largest(float((-y).max(initial=-np.inf)), share)
            high = largest(float(y.max(initial=-np.inf)), share)
            if low < high:
                span = high - low
                # In units of the span and delta: precision does not depend on the scale of y.
                fraction = brentq(
                    lambda fraction, y=y, low=low, span=span, own=delta[k]: total(
                        np.clip((y - (low + fraction * span)) / own, -1.0, 1.0),
                        target.weight,
                        share,
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
        self,
        target: Target,
        raw: Floats,
        leaves: NDArray[np.int32],
        n_leaves: int,
        columns: slice,
    ) -> Floats:
        """Take one step from the median (Friedman 2001, Algorithm 4)."""
        delta, weight = self._at(target, raw)[columns], target.weight
        mass = masses_of_groups(leaves, weight, n_leaves, target.share)
        result = []
        for residual, own in zip((target.y[:, columns] - raw[:, columns]).T, delta, strict=True):
            median = quantiles_of_groups(residual, weight, leaves, n_leaves, 0.5, target.share)
            step = np.clip(residual - median[leaves], -own, own)
            sums = sums_of_groups(leaves, step, weight, n_leaves, target.share)
            result.append(median + sums / np.maximum(mass, np.finfo(float).tiny))
        return np.column_stack(result)
