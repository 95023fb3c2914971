"""What the losses with a logarithmic link share."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.link import LogLink
from hilboost.core.loss import Loss, Target, TargetUnits
from hilboost.losses import _location

_LARGEST_EXPONENT = 300.0
LARGEST_LOGARITHM = 709.0
"""``exp`` of it is a float64."""


def safe_exp(raw: Floats) -> Floats:
    """``exp``, kept finite together with its products by a target."""
    return np.exp(np.clip(raw, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


class LogLinkLoss(Loss):
    """A loss of ``F = log(mean)``: its best constant is the logarithm of the mean.

    A fit measures every column of the target in units of its mean: gradients and hessians are then
    those of a target of mean 1, and a model of ``c y`` is that of ``y`` shifted by ``log(c)``.
    """

    name: str
    allows_zero: bool
    _column_factors: Floats | None = None

    @property
    @abstractmethod
    def value_degree(self) -> float:
        """The loss of ``c y`` at ``F + log(c)`` is ``c ** value_degree`` times that of ``y``."""

    @abstractmethod
    def _column_values(self, y: Floats, raw: Floats) -> Floats:
        """The loss of every entry of the target, (n, c)."""

    def value(self, target: Target, raw: Floats) -> Floats:
        """Sum over the target columns, (n,)."""
        values = self._column_values(target.y, raw)
        if self._column_factors is not None:
            values *= self._column_factors
        return values.sum(axis=1)

    def units(self, target: Target) -> TargetUnits | None:
        """The means of the columns; values of the loss stay in the target's own units."""
        if "value_degree" not in vars(type(self)):
            return None  # a derived class may be anything
        size = _location.mean(target)
        loss = copy(self)
        loss._column_factors = size**self.value_degree
        return TargetUnits(self, loss, size, shift=np.log(size))

    def check(self, target: Target) -> None:
        """Refuse negative targets, zeros where they have no likelihood, and a mean of zero."""
        y = target.y
        if (y < 0).any() or (not self.allows_zero and (y == 0).any()):
            row = int(np.flatnonzero((y < 0).any(axis=1) | (y == 0).any(axis=1))[0])
            if (y < 0).any():
                row = int(np.flatnonzero((y < 0).any(axis=1))[0])
            kind = "zero or positive" if self.allows_zero else "positive"
            raise InvalidData(
                f"the {self.name} loss takes {kind} targets; row {row} holds {y[row].min():g}. "
                "Remove such rows or choose another loss, such as 'squared_error'."
            )
        if not (_location.mean(target) > 0).all():
            raise InvalidData(f"the {self.name} loss needs a target that is not zero everywhere.")

    def initial_raw(self, target: Target) -> Floats:
        """Logarithm of the mean."""
        return np.log(_location.mean(target))

    @property
    def link(self) -> LogLink:
        """Logarithm."""
        return LogLink(LARGEST_LOGARITHM)

    def inverse_link(self, raw: Floats) -> Floats:
        """The mean."""
        return np.exp(np.clip(raw, -LARGEST_LOGARITHM, LARGEST_LOGARITHM))
