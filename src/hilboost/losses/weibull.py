"""Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import gammainc, gammaln
from scipy.stats import weibull_min

from hilboost.core.dtypes import Floats
from hilboost.losses.distribution_loss import DistributionLoss, Parameters

_LARGEST = 300.0  # exponent
_SMALLEST_SHAPE = 0.01  # whose moments are finite in float64
_OF_SHAPE = np.pi**2 / 6 + (1 - np.euler_gamma) ** 2


class Weibull(DistributionLoss):
    """Weibull distribution of a positive target: ``P(Y > y) = exp(-(y / scale) ** shape)``."""

    regressor_name = "weibull"
    divides_rows = True
    evaluates_both = True
    support = "positive"
    parameters: ClassVar = {"scale": "level", "shape": "positive"}

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        scale, shape = p
        return weibull_min(shape, scale=scale)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        scale, shape = p
        u = np.minimum(shape * np.log(y / scale), _LARGEST)
        return np.log(shape / y) + u - np.exp(u)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the logarithms of the scale and of the shape."""
        scale, shape = p
        u = shape * np.log(y / scale)
        excess = np.exp(np.minimum(u, _LARGEST)) - 1
        return shape * excess, 1 - u * excess

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Its diagonal; the correlation of the scores is 0.31."""
        scale, shape = p
        return shape**2.0, np.full_like(scale, _OF_SHAPE)

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        scale, shape = p
        exponent = np.exp(np.minimum(shape * np.log(y / scale), _LARGEST))
        return -exponent if upper else np.log(-np.expm1(-exponent))

    def std(self, p: Parameters) -> Floats:
        """Standard deviation."""
        inverse = 1 / np.maximum(p[1], _SMALLEST_SHAPE)
        squares = gammaln(1 + 2 * inverse) - 2 * gammaln(1 + inverse)
        return self.mean(p) * np.sqrt(np.maximum(np.expm1(np.minimum(squares, _LARGEST)), 0.0))

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """``E|Y - y| - E|Y - Y'| / 2``, in closed form."""
        scale, shape = p
        mean = self.mean(p)
        power = (y / scale) ** shape
        above = 2 ** (-1 / shape) - 2 * gammainc(1 + 1 / shape, power)
        return y * (1 - 2 * np.exp(-power)) + mean * above

    def mean(self, p: Parameters) -> Floats:
        """Mean."""
        scale, shape = p
        return scale * gamma_function(1 + 1 / np.maximum(shape, _SMALLEST_SHAPE))
