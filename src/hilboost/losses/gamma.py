"""Half gamma deviance."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._log_link import LogLinkLoss, safe_exp, with_bounded_steps


class Gamma(LogLinkLoss):
    """``y e^-F + F - log(y) - 1`` for ``y > 0``; ``F`` is the logarithm of the mean."""

    name = regressor_name = "gamma"
    divides_rows = True
    allows_zero = False
    value_degree = 0.0

    additive_over_targets = True

    def _column_values(self, y: Floats, raw: Floats) -> Floats:
        """Loss of every entry, (n, c)."""
        return y * safe_exp(-raw) + raw - np.log(y) - 1

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``y e^-F - 1`` and hessian ``y e^-F``, or more for short steps."""
        ratio = target.y * safe_exp(-raw)
        negative = ratio - 1
        return Gradients(negative, with_bounded_steps(ratio, negative))
