"""Normal distribution."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.plain_values import is_number
from hilboost.core.target import Target, TargetUnits
from hilboost.losses.distribution_loss import DistributionLoss, Parameters
from hilboost.reductions.sums import mean

_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)


class Normal(DistributionLoss):
    """``(y - p[0])² / (2 scale²) + log(scale)``, up to a constant.

    Parameters
    ----------
    scale : float or None, default=None
        ``None`` predicts the scale of each row.  With a number, only the location is predicted, as
        with squared error.

    Raises
    ------
    InvalidParameter
        If ``scale`` is not positive.
    """

    regressor_name = "normal"
    divides_rows = True
    evaluates_both = True

    def __init__(self, scale: float | None = None) -> None:
        if scale is not None and not (is_number(scale) and 0 < scale < np.inf):
            raise InvalidParameter(f"normal: scale must be a positive number; got {shown(scale)}.")
        self.scale = scale

    @property
    def parameters(self) -> dict[str, str]:  # type: ignore[override]
        """The location and, unless it is given, the scale."""
        given = {} if self.scale is not None else {"scale": "scale"}
        return {"location": "location", **given}

    def _scale(self, p: Parameters) -> Floats:
        return p[1] if self.scale is None else np.full_like(p[0], self.scale)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        scales = self._scale(p)
        return -0.5 * ((y - p[0]) / scales) ** 2 - np.log(scales) - _LOG_ROOT_TWO_PI

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the location and the logarithm of the scale."""
        scales = self._scale(p)
        z = (y - p[0]) / scales
        return (z / scales, z**2 - 1)[: len(p)]

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Orthogonal, so that its diagonal is all of it."""
        return (1 / self._scale(p) ** 2, np.full_like(p[0], 2.0))[: len(p)]

    def _gradients(
        self, target: Target, raw: Floats, values: Parameters, memory: Gradients | None
    ) -> Gradients:
        """Residuals if the scale is 1: the gradients of squared error."""
        if self.scale == 1:
            return Gradients(target.y - raw, structure=Structure(residual=True))
        return super()._gradients(target, raw, values, memory)

    def units(self, target: Target) -> TargetUnits:
        """A given scale, if there is one, or else the spread of the target."""
        if self.scale is None:
            return super().units(target)
        size = float(self.scale)
        constant = float(np.log(size))
        return TargetUnits(self, Normal(1.0), np.array([size]), factor=size, constant=constant)

    def best_constant(self, target: Target) -> Floats:
        """Mean, and logarithm of the standard deviation."""
        return mean(target) if self.scale is not None else best_normal(target, self.bounds)

    def mean(self, p: Parameters) -> Floats:
        """The location."""
        return p[0]

    def std(self, p: Parameters) -> Floats:
        """The scale."""
        return self._scale(p)

    def cdf(self, y: Floats, p: Parameters) -> Floats:
        """Probability of at most ``y``."""
        return ndtr((y - p[0]) / self._scale(p))

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        z = (y - p[0]) / self._scale(p)
        return np.asarray(log_ndtr(-z if upper else z))

    def quantile(self, levels: Floats, p: Parameters) -> Floats:
        """Quantiles of the levels."""
        return p[0] + self._scale(p) * ndtri(levels)

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Closed form of Gneiting & Raftery (2007)."""
        scales = self._scale(p)
        z = (y - p[0]) / scales
        density = np.exp(-0.5 * z**2 - _LOG_ROOT_TWO_PI)
        return scales * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))


def best_normal(target: Target, bounds: tuple[Floats, Floats] | None) -> Floats:
    """Mean and logarithm of the standard deviation, (2,), within the bounds of the parameters."""
    center = mean(target)
    with np.errstate(divide="ignore"):
        logarithm = 0.5 * np.log(mean(target.with_y((target.y - center) ** 2)))
    low = -700.0 if bounds is None else bounds[0][1]
    return np.concatenate([center, np.maximum(logarithm, low)])
