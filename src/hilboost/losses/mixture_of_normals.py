"""Mixture of normal distributions."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.plain_values import is_integer
from hilboost.core.target import Target
from hilboost.losses.distribution_loss import DistributionLoss, Parameters
from hilboost.reductions.quantiles import quantile

_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)
_BISECTIONS = 60


class MixtureOfNormals(DistributionLoss):
    """A weighted sum of normal densities, for targets with several modes.

    Parameters
    ----------
    n_components : int, default=2
        Between 2 and 10.

    Raises
    ------
    InvalidParameter
        If ``n_components`` is not such an integer.

    Notes
    -----
    The information is that of rows whose component is known, as in the EM algorithm, which bounds
    the Fisher information.  The weights are a softmax of 0 and the parameters ``logit_2``, ….
    """

    regressor_name = "mixture_of_normals"
    divides_rows = True
    evaluates_both = True
    has_location = False

    def __init__(self, n_components: int = 2) -> None:
        if not (is_integer(n_components) and 2 <= n_components <= 10):
            raise InvalidParameter(
                "mixture_of_normals: n_components must be an integer from 2 to 10; got "
                f"{shown(n_components)}."
            )
        self.n_components = n_components

    @property
    def parameters(self) -> dict[str, str]:  # type: ignore[override]
        """Locations and scales of the components, and logits of their weights."""
        numbers = range(1, self.n_components + 1)
        found = {f"location_{k}": "location" for k in numbers}
        found |= {f"scale_{k}": "scale" for k in numbers}
        return found | {f"logit_{k}": "number" for k in numbers[1:]}

    def _parts(self, p: Parameters) -> tuple[Floats, Floats, Floats]:
        """Locations, scales and logarithms of weights, (k, …) each."""
        k = self.n_components
        rows = np.broadcast_arrays(*p)
        logits = np.array([np.zeros_like(rows[0]), *rows[2 * k :]])
        log_weights = logits - np.logaddexp.reduce(logits, axis=0)
        return np.array(rows[:k]), np.array(rows[k : 2 * k]), log_weights

    def _log_joint(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Logarithms of weighted densities, deviations, scales and weights, (k, …) each."""
        locations, scales, log_weights = self._parts(p)
        z = (y - locations) / scales
        joint = log_weights - 0.5 * z**2 - np.log(scales) - _LOG_ROOT_TWO_PI
        return joint, z, scales, log_weights

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        return np.asarray(np.logaddexp.reduce(self._log_joint(y, p)[0], axis=0))

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the locations, the logarithms of the scales, and the logits."""
        joint, z, scales, log_weights = self._log_joint(y, p)
        share = np.exp(joint - np.logaddexp.reduce(joint, axis=0))
        weights = np.exp(log_weights)
        return (*(share * z / scales), *(share * (z**2 - 1)), *(share - weights)[1:])

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """That of rows whose component is known: a bound."""
        _, scales, log_weights = self._parts(p)
        weights = np.exp(log_weights)
        return (*(weights / scales**2), *(2 * weights), *(weights * (1 - weights))[1:])

    def guess(self, target: Target) -> tuple[float, ...]:
        """Components at quantiles of the target."""
        y, k = target.y[:, 0], self.n_components
        levels = (np.arange(k) + 0.5) / k
        locations = [quantile(y, level, target) for level in levels]
        low, high = quantile(y, 0.1, target), quantile(y, 0.9, target)
        spread = (high - low) / (2 * k) or abs(low) or 1.0
        return (*locations, *[spread] * k, *[0.0] * (k - 1))

    def mean(self, p: Parameters) -> Floats:
        """Mean."""
        locations, _, log_weights = self._parts(p)
        return (np.exp(log_weights) * locations).sum(axis=0)

    def std(self, p: Parameters) -> Floats:
        """Standard deviation."""
        locations, scales, log_weights = self._parts(p)
        centered = locations - self.mean(p)
        return np.sqrt((np.exp(log_weights) * (scales**2 + centered**2)).sum(axis=0))

    def cdf(self, y: Floats, p: Parameters) -> Floats:
        """Probability of at most ``y``."""
        locations, scales, log_weights = self._parts(p)
        return (np.exp(log_weights) * ndtr((y - locations) / scales)).sum(axis=0)

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        locations, scales, log_weights = self._parts(p)
        z = (y - locations) / scales
        return np.asarray(np.logaddexp.reduce(log_weights + log_ndtr(-z if upper else z), axis=0))

    def quantile(self, levels: Floats, p: Parameters) -> Floats:
        """Quantiles of the levels, by bisection between the quantiles of the components."""
        locations, scales, _ = self._parts(p)
        ends = locations + scales * ndtri(levels)
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            with np.errstate(invalid="ignore"):
                below = self.cdf(middle, p) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Closed form of Grimit et al. (2006)."""
        locations, scales, log_weights = self._parts(p)
        weights = np.exp(log_weights)
        of_target = (weights * _distance(y - locations, scales)).sum(axis=0)
        apart = locations[:, None] - locations
        spread = _distance(apart, np.hypot(scales[:, None], scales))
        return of_target - 0.5 * (weights[:, None] * weights * spread).sum(axis=(0, 1))


def _distance(location: Floats, scale: Floats) -> Floats:
    """Expected absolute value of a normal number."""
    z = location / scale
    return location * (2 * ndtr(z) - 1) + 2 * scale * np.exp(-0.5 * z**2 - _LOG_ROOT_TWO_PI)
