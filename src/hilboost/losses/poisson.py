"""Half Poisson deviance."""

from __future__ import annotations

from scipy.special import xlogy

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Gradients, Target
from hilboost.losses._log_link import LogLinkLoss, safe_exp


class Poisson(LogLinkLoss):
    """``e^F - y F + y log(y) - y`` for counts ``y >= 0``; ``F`` is the logarithm of the mean."""

    name = "poisson"
    allows_zero = True

    additive_over_targets = True

    def value(self, target: Target, raw: Floats) -> Floats:
        """(n,)"""
        y = target.y
        return (safe_exp(raw) - y * raw + xlogy(y, y) - y).sum(axis=1)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """``y - e^F`` and ``e^F``."""
        mean = safe_exp(raw)
        return Gradients(target.y - mean, mean)
