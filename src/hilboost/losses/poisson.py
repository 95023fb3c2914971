"""Half Poisson deviance."""

from __future__ import annotations

from typing import Any

from scipy.special import xlogy

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._log_link import LogLinkLoss, safe_exp, with_bounded_steps


class Poisson(LogLinkLoss):
    """``e^F - y F + y log(y) - y`` for counts ``y >= 0``; ``F`` is the logarithm of the mean."""

    name = regressor_name = "poisson"
    divides_rows = True
    allows_zero = True
    value_degree = 1.0

    additive_over_targets = True

    def _column_values(self, y: Floats, raw: Floats) -> Floats:
        """Loss of every entry, (n, c)."""
        return safe_exp(raw) - y * raw + xlogy(y, y) - y

    @property
    def xgboost_objective(self) -> dict[str, Any]:
        """Poisson regression."""
        return {"name": "count:poisson", "poisson_regression_param": {"max_delta_step": "0.7"}}

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``y - e^F`` and hessian ``e^F``, or more for short steps."""
        mean = safe_exp(raw)
        negative = target.y - mean
        return Gradients(negative, with_bounded_steps(mean, negative))
