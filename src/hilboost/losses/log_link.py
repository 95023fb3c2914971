"""Losses with a logarithmic link: half deviances of Poisson, gamma and Tweedie distributions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.special import xlogy

from hilboost.backends.loss_gradients import LONGEST_STEP
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.link import LogLink
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_number
from hilboost.core.target import Target, TargetUnits
from hilboost.losses._columns import known_column, row_sums
from hilboost.reductions.sums import mean

_LARGEST_EXPONENT = 300.0
LARGEST_LOGARITHM = 709.0
"""Largest ``raw`` whose ``exp`` is finite in float64, rounded down."""


def safe_exp(raw: Floats) -> Floats:
    """Compute ``exp``, clipped so that products with a target stay finite."""
    return np.exp(np.clip(raw, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


def with_bounded_steps(hessian: Floats, gradient: Floats) -> Floats:
    """Raise hessians far from the optimum, where a Newton step is too long by orders of magnitude.

    A step changes a logarithm: of the mean, say.  It is of the order of the ratio of target and
    mean, or of its inverse, but should be of the order of the logarithm of this ratio.
    """
    least = np.abs(gradient)
    least /= LONGEST_STEP
    return np.maximum(hessian, least, out=least)


class LogLinkLoss(Loss):
    """A loss of ``F = log(mean)``; its best constant is the logarithm of the mean.

    A fit scales every column of the target by its mean, so gradients and hessians refer to a
    target with mean 1, and a model of ``c y`` equals that of ``y`` shifted by ``log(c)``.
    """

    name: str
    allows_zero: bool

    @property
    @abstractmethod
    def value_degree(self) -> float:
        """Degree of homogeneity: scaling ``y`` by ``c`` scales the loss by ``c ** value_degree``.

        The raw prediction moves from ``F`` to ``F + log(c)``.
        """

    @abstractmethod
    def _column_values(self, y: Floats, raw: Floats) -> Floats:
        """Compute the loss of every entry of the target, (n, c)."""

    def value(self, target: Target, raw: Floats) -> Floats:
        """Sum the loss over the target columns, (n,)."""
        return row_sums(self._column_values(target.y, raw))

    def units(self, target: Target) -> TargetUnits | None:
        """The mean of each target, among the known ones."""
        if "value_degree" not in vars(type(self)):
            return None  # a derived class may compute anything
        columns = [known_column(target, k) for k in range(target.y.shape[1])]
        size = np.concatenate([mean(column) for column in columns])
        value = float(size[0] ** self.value_degree) if len(size) == 1 else 1.0
        return TargetUnits(self, self, size, shift=np.log(size), value=value)

    def check_rows(self, y: Floats) -> None:
        """Reject negative targets, and zeros where their likelihood is zero."""
        if (y < 0).any() or (not self.allows_zero and (y == 0).any()):
            row = int(np.flatnonzero((y < 0).any(axis=1) | (y == 0).any(axis=1))[0])
            if (y < 0).any():
                row = int(np.flatnonzero((y < 0).any(axis=1))[0])
            kind = "zero or positive" if self.allows_zero else "positive"
            other = "squared_error" if (y < 0).any() else "tweedie"
            raise InvalidData(
                f"the {self.name} loss requires {kind} targets; row {row} has "
                f"{np.nanmin(y[row]):g}. "
                f"Remove such rows or choose another loss, such as '{other}'."
            )

    def check(self, target: Target) -> None:
        """Reject invalid rows, and a mean of zero."""
        self.check_rows(target.y)
        if not (mean(target) > 0).all():
            raise InvalidData(
                f"the {self.name} loss requires a target that is not zero in every row."
            )

    def initial_raw(self, target: Target) -> Floats:
        """Logarithm of the mean."""
        return np.log(mean(target))

    @property
    def link(self) -> LogLink:
        """Logarithm."""
        return LogLink(LARGEST_LOGARITHM)

    def inverse_link(self, raw: Floats) -> Floats:
        """The mean."""
        return np.exp(np.clip(raw, -LARGEST_LOGARITHM, LARGEST_LOGARITHM))


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
                f"tweedie: power must lie strictly between 1 and 2; got {shown(power)}. "
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
