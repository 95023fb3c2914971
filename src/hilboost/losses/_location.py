"""Location losses: their units, and smooth approximations, with curvature, of their kinks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.gradients import Corners, Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target, TargetUnits
from hilboost.losses._columns import known_column
from hilboost.reductions.sums import extremes, mean

_LARGEST_EXPONENT = 256
"""Targets with an absolute value between 2^-256 and 2^256 are not scaled."""
_LARGEST_VALUE = 1016
"""Logarithm to base 2 of the largest loss of a row, with some room for several columns."""
RELATIVE_WIDTH = 1e-4  # of a kink


def location_units(
    loss: Loss, target: Target, scaled: Callable[[Floats], Loss]
) -> TargetUnits | None:
    """Find units for a location loss: powers of two for a target that is too extreme to be squared.

    Several targets are divided by their spreads, so that no unit makes one count more than another.
    The class of the loss itself must declare its ``degree``; a derived class may compute anything.
    ``scaled`` maps the units (c,) to the loss of ``y / units``.
    """
    if "degree" not in vars(type(loss)) or loss.degree is None:
        return None
    columns = range(target.y.shape[1])
    if len(columns) > 1:
        size = np.array([_spread(loss, known_column(target, k)) for k in columns])
        return TargetUnits(loss, scaled(size), size, factor=size)
    exponent = _exponent(loss, known_column(target, 0))
    if abs(exponent) <= _LARGEST_EXPONENT:
        return None
    unit = 2.0**exponent
    size = np.array([unit])
    return TargetUnits(loss, scaled(size), size, factor=unit, value=unit ** (loss.degree or 0))


def _exponent(loss: Loss, target: Target) -> int:
    """Return the exponent of the largest absolute value of a target, 0 if all are zero."""
    low, high = extremes(target.y.ravel(), target)
    largest = max(-low, high)
    exponent = int(np.frexp(largest)[1])
    if (loss.degree or 0) * exponent > _LARGEST_VALUE:
        raise InvalidData(
            f"y contains absolute values up to {largest:.3g}, for which {type(loss).__name__} "
            "exceeds the range of float64. Divide y by a constant."
        )
    return exponent


def _spread(loss: Loss, target: Target) -> float:
    """Return the spread of a target; the order of its size if it is constant.

    For squared error, the spread is the standard deviation, for absolute error the mean absolute
    deviation: the size of the residuals of the best constant.
    """
    unit = 2.0 ** _exponent(loss, target)
    target = target.with_y(target.y / unit)
    losses = loss.value(target, target.starting_raw(loss.initial_raw(target)))
    degree = loss.degree or 1.0
    size = (degree * float(mean(target.with_y(losses[:, None]))[0])) ** (1 / degree)
    return unit * (size if size > 0 else 1.0)


class SmoothLoss(Loss):
    """A loss with other gradients, which have curvature."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def initial_raw(self, target: Target) -> Floats:
        """Same as for the original loss."""
        return self.loss.initial_raw(target)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Values of the original loss, (n,)."""
        return self.loss.value(target, raw)

    def inverse_link(self, raw: Floats) -> Floats:
        """Same as for the original loss."""
        return self.loss.inverse_link(raw)


class Majorized(SmoothLoss):
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
        super().__init__(loss)
        self.width, self.height, self.tilt = width, height, tilt
        self.has_corners = has_corners

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


def width_of_kink(target: Target, raw: Floats) -> float:
    """A ten-thousandth of the mean absolute residual."""
    size = np.abs(target.y - raw).mean(axis=1)
    mean = float(np.average(size, weights=target.weight))
    return RELATIVE_WIDTH * mean if mean > 0 else 1.0
