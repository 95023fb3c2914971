"""Exponential loss, as in AdaBoost."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from hilboost.core.dtypes import Floats
from hilboost.core.link import LogitLink
from hilboost.core.loss import Gradients, Loss, Target
from hilboost.losses import _location
from hilboost.losses._log_link import safe_exp

_SMALLEST_PROBABILITY = 1e-15


class Exponential(Loss):
    """``exp(-(2y - 1) F)`` for ``y`` in {0, 1}; ``F`` is half the logit of class 1."""

    classifier_name = "exponential"
    n_classes_range = (2, 2)

    def initial_raw(self, target: Target) -> Floats:
        """Half the logit of the weighted frequency of class 1."""
        p = np.clip(_location.mean(target), _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
        return 0.5 * logit(p)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return safe_exp((1 - 2 * target.y) * raw)[:, 0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``±exp(∓F)`` and hessian ``exp(∓F)``."""
        sign = 2 * target.y - 1
        size = safe_exp(-sign * raw)
        return Gradients(sign * size, size)

    @property
    def link(self) -> LogitLink:
        """Logit link applied to twice ``raw``."""
        return LogitLink(2.0)

    def inverse_link(self, raw: Floats) -> Floats:
        """Probabilities of both classes, (n, 2)."""
        return np.hstack([expit(-2 * raw), expit(2 * raw)])
