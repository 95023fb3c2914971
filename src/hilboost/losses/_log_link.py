"""What the losses with a logarithmic link share."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.loss import Loss, Target
from hilboost.losses import _location

_LARGEST_EXPONENT = 300.0


def safe_exp(raw: Floats) -> Floats:
    """``exp``, kept finite together with its products by a target."""
    return np.exp(np.clip(raw, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


class LogLinkLoss(Loss):
    """A loss of ``F = log(mean)``: its best constant is the logarithm of the mean."""

    name: str
    allows_zero: bool

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

    def inverse_link(self, raw: Floats) -> Floats:
        """The mean."""
        return safe_exp(raw)
