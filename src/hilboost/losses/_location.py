"""Units of location losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.core.errors import InvalidData
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.target import Target
from hilboost.reductions.sums import largest as largest_of_all

_LARGEST_EXPONENT = 256
"""Targets with an absolute value between 2^-256 and 2^256 are not scaled."""
_LARGEST_VALUE = 1016
"""Logarithm to base 2 of the largest loss of a row, with some room for several columns."""


def extreme_units(
    loss: Loss, target: Target, scaled: Callable[[float], Loss]
) -> TargetUnits | None:
    """Find units for a location loss when targets are too large or too small to be squared.

    Parameters
    ----------
    loss : Loss
        Its own class must declare its ``degree``; a derived class may compute anything.
    target : Target
    scaled : callable
        Maps the unit, a power of two, to the loss of ``y / unit``.

    Returns
    -------
    TargetUnits or None

    Raises
    ------
    InvalidData
        Values of the loss exceed the range of float64.
    """
    if "degree" not in vars(type(loss)) or loss.degree is None:
        return None
    largest = largest_of_all(float(np.abs(target.y).max(initial=0.0)), target.share)
    exponent = int(np.frexp(largest)[1])
    if largest == 0 or abs(exponent) <= _LARGEST_EXPONENT:
        return None
    if loss.degree * exponent > _LARGEST_VALUE:
        raise InvalidData(
            f"y contains absolute values up to {largest:.3g}, for which {type(loss).__name__} "
            "exceeds the range of float64. Divide y by a constant."
        )
    unit = 2.0**exponent
    size = np.full(target.y.shape[1], unit)
    return TargetUnits(loss, scaled(unit), size, factor=unit, value=unit**loss.degree)
