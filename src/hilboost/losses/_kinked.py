"""Smooth approximations, with curvature, of losses that have kinks or linear tails."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Corners, Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target

RELATIVE_WIDTH = 1e-4


class Majorized(Loss):
    """A loss ``Σ height h(r) + tilt r`` of residuals ``r = y - F``, ``h`` a smoothed ``|r|``.

    ``h`` is quadratic where ``|r| <= width``.  The hessian is that of the parabola that majorizes
    the loss and touches it at ``raw``, ``height / max(|r|, width)``.  Newton steps with it are
    iteratively reweighted least squares and never increase the smoothed loss.

    Hunter & Lange, *Quantile regression via an MM algorithm*, 2000.
    """

    def __init__(
        self,
        loss: Loss,  # the original loss, which provides values, initial prediction and link
        width: Floats | float,  # (r,) float64 or float
        height: Floats | float,  # (r,) float64 or float
        tilt: Floats | float = 0.0,  # (r,) float64 or float
        has_corners: bool = True,  # whether the original loss has ``h(r) = |r|``
    ) -> None:
        self.loss, self.width, self.height, self.tilt = loss, width, height, tilt
        self.has_corners = has_corners

    def initial_raw(self, target: Target) -> Floats:
        """Same as for the original loss."""
        return self.loss.initial_raw(target)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Values of the original loss, (n,)."""
        return self.loss.value(target, raw)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Gradients of the smoothed loss, with the curvature of the parabolas."""
        return self._gradients(target.y - raw, self.tilt)

    def _gradients(self, residual: Floats, tilt: Floats | float) -> Gradients:
        hessian = self.height / np.maximum(np.abs(residual), self.width)
        corners = None
        if self.has_corners:
            tilts = np.broadcast_to(tilt, residual.shape)
            corners = Corners(residual, tilts - self.height, tilts + self.height)
        return Gradients(hessian * residual + tilt, hessian, corners=corners)

    def inverse_link(self, raw: Floats) -> Floats:
        """Same as for the original loss."""
        return self.loss.inverse_link(raw)


def width_of_kink(target: Target, raw: Floats) -> float:
    """A ten-thousandth of the mean absolute residual."""
    size = np.abs(target.y - raw).mean(axis=1)
    mean = float(np.average(size, weights=target.weight))
    return RELATIVE_WIDTH * mean if mean > 0 else 1.0
