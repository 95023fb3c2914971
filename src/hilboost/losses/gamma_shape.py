"""Gamma distribution with a shape of each row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma, gammainc, gammaincc, gammaln, polygamma
from scipy.stats import gamma

from hilboost.core.dtypes import Floats
from hilboost.losses.distribution_loss import DistributionLoss, Parameters


class GammaShape(DistributionLoss):
    """Gamma distribution of a positive target; its coefficient of variation is ``shape ** -0.5``.

    The loss ``"gamma"`` has the same shape for all rows.
    """

    regressor_name = "gamma_shape"
    divides_rows = True
    evaluates_both = True
    support = "positive"
    parameters: ClassVar = {"mean": "level", "shape": "positive"}

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        mean, shape = p
        return gamma(shape, scale=mean / shape)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        mean, shape = p
        ratio = np.minimum(y / mean, 1e150)
        found = shape * (np.log(shape) + np.log(ratio) - ratio) - gammaln(shape)
        return np.maximum(found - np.log(y), -1e300)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the logarithms of the mean and of the shape."""
        mean, shape = p
        ratio = np.minimum(y / mean, 1e150)
        by_shape = np.log(shape) - digamma(shape) + 1 + np.log(ratio) - ratio
        return shape * (ratio - 1), shape * by_shape

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Orthogonal, so that its diagonal is all of it."""
        mean, shape = p
        return shape + 0 * mean, shape * (shape * polygamma(1, shape) - 1)

    def mean(self, p: Parameters) -> Floats:
        """The mean."""
        return p[0]

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        mean, shape = p
        return np.log((gammaincc if upper else gammainc)(shape, y * shape / mean))

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Closed form of Möller & Scheuerer (2015)."""
        mean, shape = p
        x = y * shape / mean
        below, above = 2 * gammainc(shape, x) - 1, 2 * gammainc(shape + 1, x) - 1
        return y * below - mean * above - mean / shape * np.exp(-betaln(0.5, shape))
