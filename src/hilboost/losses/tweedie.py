"""Half Tweedie deviance."""

from __future__ import annotations

from typing import Any

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._columns import is_number
from hilboost.losses._log_link import LogLinkLoss, safe_exp, with_bounded_steps


class Tweedie(LogLinkLoss):
    """Compound Poisson–gamma deviance for zeros and positive values, such as insurance claims.

    ``e^((2-p) F) / (2-p) - y e^((1-p) F) / (1-p)`` up to a constant; ``F`` is the logarithm of the
    mean.

    Parameters
    ----------
    power : float in (1, 2), default=1.5
        The variance is proportional to ``mean ** power``.

    Raises
    ------
    InvalidParameter
        If ``power`` is not between 1 and 2.
    """

    name = regressor_name = "tweedie"
    divides_rows = True
    allows_zero = True

    additive_over_targets = True

    def __init__(self, power: float = 1.5) -> None:
        if not (is_number(power) and 1 < power < 2):
            raise InvalidParameter(
                f"tweedie: power must lie strictly between 1 and 2; got {power!r}. "
                "Use 'poisson' for 1 and 'gamma' for 2."
            )
        self.power = power

    @property
    def value_degree(self) -> float:
        """``2 - power``"""
        return 2 - self.power

    @property
    def xgboost_objective(self) -> dict[str, Any]:
        """Tweedie regression with this power."""
        power = {"tweedie_variance_power": repr(float(self.power))}
        return {"name": "reg:tweedie", "tweedie_regression_param": power}

    def _column_values(self, y: Floats, raw: Floats) -> Floats:
        """Loss of every entry, (n, c)."""
        p = self.power
        return safe_exp((2 - p) * raw) / (2 - p) - y * safe_exp((1 - p) * raw) / (1 - p)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient and hessian, or more for short steps."""
        p = self.power
        data, mean = target.y * safe_exp((1 - p) * raw), safe_exp((2 - p) * raw)
        negative, hessian = data - mean, (p - 1) * data + (2 - p) * mean
        return Gradients(negative, with_bounded_steps(hessian, negative))
