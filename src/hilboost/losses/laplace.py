"""Laplace distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.stats import laplace

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.losses.distribution_loss import DistributionLoss, Parameters
from hilboost.reductions.quantiles import quantile
from hilboost.reductions.sums import mean


class Laplace(DistributionLoss):
    """``|y - location| / scale + log(2 scale)``."""

    regressor_name = "laplace"
    divides_rows = True
    evaluates_both = True
    parameters: ClassVar = {"location": "location", "scale": "scale"}

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        location, scale = p
        return laplace(location, scale)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        location, scale = p
        return -np.abs(y - location) / scale - np.log(2 * scale)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the location and the logarithm of the scale."""
        location, scale = p
        z = (y - location) / scale
        return np.sign(z) / scale, np.abs(z) - 1

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Orthogonal, so that its diagonal is all of it."""
        location, scale = p
        return scale**-2.0, np.ones_like(location)

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        z = (p[0] - y if upper else y - p[0]) / p[1]
        far = -np.abs(z) - np.log(2)
        return np.where(z < 0, far, np.log1p(-np.exp(far)))

    def best_constant(self, target: Target) -> Floats:
        """Median, and logarithm of the mean absolute deviation."""
        center = quantile(target.y[:, 0], 0.5, target)
        with np.errstate(divide="ignore"):
            scale = np.log(mean(target.with_y(np.abs(target.y - center))))
        low = -700.0 if self.bounds is None else self.bounds[0][1]
        return np.concatenate([[center], np.maximum(scale, low)])

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Closed form of Jordan, Krüger & Lerch (2019)."""
        location, scale = p
        z = np.abs(y - location) / scale
        return scale * (z + np.exp(-z) - 0.75)
