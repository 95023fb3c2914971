"""Lognormal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import lognorm

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.losses._parameter_kinds import least_scale
from hilboost.losses.distribution_loss import DistributionLoss, Parameters
from hilboost.losses.normal import best_normal

_LARGEST = 300.0  # exponent


class LogNormal(DistributionLoss):
    """A positive target whose logarithm is normal, with ``log(median)`` as its mean."""

    regressor_name = "lognormal"
    divides_rows = True
    evaluates_both = True
    support = "positive"
    parameters: ClassVar = {"median": "level", "sigma": "positive"}

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        median, sigma = p
        return lognorm(sigma, scale=median)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        median, sigma = p
        z = np.log(y / median) / sigma
        return -0.5 * z**2 - np.log(sigma * y) - 0.5 * np.log(2 * np.pi)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the logarithms of the median and of sigma."""
        median, sigma = p
        z = np.log(y / median) / sigma
        return z / sigma, z**2 - 1

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Orthogonal, so that its diagonal is all of it."""
        median, sigma = p
        return sigma**-2.0, np.full_like(median, 2.0)

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        z = np.log(y / p[0]) / p[1]
        return np.asarray(log_ndtr(-z if upper else z))

    def bounds_of(self, target: Target) -> tuple[Floats, Floats]:
        """Like the scale of a normal distribution, of the logarithms."""
        low, high = super().bounds_of(target)
        low[1] = np.log(least_scale(np.log(target.y[:, 0]), target))
        return low, high

    def best_constant(self, target: Target) -> Floats:
        """Mean of the logarithms, and logarithm of their standard deviation."""
        return best_normal(target.with_y(np.log(target.y)), self.bounds)

    def mean(self, p: Parameters) -> Floats:
        """Mean."""
        median, sigma = p
        return median * np.exp(np.minimum(0.5 * sigma**2, _LARGEST))

    def std(self, p: Parameters) -> Floats:
        """Standard deviation."""
        return self.mean(p) * np.sqrt(np.expm1(np.minimum(p[1] ** 2, _LARGEST)))

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Closed form of Baran & Lerch (2015)."""
        median, sigma = p
        with np.errstate(divide="ignore"):
            z = np.log(y / median) / sigma
        beyond = ndtr(-sigma / np.sqrt(2)) - ndtr(z - sigma)  # without a sum with 1, which rounds
        return y * (2 * ndtr(z) - 1) + 2 * self.mean(p) * beyond
